//! What goes into the array core and what comes out of it.
//!
//! The core is a state machine without clock, thread, payload or randomness.
//! A driver hands it requests, completions, ticks and an administrator's
//! verbs; the core answers by filling an [`Outputs`]. Buffers are named, never
//! touched: a driver with real bytes keeps a buffer for each [`BufferId`] and
//! executes the [`ComputeStep`]s on them, a simulator charges their time.

use raidlab_units::Sectors;

/// A request's name, chosen by the driver, given back in [`Finished`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// A member command's name, chosen by the core, given back by the driver with
/// the completion. Unique among commands in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommandId(pub u64);

/// A buffer that belongs to the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BufferId {
    /// The payload of a request, from `skip` sectors into it.
    Request {
        /// Whose payload.
        request: RequestId,
        /// Sectors from the payload's start.
        skip: Sectors,
    },
    /// A buffer that the core asks the driver to keep until it is released
    /// with the last command that names it (resync, parity, journal).
    Scratch(u32),
    /// No payload: a flush or a discard.
    None,
}

/// A member's place in the array: 0 is the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub u16);

impl Slot {
    /// The slot as an index into per-member tables.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a request or a member command does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Bytes from the array.
    Read,
    /// Bytes into the array.
    Write,
    /// Everything acknowledged so far becomes durable.
    Flush,
    /// The range's content is no longer needed.
    Discard,
}

/// A request to the array, in array sectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Chosen by the driver; unique among requests in flight.
    pub id: RequestId,
    /// What to do.
    pub operation: Operation,
    /// First sector; ignored for a flush.
    pub start: Sectors,
    /// Number of sectors; 0 for a flush, at least 1 otherwise.
    pub count: Sectors,
    /// Durable before it is acknowledged (writes only).
    pub force_unit_access: bool,
    /// Who asks: some policies (btrfs) choose by process.
    pub process: u32,
}

/// Why a command was made; drivers keep separate statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// For a request.
    Foreground,
    /// For resync, recovery or check.
    Sync,
    /// For the array's own metadata: superblock, bitmap, journal.
    Metadata,
}

/// A command to one member, in that member's own sectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemberCommand {
    /// To be given back with the completion.
    pub id: CommandId,
    /// Which member.
    pub slot: Slot,
    /// What to do.
    pub operation: Operation,
    /// First sector on the member, its data offset included.
    pub start: Sectors,
    /// Number of sectors; 0 for a flush.
    pub count: Sectors,
    /// Durable before it completes.
    pub force_unit_access: bool,
    /// Why.
    pub purpose: Purpose,
    /// Where the bytes come from or go to.
    pub buffer: BufferId,
}

/// A request is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finished {
    /// Whose.
    pub id: RequestId,
    /// How it ended.
    pub result: Result<(), RequestError>,
}

/// Why a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// No member that holds the data answered.
    #[error("no member could serve the request")]
    NoMember,
    /// The range goes beyond the array's end or is empty.
    #[error("the range is outside the array")]
    OutOfRange,
}

/// Why a member command failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MemberError {
    /// The medium could not be read or written at that place.
    #[error("medium error")]
    Medium,
    /// The member is gone.
    #[error("member gone")]
    Gone,
}

/// Work on bytes that the core orders and the driver executes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ComputeStep {
    /// Compare two buffers of `count` sectors (check of a mirror); the driver
    /// reports the result as it does for a command.
    Compare {
        /// Given back with the result.
        id: CommandId,
        /// One copy.
        left: BufferId,
        /// The other.
        right: BufferId,
        /// Sectors to compare.
        count: Sectors,
    },
}

/// What happened to the array, for logs and timelines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A member no longer takes part.
    MemberFailed(Slot),
    /// A member was taken out of its slot.
    MemberRemoved(Slot),
    /// A member was put into a slot and waits for recovery.
    MemberAdded(Slot),
    /// Recovery or resync began at this array sector.
    SyncStarted(Sectors),
    /// Members may now serve reads below this array sector.
    SyncCheckpoint(Sectors),
    /// Recovery or resync reached the end; the member is in sync.
    SyncFinished,
    /// Recovery or resync stopped short.
    SyncAborted,
}

/// What the core wants done. The driver clears it between calls and keeps it,
/// so that no call allocates.
#[derive(Debug, Default)]
pub struct Outputs {
    /// To be sent to the members, in this order.
    pub commands: Vec<MemberCommand>,
    /// To be executed on buffers.
    pub steps: Vec<ComputeStep>,
    /// To be given to whoever asked.
    pub finished: Vec<Finished>,
    /// To be recorded.
    pub events: Vec<Event>,
}

impl Outputs {
    /// Empties every list, keeping its memory.
    pub fn clear(&mut self) {
        self.commands.clear();
        self.steps.clear();
        self.finished.clear();
        self.events.clear();
    }
}
