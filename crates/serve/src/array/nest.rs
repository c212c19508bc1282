//! The inner arrays of a process: those that are, or may become, members of other arrays.
//!
//! As with md, an inner array is assembled and started like any other, by its own thread, and has a
//! name, `array:NAME`. The outer array's superblocks lie in its data. Each has a control socket of
//! its own, so that all verbs work on it.
//!
//! Rules that protect the data:
//! * An array is a member of one other array at most, and while it is one it can
//!   neither be stopped nor made read-only.
//! * Depths prevent circles: an array accepts only arrays of smaller depth than its
//!   own. Arrays of files have depth 0, the outermost one has the greatest depth.
//! * The outer array stops first, so that its last superblocks still reach the
//!   leaves.

use super::files::{Assembled, FilesError, assemble};
use super::serve::{ArrayExport, Others, ServeError, ServeOptions};
use super::verbs::alone;
use crate::control::{
    ControlError, ControlRequest, ControlResponse, ControlServer, Controlled, PlaceError,
    Publisher, control_path,
};
use crate::export::Export;
use crate::member::{Member, NestedMember};
use raidlab_array::AssembleOptions;
use raidlab_units::in_one_line;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// The depth of the outermost array.
const TOP: usize = usize::MAX;

/// The reason why an array cannot be a member.
#[derive(Debug, thiserror::Error)]
pub enum NestError {
    /// The devices do not form an array that may be started.
    #[error(transparent)]
    Files(#[from] FilesError),
    /// The array that is to be a member cannot be run.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// No array has this name.
    #[error("no array `{0}` is served here")]
    Unknown(String),
    /// The array is a member of another array.
    #[error("array:{0} is a member of another array")]
    InUse(String),
    /// The array's depth is not below that of the array that should contain it.
    #[error("array:{0} lies too deep: an inner array takes only those below it")]
    TooDeep(String),
    /// No path can be chosen for its control socket.
    #[error("array:{name} gets no control socket")]
    Place {
        /// The array's name.
        name: String,
        /// The reason why there is no path for the socket.
        #[source]
        source: PlaceError,
    },
    /// The control socket cannot be made.
    #[error("array:{name} gets no control socket")]
    Control {
        /// The array's name.
        name: String,
        /// The reason why the socket cannot be made.
        #[source]
        source: ControlError,
    },
}

#[derive(Debug)]
struct Inner {
    name: String,
    depth: usize,
    array: Arc<ArrayExport>,
    /// The array in its role as a member, as long as it has one.
    member: Weak<NestedMember>,
    control: Option<ControlServer>,
}

impl Inner {
    fn is_in_use(&self) -> bool {
        self.member.strong_count() > 0
    }
}

/// The inner arrays of a process. When it is dropped, all of them are stopped cleanly.
#[derive(Debug)]
pub struct Nest {
    options: ServeOptions,
    arrays: Mutex<Vec<Inner>>,
    /// The prefix of the names of control sockets, once there are any.
    prefix: Mutex<Option<String>>,
}

impl Nest {
    /// A nest without arrays; they will be served with these options.
    #[must_use]
    pub fn new(options: ServeOptions) -> Arc<Self> {
        Arc::new(Self {
            options,
            arrays: Mutex::default(),
            prefix: Mutex::default(),
        })
    }

    /// Assembles an inner array and starts it; returns the name by which it is claimed: the array's
    /// own, with a number appended if that is in use. `report` receives the assembled array before
    /// it is started.
    ///
    /// # Errors
    /// When the devices do not form an array that may be started, or its control socket
    /// cannot be made.
    pub fn start(
        self: &Arc<Self>,
        devices: &[Member],
        how: &AssembleOptions,
        report: &mut dyn FnMut(&Assembled),
    ) -> Result<String, NestError> {
        let assembled = assemble(devices, None, how)?;
        report(&assembled);
        let wanted = plain_name(&assembled.assembly.array.name);
        let depth = self.depth_over(devices);
        let options = ServeOptions {
            log: self.options.log && !how.read_only,
            ..self.options.clone()
        };
        let array = ArrayExport::start(assembled, &options)?.among(Seen::from(self, depth));
        let mut arrays = self.lock();
        // `nbd` is reserved: its control socket would have the path of the outer array's
        // socket for clients.
        let is_free =
            |name: &String| *name != "nbd" && arrays.iter().all(|other| other.name != *name);
        let name = std::iter::once(wanted.clone())
            .chain((2..).map(|number: u32| format!("{wanted}-{number}")))
            .find(is_free)
            .unwrap_or_default();
        let mut inner = Inner {
            name: name.clone(),
            depth,
            array: Arc::new(array),
            member: Weak::new(),
            control: None,
        };
        let prefix = self.prefix.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(prefix) = &*prefix {
            inner.control = Some(self.control(prefix, &inner)?);
        }
        arrays.push(inner);
        Ok(name)
    }

