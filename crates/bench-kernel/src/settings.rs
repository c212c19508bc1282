//! The settings of a bench's guests, and of their disks.

use raidlab_bench_model::presets::{ProcessorNumbers, ProcessorPreset};
use raidlab_lab::Files;
use raidlab_uml::Charges;
use raidlab_uml_calendar::ScheduledFault;
use raidlab_units::Bytes;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The time of a reading of the clock in a guest with flash: fio 3.33 does so five times for a
/// request and the kernel twice, and the processor `desktop-2015` has 350 ns for fio's own work.
const FLASH_READING_NS: u32 = 50;
/// The number of readings of the clock for a request of fio's.
const READINGS: f64 = 7.0;
/// The number of system calls for a request of fio's.
const CALLS: f64 = 2.0;

/// The settings by which the guests of a run are made.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The main memory of each guest.
    pub memory: Bytes,
    /// The part of each disk that is used, which is the outermost; `None`: all of it.
    pub member: Option<Bytes>,
    /// The virtual time that reading the clock takes where all disks turn, in nanoseconds; it is a
    /// system call beside that.
    pub clock_cost_ns: u32,
    /// The virtual time that a system call takes where no processor says it, in nanoseconds.
    pub call_cost_ns: u32,
    /// The processor of which one core computes in the guest; `None`: computing takes no time.
    pub processor: Option<ProcessorPreset>,
    /// The real time after which a guest that shows no sign of life spins.
    pub patience: Duration,
    /// The faults of disks, by their place among the members.
    pub faults: Vec<(usize, ScheduledFault)>,
    /// The folder in which every command of every disk is written down, a file for each experiment.
    pub commands: Option<PathBuf>,
    /// The files from which the disks' presets are read.
    pub files: Arc<Files>,
}

/// The costs of a guest's readings of its clock, in virtual time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClockCost {
    /// The time that reading the clock itself takes, in nanoseconds.
    pub(crate) reading_ns: u32,
    /// The time of the system call that it is, in nanoseconds; `None`: as any other.
    pub(crate) call_ns: Option<u32>,
}

impl Settings {
    /// The costs of the clock for a guest with flash or without, on a kernel whose programs
    /// read the clock by themselves or not. Where each reading stops the program, fio's start
    /// needs a million of the short ones. With a processor, fio's work for a request is the
    /// time of its readings.
    pub(crate) fn clock(&self, flash: bool, by_itself: bool) -> ClockCost {
        if let Some(processor) = &self.processor {
            let numbers = &processor.numbers;
            ClockCost {
                reading_ns: whole(numbers.user_ns / numbers.speed / READINGS),
                call_ns: Some(0),
            }
        } else if flash && by_itself {
            ClockCost {
                reading_ns: FLASH_READING_NS,
                call_ns: Some(0),
            }
        } else {
            ClockCost {
                reading_ns: self.clock_cost_ns,
                call_ns: None,
            }
        }
    }

    /// The time that a system call takes, in nanoseconds.
    pub(crate) fn call_ns(&self) -> u32 {
        self.processor.as_ref().map_or(self.call_cost_ns, |one| {
            whole(one.numbers.call_ns / one.numbers.speed / CALLS)
        })
    }
}

/// The charges of the kernel with this processor.
pub(crate) fn charges(numbers: &ProcessorNumbers) -> Charges {
    let time = |nanos: f64| femtoseconds(nanos * 1e6 / numbers.speed);
    let byte = |per_second: f64| femtoseconds(1e15 / (per_second * numbers.speed));
    Charges {
        switch: time(numbers.switch_ns),
        wake_call: time(numbers.wake_call_ns),
        dispatch: time(numbers.dispatch_ns),
        interrupt: time(numbers.interrupt_ns),
        complete: time(numbers.complete_ns),
        request: time(numbers.request_ns),
        request_end: time(numbers.request_end_ns),
        member: time(numbers.clone_ns + numbers.clone_end_ns),
        bitmap: time(numbers.bitmap_ns),
        find: time(numbers.find_ns),
        handle: time(numbers.handle_ns),
        release: time(numbers.release_ns),
        xor: byte(numbers.xor_bytes_per_second),
        pq: byte(numbers.pq_bytes_per_second),
        copy: byte(numbers.copy_bytes_per_second),
    }
}

// The numbers are those of a processor, within their ranges.
fn femtoseconds(number: f64) -> u64 {
    number.round() as u64
}

fn whole(nanos: f64) -> u32 {
    u32::try_from(femtoseconds(nanos)).unwrap_or(u32::MAX)
}

impl Default for Settings {
    /// The default settings: 512 MiB, 4 GiB of each disk, 2048 ns for the clock, 1 µs for a call, a
    /// minute of patience.
    fn default() -> Self {
        Self {
            memory: Bytes(512 << 20),
            member: Some(Bytes(4 << 30)),
            clock_cost_ns: 2048,
            call_cost_ns: 1000,
            processor: None,
            patience: Duration::from_secs(60),
            faults: Vec::new(),
            commands: None,
            files: Arc::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raidlab_bench_model::presets;

    #[test]
    fn reading_the_clock_is_cheap_beside_flash_alone() {
        let settings = Settings::default();
        let cost = |flash, by_itself| {
            let cost = settings.clock(flash, by_itself);
            (cost.reading_ns, cost.call_ns)
        };
        assert_eq!(cost(false, true), (2048, None));
        assert_eq!(cost(true, false), (2048, None));
        assert_eq!(cost(true, true), (50, Some(0)));
    }

    /// The numbers of `desktop-2015` at half the speed: its times are doubled.
    #[test]
    fn a_processor_says_what_calls_readings_and_the_kernel_cost() {
        let mut processor = presets::processor(&Files::default(), "desktop-2015").expect("there");
        processor.numbers.speed = 0.5;
        let charges = charges(&processor.numbers);
        assert_eq!(charges.switch, 2_000_000_000);
        assert_eq!(charges.member, 700_000_000);
        // 12 GB/s at half the speed.
        assert_eq!(charges.xor, 166_667);
        let settings = Settings {
            processor: Some(processor),
            ..Settings::default()
        };
        let clock = settings.clock(false, true);
        assert_eq!((clock.reading_ns, clock.call_ns), (100, Some(0)));
        assert_eq!(settings.call_ns(), 700);
        assert_eq!(Settings::default().call_ns(), 1000);
    }
}
