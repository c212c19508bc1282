//! The events of a solid-state disk.
//!
//! Most events come in the order in which they are foreseen: commands leave the firmware as they
//! came, and the link carries one after the other. Each such kind of event has a queue of its own,
//! which is cheaper than a heap; an event earlier than the last of its queue goes to the heap. The
//! order of events at the same time is fixed.

use crate::medium::Inside;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// An event of a command, or of a die.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    /// A read's data have reached the host.
    Sent(u32),
    /// A command other than a read is complete.
    Done(u32),
    /// A write's data have reached the drive.
    Arrived(u32),
    /// A read has passed the controller.
    Read(u32),
    /// A command other than a read has passed the controller.
    Ready(u32),
    /// A die has ended a stage.
    Die(u32),
}

/// All events to come.
#[derive(Debug, Clone, Default)]
pub(super) struct Events {
    queues: [VecDeque<(u64, Event)>; 4],
    heap: BinaryHeap<Reverse<(u64, Event)>>,
}

impl Events {
    #[inline]
    pub(super) fn push(&mut self, at: u64, event: Event) {
        let queue = match event {
            Event::Sent(_) => 0,
            Event::Done(_) => 1,
            Event::Arrived(_) => 2,
            Event::Read(_) => 3,
            Event::Ready(_) | Event::Die(_) => return self.heap.push(Reverse((at, event))),
        };
        let queue = &mut self.queues[queue];
        if queue.back().is_some_and(|last| last.0 > at) {
            self.heap.push(Reverse((at, event)));
        } else {
            queue.push_back((at, event));
        }
    }

    /// The number of commands with the controller and on the link.
    pub(super) fn inside(&self) -> Inside {
        let [sent, done, arrived, read] = [0, 1, 2, 3].map(|queue: usize| self.queues[queue].len());
        let mut inside = Inside {
            controller: read + done,
            link: sent + arrived,
            buffer: 0,
        };
        for Reverse((_, event)) in &self.heap {
            match event {
                Event::Read(_) | Event::Ready(_) | Event::Done(_) => inside.controller += 1,
                Event::Sent(_) | Event::Arrived(_) => inside.link += 1,
                Event::Die(_) => {}
            }
        }
        inside
    }

    /// The time of the next event; `u64::MAX` for never.
    #[inline]
    pub(super) fn next(&self) -> u64 {
        let heap = self.heap.peek().map_or(u64::MAX, |event| event.0.0);
        let first = |queue: &VecDeque<(u64, Event)>| queue.front().map_or(u64::MAX, |one| one.0);
        self.queues.iter().map(first).fold(heap, u64::min)
    }

    /// Takes the next event that is due at `now`, with its time.
    #[inline]
    pub(super) fn pop(&mut self, now: u64) -> Option<(u64, Event)> {
        let next = self.next();
        if next > now {
            return None;
        }
        let is_next = |queue: &&mut VecDeque<(u64, Event)>| {
            queue.front().is_some_and(|event| event.0 == next)
        };
        match self.queues.iter_mut().find(is_next) {
            Some(queue) => queue.pop_front(),
            None => self.heap.pop().map(|event| event.0),
        }
    }
}
