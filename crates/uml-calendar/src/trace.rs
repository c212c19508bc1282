//! The trace of a run's device I/O, and its digest.
//!
//! Two runs are the same if every command came to the same disk at the same time, asked for the
//! same sectors, and ended at the same time in the same way. The digest of all that, in the order
//! of the ends, is one number to compare.

use crate::drive::DiskOperation;
use raidlab_units::{FNV_BASIS, Nanos, Sectors, fnv1a};

/// A command that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceRecord {
    /// The virtual time at which the command came to the disk.
    pub arrived: Nanos,
    /// The virtual time at which the command ended.
    pub completed: Nanos,
    /// The disk's number, counted from 0.
    pub disk: usize,
    /// The operation that the command asked of the disk.
    pub operation: DiskOperation,
    /// The first sector of 512 bytes; 0 for a flush.
    pub start: Sectors,
    /// The number of sectors; 0 for a flush.
    pub count: Sectors,
    /// Whether the command succeeded; false where it ended with an error.
    pub good: bool,
}

/// The digest of a trace: FNV-1a of 64 bits over the records' numbers, little endian. It guards
/// against accident, not against malice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceDigest {
    hash: u64,
    records: u64,
}

impl Default for TraceDigest {
    fn default() -> Self {
        Self {
            hash: FNV_BASIS,
            records: 0,
        }
    }
}

impl TraceDigest {
    pub(crate) fn add(&mut self, record: &TraceRecord) {
        let numbers = [
            record.arrived.0,
            record.completed.0,
            record.disk as u64,
            record.operation as u64,
            record.start.0,
            record.count.0,
            u64::from(record.good),
        ];
        let bytes = numbers.iter().flat_map(|number| number.to_le_bytes());
        self.hash = fnv1a(self.hash, bytes);
        self.records += 1;
    }

    /// The digest as a number.
    #[must_use]
    pub fn value(&self) -> u64 {
        self.hash
    }

    /// The number of records that it covers.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.records
    }
}
