//! The positions of each slot by which md's RAID 1 balances reads, in all versions since 3.12
//! (Linux drivers/md/raid1.c, `struct raid1_info` and `update_head_pos`).
//!
//! * `head`: the sector after the last request that *completed* on the slot:
//!   a read, a write, a resync read or a resync write.
//! * `next_sequential`: the sector after the last read that was *submitted* to
//!   the slot by the balancer. Only such reads change it.
//! * `run_start`: where the slot's current sequential run began; set when a
//!   chosen read does not start at `next_sequential`. Not valid until then.
//!
//! All start at 0, so a first read of sector 0 matches slot 0; putting a disk in sets `head` back
//! to 0 and leaves the rest.
//!
//! A non-rotational member's sequential run moves to an idle member once it is longer than the
//! optimal I/O size that the member reports. Nearly all report 0, which means never.

use super::{Choice, Io, IoKind, MemberView, Read, ReadPolicy};
use crate::request::Slot;
use raidlab_units::{Nanos, Sectors};

/// The function by which a version of md chooses among a read's candidates.
pub type Balance = fn(&Positions, &Read, &[MemberView]) -> Option<Slot>;

/// md's RAID 1 in one of its versions.
#[derive(Debug)]
pub struct MdRaid1 {
    positions: Positions,
    balance: Balance,
    /// Whether a write-mostly member is as good as others beyond the resync position of
    /// a dirty array.
    any_is_first: bool,
}

impl MdRaid1 {
    /// A version without history, for this number of slots; `optimal_io` is the size that
    /// non-rotational members report in sectors, 0 for none. `any_is_first`: whether the first of
    /// all candidates is taken beyond the resync position of a dirty array.
    #[must_use]
    pub fn boxed(
        members: usize,
        optimal_io: u64,
        balance: Balance,
        any_is_first: bool,
    ) -> Box<dyn ReadPolicy> {
        Box::new(Self {
            positions: Positions {
                slots: vec![Position::default(); members],
                optimal_io,
            },
            balance,
            any_is_first,
        })
    }
}

impl ReadPolicy for MdRaid1 {
    #[inline]
    fn choose(&mut self, _now: Nanos, read: &Read, members: &[MemberView]) -> Option<Choice> {
        let slot = (self.balance)(&self.positions, read, members)?;
        Some(read.all_from(slot))
    }

    fn choose_first(&self, read: &Read, members: &[MemberView]) -> Option<Slot> {
        match self.any_is_first {
            true => read.candidates.lowest(),
            false => read.preferred(members).lowest(),
        }
    }

    /// Only reads for which the policy chose move the run.
    #[inline]
    fn issued(&mut self, io: &Io, _members: &[MemberView]) {
        if io.kind == IoKind::Read {
            let position = &mut self.positions.slots[io.slot.index()];
            if position.next_sequential != io.start.0 {
                position.run_start = Some(io.start.0);
            }
            position.next_sequential = io.end().0;
        }
    }

    #[inline]
    fn completed(&mut self, io: &Io) {
        self.positions.slots[io.slot.index()].head = io.end().0;
    }

    fn member_added(&mut self, slot: Slot) {
        self.positions.slots[slot.index()].head = 0;
    }
}

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
    /// Returns the sectors between the slot's head and the read.
    #[must_use]
    #[inline]
    pub fn distance(&self, slot: Slot, start: Sectors) -> u64 {
        self.slots[slot.index()].head.abs_diff(start.0)
    }

    /// Whether the read continues the last submitted read or completed request.
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
}

/// The lowest value seen so far and its slot; the first of equal ones stays.
#[derive(Debug, Clone, Copy)]
pub struct Lowest<T> {
    value: T,
    /// The slot of the lowest value; `None` before any value below the initial one was offered.
    pub slot: Option<Slot>,
}

impl<T: PartialOrd + Copy> Lowest<T> {
    /// An empty minimum; only values below `maximum` count.
    #[must_use]
    pub const fn starting_at(maximum: T) -> Self {
        Self {
            value: maximum,
            slot: None,
        }
    }

    /// Replaces the lowest value by this one if it is lower.
    #[inline]
    pub fn offer(&mut self, value: T, slot: Slot) {
        if value < self.value {
            self.value = value;
            self.slot = Some(slot);
        }
    }

    /// Returns the lowest value, or the initial one.
    #[must_use]
    #[inline]
    pub const fn value(&self) -> T {
        self.value
    }
}
