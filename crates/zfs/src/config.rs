//! What a pool is made of, and the constants of its releases.
//!
//! Every number says where it comes from. "Log" is the published log of the
//! 2015 comparison (geomflash/geomflash on GitHub,
//! `test_raid1/test_raid1_zvol.log`): FreeBSD 10.1 on 16 GB of RAM, two
//! WD4000FYYZ, a 3 TiB zvol with 8 KiB blocks. Some of the log's lines are
//! not throughput figures but facts about the system (`iostat` totals, fio's
//! `cpu` lines); they are used here, throughput figures only where it says
//! "fitted".

mod releases;

use raidlab_units::{Bytes, Nanos, Sectors};

/// One disk of the mirror.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemberConfig {
    /// The disk's size, in sectors of 512 bytes.
    pub size: Sectors,
    /// Whether it seeks: decides the penalties of child selection.
    pub rotational: bool,
}

/// How many commands of one class a leaf's queue hands to the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClassLimits {
    /// Below this many, the class goes first.
    pub min_active: u32,
    /// Never more than this many.
    pub max_active: u32,
}

/// The leaf queue's settings (`vdev_queue.c`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueConfig {
    /// Reads that somebody waits for.
    pub sync_read: ClassLimits,
    /// Writes that somebody waits for (log, uberblocks).
    pub sync_write: ClassLimits,
    /// Reads that nobody waits for yet: prefetch.
    pub async_read: ClassLimits,
    /// Transaction groups and resilver writes; the maximum in force rises
    /// with the dirty data, see [`PoolConfig::async_write_ramp_percent`].
    pub async_write: ClassLimits,
    /// Scrub and resilver reads.
    pub scrub: ClassLimits,
    /// The most commands of all classes at a disk (`zfs_vdev_max_active`).
    pub total_active: u32,
    /// Neighbours are merged up to this size (`zfs_vdev_aggregation_limit`).
    pub aggregation_limit: Sectors,
    /// The same on a disk that does not turn
    /// (`zfs_vdev_aggregation_limit_non_rotating`).
    pub aggregation_limit_non_rotating: Sectors,
    /// Reads this far apart are merged, the gap read and thrown away.
    pub read_gap_limit: Sectors,
    /// How scrub and resilver give way to what somebody waits for.
    pub courtesy: Option<Courtesy>,
    /// What came within one such interval is served by address, before what came
    /// later (`VDQ_T_SHIFT`: 2^29 ns); `None`: everything by address.
    pub batch: Option<Nanos>,
    /// Whether reads that somebody waits for are merged with prefetch beside them,
    /// and likewise writes (`vq_read_offset_tree`, `vq_write_offset_tree`).
    pub merges_classes: bool,
}

impl QueueConfig {
    /// The settings before one disk (`vdev_queue_aggregate`).
    pub(crate) const fn of(mut self, member: &MemberConfig) -> Self {
        if !member.rotational {
            self.aggregation_limit = self.aggregation_limit_non_rotating;
        }
        self
    }
}

/// How scrub and resilver give way, since OpenZFS 2.1 (`vdev_queue.c`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Courtesy {
    /// So many commands for each one that somebody waited for
    /// (`zfs_vdev_nia_credit`).
    pub credit: u32,
    /// So many of their own with nobody waiting, before there may be more than
    /// the minimum at once (`zfs_vdev_nia_delay`).
    pub delay: u32,
}

/// Pool metadata of a group (space maps, the dataset's own block, the objects that
/// say where these are): each piece has three copies, and a round is on the disks
/// before the next one begins (`spa_sync_iterate_to_convergence`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolMetadata {
    /// How many rounds a group writes one after the other.
    pub rounds: u8,
    /// Pieces of metadata in each round, their copies not counted.
    pub pieces: u8,
    /// The size of one copy of a piece, in sectors of 512 bytes.
    pub sectors: Sectors,
}

/// How a read chooses among the mirror's children. Members count the commands
/// that their leaf queue has in the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildSelection {
    /// Active commands plus a penalty for a seek (FreeBSD 10.0 and later):
    /// [`raidlab_policies::ZfsFreebsd10`].
    FreeBsd10,
    /// The same, but where a child is, is where the last command ended that its queue
    /// handed to the disk, a write too, and not the last read chosen for it (OpenZFS
    /// 2.3.2 `vdev_queue_io_to_issue`, `vdev_queue_last_offset`).
    OpenZfs2,
    /// Active commands only, ties by time slice (ZFS on Linux 0.6.3, 0.6.4):
    /// [`raidlab_policies::Zol06`].
    Zol06,
}

