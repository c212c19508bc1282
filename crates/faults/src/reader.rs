//! An independent reader of arrays: it finds every sector where md puts it, written anew from the
//! tables of the drivers, sharing no code with the array core.
//!
//! It reads the members' pristine bytes and returns the content of the array, whether copies and
//! parity agree, and the content that could be read with any set of members lost. Parity is plain
//! scalar arithmetic: a table of GF(2^8) with the polynomial 0x11d and the generator 2.
//!
//! Sources: drivers/md/raid0.c (`find_zone`, `map_sector`), linear.c, raid5.c
//! (`raid5_compute_sector`, `raid6_d0`, `raid6_idx_to_slot`), raid10.c (`__raid10_find_phys`,
//! `calc_sectors`, `setup_geo`) of Linux 6.

mod copies;
mod field;
mod parity;
#[cfg(test)]
mod tests;

use crate::pages::{PAGE_SECTORS, Pages, SECTOR};
use raidlab_array::Slot;
use raidlab_geometry::{Layout, Level, SlotSet, ZoneLayout};
use std::sync::OnceLock;

pub use parity::Row;

/// The bytes of one sector.
pub type SectorBytes = [u8; SECTOR];

/// The reader of one array, with the array's shape.
#[derive(Debug, Clone)]
pub struct Reader {
    /// The RAID level, or linear.
    pub level: Level,
    /// The placement of copies or parity.
    pub layout: Layout,
    /// Sectors of a chunk (1 where the level has none).
    pub chunk: u64,
    /// For each slot, the start and the number of its data sectors.
    pub areas: Vec<(u64, u64)>,
    /// Sectors that the array uses of each member's data area.
    pub used: u64,
    /// Sectors that the array offers.
    pub size: u64,
    /// The rows of a level with parity, computed when first used.
    pub rows: OnceLock<Vec<Row>>,
}

/// One place on one member: a sector of its data area.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The slot of the member that the place is on.
    pub slot: usize,
    /// The sector of that member's data area, from 0.
    pub sector: u64,
}

/// Copies or parity that do not agree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disagreement {
    /// The place: array sector for copies, sector of the data areas for parity.
    pub sector: u64,
    /// The copies or parities that do not agree, in words.
    pub what: String,
}

impl Reader {
    /// Changes the used sectors of each member, and the size of the array.
    pub fn resize(&mut self, used: u64, size: u64) {
        self.areas.iter_mut().for_each(|area| area.1 = used);
        (self.used, self.size) = (used, size);
        self.rows = OnceLock::new();
    }

    /// Returns the size that an array of copies had with only `used` sectors of each member
    /// (Linux drivers/md/raid10.c, `raid10_size`).
    #[must_use]
    pub fn size_before(&self, used: u64) -> u64 {
        match self.layout {
            Layout::Copies(copies) => {
                let chunks = used / self.chunk / u64::from(copies.far) * self.members() as u64;
                chunks / u64::from(copies.near) * self.chunk
            }
            _ => used,
        }
    }

    /// Returns the number of slots of the array.
    #[must_use]
    pub fn members(&self) -> usize {
        self.areas.len()
    }

    /// Returns the number of members that may be lost without loss of data, whichever they are.
    #[must_use]
    pub fn redundancy(&self) -> usize {
        match (self.level, self.layout) {
            (Level::Raid1, _) => self.members() - 1,
            (Level::Raid10, Layout::Copies(copies)) => {
                usize::from(copies.near) * usize::from(copies.far) - 1
            }
            (level, _) => level.parity_count(),
        }
    }

    /// Returns the places of an array sector: every copy, in their order. For levels with parity,
    /// the one place of the data.
    #[must_use]
    pub fn places(&self, sector: u64) -> Vec<Place> {
        match (self.level, self.layout) {
            (Level::Linear, _) => self.linear(sector),
            (Level::Raid0, Layout::Zones(zones)) => self.striped(sector, zones),
            // The layout is not recorded: then there is one zone, and both layouts are the same.
            (Level::Raid0, _) => self.striped(sector, ZoneLayout::Original),
            (Level::Raid10, Layout::Copies(copies)) => self.scattered(sector, copies),
            (Level::Raid4 | Level::Raid5 | Level::Raid6, Layout::Parity(_)) => {
                let (row, index) = self.row_of(sector);
                vec![Place {
                    slot: row.data[index],
                    sector: row.start + sector % self.chunk,
                }]
            }
            _ => (0..self.members())
                .map(|slot| Place { slot, sector })
                .collect(),
        }
    }

