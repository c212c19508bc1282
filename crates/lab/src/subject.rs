//! Subjects: the arrays, disks and pools that are measured, with all their settings.

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

/// The kind of a subject, which decides how it is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SubjectKind {
    /// One disk without an array.
    Disk,
    /// A mirror of the array core.
    Mirror,
    /// Linux md of any level by the array core, with its metadata: the `[build.md]` table has
    /// level, layout, chunk and bitmap, for the model and for real systems.
    Array,
    /// A ZFS pool of one mirror, with a volume on it.
    ZfsMirror,
    /// A subject that only a real system builds, by its `[build]` table.
    System,
}

/// The schedulers of Linux for a disk, named as in `/sys/block/DISK/queue/scheduler`.
pub const SCHEDULERS: [&str; 4] = ["none", "mq-deadline", "kyber", "bfq"];

/// The member that is read to rebuild another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SyncSource {
    /// The lowest member that is in sync.
    LowestInSync,
    /// The member that the read policy chooses, as for any read.
    Balanced,
}

/// The mechanism that keeps writes and a rebuild apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WriteBarrier {
    /// A write and a sync request wait for each other where they overlap.
    Overlap,
    /// The windows around the rebuild's position of md in Linux 3.13 to 4.10.
    MdWindow,
    /// The units of 64 MiB of md in Linux 4.11 and later.
    MdBuckets,
    /// The barrier of md's RAID 10: the rebuild and all other requests, reads included, take turns.
    MdArray,
}

/// The writes that a member gets while it is being rebuilt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecoveringWrites {
    /// All writes, wherever the rebuild is.
    Everywhere,
    /// Only writes below the position that the rebuild has reached.
    BelowPosition,
}

/// The part of a member that may be read while it is being rebuilt.
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

/// The rule for taking a checkpoint: the first of the two conditions counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checkpoint {
    /// The part of the array after which one is taken: 16 means a sixteenth.
    pub parts: u32,
    /// The time since the last one after which one is taken.
    pub interval: Nanos,
}

/// The throttle of a rebuild. Limits are bytes per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Throttle {
    /// Nothing holds the rebuild back but the disks.
    None,
    /// An even pace, slower while others use the members.
    Rate {
        /// The rate while others use them; may equal the maximum.
        minimum: Bytes,
        /// The bytes per second of each member while nothing else uses them.
        maximum: Bytes,
    },
    /// md until Linux 4.1 (drivers/md/md.c, `md_do_sync`): above the minimum and while others use
    /// the members, or above the maximum, the rebuild sleeps 500 ms and checks again.
    MdSleep {
        /// The rate below which the throttle never slows the rebuild.
        minimum: Bytes,
        /// The highest rate that the throttle allows.
        maximum: Bytes,
    },
    /// md since Linux 4.2: above the maximum as before; above the minimum and while others use the
    /// members the rebuild waits until no sync request is in flight.
    MdDrain {
        /// The rate below which the throttle never slows the rebuild.
        minimum: Bytes,
        /// The highest rate that the throttle allows.
        maximum: Bytes,
    },
}

/// The way in which a member is rebuilt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recovery {
    /// The size of one command to a disk.
    pub block: Bytes,
    /// The largest number of commands in flight.
    pub depth: u32,
    /// The size up to which blocks that start together are merged into one command.
    pub merged: Option<Bytes>,
    /// The period of the kernel's timer; `None` for 4 ms.
    pub tick: Option<Nanos>,
    /// The member that is read for the rebuild.
    pub source: SyncSource,
    /// The mechanism that keeps writes and the rebuild apart.
    pub barrier: WriteBarrier,
    /// The writes that the member gets meanwhile.
    pub recovering_writes: RecoveringWrites,
    /// The throttle while others use the members.
    pub throttle: Throttle,
    /// The part of the member that may be read meanwhile.
    pub read_recovered: ReadRecovered,
    /// The rule for checkpoints, if any are taken.
    pub checkpoint: Option<Checkpoint>,
}

