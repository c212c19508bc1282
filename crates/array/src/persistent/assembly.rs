//! The assembly of an array from a set of devices with superblocks: the members that may be
//! trusted, those that must be recovered, and the ranges that have to be made to agree before the
//! array is whole.
//!
//! The superblock with the highest event count decides. A device is a current member if that
//! superblock gives its number the slot that the device itself claims, and its own event count is
//! the same or one less (a crash between two members' superblock writes: nothing was written to the
//! array in between). All others that claim a slot are stale. A spare has no content, and its
//! superblock does not decide: md lets spares sleep while an array goes from clean to dirty and
//! back, and may count an event back meanwhile, so a spare's count may be one ahead (Linux
//! drivers/md/md.c, `md_update_sb`). But it is a witness: if it has recorded two events more than a
//! member, others served when they came, and the member is stale. Identity lies in the superblock
//! alone; the order and the names of the devices do not matter (Linux drivers/md/md.c,
//! `super_1_validate` and `analyze_sbs`; mdadm's Assemble.c).
//!
//! *Split brain.* A half of an array that goes on alone records that the others are out. If a
//! device that is not current says that slots of the array are vacant (or it and the newest call
//! each other failed), and of all the members it names not one is in service by the newest
//! superblock, then it has run without any of those that are current: both sides hold data that the
//! other lacks. Two members that call each other failed are not enough for that: one may have
//! failed first and have come back while the other was out, which a third member, in service with
//! both, bears witness to; so does one that was in service with the older, and later with another
//! that did not run by itself. Such a set is refused. With `force` the newer side is taken, and the
//! other can only be recovered from the beginning.
//!
//! *Dirty arrays.* An array that was not stopped cleanly is resynced: only the chunks whose bit is
//! set if there is a sound bitmap, else from the recorded offset on. If parity is the only way to
//! the data of a missing member, a dirty array is refused (the write hole), unless every current
//! member has the log of the same session: then the log is replayed and parity fits again.
//!
//! *The first resync.* In an array that has never been in sync, parity does not fit where no write
//! has gone since the array was made. The content of a missing member there is undefined, so parity
//! may define it (see the engine's `unwritten`), and a first resync that was interrupted is no
//! reason to refuse a degraded array. But md's superblock does not distinguish it from a resync
//! after a crash: `resync_offset` is 0 while the array is in use, and the progress of either resync
//! when it is not (Linux drivers/md/md.c, `super_1_sync`; md itself takes parity at its word in
//! both cases while it runs, and refuses both when it assembles). The two are distinguished by:
//!
//! * an event count of 0: the array was never in use;
//! * the superblocks of the members' write logs, all of which say so, if they are
//!   in force with the md superblocks that are there. Any other system that has used the array
//!   has written other ones, and the log that has to be replayed after a crash completes
//!   the writes that were under way then.
//!
//! Where neither does, as after a crash of an array without a log, or when the kernel has run it,
//! everything that the resync has not reached counts as torn: nothing is computed from it, and the
//! array is refused when it is degraded, or with `force` started with parity as it stands.
//!
//! *Members under recovery.* The resync compares members in sync only. A copy that is being made
//! had its share of the writes under way below its recovery offset, and they may have reached it
//! and not its source, or the other way round. So after a crash it is filled again from the first
//! chunk whose bit is set (none is cleared during a recovery), or from the beginning if there is
//! no sound bitmap.
//!
//! *Bitmaps.* A bitmap is sound if it names the array and its event count is not lower than the
//! array's (every change of the superblocks is preceded by one of the bitmaps). The bits of all
//! sound copies count; if there are none, all bits do.

mod choose;
mod claims;
mod grow;
mod sync_plan;
#[cfg(test)]
pub(super) mod tests;
mod view;

use super::error::AssembleError;
use super::log_superblock::{self, LogBlock, LogSuperblock, Numbers, log_area};
use crate::admission::Admission;
use crate::mutation::{self, Mutation};
use crate::stripes::log::{LogArea, LogError, ReplayWrite, Trust};
use raidlab_geometry::{Layout, Level, Shape, Slot};
use raidlab_metadata::{Bitmap, MemberMetadata, Superblock};
use raidlab_units::{Bytes, Sectors, Span};

/// A device that may be a member.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// The device's path, which messages use.
    pub name: String,
    /// The size of the whole device, in sectors.
    pub size: Sectors,
    /// The device's md metadata.
    pub metadata: MemberMetadata,
    /// The superblock of the device's write log, if it has one that can be read.
    pub log: Option<LogSuperblock>,
    /// Whether the device is a mechanical disk.
    pub rotational: bool,
}

/// The treatment of members that are out of date.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stale {
    /// They are left out (mdadm's way).
    #[default]
    LeaveOut,
    /// They are re-added where the bitmap still covers what they lack.
    ReAdd,
    /// They are re-added, and recovered completely where the bitmap does not help.
    Rebuild,
}

/// A change during assembly (mdadm's `--update`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Update {
    /// The array counts as dirty everywhere, whatever the bitmap says.
    Resync,
    /// The array uses all the room that its members have (mdadm's
    /// `--grow --size max`).
    Size,
}

