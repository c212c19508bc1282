//! Turns of queues: the sending queue, the end and cost of a turn, and idling of the disk.

use super::process_queue::{LARGE_ON_FLASH, ProcessQueue, SLICE_IDLE, WEIGHT, seeks};
use super::rate;
use super::share::Place;
use super::{Bfq, EXPIRE, SHORT, Sent, TURN};
use crate::command::CommandKind;
use crate::queue::waiting::Waiting;
use raidlab_units::Nanos;

/// The time for which the disk is kept idle for a queue with a raised weight.
const RAISED_IDLE: Nanos = Nanos::from_millis(20);
/// The time after which queues with requests are checked again when none
/// was sent (`BLK_MQ_BUDGET_DELAY`).
const LOOK_AGAIN: Nanos = Nanos::from_millis(3);
/// The length of a turn from which slowness can be judged.
const TELLING: Nanos = Nanos::from_millis(20);

/// The reason for the end of a turn (`enum bfqq_expiration`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The disk was kept idle for the queue, and no request came.
    TooIdle,
    /// The turn lasted too long, or did at the end of idling, which is not counted.
    Timeout,
    IdledTimeout,
    /// The next request is larger than the rest of the budget.
    Exhausted,
    /// The queue has no requests, and the disk is not kept idle for it.
    Empty,
    /// Another queue is to be served.
    Preempted,
}

impl Bfq {
    /// The next request to be sent; `None` if no queue sends now.
    pub(in crate::queue) fn next(&mut self, now: Nanos, waiting: &[Waiting]) -> Option<usize> {
        if self.queued == 0 {
            return None;
        }
        let Some(own) = self.select(now) else {
            self.look_again.get_or_insert(now + LOOK_AGAIN);
            return None;
        };
        self.send(now, own, waiting)
    }

    /// The queue that sends the next request: the one whose turn it is, or the next by weight.
    fn select(&mut self, now: Nanos) -> Option<usize> {
        if let Some(own) = self.serving
            && self.queues[own].times_out(now)
            && !self.must_idle(own)
        {
            self.expire(now, own, End::Timeout);
        }
        loop {
            let own = match self.serving {
                Some(own) => own,
                None => self.begin_turn(now)?,
            };
            let queue = &mut self.queues[own];
            if queue.next.is_some() {
                if queue.next_charge() <= queue.share.left() {
                    if std::mem::take(&mut queue.waited_for) {
                        self.idle_until = None;
                    }
                    return Some(own);
                }
                self.expire(now, own, End::Exhausted);
            } else if queue.waited_for || queue.with_disk > 0 && self.is_worth_idling(own) {
                return self.injects(now, own);
            } else {
                self.expire(now, own, End::Empty);
            }
        }
    }

    /// Begins the turn of the next queue.
    fn begin_turn(&mut self, now: Nanos) -> Option<usize> {
        let own = self.service.next(&mut self.queues)?;
        self.serving = Some(own);
        self.rate.give_budget();
        let queue = &mut self.queues[own];
        queue.oldest_seen = false;
        queue.until = Some(now + TURN * queue.turn_factor(now));
        self.turn_began = now;
        Some(own)
    }

    /// The queue that may send while the disk is kept idle for another one.
    fn injects(&mut self, now: Nanos, own: usize) -> Option<usize> {
        let queue = &self.queues[own];
        let guarded = queue.raised && queue.short_think;
        if self.idling_helps(own) || guarded && self.raised_busy() <= 1 {
            return None;
        }
        let idled = queue.waited_for && self.idling_began + SLICE_IDLE <= now;
        let limit = match queue.injected {
            0 if queue.alone.is_none() && idled => 1,
            limit => limit as usize,
        };
        if self.with_disk.len() >= limit {
            return None;
        }
        let large = |other: &ProcessQueue| {
            !self.rotational && other.next.is_some_and(|next| next.count >= LARGE_ON_FLASH)
        };
        let may = |other: &ProcessQueue| {
            matches!(other.share.place, Place::Active(_))
                && other.next.is_some()
                && (!guarded || other.raised)
                && other.next_charge() <= other.share.left()
                && (self.with_disk.is_empty() || !large(other))
        };
        let all = self.queues.iter().enumerate();
        let latest = all.filter(|(_, other)| may(other));
        let (latest, _) = latest.max_by_key(|(_, other)| other.share.place)?;
        self.injected = true;
        Some(latest)
    }

