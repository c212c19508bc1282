//! An array, or a single file, as an export.

use super::engine::{Core, place_of};
use super::events::event_report;
use super::files::Assembled;
use super::owner::{Broken, Owner, Watcher};
use super::passthrough::Passthrough;
use super::random::random_u64;
use super::running::{Message, Running, monotonic_now};
use crate::control::Publisher;
use crate::export::{BlockSizes, Export, Features, MAXIMUM_BUFFER_BYTES, Request};
use crate::member::{
    BackendKind, Member, MemberCounters, MemberFile, Members, MembersConfig, Waker, start_backend,
};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, unbounded};
use raidlab_array::{EngineOptions, Event, Outputs, PersistentArray, Settings, Slot, StartError};
use raidlab_units::{Nanos, visible_path};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

/// The configuration of the driver of members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DriverConfig {
    /// The way in which commands reach the members.
    pub backend: BackendKind,
    /// Bytes of payload memory that a ring may register with the kernel; 0 for none.
    pub registered_bytes: u64,
    /// The limits after which a member that does not answer is given up.
    pub members: MembersConfig,
}

impl Default for DriverConfig {
    fn default() -> Self {
        Self {
            backend: BackendKind::default(),
            registered_bytes: DEFAULT_REGISTERED_BYTES,
            members: MembersConfig::default(),
        }
    }
}

/// The default of registered memory, 64 MiB: a connection's 32 MiB in flight, and as much for
/// parity and syncs.
pub const DEFAULT_REGISTERED_BYTES: u64 = 64 << 20;

/// The options for serving an array.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// The options of the engine.
    pub engine: EngineOptions,
    /// Whether a write log closes the write hole, where the members have room
    /// for one.
    pub log: bool,
    /// The driver of the members: backend and limits.
    pub driver: DriverConfig,
}

