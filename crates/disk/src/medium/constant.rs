//! A disk that can be computed by hand: first come, first served; a constant time for
//! every access that does not continue the one before, and a constant rate.
//!
//! It is for tests against queueing theory, and for questions in which the disk's behaviour should
//! not matter. Written data are durable when the write is complete.

use super::{Facts, Mechanism, MediumKind, Number};
use crate::command::{Command, CommandKind, Completion};
use crate::interface::Interface;
use crate::medium::parameters::{DiskParameters, ParameterError};
use raidlab_random::Stream;
use raidlab_units::{Nanos, SECTOR_BYTES};

/// Parameters of a disk with a constant access time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameters {
    /// The time of an access that begins elsewhere than the one before ended.
    pub access: Nanos,
}

impl MediumKind for Parameters {
    type Mechanism = Constant;

    const FACTS: Facts = Facts {
        rotational: false,
        like: Some(super::Medium::Platters),
        shared_names: &["capacity_sectors", "interface_bytes_per_second"],
        own_names: &["constant_access_us"],
    };

    fn blank() -> Self {
        Self { access: Nanos::MAX }
    }

    fn set(&mut self, name: &str, value: Number) -> bool {
        let known = name == "constant_access_us";
        if known {
            self.access = value.microseconds();
        }
        known
    }

    fn validate(&self, _disk: &DiskParameters) -> Result<(), ParameterError> {
        if self.access < Nanos::from_secs(100) {
            return Ok(());
        }
        Err(ParameterError {
            field: "constant_access_us",
            problem: "must be below 100 s",
        })
    }

    fn build(&self, disk: &DiskParameters, _angle: Nanos, _random: Stream) -> Constant {
        Constant {
            access: self.access.0,
            interface: Interface::new(disk),
            free_at: 0,
            head: 0,
        }
    }
}

/// The mechanism of the disk.
#[derive(Debug, Clone)]
pub(crate) struct Constant {
    access: u64,
    interface: Interface,
    /// The time at which all submitted commands are done.
    free_at: u64,
    /// The sector after the last access.
    head: u64,
}

impl Mechanism for Constant {
    fn submit(&mut self, now: u64, command: &Command) {
        self.free_at = self.free_at.max(now + self.interface.overhead);
        match command.kind {
            CommandKind::Discard => return self.interface.discard(now, command.tag),
            CommandKind::Flush => {}
            CommandKind::Read | CommandKind::Write | CommandKind::WriteThrough => {
                if command.start.0 != self.head {
                    self.free_at += self.access;
                }
                self.head = command.end();
                let bytes = command.count.0 * SECTOR_BYTES;
                self.free_at += self.interface.transfer_time(bytes);
            }
        }
        self.interface.complete(self.free_at, command.tag);
    }

    fn next_event(&self) -> u64 {
        self.interface.next()
    }

    fn advance(&mut self, now: u64, completions: &mut Vec<Completion>) {
        self.interface.hand_over(now, completions);
    }

    fn is_quiet(&self) -> bool {
        self.interface.is_quiet()
    }
}

#[cfg(test)]
mod tests;