/// The options of an assembly.
#[derive(Debug, Clone, Default)]
pub struct AssembleOptions {
    /// Whether the devices are used even where data may be lost.
    pub force: bool,
    /// Whether to start although members that were in service are missing (mdadm's `--run`).
    pub run_degraded: bool,
    /// Whether to assemble read-only: nothing is written to the devices, metadata included.
    pub read_only: bool,
    /// The treatment of members that are out of date.
    pub stale: Stale,
    /// The change of the superblocks, if any.
    pub update: Option<Update>,
    /// The array's bitmap, where it is kept in a file of its own.
    pub external_bitmap: Option<BitmapFile>,
}

/// A bitmap in a file of its own.
#[derive(Debug, Clone)]
pub struct BitmapFile {
    /// The bitmap in the file.
    pub bitmap: Bitmap,
    /// The length of the file. It is never extended, so the bitmap of an array that grows has to
    /// fit into it.
    pub room: Bytes,
}

/// A device's part in the array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// The member of this slot, with current content.
    InSync(Slot),
    /// A member that has to be recovered, or recovered further.
    Recovering(Slot, Admission),
    /// A device that is being filled to replace a member in service.
    Replacing(Slot, Admission),
    /// A spare, ready to take a failed member's place.
    Spare,
}

/// A device of an assembled array.
#[derive(Debug, Clone)]
pub struct AssembledMember {
    /// The device and its metadata.
    pub candidate: Candidate,
    /// The part that the device has in the array.
    pub part: Part,
}

/// The reason why a device is left out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LeftOut {
    /// The device's superblock has another level, layout or chunk.
    #[error("its superblock differs from the newest one in level, layout or chunk")]
    Disagrees,
    /// A newer device has its place.
    #[error("out of date: events {events}, the array has {newest}")]
    Stale {
        /// The event count of the device.
        events: u64,
        /// The newest event count of the array.
        newest: u64,
    },
    /// The same member is present with a higher event count.
    #[error("an older copy of {0}")]
    OlderCopy(String),
    /// The device was in use without the other members, so its data differ from theirs.
    #[error("it ran without the other members; its data differ")]
    SplitBrain,
    /// The array calls the device failed, or its own superblock does.
    #[error("it has failed")]
    Faulty,
    /// The device is smaller than its superblock says.
    #[error("it has {size} sectors, but the array needs {needed}")]
    TooSmall {
        /// The sectors of the device.
        size: u64,
        /// The sectors that the device has to have, its data offset included.
        needed: u64,
    },
    /// The array's bitmap does not fit beside the device's other areas.
    #[error("it has no room for the array's bitmap")]
    NoBitmapRoom,
    /// The device's slot is beyond the array's.
    #[error("its slot does not exist")]
    NoSuchSlot,
}

/// The part of an array that has to be made to agree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NeededSync {
    /// The position from which on it is, in the units of `resync_offset`.
    pub from: Sectors,
    /// The ranges, if a sound bitmap names them.
    pub ranges: Option<Vec<Span>>,
    /// Whether it is the array's first resync, and nothing was torn since the array was made.
    pub is_first: bool,
}

/// A write log that has to be replayed before the array starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NeededReplay {
    /// The session whose records are replayed.
    pub session: u64,
    /// The logs of the members that hold data.
    pub logs: Vec<NeededLog>,
}

/// A log that has to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NeededLog {
    /// The slot of the member that the log lies on.
    pub slot: Slot,
    /// The device's index in [`Assembly::members`].
    pub member: usize,
    /// The place of its records on the device.
    pub ring: Span,
    /// The part of the member's data that is trusted to be current.
    pub trust: Trust,
}

/// A write of a log's replay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogWrite {
    /// The device's index in [`Assembly::members`].
    pub member: usize,
    /// The first sector on the device.
    pub start: Sectors,
    /// The bytes: whole sectors.
    pub bytes: Vec<u8>,
}

/// The writes of a log's replay, in two steps.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Replay {
    /// The first step, in any order: the numbers of the members that are away. Empty if none is.
    pub absences: Vec<LogWrite>,
    /// The second step, after a flush of all members, in this order: the writes that
    /// the log completes.
    pub writes: Vec<LogWrite>,
}

/// An array assembled from its devices, ready to be started.
#[derive(Debug, Clone)]
pub struct Assembly {
    /// The newest superblock, for the fields that all members share.
    pub array: Superblock,
    /// The newest superblock as it was found, before any option changed it.
    pub(super) found: Superblock,
    /// The name of the device with the newest superblock.
    pub newest: String,
    /// The RAID level that the array has.
    pub level: Level,
    /// The placement of data, parity and copies on the members; none for linear and RAID 1.
    pub layout: Layout,
    /// Sectors that the array offers.
    pub size: Sectors,
    /// The devices of the array, by slot, spares last.
    pub members: Vec<AssembledMember>,
    /// The devices that are left out, with the reason.
    pub left_out: Vec<(String, LeftOut)>,
    /// The array's bitmap: the union of its sound copies, or all bits set.
    pub bitmap: Option<Bitmap>,
    /// Whether the bitmap is kept in a file of its own.
    pub bitmap_is_external: bool,
    /// The member that has no room for the bitmap, so that the array goes without one.
    pub bitmap_does_not_fit: Option<String>,
    /// The resync that is needed; `None`: the array is in sync.
    pub resync: Option<NeededSync>,
    /// The log that has to be replayed first.
    pub replay: Option<NeededReplay>,
    /// The device numbers of members that are away during the replay.
    pub(super) absent: Numbers,
    /// Devices that were taken only because of `force`.
    pub forced: Vec<String>,
    /// Whether the array starts read-only: nothing is written to the devices, metadata included.
    pub read_only: bool,
}

