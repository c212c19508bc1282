//! The reasons why an array cannot be assembled or started, or a verb is refused.

use crate::config::{AdminError, ConfigError};
use crate::stripes::StripeConfigError;
use raidlab_geometry::{ShapeError, Slot, SlotSet};
use raidlab_units::Sectors;

/// The reason why an assembly is refused. Nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AssembleError {
    /// No device was given.
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
    /// Only spares, or devices without a slot, were given.
    #[error("none of the devices holds data of the array")]
    NoMembers,
    /// The array has a feature that only md supports.
    #[error("{device} uses {feature}, which is not supported")]
    Unsupported {
        /// The device whose superblock has the feature.
        device: String,
        /// The feature, in mdadm's words.
        feature: &'static str,
    },
    /// The newest superblock describes an impossible array.
    #[error("the superblock of {device} describes an impossible array")]
    Impossible {
        /// The device with that superblock.
        device: String,
        /// The reason why the array is impossible.
        #[source]
        source: ShapeError,
    },
    /// The newest superblock has an unknown level, or a layout unknown at its level.
    #[error("the superblock of {device} has level {level}, layout {layout}, which is unknown")]
    UnknownLevel {
        /// The device with that superblock.
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
    /// Two current members claim one slot.
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
    /// There are too few members for the level.
    #[error("{present} of {slots} members are not enough to start the array{}", stale_text(.stale))]
    NotEnough {
        /// The number of current members found.
        present: usize,
        /// The number of slots of the array.
        slots: usize,
        /// Devices that `--force` could take although they are out of date.
        stale: Vec<String>,
    },
    /// Members are missing that were in service when the array was last in use.
    #[error(
        "{present} members of the {expected} that were in service are here{}; --run starts the \
         array degraded",
        not_counted_text(.not_counted)
    )]
    NeedsRun {
        /// The number of members found.
        present: usize,
        /// The number of members in service when it was last used.
        expected: usize,
        /// Devices that are here too and do not count, each with the reason.
        not_counted: Vec<String>,
    },
    /// A degraded array was interrupted in a write: the content of its missing member
    /// cannot be known.
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
        /// The reason why the log does not help.
        log: LogFault,
    },
    /// The writes under way cannot be completed with this member, and can be without it.
    #[error(
        "the array was not stopped cleanly, and the write log of {member} cannot be read; without \
         that member the other logs make good what was being written; --force starts with it, and until a resync is over nothing is computed from parity"
    )]
    LogUnreadable {
        /// The path of the member.
        member: String,
    },
    /// The data become readable only after a replay of the log.
    #[error(
        "the write log must be replayed before the degraded array is read; not while read-only"
    )]
    ReplayNeedsWrite,
    /// The array cannot grow, for this reason.
    #[error("the array cannot grow: {0}")]
    CannotGrow(&'static str),
    /// The external bitmap belongs to another array.
    #[error("the external bitmap does not belong to this array")]
    ForeignBitmap,
}

/// The reason why a write log cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LogFault {
    /// The array was used without a log.
    #[error("{0} has none")]
    Absent(String),
    /// This member's log cannot be read, and the others' can.
    #[error("that of {0} cannot be read")]
    Unreadable(String),
    /// Another system has written the superblock since.
    #[error("that of {0} is void: another system has used the member since")]
    Overtaken(String),
    /// This member's log is of another session than the others'.
    #[error("that of {0} is from another session")]
    OtherSession(String),
    /// The array was never in sync.
    #[error("the first resync was not complete")]
    NeverInSync,
}

/// The reason why an assembled array cannot be started.
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

/// The remedy where a device cannot come back.
const ADDED_ANEW: &str = "`--add` makes it a new member, and what is on it is lost";

/// The reason why a verb on a running array is refused. The array is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VerbError {
    /// The verb names a device that the array does not have.
    #[error("no device {}", .0.0)]
    NoSuchDevice(Slot),
    /// The place for the device is occupied.
    #[error("device {} is there already", .0.0)]
    DeviceExists(Slot),
    /// The device is too small for the array's data.
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
    /// The superblock is of this array in an earlier shape.
    #[error("the array had another level, layout, chunk or size then: {ADDED_ANEW}")]
    Changed,
    /// No member that is in service was so when the device left, or the device is newer than all.
    #[error(
        "the device may have been written without the members in service (split brain): {ADDED_ANEW}"
    )]
    Unwitnessed,
    /// The device's number was given to another one while it was gone.
    #[error("another device has its number by now: {ADDED_ANEW}")]
    NumberTaken,
    /// The bitmap no longer covers what the device lacks.
    #[error("the device's event count {events} is below the bitmap's {cleared}: {ADDED_ANEW}")]
    TooOld {
        /// The event count of the device that comes back.
        events: u64,
        /// The event count below which the bitmap has forgotten writes (`events_cleared`).
        cleared: u64,
    },
    /// Without a bitmap it is unknown what the device lacks.
    #[error("no bitmap says what the device lacks: {ADDED_ANEW}")]
    NoBitmap,
    /// The slot has another device by now.
    #[error("slot {} is not free: `--add` makes it a spare", .0.0)]
    SlotTaken(Slot),
    /// The member is not in sync, so that it cannot be replaced.
    #[error("device {} is not in sync: there is nothing to be copied from it", .0.0)]
    NotInSync(Slot),
    /// The member is being replaced already.
    #[error("device {} is being replaced already", .0.0)]
    BeingReplaced(Slot),
    /// The named device cannot take the member's place.
    #[error("device {} is no spare that fits", .0.0)]
    NotThatSpare(Slot),
    /// There is no spare to replace the member with.
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
    /// The array was started without permission to write.
    #[error("the array was assembled with `--readonly`: stop it and assemble it without")]
    Untouched,
    /// The array is stopping, and cannot be changed any more.
    #[error("the array is being stopped")]
    Stopping,
    /// The array has lost more than it can bear, and cannot be changed any more.
    #[error("the array has failed: stop it, and assemble it again once its members are back")]
    Broken,
    /// The level has no redundancy.
    #[error("an array without redundancy has nothing to sync, and takes no members")]
    NoRedundancy,
    /// The array or the device is in use by an operation that has to end before the
    /// verb is possible.
    #[error("the array is in use")]
    Busy,
}

fn stale_text(stale: &[String]) -> String {
    if stale.is_empty() {
        return String::new();
    }
    format!("; --force could take {}, out of date", stale.join(", "))
}

fn not_counted_text(not_counted: &[String]) -> String {
    if not_counted.is_empty() {
        return String::new();
    }
    format!(", and not counted: {}", not_counted.join(", "))
}

fn slot_list(slots: SlotSet) -> String {
    let slots: Vec<String> = slots.iter().map(|slot| slot.0.to_string()).collect();
    slots.join(", ")
}
