//! What goes into the array core and what comes out of it.
//!
//! The core is a state machine without clock, thread, payload or randomness.
//! A driver hands it requests, completions, ticks and an administrator's
//! verbs; the core answers by filling an [`Outputs`]. Buffers are named, never
//! touched: a driver with real bytes keeps a buffer for each [`BufferId`] and
//! executes the [`ComputeStep`]s on them, a simulator charges their time.

pub use raidlab_geometry::Slot;
use raidlab_units::Sectors;

/// A request's name, chosen by the driver, given back in [`Finished`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// A member command's name, chosen by the core, given back by the driver with
/// the completion. Unique among commands in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommandId(pub u64);

/// A scratch buffer's name, chosen by the core; unique while it is allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScratchId(pub u32);

impl ScratchId {
    /// All of the buffer, from its first sector on.
    #[must_use]
    pub const fn whole(self) -> BufferId {
        BufferId::Scratch {
            scratch: self,
            skip: Sectors::ZERO,
        }
    }
}

/// A step's name, chosen by the core, given back with its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StepId(pub u64);

/// A buffer that belongs to the driver. Buffers in one step never overlap,
/// except that an output may be exactly one of the inputs where the step says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BufferId {
    /// The payload of a request, from `skip` sectors into it.
    Request {
        /// The request whose payload it is.
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
    /// No payload: a flush or a discard.
    None,
}

/// What a request or a member command does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Bytes are read from the array or from a member.
    Read,
    /// Bytes are written to the array or to a member.
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
    /// What the request asks for.
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

impl Request {
    /// Whether it lies in an array of this size, or is a flush; if not, it is answered.
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

/// Why a command was made; drivers keep separate statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// For a request of the array's user.
    Foreground,
    /// For the blocks of a resync, recovery or check.
    Sync,
    /// For the array's own metadata: superblock, bitmap, journal.
    Metadata,
}

/// Somebody who sends commands to members and may have to sleep for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    /// To be given back with the completion.
    pub id: CommandId,
    /// The member that the command is for.
    pub slot: Slot,
    /// What the member is to do.
    pub operation: Operation,
    /// First sector on the member, its data offset included.
    pub start: Sectors,
    /// Number of sectors; 0 for a flush.
    pub count: Sectors,
    /// Durable before it completes; of a flush: such a write to the same member follows at once,
    /// and the two would be one request of md's.
    pub force_unit_access: bool,
    /// What it is done for, which decides its share of the member.
    pub purpose: Purpose,
    /// Which process or thread hands it to the member: hosts sleep and schedule by that.
    pub sender: Sender,
    /// Where the bytes come from or go to.
    pub buffer: BufferId,
}

/// A request of the array's user that has ended, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finished {
    /// The request that has ended.
    pub id: RequestId,
    /// Success, or why the request could not be carried out.
    pub result: Result<(), RequestError>,
}

/// Why a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// No member that holds the data answered.
    #[error("no member could serve the request")]
    NoMember,
    /// The array does not take writes.
    #[error("the array is read-only")]
    ReadOnly,
    /// The array has lost more members than its level can bear.
    #[error("the array has failed")]
    Failed,
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
    /// The member does not answer any more, as when a disk is pulled.
    #[error("member gone")]
    Gone,
}

