//! The order of processes and threads at one moment, where the host's scheduler of
//! processes decides it.
//!
//! A process has a request to submit, and at the same moment a disk or a thread of the subject
//! has something to do. Linux since 6.6 lets a process go on until it sleeps, so it goes first,
//! and this is how the machine has it. The scheduler before that, CFS, lets a thread that is
//! woken go before a process that has used more of the processor, as soon as the process
//! returns from its system call (Linux 6.1 kernel/sched/fair.c, `check_preempt_wakeup`).
//!
//! Where the clock of CFS is the timer's tick, as in User-Mode Linux, a whole tick is billed to the
//! one that runs as the clock ticks (`update_curr`), and nothing to all others. A sleeper can fall
//! behind by less than a tick of 10 ms (`place_entity`: half of `sysctl_sched_latency`, 3 ms). So
//! only the one who was billed last is behind all that are woken. At the begin of a job its
//! processes are, as new ones begin behind (`START_DEBIT`).
//!
//! A process computes for the host's turnaround before each request. A thread of the subject
//! computes for the readings of the clock that its commands cost the kernel (see `departures`).
//!
//! The threads of arrays with parity go before a process that is behind. So does the thread of a
//! RAID 10's sync that is woken by the end of the process's request: it raises the barrier, and
//! the process waits there with its next request (drivers/md/raid10.c, `raise_barrier`).
//!
//! A thread with stripes that is behind itself gives way to the process that it has answered, as
//! soon as it has been at eight stripes (drivers/md/raid5.c, `handle_active_stripes`:
//! `cond_resched`). So it finds what this process submits before it goes on.
//!
//! Where one processor is all that there is
//! ([`Host::one_processor`](crate::Host::one_processor)), two answers that come together are two
//! turnarounds of computing: the second request leaves that much later, be it of the same process
//! or of another one. Between the two lies the time that a process computes before it waits for
//! its next answer, also where it need not wait. A thread of an array with parity that is woken
//! meanwhile runs when no process has anything to do. Then it goes on until it sleeps. So it
//! finds the submissions of all of them together. fio goes through its answers one by one (fio's
//! io_u.c, `io_u_queued_complete`, which takes one at a time by default), and Linux since 6.6 has
//! it go on until it sleeps (kernel/sched/features.h, `RUN_TO_PARITY`).

use super::Machine;
use raidlab_array::{Behind, MemberCommand, Sender};
use raidlab_units::{Nanos, Sectors};

/// Processor time of a kernel's thread for reading the clock: the kernel bench's default.
const READING: Nanos = Nanos(2048);

/// The process or thread that the scheduler's clock found running at its last tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Billed {
    /// None was found since the job began.
    Nobody,
    /// The process of this clone.
    Process(usize),
    /// A thread of the subject.
    Thread,
}

/// The state of the scheduler's billing.
#[derive(Debug)]
pub(super) struct Turns {
    /// The time from one tick to the next; `None`: a process goes on until it sleeps.
    clock: Option<Nanos>,
    /// The time that a process computes before each of its requests.
    turnaround: Nanos,
    billed: Billed,
    /// The time that a process computes before it waits for an answer, where all processes and
    /// threads share one processor and each goes on until it sleeps.
    one_processor: Option<Nanos>,
    /// The time until which the processes that the threads wait for have something to compute.
    computed_until: Nanos,
    /// The time at which a thread of the subject ran last.
    thread_ran: Option<Nanos>,
    /// The time until which the threads of the subject compute for commands of theirs.
    sends_until: Nanos,
}

impl Turns {
    pub(super) const fn new(
        clock: Option<Nanos>,
        turnaround: Nanos,
        one_processor: Option<Nanos>,
    ) -> Self {
        Self {
            clock,
            turnaround,
            billed: Billed::Nobody,
            one_processor,
            computed_until: Nanos::ZERO,
            thread_ran: None,
            sends_until: Nanos::ZERO,
        }
    }

    /// Has a process that has an answer now compute, and returns when it has done so for
    /// its next request.
    fn computes(&mut self, now: Nanos) -> Nanos {
        let Some(wait) = self.one_processor else {
            let next = now + self.turnaround;
            if self.thread_is_behind() {
                self.computed_until = next;
            }
            return next;
        };
        let next = now.max(self.computed_until) + self.turnaround;
        self.computed_until = next + wait;
        next
    }

    /// Notes that a thread of the subject runs.
    pub(super) const fn thread_runs(&mut self, now: Nanos) {
        self.thread_ran = Some(now);
    }