    /// Starts the outermost array, which may have any of these as members.
    ///
    /// # Errors
    /// As [`ArrayExport::start`].
    pub fn start_top(self: &Arc<Self>, assembled: Assembled) -> Result<ArrayExport, ServeError> {
        Ok(ArrayExport::start(assembled, &self.options)?.among(Seen::from(self, TOP)))
    }

    /// Claims an array as a member of one that is being assembled.
    ///
    /// # Errors
    /// When there is no such array, or it is a member already.
    pub fn claim_for_new(&self, name: &str) -> Result<Member, NestError> {
        self.claim(name, TOP)
    }

    /// Claims an array as a member of one of depth `below`. It is in use until the last clone of
    /// the returned member is dropped.
    pub(super) fn claim(&self, name: &str, below: usize) -> Result<Member, NestError> {
        let mut arrays = self.lock();
        let found = arrays
            .iter_mut()
            .find(|inner| inner.name == name && !has_stopped(inner))
            .ok_or_else(|| NestError::Unknown(name.to_owned()))?;
        if found.is_in_use() {
            return Err(NestError::InUse(name.to_owned()));
        }
        if found.depth >= below {
            return Err(NestError::TooDeep(name.to_owned()));
        }
        let export = Arc::clone(&found.array) as Arc<dyn Export>;
        let member = Arc::new(NestedMember::new(name, export));
        found.member = Arc::downgrade(&member);
        Ok(Member::Array(member))
    }

    /// Gives each array, and each later one, a control socket named `PREFIX.NAME`. Returns the
    /// paths of the sockets.
    ///
    /// # Errors
    /// When one cannot be made.
    pub fn listen(self: &Arc<Self>, prefix: &str) -> Result<Vec<PathBuf>, NestError> {
        let mut arrays = self.lock();
        let mut paths = Vec::new();
        for inner in arrays.iter_mut() {
            let control = self.control(prefix, inner)?;
            paths.push(control.path().to_owned());
            inner.control = Some(control);
        }
        let mut kept = self.prefix.lock().unwrap_or_else(PoisonError::into_inner);
        *kept = Some(prefix.to_owned());
        Ok(paths)
    }

    /// Whether an array is a member of another.
    fn is_in_use(&self, name: &str) -> bool {
        let arrays = self.lock();
        arrays
            .iter()
            .any(|inner| inner.name == name && inner.is_in_use())
    }

    /// Drops arrays that have stopped. To be called from time to time, by a thread that serves
    /// no control socket.
    pub fn reap(&self) {
        let stopped: Vec<Inner> = self.lock().extract_if(.., |one| has_stopped(one)).collect();
        // Dropped without the lock: control sockets wait for the conversations under way.
        drop(stopped);
    }

    /// Stops all arrays, outer ones before inner ones, each within `patience`. Returns whether all
    /// have stopped. The outermost array must have stopped before.
    #[must_use]
    pub fn stop(&self, patience: Duration) -> bool {
        let mut arrays: Vec<_> = self
            .lock()
            .iter()
            .map(|inner| (inner.depth, Arc::clone(&inner.array)))
            .collect();
        arrays.sort_by_key(|(depth, _)| std::cmp::Reverse(*depth));
        // Arrays of the same depth are stopped at once.
        arrays
            .chunk_by(|left, right| left.0 == right.0)
            .all(|equals| {
                equals.iter().for_each(|(_, array)| array.stop());
                equals
                    .iter()
                    .all(|(_, array)| array.wait_until_stopped(patience))
            })
    }

