//! Slots, and sets of slots in one machine word.

use std::ops::{BitAnd, BitOr, Sub};

/// A member's place in the array: 0 is the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub u16);

impl Slot {
    /// The slot as an index into per-member tables.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The most members an array can have: the slots fit one machine word, so
/// that choosing among them allocates nothing.
pub const MAXIMUM_MEMBERS: usize = 64;

/// A set of slots below [`MAXIMUM_MEMBERS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SlotSet(u64);

impl SlotSet {
    /// The set that holds no slot.
    pub const EMPTY: Self = Self(0);

    /// The slots `0..count`.
    #[must_use]
    pub const fn first(count: usize) -> Self {
        if count >= MAXIMUM_MEMBERS {
            Self(u64::MAX)
        } else {
            Self((1 << count) - 1)
        }
    }

    /// The set of this slot alone.
    #[must_use]
    #[inline]
    pub const fn only(slot: Slot) -> Self {
        Self(1 << slot.0)
    }

    /// Returns this set with the slot added.
    #[must_use]
    #[inline]
    pub const fn with(self, slot: Slot) -> Self {
        Self(self.0 | 1 << slot.0)
    }

    /// Returns this set without the slot.
    #[must_use]
    #[inline]
    pub const fn without(self, slot: Slot) -> Self {
        Self(self.0 & !(1 << slot.0))
    }

    /// Whether the slot is in the set.
    #[must_use]
    #[inline]
    pub const fn contains(self, slot: Slot) -> bool {
        self.0 & (1 << slot.0) != 0
    }

    /// Whether the set is empty.
    #[must_use]
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the number of slots in the set.
    #[must_use]
    #[inline]
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Returns the lowest slot of the set.
    #[must_use]
    #[inline]
    pub fn lowest(self) -> Option<Slot> {
        self.iter().next()
    }

    /// The slots in ascending order.
    #[inline]
    pub const fn iter(self) -> Slots {
        Slots(self)
    }
}

/// The slots of a set, in ascending order from one end, and descending from the other.
#[derive(Debug, Clone)]
pub struct Slots(SlotSet);

impl Slots {
    /// Leaves out the slot of this bit.
    #[inline]
    fn pass(&mut self, bit: u32) -> Option<Slot> {
        let slot = Slot(u16::try_from(bit).ok()?);
        self.0 = self.0.without(slot);
        Some(slot)
    }
}

impl Iterator for Slots {
    type Item = Slot;

    #[inline]
    fn next(&mut self) -> Option<Slot> {
        let bit = (!self.0.is_empty()).then(|| self.0.0.trailing_zeros());
        self.pass(bit?)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.0.len(), Some(self.0.len()))
    }
}

impl DoubleEndedIterator for Slots {
    #[inline]
    fn next_back(&mut self) -> Option<Slot> {
        self.pass(self.0.0.checked_ilog2()?)
    }
}

impl ExactSizeIterator for Slots {}

impl BitAnd for SlotSet {
    type Output = Self;
    #[inline]
    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl BitOr for SlotSet {
    type Output = Self;
    #[inline]
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl Sub for SlotSet {
    type Output = Self;
    #[inline]
    fn sub(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl FromIterator<Slot> for SlotSet {
    fn from_iter<I: IntoIterator<Item = Slot>>(slots: I) -> Self {
        slots.into_iter().fold(Self::EMPTY, Self::with)
    }
}

#[cfg(test)]
mod tests {
    use super::{Slot, SlotSet};

    #[test]
    fn sets_iterate_in_ascending_order() {
        let set: SlotSet = [Slot(63), Slot(0), Slot(5)].into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), [Slot(0), Slot(5), Slot(63)]);
        assert_eq!(
            set.iter().rev().collect::<Vec<_>>(),
            [Slot(63), Slot(5), Slot(0)]
        );
        let mut both = set.iter();
        assert_eq!(
            (both.next_back(), both.next(), both.len()),
            (Some(Slot(63)), Some(Slot(0)), 1)
        );
        assert_eq!((set.len(), set.lowest()), (3, Some(Slot(0))));
        assert_eq!(
            (set - SlotSet::only(Slot(0))).lowest(),
            Some(Slot(5)),
            "without slot 0"
        );
        assert_eq!(SlotSet::first(64).len(), 64);
        assert_eq!(SlotSet::EMPTY.lowest(), None);
    }
}
