//! The devices of a running array, and the contents of their superblocks.

use super::assembly::{AssembledMember, Part};
use super::log_superblock::{LogSays, log_area};
use crate::admission::Admission;
use crate::config::MemberConfig;
use crate::mutation::{self, Mutation};
use raidlab_geometry::Slot;
use raidlab_metadata::{BadBlockEntry, BadBlockLog, DeviceFlags, Features, Role, Superblock};
use raidlab_units::{Sectors, Span, SpanSet};

/// A device's part in the array at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    InSync(Slot),
    Recovering {
        slot: Slot,
        /// The sector of its data area below which it is filled.
        below: Sectors,
        /// Whether only the ranges in the bitmap are to be filled.
        by_bitmap: bool,
    },
    /// A device that is being filled to replace the one in service in this slot.
    Replacing {
        slot: Slot,
        below: Sectors,
    },
    Spare,
    Faulty,
}

impl Place {
    /// Returns the slot that the device serves.
    pub(super) const fn slot(self) -> Option<Slot> {
        match self {
            Self::InSync(slot) | Self::Recovering { slot, .. } => Some(slot),
            Self::Replacing { .. } | Self::Spare | Self::Faulty => None,
        }
    }

    const fn role(self) -> Role {
        match self {
            Self::InSync(slot) | Self::Recovering { slot, .. } | Self::Replacing { slot, .. } => {
                Role::Slot(slot.0)
            }
            Self::Spare => Role::Spare,
            Self::Faulty => Role::Faulty,
        }
    }
}

/// A device of a running array, and its recorded state.
#[derive(Debug)]
pub(super) struct Device {
    pub(super) name: String,
    /// The fields of this device's own superblock; the rest is the array's.
    pub(super) own: Superblock,
    pub(super) size: Sectors,
    pub(super) rotational: bool,
    pub(super) place: Place,
    /// The slot that the device served last.
    pub(super) last_slot: Option<Slot>,
    /// The bad blocks, in sectors of the whole member.
    pub(super) bad_blocks: Vec<BadBlockEntry>,
    /// The entries of the log on the member: the bad blocks, and more if it is full.
    pub(super) named_bad: Vec<BadBlockEntry>,
    /// Whether the log on the member differs from `bad_blocks`.
    pub(super) bad_blocks_changed: bool,
    /// The place of the superblock of its write log, if it can have a log.
    pub(super) log_area: Option<Span>,
    /// The number of the next log superblock.
    pub(super) log_sequence: u64,
    /// The contents of its log when the array was assembled.
    pub(super) found_log: Option<LogSays>,
    /// The checksum of the superblock written last.
    pub(super) checksum: u32,
}

impl Device {
    pub(super) fn new(member: AssembledMember) -> Self {
        let AssembledMember { candidate, part } = member;
        let log_area = log_area(&candidate.metadata);
        let own = candidate.metadata.superblock;
        let log = candidate.log.and_then(|log| log.of(&own));
        let below = |admission: &Admission| match admission {
            Admission::From(sector) => *sector,
            Admission::Ranges(_) => Sectors::ZERO,
        };
        let place = match &part {
            Part::InSync(slot) => Place::InSync(*slot),
            Part::Recovering(slot, admission) => Place::Recovering {
                slot: *slot,
                below: below(admission),
                by_bitmap: matches!(admission, Admission::Ranges(_)),
            },
            Part::Replacing(slot, admission) => Place::Replacing {
                slot: *slot,
                below: below(admission),
            },
            Part::Spare => Place::Spare,
        };
        Self {
            name: candidate.name,
            size: candidate.size,
            rotational: candidate.rotational,
            last_slot: place.slot(),
            place,
            named_bad: candidate.metadata.bad_blocks.clone(),
            bad_blocks: candidate.metadata.bad_blocks,
            bad_blocks_changed: false,
            log_area,
            log_sequence: log.map_or(0, |block| block.sequence.wrapping_add(1)),
            found_log: log.map(|block| block.says),
            checksum: super::log_superblock::checksum(&own).unwrap_or(0),
            own,
        }
    }

    /// Returns the member's configuration for the engine.
    pub(super) fn config(&self) -> MemberConfig {
        MemberConfig {
            size: self.size,
            data_offset: self.own.data_offset,
            rotational: self.rotational,
            write_mostly: self.own.device_flags.0 & DeviceFlags::WRITE_MOSTLY != 0,
            bad_blocks: self.own.bad_block_log.map(|_| self.bad_spans()),
        }
    }

