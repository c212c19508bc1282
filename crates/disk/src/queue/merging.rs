//! Merging of waiting commands.
//!
//! Linux merges a new command with a waiting one if one of the two continues the other
//! (`blk_mq_sched_try_merge` in `block/blk-merge.c` of 6.12). The waiting one has then grown,
//! and may touch another waiting one: its end the next one's start, or its start the end of
//! the one before. Then these two are merged as well (`attempt_back_merge`,
//! `attempt_front_merge`), and take the older one's place in the order of arrival
//! (`dd_merged_requests`, `bfq_requests_merged`), and there is room for one more request.
//! Kyber merges new commands only (`blk_bio_list_merge`).

use super::waiting::Waiting;
use super::{Queue, Scheduler, Target};

impl<T: Target> Queue<T> {
    /// Merges a command with a waiting one, if one of them continues the other and
    /// the scheduler merges.
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

    /// Merges a command that has grown with the one that it now touches, if any.
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
