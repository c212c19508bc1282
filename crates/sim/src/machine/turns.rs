//! Who goes first at one moment, where the host's scheduler of processes decides it.
//!
//! A process has a request to submit, and at the same moment a disk or a thread of the subject
//! has something to do. Linux since 6.6 lets a process go on until it sleeps, so it goes first,
//! and this is how the machine has it. The scheduler before that, CFS, lets a thread that is
//! woken go before a process that has used more of the processor, as soon as the process
//! returns from its system call (Linux 6.1 kernel/sched/fair.c, `check_preempt_wakeup`).
//!
//! Where the clock of CFS is the timer's tick, as in User-Mode Linux, a whole tick is billed to
//! the one that runs as the clock ticks (`update_curr`), and nothing to all others. What a
//! sleeper can fall behind is less than a tick of 10 ms (`place_entity`: half of
//! `sysctl_sched_latency`, 3 ms). So only the one who was billed last is behind all that are
//! woken. At the begin of a job its processes are, as new ones begin behind (`START_DEBIT`).
//!
//! A process computes for the host's turnaround before each request. A thread of the subject
//! computes for the two readings of the clock that each command costs the kernel.
//!
//! Only the threads of arrays with parity go first like this. The thread of a mirror's sync
//! takes turns with the processes too, but it computes so much itself that chance decides who
//! of them is behind, and for how long (docs/notes/md-rules.md). So a process goes
//! before that thread.
//!
//! Where one processor is all that there is ([`Host::one_processor`](crate::Host::one_processor)),
//! two answers that come together are two turnarounds of computing: the second request leaves that
//! much later, be it of the same process or of another one. Between the two lies what a process
//! computes before it waits for its next answer, also where it need not wait. A thread of an array
//! with parity that is woken meanwhile runs when no process has anything to do. Then it goes on
//! until it sleeps. So it finds together what all of them have submitted. fio goes through its
//! answers one by one (fio's io_u.c, `io_u_queued_complete`, which takes one at a time by default),
//! and Linux since 6.6 has it go on until it sleeps (kernel/sched/features.h, `RUN_TO_PARITY`).

use super::Machine;
use raidlab_array::{MemberCommand, Sender};
use raidlab_units::Nanos;

/// Processor time of a kernel's thread for a command: the kernel bench's default for reading
/// the clock, 2,048 ns, twice.
const COMMAND: Nanos = Nanos(4096);

/// Whom the scheduler's clock found running at its last tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Billed {
    /// Nobody since the job began.
    Nobody,
    /// The process of this clone.
    Process(usize),
    /// A thread of the subject.
    Thread,
}

/// The scheduler's bill.
#[derive(Debug)]
pub(super) struct Turns {
    /// Time from one tick to the next; `None`: a process goes on until it sleeps.
    clock: Option<Nanos>,
    /// What a process computes before each of its requests.
    turnaround: Nanos,
    billed: Billed,
    /// All processes and threads share one processor, and who runs goes on until it sleeps: what
    /// it computes before it waits for an answer.
    one_processor: Option<Nanos>,
    /// Until when the processes have something to compute.
    computed_until: Nanos,
    /// When a thread of the subject ran last.
    thread_ran: Option<Nanos>,
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
        }
    }

    /// A process has an answer now: when it has computed for its next request.
    fn computes(&mut self, now: Nanos) -> Nanos {
        let Some(wait) = self.one_processor else {
            return now + self.turnaround;
        };
        let next = now.max(self.computed_until) + self.turnaround;
        self.computed_until = next + wait;
        next
    }

    /// A thread of the subject runs.
    pub(super) const fn thread_runs(&mut self, now: Nanos) {
        self.thread_ran = Some(now);
    }

    /// When a thread goes on that has something to do from `due` on: after the processes, unless
    /// it is running.
    fn thread_goes_on(&self, due: Nanos, now: Nanos) -> Nanos {
        match self.thread_ran == Some(now) {
            true => due,
            false => due.max(self.computed_until),
        }
    }

    /// The processes of a job end, and those of the next one are new.
    pub(super) const fn processes_end(&mut self) {
        self.billed = Billed::Nobody;
    }

    /// Whether the process of this clone is behind those who are woken.
    pub(super) fn is_behind(&self, clone: usize) -> bool {
        self.clock.is_some()
            && match self.billed {
                Billed::Nobody => true,
                Billed::Process(billed) => billed == clone,
                Billed::Thread => false,
            }
    }

    /// The process of this clone has computed until now.
    pub(super) fn process_ran(&mut self, now: Nanos, clone: usize) {
        if self.ticks(now.saturating_sub(self.turnaround), now) {
            self.billed = Billed::Process(clone);
        }
    }

    /// These commands leave now; the subject's threads compute for theirs.
    pub(super) fn commands_leave(&mut self, now: Nanos, commands: &[MemberCommand]) {
        if self.clock.is_some() {
            let of_process = |it: &&MemberCommand| matches!(it.sender, Sender::Process(_));
            let own = commands.len() - commands.iter().filter(of_process).count();
            if self.ticks(now, Nanos(now.0 + own as u64 * COMMAND.0)) {
                self.billed = Billed::Thread;
            }
        }
    }

    /// Whether the clock ticks after `begin`, and at `end` at the latest.
    fn ticks(&self, begin: Nanos, end: Nanos) -> bool {
        self.clock
            .is_some_and(|clock| begin.0 / clock.0 != end.0 / clock.0)
    }
}

impl Machine {
    /// When a process submits its next request that has an answer now.
    pub(crate) fn next_request(&mut self) -> Nanos {
        self.turns.computes(self.now)
    }

    /// When the subject is to be called without an event; `u64::MAX` for never.
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

    /// A job is over: its processes end, and those of the next job are new ones.
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
        let now = TICK - Nanos(2 * super::COMMAND.0);
        let mut commands = vec![command(Sender::Thread), command(Sender::Process(0))];
        turns.commands_leave(now, &commands);
        assert_eq!(behind(&turns), [true, true], "one of them is the thread's");
        commands.push(command(Sender::Sync));
        turns.commands_leave(now, &commands);
        assert_eq!(behind(&turns), [false, false]);
    }

    #[test]
    fn without_such_a_clock_nobody_is_behind() {
        let mut turns = Turns::new(None, TURNAROUND, None);
        turns.process_ran(TICK, 0);
        turns.commands_leave(TICK, &[command(Sender::Thread)]);
        assert_eq!(behind(&turns), [false, false]);
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
