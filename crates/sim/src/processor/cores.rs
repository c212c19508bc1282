//! The threads on cores: which thread has which core, the lines before them, and a
//! core's next work.

use super::locks::LockName;
use super::task::{Action, Part, Place, Role};
use super::{ArrayKind, Processor};
use raidlab_array::CommandId;
use raidlab_units::Nanos;
use std::collections::VecDeque;

/// The time by which a waiting thread must have had less to take the core of another one.
const GRANULARITY: Nanos = Nanos::from_millis(1);
/// The most time that a sleeper is given for having slept.
const SLEEPERS_BONUS: Nanos = Nanos::from_millis(3);

/// A core, with the thread that has it and those that wait for it.
#[derive(Debug, Default)]
pub(super) struct Core {
    /// The thread that has the core, running or about to.
    pub(super) thread: Option<usize>,
    /// Whether the core computes, spins, or is about to wake up: an event will come.
    pub(super) busy: bool,
    pub(super) holds: Option<LockName>,
    /// The place that the core is at, and whether it is there for a job's thread.
    pub(super) place: Option<(Place, bool)>,
    /// The remaining parts of the interrupt that goes on.
    pub(super) interrupt: VecDeque<Part>,
    pub(super) in_interrupt: bool,
    /// Commands that have ended and that no interrupt has dealt with yet, with the number of bios
    /// in each (`Processor::bios`).
    pub(super) ended: Vec<(CommandId, u64)>,
    /// The threads that wait for the core, in line.
    pub(super) ready: Vec<usize>,
}

/// A thread, with all the work that it has.
#[derive(Debug)]
pub(super) struct Thread {
    pub(super) work: VecDeque<Part>,
    pub(super) awake: bool,
    /// Whether the thread sleeps in the array with a request, whatever work it has besides.
    pub(super) held: bool,
    /// Whether the thread sleeps until a worker has looked at the bitmap.
    pub(super) unplugs: bool,
    pub(super) core: usize,
    /// The thread's share of time so far.
    pub(super) share: Nanos,
    /// The number of stripes in its turn, if it has one.
    pub(super) stripes: u64,
    /// The number of stripes that interrupts have let go and that it brings to the lists in
    /// its next turn.
    pub(super) brings: u64,
    /// Whether the thread has a turn, or is on the way to one.
    pub(super) has_turn: bool,
    /// Whether it was asked to run since it last began to (`THREAD_WAKEUP`, pending works).
    pub(super) is_asked: bool,
    /// Whether a worker was asked and has not been through with a batch since (`working`).
    pub(super) is_working: bool,
    /// Whether a command of its request has gone to a scheduler (`Processor::hands_over`).
    pub(super) has_handed_over: bool,
}

impl Processor {
    /// The number of sockets with cores.
    pub(super) fn sockets(&self) -> usize {
        self.charges.sockets.min(self.cores.len())
    }

    /// The socket of a core.
    pub(super) fn socket_of(&self, core: usize) -> usize {
        core / self.cores.len().div_ceil(self.sockets())
    }

    pub(super) fn add_thread(&mut self) {
        // Threads begin spread over the sockets, and there over the caches, as the scheduler
        // spreads them (`sched_balance_find_dst_group`).
        let sockets = self.sockets();
        let each = self.cores.len().div_ceil(sockets);
        let near = self.charges.cores_per_cache;
        let (socket, number) = (self.threads.len() % sockets, self.threads.len() / sockets);
        let caches = each.div_ceil(near);
        let in_socket = number % caches * near + number / caches % near;
        let core = socket * each + in_socket % each;
        self.threads.push(Thread {
            work: VecDeque::new(),
            awake: false,
            held: false,
            unplugs: false,
            core: core % self.cores.len(),
            share: Nanos::ZERO,
            stripes: 0,
            brings: 0,
            has_turn: false,
            is_asked: false,
            is_working: false,
            has_handed_over: false,
        });
    }

    pub(super) fn thread_of(&mut self, process: u32) -> usize {
        let thread = self.first_job + process as usize;
        while self.threads.len() <= thread {
            self.add_thread();
        }
        thread
    }