/// How data blocks are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataReads {
    /// Neighbours ordered together choose their child together and come into its
    /// queue as one, already merged: near enough where the queue would merge them.
    Runs,
    /// Each block chooses for itself and its queue may hand it to the disk before
    /// the next one chooses (`dbuf_read`, `dbuf_prefetch_impl`, `zio_nowait`). One
    /// ordered ahead that a request comes to need before its disk has it waits
    /// among the synchronous reads from then on (`arc_read`, `zio_change_priority`).
    Blocks,
}

/// Host time that a request costs beside its disk commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HostTime {
    /// The time that each request costs beside its blocks.
    pub request: Nanos,
    /// Per volume block that it touches.
    pub block: Nanos,
}

/// Prefetch of sequential reads (`dmu_zfetch.c`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrefetchConfig {
    /// Before its rewrite of 2015: streams reach ahead by as many blocks as they
    /// are long.
    ByLength {
        /// Streams followed at once (`zfetch_max_streams`); 0 turns it off.
        streams: usize,
        /// Blocks of a stream that count and, about, that are ordered ahead of it
        /// (`zfetch_block_cap`).
        blocks: u64,
        /// A stream not used for this long may be replaced
        /// (`zfetch_min_sec_reap`).
        reap: Nanos,
    },
    /// Of OpenZFS 2.2 and 2.3: streams reach ahead by a distance that grows while
    /// blocks come too late.
    ByDistance {
        /// Streams followed at once (`zfetch_max_streams`); fewer on a volume of
        /// less than that many greatest distances.
        streams: usize,
        /// The distance doubles up to this (`zfetch_min_distance`) ...
        minimum: Bytes,
        /// ... and grows by eighths up to this (`zfetch_max_distance`).
        maximum: Bytes,
        /// Reads this far from where a stream is belong to it
        /// (`zfetch_max_reorder`).
        reorder: Bytes,
        /// Indirect blocks are ordered up to this much further ahead
        /// (`zfetch_max_idistance`).
        indirect: Bytes,
        /// Whole seconds without use after which a stream may be replaced when
        /// there are too many (`zfetch_min_sec_reap`), and goes by itself
        /// (`zfetch_max_sec_reap`).
        reap_seconds: (u64, u64),
    },
}

/// In which order a resilver reads (`dsl_scan.c`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScanOrder {
    /// Each block as the tree is walked over.
    Tree {
        /// Blocks in flight (`zfs_top_maxinflight`, per top-level vdev).
        in_flight: u32,
    },
    /// What was found, in long runs (ZFS on Linux 0.8 and later).
    Sorted {
        /// Bytes in flight (`zfs_scan_vdev_limit`).
        in_flight: Bytes,
        /// What is found and not read may take this much memory, or a twentieth of
        /// all allocated bytes where that is less (`zfs_scan_mem_lim_fact`).
        memory: Bytes,
        /// Blocks no farther apart belong together (`zfs_scan_max_ext_gap`).
        gap: Sectors,
    },
}

/// The resilver (`dsl_scan.c`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResilverConfig {
    /// In which order it reads, and how much at once.
    pub order: ScanOrder,
    /// The walk goes on at least this long in each transaction group
    /// (`zfs_resilver_min_time_ms`).
    pub min_time: Nanos,
    /// Other I/O within this time counts as load (`zfs_scan_idle`, 50 ticks).
    pub idle: Nanos,
    /// Under load the walk sleeps this long before each block
    /// (`zfs_resilver_delay`, 2 ticks).
    pub delay: Nanos,
    /// Host time of the walking thread for one block.
    pub block_time: Nanos,
}