impl Assembly {
    /// Decides which array the devices form.
    ///
    /// # Errors
    /// See [`AssembleError`]. Nothing is changed, so that the caller may try again
    /// with other options.
    pub fn decide(
        candidates: Vec<Candidate>,
        options: &AssembleOptions,
    ) -> Result<Self, AssembleError> {
        let view = view::View::new(candidates, options)?;
        let chosen = choose::Chosen::new(&view, options)?;
        sync_plan::conclude(view, chosen, options)
    }

    /// Whether the array is to be larger than its members' superblocks say.
    #[must_use]
    pub fn has_grown(&self) -> bool {
        self.array.used_size > self.found.used_size
    }

    /// Returns the number of slots of the array.
    #[must_use]
    pub fn slot_count(&self) -> usize {
        usize::try_from(self.array.raid_disks).unwrap_or(usize::MAX)
    }

    /// Returns the device that is current or under recovery in each slot.
    #[must_use]
    pub fn slots(&self) -> Vec<Option<&AssembledMember>> {
        (0..)
            .map(Slot)
            .take(self.slot_count())
            .map(|slot| {
                self.members.iter().find(|member| match &member.part {
                    Part::InSync(own) | Part::Recovering(own, _) => *own == slot,
                    Part::Replacing(..) | Part::Spare => false,
                })
            })
            .collect()
    }

    /// Returns the writes that are needed before the array starts. `rings`: the bytes of each of
    /// [`NeededReplay::logs`]. The caller writes and flushes each of the two steps, and confirms
    /// that with [`Self::replayed`].
    ///
    /// # Errors
    /// When the logs are not of one array.
    pub fn replay(&mut self, rings: &[Vec<u8>]) -> Result<Replay, LogError> {
        let Some(replay) = &self.replay else {
            return Ok(Replay::default());
        };
        let areas: Vec<LogArea<'_>> = replay
            .logs
            .iter()
            .zip(rings)
            .map(|(log, bytes)| LogArea {
                slot: log.slot,
                bytes,
                trust: log.trust,
            })
            .collect();
        let writes = crate::stripes::log::replay(replay.session, self.array.used_size, &areas)?;
        let place = |write: ReplayWrite| {
            let log = replay.logs.iter().find(|log| log.slot == write.slot)?;
            let offset = self.members[log.member].candidate.superblock().data_offset;
            Some(LogWrite {
                member: log.member,
                start: offset + write.start,
                bytes: write.bytes,
            })
        };
        let writes: Vec<LogWrite> = writes.into_iter().filter_map(place).collect();
        let names_none = writes.is_empty() || self.absent.is_empty();
        let absences = match names_none || mutation::is(Mutation::AbsenceUnnamed) {
            true => Vec::new(),
            false => self.name_absent(),
        };
        Ok(Replay { absences, writes })
    }

    /// Returns a further log superblock for each member whose log counts, which names the members
    /// that are away.
    fn name_absent(&mut self) -> Vec<LogWrite> {
        let logs = self.replay.iter().flat_map(|replay| &replay.logs);
        let mut writes = Vec::new();
        for log in logs {
            let candidate = &mut self.members[log.member].candidate;
            let own = candidate.superblock();
            let block = candidate.log.and_then(|log| log.of(own));
            let (Some(block), Some(area)) = (block, log_area(&candidate.metadata)) else {
                continue;
            };
            let sum = log_superblock::checksum(own).unwrap_or(0);
            let block = LogBlock {
                checksums: [sum; 2],
                sequence: block.sequence.wrapping_add(1),
                absent: self.absent,
                ..block
            };
            writes.push(LogWrite {
                member: log.member,
                start: area.start + block.place(),
                bytes: block.encode(),
            });
            candidate.log = Some(block.into());
        }
        writes
    }

    /// Confirms that the log was replayed and its writes were flushed.
    pub fn replayed(&mut self) {
        self.replay = None;
    }
}

impl Candidate {
    const fn superblock(&self) -> &Superblock {
        &self.metadata.superblock
    }
}

/// Returns the shape of the array that a superblock describes, with equal members.
pub(super) fn shape_of(superblock: &Superblock, level: Level, layout: Layout) -> Shape {
    // A slot set has at most 64 slots; the shape's own check refuses more.
    let members = usize::try_from(superblock.raid_disks).unwrap_or(usize::MAX);
    Shape::uniform(
        level,
        layout,
        superblock.chunk,
        members.min(raidlab_geometry::MAXIMUM_MEMBERS + 1),
        superblock.used_size,
    )
}
