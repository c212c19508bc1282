//! The processor: cores, threads, interrupts and locks as servers in virtual time.
//!
//! Without it computing takes no time, and an array's thread runs when the process sleeps, as on
//! one core. That is right for most loads of a few hard disks and wrong for NVMe drives. With it
//! each piece of work for a request is charged to a core:
//!
//! * **Threads.** Each clone of a job is a thread; the array has one of its own, and RAID 5 with
//!   `group_thread_cnt` has workers beside it. The work of a thread stands in line before it, in
//!   parts: a charge, a pass of a lock, an action. A request reaches the array, and a command its
//!   disk, when the parts before that are done.
//! * **Cores.** A thread that has something to do takes the core that it had, or else an idle one
//!   that shares a cache of the last level with that (Linux kernel/sched/fair.c,
//!   `select_idle_sibling`), or else waits in line for the one that it had; the thread that has had
//!   less time goes first, as in CFS, with a granularity of 1 ms. A thread with nothing to do sleeps.
//!   It takes `wake_ns` until it runs on an idle core, and a change of threads costs `switch_ns`.
//! * **Interrupts.** An answer of a disk comes to the core that sent the command, and takes
//!   precedence there between two parts of a thread's work. All answers that are there when
//!   an interrupt begins are dealt with in it. The end of a request wakes its thread.
//! * **Locks.** See [`locks`]: first come, first served; a spinning thread holds its core
//!   and is billed.
//! * **Writes with a bitmap** to RAID 1 and 10 are not just sent by the
//!   process: see [`BitmapWrites`].
//! * **The array's thread** sends the commands that a completion or a tick has led to: writes
//!   after their bitmap pages where it sends these, resync, the next phase of a stripe. RAID 5's,
//!   and its workers, have turns: see [`turns`]. A process that slept for a free request of a disk
//!   sends its commands itself (Linux block/blk-mq-tag.c, `blk_mq_get_tag`).
//!
//! So at queue depth 1 charges add to a request's latency, and at a high one they bound
//! requests per second at cores by charges.
//!
//! A *scheduler* of a disk, where it has one, is charged for each command to the thread that sends
//! it: mq-deadline and BFQ under the one lock that each disk has for it, kyber, which has locks of
//! its own for each core, without one. Where there is no plug, a process hands the request over to
//! a thread of the kernel there (`ArrayPaths::unplugged`).
//!
//! A pool of ZFS has the threads of its taskqs instead, see [`pool`].
//!
//! Left out: threads of one core slow each other down only by taking turns (no SMT, no
//! frequency, and what a thread does to the caches of others); the scheduler never moves a thread
//! that runs or waits in line to the cores of another cache.

mod charges;
mod cores;
mod locks;
mod paths;
mod pool;
mod schedulers;
mod sleepers;
mod task;
mod taskqs;
mod turns;
mod usage;

pub use charges::{
    Checksum, Compression, ProcessorError, ProcessorNumbers, ProcessorPreset, ProcessorSource,
};
pub use locks::LockUse;
pub use paths::{ArrayKind, ArrayPaths, BitmapWrites, OldLocks};
pub use pool::PoolPaths;
pub(crate) use task::{Action, Place, Role};
pub use usage::{ProcessorUse, ThreadUse};

use crate::calendar::Calendar;
use charges::Charges;
use cores::{Core, Thread};
use locks::{LockName, Locks};
use raidlab_array::{
    CommandId, Finished, MemberCommand, Mixed, Operation, Outputs, Purpose, Request, RequestId,
    Sender,
};
use raidlab_disk::Order;
use raidlab_units::{Nanos, Sectors};
use std::collections::HashMap;
use task::Part;
use taskqs::Taskq;
use turns::Turns;
use usage::Bill;

/// The configuration of a machine's processor.
#[derive(Debug, Clone, PartialEq)]
pub struct ProcessorConfig {
    /// The time that each piece of work takes on a core.
    pub numbers: ProcessorNumbers,
    /// The threads and locks of the array.
    pub array: ArrayPaths,
}

/// The number of sectors of a member's block in a stripe.
const STRIPE_SECTORS: u64 = 8;

/// The process that asked for a request that has not ended, the operation, and its size.
type Asked = Option<(u32, Operation, Sectors)>;

