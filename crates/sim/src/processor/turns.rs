//! The turns of the array's thread and of its workers, as in md's raid5d (Linux 6.6
//! drivers/md/raid5.c).
//!
//! Interrupts let stripes go onto a list without a lock (`released_stripes`), and wake the array's
//! thread if that was empty. So do processes that have no plug (`release_stripe_plug`, Linux 6.5 to
//! 6.9); those that have one take `device_lock` at its end (`raid5_unplug`).
//!
//! The holder of a turn, the thread or a worker of `group_thread_cnt`, takes `device_lock`, brings
//! the stripes that were let go to the lists of those that wait (`release_stripe_list`), and takes
//! a batch of eight (`handle_active_stripes`). It has these until it has done with all of them:
//! only then do they go back to a list, or are free. If it finds more after that it goes on without
//! being woken. If it finds none it takes the lock once more (`log_flush_stripe_to_raid`) and
//! sleeps; but if it was asked to run while it did, it looks once more first (`THREAD_WAKEUP`; a
//! work that is pending). The lock is held for a time of its own and for a time for each stripe
//! that is moved.
//!
//! A stripe waits in the list of the socket on which it was written first, where `group_thread_cnt`
//! workers take from. With each stripe that comes there the first of them is asked to run, others
//! only where two batches wait, one for each batch beyond the first (`raid5_wakeup_stripe_thread`).
//! Of these it is the first that is not `working`; a worker that has done with its first batch is
//! not either, and needs no waking. The thread that moves the stripe asks them under the lock. Since
//! Linux 6.6 a worker that slept wakes near the process that wrote the stripe: on a core that shares
//! a cache of the last level (kernel/workqueue.c, `WQ_AFFN_CACHE`, `kick_pool`); before, anywhere on
//! its socket. The array's thread takes from all lists. Which list a stripe is in is not kept here:
//! where processes write on several sockets, their lists count as equally long, and workers wake
//! near the process that wrote last on their socket.

use super::locks::LockName;
use super::task::{Action, Part, Place, Role};
use super::{Charges, Processor};
use raidlab_array::StripeWork;
use raidlab_units::Nanos;
use std::collections::BTreeMap;

/// The number of stripes that a thread takes at a time (`MAX_STRIPE_BATCH`).
const BATCH: u64 = 8;

/// The state of the turns of the array's thread and its workers.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// The number of stripes that interrupts have let go and that no thread has taken over.
    released: u64,
    /// The number of stripes in the lists from which threads take them.
    listed: u64,
    /// The number of stripes in turns.
    at_work: u64,
    /// The number of threads that have a turn, or are on the way to one.
    running: usize,
    /// The sockets on which a process has written, with the core of the last one there.
    writers: BTreeMap<usize, usize>,
}

impl Turns {
    /// The number of stripes that wait for a thread, or are in its turn.
    pub(super) fn stripes(&self) -> usize {
        usize::try_from(self.released + self.listed + self.at_work).unwrap_or(usize::MAX)
    }
}

impl Charges {
    /// The time for which `device_lock` is held for these numbers of stripes and of wake-ups.
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

    /// Asks a thread to run, once more if it does; returns whether it was not asked before, and
    /// whether it slept.
    fn ask(&mut self, now: Nanos, thread: usize) -> (bool, bool) {
        let own = &mut self.threads[thread];
        let (is_new, slept) = (!own.is_asked, !own.has_turn);
        own.is_asked = true;
        if slept {
            self.give_turn(thread, true);
            self.wake(thread, now);
        }
        (is_new, slept)
    }

    /// Wakes the array's thread, which has something to do.
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

