//! RAID 10 (Linux drivers/md/raid10.c, `setup_geo`, `calc_sectors`,
//! `raid10_size` and `__raid10_find_phys`).
//!
//! Chunk `k` begins at place `k * near` of a grid of rows of one chunk per
//! member: row `k * near / n`, member `k * near mod n`. Its near copies take the
//! places from there on, into the next row if need be. Each further far copy
//! lies `near` members on (within the member's far set, where there are sets)
//! and a stride down. In the far layout the stride is a member's used size
//! divided by the far copies, in the offset layout a chunk, with the rows of
//! the grid `far` chunks apart.
//!
//! Far sets: of `n / far` members (divided) or `near * far` (exact); the last
//! one takes the rest. md walks within the last one only from its second member
//! on, which is one of several combinations of near and far copies whose copies
//! collide: those are refused.

use super::{Content, CopyMap, Found, Inverse, Kind, Pattern};
use crate::level::{Copies, FarSets};
use crate::shape::{Shape, ShapeError};
use crate::slots::{Slot, SlotSet};
use raidlab_units::Sectors;

#[derive(Debug, Clone)]
pub(super) struct Striped {
    copies: Copies,
    members: u64,
    chunk: u64,
    /// Rows of a member between two far copies of a chunk.
    stride_rows: u64,
    /// For each far copy and member, the member that has the near copy of the same chunk.
    origins: Vec<Vec<u64>>,
}

impl Striped {
    pub(super) fn map(shape: &Shape, copies: Copies) -> Result<CopyMap, ShapeError> {
        let members = shape.member_sizes.len();
        let (n, near, far) = (
            members as u64,
            u64::from(copies.near),
            u64::from(copies.far),
        );
        let chunk = shape.chunk.0;
        let chunks_of = |member_chunks: u64| member_chunks / far * n / near;
        let used_chunks = (chunks_of(shape.used_size.0 / chunk) * near * far).div_ceil(n);
        let stride_rows = if copies.offset { 1 } else { used_chunks / far };
        let collide = || ShapeError::CopiesCollide { copies, members };
        let walks = walks(copies, members).ok_or_else(collide)?;
        // Near copies that continue in the next row would collide with the far copies there.
        if copies.offset && far > 1 && near > 1 && !n.is_multiple_of(near) {
            return Err(collide());
        }
        let patterns: Vec<_> = (0..members)
            .map(|first| pattern(copies, &walks, first, chunk, stride_rows))
            .collect();
        let chunks = chunks_of(used_chunks);
        // The members on which a chunk begins repeat after at most n chunks.
        let firsts = (0..chunks.min(n)).map(|chunk| index(chunk * near % n));
        let mut copy_sets: Vec<_> = firsts.map(|first| patterns[first].slots).collect();
        if copy_sets.iter().any(|set| set.len() != copies.count()) {
            return Err(collide());
        }
        copy_sets.sort_unstable();
        copy_sets.dedup();
        Ok(CopyMap {
            kind: Kind::Striped(Self {
                copies,
                members: n,
                chunk,
                stride_rows,
                origins: walks.iter().map(|walk| inverted(walk)).collect(),
            }),
            size: Sectors(chunks * chunk),
            used: vec![Sectors(used_chunks * chunk); members],
            patterns,
            copy_sets,
        })
    }

    pub(super) fn extent(&self, start: Sectors, size: Sectors) -> Found {
        let (number, offset) = (start.0 / self.chunk, start.0 % self.chunk);
        let place = number * u64::from(self.copies.near);
        let (mut row, first) = (place / self.members, place % self.members);
        if self.copies.offset {
            row *= u64::from(self.copies.far);
        }
        let contiguous = if self.is_mirror() {
            size.0 - start.0
        } else {
            self.chunk - offset
        };
        Found {
            pattern: index(first),
            base: Sectors(row * self.chunk + offset),
            contiguous: Sectors(contiguous),
        }
    }

    pub(super) fn inverse(&self, slot: Slot, sector: Sectors, size: Sectors) -> Inverse {
        let (near, far) = (u64::from(self.copies.near), u64::from(self.copies.far));
        let (member_row, offset) = (sector.0 / self.chunk, sector.0 % self.chunk);
        let (row, far_copy) = if self.copies.offset {
            (member_row / far, member_row % far)
        } else {
            (member_row % self.stride_rows, member_row / self.stride_rows)
        };
        let first = self.origins[index(far_copy)][slot.index()];
        let place = row * self.members + first;
        let start = Sectors(place / near * self.chunk + offset);
        let copy = index(place % near * far + far_copy);
        let contiguous = if self.is_mirror() {
            size.0 - start.0
        } else {
            self.chunk - offset
        };
        Inverse {
            contiguous: Sectors(contiguous),
            content: (start < size).then_some(Content { start, copy }),
        }
    }

    /// Whether every member holds everything at the same place.
    fn is_mirror(&self) -> bool {
        u64::from(self.copies.near) == self.members
    }
}

/// Returns, for each far copy, the members to which it shifts the near copies of each member;
/// `None` if two of them shift to the same member.
fn walks(copies: Copies, members: usize) -> Option<Vec<Vec<u64>>> {
    let (near, far) = (usize::from(copies.near), usize::from(copies.far));
    let set = match copies.far_sets {
        FarSets::None => members,
        FarSets::Divided => members / far,
        FarSets::Exact => near * far,
    };
    if set == 0 || set > members {
        return None;
    }
    let last_start = (members / set - 1) * set;
    let last_size = set + members % set;
    let step = |member: usize| {
        let to = member + near;
        if !members.is_multiple_of(set) && to > last_start {
            (to - last_start) % last_size + last_start
        } else {
            to % set + member / set * set
        }
    };
    let mut walk: Vec<usize> = (0..members).collect();
    let mut walks = Vec::new();
    for _ in 0..far {
        let reached: SlotSet = walk
            .iter()
            .filter_map(|member| u16::try_from(*member).ok().map(Slot))
            .collect();
        if reached != SlotSet::first(members) {
            return None;
        }
        walks.push(walk.iter().map(|member| *member as u64).collect());
        for member in &mut walk {
            *member = step(*member);
        }
    }
    Some(walks)
}

fn inverted(walk: &[u64]) -> Vec<u64> {
    let mut origins = vec![0; walk.len()];
    for (origin, to) in (0..).zip(walk) {
        origins[index(*to)] = origin;
    }
    origins
}

/// Returns the places of the copies of a chunk that begins on this member.
fn pattern(
    copies: Copies,
    walks: &[Vec<u64>],
    first: usize,
    chunk: u64,
    stride_rows: u64,
) -> Pattern {
    let members = walks[0].len();
    let mut places = Vec::with_capacity(copies.count());
    for near in 0..usize::from(copies.near) {
        let rows = u64::from(first + near >= members);
        let member = (first + near) % members;
        for (far, walk) in (0..).zip(walks) {
            let slot = Slot(u16::try_from(walk[member]).unwrap_or(u16::MAX));
            places.push((slot, Sectors((rows + far * stride_rows) * chunk)));
        }
    }
    Pattern::new(places)
}

fn index(number: u64) -> usize {
    usize::try_from(number).expect("below the number of members")
}
