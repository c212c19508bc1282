//! The constants of each release.

use super::{
    ChildSelection, ClassLimits, Courtesy, DataReads, HostTime, IntentLog, MemberConfig,
    PoolConfig, PoolMetadata, PrefetchConfig, QueueConfig, ResilverConfig, ScanOrder,
};
use raidlab_units::{Bytes, Nanos, Sectors};

impl PoolConfig {
    /// FreeBSD 10.1 on a host with `memory` bytes of RAM, as in the log.
    ///
    /// The indirect blocks have 128 pointers: jobs 2-4 of the log read
    /// 581 792 blocks of 0.65 KiB while they overwrote what job 1 had left
    /// behind, and 576 766 random writes leave 527 000 level-1 blocks of 1 MiB
    /// (303 000 if they had 1024 pointers). The same lines give 1.8 KiB for a
    /// full level-1 block on disk, and job 5's give 4.7 KiB for level 2.
    #[must_use]
    pub fn freebsd_10_1(members: Vec<MemberConfig>, volume_size: Sectors, memory: Bytes) -> Self {
        // arc_max = RAM - 1 GiB, arc_meta_limit = a quarter of it (arc_init).
        let cache = memory.0.saturating_sub(1 << 30).max(memory.0 / 2);
        Self {
            members,
            volume_size,
            volume_block: Bytes(8 << 10),
            placed_block: None,
            indirect_pointers: 128,
            indirect_memory: Bytes(16 << 10),
            level_1_pointer_bytes: 13,
            level_2_pointer_bytes: 37,
            metadata_copies: 2,
            intent_log: IntentLog::Batches,
            ashift: 9,
            cache: Bytes(cache),
            metadata_limit: Bytes(cache / 4 - headers(cache)),
            kept_when_dropped: None,
            indirect_dirty: Bytes(0),
            dirty_data_max: Bytes((memory.0 / 10).min(4 << 30)),
            delay_min_percent: 60,
            delay_scale: Nanos::from_micros(500),
            delay_max: Nanos::from_millis(100),
            waits_count_for_whole_delay: true,
            volume_threads: None,
            async_write_ramp_percent: (30, 60),
            txg_timeout: Nanos::from_secs(5),
            txg_dirty_sync: Bytes(64 << 20),
            // From job 5 of the log: about 1 MiB of writes per group that are neither
            // data nor indirect blocks of the volume.
            pool_metadata: PoolMetadata {
                rounds: 2,
                pieces: 1,
                sectors: Sectors(256),
            },
            copies_apart: None,
            allocations: None,
            sync_prepare_time: Nanos::ZERO,
            // Fitted on job 1, where the syncing thread sets the pace: 9608
            // writes/s, with 2 to 2.5 blocks each.
            sync_block_time: Nanos::from_micros(54),
            charged: false,
            queue: QueueConfig::of_2014(),
            data_reads: DataReads::Runs,
            prefetch: PrefetchConfig::of_2014(),
            selection: ChildSelection::FreeBsd10,
            // fio's cpu lines: 36 us of system time for a 4 KiB write (job 1),
            // 111 us for a 128 KiB write (job 2), 149 us for a 128 KiB read
            // (job 17), each of 16 blocks.
            read_time: HostTime {
                request: Nanos::from_micros(31),
                block: Nanos(7_400),
            },
            write_time: HostTime {
                request: Nanos::from_micros(31),
                block: Nanos(5_000),
            },
            resilver: ResilverConfig {
                order: ScanOrder::Tree { in_flight: 32 },
                min_time: Nanos::from_secs(3),
                idle: Nanos::from_millis(50),
                delay: Nanos::from_millis(2),
                // Fitted on the first hour of the log's resilver (8.39 %).
                block_time: Nanos::from_micros(70),
            },
        }
    }

