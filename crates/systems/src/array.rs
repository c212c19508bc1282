//! What every kind of array can be asked for.

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

/// What runs on the machine, as far as arrays differ by it.
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
    /// Its device node: `/dev/sdb`, `/dev/loop3`, `/dev/ada2`.
    pub device: String,
    /// The size of the whole device.
    pub size: Bytes,
    /// For a loop device the file behind it.
    pub backing: Option<String>,
    /// Whether it was taken out and not put back: the array must not find it again by
    /// itself, where its device is still there.
    pub away: bool,
}

impl Member {
    /// One that was found as a member of an array.
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
    /// Unique on the machine, made of letters, digits and `-`, at most 15
    /// characters: `raidlab0`. Pools, volume groups and arrays get this name.
    pub name: String,
    /// The members, slot by slot.
    pub members: Vec<Member>,
    /// Where data sets and file systems of the array itself (ZFS, btrfs) are
    /// mounted: an existing or creatable folder.
    pub folder: String,
}

impl Built {
    /// A member was taken out, or put back.
    pub fn set_away(&mut self, slot: usize, away: bool) {
        if let Some(member) = self.members.get_mut(slot) {
            member.away = away;
        }
    }

    /// The members that are there beside this one.
    fn others(&self, slot: usize) -> impl Iterator<Item = &Member> {
        let others = self.members.iter().enumerate();
        others
            .filter(move |(other, member)| *other != slot && !member.away)
            .map(|(_, member)| member)
    }

    /// Whether a device is one of the members.
    fn has(&self, device: &str) -> bool {
        self.members.iter().any(|member| member.device == device)
    }

    /// One that was found on a machine, mounted nowhere.
    pub(crate) fn found(name: impl Into<String>, members: Vec<Member>) -> Self {
        Self {
            name: name.into(),
            members,
            folder: String::new(),
        }
    }
}

/// How the finished array is used.
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

/// A program or kernel module without which nothing goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Need {
    /// A program that must be found.
    Program {
        /// The name that it is called by: `mdadm`.
        name: &'static str,
        /// How Debian installs it: `apt-get install mdadm`; empty where it is
        /// part of the system.
        apt: &'static str,
        /// How FreeBSD installs it: `pkg install fio`; empty where it is part
        /// of the system.
        pkg: &'static str,
    },
    /// A file system or driver that the kernel must have or be able to load:
    /// the module's name, `raid456`.
    Module(&'static str),
}

impl Need {
    /// A program of Linux, or one that is a part of FreeBSD.
    pub(crate) const fn program(name: &'static str, apt: &'static str) -> Self {
        Self::Program { name, apt, pkg: "" }
    }
}

/// The whole array's health.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// Every member is in place and up to date.
    Optimal,
    /// Redundancy is missing, data is not.
    Degraded,
    /// Data cannot be had.
    Failed,
}

/// One member's state, in mdadm's words as far as they reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberState {
    /// The member's content is up to date.
    InSync,
    /// The member is present, and its content is being rebuilt.
    Recovering,
    /// Present, idle until it is needed.
    Spare,
    /// The member is present, and was given up after errors.
    Faulty,
    /// The slot has no member, or one that is gone.
    Missing,
}

/// What kind of background copying goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncKind {
    /// All members are made equal after creation or a crash.
    Resync,
    /// A member is rebuilt (ZFS: resilver; gmirror: synchronizing).
    Recovery,
    /// Copies are compared (scrub).
    Check,
    /// The layout changes.
    Reshape,
}

/// Background copying that goes on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SyncStatus {
    /// The kind of background copying.
    pub kind: SyncKind,
    /// How far it is, 0 to 100; `None` where it waits to begin.
    pub percent: Option<f64>,
    /// What 100 percent are on each member, where the system tells.
    pub member: Option<Bytes>,
}

impl SyncStatus {
    /// What is told where the members' size is not.
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
    /// What the system says of the array as a whole.
    pub health: Health,
    /// The state of each member, in the order of the slots.
    pub members: Vec<MemberState>,
    /// What is copied in the background; `None` when nothing is.
    pub sync: Option<SyncStatus>,
}

/// What a cache on disks of its own, before an array, holds and has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheState {
    /// What was written to it and is not on the disks behind it yet; bcache tells
    /// it with two digits or a little more.
    pub dirty: Bytes,
    /// What it has answered since it was attached; `None` where the system does
    /// not tell at once.
    pub counts: Option<CacheCounts>,
}

/// What a cache has done since it was attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheCounts {
    /// Reads of what the cache had.
    pub read_hits: u64,
    /// Reads that it did not have.
    pub read_misses: u64,
    /// Writes to what the cache had.
    pub write_hits: u64,
    /// Writes to what it did not have.
    pub write_misses: u64,
    /// Blocks that it has taken in.
    pub promotions: u64,
    /// Blocks that it has given up.
    pub demotions: u64,
}

/// How a cache is made to write back all that is dirty in it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WriteBack {
    /// The commands that begin it; none where the cache does so whenever it has
    /// nothing else to do.
    pub begin: Vec<Command>,
    /// Those after which the cache goes on as before.
    pub end: Vec<Command>,
}

/// A setting as it is in force, beside what was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadBack {
    /// The spec's own name for it: `chunk`, `bitmap`, `primarycache`.
    pub name: String,
    /// What the spec asked for; `None` where it left the system's default.
    pub asked: Option<String>,
    /// The value that the system has in force, with its unit.
    pub found: String,
    /// Whether what was asked for is in force; true where nothing was asked.
    pub applied: bool,
    /// Where it was read: `/sys/block/md0/md/chunk_size`, `zfs get`.
    pub source: String,
}

