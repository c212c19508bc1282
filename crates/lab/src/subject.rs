//! Subjects: what is measured, an array with all its settings.

mod reader;
mod redundancy;

use crate::catalogue::{self, Kind, LoadError};
use crate::files::Files;
use crate::host::Host;
use raidlab_store::Setting;
use raidlab_systems::{ArraySpec, FileSystemSpec};
use raidlab_units::{Bytes, Nanos};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::fmt;

/// What kind of thing a subject is: it decides who builds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SubjectKind {
    /// One disk, no array.
    Disk,
    /// A mirror of the array core.
    Mirror,
    /// Linux md of any level by the array core, with the metadata that it keeps:
    /// its `[build.md]` table says level, layout, chunk and bitmap, for the model
    /// and for real systems.
    Array,
    /// A ZFS pool of one mirror, with a volume on it.
    ZfsMirror,
    /// Something that only a real system builds, as its `[build]` table says.
    System,
}

/// The schedulers that Linux has for a disk, as `/sys/block/DISK/queue/scheduler` names them.
pub const SCHEDULERS: [&str; 4] = ["none", "mq-deadline", "kyber", "bfq"];

/// Who is read to rebuild a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SyncSource {
    /// The lowest member that is in sync.
    LowestInSync,
    /// Whoever the read policy chooses, as for any read.
    Balanced,
}

/// What keeps writes and a rebuild apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WriteBarrier {
    /// A write and a sync request wait for each other where they overlap.
    Overlap,
    /// md of Linux 3.13 to 4.10: windows around the rebuild's position.
    MdWindow,
    /// md of Linux 4.11 and later: units of 64 MiB.
    MdBuckets,
    /// md's RAID 10: the rebuild and all else, reads included, take turns.
    MdArray,
}

/// Which writes a member gets that is being rebuilt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecoveringWrites {
    /// All writes, wherever the rebuild is.
    Everywhere,
    /// Only writes below the position that the rebuild has reached.
    BelowPosition,
}

/// Which part of a member that is being rebuilt may be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReadRecovered {
    /// Nothing of the member is read before its rebuild has ended.
    AtEnd,
    /// Everything up to the last checkpoint.
    BelowCheckpoint,
    /// Everything that has been rebuilt so far is read.
    BelowPosition,
}

/// When a checkpoint is taken: whichever comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checkpoint {
    /// After this part of the array: 16 means a sixteenth.
    pub parts: u32,
    /// After this much time since the last one.
    pub interval: Nanos,
}

/// What holds a rebuild back. Limits are bytes per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Throttle {
    /// Nothing holds the rebuild back but the disks.
    None,
    /// An even pace, slower while others use the members.
    Rate {
        /// The pace while others use them; may equal the maximum.
        minimum: Bytes,
        /// The bytes per second of each member while nobody else uses them.
        maximum: Bytes,
    },
    /// md until Linux 4.1 (drivers/md/md.c, `md_do_sync`): above the minimum
    /// and while others use the members, or above the maximum, it sleeps
    /// 500 ms and looks again.
    MdSleep {
        /// Never slower by the throttle's doing.
        minimum: Bytes,
        /// The throttle lets no more be copied in a second.
        maximum: Bytes,
    },
    /// md since Linux 4.2: as before above the maximum; above the minimum and
    /// while others use the members it waits until no sync request is in
    /// flight.
    MdDrain {
        /// Never slower by the throttle's doing.
        minimum: Bytes,
        /// The throttle lets no more be copied in a second.
        maximum: Bytes,
    },
}

/// How a member is rebuilt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recovery {
    /// Bytes of one command to a disk.
    pub block: Bytes,
    /// Commands in flight at most.
    pub depth: u32,
    /// Blocks that start together go as one command of up to this size.
    pub merged: Option<Bytes>,
    /// A tick of the kernel's timer; `None`: 4 ms.
    pub tick: Option<Nanos>,
    /// Which member is read for the rebuild.
    pub source: SyncSource,
    /// What keeps writes and the rebuild apart.
    pub barrier: WriteBarrier,
    /// Which writes the member gets meanwhile.
    pub recovering_writes: RecoveringWrites,
    /// What holds the rebuild back while others use the members.
    pub throttle: Throttle,
    /// What of the member may be read meanwhile.
    pub read_recovered: ReadRecovered,
    /// When checkpoints are taken, if ever.
    pub checkpoint: Option<Checkpoint>,
}

