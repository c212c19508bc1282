//! Parameters by name: what preset files, fits and listings call them.

use crate::flash::FlashParameters;
use crate::parameters::DiskParameters;
use crate::scheduling::{Order, Scheduling};
use crate::seek::SeekCurve;
use crate::shingles::ShingleParameters;
use crate::stream::StreamPolicy;
use crate::surface::RatePoint;
use raidlab_units::{Bytes, BytesPerSecond, Nanos, Sectors};

/// Every parameter name: unit last.
pub(crate) const NAMES: [&str; 23] = [
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
    "visit_queue_limit",
];

/// Those that only shingled disks have, all or none.
pub(crate) const SHINGLED: [&str; 5] = [
    "shingle_cache_bytes",
    "shingle_cache_extents",
    "shingle_band_bytes",
    "shingle_stream_bytes",
    "shingle_idle_ms",
];

/// All that a solid-state disk has.
pub(crate) const FLASH: [&str; 8] = [
    "capacity_sectors",
    "overhead_cached_ms",
    "interface_bytes_per_second",
    "write_window",
    "flash_dies",
    "flash_page_bytes",
    "flash_read_us",
    "flash_program_us",
];

/// What any disk may have.
pub(crate) const OPTIONAL: [&str; 1] = ["discard_us"];

impl DiskParameters {
    /// A disk with a rate curve and nothing else: not valid until every named
    /// parameter is set.
    pub(crate) fn blank(rate_curve: Vec<RatePoint>) -> Self {
        Self {
            capacity: Sectors::ZERO,
            revolution: Nanos::ZERO,
            rate_curve,
            seek: SeekCurve {
                settle_ns: 0.0,
                root_ns: 0.0,
                knee: 0.0,
                slope_ns: 0.0,
            },
            scheduling: Scheduling {
                order: Order::Rotation,
                margin_ns: 0,
                jitter_ns: 0,
                age_weight: 0.0,
                single_pool: false,
            },
            overhead_cached: Nanos::ZERO,
            overhead_idle: Nanos::ZERO,
            overhead_queued: Nanos::ZERO,
            interface: BytesPerSecond(0.0),
            segments: 0,
            write_window: 0,
            write_settle: Nanos::ZERO,
            stream: StreamPolicy {
                sequential_read_ahead: Bytes(0),
                random_read_ahead: Bytes(0),
                slack_seek_limit: Nanos::ZERO,
                slack_limit: Nanos::ZERO,
                follow_on_wait: Nanos::ZERO,
                visit_budget: None,
                visit_queue_limit: 0,
            },
            shingles: None,
            flash: None,
            discard: None,
        }
    }

    /// Sets a parameter by its name in preset files; false if there is none of
    /// that name. Negative values count as 0.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "float to integer casts saturate, and 0 is the smallest value of all of them"
    )]
    pub fn set_named(&mut self, name: &str, value: f64) -> bool {
        let milliseconds = Nanos::from_secs_f64(value / 1e3);
        let microseconds = Nanos::from_secs_f64(value / 1e6);
        let whole = value as u64;
        match name {
            "capacity_sectors" => self.capacity = Sectors(whole),
            "revolution_us" => self.revolution = microseconds,
            "seek_settle_ms" => self.seek.settle_ns = value.max(0.0) * 1e6,
            "seek_root_ms" => self.seek.root_ns = value.max(0.0) * 1e6,
            "seek_knee" => self.seek.knee = value,
            "seek_slope_ms" => self.seek.slope_ns = value.max(0.0) * 1e6,
            "schedule_margin_ms" => self.scheduling.margin_ns = milliseconds.0,
            "schedule_jitter_ms" => self.scheduling.jitter_ns = milliseconds.0,
            "schedule_age_weight" => self.scheduling.age_weight = value,
            "overhead_cached_ms" => self.overhead_cached = milliseconds,
            "overhead_idle_ms" => self.overhead_idle = milliseconds,
            "overhead_queued_ms" => self.overhead_queued = milliseconds,
            "interface_bytes_per_second" => self.interface = BytesPerSecond(value),
            "read_segments" => self.segments = whole as usize,
            "write_window" => self.write_window = whole as usize,
            "write_settle_ms" => self.write_settle = milliseconds,
            "read_ahead_sequential_bytes" => self.stream.sequential_read_ahead = Bytes(whole),
            "read_ahead_random_bytes" => self.stream.random_read_ahead = Bytes(whole),
            "slack_seek_limit_ms" => self.stream.slack_seek_limit = milliseconds,
            "slack_limit_ms" => self.stream.slack_limit = milliseconds,
            "follow_on_wait_us" => self.stream.follow_on_wait = microseconds,
            "visit_budget_bytes" => {
                self.stream.visit_budget = (whole > 0).then_some(Bytes(whole));
            }
            "visit_queue_limit" => self.stream.visit_queue_limit = whole as usize,
            _ => return self.set_other_media(name, whole, microseconds, milliseconds),
        }
        true
    }

    /// The numbers of disks that are not plain platters.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "more dies than 4096 are refused"
    )]
    fn set_other_media(&mut self, name: &str, whole: u64, micro: Nanos, milli: Nanos) -> bool {
        let none = ShingleParameters {
            cache: Bytes(0),
            extents: 0,
            band: Bytes(0),
            stream: Bytes(0),
            idle: Nanos::ZERO,
        };
        let nothing = FlashParameters {
            dies: 0,
            page: Bytes(0),
            read: Nanos::ZERO,
            program: Nanos::ZERO,
        };
        match name {
            "shingle_cache_bytes" => self.shingles.get_or_insert(none).cache = Bytes(whole),
            "shingle_cache_extents" => {
                self.shingles.get_or_insert(none).extents = whole as usize;
            }
            "shingle_stream_bytes" => self.shingles.get_or_insert(none).stream = Bytes(whole),
            "shingle_band_bytes" => self.shingles.get_or_insert(none).band = Bytes(whole),
            "shingle_idle_ms" => self.shingles.get_or_insert(none).idle = milli,
            "flash_dies" => self.flash.get_or_insert(nothing).dies = whole as usize,
            "flash_page_bytes" => self.flash.get_or_insert(nothing).page = Bytes(whole),
            "flash_read_us" => self.flash.get_or_insert(nothing).read = micro,
            "discard_us" => self.discard = Some(micro),
            "flash_program_us" => self.flash.get_or_insert(nothing).program = micro,
            _ => return false,
        }
        true
    }

    /// Every name that the parameters of platters have, unit last.
    #[must_use]
    pub fn names() -> &'static [&'static str] {
        &NAMES
    }
}

#[cfg(test)]
mod tests {
    use super::{DiskParameters, FLASH, NAMES, OPTIONAL, SHINGLED};

    #[test]
    fn every_name_sets_something() {
        let known = NAMES.into_iter().chain(SHINGLED).chain(FLASH);
        for name in known.chain(OPTIONAL) {
            let blank = DiskParameters::blank(Vec::new());
            let mut set = blank.clone();
            assert!(set.set_named(name, 3.0), "{name}");
            assert_ne!(set, blank, "{name}");
        }
        assert!(!DiskParameters::blank(Vec::new()).set_named("seek", 1.0));
    }
}