    /// ZFS on Linux 0.6.4 on a host with `memory` bytes of RAM. It differs
    /// from FreeBSD 10.1 in child selection, in the length of a tick, and in the cache: half
    /// of RAM, three quarters of that for metadata.
    #[must_use]
    pub fn zol_0_6_4(members: Vec<MemberConfig>, volume_size: Sectors, memory: Bytes) -> Self {
        let cache = memory.0 / 2;
        let mut config = Self::freebsd_10_1(members, volume_size, memory);
        config.selection = ChildSelection::Zol06;
        config.volume_threads = Some(32);
        config.cache = Bytes(cache);
        config.metadata_limit = Bytes(cache / 4 * 3 - headers(cache));
        // Ticks are the kernel's (SPL sys/timer.h: `ddi_get_lbolt64` is `get_jiffies_64`), which
        // has 250 per second in Ubuntu's and Debian's kernels, and 1000 in FreeBSD's.
        const TICK: Nanos = Nanos::from_millis(4);
        config.resilver.idle = TICK * 50;
        config.resilver.delay = TICK * 2;
        config
    }

    /// OpenZFS 2.3.2 on Linux on a host with `memory` bytes of RAM whose processor takes time only
    /// for reading the clock, as on the kernel bench.
    #[must_use]
    pub fn openzfs_2_3(members: Vec<MemberConfig>, volume_size: Sectors, memory: Bytes) -> Self {
        let mut config = Self::freebsd_10_1(members, volume_size, memory);
        // `zfs_arc_max` as the bench sets it; no part is reserved for metadata.
        config.cache = Bytes(memory.0 / 2);
        config.metadata_limit = config.cache;
        // The host bench drops caches before each job on Linux; the cache shrinks down to
        // `arc_c_min`, a thirty-second of memory.
        config.kept_when_dropped = Some(Bytes(memory.0 / 32));
        // DN_MAX_INDBLKSHIFT 17. In the cache blocks are compressed, as on the disk: of a volume of
        // 8 GiB the real cache holds 9.0 MB of metadata, and most commands that read a block of
        // level 1 are of 8 KiB.
        config.indirect_pointers = 1024;
        config.level_1_pointer_bytes = 7;
        config.indirect_memory = Bytes(8 << 10);
        // `dbuf_dirty`, `dr_accounted`: the size before compression.
        config.indirect_dirty = Bytes(128 << 10);
        // dsl_pool.c: `zfs_dirty_data_max_percent` 10, `zfs_dirty_data_sync_percent` 20.
        config.txg_dirty_sync = Bytes(config.dirty_data_max.0 / 5);
        // Read off the members' commands on the kernel bench: three rounds (as many
        // calls of `dsl_pool_sync`), with three to eight blocks in the first two. The
        // copies are in metaslabs of their own.
        config.pool_metadata = PoolMetadata {
            rounds: 3,
            pieces: 3,
            sectors: Sectors(16),
        };
        let member = config.smallest_member();
        let metaslab = metaslab(member);
        config.copies_apart = Some(metaslab);
        let has_own = member.0 / metaslab.0 >= 64;
        config.intent_log = IntentLog::Pipeline {
            metaslab: if has_own { metaslab } else { Sectors::ZERO },
        };
        // `zfs_vdev_def_queue_depth`; `zfs_vdev_async_write_max_active` times
        // `zfs_vdev_queue_depth_pct`.
        config.allocations = Some((32, 100));
        // `dbuf_sync_list` makes a zio for every block before it yields the processor, and each
        // reads the clock once (`zio_create`). That takes 2048 ns on the kernel bench; nothing else
        // takes time there.
        config.sync_prepare_time = Nanos(2048);
        config.sync_block_time = Nanos::ZERO;
        config.queue = QueueConfig::of_2_3();
        config.data_reads = DataReads::Blocks;
        config.prefetch = PrefetchConfig::of_2_3();
        config.selection = ChildSelection::OpenZfs2;
        // dmu_tx.c, `dmu_tx_delay`; zvol_os.c, `zvol_init` with up to 32 processors.
        config.waits_count_for_whole_delay = false;
        config.volume_threads = Some(32);
        config.read_time = HostTime::default();
        config.write_time = HostTime::default();
        config.resilver.order = ScanOrder::Sorted {
            in_flight: Bytes(16 << 20),
            memory: Bytes((memory.0 / 20).max(16 << 20)),
            gap: Bytes(2 << 20).to_sectors(),
        };
        config.resilver.block_time = Nanos::ZERO;
        config.resilver.delay = Nanos::ZERO;
        config
    }
}

