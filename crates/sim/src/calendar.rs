//! The calendar: events of the host in order of time.

use raidlab_units::Nanos;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A binary heap with first-in-first-out order among equal times, which makes
/// a run repeatable.
#[derive(Debug)]
pub(crate) struct Calendar<E> {
    heap: BinaryHeap<Reverse<Entry<E>>>,
    sequence: u64,
}

#[derive(Debug)]
struct Entry<E> {
    key: (u64, u64),
    event: E,
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl<E> Eq for Entry<E> {}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

impl<E> Calendar<E> {
    pub(crate) fn new() -> Self {
        Self {
            heap: BinaryHeap::new(),
            sequence: 0,
        }
    }

    pub(crate) fn schedule(&mut self, time: Nanos, event: E) {
        self.sequence += 1;
        self.heap.push(Reverse(Entry {
            key: (time.0, self.sequence),
            event,
        }));
    }

    pub(crate) fn next_time(&self) -> Option<Nanos> {
        self.heap.peek().map(|entry| Nanos(entry.0.key.0))
    }

    /// What [`Self::pop`] would give.
    pub(crate) fn next_event(&self) -> Option<&E> {
        self.heap.peek().map(|entry| &entry.0.event)
    }

    pub(crate) fn pop(&mut self) -> Option<E> {
        self.heap.pop().map(|entry| entry.0.event)
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