/// Where the array's bytes lie on a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum Metadata {
    /// No metadata: the member's bytes are the array's.
    #[serde(rename = "none")]
    None,
    /// md 0.90: 64 KiB at a multiple of 64 KiB near the end.
    #[serde(rename = "0.90")]
    Md0_90,
    /// md 1.2: near the start, before the data.
    #[serde(rename = "1.2")]
    Md1_2,
    /// gmirror: the last sector.
    #[serde(rename = "gmirror")]
    Gmirror,
    /// gflash: 4 022 272 bytes, observed.
    #[serde(rename = "gflash")]
    Gflash,
}

/// The volume of a ZFS subject and what shapes its speed.
#[derive(Debug, Clone, PartialEq)]
pub struct Zfs {
    /// `freebsd-10.1`, `zol-0.6.4` or `openzfs-2.3`.
    pub release: ZfsRelease,
    /// Size of the volume.
    pub volume_size: Bytes,
    /// Bytes of one of its blocks.
    pub volume_block: Bytes,
    /// Sectors of the pool are `1 << ashift` bytes.
    pub ashift: u32,
    /// Memory for the cache of data and metadata.
    pub cache: Bytes,
    /// What each block is checked by.
    pub checksum: ZfsChecksum,
    /// What each block is compressed by.
    pub compression: ZfsCompression,
    /// By how much the data compress, from 1.
    pub compression_ratio: f64,
}

impl Zfs {
    /// What a block takes on a disk: compressed, in whole sectors of the pool, or as it is
    /// where that would save less than an eighth (`zio_compress_data`).
    #[must_use]
    // A block of 128 KiB at most, and a ratio from 1.
    pub fn placed_block(&self) -> Bytes {
        let block = self.volume_block.0;
        let small = (block as f64 / self.compression_ratio).ceil() as u64;
        let placed = small.next_multiple_of(1 << self.ashift);
        let saves = placed <= block - block / 8;
        Bytes(if saves { placed } else { block })
    }
}

/// Which checksums ZFS keeps of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ZfsChecksum {
    /// Blocks have no checksum.
    #[default]
    Off,
    /// Fletcher's sums, its default.
    Fletcher4,
    /// SHA-256 of each block.
    Sha256,
}

/// How ZFS compresses blocks: `off`, `lz4`, `zstd`, which is level 3, or `zstd-1` to
/// `zstd-19`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(try_from = "String")]
pub enum ZfsCompression {
    /// Blocks are not compressed.
    #[default]
    Off,
    /// LZ4, the default of OpenZFS where compression is on.
    Lz4,
    /// Zstandard of a level.
    Zstd(u8),
}

impl fmt::Display for ZfsCompression {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => to.write_str("off"),
            Self::Lz4 => to.write_str("lz4"),
            Self::Zstd(level) => write!(to, "zstd-{level}"),
        }
    }
}

impl TryFrom<String> for ZfsCompression {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        let level = name.strip_prefix("zstd-").and_then(|it| it.parse().ok());
        match (name.as_str(), level) {
            ("off", _) => Ok(Self::Off),
            ("lz4", _) => Ok(Self::Lz4),
            ("zstd", _) => Ok(Self::Zstd(3)),
            (_, Some(level @ 1..=19)) => Ok(Self::Zstd(level)),
            _ => Err(format!(
                "`{name}` is none of off, lz4, zstd, and zstd-1 to zstd-19"
            )),
        }
    }
}

