//! Rows, parity and reconstruction in RAID 4, 5 and 6.

use super::field::{add_multiple, inverse, power, times_generator};
use super::{Disagreement, Place, Reader, SectorBytes, slot_of};
use crate::pages::{Pages, SECTOR};
use raidlab_geometry::{Layout, Level, ParityLayout, SlotSet};

/// One row of chunks, with the slot of each.
#[derive(Debug, Clone)]
pub struct Row {
    /// The row's first sector in the data areas.
    pub start: u64,
    /// The slots of the data chunks, in array order.
    pub data: Vec<usize>,
    /// The exponent of each data chunk in Q.
    pub exponents: Vec<usize>,
    /// The slot of P.
    pub p: usize,
    /// The slot of Q, in a RAID 6.
    pub q: Option<usize>,
}

/// The blocks that are lost in one sector of a row.
struct Lost {
    data: Vec<usize>,
    p: bool,
    q: bool,
}

impl Reader {
    /// Returns the row of an array sector, and the index of its data chunk there.
    #[must_use]
    pub fn row_of(&self, sector: u64) -> (&Row, usize) {
        let data = (self.members() - self.level.parity_count()) as u64;
        let chunk = sector / self.chunk;
        (self.row(chunk / data), (chunk % data) as usize)
    }

    /// Returns a row of chunks by its number.
    #[must_use]
    pub fn row(&self, number: u64) -> &Row {
        let rows = self.rows.get_or_init(|| {
            let count = self.used.div_ceil(self.chunk);
            (0..count).map(|number| self.make_row(number)).collect()
        });
        &rows[number as usize]
    }

    fn make_row(&self, number: u64) -> Row {
        let members = self.members();
        let Layout::Parity(layout) = self.layout else {
            return Row {
                start: 0,
                data: Vec::new(),
                exponents: Vec::new(),
                p: 0,
                q: None,
            };
        };
        let (p, q, data) = match self.level {
            Level::Raid4 => (members - 1, None, (0..members - 1).collect()),
            Level::Raid5 => {
                let (p, data) = single(layout, number, members);
                (p, None, data)
            }
            _ => {
                let (p, q, data) = double(layout, number, members);
                (p, Some(q), data)
            }
        };
        Row {
            start: number * self.chunk,
            exponents: exponents(layout, members, q, &data),
            data,
            p,
            q,
        }
    }

    fn block<'a>(&self, images: &[&'a Pages], slot: usize, sector: u64) -> &'a SectorBytes {
        self.at(images, Place { slot, sector })
    }

    /// Checks that parity fits the data in one sector of the data areas, as far as the present
    /// members show it.
    ///
    /// # Errors
    /// Parity does not fit.
    pub fn row_agrees(
        &self,
        images: &[&Pages],
        present: SlotSet,
        sector: u64,
    ) -> Result<(), Disagreement> {
        let holes = |slot: usize| images[slot].is_hole(self.areas[slot].0 + sector);
        if (0..self.members()).all(holes) {
            return Ok(());
        }
        let row = self.row(sector / self.chunk);
        let lost = self.lost(row, SlotSet::first(self.members()) - present);
        let blocks = (self.level.parity_count()).saturating_sub(usize::from(lost.p));
        if lost.data.len() + usize::from(lost.q) >= blocks {
            return Ok(());
        }
        let mut data = self.data_blocks(images, row, sector);
        if !self.fill(images, row, sector, &lost, &mut data) {
            return Ok(());
        }
        let (p, q) = self.parity(row, &data);
        let differs = |what: &str| Disagreement {
            sector,
            what: format!("{what} does not fit the data"),
        };
        if !lost.p && p != *self.block(images, row.p, sector) {
            return Err(differs("P"));
        }
        match row.q {
            Some(slot) if !lost.q && q != *self.block(images, slot, sector) => Err(differs("Q")),
            _ => Ok(()),
        }
    }

    /// Computes one data sector from the members that are left.
    pub(super) fn reconstruct(
        &self,
        images: &[&Pages],
        lost: SlotSet,
        row: &Row,
        index: usize,
        within: u64,
    ) -> Option<SectorBytes> {
        let sector = row.start + within;
        let lost = self.lost(row, lost);
        let mut data = self.data_blocks(images, row, sector);
        self.fill(images, row, sector, &lost, &mut data)
            .then(|| data[index])
    }

    fn lost(&self, row: &Row, lost: SlotSet) -> Lost {
        let gone = |slot: usize| lost.contains(slot_of(slot));
        Lost {
            data: (0..row.data.len())
                .filter(|index| gone(row.data[*index]))
                .collect(),
            p: gone(row.p),
            q: row.q.is_some_and(gone),
        }
    }

    fn data_blocks(&self, images: &[&Pages], row: &Row, sector: u64) -> Vec<SectorBytes> {
        let blocks = row.data.iter();
        blocks
            .map(|slot| *self.block(images, *slot, sector))
            .collect()
    }

    pub(super) fn parity(&self, row: &Row, data: &[SectorBytes]) -> (SectorBytes, SectorBytes) {
        let (mut p, mut q) = ([0; SECTOR], [0; SECTOR]);
        for block in data {
            add_multiple(&mut p, 1, block);
        }
        if row.q.is_none() {
            return (p, q);
        }
        // Horner's rule: the blocks of the highest exponents are multiplied most often.
        let highest = row.exponents.iter().copied().max().unwrap_or(0);
        for exponent in (0..=highest).rev() {
            times_generator(&mut q);
            let blocks = data.iter().zip(&row.exponents);
            for (block, _) in blocks.filter(|(_, its)| **its == exponent) {
                add_multiple(&mut q, 1, block);
            }
        }
        (p, q)
    }

    /// Computes the lost data blocks; returns false if that is impossible.
    fn fill(
        &self,
        images: &[&Pages],
        row: &Row,
        sector: u64,
        lost: &Lost,
        data: &mut [SectorBytes],
    ) -> bool {
        if lost.data.is_empty() {
            return true;
        }
        for index in &lost.data {
            data[*index] = [0; SECTOR];
        }
        // The difference between the parities and the known data.
        let (mut p, mut q) = self.parity(row, data);
        add_multiple(&mut p, 1, self.block(images, row.p, sector));
        if let Some(slot) = row.q {
            add_multiple(&mut q, 1, self.block(images, slot, sector));
        }
        let q_usable = row.q.is_some() && !lost.q;
        match lost.data[..] {
            [index] if !lost.p => {
                data[index] = p;
                true
            }
            [index] if q_usable => {
                add_multiple(&mut data[index], inverse(power(row.exponents[index])), &q);
                true
            }
            [first, second] if q_usable && !lost.p => {
                // x + y = p; a x + b y = q; hence x = (q + b p) / (a + b).
                let (a, b) = (power(row.exponents[first]), power(row.exponents[second]));
                add_multiple(&mut q, b, &p);
                add_multiple(&mut data[first], inverse(a ^ b), &q);
                add_multiple(&mut p, 1, &data[first]);
                data[second] = p;
                true
            }
            _ => false,
        }
    }
}

