//! The properties of a volume of LVM.

use super::{LvmLevel, LvmSpec};
use crate::array::described::{Described, data_of, written};
use crate::words::{RefusedWord, check_value};

impl Described for LvmSpec {
    fn title(&self) -> String {
        match &self.cache {
            Some(cache) => format!("LVM {} + {} cache", self.level.name(), cache.mode.name()),
            None => format!("LVM {}", self.level.name()),
        }
    }

    fn level(&self) -> Option<&'static str> {
        Some(self.level.name())
    }

    fn check_words(&self) -> Result<(), RefusedWord> {
        let cache = self.cache.iter();
        let mut words = cache.flat_map(|cache| cache.policy.iter().chain(cache.settings.keys()));
        words.try_for_each(|word| check_value(word))
    }

    fn data_members(&self, count: usize) -> Option<u64> {
        data_of(self.level.name(), self.data_count(count))
    }

    fn member_bytes_per_byte(&self, count: usize) -> Option<f64> {
        if self.cache.is_some() {
            return None;
        }
        let whole = count as f64;
        let data = match self.level {
            LvmLevel::Linear | LvmLevel::Striped | LvmLevel::Raid0 => whole,
            LvmLevel::Raid1 | LvmLevel::Mirror => 1.0,
            LvmLevel::Raid10 => whole / 2.0,
            LvmLevel::Raid5 => whole - 1.0,
            LvmLevel::Raid6 => whole - 2.0,
        };
        written(count, data)
    }

    fn version_command(&self) -> Option<(&'static str, &'static [&'static str])> {
        Some(("lvm", &["version"]))
    }

    fn role(&self, count: usize, slot: usize) -> Option<&'static str> {
        (slot >= self.data_count(count)).then_some("cache")
    }

    fn has_first_sync(&self) -> bool {
        self.level.redundant() && !self.nosync
    }
}