    /// Whether the subject's threads are behind a process that is woken.
    fn thread_is_behind(&self) -> bool {
        self.clock.is_some() && self.billed == Billed::Thread
    }

    /// The time at which a thread goes on that has something to do from `due` on: after the
    /// processes, unless it is running and gives way to none.
    fn thread_goes_on(&self, due: Nanos, now: Nanos) -> Nanos {
        match self.thread_ran == Some(now) && !self.thread_is_behind() {
            true => due,
            false => due.max(self.computed_until),
        }
    }

    /// Ends the processes of a job; those of the next one are new.
    pub(super) const fn processes_end(&mut self) {
        self.billed = Billed::Nobody;
    }

    /// Whether the scheduler bills by a clock.
    pub(super) const fn has_clock(&self) -> bool {
        self.clock.is_some()
    }

    /// The processes that are behind those who are woken, where the scheduler has such a clock.
    pub(super) fn behind(&self) -> Option<Behind> {
        self.clock.map(|_| match self.billed {
            Billed::Nobody => Behind::All,
            Billed::Process(clone) => u32::try_from(clone).map_or(Behind::Nobody, Behind::Process),
            Billed::Thread => Behind::Nobody,
        })
    }

    /// Whether the process of this clone is behind those who are woken.
    pub(super) fn is_behind(&self, clone: usize) -> bool {
        let behind = self.behind().unwrap_or_default();
        u32::try_from(clone).is_ok_and(|process| behind.has(process))
    }

    /// Notes that the process of this clone has computed until now.
    pub(super) fn process_ran(&mut self, now: Nanos, clone: usize) {
        if self.ticks(now.saturating_sub(self.turnaround), now) {
            self.billed = Billed::Process(clone);
        }
    }

    /// Has the subject's threads compute for those of these commands that are theirs, in bios of
    /// this length; returns until when, where the scheduler has such a clock.
    pub(super) fn computes_for(
        &mut self,
        now: Nanos,
        commands: &[MemberCommand],
        longest_bio: Sectors,
    ) -> Option<Nanos> {
        self.clock?;
        let of_process = |it: &&MemberCommand| matches!(it.sender, Sender::Process(_));
        let own = commands.iter().filter(|it| !of_process(it));
        let readings: u64 = own.map(|it| it.count.0.div_ceil(longest_bio.0) + 1).sum();
        let begin = now.max(self.sends_until);
        self.sends_until = begin + READING * readings;
        if self.ticks(begin, self.sends_until) {
            self.billed = Billed::Thread;
        }
        Some(self.sends_until)
    }

    /// Whether the clock ticks after `begin`, and at `end` at the latest.
    fn ticks(&self, begin: Nanos, end: Nanos) -> bool {
        self.clock
            .is_some_and(|clock| begin.0 / clock.0 != end.0 / clock.0)
    }
}

impl Machine {
    /// The time at which a process submits its next request that has an answer now.
    pub(crate) fn next_request(&mut self) -> Nanos {
        self.turns.computes(self.now)
    }

    /// The time at which the subject is to be called without an event; `u64::MAX` for never.
    pub(super) fn next_tick(&self) -> u64 {
        let due = self.subject.next_tick().filter(|_| self.can_tick());
        let goes_on = |due| match self.subject.threads_go_first() {
            true => self.turns.thread_goes_on(due, self.now),
            false => due,
        };
        due.map_or(u64::MAX, |due| goes_on(due).0)
    }

    /// Whether the subject's threads and the disks go before the next turn of the calendar.
    pub(super) fn next_process_is_behind(&self) -> bool {
        let next = self.calendar.next_event();
        next.is_some_and(|issue| self.turns.is_behind(issue.clone))
            && self.subject.threads_go_first()
    }

    /// Ends the processes of a job that is over; those of the next job are new ones.
    pub(crate) const fn processes_end(&mut self) {
        self.turns.processes_end();
    }
}

#[cfg(test)]
mod tests {
    use super::Turns;
    use raidlab_array::{BufferId, CommandId, MemberCommand, Operation, Purpose, Sender, Slot};
    use raidlab_units::{Nanos, Sectors};

    const TICK: Nanos = Nanos::from_millis(10);
    const TURNAROUND: Nanos = Nanos::from_micros(20);
    const BLOCK: Sectors = Sectors(8);

    fn behind(turns: &Turns) -> [bool; 2] {
        [0, 1].map(|clone| turns.is_behind(clone))
    }