    /// Returns an array, to read the metadata in its data.
    #[cfg(test)]
    pub(super) fn peek(&self, name: &str) -> Option<Arc<ArrayExport>> {
        let arrays = self.lock();
        let found = arrays.iter().find(|inner| inner.name == name);
        found.map(|inner| Arc::clone(&inner.array))
    }

    fn depth_over(&self, devices: &[Member]) -> usize {
        let arrays = self.lock();
        let depths = arrays.iter().filter_map(|inner| {
            let member = inner.member.upgrade()?;
            let holds =
                |device: &Member| matches!(device, Member::Array(own) if Arc::ptr_eq(own, &member));
            devices.iter().any(holds).then_some(inner.depth + 1)
        });
        depths.max().unwrap_or(0)
    }

    fn control(self: &Arc<Self>, prefix: &str, inner: &Inner) -> Result<ControlServer, NestError> {
        let name = inner.name.clone();
        let path = control_path(&format!("{prefix}.{name}")).map_err(|source| {
            let name = name.clone();
            NestError::Place { name, source }
        })?;
        let controlled = Arc::new(InnerControl {
            name: name.clone(),
            array: Arc::clone(&inner.array),
            nest: Arc::downgrade(self),
        });
        ControlServer::start(&path, controlled)
            .map_err(|source| NestError::Control { name, source })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Inner>> {
        // The list is consistent after every step that could panic.
        self.arrays.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Nest {
    fn drop(&mut self) {
        let mut arrays = std::mem::take(&mut *self.lock());
        arrays.sort_by_key(|inner| std::cmp::Reverse(inner.depth));
        // Each array is stopped when it is dropped, outer ones first.
        drop(arrays);
    }
}

/// The nest as one array sees it, with that array's depth.
#[derive(Debug)]
struct Seen {
    nest: Weak<Nest>,
    depth: usize,
}

impl Seen {
    fn from(nest: &Arc<Nest>, depth: usize) -> Self {
        Self {
            nest: Arc::downgrade(nest),
            depth,
        }
    }
}

impl Others for Seen {
    fn claim(&self, name: &str) -> Result<Member, String> {
        let nest = self.nest.upgrade().ok_or_else(alone)?;
        let claimed = nest.claim(name, self.depth);
        claimed.map_err(|error| in_one_line(&error))
    }

    fn start(&self, devices: &[Member]) -> Result<(), String> {
        let nest = self.nest.upgrade().ok_or_else(alone)?;
        if self.depth != TOP {
            return Err("only the outermost array's server assembles others".to_owned());
        }
        let started = nest.start(devices, &AssembleOptions::default(), &mut |_| {});
        started.map(drop).map_err(|error| in_one_line(&error))
    }
}

fn has_stopped(inner: &Inner) -> bool {
    inner.array.wait_until_stopped(Duration::ZERO)
}

/// Returns an array's name without its host, shortened to fit a socket's name.
fn plain_name(full: &str) -> String {
    let name = full.rsplit(':').next().unwrap_or_default();
    let plain = |one: &char| one.is_ascii_alphanumeric() || "-_".contains(*one);
    let name: String = name.chars().filter(plain).take(24).collect();
    if name.is_empty() {
        "array".to_owned()
    } else {
        name
    }
}

/// The control of an inner array over its socket.
struct InnerControl {
    name: String,
    array: Arc<ArrayExport>,
    nest: Weak<Nest>,
}

impl Controlled for InnerControl {
    fn control(&self, request: ControlRequest) -> ControlResponse {
        let ends_service = matches!(
            request,
            ControlRequest::Stop {} | ControlRequest::ReadOnly {}
        );
        if ends_service
            && let Some(nest) = self.nest.upgrade()
            && nest.is_in_use(&self.name)
        {
            let error = NestError::InUse(self.name.clone()).to_string();
            return ControlResponse::Refused { error };
        }
        self.array.control(request)
    }

    fn publisher(&self) -> &Publisher {
        self.array.publisher()
    }
}
