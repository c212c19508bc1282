//! The turns of the array's thread and of its workers, as in md's raid5d (Linux 6.6
//! drivers/md/raid5.c).
//!
//! Interrupts let stripes go onto a list without a lock (`released_stripes`), and wake the array's
//! thread. Whoever has a turn, the thread or a worker of `group_thread_cnt`, takes `device_lock`,
//! brings what was let go to the lists of those that wait (`release_stripe_list`), and takes a batch
//! of eight (`handle_active_stripes`). It has these until it has done with all of them: only then
//! do they go back to a list, or are free. Who finds more after that goes on without being woken.
//! The lock is held for a time of its own and for a time for each stripe that is moved.
//!
//! A stripe waits in the list of the socket on which it was written first, where `group_thread_cnt`
//! workers take from. With each stripe that comes there the first of them is woken, if he sleeps;
//! others only where two batches wait, one for each batch beyond the first
//! (`raid5_wakeup_stripe_thread`). Whoever moves the stripe wakes them under the lock. The array's
//! thread takes from all lists. Which list a stripe is in is not kept here: where processes
//! write on several sockets, their lists count as equally long.

use super::locks::LockName;
use super::task::{Action, Part, Role};
use super::{Charges, Processor};
use raidlab_array::StripeWork;
use raidlab_units::Nanos;

/// Stripes that a thread takes at a time (`MAX_STRIPE_BATCH`).
const BATCH: u64 = 8;

/// Where the array's thread and its workers stand.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// Stripes that interrupts have let go and that nobody has taken over.
    released: u64,
    /// Stripes in the lists from which threads take them.
    listed: u64,
    /// How many stripes are in turns.
    at_work: u64,
    /// How many threads have a turn, or are on the way to one.
    running: usize,
    /// The sockets on which somebody has written, ascending.
    sockets: Vec<usize>,
}

impl Turns {
    /// Stripes that wait for a thread, or are in its turn.
    pub(super) fn stripes(&self) -> usize {
        usize::try_from(self.released + self.listed + self.at_work).unwrap_or(usize::MAX)
    }
}

impl Charges {
    /// How long `device_lock` is held for so many stripes, and so many wake-ups.
    fn device_lock(&self, stripes: u64, wakes: u64) -> Nanos {
        self.lock + self.release * stripes + self.wake_call * wakes
    }
}

impl Processor {
    /// Whether the array's thread could have a turn now.
    pub(crate) fn may_turn(&self) -> bool {
        let turns = &self.turns;
        let is_woken = self.workers == 0 || turns.released > 0 || turns.running == 0;
        is_woken && !self.threads[0].has_turn
    }

    /// The array's thread has something to do: it is woken.
    pub(crate) fn turn(&mut self, now: Nanos) {
        self.give_turn(0, true);
        self.wake(0, now);
    }

    /// Puts a turn before a thread.
    fn give_turn(&mut self, thread: usize, first: bool) {
        self.turns.running += 1;
        let own = &mut self.threads[thread];
        own.has_turn = true;
        let turn = Part::Do(Box::new(Action::TakeOver { first }));
        own.work.push_back(turn);
    }

    /// A thread takes what interrupts let go, and begins its turn.
    pub(crate) fn take_over(&mut self, core: usize, thread: usize, first: bool) {
        let brings = std::mem::take(&mut self.turns.released);
        self.threads[thread].brings = brings;
        let mut parts = Vec::new();
        // Between two turns the lock is taken once, at the end of the first.
        if self.array.has_parity() && (first || brings > 0) {
            let hold = self.charges.device_lock(brings, 0);
            parts.push(Part::Lock(LockName::Device, hold));
        }
        let actions = [Action::Turn, Action::TurnOver];
        parts.extend(actions.map(|action| Part::Do(Box::new(action))));
        self.put_first(core, &mut parts);
    }

    /// A turn begins: what the thread brings is in the lists.
    pub(crate) fn turn_begins(&mut self, now: Nanos, core: usize, thread: usize) {
        let brings = std::mem::take(&mut self.threads[thread].brings);
        self.lists_by_thread(now, core, brings);
    }

    /// A thread's turn is over. `due`: there is more for it.
    pub(crate) fn turn_over(&mut self, thread: usize, due: bool) {
        self.turns.running -= 1;
        let own = &mut self.threads[thread];
        own.has_turn = false;
        self.turns.at_work -= std::mem::take(&mut own.stripes);
        if due {
            self.give_turn(thread, false);
        }
    }

    /// Stripes come to the lists by a thread of the array, which pays for those whom it wakes.
    fn lists_by_thread(&mut self, now: Nanos, core: usize, stripes: u64) {
        let wakes = self.lists(now, stripes, None);
        if wakes > 0 {
            let hold = self.charges.wake_call * wakes;
            self.put_first(core, &mut vec![Part::Lock(LockName::Device, hold)]);
        }
    }

