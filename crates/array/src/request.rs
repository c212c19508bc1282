//! The inputs and outputs of the array core.
//!
//! The core is a state machine without clock, thread, payload or randomness. A driver passes in
//! requests, completions, ticks and an administrator's verbs; the core answers by filling an
//! [`Outputs`]. Buffers are named, never touched: a driver with real bytes keeps a buffer for each
//! [`BufferId`] and executes the [`ComputeStep`]s on them, a simulator charges their time.

pub use raidlab_geometry::Slot;
use raidlab_units::Sectors;

/// A request's name, chosen by the driver, returned in [`Finished`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// A member command's name, chosen by the core, returned by the driver with the completion. Unique
/// among commands in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommandId(pub u64);

/// A scratch buffer's name, chosen by the core; unique while it is allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScratchId(pub u32);

impl ScratchId {
    /// Returns the whole buffer, from its first sector on.
    #[must_use]
    pub const fn whole(self) -> BufferId {
        BufferId::Scratch {
            scratch: self,
            skip: Sectors::ZERO,
        }
    }
}

/// A step's name, chosen by the core, returned with its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StepId(pub u64);

/// A buffer that belongs to the driver. Buffers in one step never overlap,
/// except that an output may be exactly one of the inputs where the step says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BufferId {
    /// The payload of a request, from `skip` sectors into it.
    Request {
        /// The request that owns the payload.
        request: RequestId,
        /// Sectors from the payload's start.
        skip: Sectors,
    },
    /// A buffer that the driver keeps between [`ComputeStep::Allocate`] and
    /// [`ComputeStep::Release`], from `skip` sectors into it.
    Scratch {
        /// The scratch buffer that holds the bytes.
        scratch: ScratchId,
        /// Sectors from the buffer's start.
        skip: Sectors,
    },
    /// No buffer, as for a flush or a discard.
    None,
}

/// The operation of a request or a member command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Reads bytes from the array or from a member.
    Read,
    /// Writes bytes to the array or to a member.
    Write,
    /// Makes everything acknowledged so far durable.
    Flush,
    /// Discards the content of the range, which is no longer needed.
    Discard,
}

/// A request to the array, in array sectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// The request's name, chosen by the driver; unique among requests in flight.
    pub id: RequestId,
    /// The operation to be carried out.
    pub operation: Operation,
    /// The first sector; ignored for a flush.
    pub start: Sectors,
    /// The number of sectors; 0 for a flush, at least 1 otherwise.
    pub count: Sectors,
    /// Whether it must be durable before it is acknowledged (writes only).
    pub force_unit_access: bool,
    /// The process that submitted it: some policies (btrfs) choose by process.
    pub process: u32,
}

impl Request {
    /// Whether the request lies in an array of this size, or is a flush; if not, it is answered.
    pub(crate) fn is_inside(&self, size: Sectors, out: &mut Outputs) -> bool {
        let end = self.start.0.checked_add(self.count.0);
        let has_range = self.count > Sectors::ZERO && end.is_some_and(|end| end <= size.0);
        let is_inside = has_range || self.operation == Operation::Flush;
        if !is_inside {
            out.finished.push(Finished {
                id: self.id,
                result: Err(RequestError::OutOfRange),
            });
        }
        is_inside
    }
}

/// The purpose of a command; drivers keep separate statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// A request of the array's user.
    Foreground,
    /// The blocks of a resync, recovery or check.
    Sync,
    /// The array's own metadata: superblock, bitmap, journal.
    Metadata,
}

/// A thread that sends commands to members and may have to sleep for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sender {
    /// A process, by the number in its requests.
    Process(u32),
    /// The thread that carries out a sync (`md_do_sync`).
    Sync,
    /// The array's own thread: raid1d, raid10d, raid5d.
    Thread,
}

/// A command to one member, in that member's own sectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemberCommand {
    /// The command's name, to be returned with the completion.
    pub id: CommandId,
    /// The member that the command is for.
    pub slot: Slot,
    /// The operation to be carried out.
    pub operation: Operation,
    /// The first sector on the member, its data offset included.
    pub start: Sectors,
    /// The number of sectors; 0 for a flush.
    pub count: Sectors,
    /// Whether it must be durable before it completes; for a flush: such a write to the same member
    /// follows at once, and the two would be one request of md's.
    pub force_unit_access: bool,
    /// The purpose of the command, which determines its share of the member.
    pub purpose: Purpose,
    /// The process or thread that sends it to the member: hosts put that to sleep and schedule it.
    pub sender: Sender,
    /// The source or the destination of the bytes.
    pub buffer: BufferId,
}

/// A request of the array's user that has ended, with its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finished {
    /// The request that has ended.
    pub id: RequestId,
    /// Success, or the reason why the request could not be carried out.
    pub result: Result<(), RequestError>,
}