/// Whose limits and constants a ZFS subject has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum ZfsRelease {
    /// FreeBSD 10.1, February 2015.
    #[serde(rename = "freebsd-10.1")]
    Freebsd10_1,
    /// ZFS on Linux 0.6.4, April 2015.
    #[serde(rename = "zol-0.6.4")]
    Zol0_6_4,
    /// OpenZFS 2.3 on Linux, 2025.
    #[serde(rename = "openzfs-2.3")]
    OpenZfs2_3,
}

/// What is measured: a disk, an array or a pool, with all its settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Subject {
    /// `md`; unique in a suite.
    pub name: String,
    /// The name of the subject in tables, for people.
    pub title: String,
    /// A few sentences on what the subject is and where its settings are from.
    pub description: String,
    /// What kind of thing it is.
    pub kind: SubjectKind,
    /// The host it is modelled on; `None` where only a real system builds it.
    pub host: Option<Host>,
    /// Who answers a read: the name of one of [`raidlab_policies::ALL`], with its parameter
    /// if any; `None` for a single disk and for arrays without copies.
    pub read_policy: Option<String>,
    /// Where the array's data begins on each member.
    pub data_offset: Bytes,
    /// What else is on the member.
    pub metadata: Metadata,
    /// How a member is rebuilt; `None` for a single disk, for arrays without
    /// redundancy, and for ZFS, whose release decides it.
    pub recovery: Option<Recovery>,
    /// What only ZFS has; `None` of all others.
    pub zfs: Option<Zfs>,
    /// How a real system builds it; `None` where only the model does.
    pub build: Option<ArraySpec>,
    /// Which of the suite's disks are its members, slot by slot; `None`: all
    /// of them, the first one for a single disk. A suite says it.
    pub members: Option<Vec<u16>>,
    /// Members that are taken out once the array is in sync, before the first
    /// step. A suite says it.
    pub removed: Vec<u16>,
    /// Which scheduler of Linux its members' host has before each of them, as
    /// `/sys/block/DISK/queue/scheduler` names it; `None`: the one that it has of itself. A
    /// suite says it.
    pub scheduler: Option<String>,
    /// For which latency of reads its members' host holds back writes that nobody waits for, as
    /// `/sys/block/DISK/queue/wbt_lat_usec` has it; 0: never; `None`: what it has of itself. A
    /// suite says it.
    pub write_throttling: Option<Nanos>,
    /// The places of the suite's steps that are for it; `None`: all are. A suite says
    /// it.
    pub steps: Option<BTreeSet<usize>>,
    /// The file systems that it is measured with instead of the suite's. A
    /// suite says it.
    pub filesystems: Option<Vec<Option<FileSystemSpec>>>,
    /// Every setting of the file with its source, and those of the host.
    pub settings: Vec<Setting>,
}

/// Whether a suite has set it of the members' queues, and not a host.
fn is_of_queue(setting: &Setting) -> bool {
    let of_queue = ["scheduler", "write_throttling"].contains(&setting.name.as_str());
    of_queue && setting.scope.starts_with("subject ")
}

impl Subject {
    /// A built-in subject by name, or a file by path: anything with a `/` or
    /// ending in `.toml` is a path.
    ///
    /// # Errors
    /// When there is no such subject or its file is wrong.
    pub fn load(name_or_path: &str) -> Result<Self, LoadError> {
        Self::load_from(&Files::default(), name_or_path)
    }

    /// The same, of these files.
    ///
    /// # Errors
    /// As [`Subject::load`].
    pub fn load_from(files: &Files, name_or_path: &str) -> Result<Self, LoadError> {
        let document = catalogue::find(files, Kind::Subject, name_or_path)?;
        Ok(Self::read(&document, &catalogue::hosts_of(files)?)?)
    }

    /// The same, built otherwise: `settings` take the place of those of its `[build]`
    /// table's one system. `suite`: the suite that says so.
    ///
    /// # Errors
    /// As [`Subject::load`], and when it is built in no or in several ways.
    pub(crate) fn load_built(
        files: &Files,
        name_or_path: &str,
        settings: toml::Table,
        suite: &str,
    ) -> Result<Self, LoadError> {
        let document = catalogue::find(files, Kind::Subject, name_or_path)?;
        let document = reader::built_otherwise(&document, settings, suite)?;
        Ok(Self::read(&document, &catalogue::hosts_of(files)?)?)
    }