    /// Sends the next request of a queue.
    fn send(&mut self, now: Nanos, own: usize, waiting: &[Waiting]) -> Option<usize> {
        let next = self.queues[own].next?;
        let index = waiting.iter().position(|one| one.command.tag == next.tag)?;
        let sent = &waiting[index];
        let charge = self.queues[own].next_charge();
        self.queues[own].got(charge);
        self.service.serve(&mut self.queues, own, charge);
        let is_served = self.serving == Some(own);
        if is_served && std::mem::take(&mut self.measures_next) {
            self.measured = Some(next.tag);
        }
        let busy = !self.with_disk.is_empty();
        let rated = rate::Sent {
            sectors: next.count,
            seeks: seeks(self.position, &sent.command, self.rotational),
            follows: busy || now - self.completed < SHORT,
            busy,
        };
        self.rate.sent(now, self.completed, rated, TURN);
        self.position = sent.command.end();
        self.with_disk.insert(
            next.tag,
            Sent {
                queue: own,
                process: sent.from.sync.then_some(sent.from.process),
                writes: sent.command.kind != CommandKind::Read,
            },
        );
        self.queued -= 1;
        let queue = &mut self.queues[own];
        queue.with_disk += 1;
        let others = waiting.iter().filter(|one| one.owner == Some(own));
        let expires = EXPIRE[usize::from(queue.sync)];
        queue.next = queue.after(now, others, &sent.command, expires);
        queue.queued -= 1;
        self.next_changed(own);
        if is_served {
            self.lower_weight(now, own);
        } else if self.queues[own].queued == 0 {
            self.leave(own);
            let share = &mut self.queues[own].share;
            (share.budget, share.served) = (0, 0);
        }
        Some(index)
    }

    /// Ends a raised weight if its time is over.
    fn lower_weight(&mut self, now: Nanos, own: usize) {
        let queue = &mut self.queues[own];
        if queue.raised {
            queue.lower(now, self.rate.raised_for());
        }
        if queue.raised != (queue.share.weight > WEIGHT) {
            self.service.weigh(queue);
        }
    }

    /// Ends the turn of the served queue: it is charged for its time if it was slow, and gets
    /// its next budget.
    pub(super) fn expire(&mut self, now: Nanos, own: usize, end: End) {
        let (slow, time) = self.was_slow(now, own, end);
        let late = matches!(end, End::Timeout | End::IdledTimeout);
        let queue = &mut self.queues[own];
        let share = queue.share;
        if !queue.raised {
            queue.raised_at = now;
            if slow || late && share.left() >= share.budget / 3 {
                self.charge_time(own, time);
            }
        }
        self.queues[own].find_soft(now);
        (self.injected, self.measures_next, self.measured) = (false, false, None);
        self.find_budget(own, end);
        self.end_turn(now, own, end);
        let queue = &mut self.queues[own];
        if !queue.busy && !late && end != End::Exhausted {
            queue.resumes = true;
        } else {
            queue.share.served = 0;
        }
    }

    /// Whether a queue used its turn slowly, and the time that counts for that.
    fn was_slow(&self, now: Nanos, own: usize, end: End) -> (bool, Nanos) {
        let queue = &self.queues[own];
        if !queue.sync {
            return (false, Nanos::ZERO);
        }
        let until = match end {
            End::TooIdle | End::IdledTimeout => self.idling_began,
            _ => now,
        };
        let time = until.saturating_sub(self.turn_began);
        if time < Nanos::from_millis(1) {
            let least = if self.rotational { SLICE_IDLE } else { SHORT };
            return (queue.is_seeky(), least);
        }
        let slow = match time > TELLING {
            true => queue.share.served < self.rate.budget() / 2,
            false => queue.is_seeky(),
        };
        (slow, time)
    }

    /// Charges a queue for so long as if it had been served at the disk's peak rate.
    fn charge_time(&mut self, own: usize, time: Nanos) {
        let millis = time.0.min(TURN.0) / 1_000_000;
        let sectors = self.rate.budget() * millis / (TURN.0 / 1_000_000);
        let share = &mut self.queues[own].share;
        let all = sectors.max(share.served);
        share.budget = share.budget.max(all);
        let more = all - share.served;
        self.queues[own].got(more);
        self.service.serve(&mut self.queues, own, more);
    }

