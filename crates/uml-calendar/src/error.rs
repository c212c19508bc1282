//! The errors with which a run cannot go on, and its other ends.

use crate::channel::ChannelError;
use crate::memory::MemoryError;
use crate::storage::StorageError;
use crate::time_travel::{Operation, TimeMessageError};
use crate::vhost_user::FrontendMessageError;
use raidlab_units::Nanos;

/// The end of a run with which nothing was wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The guest's process ended: it was switched off, panicked, or was killed.
    GuestEnded,
    /// The guest waits for nothing but perhaps its own timers, and no disk will ever
    /// answer.
    IdleForEver {
        /// The disks that have not answered, and the number of commands of each.
        unanswered: Vec<(usize, usize)>,
    },
    /// A disk hangs for good, and has owed an answer for longer than
    /// [`Options::hung_limit`](crate::Options::hung_limit).
    Hung {
        /// The disks that hang, and the number of commands to which each owes an answer.
        unanswered: Vec<(usize, usize)>,
    },
    /// The guest sent no message within the patience: it spins, or was stopped.
    GuestStuck,
    /// The virtual time is over.
    TimeLimit,
    /// The stop flag was set.
    Stopped,
    /// No guest came within the patience.
    NoGuest,
}

/// The reason why a calendar cannot be made or cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum CalendarError {
    /// A disk's configuration is impossible.
    #[error("disk {disk}: {problem}")]
    Configuration {
        /// The disk's number, counted from 0.
        disk: usize,
        /// The mistake in the disk's configuration.
        problem: String,
    },
    /// The operating system refuses what the calendar needs.
    #[error("cannot {doing}")]
    System {
        /// The action that was tried, in the words that follow "cannot".
        doing: &'static str,
        /// The error of the system.
        #[source]
        source: std::io::Error,
    },
    /// The path of a socket has more bytes than the system allows.
    #[error("the socket path {path} is too long: at most 107 bytes")]
    PathTooLong {
        /// The path of the socket that was to be made.
        path: String,
    },
    /// The guest's clock breaks the rules of User-Mode Linux's clocks.
    #[error("the guest's time-travel protocol is broken")]
    Clock(#[source] ClockError),
    /// The guest treats a disk in a way in which no driver does.
    #[error("the guest's driver of disk {disk} is broken")]
    Device {
        /// The disk's number, counted from 0.
        disk: usize,
        /// The driver's mistake.
        #[source]
        source: DeviceError,
    },
    /// The disks hold more than they may.
    #[error("the disks hold {limit_bytes} bytes, which is the limit for this run")]
    StorageFull {
        /// The most bytes that all disks together may hold.
        limit_bytes: u64,
    },
    /// The disks' contents cannot be kept.
    #[error("what the disks hold cannot be kept")]
    Storage(#[source] StorageError),
    /// The calendar has run already, and each runs once.
    #[error("a calendar runs once")]
    UsedUp,
}

/// The errors that a guest's clock can make.
#[derive(Debug, thiserror::Error)]
pub enum ClockError {
    /// The socket to the guest's clock cannot be read or written any more.
    #[error("the time-travel socket cannot be used")]
    Channel(#[source] ChannelError),
    /// The guest's clock sent bytes that are no time-travel message.
    #[error("a message cannot be read")]
    Message(#[source] TimeMessageError),
    /// A message came at the wrong moment.
    #[error("{operation:?} was not to be expected")]
    Unexpected {
        /// The operation of the message that came.
        operation: Operation,
    },
    /// The guest answered another question.
    #[error("the answer to message {expected} has number {sequence}")]
    WrongAnswer {
        /// The number of the question.
        expected: u32,
        /// The number of the answer.
        sequence: u32,
    },
    /// The clock shows a time which it was not allowed to reach.
    #[error("the guest's clock shows {shown}, but may not pass {allowed}")]
    RanAhead {
        /// The time that the guest's clock shows.
        shown: Nanos,
        /// The latest time that it was allowed to show.
        allowed: Nanos,
    },
    /// The guest kicked a device that does not exist.
    #[error("the guest kicks device {device}, which does not exist")]
    NoDevice {
        /// The device's number, as the guest gave it.
        device: usize,
    },
    /// The guest wants to run at a time that is over.
    #[error("the guest asks for {requested}, and it is {now}")]
    InThePast {
        /// The time that the guest asks for.
        requested: Nanos,
        /// The present time.
        now: Nanos,
    },
}

/// The errors that a guest's driver of a disk can make.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// The socket to the guest's driver cannot be read or written any more.
    #[error("the device's socket cannot be used")]
    Channel(#[source] ChannelError),
    /// The guest's driver sent bytes that are no vhost-user message.
    #[error("a message cannot be read")]
    Message(#[source] FrontendMessageError),
    /// A message came that needs another one before it.
    #[error("{request} came before {missing}")]
    TooEarly {
        /// The message that came too early.
        request: &'static str,
        /// The message that should have come before it.
        missing: &'static str,
    },
    /// The driver set features that were not offered, or did not take needed ones.
    #[error("features {features:#x} of {kind} cannot be agreed on")]
    Features {
        /// The kind of features that was asked for.
        kind: &'static str,
        /// The feature bits that the driver set; of the configuration, the bytes that it asked for.
        features: u64,
    },
    /// The driver named a queue that the device does not have.
    #[error("queue {index} does not exist")]
    NoSuchQueue {
        /// The queue's index as the driver gave it; a disk has only queue 0.
        index: u32,
    },
    /// The memory that the driver shares cannot be used.
    #[error("the guest's memory cannot be used")]
    Memory(#[source] MemoryError),
    /// The ring's size or place is wrong.
    #[error("the queue cannot be used")]
    Queue(#[source] virtio_queue::Error),
    /// The ring is outside the memory.
    #[error("the queue's rings are not inside the guest's memory")]
    QueueOutside,
    /// A chain of descriptors cannot be answered.
    #[error("descriptor chain {head} {problem}")]
    Chain {
        /// Index of the chain's first descriptor in the descriptor table.
        head: u16,
        /// The mistake in the chain.
        problem: &'static str,
    },
    /// A buffer lies in the kernel's image, which cannot be read.
    #[error(
        "a buffer at {address:#x} is not in the shared memory, and the guest's process cannot be read"
    )]
    Image {
        /// The first address of the request's data.
        address: u64,
        /// The error of the operating system.
        #[source]
        source: std::io::Error,
    },
    /// The guest does not take an interrupt.
    #[error("the guest did not take an interrupt: it answered {answer:?}")]
    Interrupt {
        /// The number that it answered, if it was one.
        answer: Option<u64>,
    },
}

pub(crate) fn system(doing: &'static str, source: std::io::Error) -> CalendarError {
    CalendarError::System { doing, source }
}