/// The cores of a machine at work.
#[derive(Debug)]
pub(crate) struct Processor {
    charges: Charges,
    array: ArrayPaths,
    cores: Vec<Core>,
    /// The array's thread, its workers or the threads of its taskqs, followed by a thread for each
    /// clone of the jobs.
    threads: Vec<Thread>,
    workers: usize,
    taskqs: Vec<Taskq>,
    first_job: usize,
    calendar: Calendar<usize>,
    locks: Locks,
    bill: Bill,
    asked: Vec<Asked>,
    /// The cores that wait for commands, with the number of bios in each command.
    senders: HashMap<CommandId, (usize, u64), Mixed>,
    turns: Turns,
    pool: pool::InPool,
    /// Threads that sleep in the array with a request.
    held: Vec<usize>,
    next_hash: u8,
    scratch: Vec<Part>,
    /// The number of requests to be submitted and answers to be fetched by threads of jobs.
    in_line: usize,
    /// The number of cores at each place, and the number of these that work for jobs' threads.
    at: [usize; Place::ALL.len()],
    at_jobs: usize,
}

impl Processor {
    pub(crate) fn new(config: &ProcessorConfig) -> Self {
        let charges = Charges::of(&config.numbers);
        let array = config.array;
        let sockets = charges.sockets.min(charges.cores);
        let workers = match array.has_parity() {
            true => array.group_threads as usize * sockets,
            false => 0,
        };
        let cores: Vec<Core> = (0..charges.cores).map(|_| Core::default()).collect();
        let mut processor = Self {
            locks: Locks::new(
                charges.cores.div_ceil(sockets),
                charges.way,
                charges.crowd_picos,
            ),
            cores,
            threads: Vec::new(),
            workers,
            taskqs: taskqs::of(&array, charges.cores),
            first_job: 0,
            calendar: Calendar::new(),
            bill: Bill::default(),
            asked: Vec::new(),
            senders: HashMap::default(),
            turns: Turns::default(),
            pool: pool::InPool::default(),
            held: Vec::new(),
            next_hash: 0,
            scratch: Vec::new(),
            in_line: 0,
            at: [0; Place::ALL.len()],
            at_jobs: 0,
            charges,
            array,
        };
        let last = processor.taskqs.last();
        processor.first_job = last.map_or(1 + workers, |taskq| taskq.threads.end);
        for _ in 0..processor.first_job {
            processor.add_thread();
        }
        processor
    }

    pub(crate) fn next_time(&self) -> u64 {
        self.calendar.next_time().map_or(u64::MAX, |time| time.0)
    }

    /// Takes the next core's event, and returns the core.
    pub(crate) fn pop(&mut self, now: Nanos) -> Option<usize> {
        let core = self.calendar.pop()?;
        self.cores[core].busy = false;
        self.at(core, None);
        if let Some(lock) = self.cores[core].holds.take()
            && let Some((next, spun, time)) = self.locks.release(lock, now)
        {
            let role = self.role(next);
            self.bill_for(role, Place::of_lock(lock), spun + time);
            self.calendar.schedule(now + time, next);
        }
        Some(core)
    }

    fn role(&self, core: usize) -> Role {
        match (self.cores[core].in_interrupt, self.cores[core].thread) {
            (false, Some(thread)) => Role::Thread(thread),
            _ => Role::Interrupt,
        }
    }

    fn bill_for(&mut self, role: Role, place: Place, time: Nanos) {
        if let Role::Thread(thread) = role {
            self.threads[thread].share += time;
        }
        self.bill.add(role, place, time);
    }

    /// The next thing for a core that is not busy: the machine does it and calls again, until there
    /// is nothing or the core is busy.
    pub(crate) fn run(&mut self, core: usize, now: Nanos) -> Option<(Role, Action)> {
        loop {
            if self.cores[core].busy {
                return None;
            }
            let (role, part) = self.next_part(core)?;
            match part {
                Part::Charge(_, Nanos::ZERO) => {}
                Part::Charge(place, time) => {
                    self.bill_for(role, place, time);
                    self.at(core, Some(place));
                    self.cores[core].busy = true;
                    self.calendar.schedule(now + time, core);
                }
                Part::Lock(lock, hold) => {
                    self.at(core, Some(Place::of_lock(lock)));
                    self.cores[core].busy = true;
                    self.cores[core].holds = Some(lock);
                    if let Some(time) = self.locks.take(lock, core, now, hold) {
                        self.bill_for(role, Place::of_lock(lock), time);
                        self.calendar.schedule(now + time, core);
                    }
                }
                Part::Do(action) => {
                    if matches!(*action, Action::Request(_) | Action::Notice(_)) {
                        self.in_line -= 1;
                    }
                    if let (Role::Thread(thread), Action::Request(_)) = (role, &*action) {
                        self.threads[thread].has_handed_over = false;
                    }
                    self.note(role, &action);
                    return Some((role, *action));
                }
            }
        }
    }

