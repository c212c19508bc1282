//! Growth of an array to all the room of its members, once every one was replaced by a larger one:
//! mdadm's `--grow --size max`, done while assembling.
//!
//! Members keep their data in place; the new part follows behind. So layouts whose copies lie at
//! places that depend on the members' size (far) cannot grow, as in md. The new part counts as not
//! in sync, and its bits are set. The bitmap keeps its room, on the members or in a file of its
//! own: if that is too small for the new size, its chunks become larger. Until the first superblock
//! is written, the array has its old size on its members; a bitmap of the new size beside a
//! superblock of the old one is replaced by one with all bits set.

use super::{AssembledMember, Assembly, BitmapFile, Candidate, NeededSync, Part};
use crate::mutation::{self, Mutation};
use crate::persistent::error::AssembleError;
use raidlab_geometry::{CopyMap, Layout, Level};
use raidlab_metadata::{BadBlockEntry, Bitmap, BitmapSuperblock, MAXIMUM_BITMAP_BYTES, Version};
use raidlab_units::{Bytes, Sectors, Span, SpanSet};

impl Assembly {
    /// Makes the array as large as its smallest member allows. Nothing changes if it has that size
    /// already. `file`: the file of an external bitmap.
    pub(super) fn grow(&mut self, file: Option<&BitmapFile>) -> Result<(), AssembleError> {
        if let Some(reason) = self.why_it_cannot_grow() {
            return Err(AssembleError::CannotGrow(reason));
        }
        let used = self.room();
        if used <= self.array.used_size {
            return Ok(());
        }
        let before = self.sync_space();
        self.array.used_size = used;
        let shape = super::shape_of(&self.array, self.level, self.layout);
        let size = match self.level.parity_count() {
            0 => CopyMap::new(&shape).map(|map| map.array_size()),
            _ => shape.array_size(),
        };
        self.size = size.map_err(|source| AssembleError::Impossible {
            device: self.newest.clone(),
            source,
        })?;
        let new = Span::between(before, self.sync_space());
        if let Some(bitmap) = &self.bitmap {
            let members = self.members.iter().map(|member| &member.candidate);
            let room = room_of(&bitmap.superblock, file, members);
            let resized = resized(bitmap, new, room);
            let reason = "its bitmap has no room for more";
            self.bitmap = Some(resized.ok_or(AssembleError::CannotGrow(reason))?);
        }
        self.take_in(new);
        self.forget_bad_blocks();
        Ok(())
    }

    /// Removes bad blocks from the new part: it was never written, so that nothing is missing
    /// there, whatever the members' logs name. A member may have been in a larger array before.
    fn forget_bad_blocks(&mut self) {
        let (before, now) = (self.found.used_size, self.array.used_size);
        if mutation::is(Mutation::GrowthKeepsBad) {
            return;
        }
        for member in &mut self.members {
            let metadata = &mut member.candidate.metadata;
            let start = metadata.superblock.data_offset;
            let entries = metadata.bad_blocks.iter();
            let mut bad: SpanSet = entries.map(BadBlockEntry::span).collect();
            bad.remove(Span::between(start + before, start + now));
            metadata.bad_blocks = bad.iter().map(BadBlockEntry::from).collect();
        }
    }

    /// Adapts spares, which may be older than the array's size. Where one has the room, its data
    /// end behind what the array uses now, and its write log begins there.
    pub(super) fn widen_spares(&mut self) {
        let used = self.array.used_size;
        let shared = self.bitmap.as_ref();
        let widens = !mutation::is(Mutation::SpareOfBefore);
        let members = self.members.iter_mut().filter(|_| widens);
        let spares = members.filter(|member| member.part == Part::Spare);
        for spare in spares.map(|member| &mut member.candidate) {
            let metadata = &mut spare.metadata;
            let superblock = &mut metadata.superblock;
            if superblock.data_size < used && used <= superblock.data_room(spare.size) {
                superblock.data_size = used;
                let bitmap = metadata.bitmap.as_ref().or(shared);
                metadata.log_area = superblock.log_area(bitmap.map(|it| &it.superblock));
            }
        }
    }