/// The reason why a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// No member that holds the data answered.
    #[error("no member could serve the request")]
    NoMember,
    /// The array does not take writes.
    #[error("the array is read-only")]
    ReadOnly,
    /// The array has lost more members than its level tolerates.
    #[error("the array has failed")]
    Failed,
    /// The range goes beyond the array's end or is empty.
    #[error("the range is outside the array")]
    OutOfRange,
}

/// The reason why a member command failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MemberError {
    /// The medium could not be read or written at that place.
    #[error("medium error")]
    Medium,
    /// The member does not answer any more, as when a disk is pulled.
    #[error("member gone")]
    Gone,
}

/// Work on bytes that the core orders and the driver executes: in the order given, and all before
/// the commands of the same [`Outputs`]. Steps with an `id` have a result, which the driver
/// passes to the core's `computed` after it has taken the outputs. A simulation without bytes
/// charges their time.
///
/// Data blocks stand in the order of their exponents: block `j` counts 2^j in Q. [`BufferId::None`]
/// among them is a block of zeros.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ComputeStep {
    /// Allocates a scratch buffer of `count` sectors; its bytes are undefined.
    Allocate {
        /// The name of the new buffer.
        scratch: ScratchId,
        /// The size of the new buffer.
        count: Sectors,
    },
    /// Releases a scratch buffer that is no longer needed.
    Release {
        /// The name of the buffer.
        scratch: ScratchId,
    },
    /// Writes these bytes (whole sectors) into a buffer.
    Fill {
        /// The buffer that is filled.
        to: BufferId,
        /// The bytes that it is filled with.
        bytes: Vec<u8>,
    },
    /// Passes the bytes of a buffer to the core ([`StepResult::Bytes`]).
    Fetch {
        /// The step's name, returned with the result.
        id: StepId,
        /// The buffer whose bytes are wanted.
        from: BufferId,
        /// The number of sectors wanted.
        count: Sectors,
    },
    /// Fills a buffer with zeros.
    Zero {
        /// The buffer that is filled.
        to: BufferId,
        /// The number of sectors filled.
        count: Sectors,
    },
    /// Copies bytes from one buffer to another.
    Copy {
        /// The buffer that is copied.
        from: BufferId,
        /// The buffer that is copied to.
        to: BufferId,
        /// The number of sectors copied.
        count: Sectors,
    },
    /// Computes parity of whole data blocks.
    Generate {
        /// Sectors of each block.
        count: Sectors,
        /// All data blocks of the stripe.
        data: Vec<BufferId>,
        /// The destination of P, unless `None`.
        p: BufferId,
        /// The destination of Q, unless `None`.
        q: BufferId,
    },
    /// Updates parity in place for one data block that changes.
    Update {
        /// Sectors of each block.
        count: Sectors,
        /// The data block's exponent in Q, which is its index in the row.
        index: u8,
        /// The block's bytes before the write.
        old: BufferId,
        /// The block's bytes after the write.
        new: BufferId,
        /// The block of P, read and written, unless `None`.
        p: BufferId,
        /// The block of Q, read and written, unless `None`.
        q: BufferId,
    },
    /// Recovers lost blocks from the others.
    Recover {
        /// Sectors of each block.
        count: Sectors,
        /// All data blocks; the lost ones are written.
        data: Vec<BufferId>,
        /// The block of P: read, or written if lost; `None` if the level has none or it is lost
        /// and not wanted.
        p: BufferId,
        /// The block of Q: read, or written if lost; `None` if the level has none or it is lost
        /// and not wanted.
        q: BufferId,
        /// The lost blocks, at most two: an index into `data`, or `data.len()` for P, or
        /// `data.len() + 1` for Q.
        lost: Vec<u8>,
    },
    /// Checks whether P and Q fit the data ([`StepResult::Parity`]).
    Check {
        /// The step's name, returned with the result.
        id: StepId,
        /// Sectors of each block.
        count: Sectors,
        /// All data blocks, in the order of their exponents.
        data: Vec<BufferId>,
        /// The block of P.
        p: BufferId,
        /// The block of Q; `None`: it is not checked.
        q: BufferId,
    },
    /// Checks whether two copies are the same ([`StepResult::Compared`]).
    Compare {
        /// The step's name, returned with the result.
        id: StepId,
        /// One of the two buffers.
        left: BufferId,
        /// The buffer that `left` is compared with.
        right: BufferId,
        /// The number of sectors compared.
        count: Sectors,
    },
    /// Writes the CRC-32C of each block, little-endian, one after the other into the header at `at`
    /// bytes; then the CRC-32C of the header's first `header_bytes` bytes with 4 zero bytes at
    /// `seal_at`, written there.
    Seal {
        /// The buffer of the record's header.
        header: BufferId,
        /// The number of the header's bytes that are sealed.
        header_bytes: u32,
        /// The byte at which the blocks' checksums begin.
        at: u32,
        /// The byte at which the header's own checksum lies.
        seal_at: u32,
        /// The blocks and their sectors.
        blocks: Vec<(BufferId, Sectors)>,
    },
}

