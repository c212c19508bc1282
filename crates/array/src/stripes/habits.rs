//! What md does at a cost (see [`MdHabits`](super::MdHabits)): a thread that does
//! everything, and reads that take stripes of the cache.
//!
//! *One thread.* While bitmap or superblocks are written, the answers to the
//! commands of jobs are put off, and no job begins. Reads that a member serves by
//! itself are not the thread's business. When it is over, the thread goes on as
//! `raid5d` does: by turns, of eight jobs each, in the order in which they came. A
//! turn brings a job whose blocks have been read no further than to its parity; its
//! writes are the business of another one. Between two turns those get to run whose
//! requests have ended, and when they ask for a bit that is not set, the thread writes
//! bitmap pages again before it looks at what else has come. So what came during
//! one such write may have to wait for the next one too.
//!
//! *Stripes.* A read of an array that is not whole takes a stripe of 4 KiB for each
//! block of its range, and gives them back when it is done; what a sync has in work
//! takes stripes too. A read that finds too few sleeps, and with it those behind
//! it, until fewer than three quarters are in use. While somebody sleeps, a sync
//! starts nothing either. Writes are not counted.

use super::StripeArray;
use super::config::BLOCK;
use super::flow::Role;
use crate::request::{CommandId, MemberError, Outputs, Request, RequestId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What the habits remember.
#[derive(Debug, Default)]
pub(super) struct Habits {
    /// The thread writes metadata.
    stalled: bool,
    /// Answers that came since.
    arrived: Vec<Answer>,
    /// Answers for its next turns.
    ready: VecDeque<Answer>,
    /// Stripes that reads hold, by request.
    taken: BTreeMap<RequestId, u64>,
    /// Reads that sleep.
    asleep: VecDeque<Request>,
    /// Stripes that the cache has grown by.
    grown: u64,
}

/// An answer that the thread has not looked at, or not for the last time.
#[derive(Debug, Clone, Copy)]
struct Answer {
    command: CommandId,
    result: Result<(), MemberError>,
    /// Of a read: parity is computed.
    seen: bool,
}

/// Jobs of a turn (drivers/md/raid5.h, `MAX_STRIPE_BATCH`).
const JOBS_OF_A_TURN: usize = 8;

/// The largest cache that md takes (drivers/md/raid5.c, `raid5_set_cache_size`).
const MOST_STRIPES: u64 = 32_768;

impl Habits {
    pub(super) const fn grown(&self) -> u64 {
        self.grown
    }

    /// A sync found no stripe free.
    pub(super) fn grow(&mut self) {
        self.grown = (self.grown + 1).min(MOST_STRIPES);
    }
}

impl StripeArray {
    /// Whether no job may begin or go on.
    pub(super) const fn is_stalled(&self) -> bool {
        self.habits.stalled
    }

    pub(super) fn stall(&mut self, runs: bool, out: &mut Outputs) {
        if !self.config.habits.one_thread || self.habits.stalled == runs {
            return;
        }
        self.habits.stalled = runs;
        if runs {
            return;
        }
        self.take_turn(out);
        self.pump(out);
    }

    /// Whether the thread has not done all that it can do now.
    pub(super) fn wants_turn(&self) -> bool {
        !self.habits.stalled && !self.habits.ready.is_empty()
    }

    /// Brings the next few jobs forward, and lines up what has come since.
    pub(super) fn take_turn(&mut self, out: &mut Outputs) {
        let mut jobs = BTreeSet::new();
        let mut again = Vec::new();
        while let Some(mut answer) = self.habits.ready.pop_front() {
            let role = self.commands.find(answer.command.0).map(|it| it.role);
            if let Some(Role::JobRead(job) | Role::JobWrite(job)) = role {
                if !jobs.contains(&job) && jobs.len() == JOBS_OF_A_TURN {
                    self.habits.ready.push_front(answer);
                    break;
                }
                jobs.insert(job);
            }
            if matches!(role, Some(Role::JobRead(_))) && !answer.seen {
                answer.seen = true;
                again.push(answer);
            } else {
                self.command_done(answer.command, answer.result, out);
            }
        }
        let Habits { arrived, ready, .. } = &mut self.habits;
        ready.extend(arrived.drain(..));
        ready.extend(again);
    }

    /// Whether an answer is looked at later.
    pub(super) fn is_put_off(
        &mut self,
        command: CommandId,
        result: Result<(), MemberError>,
    ) -> bool {
        let is_busy = self.habits.stalled || !self.habits.ready.is_empty();
        let role = self.commands.find(command.0).map(|it| it.role);
        let waits = is_busy && matches!(role, Some(Role::JobRead(_) | Role::JobWrite(_)));
        if waits {
            self.habits.arrived.push(Answer {
                command,
                result,
                seen: false,
            });
        }
        waits
    }

    /// Stripes in use, of those that are counted.
    fn stripes_in_use(&self) -> u64 {
        self.habits.taken.values().sum::<u64>() + self.sync_sectors_in_work() / BLOCK
    }

    /// Whether the cache has no stripe left for a sync, or somebody sleeps for one.
    pub(super) fn lacks_stripes_for_sync(&self) -> bool {
        self.config.habits.reads_take_stripes
            && (!self.habits.asleep.is_empty() || self.stripes_in_use() >= self.stripes())
    }

    /// Stripes of the cache.
    fn stripes(&self) -> u64 {
        self.config.stripes as u64 + self.habits.grown
    }

    /// A read takes its stripes, or goes to sleep: true.
    pub(super) fn must_wait_for_stripes(&mut self, request: &Request) -> bool {
        let is_whole = self.members.in_sync().len() == self.map.members();
        if !self.config.habits.reads_take_stripes || is_whole {
            return false;
        }
        if !self.habits.asleep.is_empty() || !self.takes_stripes(request) {
            self.habits.asleep.push_back(*request);
            return true;
        }
        false
    }

    fn takes_stripes(&mut self, request: &Request) -> bool {
        let first = request.start.0 / BLOCK;
        let count = (request.start.0 + request.count.0).div_ceil(BLOCK) - first;
        let in_use = self.stripes_in_use();
        // What is larger than the cache goes when that is empty.
        let fits = in_use + count <= self.stripes() || in_use == 0;
        if fits {
            self.habits.taken.insert(request.id, count);
        }
        fits
    }

    pub(super) fn give_stripes_back(&mut self, id: RequestId) {
        self.habits.taken.remove(&id);
    }

    pub(super) fn waits_for_stripes(&self, process: u32) -> bool {
        let mut asleep = self.habits.asleep.iter();
        asleep.any(|request| request.process == process)
    }

    /// Wakes the reads that sleep, if enough stripes are free.
    pub(super) fn wake_readers(&mut self, out: &mut Outputs) -> bool {
        if self.habits.asleep.is_empty() || self.stripes_in_use() * 4 >= self.stripes() * 3 {
            return false;
        }
        let mut moved = false;
        while let Some(request) = self.habits.asleep.front().copied() {
            if !self.takes_stripes(&request) {
                break;
            }
            moved = true;
            self.habits.asleep.pop_front();
            self.submit_read(&request, out);
            self.settle(request.id, Ok(()), out);
        }
        moved
    }
}
