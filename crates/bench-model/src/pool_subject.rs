//! The ZFS pool as a subject of the machine.

use raidlab_array::{
    AdminError, CommandId, MemberError, Outputs, Request, Slot, SyncKind, SyncProgress,
};
use raidlab_lab::{Zfs, ZfsChecksum, ZfsCompression, ZfsRelease};
use raidlab_sim::{
    ArrayKind, ArrayPaths, Checksum, Compression, Gait, PoolPaths, Subject, SubjectError,
};
use raidlab_units::{Bytes, Nanos, Sectors};
use raidlab_zfs::Pool;

/// The place where a vdev's data begins: behind two labels of 256 KiB and the boot block
/// (`VDEV_LABEL_START_SIZE`, 4 MiB).
const LABELS: Sectors = Sectors(4 * 2048);

/// The threads of a pool with this number of disks.
pub(crate) fn paths(zfs: &Zfs, members: usize) -> ArrayPaths {
    let block = zfs.volume_block.to_sectors();
    ArrayPaths {
        kind: ArrayKind::Pool(PoolPaths {
            block,
            placed: zfs.placed_block().to_sectors(),
            members: u32::try_from(members).unwrap_or(u32::MAX),
            has_taskq: zfs.release != ZfsRelease::Freebsd10_1,
            checksum: match zfs.checksum {
                ZfsChecksum::Off => Checksum::Off,
                ZfsChecksum::Fletcher4 => Checksum::Fletcher4,
                ZfsChecksum::Sha256 => Checksum::Sha256,
            },
            compression: match zfs.compression {
                ZfsCompression::Off => Compression::Off,
                ZfsCompression::Lz4 => Compression::Lz4,
                ZfsCompression::Zstd(level) => Compression::Zstd(level),
            },
        }),
        ..ArrayPaths::default()
    }
}

pub(crate) struct PoolSubject {
    pool: Pool,
}

impl PoolSubject {
    pub(crate) fn new(pool: Pool) -> Self {
        Self { pool }
    }
}

fn refused(error: AdminError) -> SubjectError {
    SubjectError(error.to_string())
}

impl Subject for PoolSubject {
    fn submit(&mut self, now: Nanos, request: Request, out: &mut Outputs) {
        self.pool.submit(now, request, out);
    }

    fn complete(
        &mut self,
        now: Nanos,
        command: CommandId,
        result: Result<(), MemberError>,
        out: &mut Outputs,
    ) {
        self.pool.complete(now, command, result, out);
    }

    fn tick(&mut self, now: Nanos, out: &mut Outputs) {
        self.pool.tick(now, out);
    }

    fn next_tick(&self) -> Option<Nanos> {
        self.pool.next_tick()
    }

    fn fail(&mut self, now: Nanos, slot: Slot, out: &mut Outputs) -> Result<(), SubjectError> {
        self.pool.fail(now, slot, out).map_err(refused)
    }

    fn remove(&mut self, now: Nanos, slot: Slot, out: &mut Outputs) -> Result<(), SubjectError> {
        self.pool.remove(now, slot, out).map_err(refused)
    }

    fn insert(&mut self, now: Nanos, slot: Slot, out: &mut Outputs) -> Result<(), SubjectError> {
        self.pool.add(now, slot, out).map_err(refused)
    }

    fn sync(&self) -> Option<SyncProgress> {
        self.pool.sync_status().map(|status| SyncProgress {
            // The sync is a resilver: scrubs are not modelled.
            kind: SyncKind::Recovery,
            position: status.done.to_sectors(),
            total: status.total.to_sectors(),
            sleeps: 0,
            fastest: None,
        })
    }

    fn freeze_sync(&mut self) {
        self.pool.freeze_sync();
    }

    fn thaw_sync(&mut self, now: Nanos, out: &mut Outputs) {
        self.pool.thaw_sync(now, out);
    }

    fn leap_sync(&mut self, _now: Nanos, position: Sectors, _out: &mut Outputs) {
        self.pool.leap_sync(position.to_bytes());
    }

    fn leap_write(&mut self, start: Sectors, count: Sectors) {
        self.pool.leap_write(start, count);
    }

    fn leap_sample(&self) -> Nanos {
        // The sample has two turns of the resilver; several transaction groups of writes.
        let resilvering = self.pool.sync_status().is_some();
        Nanos::from_secs(if resilvering { 10 } else { 24 })
    }

    fn longest_leap(&self) -> Bytes {
        if self.pool.streams_evenly() {
            Bytes(512 << 30)
        } else {
            self.pool.cache_size()
        }
    }

    fn longest_sync_leap(&self) -> Nanos {
        Nanos::from_secs(3600)
    }

    fn sync_gait(&self) -> Gait {
        // A turn of the resilver takes a transaction group, which is closed after five seconds. Ten
        // seconds of scattered blocks differ from the next ten by a tenth, so one sample does
        // not tell the pace of a whole resilver.
        Gait::Rhythmic(Nanos::from_secs(5))
    }

    fn job_begins(&mut self) {
        self.pool.drop_caches();
    }

    fn is_idle(&self) -> bool {
        self.pool.is_idle()
    }

    fn health(&self) -> String {
        format!("[{}]", self.pool.health())
    }

    fn size(&self) -> Sectors {
        self.pool.size()
    }

    fn member_sector(&self, sector: Sectors) -> Sectors {
        LABELS + self.pool.placed(sector)
    }
}
