//! Bad blocks that another system noted on a disk while it was away.
//!
//! md keeps a member whose medium refuses a write, and notes the range in its bad-block log;
//! raidlab fails such a member. So a disk that comes back from md may name ranges in chunks that
//! the bitmap calls clean, whose bytes only the other members have. Such a disk is made here out of
//! one that has failed: with other bytes there, and a log that names them. Until they are written
//! again, it counts as a disk that is unreadable there. This is not done in arrays that a crash
//! leaves with a write hole: where parity does not fit there would be no other copy.

use super::{Violation, World, slot_of};
use crate::disk::Disk;
use crate::pages::SECTOR;
use raidlab_array::{MemberState, SyncAction};
use raidlab_metadata::{BadBlockEntry, Features, MemberMetadata, ReadAt, read_member};
use raidlab_units::{Bytes, SECTOR_BYTES, Sectors};
use std::io;

impl World<'_> {
    /// Makes a failed member's disk lose a range of its data area, which its log names.
    pub(super) fn note_bad(
        &mut self,
        member: usize,
        sector: u64,
        count: u64,
    ) -> Option<&'static str> {
        // A member whose failure is recorded nowhere yet is still a member, whose log would
        // be voided elsewhere.
        let is_out = self.unrecorded().contains(slot_of(member));
        if self.beyond || self.has_hole() || !is_out {
            return None;
        }
        let number = self.failed_disk(member)?;
        let (offset, size) = self.reader.areas[member];
        let count = count.min(size.checked_sub(sector)?);
        // A sector without content would never be written again.
        let holds = |sector| self.reader.position(member, sector).is_some();
        if !(sector..sector + count).all(holds) {
            return None;
        }
        let disk = &mut self.disks[number];
        note(disk, |entries, _| {
            entries.push(BadBlockEntry {
                start: Sectors(offset + sector),
                count: Sectors(count),
            });
        })?;
        let rubbish = vec![0xb5; count as usize * SECTOR];
        disk.write(offset + sector, rubbish.into(), true);
        self.noted.insert(number);
        Some("bad blocks noted elsewhere")
    }

    /// Fills the log of a failed member's disk so that `left` more entries fit: all new ones name
    /// sectors that the array does not use.
    pub(super) fn fill_log(&mut self, member: usize, left: usize) -> Option<&'static str> {
        if self.beyond || !self.unrecorded().contains(slot_of(member)) {
            return None;
        }
        let number = self.failed_disk(member)?;
        let (offset, size) = self.reader.areas[member];
        let disk = &mut self.disks[number];
        // Places apart from each other and from the used sectors.
        let mut unused = (offset + size + 1..disk.sectors()).step_by(2);
        note(disk, |entries, capacity| {
            while entries.len() + left < capacity
                && let Some(start) = unused.next()
            {
                let (start, count) = (Sectors(start), Sectors(1));
                entries.push(BadBlockEntry { start, count });
            }
        })?;
        Some("bad-block log filled elsewhere")
    }

    /// Returns the disk of a slot whose member has failed, with nothing in flight to it.
    fn failed_disk(&self, member: usize) -> Option<usize> {
        let disk = match self.states().get(member)? {
            MemberState::Faulty => self.slots[member]?,
            MemberState::Missing => {
                let retired = self.retired.iter().find(|(slot, _)| *slot == member);
                retired?.1
            }
            _ => return None,
        };
        let mut flights = self.flights.values();
        let is_quiet = flights.all(|flight| flight.disk != Some(disk));
        (is_quiet && self.is_alive(disk) && self.standing[disk].hung.is_none()).then_some(disk)
    }

    /// Whether a disk's log has any entry that was noted here, or may have one as it is unreadable.
    pub(super) fn is_noted(&self, disk: usize) -> bool {
        let (offset, size) = self.reader.areas[0];
        let is_used = |entry: &BadBlockEntry| entry.start.0 < offset + size;
        let found = || metadata(&self.disks[disk]);
        self.noted.contains(&disk) && found().is_none_or(|it| it.bad_blocks.iter().any(is_used))
    }

    /// Whether the disk of any member still has such bad blocks in its log.
    pub(super) fn has_notes(&self) -> bool {
        self.slots.iter().flatten().any(|disk| self.is_noted(*disk))
    }

    /// Restores the bytes of the places in the logs, by a repair.
    pub(super) fn repair_noted(&mut self) -> Result<(), Violation> {
        if !self.has_notes() {
            return Ok(());
        }
        // Refused while another sync runs; then it is done in the next round.
        let _running = self.call(|driver, now| driver.start_sync(now, SyncAction::Repair))?;
        Ok(())
    }
}

/// Changes the entries of a disk's bad-block log; the number is that of the entries it
/// has room for.
fn note(disk: &mut Disk, change: impl FnOnce(&mut Vec<BadBlockEntry>, usize)) -> Option<()> {
    let mut metadata = metadata(disk)?;
    let superblock = &mut metadata.superblock;
    let log = superblock.bad_block_log?;
    change(&mut metadata.bad_blocks, log.capacity());
    let bytes = log.encode(&metadata.bad_blocks).ok()?;
    let place = superblock
        .super_offset
        .0
        .checked_add_signed(log.offset.into())?;
    superblock.features = Features(superblock.features.0 | Features::BAD_BLOCKS);
    let mut block = superblock.encode().ok()?;
    block.resize(block.len().next_multiple_of(SECTOR), 0);
    disk.write(place, bytes.into(), true);
    disk.write(superblock.super_offset.0, block.into(), true);
    Some(())
}

/// A disk as a source for the metadata reader.
struct Readable<'a>(&'a Disk);

impl ReadAt for Readable<'_> {
    fn read_at(&mut self, offset: Bytes, bytes: &mut [u8]) -> io::Result<()> {
        let first = offset.0 / SECTOR_BYTES;
        let end = (offset.0 + bytes.len() as u64).div_ceil(SECTOR_BYTES);
        if end > self.0.sectors() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut sectors = vec![0; (end - first) as usize * SECTOR];
        let read = self.0.read(first, &mut sectors);
        read.map_err(io::Error::other)?;
        let skip = (offset.0 % SECTOR_BYTES) as usize;
        bytes.copy_from_slice(&sectors[skip..skip + bytes.len()]);
        Ok(())
    }
}

fn metadata(disk: &Disk) -> Option<MemberMetadata> {
    read_member(&mut Readable(disk), Sectors(disk.sectors()).to_bytes()).ok()
}