    fn why_it_cannot_grow(&self) -> Option<&'static str> {
        let is_far = match self.layout {
            Layout::Copies(copies) => copies.far > 1 && !copies.offset,
            _ => false,
        };
        let is_in_sync = |member: &AssembledMember| matches!(member.part, Part::InSync(_));
        let slots = self.slots();
        let mut slots = slots.iter();
        let is_whole = slots.all(|member| member.is_some_and(is_in_sync));
        let mut members = self.members.iter();
        let replaces = members.any(|member| matches!(member.part, Part::Replacing(..)));
        if matches!(self.level, Level::Linear | Level::Raid0) {
            Some("an array without redundancy is as large as its members already")
        } else if is_far {
            Some("far copies lie at places that depend on the size")
        } else if self.read_only {
            Some("it is read-only")
        } else if !is_whole || replaces {
            Some("every member has to be there and in sync")
        } else {
            None
        }
    }

    /// Adds the new part, which is not in sync, to the resync.
    fn take_in(&mut self, new: Span) {
        self.resync = Some(match self.resync.take() {
            // The new part was never written.
            None => NeededSync {
                from: new.start,
                ranges: Some(vec![new]),
                is_first: true,
            },
            Some(resync) => NeededSync {
                from: resync.from.min(new.start),
                ranges: resync.ranges.map(|mut ranges| {
                    ranges.push(new);
                    ranges
                }),
                is_first: resync.is_first,
            },
        });
    }

    /// Returns the size that the smallest member has room for, in whole chunks.
    fn room(&self) -> Sectors {
        let members = self.members.iter();
        let rooms = members
            .filter(|member| matches!(member.part, Part::InSync(_)))
            .map(|member| {
                let superblock = member.candidate.superblock();
                let room = superblock.data_room(member.candidate.size);
                match superblock.version {
                    // Room that was kept free in front of a superblock at the end stays free.
                    Version::V1_0 => room.min(superblock.data_size),
                    _ => room,
                }
            });
        let unit = self.array.chunk.0.max(8);
        let room = rooms.min().unwrap_or(Sectors::ZERO).0;
        Sectors(room - room % unit)
    }

    /// Returns the end of the sectors that `resync_offset` and the bitmap count.
    fn sync_space(&self) -> Sectors {
        match self.level {
            Level::Raid10 => self.size,
            _ => self.array.used_size,
        }
    }
}

/// Returns the bytes that a bitmap may have in its place: in its file, or on the members, where
/// other areas may be close behind it.
pub(super) fn room_of<'a>(
    bitmap: &BitmapSuperblock,
    file: Option<&BitmapFile>,
    members: impl Iterator<Item = &'a Candidate>,
) -> Bytes {
    let beside_superblock = || {
        let bytes = bitmap.bytes().max(bitmap.reserved.to_bytes().0);
        let rooms = members.filter_map(|one| one.superblock().bitmap_room(one.size));
        let rooms = rooms.map(|room| Sectors(room.end.0 - room.start.0).to_bytes().0);
        rooms.fold(bytes.next_multiple_of(4096), u64::min)
    };
    let bytes = file.map_or_else(beside_superblock, |file| file.room.0);
    Bytes(bytes.min(MAXIMUM_BITMAP_BYTES))
}

/// Returns a bitmap's superblock for another number of sectors: with larger chunks, where there is
/// too little room for the present ones. `None` if no chunk would fit.
pub(super) fn fitted(
    bitmap: &BitmapSuperblock,
    sync_size: Sectors,
    room: Bytes,
) -> Option<BitmapSuperblock> {
    let mut superblock = *bitmap;
    superblock.sync_size = sync_size;
    while superblock.bytes() > room.0 {
        superblock.chunk = Bytes(superblock.chunk.0.checked_mul(2)?);
    }
    (superblock.chunk.0 < 1 << 32).then_some(superblock)
}

/// Returns the bitmap for a larger array, with the bits of the new part set. `None` if it
/// has no room.
fn resized(bitmap: &Bitmap, new: Span, room: Bytes) -> Option<Bitmap> {
    let superblock = fitted(&bitmap.superblock, new.end, room)?;
    let mut larger = Bitmap::new(superblock, false).ok()?;
    let spans = bitmap.set_spans().chain([new.start..new.end]);
    for span in spans {
        let count = Sectors(span.end.0.saturating_sub(span.start.0));
        for chunk in larger.chunks_of(span.start, count) {
            larger.set(chunk);
        }
    }
    Some(larger)
}
