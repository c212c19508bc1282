//! Why an array cannot be put together or started.

use crate::config::{AdminError, ConfigError};
use crate::stripes::StripeConfigError;
use raidlab_geometry::{ShapeError, Slot, SlotSet};
use raidlab_units::Sectors;

/// Why an assembly is refused. Nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AssembleError {
    /// There is not a single device to assemble from.
    #[error("no devices to assemble from")]
    NoCandidates,
    /// The devices belong to two arrays.
    #[error("{left} and {right} belong to different arrays")]
    DifferentArrays {
        /// A device of the one array.
        left: String,
        /// A device of the other array.
        right: String,
    },
    /// Only spares, or devices without a slot.
    #[error("none of the devices holds data of the array")]
    NoMembers,
    /// Something that only md can do.
    #[error("{device} uses {feature}, which is not supported")]
    Unsupported {
        /// The device whose superblock says so.
        device: String,
        /// The feature, in mdadm's words.
        feature: &'static str,
    },
    /// The newest superblock describes an array that cannot be.
    #[error("the superblock of {device} describes an impossible array")]
    Impossible {
        /// The device that cannot be used.
        device: String,
        /// Why it cannot be used.
        #[source]
        source: ShapeError,
    },
    /// The newest superblock has an unknown level, or no such layout.
    #[error("the superblock of {device} has level {level}, layout {layout}, which is unknown")]
    UnknownLevel {
        /// The device that cannot be used.
        device: String,
        /// md's number of the level, as the superblock has it.
        level: i32,
        /// md's word for the layout, as the superblock has it.
        layout: u32,
    },
    /// Two devices are the same member: one is a copy of the other.
    #[error("{left} and {right} are the same member with the same event count: a copy of a disk?")]
    SameDevice {
        /// The path of one of the two devices.
        left: String,
        /// The path of the other device.
        right: String,
    },
    /// Two current members for one place.
    #[error("{left} and {right} both claim slot {} with the same event count", .slot.0)]
    SlotClaimedTwice {
        /// The slot that both claim.
        slot: Slot,
        /// The path of one of the two devices.
        left: String,
        /// The path of the other device.
        right: String,
    },
    /// Both halves of an array were in use without each other.
    #[error(
        "split brain: {newer} (events {newer_events}) and {older} (events {older_events}) each ran \
         without the other and hold different data; --force would take {newer} and the members it \
         knows, and leave {older} out: what was written to it would be lost"
    )]
    SplitBrain {
        /// The device with the higher event count.
        newer: String,
        /// The event count of the newer one.
        newer_events: u64,
        /// The device that ran without it.
        older: String,
        /// The event count of the older one.
        older_events: u64,
    },
    /// Too few members for the level.
    #[error("{present} of {slots} members are not enough to start the array{}", stale_text(.stale))]
    NotEnough {
        /// How many current members were found.
        present: usize,
        /// How many slots the array has.
        slots: usize,
        /// Devices that `--force` could take although they are out of date.
        stale: Vec<String>,
    },
    /// Members are missing that were there when the array was last in use.
    #[error(
        "{present} members of the {expected} that were in service are here; --run starts the array \
         degraded"
    )]
    NeedsRun {
        /// How many members were found.
        present: usize,
        /// In service when it was last used.
        expected: usize,
    },
    /// A degraded array was cut off in a write: what its missing member held cannot be known.
    #[error(
        "the array was not stopped cleanly and lacks the members of slots {}: parity may not fit the \
         data where writes were under way, so what is computed for the missing members there may be \
         wrong (the write hole), and there is no complete write log ({log}); --force starts it all \
         the same",
        slot_list(*.missing)
    )]
    DirtyDegraded {
        /// Slots without a current member.
        missing: SlotSet,
        /// Why the log does not help.
        log: LogFault,
    },
    /// What was being written cannot be made good with this member, and can be
    /// without it.
    #[error(
        "the array was not stopped cleanly, and the write log of {member} cannot be read; without \
         that member the other logs make good what was being written; --force starts with it, and until a resync is over nothing is computed from parity"
    )]
    LogUnreadable {
        /// The path of the member.
        member: String,
    },
    /// Only replaying the log would make the data readable.
    #[error(
        "the write log must be replayed before the degraded array is read; not while read-only"
    )]
    ReplayNeedsWrite,
    /// The array cannot be made larger, for this reason.
    #[error("the array cannot grow: {0}")]
    CannotGrow(&'static str),
    /// An external bitmap of something else.
    #[error("the external bitmap does not belong to this array")]
    ForeignBitmap,
}

/// Why a write log cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LogFault {
    /// The array was used without one.
    #[error("{0} has none")]
    Absent(String),
    /// It cannot be read, and the others have theirs.
    #[error("that of {0} cannot be read")]
    Unreadable(String),
    /// The superblock was written by somebody else since.
    #[error("that of {0} is void: another system has used the member since")]
    Overtaken(String),
    /// It is of another session than the others.
    #[error("that of {0} is from another session")]
    OtherSession(String),
    /// The array was never in sync.
    #[error("the first resync was not complete")]
    NeverInSync,
}

