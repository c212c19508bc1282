//! The work of threads and interrupts, in parts.

use super::locks::LockName;
use raidlab_array::{CommandId, Finished, MemberCommand, Request};
use raidlab_units::Nanos;

/// The kind of work that a core's time goes into, by which it is accounted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// The program that asks: fio itself.
    User,
    /// System calls and the block layer above arrays and drivers.
    Call,
    /// The block layer's queue and the driver, below.
    Driver,
    /// A scheduler's hooks, and the wait for its lock.
    Scheduler,
    /// Mapping, cloning and ending of requests in the array.
    Array,
    /// Looking up and handling stripes in the array.
    Stripe,
    /// Computing the parity of stripes.
    Parity,
    /// Copying data between requests and the stripe cache.
    Copy,
    /// Looking up a block of a pool's volume, and making, moving and ending its I/O.
    Record,
    /// Computing checksums of blocks.
    Checksum,
    /// Compressing blocks, and decompressing them.
    Compress,
    /// Waiting for locks, taking and holding them.
    Lock,
    /// Interrupts, and the ends of commands in them.
    Interrupt,
    /// Wake-ups and changes of threads.
    Switch,
}

impl Place {
    /// All places with their names, in the order of their numbers.
    pub(crate) const ALL: [(Self, &str); 14] = [
        (Self::User, "fio"),
        (Self::Call, "submit"),
        (Self::Driver, "driver"),
        (Self::Scheduler, "scheduler"),
        (Self::Array, "array"),
        (Self::Stripe, "stripe"),
        (Self::Parity, "parity"),
        (Self::Copy, "copy"),
        (Self::Record, "record"),
        (Self::Checksum, "checksum"),
        (Self::Compress, "compress"),
        (Self::Lock, "lock"),
        (Self::Interrupt, "interrupt"),
        (Self::Switch, "switch"),
    ];

    /// The place to which the time of a lock's passes goes.
    pub(crate) const fn of_lock(lock: LockName) -> Self {
        match lock {
            LockName::Scheduler(_) => Self::Scheduler,
            _ => Self::Lock,
        }
    }
}

/// A part of the work to be done. Between two of them the thread or interrupt that does it
/// may be interrupted.
#[derive(Debug, Clone)]
pub(super) enum Part {
    /// The core is at work for this time.
    Charge(Place, Nanos),
    /// A lock is taken, held for this time, and let go.
    Lock(LockName, Nanos),
    /// An action that takes no time of the core.
    Do(Box<Action>),
}

/// An action at a moment within the work of a thread or interrupt; the machine does it.
#[derive(Debug, Clone)]
pub(crate) enum Action {
    /// A job's request reaches the subject.
    Request(Request),
    /// A request of this process goes on to its next stripe.
    GoOn(u32),
    /// A job's thread sleeps in the subject, if that still wants it to.
    Sleep(u32),
    /// A command leaves the array.
    Send(MemberCommand),
    /// A command reaches its disk's queue.
    Dispatch(MemberCommand),
    /// The subject is told that a command has ended.
    Complete(CommandId),
    /// A request has ended: the asking thread is woken.
    Answer(Finished),
    /// The job that asked learns that its request has ended.
    Notice(Finished),
    /// A worker is asked to write the bitmap's pages, and the asking process sleeps.
    Unplug,
    /// The worker has written them: the thread of this number goes on.
    Unplugged(usize),
    /// The array's thread, or a worker, takes over the stripes that interrupts let go, woken for
    /// it or not.
    TakeOver {
        /// Whether it was woken: it has not held the lock before.
        first: bool,
    },
    /// The array's thread, or a worker, has its turn.
    Turn,
    /// The thread has done all that the turn led to.
    TurnOver,
    /// A request for a volume goes to the taskq of its pool.
    Enter(Request),
    /// A pool's command has ended: its taskq goes on with it.
    Ended(CommandId),
    /// All that a pool's request needs is there: its thread goes on with it.
    Gather(Finished),
    /// The syncing thread hands a write to its taskq.
    Issue(MemberCommand),
    /// A thread of a taskq has done its task.
    TaskOver,
}

/// The thread or interrupt on whose account work is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The thread of this number.
    Thread(usize),
    /// An interrupt on the core.
    Interrupt,
}
