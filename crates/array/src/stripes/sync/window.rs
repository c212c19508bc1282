//! How large a window of a sync is, and how many may be in work.

use super::{BLOCK, Pause};
use crate::stripes::StripeArray;
use raidlab_units::Sectors;

impl StripeArray {
    /// Takes the window that begins at `start` from what is to be done; gives its
    /// end. Blocks that could all start in this instant are one window.
    pub(super) fn take_window(&mut self, start: u64) -> u64 {
        let unit = self.sync_unit();
        let depth = self.sync_depth();
        let rule = &self.config.sync;
        let longest = rule.merged.map_or(unit, |merged| merged.to_sectors().0);
        let chunk = self.map.chunk().0;
        let row_end = start / chunk * chunk + chunk;
        let Some(sync) = &mut self.syncs.running else {
            return start + BLOCK;
        };
        let (mut end, mut limit) = (start + BLOCK, start + BLOCK);
        if sync.blocks.pop_first().is_none() {
            let (_, to) = sync.todo.first().unwrap_or((start, end));
            let left = (unit * depth).saturating_sub(sync.in_flight_sectors);
            limit = to.min(row_end).min(start + longest.min(self.longest));
            end = limit.min(start + unit);
            limit = limit.min(start + left.max(unit));
        }
        if std::mem::take(&mut sync.starved) {
            limit = end;
            self.habits.grow();
            sync.pause = Pause::Until(rule.after_a_tick(self.now));
        }
        let mut at = start;
        loop {
            sync.throttle_due = sync.governor.issued(Sectors(end - at));
            sync.in_flight_sectors += end - at;
            if end >= limit {
                break;
            }
            let due = &mut sync.throttle_due;
            let in_flight = sync.in_flight_sectors;
            sync.pause = sync.governor.pause(due, self.now, in_flight, &self.members);
            if sync.pause != Pause::None {
                break;
            }
            at = end;
            end = limit.min(end + unit);
        }
        sync.todo.remove(start, end);
        sync.in_work.insert(start);
        end
    }

    /// Sectors of a block of syncs.
    fn sync_unit(&self) -> u64 {
        let block = self.config.sync.block.to_sectors().0 / BLOCK * BLOCK;
        block.clamp(BLOCK, self.longest)
    }

    /// Blocks that may be in work.
    fn sync_depth(&self) -> u64 {
        u64::from(self.config.sync.depth) + self.habits.grown()
    }

    /// Whether as many blocks are in work as may be. md's are stripes of its
    /// cache: once it had none left, it waits until fewer than three quarters are
    /// in use, takes one and sleeps for a tick (Linux 6.12 drivers/md/raid5.c,
    /// `raid5_get_active_stripe` and `raid5_sync_request`), and its cache grows by
    /// one (`raid5d`, `grow_one_stripe`).
    pub(super) fn is_sync_full(&mut self) -> bool {
        let unit = self.sync_unit();
        let depth = self.sync_depth();
        let merges = self.config.sync.merged.is_some();
        let lacks_stripes = self.lacks_stripes_for_sync();
        let Some(sync) = &mut self.syncs.running else {
            return true;
        };
        if !merges {
            return sync.in_work.len() as u64 >= depth;
        }
        let units = sync.in_flight_sectors.div_ceil(unit);
        sync.starved |= units >= depth || lacks_stripes;
        units >= depth || lacks_stripes || sync.starved && units * 4 >= depth * 3
    }

    pub(in crate::stripes) fn sync_sectors_in_work(&self) -> u64 {
        let running = self.syncs.running.as_ref();
        running.map_or(0, |sync| sync.in_flight_sectors)
    }
}