    /// Returns its bad blocks, in sectors of its data area; an entry may begin in front of that.
    pub(super) fn bad_spans(&self) -> Vec<Span> {
        let offset = self.own.data_offset.0;
        let inside = |sector: Sectors| sector.0.saturating_sub(offset);
        let spans = self.bad_blocks.iter().map(BadBlockEntry::span);
        let spans = spans.map(|span| Span::new(inside(span.start), inside(span.end)));
        spans.filter(|span| span.start < span.end).collect()
    }

    /// Adds a range of its data area to its bad blocks, or removes it. The log keeps the middle of
    /// a range while it has no room for two entries (as md's `badblocks_clear` refuses it): it may
    /// name more than is bad, never less.
    pub(super) fn set_bad(&mut self, start: Sectors, count: Sectors, bad: bool) {
        let start = start.0.saturating_add(self.own.data_offset.0);
        let span = Span::new(start, start.saturating_add(count.0));
        self.bad_blocks = changed(&self.bad_blocks, span, bad);
        let named = changed(&self.named_bad, span, bad);
        let has_room = |log: BadBlockLog| log.encode(&named).is_ok();
        if bad || self.own.bad_block_log.is_none_or(has_room) {
            self.named_bad = named;
        }
        self.bad_blocks_changed = true;
    }

    /// Returns the bytes of its log, and their place; `None` where it has no room for
    /// all bad blocks.
    pub(super) fn bad_block_log(&mut self) -> Option<(Sectors, Vec<u8>)> {
        let log = self.own.bad_block_log?;
        let start = self.beside(log.offset)?;
        if log.encode(&self.bad_blocks).is_ok() {
            self.named_bad.clone_from(&self.bad_blocks);
        }
        Some((start, log.encode(&self.named_bad).ok()?))
    }

    /// Returns its superblock without the roles: the array's with its own fields.
    pub(super) fn superblock(&self, array: &Superblock, has_bitmap: bool) -> Superblock {
        let mut features = array.features.0 & Features::RAID0_LAYOUT;
        let mut feature = |bit, set| features |= if set { bit } else { 0 };
        feature(Features::BITMAP, has_bitmap);
        feature(Features::BAD_BLOCKS, !self.bad_blocks.is_empty());
        let mut recovery_offset = Sectors::ZERO;
        match self.place {
            Place::Recovering {
                below, by_bitmap, ..
            } => {
                feature(Features::RECOVERY_OFFSET, true);
                feature(Features::RECOVERY_BITMAP, by_bitmap && has_bitmap);
                recovery_offset = below;
            }
            Place::Replacing { below, .. } => {
                feature(Features::RECOVERY_OFFSET | Features::REPLACEMENT, true);
                recovery_offset = below;
            }
            Place::InSync(_) | Place::Spare | Place::Faulty => {}
        }
        let own = &self.own;
        Superblock {
            features: Features(features),
            version: own.version,
            bitmap_offset: if has_bitmap { own.bitmap_offset } else { 0 },
            data_offset: own.data_offset,
            // The array may have grown without a record on this device. A spare may be too small
            // for the present size.
            data_size: match self.place {
                Place::Spare | Place::Faulty => own.data_size,
                _ if mutation::is(Mutation::SizeOfBefore) => own.data_size,
                _ => own.data_size.max(array.used_size),
            },
            super_offset: own.super_offset,
            recovery_offset,
            device_number: own.device_number,
            corrected_read_errors: own.corrected_read_errors,
            device_uuid: own.device_uuid,
            device_flags: own.device_flags,
            bad_block_log: own.bad_block_log,
            ..array.clone()
        }
    }

    /// Returns the role that the other devices' superblocks give it.
    pub(super) const fn role(&self) -> Role {
        self.place.role()
    }

    /// Returns the sector of an area that lies beside the superblock.
    pub(super) fn beside(&self, offset: i32) -> Option<Sectors> {
        let sector = self.own.super_offset.0;
        sector.checked_add_signed(offset.into()).map(Sectors)
    }

    /// Returns the sectors that a superblock takes, rounded to 4 KiB where there is room.
    pub(super) fn superblock_sectors(&self, bytes: usize) -> usize {
        let near = |offset: i32| (1..8).contains(&offset);
        let is_cramped = self.own.features.has(Features::BITMAP) && near(self.own.bitmap_offset)
            || self.own.bad_block_log.is_some_and(|log| near(log.offset));
        match is_cramped {
            true => bytes.div_ceil(512),
            false => bytes.div_ceil(4096) * 8,
        }
    }
}

/// Returns the entries with a range added, or removed.
fn changed(entries: &[BadBlockEntry], span: Span, bad: bool) -> Vec<BadBlockEntry> {
    let mut all: SpanSet = entries.iter().map(BadBlockEntry::span).collect();
    if bad {
        all.insert(span);
    } else {
        all.remove(span);
    }
    all.iter().map(BadBlockEntry::from).collect()
}
