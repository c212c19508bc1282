//! The numbers of a mechanical disk.

use crate::flash::FlashParameters;
use crate::scheduling::Scheduling;
use crate::seek::SeekCurve;
use crate::shingles::ShingleParameters;
use crate::stream::StreamPolicy;
use crate::surface::RatePoint;
use raidlab_units::{BytesPerSecond, Nanos, Sectors};
use thiserror::Error;

/// Everything a [`crate::Disk`] needs to know of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct DiskParameters {
    /// Size.
    pub capacity: Sectors,
    /// Time of a revolution.
    pub revolution: Nanos,
    /// Sequential rate along the disk.
    pub rate_curve: Vec<RatePoint>,
    /// The arm.
    pub seek: SeekCurve,
    /// The choice of the next command.
    pub scheduling: Scheduling,
    /// Command overhead of a read answered, or a write taken, by the cache.
    pub overhead_cached: Nanos,
    /// Command overhead before the arm can start, where the disk was idle or
    /// reading ahead.
    pub overhead_idle: Nanos,
    /// What remains of it where it overlaps the command before.
    pub overhead_queued: Nanos,
    /// Transfer rate of the interface.
    pub interface: BytesPerSecond,
    /// Read-ahead segments; 0 switches the read cache off.
    pub segments: usize,
    /// Writes that the cache holds and the scheduler sees; when it is full
    /// the host waits. 0 writes through.
    pub write_window: usize,
    /// Longer settle before a write.
    pub write_settle: Nanos,
    /// Sequential streams.
    pub stream: StreamPolicy,
    /// Shingled tracks; `None`: tracks that do not overlap.
    pub shingles: Option<ShingleParameters>,
    /// Flash in place of arm and platters, whose numbers mean nothing then; the
    /// write window counts its pages.
    pub flash: Option<FlashParameters>,
    /// How long a discard takes beside the overhead of a command that the cache
    /// answers; `None`: the disk takes none.
    pub discard: Option<Nanos>,
}

/// A number that no disk can have.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{field}: {problem}")]
pub struct ParameterError {
    /// The field, as named in preset files.
    pub field: &'static str,
    /// What is wrong with it.
    pub problem: &'static str,
}

impl DiskParameters {
    /// Checks that the numbers describe a disk.
    ///
    /// # Errors
    /// Names the first field that does not.
    pub fn validate(&self) -> Result<(), ParameterError> {
        let curve = &self.rate_curve;
        let checks = [
            (
                "capacity",
                self.capacity.0 >= 2048,
                "must be at least 1 MiB",
            ),
            ("capacity", self.capacity.0 < 1 << 42, "must be below 2 PiB"),
            (
                "revolution",
                (1_000_000..100_000_000).contains(&self.revolution.0),
                "must be between 1 ms and 100 ms",
            ),
            ("rate_curve", !curve.is_empty(), "must have a point"),
            (
                "rate_curve",
                curve.iter().all(|point| {
                    (1e5..1e11).contains(&point.bytes_per_second)
                        && (0.0..=1.0).contains(&point.place)
                }),
                "places must be 0 to 1, rates 0.1 MB/s to 100 GB/s",
            ),
            (
                "rate_curve",
                curve.windows(2).all(|pair| pair[0].place < pair[1].place),
                "places must rise",
            ),
            (
                "seek",
                [self.seek.settle_ns, self.seek.root_ns, self.seek.slope_ns]
                    .iter()
                    .all(|time| (0.0..1e9).contains(time)),
                "times must be between 0 and 1 s",
            ),
            (
                "seek.knee",
                (0.0..=1.0).contains(&self.seek.knee),
                "must be 0 to 1",
            ),
            (
                "scheduling",
                self.scheduling.margin_ns < self.revolution.0
                    && self.scheduling.jitter_ns < self.revolution.0,
                "margin and jitter must be below a revolution",
            ),
            (
                "scheduling.age_weight",
                (0.0..=1.0).contains(&self.scheduling.age_weight),
                "must be 0 to 1",
            ),
            (
                "interface",
                (1e6..1e12).contains(&self.interface.0),
                "must be between 1 MB/s and 1 TB/s",
            ),
            (
                "overhead",
                [
                    self.overhead_cached,
                    self.overhead_idle,
                    self.overhead_queued,
                ]
                .iter()
                .all(|overhead| overhead.0 < 1_000_000_000),
                "must be below 1 s",
            ),
            (
                "write_settle",
                self.write_settle.0 < 1_000_000_000,
                "must be below 1 s",
            ),
            (
                "shingles",
                self.shingles.is_none_or(|shingles| {
                    shingles.band.0 >= 1 << 20
                        && shingles.band.0 <= self.capacity.to_bytes().0
                        && shingles.cache.0 >= 1 << 20
                        && shingles.extents >= 1
                        && shingles.stream.0 < 1 << 50
                        && shingles.idle.0 < 1 << 50
                }),
                "a band and the cache have at least 1 MiB, the map an entry, and bands fit on the disk",
            ),
            (
                "flash",
                self.flash.is_none_or(|flash| {
                    (1..=4096).contains(&flash.dies)
                        && (512..=1 << 20).contains(&flash.page.0)
                        && flash.page.0.is_multiple_of(512)
                        && flash.read.0 < 1_000_000_000
                        && flash.program.0 < 1_000_000_000
                }),
                "1 to 4096 dies, pages of 512 bytes to 1 MiB, times below 1 s",
            ),
            (
                "discard",
                self.discard.is_none_or(|time| time < Nanos::SECOND),
                "must be below 1 s",
            ),
            ("segments", self.segments <= 4096, "must be at most 4096"),
            (
                "write_window",
                self.write_window <= 65_536,
                "must be at most 65536",
            ),
        ];
        match checks.iter().find(|check| !check.1) {
            Some(&(field, _, problem)) => Err(ParameterError { field, problem }),
            None => Ok(()),
        }
    }
}