    /// Computes the next budget of a queue, by how its turn ended (`__bfq_bfqq_recalc_budget`).
    fn find_budget(&mut self, own: usize, end: End) {
        let (least, most) = (self.rate.smallest_budget(), self.rate.budget());
        let known = self.rate.is_known();
        let queue = &mut self.queues[own];
        let before = queue.budget;
        let budget = match (queue.sync, queue.raised, end) {
            (false, ..) => most,
            (true, true, _) => 2 * least,
            (true, false, End::TooIdle) if queue.with_disk > 0 => most.min(before * 2),
            (true, false, End::TooIdle) if before > 5 * least => before - 4 * least,
            (true, false, End::TooIdle) => least,
            (true, false, End::Timeout | End::IdledTimeout) => most.min(before * 2),
            (true, false, End::Exhausted) => most.min(before * 4),
            (true, false, End::Empty) => queue.share.served.max(least),
            (true, false, End::Preempted) => return,
        };
        queue.budget = if known { budget.min(most) } else { budget };
        if queue.next.is_some() {
            queue.share.budget = queue.budget.max(queue.next_charge());
        }
    }

    /// Ends the service of a queue; with requests it waits for its next turn.
    pub(super) fn end_turn(&mut self, now: Nanos, own: usize, end: End) {
        let stays = end == End::Preempted && self.idling_is_needed(own);
        if self.queues[own].queued == 0 && !stays {
            if self.queues[own].with_disk == 0 {
                self.queues[own].until = Some(now);
            }
            self.leave(own);
        } else {
            self.service.requeue(&mut self.queues[own]);
        }
        self.queues[own].waited_for = false;
        self.idle_until = None;
        self.serving = None;
    }

    /// Notes that a queue has no requests and is not served.
    pub(super) fn leave(&mut self, own: usize) {
        let queue = &mut self.queues[own];
        queue.busy = false;
        self.service.leave(&mut queue.share);
    }

    /// Handles the end of a request of the served queue: the disk is kept idle for it, or its turn
    /// may be over. Returns whether it is kept idle.
    pub(super) fn idles_or_expires(&mut self, now: Nanos, own: usize) -> bool {
        let queue = &self.queues[own];
        if self.must_idle(own) {
            if queue.with_disk == 0 {
                self.idle(now, own);
            }
            return true;
        }
        let empty = queue.queued == 0;
        if queue.times_out(now) {
            self.expire(now, own, End::Timeout);
        } else if empty && (queue.with_disk == 0 || !self.is_worth_idling(own)) {
            self.expire(now, own, End::Empty);
        }
        false
    }

    /// Keeps the disk idle for a queue from now on.
    fn idle(&mut self, now: Nanos, own: usize) {
        let queue = &mut self.queues[own];
        queue.waited_for = true;
        let time = match (queue.raised, queue.is_seeky()) {
            (true, _) => RAISED_IDLE,
            (false, true) => SHORT,
            (false, false) => SLICE_IDLE,
        };
        self.idling_began = now;
        self.idle_until = Some(now + time);
    }

    /// Whether a queue has no request, and the disk is to be kept idle for it.
    fn must_idle(&self, own: usize) -> bool {
        self.queues[own].queued == 0 && self.is_worth_idling(own)
    }

    /// Whether the disk is better kept idle for a queue that has no request
    /// (`bfq_better_to_idle`).
    pub(super) fn is_worth_idling(&self, own: usize) -> bool {
        let queue = &self.queues[own];
        let may = queue.sync && queue.processes > 0;
        may && (self.idling_helps(own) || self.idling_is_needed(own))
    }

    /// Whether idling raises throughput (`idling_boosts_thr_without_issues`).
    pub(super) fn idling_helps(&self, own: usize) -> bool {
        let queue = &self.queues[own];
        let has_no_queue = self.queueing == Some(false);
        let helps =
            self.rotational && has_no_queue || (self.rotational || has_no_queue) && queue.streams();
        queue.processes > 0 && helps && self.raised_busy() == 0
    }

    /// Whether weights require idling (`idling_needed_for_service_guarantees`).
    fn idling_is_needed(&self, own: usize) -> bool {
        const OTHERS: usize = 4;
        let queue = &self.queues[own];
        let busy = self.busy();
        let beside =
            self.raised_busy() < busy || self.with_disk.len() >= queue.with_disk as usize + OTHERS;
        queue.processes > 0 && (queue.raised && beside || busy == 1)
    }
}