/// Work on bytes that the core orders and the driver executes: in the order
/// given, and all before the commands of the same [`Outputs`]. Steps with an
/// `id` have a result, which the driver hands to the core's `computed` after
/// it has taken the outputs. A simulation without bytes charges their time.
///
/// Data blocks stand in the order of their exponents: block `j` counts 2^j in
/// Q. [`BufferId::None`] among them is a block of zeros.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ComputeStep {
    /// A scratch buffer of `count` sectors comes to be; its bytes are undefined.
    Allocate {
        /// The name of the new buffer.
        scratch: ScratchId,
        /// The size of the new buffer.
        count: Sectors,
    },
    /// A scratch buffer is no longer needed.
    Release {
        /// The name of the buffer that is not needed any more.
        scratch: ScratchId,
    },
    /// Writes these bytes (whole sectors) into a buffer.
    Fill {
        /// The buffer that is filled.
        to: BufferId,
        /// The bytes that it is filled with.
        bytes: Vec<u8>,
    },
    /// Hands the bytes of a buffer to the core ([`StepResult::Bytes`]).
    Fetch {
        /// The number that is given back with the result.
        id: StepId,
        /// The buffer whose bytes are wanted.
        from: BufferId,
        /// How many sectors of it are wanted.
        count: Sectors,
    },
    /// Fills a buffer with zeros.
    Zero {
        /// The buffer that is filled.
        to: BufferId,
        /// How many sectors are filled.
        count: Sectors,
    },
    /// Copies bytes from one buffer to another.
    Copy {
        /// The buffer that is copied.
        from: BufferId,
        /// The buffer that is copied to.
        to: BufferId,
        /// How many sectors are copied.
        count: Sectors,
    },
    /// Parity of whole data blocks.
    Generate {
        /// Sectors of each block.
        count: Sectors,
        /// All data blocks of the stripe.
        data: Vec<BufferId>,
        /// P is written here, unless `None`.
        p: BufferId,
        /// Q is written here, unless `None`.
        q: BufferId,
    },
    /// Parity changed in place for one data block that changes.
    Update {
        /// Sectors of each block.
        count: Sectors,
        /// The data block's exponent in Q, which is its index in the row.
        index: u8,
        /// The block's bytes before the write.
        old: BufferId,
        /// The block's bytes after the write.
        new: BufferId,
        /// P, read and written, unless `None`.
        p: BufferId,
        /// Q, read and written, unless `None`.
        q: BufferId,
    },
    /// Lost blocks from the others.
    Recover {
        /// Sectors of each block.
        count: Sectors,
        /// All data blocks; the lost ones are written.
        data: Vec<BufferId>,
        /// P: read, or written if lost; `None` if the level has none or it is
        /// lost and not wanted.
        p: BufferId,
        /// Q: read, or written if lost; `None` if the level has none or it is lost and not wanted.
        q: BufferId,
        /// At most two: an index into `data`, or `data.len()` for P, or
        /// `data.len() + 1` for Q.
        lost: Vec<u8>,
    },
    /// Whether P and Q fit the data ([`StepResult::Parity`]).
    Check {
        /// The number that is given back with the result.
        id: StepId,
        /// Sectors of each block.
        count: Sectors,
        /// All data blocks, in the order of their exponents.
        data: Vec<BufferId>,
        /// The block that holds P.
        p: BufferId,
        /// The block of Q; `None`: it is not checked.
        q: BufferId,
    },
    /// Whether two copies are the same ([`StepResult::Compared`]).
    Compare {
        /// The number that is given back with the result.
        id: StepId,
        /// One of the two buffers.
        left: BufferId,
        /// The buffer that `left` is compared with.
        right: BufferId,
        /// How many sectors are compared.
        count: Sectors,
    },
    /// CRC-32C of each block, written little-endian one after the other into
    /// the header at `at` bytes; then the CRC-32C of the header's first
    /// `header_bytes` bytes with 4 zero bytes at `seal_at`, written there.
    Seal {
        /// The buffer of the record's header.
        header: BufferId,
        /// Bytes of the header that are sealed.
        header_bytes: u32,
        /// Where the blocks' checksums begin.
        at: u32,
        /// Where the header's own checksum lies.
        seal_at: u32,
        /// The blocks and their sectors.
        blocks: Vec<(BufferId, Sectors)>,
    },
}

/// What a step with an id found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepResult {
    /// What [`ComputeStep::Fetch`] was to bring.
    Bytes(Vec<u8>),
    /// Of [`ComputeStep::Compare`]: sectors that differ.
    Compared {
        /// How many sectors differ; 0: the buffers are the same.
        different: Sectors,
    },
    /// What [`ComputeStep::Check`] has found.
    Parity {
        /// Sectors in which P does not fit.
        p_different: Sectors,
        /// Sectors in which Q does not fit.
        q_different: Sectors,
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
    /// A check or repair found copies or parity that do not agree.
    Mismatch {
        /// The first sector (of the members' data areas, or of the array for
        /// levels without parity).
        start: Sectors,
        /// How many sectors of that range were read and differ.
        count: Sectors,
    },
    /// A member could not read a range; its bytes were made from the others and
    /// written back.
    ReadErrorCorrected {
        /// The member that could not read them.
        slot: Slot,
        /// Sector of its data area.
        start: Sectors,
        /// How many sectors were corrected.
        count: Sectors,
    },
    /// A range of a member's data area has no right bytes any more.
    BadBlocksFound {
        /// The member that has no right bytes there.
        slot: Slot,
        /// Sector of its data area.
        start: Sectors,
        /// How many sectors are bad.
        count: Sectors,
    },
    /// A write made such a range right again.
    BadBlocksCleared {
        /// The member that has right bytes there again.
        slot: Slot,
        /// Sector of its data area.
        start: Sectors,
        /// How many sectors are good.
        count: Sectors,
    },
}

/// What an engine without bytes did in a call that costs a processor time beside its
/// commands, for models that charge for it. Engines of arrays with bytes order
/// [`ComputeStep`]s instead and leave it empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StripeWork {
    /// Times that a stripe was looked up in the cache for a request.
    pub found: u32,
    /// Stripes that these lookups passed in the chains of the cache's hash table.
    pub chained: u32,
    /// Times that a stripe's last holder handed it to the array's thread.
    pub released: u32,
    /// Times that a stripe became free.
    pub freed: u32,
    /// Stripes that the array's thread took for a turn.
    pub taken: u32,
    /// Times that the array's thread looked through a stripe.
    pub handled: u32,
    /// Blocks that went into parity or into a block that was computed or compared.
    pub parity: Sectors,
    /// What was copied between requests and the cache.
    pub copied: Sectors,
}

impl StripeWork {
    /// Adds what was done in another call.
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

/// What the core wants done. The driver clears it between calls and keeps it,
/// so that no call allocates.
#[derive(Debug, Default)]
pub struct Outputs {
    /// To be sent to the members, in this order.
    pub commands: Vec<MemberCommand>,
    /// The steps that are to be executed on buffers, in this order.
    pub steps: Vec<ComputeStep>,
    /// The answers that are to be given to whoever asked.
    pub finished: Vec<Finished>,
    /// What has to be recorded or told.
    pub events: Vec<Event>,
    /// What was done to stripes meanwhile.
    pub work: StripeWork,
    /// Processes whose requests are on their way from stripe to stripe, where that takes
    /// time ([`Imitation::go_on`](crate::Imitation::go_on)).
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
