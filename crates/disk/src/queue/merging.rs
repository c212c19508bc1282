//! How commands that wait become one.
//!
//! Linux puts a new command together with one that waits if one of the two continues the other
//! (`blk_mq_sched_try_merge` in `block/blk-merge.c` of 6.12). What waited has grown then, and may
//! touch another one that waits: its end the next one's start, or its start the end of the one
//! before. Then these two become one as well (`attempt_back_merge`, `attempt_front_merge`), which
//! takes the older one's place in the order of arrival (`dd_merged_requests`,
//! `bfq_requests_merged`), and there is room for one more request. Kyber looks
//! at new commands alone (`blk_bio_list_merge`).

use super::waiting::Waiting;
use super::{Queue, Scheduler, Target};

impl<T: Target> Queue<T> {
    /// Puts a command together with one that waits, if one of them continues the other and
    /// the scheduler does such things.
    pub(super) fn merges(&mut self, new: &Waiting) -> bool {
        let largest = self.rules.largest.0;
        if !self.rules.order.is_scheduler() {
            return false;
        }
        let found = match &self.scheduler {
            Scheduler::Kyber(kyber) => {
                let mut latest = kyber.latest(&self.waiting, new);
                latest.find(|&index| self.waiting[index].fits(new, largest))
            }
            _ => self.waiting.iter().position(|old| old.fits(new, largest)),
        };
        let Some(index) = found else {
            return false;
        };
        let old = &mut self.waiting[index];
        let start = old.command.start;
        old.merge(new);
        if let (Some(owner), Scheduler::Bfq(bfq)) = (old.owner, &mut self.scheduler) {
            bfq.grown(owner, &old.command, old.command.start < start);
        }
        if !matches!(self.scheduler, Scheduler::Kyber(_)) {
            self.join(index);
        }
        true
    }

    /// Puts a command that has grown together with the one that it touches now, if any.
    fn join(&mut self, grown: usize) {
        let largest = self.rules.largest.0;
        let mut all = self.waiting.iter();
        let Some(other) = all.position(|one| one.fits(&self.waiting[grown], largest)) else {
            return;
        };
        let gone = self.waiting.remove(grown.max(other));
        let kept = &mut self.waiting[grown.min(other)];
        kept.merge(&gone);
        if let (Some(owner), Scheduler::Bfq(bfq)) = (kept.owner, &mut self.scheduler) {
            bfq.joined(owner, &kept.command, &gone);
        }
    }
}
