//! What md's RAID 1 remembers of each slot for read balancing, in all versions
//! since 3.12 (Linux drivers/md/raid1.c, `struct raid1_info` and
//! `update_head_pos`).
//!
//! * `head`: the sector after the last request that *completed* on the slot:
//!   a read, a write, a resync read or a resync write.
//! * `next_sequential`: the sector after the last read that was *submitted* to
//!   the slot by the balancer. Only such reads change it.
//! * `run_start`: where the slot's current sequential run began; set when a
//!   chosen read does not start at `next_sequential`. Not valid until then.
//!
//! All start at 0, so a first read of sector 0 matches slot 0; putting a disk
//! in sets `head` back to 0 and leaves the rest.
//!
//! A non-rotational member's sequential run is left to an idle member once it
//! is longer than the optimal I/O size that the member reports. Nearly all
//! report 0, which means never.

use super::{Io, IoKind, MemberView};
use crate::request::Slot;
use raidlab_units::Sectors;

#[derive(Debug, Clone, Copy, Default)]
struct Position {
    head: u64,
    next_sequential: u64,
    run_start: Option<u64>,
}

/// The positions of all slots.
#[derive(Debug)]
pub struct Positions {
    slots: Vec<Position>,
    optimal_io: u64,
}

impl Positions {
    /// So many slots, of which nothing is known; `optimal_io` as non-rotational members report
    /// it, 0 for none.
    #[must_use]
    pub fn new(members: usize, optimal_io: Sectors) -> Self {
        Self {
            slots: vec![Position::default(); members],
            optimal_io: optimal_io.0,
        }
    }

    /// Sectors between the slot's head and the read.
    #[must_use]
    #[inline]
    pub fn distance(&self, slot: Slot, start: Sectors) -> u64 {
        self.slots[slot.index()].head.abs_diff(start.0)
    }

    /// Whether the read continues what was submitted or completed last.
    #[must_use]
    #[inline]
    pub fn is_sequential(&self, slot: Slot, start: Sectors) -> bool {
        let position = &self.slots[slot.index()];
        position.next_sequential == start.0 || position.head == start.0
    }

    /// Whether a non-rotational slot's run has passed the optimal I/O size.
    #[must_use]
    #[inline]
    pub fn run_is_long(&self, slot: Slot, member: &MemberView) -> bool {
        let position = &self.slots[slot.index()];
        !member.rotational
            && self.optimal_io > 0
            && position.next_sequential > self.optimal_io
            && position
                .run_start
                .is_some_and(|run_start| position.next_sequential - self.optimal_io >= run_start)
    }

    /// A command goes to a member.
    #[inline]
    pub fn issued(&mut self, io: &Io) {
        if io.kind == IoKind::Read {
            let position = &mut self.slots[io.slot.index()];
            if position.next_sequential != io.start.0 {
                position.run_start = Some(io.start.0);
            }
            position.next_sequential = io.end().0;
        }
    }

    /// A command to a member has ended.
    #[inline]
    pub fn completed(&mut self, io: &Io) {
        self.slots[io.slot.index()].head = io.end().0;
    }

    /// A new member is in a slot.
    pub fn member_added(&mut self, slot: Slot) {
        self.slots[slot.index()].head = 0;
    }
}

/// The lowest value seen so far and its slot; the first of equals stays.
#[derive(Debug, Clone, Copy)]
pub struct Lowest<T> {
    value: T,
    /// Its slot; `None` before anything was offered that is below where it started.
    pub slot: Option<Slot>,
}

impl<T: PartialOrd + Copy> Lowest<T> {
    /// Nothing yet; only what is below `maximum` counts.
    #[must_use]
    pub const fn starting_at(maximum: T) -> Self {
        Self {
            value: maximum,
            slot: None,
        }
    }

    /// Takes a value if it is lower than all before.
    #[inline]
    pub fn offer(&mut self, value: T, slot: Slot) {
        if value < self.value {
            self.value = value;
            self.slot = Some(slot);
        }
    }

    /// The lowest value, or where it started.
    #[must_use]
    #[inline]
    pub const fn value(&self) -> T {
        self.value
    }
}
