//! The configuration of a pool, and the constants of its releases.
//!
//! Every number names its source. "Log" is the published log of the 2015 comparison
//! (geomflash/geomflash on GitHub, `test_raid1/test_raid1_zvol.log`): FreeBSD 10.1 on 16 GB of RAM,
//! two WD4000FYYZ, a 3 TiB zvol with 8 KiB blocks. Some of the log's lines are not throughput
//! figures but facts about the system (`iostat` totals, fio's `cpu` lines); they are used here,
//! throughput figures only where the comment says "fitted".

mod releases;

use raidlab_units::{Bytes, Nanos, Sectors};

/// One disk of the mirror.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemberConfig {
    /// The disk's size, in sectors of 512 bytes.
    pub size: Sectors,
    /// Whether it seeks, which decides the penalties of child selection.
    pub rotational: bool,
}

/// The limits on commands of one class that a leaf's queue sends to the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClassLimits {
    /// The number of commands below which the class goes first.
    pub min_active: u32,
    /// The largest number of commands.
    pub max_active: u32,
}

/// The settings of a leaf queue (`vdev_queue.c`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueConfig {
    /// The limits of reads that are waited for.
    pub sync_read: ClassLimits,
    /// The limits of writes that are waited for (log, uberblocks).
    pub sync_write: ClassLimits,
    /// The limits of prefetch reads.
    pub async_read: ClassLimits,
    /// The limits of writes of transaction groups and of the resilver; the maximum in force rises
    /// with the dirty data, see [`PoolConfig::async_write_ramp_percent`].
    pub async_write: ClassLimits,
    /// The limits of scrub and resilver reads.
    pub scrub: ClassLimits,
    /// The largest number of commands of all classes at a disk (`zfs_vdev_max_active`).
    pub total_active: u32,
    /// The size up to which neighbours are merged (`zfs_vdev_aggregation_limit`).
    pub aggregation_limit: Sectors,
    /// The same size on a disk that does not rotate (`zfs_vdev_aggregation_limit_non_rotating`).
    pub aggregation_limit_non_rotating: Sectors,
    /// The largest gap between reads that are merged; the gap is read and dropped.
    pub read_gap_limit: Sectors,
    /// The rules by which scrub and resilver yield to interactive commands.
    pub courtesy: Option<Courtesy>,
    /// The interval of arrivals within which I/Os are served by address, before later ones
    /// (`VDQ_T_SHIFT`: 2^29 ns); `None`: all by address.
    pub batch: Option<Nanos>,
    /// Whether synchronous reads are merged with adjacent prefetch reads, and likewise
    /// writes (`vq_read_offset_tree`, `vq_write_offset_tree`).
    pub merges_classes: bool,
}

impl QueueConfig {
    /// The settings for one disk (`vdev_queue_aggregate`).
    pub(crate) const fn of(mut self, member: &MemberConfig) -> Self {
        if !member.rotational {
            self.aggregation_limit = self.aggregation_limit_non_rotating;
        }
        self
    }
}

/// The rules by which scrub and resilver yield, since OpenZFS 2.1 (`vdev_queue.c`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Courtesy {
    /// The number of their commands for each interactive one (`zfs_vdev_nia_credit`).
    pub credit: u32,
    /// The number of their commands without interactive ones, before there may be more than the
    /// minimum at once (`zfs_vdev_nia_delay`).
    pub delay: u32,
}

/// Pool metadata of a group (space maps, the dataset's own block, the objects with their
/// locations): each piece has three copies, and a round is on the disks before the next
/// one begins (`spa_sync_iterate_to_convergence`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolMetadata {
    /// The number of rounds that a group writes one after the other.
    pub rounds: u8,
    /// The number of pieces of metadata in each round, without their copies.
    pub pieces: u8,
    /// The size of one copy of a piece, in sectors of 512 bytes.
    pub sectors: Sectors,
}

/// The policy by which a read chooses among the mirror's children. The load of a member is the
/// number of commands of its leaf queue in the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildSelection {
    /// The number of active commands plus a penalty for a seek (FreeBSD 10.0
    /// and later): [`raidlab_policies::ZfsFreebsd10`].
    FreeBsd10,
    /// The same, but the position of a child is the end of the last command that its queue
    /// sent to the disk, also of a write, and not that of the last read chosen for it (OpenZFS
    /// 2.3.2 `vdev_queue_io_to_issue`, `vdev_queue_last_offset`).
    OpenZfs2,
    /// The number of active commands only, ties by time slice (ZFS on Linux
    /// 0.6.3, 0.6.4): [`raidlab_policies::Zol06`].
    Zol06,
}

