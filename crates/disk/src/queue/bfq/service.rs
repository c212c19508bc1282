//! B-WF2Q+: the choice of the next queue, so that each gets its weight's share of the sectors.
//!
//! Virtual time advances with the sectors that are served, divided by the weights of all queues
//! that count. A waiting queue is to be served from its start to its finish, which is later by its
//! budget divided by its weight. Of those whose start has been reached the one with the earliest
//! finish is next; where none has been reached, virtual time jumps to the first. A queue that runs
//! out of requests counts until virtual time has passed the finish of its service, so that it gains
//! nothing by leaving and coming back.

use super::process_queue::ProcessQueue;
use super::share::{Place, SECTOR, Share};

/// Virtual time, and the weights of all queues that count.
#[derive(Debug, Clone, Default)]
pub(super) struct Service {
    time: u64,
    weights: u64,
    /// The number of times that a queue has begun to wait for its turn.
    turns: u64,
}

impl Service {
    /// Notes that a queue has got so many sectors; called as they are charged.
    pub(super) fn serve(&mut self, queues: &mut [ProcessQueue], queue: usize, sectors: u64) {
        queues[queue].share.served += sectors;
        self.time += sectors * SECTOR / self.weights.max(1);
        self.forget(queues);
    }

    /// Adds a queue that has requests again. `resumes`: it left for want of requests and came back
    /// soon, and is served as if it had never been away.
    pub(super) fn activate(&mut self, queues: &mut [ProcessQueue], queue: usize, resumes: bool) {
        let share = &mut queues[queue].share;
        let back = resumes && self.time > share.finish;
        let earliest = if back { share.finish } else { self.time };
        match share.place {
            Place::Idle => share.start = earliest.max(share.finish),
            _ => {
                share.start = earliest;
                self.weights += share.weight;
            }
        }
        self.wait(&mut queues[queue], back);
    }

    /// Gives a queue that is served or waits a new budget.
    pub(super) fn requeue(&mut self, queue: &mut ProcessQueue) {
        let share = &mut queue.share;
        if share.place == Place::Serving {
            share.finish_after(share.served);
            share.start = share.finish;
        }
        self.wait(queue, false);
    }

    /// Notes that a queue has no requests.
    pub(super) fn leave(&mut self, share: &mut Share) {
        share.finish_after(share.served);
        if share.place != Place::Serving {
            share.served = 0;
        }
        share.place = match share.finish > self.time {
            true => Place::Idle,
            false => Place::Out,
        };
        if share.place == Place::Out {
            self.weights -= share.weight;
        }
    }

    /// Applies a changed weight to a queue that counts.
    pub(super) fn weigh(&mut self, queue: &mut ProcessQueue) {
        let weight = queue.weight();
        self.weights = self.weights + weight - queue.share.weight;
        queue.share.weight = weight;
    }

    /// Puts a queue among the waiting ones.
    fn wait(&mut self, queue: &mut ProcessQueue, back: bool) {
        self.weigh(queue);
        let raise = queue.raise();
        let share = &mut queue.share;
        share.finish_after(share.budget);
        if back && self.time > share.finish {
            let late = (self.time - share.finish) / raise;
            share.start += late;
            share.finish += late;
        }
        share.place = Place::Active(self.turns);
        self.turns += 1;
    }

    /// Chooses the queue to be served, when none is; it is served from now on.
    pub(super) fn next(&mut self, queues: &mut [ProcessQueue]) -> Option<usize> {
        let active = |queue: &ProcessQueue| matches!(queue.share.place, Place::Active(_));
        let starts = queues.iter().filter(|queue| active(queue));
        let first = starts.map(|queue| queue.share.start).min()?;
        if first > self.time {
            self.time = first;
            self.forget(queues);
        }
        let all = queues.iter().enumerate();
        let eligible = all.filter(|(_, queue)| active(queue) && queue.share.start <= self.time);
        let (next, _) =
            eligible.min_by_key(|(_, queue)| (queue.share.finish, queue.share.place))?;
        queues[next].share.place = Place::Serving;
        Some(next)
    }

    /// Removes idle queues whose service virtual time has passed: they no longer count.
    fn forget(&mut self, queues: &mut [ProcessQueue]) {
        let active = |queue: &ProcessQueue| matches!(queue.share.place, Place::Active(_));
        let idle = |queue: &&mut ProcessQueue| queue.share.place == Place::Idle;
        if !queues.iter().any(active) {
            let last = queues.iter_mut().filter(idle);
            if let Some(last) = last.map(|queue| queue.share.finish).max() {
                self.time = self.time.min(last);
            }
        }
        let first = queues.iter_mut().filter(idle);
        let first = first.min_by_key(|queue| queue.share.finish);
        if let Some(first) = first.filter(|queue| queue.share.finish <= self.time) {
            first.share.place = Place::Out;
            self.weights -= first.share.weight;
        }
    }
}