/// Returns the slots of P and of the data in a RAID 5's row.
fn single(layout: ParityLayout, row: u64, members: usize) -> (usize, Vec<usize>) {
    let turn = (row % members as u64) as usize;
    let last = members - 1;
    let after = |p: usize| {
        (0..last)
            .map(move |index| (p + 1 + index) % members)
            .collect()
    };
    let around = |p: usize| {
        (0..last)
            .map(move |index| index + usize::from(index >= p))
            .collect()
    };
    match layout {
        ParityLayout::LeftAsymmetric => (last - turn, around(last - turn)),
        ParityLayout::RightAsymmetric => (turn, around(turn)),
        ParityLayout::LeftSymmetric => (last - turn, after(last - turn)),
        ParityLayout::RightSymmetric => (turn, after(turn)),
        ParityLayout::ParityFirst => (0, around(0)),
        _ => (last, around(last)),
    }
}

/// Returns the slots of P, Q and the data in a RAID 6's row.
fn double(layout: ParityLayout, row: u64, members: usize) -> (usize, usize, Vec<usize>) {
    let turn = |row: u64| (row % members as u64) as usize;
    let last = members - 1;
    let count = members - 2;
    // Q follows P, around the end; the data lie on the other members in ascending order.
    let around = |p: usize| -> (usize, usize, Vec<usize>) {
        if p == last {
            (p, 0, (0..count).map(|index| index + 1).collect())
        } else {
            let skip = |index: usize| index + 2 * usize::from(index >= p);
            (p, p + 1, (0..count).map(skip).collect())
        }
    };
    let after = |p: usize, q: usize, from: usize| {
        (
            p,
            q,
            (0..count).map(|index| (from + index) % members).collect(),
        )
    };
    let five = |layout| {
        let (p, data) = single(layout, row, last);
        (p, last, data)
    };
    match layout {
        ParityLayout::LeftAsymmetric => around(last - turn(row)),
        ParityLayout::RightAsymmetric | ParityLayout::RotatingZeroRestart => around(turn(row)),
        ParityLayout::LeftSymmetric => {
            let p = last - turn(row);
            after(p, (p + 1) % members, p + 2)
        }
        ParityLayout::RightSymmetric => {
            let p = turn(row);
            after(p, (p + 1) % members, p + 2)
        }
        ParityLayout::ParityFirst => after(0, 1, 2),
        ParityLayout::ParityLast => after(count, count + 1, 0),
        ParityLayout::RotatingNRestart => around(last - turn(row + 1)),
        ParityLayout::RotatingNContinue => {
            let p = last - turn(row);
            after(p, (p + last) % members, p + 1)
        }
        ParityLayout::LeftAsymmetric6 => five(ParityLayout::LeftAsymmetric),
        ParityLayout::RightAsymmetric6 => five(ParityLayout::RightAsymmetric),
        ParityLayout::LeftSymmetric6 => five(ParityLayout::LeftSymmetric),
        ParityLayout::RightSymmetric6 => five(ParityLayout::RightSymmetric),
        ParityLayout::ParityFirst6 => five(ParityLayout::ParityFirst),
    }
}

/// Returns the exponents of the data blocks: counted upwards from the member after Q, around the
/// end; by DDF's rules the number of the block's member.
fn exponents(layout: ParityLayout, members: usize, q: Option<usize>, data: &[usize]) -> Vec<usize> {
    let ddf = matches!(
        layout,
        ParityLayout::RotatingZeroRestart
            | ParityLayout::RotatingNRestart
            | ParityLayout::RotatingNContinue
    );
    let first = q.map_or(0, |q| (q + 1) % members);
    let exponent = |slot: &usize| {
        if ddf {
            return *slot;
        }
        let before = (0..members)
            .map(|step| (first + step) % members)
            .take_while(|member| member != slot);
        before.filter(|member| data.contains(member)).count()
    };
    data.iter().map(exponent).collect()
}
