//! What was done at each place, for reports.

use super::Transfer;
use serde::{Deserialize, Serialize};

/// What was done at one place since the member was attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MemberCounters {
    /// How many reads were completed.
    pub reads: u64,
    /// Bytes of these reads.
    pub read_bytes: u64,
    /// How many writes were completed.
    pub writes: u64,
    /// Bytes of these writes.
    pub written_bytes: u64,
    /// How many flushes were completed.
    pub flushes: u64,
    /// How many discards were completed.
    pub discards: u64,
    /// Commands that failed.
    pub errors: u64,
    /// Commands under way.
    pub in_flight: u64,
    /// Service times of all completed commands, summed, in nanoseconds.
    pub service_ns: u64,
}

impl MemberCounters {
    /// A command has ended.
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