/// A mirror pool with one volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolConfig {
    /// The disks of the one top-level mirror.
    pub members: Vec<MemberConfig>,
    /// The volume's size, in sectors of 512 bytes.
    pub volume_size: Sectors,
    /// `volblocksize`: 8 KiB by default in 2014-15 (log: 8K).
    pub volume_block: Bytes,
    /// What each of them takes on a disk where they are compressed; `None`: all of it. The
    /// cache holds them as they are without that.
    pub placed_block: Option<Bytes>,
    /// Pointers in an indirect block: 128 with the 16 KiB limit
    /// (`DN_MAX_INDBLKSHIFT` 14), 1024 with the 128 KiB limit.
    pub indirect_pointers: u64,
    /// An indirect block's size in memory (uncompressed).
    pub indirect_memory: Bytes,
    /// A compressed level-1 block's bytes on disk for each pointer in it. A
    /// pointer without checksum differs from its neighbour in a few bytes.
    pub level_1_pointer_bytes: u64,
    /// The same for level 2, whose pointers hold two addresses.
    pub level_2_pointer_bytes: u64,
    /// Copies of every metadata block (2: `copies` + 1, "ditto blocks").
    pub metadata_copies: u64,
    /// The smallest allocation is 2^ashift bytes (9: the disks report 512).
    pub ashift: u32,
    /// The most that the cache of data and indirect blocks may hold, in bytes (`arc_max`).
    pub cache: Bytes,
    /// Indirect blocks may take this much of it and, where data in the cache
    /// lies under them, more (`arc_meta_limit`, less the headers of all buffers
    /// in the cache, which count as metadata).
    pub metadata_limit: Bytes,
    /// What of it holds data still when the host's caches were dropped before a job;
    /// `None`: they are not.
    pub kept_when_dropped: Option<Bytes>,
    /// What an indirect block counts as dirty data; zero: not at all.
    pub indirect_dirty: Bytes,
    /// Writers block at this much dirty data (`zfs_dirty_data_max`).
    pub dirty_data_max: Bytes,
    /// Writers are delayed above this percentage of it
    /// (`zfs_delay_min_dirty_percent`).
    pub delay_min_percent: u64,
    /// The delay at half way (`zfs_delay_scale`).
    pub delay_scale: Nanos,
    /// The longest delay (`zfs_delay_max_ns`).
    pub delay_max: Nanos,
    /// A writer that was blocked is not delayed any more if it has waited for longer than the
    /// delay: than its limit, or, as until 2022, than it would be without the limit.
    pub waits_count_for_whole_delay: bool,
    /// The requests to the volume that are at work at a time, as each keeps a thread until it
    /// ends (`zvol_threads`), at least 1; `None`: no limit. Where a processor is charged it has
    /// these threads itself.
    pub volume_threads: Option<usize>,
    /// Asynchronous writes get their minimum below the first and their
    /// maximum above the second percentage of dirty data, linear between
    /// (`zfs_vdev_async_write_active_{min,max}_dirty_percent`).
    pub async_write_ramp_percent: (u64, u64),
    /// A transaction group is closed at this age (`zfs_txg_timeout`) ...
    pub txg_timeout: Nanos,
    /// ... or with this much dirty data (`zfs_dirty_data_sync`).
    pub txg_dirty_sync: Bytes,
    /// Pool metadata that each group writes.
    pub pool_metadata: PoolMetadata,
    /// How far the copies of metadata lie from each other; `None`: an eighth of the
    /// disk.
    pub copies_apart: Option<Sectors>,
    /// Blocks that a sync may have under way when it begins, and at most; `None`: no
    /// limit.
    pub allocations: Option<(u32, u32)>,
    /// Host time of the syncing thread for each dirty block of a group, before the
    /// first of them can go to a disk.
    pub sync_prepare_time: Nanos,
    /// Host time of the syncing thread for one block, data or indirect.
    pub sync_block_time: Nanos,
    /// A processor is charged for what the host does: see [`PoolConfig::charged`].
    pub charged: bool,
    /// The leaf queues.
    pub queue: QueueConfig,
    /// How data blocks are asked for.
    pub data_reads: DataReads,
    /// How blocks are ordered ahead of sequential reads.
    pub prefetch: PrefetchConfig,
    /// How a read chooses its child.
    pub selection: ChildSelection,
    /// Host time of a read.
    pub read_time: HostTime,
    /// Host time of a write.
    pub write_time: HostTime,
    /// How a resilver reads, and how it gives way to other I/O.
    pub resilver: ResilverConfig,
}