    /// Gives a job's thread a request to submit.
    pub(crate) fn submit(&mut self, now: Nanos, request: Request) {
        let thread = self.thread_of(request.process);
        let (operation, count) = (request.operation, request.count);
        self.remember(request.id, (request.process, operation, count));
        let charges = &self.charges;
        let mut parts = std::mem::take(&mut self.scratch);
        parts.push(Part::Charge(Place::User, charges.user));
        parts.push(Part::Charge(Place::Call, charges.call / 2));
        match self.array.kind {
            ArrayKind::Pool(pool) => pool.enter(request, charges, &mut parts),
            _ => {
                self.array.before(operation, count, charges, &mut parts);
                parts.push(Part::Do(Box::new(Action::Request(request))));
            }
        }
        self.threads[thread].work.extend(parts.drain(..));
        self.scratch = parts;
        self.in_line += 1;
        self.wake(thread, now);
    }

    fn remember(&mut self, id: RequestId, asked: (u32, Operation, Sectors)) {
        let place = usize::try_from(id.0).unwrap_or(usize::MAX);
        if self.asked.len() <= place {
            self.asked.resize(place + 1, None);
        }
        self.asked[place] = Some(asked);
    }

    /// Notes that a command leaves from a core, which will be told of its end.
    pub(crate) fn sent(&mut self, command: MemberCommand, core: usize) {
        let bios = self.bios(&command);
        self.senders.insert(command.id, (core, bios));
        self.sent_by_pool(command);
    }

    /// Takes a disk's answer: an interrupt for the core that sent the command.
    pub(crate) fn ended(&mut self, now: Nanos, command: CommandId) {
        let (core, bios) = self.senders.remove(&command).unwrap_or((0, 1));
        let own = &mut self.cores[core];
        own.ended.push((command, bios));
        if !own.busy && !own.in_interrupt && own.ended.len() == 1 {
            // An idle core would not look otherwise.
            own.busy = true;
            self.calendar.schedule(now, core);
        }
    }

    /// Has the thread of an ended request fetch the answer.
    pub(crate) fn answer(&mut self, now: Nanos, core: usize, finished: Finished) {
        let place = usize::try_from(finished.id.0).unwrap_or(usize::MAX);
        let asked = self.asked.get_mut(place).and_then(Option::take);
        let process = asked.map_or(0, |(process, ..)| process);
        let thread = self.thread_of(process);
        let own = &mut self.threads[thread].work;
        own.push_back(Part::Charge(Place::Call, self.charges.call / 2));
        own.push_back(Part::Do(Box::new(Action::Notice(finished))));
        self.in_line += 1;
        if self.wake(thread, now) {
            self.put_first(
                core,
                &mut vec![Part::Charge(Place::Switch, self.charges.wake_call)],
            );
        }
    }

    /// Puts parts before all the remaining work of the thread or interrupt that has the core.
    fn put_first(&mut self, core: usize, parts: &mut Vec<Part>) {
        let role = self.role(core);
        let work = match role {
            Role::Thread(thread) => &mut self.threads[thread].work,
            Role::Interrupt => &mut self.cores[core].interrupt,
        };
        for part in parts.drain(..).rev() {
            work.push_front(part);
        }
    }

    /// The number of bios of which a command is made: one for each stripe, where the threads
    /// of RAID 4, 5 and 6 send it (drivers/md/raid5.c, `ops_run_io`). They become one request
    /// in the plug.
    fn bios(&self, command: &MemberCommand) -> u64 {
        match self.array.has_parity() && command.sender == Sender::Thread {
            true => command.count.0.div_ceil(STRIPE_SECTORS).max(1),
            false => 1,
        }
    }

    /// Adds the parts that a command costs its sender.
    fn command(&self, command: MemberCommand, parts: &mut Vec<Part>) {
        if self.array.maps() {
            let time = self.charges.clone * self.bios(&command);
            parts.push(Part::Charge(Place::Array, time));
        }
        parts.push(Part::Do(Box::new(Action::Send(command))));
    }