    /// Stripes come to the list of a socket, or to all lists that there are. How many workers
    /// are woken for them.
    fn lists(&mut self, now: Nanos, stripes: u64, socket: Option<usize>) -> u64 {
        let before = self.turns.listed;
        self.turns.listed += stripes;
        if self.workers == 0 || stripes == 0 {
            return 0;
        }
        let all = &self.turns.sockets;
        let lists = u64::try_from(all.len().max(1)).unwrap_or(u64::MAX);
        let beyond = |listed: u64| (listed / lists / BATCH).saturating_sub(1);
        let further: u64 = (before + 1..=before + stripes).map(beyond).sum();
        let further = match socket {
            Some(_) => further,
            None => further.div_ceil(lists),
        };
        let mut groups = socket.map_or_else(|| all.clone(), |socket| vec![socket]);
        if groups.is_empty() {
            groups.push(0);
        }
        let before = self.turns.running;
        for group in groups {
            self.wake_workers(now, group, further);
        }
        (self.turns.running - before) as u64
    }

    /// Wakes the first worker of a socket, and so many others, of those that sleep.
    fn wake_workers(&mut self, now: Nanos, group: usize, mut further: u64) {
        let sockets = self.sockets();
        let first = (1..=sockets).find(|worker| worker % sockets == group);
        for worker in (first.unwrap_or(1)..=self.workers).step_by(sockets) {
            let is_first = Some(worker) == first;
            if self.threads[worker].has_turn || !is_first && further == 0 {
                continue;
            }
            further -= u64::from(!is_first);
            self.give_turn(worker, true);
            self.wake(worker, now);
        }
    }

    /// Takes note of what a call did to stripes, and charges the lock of their lists.
    pub(super) fn note_stripes(
        &mut self,
        now: Nanos,
        core: usize,
        work: StripeWork,
        parts: &mut Vec<Part>,
    ) {
        let released = u64::from(work.released);
        let Role::Thread(thread) = self.role(core) else {
            // A list without a lock (`released_stripes`).
            self.turns.released += released;
            return;
        };
        if thread >= self.first_job {
            if released > 0 {
                let socket = self.socket_of(core);
                if let Err(place) = self.turns.sockets.binary_search(&socket) {
                    self.turns.sockets.insert(place, socket);
                }
                let wakes = self.lists(now, released, Some(socket));
                let hold = self.charges.device_lock(released, wakes);
                parts.push(Part::Lock(LockName::Device, hold));
            }
            return;
        }
        let taken = u64::from(work.taken);
        self.turns.listed = self.turns.listed.saturating_sub(taken);
        self.turns.at_work += taken;
        self.threads[thread].stripes += taken;
        let moved = taken.max(u64::from(work.freed));
        if taken > 0 {
            // At the end of the turn, for the next batch too.
            let hold = self.charges.device_lock(moved, 0);
            parts.push(Part::Lock(LockName::Device, hold));
            if taken < BATCH {
                // There were no more; a stripe that is written again leaves its list unseen.
                self.turns.listed = 0;
            }
        }
        let wakes = self.lists(now, released, None);
        if wakes > 0 {
            let hold = self.charges.wake_call * wakes;
            parts.push(Part::Lock(LockName::Device, hold));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Processor;
    use crate::processor::{ArrayKind, ArrayPaths, ProcessorConfig, ProcessorNumbers};
    use raidlab_units::Nanos;

    /// On two sockets, with four workers on each.
    fn raid5() -> Processor {
        Processor::new(&ProcessorConfig {
            numbers: ProcessorNumbers {
                cores: 32.0,
                sockets: 2.0,
                speed: 1.0,
                ..ProcessorNumbers::default()
            },
            array: ArrayPaths {
                kind: ArrayKind::Parity,
                group_threads: 4,
                ..ArrayPaths::default()
            },
        })
    }

    fn with_a_turn(cores: &Processor) -> Vec<usize> {
        let all = 0..cores.threads.len();
        all.filter(|&thread| cores.threads[thread].has_turn)
            .collect()
    }

    /// Linux drivers/md/raid5.c, `raid5_wakeup_stripe_thread`: of the socket's workers, which
    /// are threads 1, 3, 5 and 7 here, the first is woken in any case, and with the sixteenth
    /// stripe and each one behind it another one.
    #[test]
    fn further_workers_are_woken_where_two_batches_wait() {
        let mut cores = raid5();
        let mut come = |stripes| {
            let woken = cores.lists(Nanos::ZERO, stripes, Some(1));
            (woken, with_a_turn(&cores))
        };
        assert_eq!(come(15), (1, vec![1]));
        assert_eq!(come(1), (1, vec![1, 3]));
        assert_eq!(come(8), (2, vec![1, 3, 5, 7]));
        assert_eq!(come(100), (0, vec![1, 3, 5, 7]));
    }

    /// What interrupts let go is the array's thread's to bring, and it has a turn like others.
    #[test]
    fn the_array_s_thread_is_woken_for_what_interrupts_let_go() {
        let mut cores = raid5();
        cores.lists(Nanos::ZERO, 1, Some(0));
        assert_eq!(with_a_turn(&cores), [2]);
        assert!(!cores.may_turn());
        cores.turns.released = 1;
        assert!(cores.may_turn());
        cores.turn(Nanos::ZERO);
        assert_eq!(with_a_turn(&cores), [0, 2]);
        assert!(!cores.may_turn());
    }
}