impl ReadBack {
    /// What was found counts as applied where just that was asked for, or nothing was.
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

/// A kind of array of some operating system, with its settings decided: how it is built,
/// used and taken down. What it is, which members it has and how it fares are
/// [`Described`], [`ChangeMembers`] and [`ReadState`].
pub trait ArraySystem: Described + ChangeMembers + ReadState + Send + Sync {
    /// The operating systems it runs on; most run on Linux alone.
    fn runs_on(&self) -> &'static [OperatingSystem] {
        &[OperatingSystem::Linux]
    }

    /// What must be there before anything can be built.
    fn needs(&self) -> Vec<Need>;

    /// Whether its settings go together and the system takes them, whatever its members: what
    /// a file is told as it is read, on every bench.
    ///
    /// # Errors
    /// The first setting that the system does not take so.
    fn check_settings(&self) -> Result<()> {
        Ok(())
    }

    /// Whether so many members of such sizes can be built into it.
    ///
    /// # Errors
    /// Too few or too many members, and as [`ArraySystem::check_settings`].
    fn check(&self, members: &[Member]) -> Result<()>;

    /// The bytes it will hold, roughly: what sizes of jobs are checked
    /// against before it is built.
    fn capacity(&self, members: &[Member]) -> Bytes;

    /// The commands that build it, in order; the first ones wipe old
    /// signatures of the members. They never ask questions.
    ///
    /// # Errors
    /// As [`ArraySystem::check`].
    fn create(&self, array: &Built) -> Result<Vec<Command>>;

    /// Where it is used once built.
    fn access(&self, array: &Built) -> Access;

    /// Paths that are there as long as the array is. One that is there before it is built
    /// belongs to something else, which must not be taken down in its place.
    fn own_paths(&self, array: &Built) -> Vec<String> {
        match self.access(array) {
            Access::Device(device) if !array.has(&device) => vec![device],
            Access::Device(_) | Access::Folder(_) | Access::Export(_) => Vec::new(),
        }
    }

    /// The commands that begin a check: all that is there more than once is read and
    /// compared, and nothing changed.
    ///
    /// # Errors
    /// Where the system has no such verb, or none that is known here.
    fn check_all(&self, _array: &Built) -> Result<Vec<Command>> {
        Err(self.lacks("begin a check", "only md is known to"))
    }

    /// How its cache is made to write back all that is dirty in it; `None` where
    /// it has no cache.
    fn write_back(&self, _array: &Built) -> Option<WriteBack> {
        None
    }

    /// The command that stops an array of this kind which the kernel has under another
    /// name, such as a system gives to what it assembles by itself when it starts; `None`
    /// for any other device, and where the name is always ours.
    fn stop(&self, _device: &str) -> Option<Command> {
        None
    }

    /// The commands that take it down and leave the members blank; each may
    /// fail where a crash has left only a part of it, and the rest goes on.
    fn destroy(&self, array: &Built) -> Vec<Command>;
}

/// How the members of an array change.
pub trait ChangeMembers: Described {
    /// The commands that make a member count as failed.
    ///
    /// # Errors
    /// Where the system has no such verb.
    fn fail(&self, _array: &Built, _slot: usize) -> Result<Vec<Command>> {
        Err(self.lacks(
            "make a member fail",
            "it has no such verb: remove the member",
        ))
    }

    /// The commands that take a member out; it is failed first where the
    /// system wants that.
    ///
    /// # Errors
    /// Where the array cannot live without it.
    fn remove(&self, array: &Built, slot: usize) -> Result<Vec<Command>>;

    /// The commands that put a member (back) into its slot as if it were new:
    /// everything is copied onto it.
    ///
    /// # Errors
    /// Where the system has no such verb.
    fn add(&self, array: &Built, slot: usize) -> Result<Vec<Command>>;

    /// The commands that put a member back which was only away for a while:
    /// the system copies what it missed, where it knows that (bitmap, ZFS).
    ///
    /// # Errors
    /// Where the system has no such verb.
    fn re_add(&self, array: &Built, slot: usize) -> Result<Vec<Command>>;
}

/// How an array fares, read without disturbing its disks.
pub trait ReadState {
    /// What to read for its state: files where there are any, else the
    /// cheapest command. Reading it each second must not disturb the disks.
    fn sources(&self, array: &Built) -> Vec<Watched>;

    /// The state out of what [`ReadState::sources`] gave, in their order.
    ///
    /// # Errors
    /// When it is not understood or there is no such array.
    fn interpret(&self, array: &Built, contents: &[Option<String>]) -> Result<ArrayStatus>;

    /// The state now.
    ///
    /// # Errors
    /// When it cannot be read or understood.
    fn status(&self, target: &dyn Target, array: &Built) -> Result<ArrayStatus> {
        let contents = read_all(target, &self.sources(array))?;
        self.interpret(array, &contents)
    }

    /// What its cache holds and has done; `None` where it has none.
    ///
    /// # Errors
    /// When it cannot be read or understood.
    fn cache(&self, _target: &dyn Target, _array: &Built) -> Result<Option<CacheState>> {
        Ok(None)
    }

    /// Every setting that matters to a measurement, as it is in force.
    ///
    /// # Errors
    /// When it cannot be read.
    fn settings(&self, target: &dyn Target, array: &Built) -> Result<Vec<ReadBack>>;

    /// The names of arrays on the machine, of this kind, that begin with
    /// `prefix`: what a crash left, with their members' devices, ready for
    /// [`ArraySystem::destroy`].
    ///
    /// # Errors
    /// When the machine cannot be asked.
    fn find(&self, target: &dyn Target, prefix: &str) -> Result<Vec<Built>>;
}

/// The contents of some sources, read one after the other; `None` for those
/// that are not there.
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