    /// Returns the position at which a check would report a sector of a member's data area: the
    /// sector itself for levels with parity, else the array sector stored there, if there is one.
    #[must_use]
    pub fn position(&self, slot: usize, sector: u64) -> Option<u64> {
        if self.level.parity_count() > 0 {
            return (sector < self.used).then_some(sector);
        }
        let place = Place { slot, sector };
        (0..self.size).find(|array| self.places(*array).contains(&place))
    }

    /// Returns the array sectors that share a sector's 4 KiB window of the members' data areas,
    /// itself among them: those that a torn write of it may damage.
    #[must_use]
    pub fn window_of(&self, sector: u64) -> Vec<u64> {
        let data = (self.members() - self.level.parity_count()) as u64;
        let row = sector / self.chunk / data * data;
        let within = sector % self.chunk;
        let first = within - within % PAGE_SECTORS;
        let window = (first..(first + PAGE_SECTORS).min(self.chunk)).collect::<Vec<u64>>();
        let chunks = row..row + data;
        chunks
            .flat_map(|chunk| window.iter().map(move |at| chunk * self.chunk + at))
            .filter(|sector| *sector < self.size)
            .collect()
    }

    /// Returns the bytes at a place.
    #[must_use]
    pub fn at<'a>(&self, images: &[&'a Pages], place: Place) -> &'a SectorBytes {
        images[place.slot].sector(self.areas[place.slot].0 + place.sector)
    }

    /// Returns the content of an array sector with these members lost; `None` if it is lost, too.
    #[must_use]
    pub fn read(&self, images: &[&Pages], lost: SlotSet, sector: u64) -> Option<SectorBytes> {
        let places = self.places(sector);
        let left = |place: &&Place| !lost.contains(slot_of(place.slot));
        if let Some(place) = places.iter().find(left) {
            return Some(*self.at(images, *place));
        }
        if self.level.parity_count() == 0 {
            return None;
        }
        let (row, index) = self.row_of(sector);
        self.reconstruct(images, lost, row, index, sector % self.chunk)
    }

    /// Checks that everything agrees among these members: each copy with the others, parity
    /// with the data.
    ///
    /// # Errors
    /// The first disagreement.
    pub fn agree(&self, images: &[&Pages], present: SlotSet) -> Result<(), Disagreement> {
        if self.level.parity_count() > 0 {
            for sector in 0..self.used {
                self.row_agrees(images, present, sector)?;
            }
            return Ok(());
        }
        for sector in 0..self.size {
            self.copies_agree(images, present, sector)?;
        }
        Ok(())
    }

    /// Checks that an array sector's copies agree among these members.
    ///
    /// # Errors
    /// The copies do not agree.
    pub fn copies_agree(
        &self,
        images: &[&Pages],
        present: SlotSet,
        sector: u64,
    ) -> Result<(), Disagreement> {
        let mut first: Option<(usize, &SectorBytes)> = None;
        for place in self.places(sector) {
            if !present.contains(slot_of(place.slot)) {
                continue;
            }
            let bytes = self.at(images, place);
            match first {
                None => first = Some((place.slot, bytes)),
                Some((slot, other)) if other != bytes => {
                    return Err(Disagreement {
                        sector,
                        what: format!("members {slot} and {} hold different copies", place.slot),
                    });
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// Returns every way to lose up to `count` of these members.
    #[must_use]
    pub fn losses(&self, present: SlotSet, count: usize) -> Vec<SlotSet> {
        let mut losses = vec![SlotSet::EMPTY];
        let mut last = losses.clone();
        for _ in 0..count {
            let mut next = Vec::new();
            for loss in &last {
                let above = loss.iter().next_back().map_or(0, |slot| slot.0 + 1);
                let more = present.iter().filter(|slot| slot.0 >= above);
                next.extend(more.map(|slot| loss.with(slot)));
            }
            losses.extend(&next);
            last = next;
        }
        losses
    }
}

/// Returns the slot with this index.
#[must_use]
pub fn slot_of(index: usize) -> Slot {
    Slot(u16::try_from(index).unwrap_or(u16::MAX))
}