/// The kind of metadata, which decides where the array's data are on a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum Metadata {
    /// No metadata: the member's bytes are the array's.
    #[serde(rename = "none")]
    None,
    /// md 0.90: 64 KiB, at a multiple of 64 KiB near the end.
    #[serde(rename = "0.90")]
    Md0_90,
    /// md 1.2: near the start, before the data.
    #[serde(rename = "1.2")]
    Md1_2,
    /// gmirror: in the last sector.
    #[serde(rename = "gmirror")]
    Gmirror,
    /// gflash: 4 022 272 bytes, as observed.
    #[serde(rename = "gflash")]
    Gflash,
}

/// The volume of a ZFS subject, with the settings that shape its speed.
#[derive(Debug, Clone, PartialEq)]
pub struct Zfs {
    /// The release: `freebsd-10.1`, `zol-0.6.4` or `openzfs-2.3`.
    pub release: ZfsRelease,
    /// The size of the volume.
    pub volume_size: Bytes,
    /// The size of one of its blocks.
    pub volume_block: Bytes,
    /// The exponent of the pool's sector size, `1 << ashift` bytes.
    pub ashift: u32,
    /// The memory for the cache of data and metadata.
    pub cache: Bytes,
    /// The checksum of each block.
    pub checksum: ZfsChecksum,
    /// The compression of each block.
    pub compression: ZfsCompression,
    /// The factor by which the data compress, from 1.
    pub compression_ratio: f64,
}

impl Zfs {
    /// The size of a block on a disk: compressed, in whole sectors of the pool, or uncompressed
    /// where that would save less than an eighth (`zio_compress_data`).
    #[must_use]
    // A block has at most 128 KiB, and the ratio is at least 1.
    pub fn placed_block(&self) -> Bytes {
        let block = self.volume_block.0;
        let small = (block as f64 / self.compression_ratio).ceil() as u64;
        let placed = small.next_multiple_of(1 << self.ashift);
        let saves = placed <= block - block / 8;
        Bytes(if saves { placed } else { block })
    }
}

/// The checksum that ZFS keeps of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ZfsChecksum {
    /// Blocks have no checksum.
    #[default]
    Off,
    /// Fletcher's sums, the default.
    Fletcher4,
    /// SHA-256 of each block.
    Sha256,
}

/// The compression of blocks in ZFS: `off`, `lz4`, `zstd`, which is level 3, or
/// `zstd-1` to `zstd-19`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(try_from = "String")]
pub enum ZfsCompression {
    /// Blocks are not compressed.
    #[default]
    Off,
    /// LZ4, the default of OpenZFS where compression is on.
    Lz4,
    /// Zstandard of this level.
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

/// The release whose limits and constants a ZFS subject has.
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

/// A subject of measurements: a disk, an array or a pool, with all its settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Subject {
    /// The name, `md`, unique in a suite.
    pub name: String,
    /// The name of the subject in tables, for people.
    pub title: String,
    /// A few sentences on the subject and the source of its settings.
    pub description: String,
    /// The kind of subject.
    pub kind: SubjectKind,
    /// The host it is modelled on; `None` where only a real system builds it.
    pub host: Option<Host>,
    /// The policy that chooses the member for a read: the name of one of [`raidlab_policies::ALL`],
    /// with its parameter if any; `None` for a single disk and for arrays without copies.
    pub read_policy: Option<String>,
    /// Where the array's data begins on each member.
    pub data_offset: Bytes,
    /// The kind of metadata on the member.
    pub metadata: Metadata,
    /// How a member is rebuilt; `None` for a single disk, for arrays without
    /// redundancy, and for ZFS, whose release decides it.
    pub recovery: Option<Recovery>,
    /// The settings that only ZFS has; `None` for other subjects.
    pub zfs: Option<Zfs>,
    /// The specification by which a real system builds it; `None` where only the model does.
    pub build: Option<ArraySpec>,
    /// The members among the suite's disks, slot by slot; `None` for all of them, the first one for
    /// a single disk. Set by a suite.
    pub members: Option<Vec<u16>>,
    /// The members that are removed once the array is in sync, before the first step. Set
    /// by a suite.
    pub removed: Vec<u16>,
    /// The Linux scheduler of each member's queue, named as in `/sys/block/DISK/queue/scheduler`;
    /// `None` for the host's default. Set by a suite.
    pub scheduler: Option<String>,
    /// The read latency for which the members' host throttles background writes, as in
    /// `/sys/block/DISK/queue/wbt_lat_usec`; 0 for never; `None` for the host's default. Set
    /// by a suite.
    pub write_throttling: Option<Nanos>,
    /// The positions of the suite's steps that are for this subject; `None` for all. Set
    /// by a suite.
    pub steps: Option<BTreeSet<usize>>,
    /// The file systems that the subject is measured with instead of the suite's. Set by a suite.
    pub filesystems: Option<Vec<Option<FileSystemSpec>>>,
    /// Every setting of the file with its source, and those of the host.
    pub settings: Vec<Setting>,
}

