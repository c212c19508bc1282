//! The interface of all kinds of arrays.

use raidlab_shell::{Command, Target, TargetError, Watched};
use raidlab_units::Bytes;
use serde::{Deserialize, Serialize};

pub mod bcache;
mod blank;
pub mod btrfs;
mod described;
pub mod disk;
mod error;
mod fixed;
pub mod geom;
pub mod gflash;
pub mod gmirror;
pub mod graid3;
pub mod gstripe;
pub mod lvm;
pub mod md;
pub mod nbd;
pub mod spec;
pub(crate) mod steps;
pub mod zfs;

pub use described::Described;
pub(crate) use error::Result;
pub use error::SystemError;

/// The operating systems that arrays distinguish.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OperatingSystem {
    /// Linux, of any distribution.
    Linux,
    /// FreeBSD, of any release.
    FreeBsd,
}

/// A disk, partition or loop device that is to be a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The device node: `/dev/sdb`, `/dev/loop3`, `/dev/ada2`.
    pub device: String,
    /// The size of the whole device.
    pub size: Bytes,
    /// The file behind a loop device.
    pub backing: Option<String>,
    /// Whether the member was removed and not put back: the array must not find it again by itself
    /// while its device still exists.
    pub away: bool,
}

impl Member {
    /// A member of an array that was found on a machine.
    pub(crate) fn found(device: impl Into<String>, size: Bytes) -> Self {
        Self {
            device: device.into(),
            size,
            backing: None,
            away: false,
        }
    }
}

/// An array that is built or to be built: its spec's name for it and its
/// members in the order of their slots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Built {
    /// The name, unique on the machine, made of letters, digits and `-`, at most 15 characters:
    /// `raidlab0`. Pools, volume groups and arrays get this name.
    pub name: String,
    /// The members, slot by slot.
    pub members: Vec<Member>,
    /// The mount point of data sets and file systems of the array itself (ZFS, btrfs): an existing
    /// or creatable folder.
    pub folder: String,
}

impl Built {
    /// Records that a member was removed, or put back.
    pub fn set_away(&mut self, slot: usize, away: bool) {
        if let Some(member) = self.members.get_mut(slot) {
            member.away = away;
        }
    }

    /// The other members that are present.
    fn others(&self, slot: usize) -> impl Iterator<Item = &Member> {
        let others = self.members.iter().enumerate();
        others
            .filter(move |(other, member)| *other != slot && !member.away)
            .map(|(_, member)| member)
    }

    /// Whether a device is one of the members.
    #[must_use]
    pub fn has(&self, device: &str) -> bool {
        self.members.iter().any(|member| member.device == device)
    }

    /// An array that was found on a machine, mounted nowhere.
    pub(crate) fn found(name: impl Into<String>, members: Vec<Member>) -> Self {
        Self {
            name: name.into(),
            members,
            folder: String::new(),
        }
    }
}

/// The way in which the finished array is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// A block device: jobs run on it, or a file system is made on it.
    Device(String),
    /// A folder: the array is a file system itself (btrfs, a ZFS data set).
    Folder(String),
    /// An export on the network by its URI (`nbd://host:10809/name`): only a
    /// tool with an engine for it can run on it, no file system can be made.
    Export(String),
}

/// A required program or kernel module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Need {
    /// A program that must be installed.
    Program {
        /// The name that it is called by: `mdadm`.
        name: &'static str,
        /// The package by which Debian installs it: `apt-get install mdadm`; empty where it is part
        /// of the system.
        apt: &'static str,
        /// The package by which FreeBSD installs it: `pkg install fio`; empty where it is
        /// part of the system.
        pkg: &'static str,
    },
    /// A file system or driver that the kernel must have or be able to load:
    /// the module's name, `raid456`.
    Module(&'static str),
}

impl Need {
    /// A program of Linux that is installed as a package, or is a part of FreeBSD.
    pub(crate) const fn program(name: &'static str, apt: &'static str) -> Self {
        Self::Program { name, apt, pkg: "" }
    }
}

/// The whole array's health.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// Every member is in place and up to date.
    Optimal,
    /// Redundancy is lost, but data are complete.
    Degraded,
    /// Data are lost or inaccessible.
    Failed,
}

/// The state of one member, in mdadm's words where these suffice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberState {
    /// The member's content is up to date.
    InSync,
    /// The member is present, and its content is being rebuilt.
    Recovering,
    /// The member is present, idle until it is needed.
    Spare,
    /// The member is present, and was given up after errors.
    Faulty,
    /// The slot has no member, or its member is gone.
    Missing,
}

/// The kind of background copying.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncKind {
    /// All members are made equal, after creation or a crash.
    Resync,
    /// A member is rebuilt (ZFS: resilver; gmirror: synchronizing).
    Recovery,
    /// Copies are compared (scrub).
    Check,
    /// The layout changes.
    Reshape,
}

