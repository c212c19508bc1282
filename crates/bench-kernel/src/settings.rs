//! How the guests of a bench are, and their disks.

use raidlab_lab::Files;
use raidlab_uml_calendar::ScheduledFault;
use raidlab_units::Bytes;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How the guests are.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Of each guest's memory.
    pub memory: Bytes,
    /// The part of each disk that is used: the outermost; `None`: all of it.
    pub member: Option<Bytes>,
    /// Virtual time that reading the clock takes, nanoseconds.
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