/// Why a pool cannot be built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// No disk, or more than 32.
    #[error("a mirror needs 1 to 32 members, not {0}")]
    Members(usize),
    /// A block, pointer count or allocation unit that is not a power of two,
    /// or out of range.
    #[error("`{0}` must be a power of two in its range")]
    PowerOfTwo(&'static str),
    /// A compressed block that is larger than one that is not, or no whole sectors.
    #[error("a block cannot take {0} of a disk")]
    Placed(Bytes),
    /// Something that must not be zero is.
    #[error("`{0}` must not be zero")]
    Zero(&'static str),
    /// The volume with its metadata does not fit the smallest member.
    #[error("a volume of {volume} does not fit members of {member}")]
    VolumeTooLarge {
        /// The volume's size, in bytes, without its metadata.
        volume: Bytes,
        /// The size of the smallest disk of the mirror, in bytes.
        member: Bytes,
    },
    /// Dirty blocks must stay in the cache until they are written.
    #[error("a cache of {cache} cannot hold the dirty data limit, which needs {needed}")]
    CacheTooSmall {
        /// The cache's size as configured (`arc_max`).
        cache: Bytes,
        /// What dirty data and the indirect blocks above it need.
        needed: Bytes,
    },
    /// Two level-2 blocks' worth of level-1 blocks must fit.
    #[error("a metadata limit of {limit} is less than the {needed} of two level-2 blocks")]
    MetadataLimitTooSmall {
        /// What indirect blocks may take of the cache as configured (`arc_meta_limit`).
        limit: Bytes,
        /// What it must be at least.
        needed: Bytes,
    },
}

impl PoolConfig {
    /// Whether a pool can be built from this.
    ///
    /// # Errors
    /// The first thing found wrong.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.members.is_empty() || self.members.len() > 32 {
            return Err(ConfigError::Members(self.members.len()));
        }
        let powers = [
            ("volume_block", self.volume_block.0, 512, 1 << 20),
            ("indirect_pointers", self.indirect_pointers, 8, 1 << 12),
            ("ashift", 1_u64 << self.ashift.min(63), 512, 1 << 16),
        ];
        for (name, value, low, high) in powers {
            if !value.is_power_of_two() || value < low || value > high {
                return Err(ConfigError::PowerOfTwo(name));
            }
        }
        let placed = self.placed_block.unwrap_or(self.volume_block);
        if placed > self.volume_block || !placed.0.is_multiple_of(1 << self.ashift) {
            return Err(ConfigError::Placed(placed));
        }
        let counts = [
            ("volume_size", self.volume_size.0),
            ("placed_block", placed.0),
            ("indirect_memory", self.indirect_memory.0),
            ("metadata_copies", self.metadata_copies),
            ("dirty_data_max", self.dirty_data_max.0),
            (
                "queue.sync_read",
                u64::from(self.queue.sync_read.max_active),
            ),
            (
                "queue.sync_write",
                u64::from(self.queue.sync_write.max_active),
            ),
            (
                "queue.async_read",
                u64::from(self.queue.async_read.max_active),
            ),
            (
                "queue.async_write",
                u64::from(self.queue.async_write.min_active),
            ),
            ("queue.scrub", u64::from(self.queue.scrub.max_active)),
            ("queue.total_active", u64::from(self.queue.total_active)),
            ("queue.aggregation_limit", self.queue.aggregation_limit.0),
            (
                "resilver.in_flight",
                match self.resilver.order {
                    ScanOrder::Tree { in_flight } => u64::from(in_flight),
                    ScanOrder::Sorted { in_flight, .. } => in_flight.0,
                },
            ),
        ];
        for (name, value) in counts {
            if value == 0 {
                return Err(ConfigError::Zero(name));
            }
        }
        self.check_room()
    }

    /// Whether the members and the memory hold what is to be on them.
    fn check_room(&self) -> Result<(), ConfigError> {
        let member = self.smallest_member();
        if self.volume_size.0 + self.volume_size.0 / 32 + LABELS.0 > member.0 {
            return Err(ConfigError::VolumeTooLarge {
                volume: self.volume_size.to_bytes(),
                member: member.to_bytes(),
            });
        }
        // Random writes take an indirect block each.
        let dirty_blocks = self.dirty_data_max.0 / self.volume_block.0;
        let needed = Bytes(self.dirty_data_max.0 + dirty_blocks * self.indirect_memory.0);
        if self.cache < needed {
            let cache = self.cache;
            return Err(ConfigError::CacheTooSmall { cache, needed });
        }
        // The resilver orders all that is under one level-2 block at once.
        let needed = Bytes(2 * self.indirect_pointers * self.indirect_memory.0);
        if self.metadata_limit < needed {
            let limit = self.metadata_limit;
            return Err(ConfigError::MetadataLimitTooSmall { limit, needed });
        }
        Ok(())
    }

    /// The same pool where a processor is charged for what the host does: the pool's own
    /// times for that are nothing, and a request ends as soon as all is there.
    #[must_use]
    pub fn charged(mut self) -> Self {
        self.charged = true;
        self.volume_threads = None;
        self.read_time = HostTime::default();
        self.write_time = HostTime::default();
        self.sync_prepare_time = Nanos::ZERO;
        self.sync_block_time = Nanos::ZERO;
        self.resilver.block_time = Nanos::ZERO;
        self
    }

    /// What the queues of all members merge at least, in sectors.
    pub(crate) fn aggregation_limit(&self) -> u64 {
        let limits = self.members.iter().map(|member| self.queue.of(member));
        let limits = limits.map(|queue| queue.aggregation_limit.0);
        limits.min().unwrap_or(self.queue.aggregation_limit.0)
    }

    /// The smallest member's size.
    #[must_use]
    pub fn smallest_member(&self) -> Sectors {
        let sizes = self.members.iter().map(|member| member.size);
        sizes.min().unwrap_or(Sectors::ZERO)
    }
}

/// Two labels and the boot block in front (4 MiB), two labels behind
/// (512 KiB): the allocatable space lies between.
pub(crate) const LABEL_FRONT: Sectors = Sectors(4 << 11);
/// What the labels take of a disk.
pub(crate) const LABELS: Sectors = Sectors((4 << 11) + (1 << 10));
