//! The properties of an array of md.

use super::{ConsistencyPolicy, MdLevel, MdSpec};
use crate::array::described::{Described, data_of, written};

impl Described for MdSpec {
    fn title(&self) -> String {
        format!("md {}", self.level.name())
    }

    fn level(&self) -> Option<&'static str> {
        Some(self.level.name())
    }

    fn data_members(&self, count: usize) -> Option<u64> {
        data_of(self.level.name(), self.active(count))
    }

    fn member_bytes_per_byte(&self, count: usize) -> Option<f64> {
        let members = self.active(count);
        let whole = members as f64;
        let data = match self.level {
            MdLevel::Linear | MdLevel::Raid0 => whole,
            MdLevel::Raid1 => 1.0,
            MdLevel::Raid10 => whole / self.raid10_copies() as f64,
            MdLevel::Raid4 | MdLevel::Raid5 => whole - 1.0,
            MdLevel::Raid6 => whole - 2.0,
        };
        written(members, data)
    }

    /// Spares replace missing members, and a journal is not a member of the array proper.
    fn may_miss(&self, count: usize) -> Option<usize> {
        if self.active(count) < count {
            return None;
        }
        match self.level {
            MdLevel::Linear | MdLevel::Raid0 => Some(0),
            MdLevel::Raid1 => Some(count.saturating_sub(1)),
            MdLevel::Raid4 | MdLevel::Raid5 => Some(1),
            MdLevel::Raid6 => Some(2),
            // The remaining members must hold a copy of everything.
            MdLevel::Raid10 => Some(count - count.div_ceil(self.raid10_copies().max(1))),
        }
    }

    fn version_command(&self) -> Option<(&'static str, &'static [&'static str])> {
        Some(("mdadm", &["--version"]))
    }

    fn role(&self, count: usize, slot: usize) -> Option<&'static str> {
        let journal = self.consistency_policy == Some(ConsistencyPolicy::Journal);
        if journal && slot + 1 == count {
            Some("journal")
        } else if slot >= self.active(count) {
            Some("spare")
        } else if self.level == MdLevel::Raid1 && self.write_mostly.contains(&slot) {
            Some("write-mostly")
        } else {
            None
        }
    }

    fn has_first_sync(&self) -> bool {
        !self.assume_clean && self.level.redundant()
    }

    fn leave_out_first_sync(&mut self) {
        self.assume_clean = true;
    }
}