/// Whether a setting is one of the members' queues that a suite, and not a host, has set.
fn is_of_queue(setting: &Setting) -> bool {
    let of_queue = ["scheduler", "write_throttling"].contains(&setting.name.as_str());
    of_queue && setting.scope.starts_with("subject ")
}

impl Subject {
    /// Loads a built-in subject by name, or a file by path: anything with a `/` or ending in
    /// `.toml` is a path.
    ///
    /// # Errors
    /// When there is no such subject or its file is wrong.
    pub fn load(name_or_path: &str) -> Result<Self, LoadError> {
        Self::load_from(&Files::default(), name_or_path)
    }

    /// Loads a subject from these files.
    ///
    /// # Errors
    /// As [`Subject::load`].
    pub fn load_from(files: &Files, name_or_path: &str) -> Result<Self, LoadError> {
        let document = catalogue::find(files, Kind::Subject, name_or_path)?;
        Ok(Self::read(&document, &catalogue::hosts_of(files)?)?)
    }

    /// Loads a subject with other build settings: `settings` replace those of the one system of its
    /// `[build]` table. `suite`: the suite that sets them.
    ///
    /// # Errors
    /// As [`Subject::load`], and when its `[build]` table has no system or several.
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

    /// Whether the suite's step of this position is for the subject.
    #[must_use]
    pub fn does(&self, step: usize) -> bool {
        self.steps.as_ref().is_none_or(|own| own.contains(&step))
    }

    /// The target that its file names, where raidlab has none of its own: an export of a server.
    #[must_use]
    pub fn own_target(&self) -> Option<&str> {
        match &self.build {
            Some(ArraySpec::Nbd(export)) => Some(&export.uri),
            _ => None,
        }
    }

    /// Moves the subject's model to another host. Subjects that only real systems build
    /// are left unchanged.
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

    /// The settings that have a meaning on modelled disks, or those that have one on real disks,
    /// which are the build settings. Those that this suite makes are always among them, so that a
    /// bench can refuse one without a meaning there.
    pub(crate) fn settings_on(&self, modelled: bool, suite: &str) -> Vec<Setting> {
        // A modelled array is built by the same settings as a real one.
        let both = modelled && self.kind == SubjectKind::Array;
        let of_suite = format!("suite {suite}");
        let means_something = |setting: &&Setting| {
            let of_build = setting.name.starts_with("build.");
            both || of_build != modelled || is_of_queue(setting) || setting.source == of_suite
        };
        self.settings
            .iter()
            .filter(means_something)
            .cloned()
            .collect()
    }

    /// The settings of its members' queues that a suite makes.
    pub fn queue_settings(&self) -> impl Iterator<Item = &Setting> {
        self.settings.iter().filter(|setting| is_of_queue(setting))
    }

    /// The number of members where a suite has so many `disks`.
    #[must_use]
    pub(crate) fn member_count(&self, disks: usize) -> usize {
        match (&self.members, self.kind) {
            (Some(members), _) => members.len(),
            (None, SubjectKind::Disk) => disks.min(1),
            (None, _) => disks,
        }
    }

    /// Chooses the subject's members among all disks, slot by slot; missing disks are left out.
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

    /// The capacity of the array with members of `member` bytes. `None` when a member is too small
    /// to hold data, and for [`SubjectKind::Array`], whose capacity depends on its metadata and is
    /// computed by the bench.
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