/// When and where the blocks of the intent log are written (`zil.c`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntentLog {
    /// One batch of commits after the other, where the pool writes (until OpenZFS 0.7).
    Batches,
    /// One log block behind the other, without waiting for it (OpenZFS 2.3).
    Pipeline {
        /// The size of the metaslab at the front of each disk that has the log alone, in
        /// sectors of 512 bytes; zero on disks of less than 64 metaslabs, where the log lies
        /// where the pool writes (`spa_embedded_log_min_ms`).
        metaslab: Sectors,
    },
}

/// The way in which data blocks are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataReads {
    /// Neighbours that are ordered together choose their child together and enter its queue as one,
    /// already merged: near enough where the queue would merge them.
    Runs,
    /// Each block chooses its child separately, and its queue may send it to the disk before
    /// the next one chooses (`dbuf_read`, `dbuf_prefetch_impl`, `zio_nowait`). A prefetch read
    /// that a request needs before the disk has it waits among the synchronous reads from then
    /// on (`arc_read`, `zio_change_priority`).
    Blocks,
}

/// The host time of a request beside its disk commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HostTime {
    /// The time of each request beside its blocks.
    pub request: Nanos,
    /// The time of each volume block that it touches.
    pub block: Nanos,
}

/// Prefetch of sequential reads (`dmu_zfetch.c`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrefetchConfig {
    /// The prefetch before its rewrite of 2015: streams reach ahead by as many blocks as
    /// they are long.
    ByLength {
        /// The number of streams followed at once (`zfetch_max_streams`); 0 turns it off.
        streams: usize,
        /// The largest number of blocks of a stream that count and, about, that are ordered ahead
        /// of it (`zfetch_block_cap`).
        blocks: u64,
        /// The time without use after which a stream may be replaced (`zfetch_min_sec_reap`).
        reap: Nanos,
    },
    /// The prefetch of OpenZFS 2.2 and 2.3: streams reach ahead by a distance that grows while
    /// blocks come too late.
    ByDistance {
        /// The number of streams followed at once (`zfetch_max_streams`); fewer on a volume of less
        /// than that many maximum distances.
        streams: usize,
        /// The distance up to which it doubles (`zfetch_min_distance`).
        minimum: Bytes,
        /// The distance up to which it then grows by eighths (`zfetch_max_distance`).
        maximum: Bytes,
        /// The distance from a stream's position within which reads belong
        /// to it (`zfetch_max_reorder`).
        reorder: Bytes,
        /// The further distance up to which indirect blocks are ordered (`zfetch_max_idistance`).
        indirect: Bytes,
        /// The whole seconds without use after which a stream may be replaced when there are too
        /// many (`zfetch_min_sec_reap`), and ends by itself (`zfetch_max_sec_reap`).
        reap_seconds: (u64, u64),
    },
}

/// The order in which a resilver reads (`dsl_scan.c`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScanOrder {
    /// Blocks are read in the order of the walk over the tree.
    Tree {
        /// The number of blocks in flight (`zfs_top_maxinflight`, per top-level vdev).
        in_flight: u32,
    },
    /// Blocks that were found are read in long runs (ZFS on Linux 0.8 and later).
    Sorted {
        /// The bytes in flight (`zfs_scan_vdev_limit`).
        in_flight: Bytes,
        /// The largest memory for blocks found and not read, or a twentieth of all allocated bytes
        /// where that is less (`zfs_scan_mem_lim_fact`).
        memory: Bytes,
        /// The distance up to which blocks belong to one segment (`zfs_scan_max_ext_gap`).
        gap: Sectors,
    },
}

/// The settings of the resilver (`dsl_scan.c`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResilverConfig {
    /// The order in which it reads, and the amount at once.
    pub order: ScanOrder,
    /// The least time of the walk in each transaction group (`zfs_resilver_min_time_ms`).
    pub min_time: Nanos,
    /// The time within which other I/O counts as load (`zfs_scan_idle`, 50 ticks).
    pub idle: Nanos,
    /// The time that the walk sleeps before each block under load (`zfs_resilver_delay`, 2 ticks).
    pub delay: Nanos,
    /// The host time of the walking thread for one block.
    pub block_time: Nanos,
}

