//! How large a window of a sync is, and how many may be in work.

use super::BLOCK;
use crate::stripes::StripeArray;
use raidlab_units::{Sectors, Span};

impl StripeArray {
    /// Takes the window that begins at `start` from what is to be done; gives its
    /// end.
    pub(super) fn take_window(&mut self, start: u64) -> u64 {
        let unit = self.sync_unit();
        let chunk = self.map.chunk().0;
        let row_end = start / chunk * chunk + chunk;
        let Some(sync) = &mut self.syncs.running else {
            return start + BLOCK;
        };
        let mut end = start + BLOCK;
        if sync.blocks.pop_first().is_none() {
            let to = sync.todo.first().map_or(end, |span| span.end.0);
            end = to.min(row_end).min(start + unit);
        }
        sync.throttle_due = sync.governor.issued(Sectors(end - start));
        sync.in_flight_sectors += end - start;
        sync.todo.remove(Span::new(start, end));
        sync.in_work.insert(start);
        end
    }

    /// Sectors of a block of syncs.
    fn sync_unit(&self) -> u64 {
        let block = self.config.sync.block.to_sectors().0 / BLOCK * BLOCK;
        block.clamp(BLOCK, self.longest)
    }

    /// Whether as many windows are in work as may be.
    pub(super) fn is_sync_full(&self) -> bool {
        let running = self.syncs.running.as_ref();
        running.is_none_or(|sync| sync.in_work.len() >= self.config.sync.depth as usize)
    }
}
