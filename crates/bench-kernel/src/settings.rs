//! How the guests of a bench are, and their disks.

use raidlab_lab::Files;
use raidlab_uml_calendar::ScheduledFault;
use raidlab_units::Bytes;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// What reading the clock takes in a guest with flash: fio 3.33 does so five times for a request
/// and the kernel twice, and the processor `desktop-2015` has 350 ns for what fio does itself.
const FLASH_READING_NS: u32 = 50;

/// How the guests are.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Of each guest's memory.
    pub memory: Bytes,
    /// The part of each disk that is used: the outermost; `None`: all of it.
    pub member: Option<Bytes>,
    /// Virtual time that reading the clock takes where all disks turn, nanoseconds; it is a
    /// system call beside that.
    pub clock_cost_ns: u32,
    /// Virtual time that a system call takes, nanoseconds.
    pub call_cost_ns: u32,
    /// A guest that shows no sign of life for so long of real time spins.
    pub patience: Duration,
    /// What shall happen to disks, by their place among the members.
    pub faults: Vec<(usize, ScheduledFault)>,
    /// Where every command of every disk is written down, a file for each
    /// experiment.
    pub commands: Option<PathBuf>,
    /// Where the disks' files are read.
    pub files: Arc<Files>,
}

/// What it costs a guest to read its clock, in virtual time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClockCost {
    /// Of the reading itself, nanoseconds.
    pub(crate) reading_ns: u32,
    /// Of the system call that it is, nanoseconds; `None`: as any other.
    pub(crate) call_ns: Option<u32>,
}

impl Settings {
    /// For a guest with flash or without, on a kernel whose programs read the clock by
    /// themselves or not. Where each reading stops the program, fio's start needs a million of
    /// the short ones.
    pub(crate) const fn clock(&self, flash: bool, by_itself: bool) -> ClockCost {
        if flash && by_itself {
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
}

impl Default for Settings {
    /// 512 MiB, 4 GiB of each disk, 2048 ns for the clock, 1 µs for a call, a
    /// minute of patience.
    fn default() -> Self {
        Self {
            memory: Bytes(512 << 20),
            member: Some(Bytes(4 << 30)),
            clock_cost_ns: 2048,
            call_cost_ns: 1000,
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
}