/// The size of a metaslab (OpenZFS 2.3.2 vdev.c, `vdev_metaslab_set_size`): about 200
/// of them, of 512 MiB at least and 16 GiB at most.
fn metaslab(member: Sectors) -> Sectors {
    let size = (member.0 / 200).next_power_of_two();
    Sectors(size.clamp(1 << 20, 1 << 25))
}

/// The headers of a cache full of blocks of 8 KiB: an `arc_buf_hdr_t` and an `arc_buf_t` each,
/// about 330 bytes on amd64 (`arc_space_consume` counts them as metadata).
const fn headers(cache: u64) -> u64 {
    cache / (8 << 10) * 330
}

impl PrefetchConfig {
    /// The constants of illumos, FreeBSD 10.1 and ZFS on Linux 0.6.
    #[must_use]
    pub const fn of_2014() -> Self {
        Self::ByLength {
            streams: 8,
            blocks: 256,
            reap: Nanos::from_secs(2),
        }
    }

    /// The constants of OpenZFS 2.3.2 on machines of 64 bits.
    #[must_use]
    pub const fn of_2_3() -> Self {
        Self::ByDistance {
            streams: 8,
            minimum: Bytes(4 << 20),
            maximum: Bytes(64 << 20),
            reorder: Bytes(16 << 20),
            indirect: Bytes(128 << 20),
            reap_seconds: (1, 2),
        }
    }
}

impl QueueConfig {
    /// The limits of illumos 4045 (August 2013) and its successors FreeBSD 10 and ZFS on Linux
    /// 0.6.3. Merging limits as in FreeBSD 10.
    #[must_use]
    pub const fn of_2014() -> Self {
        const fn limits(min_active: u32, max_active: u32) -> ClassLimits {
            ClassLimits {
                min_active,
                max_active,
            }
        }
        Self {
            sync_read: limits(10, 10),
            sync_write: limits(10, 10),
            async_read: limits(1, 3),
            async_write: limits(1, 10),
            scrub: limits(1, 2),
            total_active: 1000,
            aggregation_limit: Sectors(256),
            aggregation_limit_non_rotating: Sectors(256),
            read_gap_limit: Sectors(64),
            courtesy: None,
            batch: None,
            merges_classes: false,
        }
    }

    /// The settings of OpenZFS 2.3.2 (`vdev_queue.c`).
    #[must_use]
    pub const fn of_2_3() -> Self {
        let mut config = Self::of_2014();
        config.async_write.min_active = 2;
        config.scrub.max_active = 3;
        config.aggregation_limit = Sectors(2048);
        config.batch = Some(Nanos(1 << 29));
        config.merges_classes = true;
        config.courtesy = Some(Courtesy {
            credit: 5,
            delay: 5,
        });
        config
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(rotational: &[bool]) -> Vec<MemberConfig> {
        let member = |&rotational| MemberConfig {
            size: Sectors(1 << 27),
            rotational,
        };
        rotational.iter().map(member).collect()
    }

    #[test]
    fn disks_that_do_not_turn_get_shorter_commands_since_openzfs_0_8() {
        let (volume, memory) = (Sectors(1 << 24), Bytes(4 << 30));
        let limits = |rotational: &[bool]| {
            let config = PoolConfig::openzfs_2_3(members(rotational), volume, memory);
            let own = config.members.iter().map(|one| config.queue.of(one));
            let own: Vec<u64> = own.map(|queue| queue.aggregation_limit.0).collect();
            (own, config.aggregation_limit())
        };
        assert_eq!(limits(&[true, true]), (vec![2048, 2048], 2048));
        assert_eq!(limits(&[false, false]), (vec![256, 256], 256));
        assert_eq!(limits(&[true, false]), (vec![2048, 256], 256));
    }

    #[test]
    fn a_tick_is_as_long_as_the_system_s() {
        let (volume, memory) = (Sectors(1 << 24), Bytes(16 << 30));
        let freebsd = PoolConfig::freebsd_10_1(members(&[true; 2]), volume, memory).resilver;
        let linux = PoolConfig::zol_0_6_4(members(&[true; 2]), volume, memory).resilver;
        assert_eq!(freebsd.idle, Nanos::from_millis(50));
        assert_eq!(linux.idle, Nanos::from_millis(200));
        assert_eq!(linux.delay, Nanos::from_millis(8));
    }
}
