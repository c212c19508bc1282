//! The turns of the array's thread and of its workers, as in md's raid5d.
//!
//! Interrupts let stripes go onto lists without a lock (`released_stripes`). Whoever has the next
//! turn takes them over under `device_lock`: the array's thread itself, or, with workers
//! (`group_thread_cnt`), the thread, which hands them to the workers and does nothing else. One
//! turn is given at a time; when it begins, the next one may be given, to as many threads as
//! there are. A thread with more to do at the end of its turn goes on without being woken. The
//! lock is held for a time of its own and for a time for each stripe that is moved.

use super::locks::LockName;
use super::task::{Action, Part, Role};
use super::{Charges, Processor};
use raidlab_array::StripeWork;
use raidlab_units::Nanos;

/// Where the array's thread and its workers stand.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// Stripes that interrupts have let go and the array's thread has not taken over.
    released: u64,
    /// Those that it is just taking over.
    gathering: u64,
    /// Stripes that a worker may take.
    gathered: u64,
    /// Somebody is on the way to a turn.
    is_coming: bool,
    /// Threads with a turn that is not over.
    running: usize,
    /// How many stripes are in these turns.
    at_work: u64,
}

impl Turns {
    /// Stripes that wait for a thread, or are in its turn.
    pub(super) fn stripes(&self) -> usize {
        let all = self.released + self.gathering + self.gathered + self.at_work;
        usize::try_from(all).unwrap_or(usize::MAX)
    }
}

impl Charges {
    /// How long `device_lock` is held for so many stripes.
    fn device_lock(&self, stripes: u64) -> Nanos {
        self.lock + self.release * stripes
    }
}

impl Processor {
    /// Whether somebody could have a turn now.
    pub(crate) fn may_turn(&self) -> bool {
        let turns = &self.turns;
        if turns.is_coming {
            return false;
        }
        match self.workers {
            0 => turns.running == 0,
            _ if turns.gathered == 0 && turns.released > 0 => turns.gathering == 0,
            _ if turns.gathered == 0 && turns.gathering > 0 => false,
            workers => turns.running < workers,
        }
    }

    /// The array's thread has something to do: it is woken, or a worker is.
    pub(crate) fn turn(&mut self, now: Nanos) {
        let released = self.turns.released;
        if self.workers > 0 && self.turns.gathered == 0 && released > 0 {
            self.turns.released = 0;
            self.turns.gathering = released;
            let pass = Part::Lock(LockName::Device, self.charges.device_lock(released));
            let gathered = Part::Do(Box::new(Action::Gathered));
            self.threads[0].work.extend([pass, gathered]);
            self.wake(0, now);
            return;
        }
        let thread = match self.workers {
            0 => 0,
            workers => {
                let mut all = 1..=workers;
                all.find(|&worker| {
                    self.threads[worker].work.is_empty() && !self.threads[worker].awake
                })
                .unwrap_or(1)
            }
        };
        self.give_turn(thread, true);
        self.wake(thread, now);
    }

    /// Puts a turn before a thread.
    fn give_turn(&mut self, thread: usize, first: bool) {
        self.turns.is_coming = true;
        self.turns.running += 1;
        let taken_over = match self.workers {
            0 => std::mem::take(&mut self.turns.released),
            _ => 0,
        };
        self.turns.gathered += taken_over;
        let work = &mut self.threads[thread].work;
        // Between two turns the lock is taken once, at the end of the first.
        if self.array.has_parity() && (first || taken_over > 0) {
            let hold = self.charges.device_lock(taken_over);
            work.push_back(Part::Lock(LockName::Device, hold));
        }
        work.push_back(Part::Do(Box::new(Action::Turn)));
        work.push_back(Part::Do(Box::new(Action::TurnOver)));
    }

    /// What interrupts let go has been taken over.
    pub(crate) const fn gathered(&mut self) {
        self.turns.gathered += self.turns.gathering;
        self.turns.gathering = 0;
    }

    /// A turn begins: the next one may be given.
    pub(crate) const fn turn_begins(&mut self) {
        self.turns.is_coming = false;
    }

    /// A thread's turn is over. `due`: there is more for it.
    pub(crate) fn turn_over(&mut self, thread: usize, due: bool) {
        self.turns.running -= 1;
        self.turns.at_work -= std::mem::take(&mut self.threads[thread].stripes);
        let turns = &self.turns;
        let nothing =
            self.workers > 0 && turns.gathered == 0 && turns.released + turns.gathering > 0;
        if due && !turns.is_coming && !nothing {
            self.give_turn(thread, false);
        }
    }

    /// Takes note of what a call did to stripes, and charges the lock of their lists.
    pub(super) fn note_stripes(&mut self, work: StripeWork, role: Role, parts: &mut Vec<Part>) {
        if role == Role::Interrupt {
            // A list without a lock (`released_stripes`).
            self.turns.released += u64::from(work.released);
            return;
        }
        let handled = u64::from(work.handled);
        if let Role::Thread(thread) = role {
            self.turns.at_work += handled;
            self.threads[thread].stripes += handled;
        }
        let stripes = handled.max(u64::from(work.released));
        self.turns.gathered =
            (self.turns.gathered + u64::from(work.released)).saturating_sub(handled);
        if stripes > 0 {
            let hold = self.charges.device_lock(stripes);
            parts.push(Part::Lock(LockName::Device, hold));
        }
    }
}