    /// Moves the stripes that interrupts let go to a thread, which begins its turn.
    pub(crate) fn take_over(&mut self, core: usize, thread: usize, first: bool) {
        let brings = std::mem::take(&mut self.turns.released);
        self.threads[thread].brings = brings;
        if first {
            self.threads[thread].is_asked = false;
        }
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

    /// Begins a turn, with the stripes that the thread brings in the lists.
    pub(crate) fn turn_begins(&mut self, now: Nanos, core: usize, thread: usize) {
        let brings = std::mem::take(&mut self.threads[thread].brings);
        self.lists_by_thread(now, core, brings);
    }

    /// Ends a thread's turn; with `due` there is more for it.
    pub(crate) fn turn_over(&mut self, thread: usize, due: bool) {
        self.turns.running -= 1;
        let own = &mut self.threads[thread];
        own.has_turn = false;
        own.is_working = false;
        self.turns.at_work -= std::mem::take(&mut own.stripes);
        if due {
            self.give_turn(thread, false);
        } else if self.array.has_parity() {
            let last = Part::Lock(LockName::Device, self.charges.lock);
            own.work.push_back(last);
            if own.is_asked {
                self.give_turn(thread, true);
            }
        }
    }

    /// Brings stripes to the lists by a thread of the array, which pays for the wake-ups.
    fn lists_by_thread(&mut self, now: Nanos, core: usize, stripes: u64) {
        let wakes = self.lists(now, stripes, None);
        if wakes > 0 {
            let hold = self.charges.wake_call * wakes;
            self.put_first(core, &mut vec![Part::Lock(LockName::Device, hold)]);
        }
    }

    /// Brings stripes to the list of a socket, or to all lists that there are, and returns the
    /// number of threads that are woken for them.
    fn lists(&mut self, now: Nanos, stripes: u64, socket: Option<usize>) -> u64 {
        let before = self.turns.listed;
        self.turns.listed += stripes;
        if stripes == 0 {
            return 0;
        }
        if self.workers == 0 {
            return u64::from(self.ask(now, 0).1);
        }
        let all = &self.turns.writers;
        let lists = u64::try_from(all.len().max(1)).unwrap_or(u64::MAX);
        let beyond = |listed: u64| (listed / lists / BATCH).saturating_sub(1);
        let further: u64 = (before + 1..=before + stripes).map(beyond).sum();
        let further = match socket {
            Some(_) => further,
            None => further.div_ceil(lists),
        };
        let mut groups = socket.map_or_else(|| all.keys().copied().collect(), |it| vec![it]);
        if groups.is_empty() {
            groups.push(0);
        }
        let groups = groups.into_iter();
        groups.map(|it| self.ask_workers(now, it, further)).sum()
    }

    /// Asks the first worker of a socket to run, and `further` others, of those that are
    /// not `working`. It returns how often the kernel wakes one of its threads for that:
    /// for each that was not asked before, also if it finds then that another one runs
    /// this worker (`assign_work`).
    fn ask_workers(&mut self, now: Nanos, group: usize, mut further: u64) -> u64 {
        let sockets = self.sockets();
        let first = (1..=sockets).find(|worker| worker % sockets == group);
        let mut wakes = 0;
        let near = self.turns.writers.get(&group).copied();
        let near = near.filter(|_| self.array.workers_near);
        for worker in (first.unwrap_or(1)..=self.workers).step_by(sockets) {
            if Some(worker) != first {
                if further == 0 || self.threads[worker].is_working {
                    continue;
                }
                further -= 1;
            }
            self.threads[worker].is_working = true;
            if let Some(core) = near {
                self.bring_near(worker, core);
            }
            wakes += u64::from(self.ask(now, worker).0);
        }
        wakes
    }

    /// Puts stripes onto the list without a lock.
    fn release(&mut self, now: Nanos, stripes: u64, parts: &mut Vec<Part>) {
        let was_empty = self.turns.released == 0;
        self.turns.released += stripes;
        if was_empty && stripes > 0 && self.ask(now, 0).1 {
            parts.push(Part::Charge(Place::Switch, self.charges.wake_call));
        }
    }

    /// Takes note of the stripes that a call handled, and charges the lock of their lists.
    pub(super) fn note_stripes(
        &mut self,
        now: Nanos,
        core: usize,
        work: StripeWork,
        parts: &mut Vec<Part>,
    ) {
        let released = u64::from(work.released);
        let Role::Thread(thread) = self.role(core) else {
            self.release(now, released, parts);
            return;
        };
        if thread >= self.first_job {
            if released > 0 {
                let socket = self.socket_of(core);
                self.turns.writers.insert(socket, core);
                if self.array.unplugged {
                    self.release(now, released, parts);
                    return;
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
            // The lock is taken at the end of the turn, for the next batch too.
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
    use crate::processor::locks::LockName;
    use crate::processor::task::Part;
    use crate::processor::{ArrayKind, ArrayPaths, ProcessorConfig, ProcessorNumbers};
    use raidlab_array::StripeWork;
    use raidlab_units::Nanos;

    /// On two sockets, with four workers on each.
    fn raid5() -> Processor {
        raid5_with(false)
    }

    fn raid5_with(unplugged: bool) -> Processor {
        Processor::new(&ProcessorConfig {
            numbers: ProcessorNumbers {
                cores: 32.0,
                sockets: 2.0,
                cores_per_cache: 4.0,
                speed: 1.0,
                ..ProcessorNumbers::default()
            },
            array: ArrayPaths {
                kind: ArrayKind::Parity,
                group_threads: 4,
                unplugged,
                workers_near: true,
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

    /// `raid5_wakeup_stripe_thread`: who is through with his first batch is not `working`, so he is
    /// asked before others who sleep.
    #[test]
    fn a_worker_who_works_on_is_asked_instead_of_one_who_sleeps() {
        let mut cores = raid5();
        let now = Nanos::ZERO;
        assert_eq!(cores.lists(now, 16, Some(1)), 2);
        cores.take_over(0, 3, true);
        cores.turn_over(3, true);
        assert_eq!(cores.lists(now, 1, Some(1)), 1);
        assert_eq!(with_a_turn(&cores), [1, 3]);
        assert_eq!(cores.lists(now, 1, Some(1)), 1);
        assert_eq!(with_a_turn(&cores), [1, 3, 5]);
    }

    /// Who was asked while he ran looks once more when he has found nothing.
    #[test]
    fn who_was_asked_while_he_ran_looks_in_vain() {
        let mut cores = raid5();
        let runs = |cores: &mut Processor| {
            cores.take_over(0, 2, true);
            cores.turn_over(2, false);
            cores.threads[2].has_turn
        };
        assert_eq!(cores.ask(Nanos::ZERO, 2), (true, true));
        assert_eq!(cores.ask(Nanos::ZERO, 2), (false, false));
        assert!(!runs(&mut cores), "he was asked before he ran");
        assert_eq!(cores.ask(Nanos::ZERO, 2), (true, true));
        cores.take_over(0, 2, true);
        assert_eq!(cores.ask(Nanos::ZERO, 2), (true, false));
        cores.turn_over(2, false);
        assert!(cores.threads[2].has_turn);
        assert!(!runs(&mut cores));
    }

    /// `release_stripe_plug`: with a plug a process takes `device_lock` and wakes a worker;
    /// without one it wakes the array's thread, and only for the first stripe on the list.
    #[test]
    fn who_has_no_plug_leaves_stripes_to_the_array_s_thread() {
        for (unplugged, threads, locks) in [(false, [2], 2), (true, [0], 0)] {
            let mut cores = raid5_with(unplugged);
            let job = cores.thread_of(0);
            cores.cores[0].thread = Some(job);
            let released = StripeWork {
                released: 1,
                ..StripeWork::default()
            };
            let mut parts = Vec::new();
            for _ in 0..2 {
                cores.note_stripes(Nanos::ZERO, 0, released, &mut parts);
            }
            assert_eq!(with_a_turn(&cores), threads);
            let is_lock = |part: &&Part| matches!(part, Part::Lock(LockName::Device, _));
            assert_eq!(parts.iter().filter(is_lock).count(), locks);
            assert_eq!(parts.len(), if unplugged { 1 } else { 2 });
        }
    }

    /// Linux kernel/workqueue.c, `kick_pool`: a worker that slept elsewhere wakes on one of the four
    /// cores around that of the writer. One that is awake stays.
    #[test]
    fn workers_wake_beside_the_process_that_writes() {
        let mut cores = raid5();
        let job = cores.thread_of(0);
        cores.cores[9].thread = Some(job);
        let released = StripeWork {
            released: 32,
            ..StripeWork::default()
        };
        let awake = 2;
        cores.threads[awake].awake = true;
        let stays = cores.threads[awake].core;
        cores.note_stripes(Nanos::ZERO, 9, released, &mut Vec::new());
        let own = [4, 6, 8].map(|worker| cores.threads[worker].core);
        assert!(own.iter().all(|core| (8..12).contains(core)), "{own:?}");
        assert_eq!(cores.threads[awake].core, stays);
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