    fn command(sender: Sender) -> MemberCommand {
        MemberCommand {
            id: CommandId(1),
            slot: Slot(0),
            operation: Operation::Read,
            start: Sectors(0),
            count: Sectors(8),
            force_unit_access: false,
            purpose: Purpose::Foreground,
            sender,
            buffer: BufferId::None,
        }
    }

    #[test]
    fn whom_the_clock_finds_running_is_behind() {
        let mut turns = Turns::new(Some(TICK), TURNAROUND, None);
        assert_eq!(behind(&turns), [true, true]);
        turns.process_ran(TICK - Nanos(1), 0);
        assert_eq!(behind(&turns), [true, true], "the clock has not ticked");
        turns.process_ran(TICK, 1);
        assert_eq!(behind(&turns), [false, true]);
        turns.process_ran(TICK + TURNAROUND, 0);
        assert_eq!(behind(&turns), [false, true], "it began with the tick");
        turns.process_ran(TICK + TICK, 0);
        assert_eq!(behind(&turns), [true, false]);
        turns.processes_end();
        assert_eq!(behind(&turns), [true, true]);
    }

    #[test]
    fn a_thread_is_billed_for_its_own_commands() {
        let mut turns = Turns::new(Some(TICK), TURNAROUND, None);
        let own = super::READING * 2;
        let now = TICK - own * 2;
        let mut commands = vec![command(Sender::Thread), command(Sender::Process(0))];
        assert_eq!(turns.computes_for(now, &commands, BLOCK), Some(TICK - own));
        assert_eq!(behind(&turns), [true, true], "one of them is the thread's");
        commands[0].sender = Sender::Sync;
        assert_eq!(turns.computes_for(now, &commands, BLOCK), Some(TICK));
        assert_eq!(behind(&turns), [false, false], "it goes on where it was");
    }

    /// Linux 6.1 block/blk-core.c, `submit_bio_noacct_nocheck`: a reading for each bio, and
    /// block/blk-mq.c, `blk_mq_rq_ctx_init`: one for the request.
    #[test]
    fn a_thread_computes_for_each_bio_of_a_command() {
        let mut turns = Turns::new(Some(TICK), TURNAROUND, None);
        let mut long = command(Sender::Thread);
        long.count = Sectors(2032);
        for (bio, readings) in [(128, 17), (8, 255)] {
            let until = turns.computes_for(TICK * readings, &[long], Sectors(bio));
            assert_eq!(until, Some(TICK * readings + super::READING * readings));
        }
    }

    /// Linux 6.1 drivers/md/raid5.c, `handle_active_stripes`: `cond_resched`.
    #[test]
    fn a_thread_that_is_behind_waits_for_whom_it_has_answered() {
        let mut turns = Turns::new(Some(TICK), TURNAROUND, None);
        let (begin, now) = (TICK - Nanos(1), TICK + TICK / 2);
        for is_behind in [false, true] {
            if is_behind {
                turns.computes_for(begin, &[command(Sender::Thread)], BLOCK);
            }
            turns.thread_runs(now);
            assert_eq!(
                turns.thread_goes_on(now, now),
                now,
                "it has answered nobody"
            );
            let next = turns.computes(now);
            let waits = if is_behind { next } else { now };
            assert_eq!(turns.thread_goes_on(now, now), waits, "{is_behind}");
        }
    }

    #[test]
    fn without_such_a_clock_nobody_is_behind() {
        let mut turns = Turns::new(None, TURNAROUND, None);
        turns.process_ran(TICK, 0);
        let thread = [command(Sender::Thread)];
        assert_eq!(turns.computes_for(TICK, &thread, BLOCK), None);
        assert_eq!(behind(&turns), [false, false]);
        assert_eq!(turns.behind(), None);
    }

    #[test]
    fn one_processor_computes_for_one_request_after_the_other() {
        let wait = Nanos::from_micros(3);
        let [now, later] = [TICK, TICK + TURNAROUND * 9];
        for one_processor in [None, Some(Nanos::ZERO), Some(wait)] {
            let mut turns = Turns::new(None, TURNAROUND, one_processor);
            let first = now + TURNAROUND;
            let second = match one_processor {
                Some(wait) => first + wait + TURNAROUND,
                None => first,
            };
            let next = [now, now, later].map(|now| turns.computes(now));
            assert_eq!(next, [first, second, later + TURNAROUND]);
            let waits = one_processor.map_or(first, |wait| next[2] + wait);
            assert_eq!(turns.thread_goes_on(first, first), waits);
            turns.thread_runs(first);
            assert_eq!(turns.thread_goes_on(first, first), first, "it runs");
        }
    }
}
