//! The parameters of arm and platters, and their names in preset files.

use super::Platters;
use super::scheduling::Scheduling;
use super::seek::SeekCurve;
use super::stream::StreamPolicy;
use crate::medium::{Facts, MediumKind, Number};
use crate::medium::parameters::{DiskParameters, ParameterError, check};
use raidlab_random::Stream;
use raidlab_units::{Bytes, Nanos};

/// Parameters of a mechanical disk.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PlatterParameters {
    /// The time of one revolution.
    pub revolution: Nanos,
    /// The time of a move of the arm, by its distance.
    pub seek: SeekCurve,
    /// The choice of the next command.
    pub scheduling: Scheduling,
    /// The command overhead before the arm can start, where the disk was idle or reading ahead.
    pub overhead_idle: Nanos,
    /// The remaining overhead where it overlaps the command before.
    pub overhead_queued: Nanos,
    /// The number of read-ahead segments; 0 switches the read cache off.
    pub segments: usize,
    /// The additional settle time before a write.
    pub write_settle: Nanos,
    /// The recognition of sequential streams, and their read-ahead.
    pub stream: StreamPolicy,
}

impl MediumKind for PlatterParameters {
    type Mechanism = Platters;

    const FACTS: Facts = Facts {
        rotational: true,
        like: None,
        shared_names: &[],
        own_names: &[
            "capacity_sectors",
            "revolution_us",
            "seek_settle_ms",
            "seek_root_ms",
            "seek_knee",
            "seek_slope_ms",
            "schedule_margin_ms",
            "schedule_jitter_ms",
            "schedule_age_weight",
            "overhead_cached_ms",
            "overhead_idle_ms",
            "overhead_queued_ms",
            "interface_bytes_per_second",
            "read_segments",
            "write_window",
            "write_settle_ms",
            "read_ahead_sequential_bytes",
            "read_ahead_random_bytes",
            "slack_seek_limit_ms",
            "slack_limit_ms",
            "follow_on_wait_us",
            "visit_budget_bytes",
        ],
    };

    fn blank() -> Self {
        Self::default()
    }

    fn set(&mut self, name: &str, number: Number) -> bool {
        let (value, whole) = (number.value, number.whole());
        match name {
            "revolution_us" => self.revolution = number.microseconds(),
            "seek_settle_ms" => self.seek.settle_ns = value.max(0.0) * 1e6,
            "seek_root_ms" => self.seek.root_ns = value.max(0.0) * 1e6,
            "seek_knee" => self.seek.knee = value,
            "seek_slope_ms" => self.seek.slope_ns = value.max(0.0) * 1e6,
            "schedule_margin_ms" => self.scheduling.margin_ns = number.milliseconds().0,
            "schedule_jitter_ms" => self.scheduling.jitter_ns = number.milliseconds().0,
            "schedule_age_weight" => self.scheduling.age_weight = value,
            "overhead_idle_ms" => self.overhead_idle = number.milliseconds(),
            "overhead_queued_ms" => self.overhead_queued = number.milliseconds(),
            "read_segments" => self.segments = number.count(),
            "write_settle_ms" => self.write_settle = number.milliseconds(),
            "read_ahead_sequential_bytes" => self.stream.sequential_read_ahead = Bytes(whole),
            "read_ahead_random_bytes" => self.stream.random_read_ahead = Bytes(whole),
            "slack_seek_limit_ms" => self.stream.slack_seek_limit = number.milliseconds(),
            "slack_limit_ms" => self.stream.slack_limit = number.milliseconds(),
            "follow_on_wait_us" => self.stream.follow_on_wait = number.microseconds(),
            "visit_budget_bytes" => {
                self.stream.visit_budget = (whole > 0).then_some(Bytes(whole));
            }
            _ => return false,
        }
        true
    }

    fn validate(&self, _disk: &DiskParameters) -> Result<(), ParameterError> {
        let (seek, scheduling, turn) = (&self.seek, &self.scheduling, self.revolution.0);
        let fractions = [
            ("seek_knee", seek.knee),
            ("schedule_age_weight", scheduling.age_weight),
        ];
        let times = [
            ("seek_settle_ms", Nanos::from_secs_f64(seek.settle_ns / 1e9)),
            ("seek_root_ms", Nanos::from_secs_f64(seek.root_ns / 1e9)),
            ("seek_slope_ms", Nanos::from_secs_f64(seek.slope_ns / 1e9)),
            ("overhead_idle_ms", self.overhead_idle),
            ("overhead_queued_ms", self.overhead_queued),
            ("write_settle_ms", self.write_settle),
            // A stream that stays away does not hold up the arm for longer.
            ("follow_on_wait_us", self.stream.follow_on_wait),
        ];
        let fractions =
            fractions.map(|(name, part)| (name, (0.0..=1.0).contains(&part), "must be 0 to 1"));
        let times = times.map(|(name, time)| (name, time < Nanos::SECOND, "must be below 1 s"));
        check(&[(
            "revolution_us",
            (1_000_000..100_000_000).contains(&turn),
            "must be between 1 ms and 100 ms",
        )])?;
        check(&times)?;
        check(&fractions)?;
        check(&[
            (
                "schedule_margin_ms",
                scheduling.margin_ns < turn,
                "must be below a revolution",
            ),
            (
                "schedule_jitter_ms",
                scheduling.jitter_ns < turn,
                "must be below a revolution",
            ),
            ("read_segments", self.segments <= 4096, "must be at most 4096"),
        ])
    }

    fn build(&self, disk: &DiskParameters, angle: Nanos, random: Stream) -> Platters {
        Platters::new(disk, self, None, angle, random)
    }

    fn platters(&self) -> Option<&Self> {
        Some(self)
    }

    fn platters_mut(&mut self) -> Option<&mut Self> {
        Some(self)
    }
}
