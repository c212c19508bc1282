//! Counters of the commands at each place, for reports.

use super::Transfer;
use serde::{Deserialize, Serialize};

/// The commands at one place since the member was attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MemberCounters {
    /// The number of reads completed.
    pub reads: u64,
    /// Bytes of the completed reads.
    pub read_bytes: u64,
    /// The number of writes completed.
    pub writes: u64,
    /// Bytes of the completed writes.
    pub written_bytes: u64,
    /// The number of flushes completed.
    pub flushes: u64,
    /// The number of discards completed.
    pub discards: u64,
    /// The number of commands that failed.
    pub errors: u64,
    /// The number of commands under way.
    pub in_flight: u64,
    /// Service times of all completed commands, summed, in nanoseconds.
    pub service_ns: u64,
}

impl MemberCounters {
    /// Counts a command that has ended.
    pub(super) fn count(&mut self, transfer: &Transfer, good: bool) {
        self.in_flight = self.in_flight.saturating_sub(1);
        if !good {
            self.errors += 1;
            return;
        }
        match transfer {
            Transfer::Read(bytes) => {
                self.reads += 1;
                self.read_bytes += bytes.len() as u64;
            }
            Transfer::Write { data, .. } => {
                self.writes += 1;
                self.written_bytes += data.len() as u64;
            }
            Transfer::Flush => self.flushes += 1,
            Transfer::Discard { .. } => self.discards += 1,
        }
    }
}
