//! The properties of bcache: mostly those of the array behind it.

use super::BcacheSpec;
use crate::array::described::Described;

impl Described for BcacheSpec {
    fn title(&self) -> String {
        match &self.md {
            Some(md) => format!("bcache {} before {}", self.mode.name(), md.title()),
            None => format!("bcache {}", self.mode.name()),
        }
    }

    fn level(&self) -> Option<&'static str> {
        self.md.as_ref().map_or(Some("single"), Described::level)
    }

    fn data_members(&self, count: usize) -> Option<u64> {
        self.md.as_ref()?.data_members(count.saturating_sub(1))
    }

    fn role(&self, count: usize, slot: usize) -> Option<&'static str> {
        if slot + 1 >= count {
            Some("cache")
        } else {
            self.md.as_ref()?.role(count - 1, slot)
        }
    }

    fn has_first_sync(&self) -> bool {
        self.md.as_ref().is_some_and(Described::has_first_sync)
    }

    fn leave_out_first_sync(&mut self) {
        if let Some(md) = &mut self.md {
            md.leave_out_first_sync();
        }
    }
}
