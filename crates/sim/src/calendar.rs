//! The calendar: events of the host in order of time.

use raidlab_units::Nanos;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A binary heap with first-in-first-out order among equal times, which makes
/// a run repeatable.
#[derive(Debug)]
pub(crate) struct Calendar<E> {
    /// Entries of a time, the number in the order of scheduling, of which no two are equal,
    /// and the event.
    heap: BinaryHeap<Reverse<(Nanos, u64, E)>>,
    sequence: u64,
}

impl<E: Ord> Calendar<E> {
    pub(crate) fn new() -> Self {
        Self {
            heap: BinaryHeap::new(),
            sequence: 0,
        }
    }

    pub(crate) fn schedule(&mut self, time: Nanos, event: E) {
        self.sequence += 1;
        self.heap.push(Reverse((time, self.sequence, event)));
    }

    pub(crate) fn next_time(&self) -> Option<Nanos> {
        self.heap.peek().map(|Reverse((time, ..))| *time)
    }

    /// The event that [`Self::pop`] would return.
    pub(crate) fn next_event(&self) -> Option<&E> {
        self.heap.peek().map(|Reverse((.., event))| event)
    }

    pub(crate) fn pop(&mut self) -> Option<E> {
        self.heap.pop().map(|Reverse((.., event))| event)
    }

    /// Takes all events out of the calendar.
    pub(crate) fn clear(&mut self) {
        self.heap.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::Calendar;
    use raidlab_units::Nanos;

    #[test]
    fn equal_times_come_out_as_they_went_in() {
        let mut calendar = Calendar::new();
        for (time, name) in [(5, 'a'), (3, 'b'), (5, 'c'), (3, 'd')] {
            calendar.schedule(Nanos(time), name);
        }
        assert_eq!(calendar.next_time(), Some(Nanos(3)));
        let order: String = std::iter::from_fn(|| calendar.pop()).collect();
        assert_eq!(order, "bdac");
        calendar.schedule(Nanos(1), 'e');
        calendar.clear();
        assert_eq!((calendar.next_time(), calendar.pop()), (None, None));
    }
}