/// The reason why an array or file cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The backend or its thread could not be started.
    #[error("cannot start to serve members")]
    Start(#[source] io::Error),
    /// The array cannot run.
    #[error("cannot start the array")]
    Array(#[from] StartError),
    /// The environment names parity kernels that do not exist here.
    #[error("cannot compute parity as {} asks", raidlab_parity::SIMD_VARIABLE)]
    Parity(#[from] raidlab_parity::TierError),
    /// The array's thread has ended.
    #[error("the array has stopped")]
    Stopped,
    /// The array broke down before it was stopped: its members are not marked clean.
    #[error("the array was not stopped cleanly")]
    Unclean(#[source] Broken),
    /// The array's thread panicked, so its members are not marked clean.
    #[error("the array was not stopped cleanly: its thread has died")]
    Died,
}

/// Returns the time since 1970 at which CLOCK_MONOTONIC was zero.
fn unix_base() -> Nanos {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let since = since.unwrap_or_default().as_nanos();
    let since = u64::try_from(since).unwrap_or(u64::MAX);
    Nanos(since.saturating_sub(monotonic_now().0))
}

/// The parts with which an owner is started.
struct Setup {
    core: Core,
    /// The core's first orders, which come before any request.
    out: Outputs,
    members: Vec<(Slot, Member)>,
    description: String,
    read_only: bool,
    driver: DriverConfig,
}

/// A watcher that publishes an array's events to users.
struct Publishing(Publisher);

impl Watcher for Publishing {
    fn event(&mut self, now: Nanos, event: Event) {
        self.0.publish(&event_report(now, event));
    }
}

/// The other arrays of the process, as one of them sees them.
pub(super) trait Others: std::fmt::Debug + Send + Sync {
    /// Claims the array of this name as a member.
    ///
    /// # Errors
    /// In words for the administrator: it does not exist, or must not be a member.
    fn claim(&self, name: &str) -> Result<Member, String>;

    /// Starts the array that these devices form.
    ///
    /// # Errors
    /// In words for the administrator.
    fn start(&self, devices: &[Member]) -> Result<(), String>;
}

/// An array whose thread runs. When dropped, it finishes what is under way and is stopped cleanly.
#[derive(Debug)]
pub struct ArrayExport {
    inbox: Sender<Message>,
    waker: Arc<Waker>,
    thread: Option<JoinHandle<()>>,
    ended: Receiver<()>,
    /// The reason why the end was not a clean stop, or `None`; unset while it runs, and
    /// after a panic.
    end: Arc<OnceLock<Option<Broken>>>,
    publisher: Publisher,
    size_bytes: u64,
    rotational: bool,
    /// Whether it was started read-only; one that is made read-only later refuses writes.
    read_only: bool,
    description: String,
    failed: Arc<AtomicBool>,
    others: Option<Box<dyn Others>>,
}

impl ArrayExport {
    /// Starts an assembled array.
    ///
    /// # Errors
    /// When the array cannot run, its thread cannot be started, or the
    /// environment names no parity kernels of this processor.
    pub fn start(assembled: Assembled, options: &ServeOptions) -> Result<Self, ServeError> {
        raidlab_parity::forced()?;
        let session = match options.log {
            true => random_u64().map_err(ServeError::Start)?.max(1),
            false => 0,
        };
        let mut out = Outputs::default();
        let name = assembled.assembly.array.name.clone();
        let description = format!("{} {name}", assembled.assembly.level);
        let read_only = assembled.assembly.read_only;
        let array = PersistentArray::start(
            assembled.assembly,
            &options.engine,
            Settings::new(unix_base(), session),
            monotonic_now(),
            &mut out,
        )?;
        Self::run(Setup {
            core: Core::Array(Box::new(array)),
            out,
            members: assembled.files,
            description,
            read_only,
            driver: options.driver,
        })
    }

    fn run(setup: Setup) -> Result<Self, ServeError> {
        let waker = Arc::new(Waker::new().map_err(ServeError::Start)?);
        let publisher = Publisher::default();
        let (inbox, messages) = unbounded();
        let (lives, ended) = bounded(0);
        let mut export = Self {
            inbox,
            waker: Arc::clone(&waker),
            thread: None,
            ended,
            end: Arc::default(),
            publisher: publisher.clone(),
            size_bytes: setup.core.size().to_bytes().0,
            rotational: setup.members.iter().any(|(_, file)| file.rotational()),
            description: setup.description,
            read_only: setup.read_only,
            failed: Arc::default(),
            others: None,
        };
        let (failed, end) = (Arc::clone(&export.failed), Arc::clone(&export.end));
        let (started, result) = bounded(1);
        let body = move || {
            let members = attach(&setup.members, setup.driver, &waker);
            // The list is dropped here: a member that is removed must be closed.
            drop(setup.members);
            let members = match members {
                Ok(members) => members,
                Err(error) => {
                    let _ = started.send(Err(error));
                    return;
                }
            };
            let core = (setup.core, setup.out);
            let owner = Owner::new(core, members, Box::new(Publishing(publisher)), failed);
            let _ = started.send(Ok(()));
            let inbox = messages;
            let running = Running {
                owner,
                inbox,
                waker,
            };
            // It is set only here, and the thread ends once.
            let _ = end.set(running.run());
            drop(lives);
        };
        let thread = std::thread::Builder::new()
            .name("array".to_owned())
            .spawn(body)
            .map_err(ServeError::Start)?;
        export.thread = Some(thread);
        let started = result.recv().map_err(|_| ServeError::Stopped)?;
        started.map_err(ServeError::Start)?;
        Ok(export)
    }

    /// Tells the array of the other arrays of the process.
    #[must_use]
    pub(super) fn among(mut self, others: impl Others + 'static) -> Self {
        self.others = Some(Box::new(others));
        self
    }

    /// Returns the other arrays of the process, if the array knows any.
    pub(super) fn others(&self) -> Option<&dyn Others> {
        self.others.as_deref()
    }

    /// Calls a function on the owner's thread between two requests, and waits for the result.
    pub(super) fn call<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Owner, Nanos) -> R + Send + 'static,
    ) -> Result<R, ServeError> {
        let (answer, result) = bounded(1);
        let call = Box::new(move |owner: &mut Owner, now: Nanos| {
            let _ = answer.send(work(owner, now));
        });
        self.send(Message::Call(call))?;
        self.waker.wake();
        result.recv().map_err(|_| ServeError::Stopped)
    }

    fn send(&self, message: Message) -> Result<(), ServeError> {
        self.inbox.send(message).map_err(|_| ServeError::Stopped)
    }

    /// Asks the array to finish what is under way and stop cleanly.
    pub fn stop(&self) {
        // If it cannot be sent, the thread has ended already.
        let _ = self.send(Message::Stop);
        self.waker.wake();
    }

    /// Waits until the array has stopped, at most for `patience`. Returns whether it has.
    #[must_use]
    pub fn wait_until_stopped(&self, patience: Duration) -> bool {
        self.ended.recv_timeout(patience) == Err(RecvTimeoutError::Disconnected)
    }

    /// Returns whether the array was stopped cleanly, once it has stopped.
    ///
    /// # Errors
    /// [`ServeError::Unclean`] and [`ServeError::Died`].
    pub fn stopped_cleanly(&self) -> Result<(), ServeError> {
        match self.end.get() {
            Some(None) => Ok(()),
            Some(Some(why)) => Err(ServeError::Unclean(why.clone())),
            None => Err(ServeError::Died),
        }
    }

    /// Returns the counters of a device since it was attached.
    ///
    /// # Errors
    /// When the array has stopped.
    pub fn counters(&self, handle: Slot) -> Result<MemberCounters, ServeError> {
        self.call(move |owner, _| owner.members.counters(place_of(handle)))
    }

    /// Returns the publisher of the array's events.
    #[must_use]
    pub fn publisher(&self) -> &Publisher {
        &self.publisher
    }
}

/// Starts the backend and attaches all members. A ring belongs to the thread that makes it.
fn attach(
    files: &[(Slot, Member)],
    driver: DriverConfig,
    waker: &Arc<Waker>,
) -> io::Result<Members> {
    let backend = start_backend(driver.backend, driver.registered_bytes, waker)?;
    let mut members = Members::new(backend, driver.members, Some(waker));
    for (handle, file) in files {
        members.attach(place_of(*handle), file)?;
    }
    Ok(members)
}

impl Export for ArrayExport {
    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn description(&self) -> String {
        self.description.clone()
    }

    fn features(&self) -> Features {
        Features {
            read_only: self.read_only,
            flush: true,
            trim: true,
            write_zeroes: true,
            multiple_connections: true,
            rotational: self.rotational,
            ..Features::default()
        }
    }

    fn block_sizes(&self) -> BlockSizes {
        BlockSizes {
            minimum: 512,
            preferred: 4096,
            maximum: MAXIMUM_BUFFER_BYTES as u32,
        }
    }

    fn has_failed(&self) -> bool {
        self.failed.load(Ordering::SeqCst)
    }

    fn submit(&self, request: Request) {
        // A request that cannot be sent is dropped, which answers it.
        let _ = self.send(Message::Request(request));
    }

    fn submitted(&self) {
        self.waker.wake();
    }
}

impl Drop for ArrayExport {
    fn drop(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            // A panic in the owner has been printed already.
            let _ = thread.join();
        }
    }
}