/// The state of background copying that is under way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SyncStatus {
    /// The kind of background copying.
    pub kind: SyncKind,
    /// The progress, 0 to 100 percent; `None` where it waits to begin.
    pub percent: Option<f64>,
    /// The bytes of each member that make 100 percent, where the system reports them.
    pub member: Option<Bytes>,
}

impl SyncStatus {
    /// The status where the members' size is not reported.
    pub(crate) const fn of(kind: SyncKind, percent: Option<f64>) -> Self {
        Self {
            kind,
            percent,
            member: None,
        }
    }
}

/// The state of an array at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct ArrayStatus {
    /// The health of the array as a whole.
    pub health: Health,
    /// The state of each member, in the order of the slots.
    pub members: Vec<MemberState>,
    /// The background copying; `None` when there is none.
    pub sync: Option<SyncStatus>,
}

/// The state of a cache on disks of its own, before an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheState {
    /// The dirty data, written to the cache and not yet to the disks behind it; bcache reports it
    /// with two digits or a little more.
    pub dirty: Bytes,
    /// The counts since the cache was attached; `None` where the system does not report
    /// them at once.
    pub counts: Option<CacheCounts>,
}

/// The counts of a cache since it was attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheCounts {
    /// Reads that hit the cache.
    pub read_hits: u64,
    /// Reads that missed the cache.
    pub read_misses: u64,
    /// Writes that hit the cache.
    pub write_hits: u64,
    /// Writes that missed the cache.
    pub write_misses: u64,
    /// Blocks promoted into the cache.
    pub promotions: u64,
    /// Blocks demoted from the cache.
    pub demotions: u64,
}

/// The commands that make a cache write back its dirty data.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WriteBack {
    /// The commands that begin the writing back; empty where the cache does so whenever it is idle.
    pub begin: Vec<Command>,
    /// The commands that return the cache to its mode.
    pub end: Vec<Command>,
}

/// A setting in force, beside the requested value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadBack {
    /// The name of the setting in the spec: `chunk`, `bitmap`, `primarycache`.
    pub name: String,
    /// The requested value; `None` where the spec left the system's default.
    pub asked: Option<String>,
    /// The value in force, with its unit.
    pub found: String,
    /// Whether the requested value is in force; true where none was requested.
    pub applied: bool,
    /// The file or command that it was read from: `/sys/block/md0/md/chunk_size`, `zfs get`.
    pub source: String,
}

impl ReadBack {
    /// Creates a setting read back; the found value counts as applied if it equals the requested
    /// one, or none was requested.
    pub(crate) fn new(
        name: &str,
        asked: Option<impl ToString>,
        found: impl ToString,
        source: &str,
    ) -> Self {
        let asked = asked.map(|asked| asked.to_string());
        let found = found.to_string();
        Self {
            name: name.to_owned(),
            applied: asked.as_ref().is_none_or(|asked| *asked == found),
            asked,
            found,
            source: source.to_owned(),
        }
    }
}

/// A kind of array of some operating system, with its settings decided: how it is built, used and
/// taken down. Its description, changes of its members and its state are [`Described`],
/// [`ChangeMembers`] and [`ReadState`].
pub trait ArraySystem: Described + ChangeMembers + ReadState + Send + Sync {
    /// The operating systems that the kind runs on; most run on Linux alone.
    fn runs_on(&self) -> &'static [OperatingSystem] {
        &[OperatingSystem::Linux]
    }

    /// The programs and modules that are needed before anything can be built.
    fn needs(&self) -> Vec<Need>;

    /// Checks that the settings are consistent and accepted by the system, whatever the members.
    /// Files are checked by it when they are read, on every bench.
    ///
    /// # Errors
    /// The first setting that the system does not accept.
    fn check_settings(&self) -> Result<()> {
        Ok(())
    }

    /// Checks that an array can be built of so many members of these sizes.
    ///
    /// # Errors
    /// Too few or too many members, and as [`ArraySystem::check_settings`].
    fn check(&self, members: &[Member]) -> Result<()>;

    /// The expected capacity in bytes, roughly: sizes of jobs are checked against it before the
    /// array is built.
    fn capacity(&self, members: &[Member]) -> Bytes;

    /// The commands that build the array, in order; the first ones wipe old signatures of the
    /// members. They never ask questions.
    ///
    /// # Errors
    /// As [`ArraySystem::check`].
    fn create(&self, array: &Built) -> Result<Vec<Command>>;

    /// The access to the array once it is built.
    fn access(&self, array: &Built) -> Access;

    /// Whether the finished array is a block device.
    fn is_device(&self) -> bool {
        let access = self.access(&Built::found("", Vec::new()));
        matches!(access, Access::Device(_))
    }

    /// Paths that exist as long as the array does. One that exists before the array is built
    /// belongs to something else, which must not be taken down in its place.
    fn own_paths(&self, array: &Built) -> Vec<String> {
        match self.access(array) {
            Access::Device(device) if !array.has(&device) => vec![device],
            Access::Device(_) | Access::Folder(_) | Access::Export(_) => Vec::new(),
        }
    }

    /// The commands that begin a check: all redundant data are read and compared, and
    /// nothing is changed.
    ///
    /// # Errors
    /// Where the system has no such verb, or none that is known here.
    fn check_all(&self, _array: &Built) -> Result<Vec<Command>> {
        Err(self.lacks("begin a check", "only md is known to"))
    }

    /// The commands that make its cache write back all dirty data; `None` where it has no cache.
    fn write_back(&self, _array: &Built) -> Option<WriteBack> {
        None
    }

    /// The command that stops an array of this kind that the kernel knows under another name, as
    /// when the system assembled it by itself at boot; `None` for any other device, and where the
    /// name is always ours.
    fn stop(&self, _device: &str) -> Option<Command> {
        None
    }

    /// The commands that take the array down and leave the members blank; each may fail where a
    /// crash has left only a part of the array, and the rest are run nevertheless.
    fn destroy(&self, array: &Built) -> Vec<Command>;
}