/// Why an assembled array cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The engine of a level with parity refuses.
    #[error("the array cannot be set up")]
    Stripes(#[source] StripeConfigError),
    /// The engine of a level with copies refuses.
    #[error("the array cannot be set up")]
    Copies(#[source] ConfigError),
    /// The log has to be replayed first.
    #[error("the write log has not been replayed")]
    ReplayPending,
    /// A superblock that cannot be written.
    #[error("the superblocks cannot be kept up to date: start it read-only")]
    Superblock(#[source] raidlab_metadata::EncodeError),
    /// The engine does not have as many sectors as the superblocks say.
    #[error("the engine has {engine} sectors, the superblocks say {superblocks}")]
    Size {
        /// The array's size by the engine.
        engine: u64,
        /// The array's size by the superblocks.
        superblocks: u64,
    },
}

/// What helps where a device cannot come back.
const ADDED_ANEW: &str = "`--add` makes it a new member, and what is on it is lost";

/// Why a verb on a running array is refused. The array is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VerbError {
    /// The verb names a device that the array does not have.
    #[error("no device {}", .0.0)]
    NoSuchDevice(Slot),
    /// The place for the device is taken.
    #[error("device {} is there already", .0.0)]
    DeviceExists(Slot),
    /// It cannot hold the array's data.
    #[error(
        "the device has {} ({size} sectors), but the array needs {} ({needed})",
        Sectors(*.size).to_bytes(),
        Sectors(*.needed).to_bytes()
    )]
    TooSmall {
        /// The sectors of the device.
        size: u64,
        /// The sectors that the device has to have, its data offset included.
        needed: u64,
    },
    /// The engine refuses the verb.
    #[error("the array refuses")]
    Engine(#[from] AdminError),
    /// The device is in service, and has to be failed before it can be removed.
    #[error("device {} is in service: fail it first", .0.0)]
    InService(Slot),
    /// The superblock is of another array or of no slot of this one.
    #[error("the device was no member of this array")]
    NotAMember,
    /// The superblock is of this array as it was once.
    #[error("the array had another level, layout, chunk or size then: {ADDED_ANEW}")]
    Changed,
    /// No member that is in service was so when the device left, or it is newer than all.
    #[error(
        "the device may have been written without the members in service (split brain): {ADDED_ANEW}"
    )]
    Unwitnessed,
    /// The device's number was given away when it was gone.
    #[error("another device has its number by now: {ADDED_ANEW}")]
    NumberTaken,
    /// The bitmap no longer knows what the device lacks.
    #[error("the device's event count {events} is below the bitmap's {cleared}: {ADDED_ANEW}")]
    TooOld {
        /// The event count of the device that comes back.
        events: u64,
        /// The event count below which the bitmap has forgotten writes (`events_cleared`).
        cleared: u64,
    },
    /// Without a bitmap nobody knows what the device lacks.
    #[error("no bitmap says what the device lacks: {ADDED_ANEW}")]
    NoBitmap,
    /// The slot has been filled.
    #[error("slot {} is not free: `--add` makes it a spare", .0.0)]
    SlotTaken(Slot),
    /// Only a member in sync can be replaced.
    #[error("device {} is not in sync: there is nothing to be copied from it", .0.0)]
    NotInSync(Slot),
    /// The member is being replaced already.
    #[error("device {} is being replaced already", .0.0)]
    BeingReplaced(Slot),
    /// The device that is to take a member's place cannot do so.
    #[error("device {} is no spare that fits", .0.0)]
    NotThatSpare(Slot),
    /// Nothing to replace the member with.
    #[error("there is no spare that fits: add one first")]
    NoSpare,
    /// The array keeps a write log, and the device has no room for it.
    #[error("the device has no room for the write log where the other members have theirs")]
    NoLogRoom,
    /// The superblock has no more device numbers.
    #[error("the superblock has no room for another device")]
    NoDeviceNumber,
    /// The array is read-only, so the verb cannot be carried out.
    #[error("the array is read-only: `--readwrite` makes it writable")]
    ReadOnly,
    /// The array was started without leave to write.
    #[error("the array was assembled with `--readonly`: stop it and assemble it without")]
    Untouched,
    /// The array cannot be changed any more.
    #[error("the array is being stopped")]
    Stopping,
    /// The level has no redundancy.
    #[error("an array without redundancy has nothing to sync, and takes no members")]
    NoRedundancy,
    /// The array or the device is in use by something that has to end before the verb is possible.
    #[error("the array is in use")]
    Busy,
}

fn stale_text(stale: &[String]) -> String {
    if stale.is_empty() {
        return String::new();
    }
    format!("; --force could take {}, out of date", stale.join(", "))
}

fn slot_list(slots: SlotSet) -> String {
    let slots: Vec<String> = slots.iter().map(|slot| slot.0.to_string()).collect();
    slots.join(", ")
}
