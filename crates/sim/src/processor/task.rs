//! What threads and interrupts do, in parts.

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
    /// The array maps, clones and ends.
    Array,
    /// The array looks up and handles stripes.
    Stripe,
    /// The parity of stripes is computed.
    Parity,
    /// Data are copied between requests and the stripe cache.
    Copy,
    /// A pool looks up a block of its volume, and makes, moves and ends its I/O.
    Record,
    /// Checksums of blocks are computed.
    Checksum,
    /// Blocks are compressed, or brought back.
    Compress,
    /// Locks are waited for, taken and held.
    Lock,
    /// Interrupts, and the ends of commands in them.
    Interrupt,
    /// Wake-ups and changes of threads.
    Switch,
}

impl Place {
    /// All, in the order of their numbers.
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

    /// Where the time of a lock's passes goes.
    pub(crate) const fn of_lock(lock: LockName) -> Self {
        match lock {
            LockName::Scheduler(_) => Self::Scheduler,
            _ => Self::Lock,
        }
    }
}

/// A part of what is to be done. Between two of them whoever does it may be interrupted.
#[derive(Debug, Clone)]
pub(super) enum Part {
    /// The core is at work for so long.
    Charge(Place, Nanos),
    /// A lock is taken, held for so long, and let go.
    Lock(LockName, Nanos),
    /// Something happens that takes no time of the core.
    Do(Box<Action>),
}

/// What happens at a moment within somebody's work; the machine does it.
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
    /// A request has ended: whoever asked is woken.
    Answer(Finished),
    /// The job that asked learns that its request has ended.
    Notice(Finished),
    /// A worker is asked to write the bitmap's pages, and whoever asked sleeps.
    Unplug,
    /// The worker has done that: the thread of this number goes on.
    Unplugged(usize),
    /// The array's thread, or a worker, takes over what interrupts let go, woken for it or not.
    TakeOver {
        /// Whether it was woken: it has not held the lock before.
        first: bool,
    },
    /// The array's thread, or a worker, has its turn.
    Turn,
    /// It has done all that the turn led to.
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

/// On whose account something is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The thread of this number.
    Thread(usize),
    /// An interrupt on the core.
    Interrupt,
}