/// Changes of the members of an array.
pub trait ChangeMembers: Described {
    /// The commands that declare a member failed.
    ///
    /// # Errors
    /// Where the system has no such verb.
    fn fail(&self, _array: &Built, _slot: usize) -> Result<Vec<Command>> {
        Err(self.lacks(
            "make a member fail",
            "it has no such verb: remove the member",
        ))
    }

    /// The commands that remove a member; it is failed first where the system requires that.
    ///
    /// # Errors
    /// Where the array cannot work without it.
    fn remove(&self, array: &Built, slot: usize) -> Result<Vec<Command>>;

    /// The commands that add a member to its slot as if it were new: everything is copied onto it.
    ///
    /// # Errors
    /// Where the system has no such verb.
    fn add(&self, array: &Built, slot: usize) -> Result<Vec<Command>>;

    /// The commands that re-add a member that was only away for a while: the system copies what it
    /// missed, where it knows that (bitmap, ZFS).
    ///
    /// # Errors
    /// Where the system has no such verb.
    fn re_add(&self, array: &Built, slot: usize) -> Result<Vec<Command>>;
}

/// The state of an array, read without disturbing its disks.
pub trait ReadState {
    /// The sources of the state: files where there are any, else the cheapest command. Reading them
    /// each second must not disturb the disks.
    fn sources(&self, array: &Built) -> Vec<Watched>;

    /// Interprets the contents of [`ReadState::sources`], in their order.
    ///
    /// # Errors
    /// When they are not understood or there is no such array.
    fn interpret(&self, array: &Built, contents: &[Option<String>]) -> Result<ArrayStatus>;

    /// Reads the present state.
    ///
    /// # Errors
    /// When it cannot be read or understood.
    fn status(&self, target: &dyn Target, array: &Built) -> Result<ArrayStatus> {
        let contents = read_all(target, &self.sources(array))?;
        self.interpret(array, &contents)
    }

    /// Reads the state of its cache; `None` where it has none.
    ///
    /// # Errors
    /// When it cannot be read or understood.
    fn cache(&self, _target: &dyn Target, _array: &Built) -> Result<Option<CacheState>> {
        Ok(None)
    }

    /// Reads every setting that matters to a measurement, as it is in force.
    ///
    /// # Errors
    /// When a setting cannot be read.
    fn settings(&self, target: &dyn Target, array: &Built) -> Result<Vec<ReadBack>>;

    /// Finds the arrays of this kind on the machine whose names begin with `prefix`: leftovers of a
    /// crash, with their members' devices, ready for [`ArraySystem::destroy`].
    ///
    /// # Errors
    /// When the machine cannot be queried.
    fn find(&self, target: &dyn Target, prefix: &str) -> Result<Vec<Built>>;
}

/// The contents of some sources, read one after the other; `None` for those that do not exist.
///
/// # Errors
/// When the machine cannot be reached or a command cannot be started.
pub fn read_all(
    target: &dyn Target,
    sources: &[Watched],
) -> Result<Vec<Option<String>>, TargetError> {
    sources
        .iter()
        .map(|source| match source {
            Watched::File(path) => match target.read(path) {
                Ok(text) => Ok(Some(text)),
                Err(error) if error.is_missing() => Ok(None),
                Err(error) => Err(error),
            },
            Watched::Command(command) => {
                let output = target.output(command)?;
                Ok((output.code == Some(0)).then_some(output.stdout))
            }
        })
        .collect()
}