/// A mirror pool with one volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolConfig {
    /// The disks of the one top-level mirror.
    pub members: Vec<MemberConfig>,
    /// The volume's size, in sectors of 512 bytes.
    pub volume_size: Sectors,
    /// The size of a volume block, `volblocksize`: 8 KiB by default in 2014-15 (log: 8K).
    pub volume_block: Bytes,
    /// The size of a block on a disk where blocks are compressed; `None`: uncompressed. The cache
    /// holds them uncompressed.
    pub placed_block: Option<Bytes>,
    /// The number of pointers in an indirect block: 128 with the 16 KiB limit (`DN_MAX_INDBLKSHIFT`
    /// 14), 1024 with the 128 KiB limit.
    pub indirect_pointers: u64,
    /// The size of an indirect block in memory (uncompressed).
    pub indirect_memory: Bytes,
    /// The bytes on disk of a compressed level-1 block for each pointer in it. A pointer without
    /// checksum differs from its neighbour in a few bytes.
    pub level_1_pointer_bytes: u64,
    /// The same bytes for level 2, whose pointers hold two addresses.
    pub level_2_pointer_bytes: u64,
    /// The number of copies of every metadata block (2: `copies` + 1, "ditto blocks").
    pub metadata_copies: u64,
    /// When and where the intent log is written.
    pub intent_log: IntentLog,
    /// The exponent of the smallest allocation, 2^ashift bytes (9: the disks report 512).
    pub ashift: u32,
    /// The capacity of the cache for data and indirect blocks (`arc_max`).
    pub cache: Bytes,
    /// The part of the cache for indirect blocks, which may take more where data under them is
    /// in the cache (`arc_meta_limit`, less the headers of all buffers in the cache, which
    /// count as metadata).
    pub metadata_limit: Bytes,
    /// The part of the cache that keeps data when the host's caches are dropped before a job;
    /// `None`: they are not dropped.
    pub kept_when_dropped: Option<Bytes>,
    /// The size with which an indirect block counts as dirty data; zero: not at all.
    pub indirect_dirty: Bytes,
    /// The amount of dirty data at which writers block (`zfs_dirty_data_max`).
    pub dirty_data_max: Bytes,
    /// The percentage of it above which writers are delayed (`zfs_delay_min_dirty_percent`).
    pub delay_min_percent: u64,
    /// The delay half way between (`zfs_delay_scale`).
    pub delay_scale: Nanos,
    /// The largest delay (`zfs_delay_max_ns`).
    pub delay_max: Nanos,
    /// Whether a writer that was blocked for longer than its delay is delayed no more only if it
    /// waited for longer than the delay without its limit, as until 2022.
    pub waits_count_for_whole_delay: bool,
    /// The number of requests to the volume that are at work at a time, at least 1, as each keeps
    /// a thread until it ends (`zvol_threads`); `None`: no limit. Where a processor is charged it
    /// has these threads itself.
    pub volume_threads: Option<usize>,
    /// The percentages of dirty data below which asynchronous writes get their minimum, and above
    /// which their maximum, linear between (`zfs_vdev_async_write_active_{min,max}_dirty_percent`).
    pub async_write_ramp_percent: (u64, u64),
    /// The age at which a transaction group is closed (`zfs_txg_timeout`).
    pub txg_timeout: Nanos,
    /// The amount of dirty data with which it is closed (`zfs_dirty_data_sync`).
    pub txg_dirty_sync: Bytes,
    /// The pool metadata that each group writes.
    pub pool_metadata: PoolMetadata,
    /// The distance of the copies of metadata from each other; `None`: an eighth of the disk.
    pub copies_apart: Option<Sectors>,
    /// The number of blocks that a sync may have in flight when it begins, and at most;
    /// `None`: no limit.
    pub allocations: Option<(u32, u32)>,
    /// The host time of the syncing thread for each dirty block of a group, before the first of
    /// them can go to a disk.
    pub sync_prepare_time: Nanos,
    /// The host time of the syncing thread for one block, data or indirect.
    pub sync_block_time: Nanos,
    /// Whether a processor is charged for the host's work: see [`PoolConfig::charged`].
    pub charged: bool,
    /// The settings of the leaf queues.
    pub queue: QueueConfig,
    /// The way in which data blocks are read.
    pub data_reads: DataReads,
    /// The prefetch of sequential reads.
    pub prefetch: PrefetchConfig,
    /// The policy by which a read chooses its child.
    pub selection: ChildSelection,
    /// The host time of a read.
    pub read_time: HostTime,
    /// The host time of a write.
    pub write_time: HostTime,
    /// The resilver's reading order, and its yielding to other I/O.
    pub resilver: ResilverConfig,
}