/// The result of a step with an id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepResult {
    /// The bytes of [`ComputeStep::Fetch`].
    Bytes(Vec<u8>),
    /// The result of [`ComputeStep::Compare`].
    Compared {
        /// The number of sectors that differ; 0: the buffers are the same.
        different: Sectors,
    },
    /// The result of [`ComputeStep::Check`].
    Parity {
        /// The number of sectors in which P does not fit.
        p_different: Sectors,
        /// The number of sectors in which Q does not fit.
        q_different: Sectors,
    },
}

/// An event of the array, for logs and timelines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A member failed and no longer takes part.
    MemberFailed(Slot),
    /// A member was removed from its slot.
    MemberRemoved(Slot),
    /// A member was added to a slot and waits for recovery.
    MemberAdded(Slot),
    /// Recovery or resync began at this array sector.
    SyncStarted(Sectors),
    /// Members may now serve reads below this array sector.
    SyncCheckpoint(Sectors),
    /// Recovery or resync reached the end; the member is in sync.
    SyncFinished,
    /// Recovery or resync ended early.
    SyncAborted,
    /// A check or repair found copies or parity that do not agree.
    Mismatch {
        /// The first sector (of the members' data areas, or of the array for
        /// levels without parity).
        start: Sectors,
        /// The number of sectors of that range that were read and differ.
        count: Sectors,
    },
    /// A member could not read a range; its bytes were computed from the others and written back.
    ReadErrorCorrected {
        /// The member that could not read the range.
        slot: Slot,
        /// The first sector in its data area.
        start: Sectors,
        /// The number of sectors corrected.
        count: Sectors,
    },
    /// The correct bytes of a range of a member's data area are lost.
    BadBlocksFound {
        /// The member that has lost the bytes.
        slot: Slot,
        /// The first sector in its data area.
        start: Sectors,
        /// The number of bad sectors.
        count: Sectors,
    },
    /// A write has stored correct bytes in such a range.
    BadBlocksCleared {
        /// The member that has the correct bytes again.
        slot: Slot,
        /// The first sector in its data area.
        start: Sectors,
        /// The number of sectors that are good again.
        count: Sectors,
    },
}

/// The work of an engine without bytes in a call that costs processor time beside its commands,
/// for models that charge for it. Engines of arrays with bytes order [`ComputeStep`]s instead and
/// leave it empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StripeWork {
    /// The number of times that a stripe was looked up in the cache for a request.
    pub found: u32,
    /// The number of stripes that these lookups passed in the chains of the cache's hash table.
    pub chained: u32,
    /// The number of times that a stripe's last holder passed it to the array's thread.
    pub released: u32,
    /// The number of times that a stripe became free.
    pub freed: u32,
    /// The number of stripes that the array's thread took for a turn.
    pub taken: u32,
    /// The number of times that the array's thread handled a stripe.
    pub handled: u32,
    /// Sectors of the blocks that went into parity or into a block that was computed or compared.
    pub parity: Sectors,
    /// Sectors copied between requests and the cache.
    pub copied: Sectors,
}

impl StripeWork {
    /// Adds the work of another call.
    pub fn add(&mut self, other: Self) {
        self.found += other.found;
        self.chained += other.chained;
        self.released += other.released;
        self.freed += other.freed;
        self.taken += other.taken;
        self.handled += other.handled;
        self.parity += other.parity;
        self.copied += other.copied;
    }
}

/// The orders of the core. The driver clears it between calls and keeps it, so that
/// no call allocates.
#[derive(Debug, Default)]
pub struct Outputs {
    /// The commands to be sent to the members, in this order.
    pub commands: Vec<MemberCommand>,
    /// The steps to be executed on buffers, in this order.
    pub steps: Vec<ComputeStep>,
    /// The answers to be returned to the requests' submitters.
    pub finished: Vec<Finished>,
    /// The events to be recorded or reported.
    pub events: Vec<Event>,
    /// The work done on stripes meanwhile.
    pub work: StripeWork,
    /// The processes whose requests are on their way from stripe to stripe, where that
    /// takes time ([`Imitation::go_on`](crate::Imitation::go_on)).
    pub on_their_way: Vec<u32>,
}

impl Outputs {
    /// Empties every list, keeping its memory.
    #[inline]
    pub fn clear(&mut self) {
        self.commands.clear();
        self.steps.clear();
        self.finished.clear();
        self.events.clear();
        self.work = StripeWork::default();
        self.on_their_way.clear();
    }
}