    pub(super) fn next_part(&mut self, core: usize) -> Option<(Role, Part)> {
        loop {
            if let Some(part) = self.cores[core].interrupt.pop_front() {
                return Some((Role::Interrupt, part));
            }
            self.cores[core].in_interrupt = false;
            if !self.cores[core].ended.is_empty() {
                self.begin_interrupt(core);
                continue;
            }
            let thread = self.thread_to_run(core)?;
            let own = &mut self.threads[thread];
            if !own.held
                && !own.unplugs
                && let Some(part) = own.work.pop_front()
            {
                return Some((Role::Thread(thread), part));
            }
            own.awake = false;
            self.cores[core].thread = None;
        }
    }

    /// Begins an interrupt that deals with all answers that are there.
    fn begin_interrupt(&mut self, core: usize) {
        let charges = &self.charges;
        let own = &mut self.cores[core];
        own.in_interrupt = true;
        let entry = Part::Charge(Place::Interrupt, charges.interrupt);
        own.interrupt.push_back(entry);
        for (id, bios) in own.ended.drain(..) {
            let time = charges.complete;
            own.interrupt
                .push_back(Part::Charge(Place::Interrupt, time));
            if self.array.maps() {
                let time = charges.clone_end * bios;
                own.interrupt.push_back(Part::Charge(Place::Array, time));
            }
            let action = match self.array.kind {
                ArrayKind::Pool(_) => Action::Ended(id),
                _ => Action::Complete(id),
            };
            own.interrupt.push_back(Part::Do(Box::new(action)));
        }
    }

    /// The thread of those in line that has the core now.
    fn thread_to_run(&mut self, core: usize) -> Option<usize> {
        let own = &self.cores[core];
        let share = |thread: &usize| (self.threads[*thread].share, *thread);
        let first = own.ready.iter().min_by_key(|thread| share(thread)).copied();
        match (own.thread, first) {
            (Some(thread), None) => Some(thread),
            (Some(thread), Some(first))
                if self.threads[first].share + GRANULARITY >= self.threads[thread].share =>
            {
                Some(thread)
            }
            (before, Some(first)) => {
                let own = &mut self.cores[core];
                own.ready.retain(|thread| *thread != first);
                own.ready.extend(before);
                own.thread = Some(first);
                let switch = Part::Charge(Place::Switch, self.charges.switch);
                self.threads[first].work.push_front(switch);
                Some(first)
            }
            (None, None) => None,
        }
    }

    /// Wakes a thread that has something to do; returns whether it slept.
    pub(super) fn wake(&mut self, thread: usize, now: Nanos) -> bool {
        let own = &self.threads[thread];
        if own.awake || own.held || own.unplugs {
            return false;
        }
        let core = self.core_for(self.threads[thread].core);
        let least = self.cores[core].thread.map_or(Nanos::ZERO, |other| {
            self.threads[other].share.saturating_sub(SLEEPERS_BONUS)
        });
        let own = &mut self.threads[thread];
        own.awake = true;
        own.core = core;
        own.share = own.share.max(least);
        let target = &mut self.cores[core];
        if target.thread.is_some() {
            target.ready.push(thread);
            return true;
        }
        target.thread = Some(thread);
        let switch = Part::Charge(Place::Switch, self.charges.switch);
        own.work.push_front(switch);
        if !target.busy && !target.in_interrupt {
            target.busy = true;
            self.at(core, Some(Place::Switch));
            self.calendar.schedule(now + self.charges.wake, core);
        }
        true
    }

    /// The core of a thread that wakes: the one that it had, if that is free, or the next idle one
    /// that shares its cache, or in the end the one that it had.
    fn core_for(&self, last: usize) -> usize {
        if self.cores[last].thread.is_none() {
            return last;
        }
        let mut others = self.near(last).skip(1);
        let idle = others.find(|&core| {
            let core = &self.cores[core];
            core.thread.is_none() && !core.in_interrupt && !core.busy
        });
        idle.unwrap_or(last)
    }

    /// The cores that share a cache with this one, from it on.
    fn near(&self, core: usize) -> impl Iterator<Item = usize> + use<> {
        let near = self.charges.cores_per_cache;
        let first = core / near * near;
        let count = near.min(self.cores.len() - first);
        (0..count).map(move |far| first + (core - first + far) % count)
    }

    /// Has a worker that sleeps wake on a core that shares a cache with this one, as Linux does
    /// (kernel/workqueue.c, `kick_pool`).
    pub(super) fn bring_near(&mut self, worker: usize, core: usize) {
        let own = &self.threads[worker];
        if !own.awake && !self.near(core).any(|near| near == own.core) {
            let near: Vec<usize> = self.near(core).collect();
            self.threads[worker].core = near[worker / self.sockets() % near.len()];
        }
    }
}