    /// Whether the suite's step of this place is for it.
    #[must_use]
    pub fn does(&self, step: usize) -> bool {
        self.steps.as_ref().is_none_or(|own| own.contains(&step))
    }

    /// The target that its file names, where raidlab gives none: an export of a server.
    #[must_use]
    pub fn own_target(&self) -> Option<&str> {
        match &self.build {
            Some(ArraySpec::Nbd(export)) => Some(&export.uri),
            _ => None,
        }
    }

    /// Models it on another host. What only real systems build stays as it is.
    pub fn move_to(&mut self, host: &Host) {
        let Some(own) = &mut self.host else {
            return;
        };
        let scope = format!("host {}", own.name);
        own.clone_from(host);
        self.settings.retain(|setting| setting.scope != scope);
        for setting in &mut self.settings {
            if setting.name == "host" {
                setting.value.clone_from(&host.name);
                "asked for with this run".clone_into(&mut setting.source);
            }
        }
        self.settings.extend(host.settings.iter().cloned());
    }

    /// Its settings that have a meaning on modelled disks, or those that have
    /// one on real ones: what is built.
    pub(crate) fn settings_on(&self, modelled: bool) -> Vec<Setting> {
        // A modelled array is the one that is built.
        let both = modelled && self.kind == SubjectKind::Array;
        let means_something = |setting: &&Setting| {
            let of_build = setting.name.starts_with("build.");
            both || of_build != modelled || is_of_queue(setting)
        };
        self.settings
            .iter()
            .filter(means_something)
            .cloned()
            .collect()
    }

    /// What a suite sets of its members' queues.
    pub fn queue_settings(&self) -> impl Iterator<Item = &Setting> {
        self.settings.iter().filter(|setting| is_of_queue(setting))
    }

    /// How many members it has where a suite has so many `disks`.
    #[must_use]
    pub(crate) fn member_count(&self, disks: usize) -> usize {
        match (&self.members, self.kind) {
            (Some(members), _) => members.len(),
            (None, SubjectKind::Disk) => disks.min(1),
            (None, _) => disks,
        }
    }

    /// Its members out of all disks, slot by slot; those that are not there
    /// are left out.
    #[must_use]
    pub fn choose<T: Clone>(&self, disks: &[T]) -> Vec<T> {
        match &self.members {
            Some(members) => members
                .iter()
                .filter_map(|&member| disks.get(usize::from(member)).cloned())
                .collect(),
            None => disks[..self.member_count(disks.len())].to_vec(),
        }
    }

    /// Bytes of the array that members of `member` bytes give: what jobs may
    /// use. `None` when a member is too small to hold any, and for
    /// [`SubjectKind::Array`], whose metadata decide it: the bench knows.
    #[must_use]
    pub fn capacity(&self, member: Bytes) -> Option<Bytes> {
        const UNIT: u64 = 64 * 1024;
        if self.kind == SubjectKind::Array {
            return None;
        }
        let left = member.0.checked_sub(self.data_offset.0)?;
        let array = match self.metadata {
            Metadata::None | Metadata::Md1_2 => left,
            // Linux include/uapi/linux/raid/md_p.h, MD_NEW_SIZE_SECTORS.
            Metadata::Md0_90 => (left - left % UNIT).checked_sub(UNIT)?,
            Metadata::Gmirror => left.checked_sub(512)?,
            Metadata::Gflash => left.checked_sub(4_022_272)?,
        };
        match &self.zfs {
            Some(zfs) if zfs.volume_size.0 <= array => Some(zfs.volume_size),
            Some(_) => None,
            None => (array > 0).then_some(Bytes(array)),
        }
    }
}

#[cfg(test)]
mod tests;