/// The reason why a pool cannot be built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// There is no disk, or there are more than 32.
    #[error("a mirror needs 1 to 32 members, not {0}")]
    Members(usize),
    /// A block, pointer count or allocation unit is not a power of two, or out of range.
    #[error("`{0}` must be a power of two in its range")]
    PowerOfTwo(&'static str),
    /// A compressed block is larger than an uncompressed one, or not in whole sectors.
    #[error("a block cannot take {0} of a disk")]
    Placed(Bytes),
    /// A value is zero that must not be.
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
    /// The cache is too small: dirty blocks must stay in it until they are written.
    #[error("a cache of {cache} cannot hold the dirty data limit, which needs {needed}")]
    CacheTooSmall {
        /// The cache's size as configured (`arc_max`).
        cache: Bytes,
        /// The size for dirty data and the indirect blocks above it.
        needed: Bytes,
    },
    /// The metadata limit is too small: two level-2 blocks' worth of level-1 blocks must fit.
    #[error("a metadata limit of {limit} is less than the {needed} of two level-2 blocks")]
    MetadataLimitTooSmall {
        /// The part of the cache for indirect blocks as configured (`arc_meta_limit`).
        limit: Bytes,
        /// The least size of that part.
        needed: Bytes,
    },
}

impl PoolConfig {
    /// Checks that a pool can be built from this.
    ///
    /// # Errors
    /// The first error found.
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

    /// Checks that the members and the memory have room for what is to be on them.
    fn check_room(&self) -> Result<(), ConfigError> {
        let member = self.smallest_member();
        if self.volume_size.0 + self.volume_size.0 / 32 + LABELS.0 > member.0 {
            return Err(ConfigError::VolumeTooLarge {
                volume: self.volume_size.to_bytes(),
                member: member.to_bytes(),
            });
        }
        // Random writes dirty one indirect block each.
        let dirty_blocks = self.dirty_data_max.0 / self.volume_block.0;
        let needed = Bytes(self.dirty_data_max.0 + dirty_blocks * self.indirect_memory.0);
        if self.cache < needed {
            let cache = self.cache;
            return Err(ConfigError::CacheTooSmall { cache, needed });
        }
        // The resilver orders all blocks under one level-2 block at once.
        let needed = Bytes(2 * self.indirect_pointers * self.indirect_memory.0);
        if self.metadata_limit < needed {
            let limit = self.metadata_limit;
            return Err(ConfigError::MetadataLimitTooSmall { limit, needed });
        }
        Ok(())
    }

    /// The same pool where a processor is charged for the host's work: the pool's own host times
    /// are zero, and a request ends as soon as all its blocks are in memory.
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

    /// The least aggregation limit of all members' queues, in sectors.
    pub(crate) fn aggregation_limit(&self) -> u64 {
        let limits = self.members.iter().map(|member| self.queue.of(member));
        let limits = limits.map(|queue| queue.aggregation_limit.0);
        limits.min().unwrap_or(self.queue.aggregation_limit.0)
    }

    /// The size of the smallest member.
    #[must_use]
    pub fn smallest_member(&self) -> Sectors {
        let sizes = self.members.iter().map(|member| member.size);
        sizes.min().unwrap_or(Sectors::ZERO)
    }
}

/// The size of the front area: two labels and the boot block (4 MiB). Two more labels are at the
/// end (512 KiB), and the allocatable space is between.
pub(crate) const LABEL_FRONT: Sectors = Sectors(4 << 11);
/// The size of all labels on a disk.
pub(crate) const LABELS: Sectors = Sectors((4 << 11) + (1 << 10));