/// A single file or block device, served as it is.
#[derive(Debug)]
pub struct FileExport(ArrayExport);

impl FileExport {
    /// Serves an open file.
    ///
    /// # Errors
    /// When its thread cannot be started.
    pub fn start(file: Arc<MemberFile>, driver: DriverConfig) -> Result<Self, ServeError> {
        ArrayExport::run(Setup {
            core: Core::Plain(Passthrough::new(file.size())),
            out: Outputs::default(),
            description: format!("the file {}", visible_path(file.path())),
            read_only: file.is_read_only(),
            members: vec![(Slot(0), Member::Storage(file))],
            driver,
        })
        .map(Self)
    }

    /// Returns the counters of the file.
    ///
    /// # Errors
    /// When it has stopped.
    pub fn counters(&self) -> Result<MemberCounters, ServeError> {
        self.0.counters(Slot(0))
    }
}

impl Export for FileExport {
    fn size_bytes(&self) -> u64 {
        self.0.size_bytes()
    }

    fn description(&self) -> String {
        self.0.description()
    }

    fn features(&self) -> Features {
        self.0.features()
    }

    fn block_sizes(&self) -> BlockSizes {
        self.0.block_sizes()
    }

    fn submit(&self, request: Request) {
        self.0.submit(request);
    }

    fn submitted(&self) {
        self.0.submitted();
    }
}