    /// Sends a command to a disk by way of the block layer's queue, which chooses in this order,
    /// and the driver. A flush goes past a scheduler.
    pub(crate) fn dispatch(
        &mut self,
        core: usize,
        command: MemberCommand,
        disk: usize,
        order: Order,
    ) {
        let mut parts = vec![
            Part::Charge(Place::Driver, self.charges.dispatch),
            Part::Do(Box::new(Action::Dispatch(command))),
        ];
        if command.operation != Operation::Flush {
            let disk = u8::try_from(disk).unwrap_or(u8::MAX);
            let scheduler = self.charges.scheduler(order, disk);
            if !scheduler.is_empty() && self.hands_over(core) {
                let time = self.charges.hand_over();
                parts.insert(0, Part::Charge(Place::Switch, time));
            }
            parts.splice(0..0, scheduler);
        }
        self.put_first(core, &mut parts);
    }

    /// Whether a command that is in its scheduler waits for a thread of the kernel, `kblockd`, to
    /// take it to the driver. That thread goes before all others on the core as soon as the process
    /// leaves the kernel, so all commands of a request are one hand-over.
    fn hands_over(&mut self, core: usize) -> bool {
        match self.role(core) {
            Role::Thread(thread) if self.array.unplugged && thread >= self.first_job => {
                !std::mem::replace(&mut self.threads[thread].has_handed_over, true)
            }
            _ => false,
        }
    }

    /// Lets a core go on when all else of this moment has happened.
    pub(crate) fn pause(&mut self, core: usize, now: Nanos) {
        self.cores[core].busy = true;
        self.calendar.schedule(now, core);
    }

    /// Ends a command that did not come to a driver.
    pub(crate) fn ended_at_once(&mut self, core: usize, command: CommandId) {
        let mut parts = vec![Part::Do(Box::new(Action::Complete(command)))];
        if self.array.maps() {
            let end = Part::Charge(Place::Array, self.charges.clone_end);
            parts.insert(0, end);
        }
        self.put_first(core, &mut parts);
    }

    /// Charges the subject's work and the outputs that it ordered when it was called on a core.
    pub(crate) fn follow(&mut self, now: Nanos, core: usize, outputs: &mut Outputs) {
        if let ArrayKind::Pool(pool) = self.array.kind {
            self.follow_pool(now, core, &pool, outputs);
            return;
        }
        let mut parts = std::mem::take(&mut self.scratch);
        for process in outputs.on_their_way.drain(..) {
            let thread = self.thread_of(process);
            let goes_on = Part::Do(Box::new(Action::GoOn(process)));
            self.threads[thread].work.push_front(goes_on);
            if self.wake(thread, now) {
                parts.push(Part::Charge(Place::Switch, self.charges.wake_call));
            }
        }
        let (work, charges) = (outputs.work, &self.charges);
        let hash = &mut self.next_hash;
        self.array.stripes(work, hash, charges, &mut parts);
        for finished in outputs.finished.drain(..) {
            let place = usize::try_from(finished.id.0).unwrap_or(usize::MAX);
            if let Some(&Some((_, operation, count))) = self.asked.get(place) {
                self.array.after(operation, count, charges, &mut parts);
            }
            parts.push(Part::Do(Box::new(Action::Answer(finished))));
        }
        let in_interrupt = self.cores[core].in_interrupt;
        let of_job = matches!(self.role(core), Role::Thread(thread) if thread >= self.first_job);
        if in_interrupt {
            self.sleepers_send(now, outputs, &mut parts);
        }
        let mut of_thread = Vec::new();
        let mut has_asked = false;
        for command in outputs.commands.drain(..) {
            let is_write = of_job
                && command.operation == Operation::Write
                && command.purpose == Purpose::Foreground;
            // The array's own thread sends its metadata, and the commands that an answer leads to.
            if in_interrupt || command.purpose == Purpose::Metadata {
                self.command(command, &mut of_thread);
            } else if is_write && self.array.sender() == BitmapWrites::Thread {
                parts.push(Part::Charge(Place::Array, self.charges.clone));
                parts.push(Part::Lock(LockName::Device, self.charges.lock));
                of_thread.push(Part::Do(Box::new(Action::Send(command))));
            } else {
                let asks = is_write && self.array.sender() == BitmapWrites::Worker;
                if asks && !std::mem::replace(&mut has_asked, true) {
                    parts.push(Part::Do(Box::new(Action::Unplug)));
                }
                self.command(command, &mut parts);
            }
        }
        if !of_thread.is_empty() {
            self.threads[0].work.extend(of_thread);
            if self.wake(0, now) {
                parts.push(Part::Charge(Place::Switch, self.charges.wake_call));
            }
        }
        self.note_stripes(now, core, work, &mut parts);
        self.put_first(core, &mut parts);
        self.scratch = parts;
    }
}
