//! The queue above one disk: classes, limits, order and merging.
//!
//! Rules (illumos 4045, August 2013, and FreeBSD 10's `vdev_queue.c`):
//! - Issue from the first class, in the order of [`Class`], that has fewer
//!   commands in the disk than its minimum; if there is none, from the first
//!   below its maximum. Never more than the total.
//! - Synchronous classes are served in order of arrival, the others by
//!   address, upwards from the start of the last issued command, then again
//!   from the lowest.
//! - The chosen I/O is merged with its neighbours of the same class up to 128
//!   KiB; reads over gaps of up to 32 KiB. (FreeBSD 10.4 also merges across
//!   classes of the same direction; that needs two classes side by side at
//!   one address and is left out.)

use crate::config::{ClassLimits, QueueConfig};
use std::collections::BTreeMap;

/// Classes in order of precedence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    SyncRead,
    SyncWrite,
    AsyncRead,
    AsyncWrite,
    Scrub,
}

const CLASSES: [Class; 5] = [
    Class::SyncRead,
    Class::SyncWrite,
    Class::AsyncRead,
    Class::AsyncWrite,
    Class::Scrub,
];

/// Who waits for an I/O: an index into the pool's tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    Read(u32),
    Write(u32),
}

/// One I/O waiting for the disk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Io {
    pub(crate) start: u64,
    pub(crate) count: u64,
    pub(crate) owner: Owner,
}

/// What the disk gets next: one command for one or more I/Os.
#[derive(Debug, Default)]
pub(crate) struct Issue {
    pub(crate) start: u64,
    pub(crate) count: u64,
    pub(crate) owners: Vec<Owner>,
}

/// Waiting I/Os of one class. The key is (arrival, 0) where arrival decides
/// and (sector, arrival) where the address does.
type Waiting = BTreeMap<(u64, u64), Io>;

/// See the file's head.
#[derive(Debug)]
pub(crate) struct LeafQueue {
    config: QueueConfig,
    waiting: [Waiting; 5],
    active: [u32; 5],
    total_active: u32,
    total_waiting: usize,
    arrivals: u64,
    last_start: u64,
}

impl Class {
    const fn index(self) -> usize {
        self as usize
    }

    const fn by_arrival(self) -> bool {
        matches!(self, Self::SyncRead | Self::SyncWrite)
    }

    const fn is_read(self) -> bool {
        !matches!(self, Self::SyncWrite | Self::AsyncWrite)
    }
}

impl LeafQueue {
    pub(crate) fn new(config: QueueConfig) -> Self {
        Self {
            config,
            waiting: std::array::from_fn(|_| Waiting::new()),
            active: [0; 5],
            total_active: 0,
            total_waiting: 0,
            arrivals: 0,
            last_start: 0,
        }
    }

    /// Commands in the disk: what child selection calls the load.
    pub(crate) const fn active(&self) -> u32 {
        self.total_active
    }

    pub(crate) fn push(&mut self, class: Class, io: Io) {
        self.arrivals += 1;
        let key = if class.by_arrival() {
            (self.arrivals, 0)
        } else {
            (io.start, self.arrivals)
        };
        self.waiting[class.index()].insert(key, io);
        self.total_waiting += 1;
    }

    /// The next command, if a class may issue; `maximum_async_writes` is the
    /// limit that the dirty data gives.
    pub(crate) fn next(&mut self, maximum_async_writes: u32) -> Option<(Class, Issue)> {
        if self.total_waiting == 0 || self.total_active >= self.config.total_active {
            return None;
        }
        let class = self.class_to_issue(maximum_async_writes)?;
        let key = self.first_key(class)?;
        let issue = self.merge(class, key)?;
        self.active[class.index()] += 1;
        self.total_active += 1;
        self.last_start = issue.start;
        Some((class, issue))
    }

    pub(crate) fn completed(&mut self, class: Class) {
        self.active[class.index()] -= 1;
        self.total_active -= 1;
    }

    /// Empties the queue: its disk is gone.
    pub(crate) fn drain(&mut self) -> Vec<Owner> {
        self.total_waiting = 0;
        let waiting = self.waiting.iter_mut().map(std::mem::take);
        waiting
            .flat_map(|class| class.into_values().map(|io| io.owner))
            .collect()
    }

    const fn limits(&self, class: Class) -> ClassLimits {
        match class {
            Class::SyncRead => self.config.sync_read,
            Class::SyncWrite => self.config.sync_write,
            Class::AsyncRead => self.config.async_read,
            Class::AsyncWrite => self.config.async_write,
            Class::Scrub => self.config.scrub,
        }
    }

    fn class_to_issue(&self, maximum_async_writes: u32) -> Option<Class> {
        let waits = |class: &Class| !self.waiting[class.index()].is_empty();
        let below_minimum =
            |class: &Class| self.active[class.index()] < self.limits(*class).min_active;
        let below_maximum = |class: &Class| {
            let maximum = match class {
                Class::AsyncWrite => maximum_async_writes,
                class => self.limits(*class).max_active,
            };
            self.active[class.index()] < maximum
        };
        let mut classes = CLASSES.into_iter().filter(waits);
        classes
            .clone()
            .find(below_minimum)
            .or_else(|| classes.find(below_maximum))
    }

    fn first_key(&self, class: Class) -> Option<(u64, u64)> {
        let waiting = &self.waiting[class.index()];
        let from = if class.by_arrival() {
            (0, 0)
        } else {
            (self.last_start + 1, 0)
        };
        let next = waiting
            .range(from..)
            .next()
            .or_else(|| waiting.iter().next());
        next.map(|(&key, _)| key)
    }

    fn merge(&mut self, class: Class, key: (u64, u64)) -> Option<Issue> {
        let io = self.take(class, key)?;
        let mut issue = Issue {
            start: io.start,
            count: io.count,
            owners: vec![io.owner],
        };
        let gap = if class.is_read() {
            self.config.read_gap_limit.0
        } else {
            0
        };
        while let Some(key) = self.neighbour(class, &issue, gap, false) {
            self.absorb(class, key, &mut issue);
        }
        while let Some(key) = self.neighbour(class, &issue, gap, true) {
            self.absorb(class, key, &mut issue);
        }
        Some(issue)
    }

    fn take(&mut self, class: Class, key: (u64, u64)) -> Option<Io> {
        let io = self.waiting[class.index()].remove(&key)?;
        self.total_waiting -= 1;
        Some(io)
    }

    fn absorb(&mut self, class: Class, key: (u64, u64), issue: &mut Issue) {
        if let Some(io) = self.take(class, key) {
            let end = (issue.start + issue.count).max(io.start + io.count);
            issue.start = issue.start.min(io.start);
            issue.count = end - issue.start;
            issue.owners.push(io.owner);
        }
    }

    /// The waiting I/O nearest before or behind the run that may be merged.
    fn neighbour(&self, class: Class, run: &Issue, gap: u64, behind: bool) -> Option<(u64, u64)> {
        let waiting = &self.waiting[class.index()];
        let limit = self.config.aggregation_limit.0;
        let end = run.start + run.count;
        let fits = |io: &Io| {
            let span = end.max(io.start + io.count) - run.start.min(io.start);
            let near = if behind {
                io.start >= run.start && io.start <= end + gap
            } else {
                io.start < run.start && io.start + io.count + gap >= run.start
            };
            span <= limit && near
        };
        if class.by_arrival() {
            let near = waiting.iter().filter(|(_, io)| fits(io));
            let nearest = near.min_by_key(|(_, io)| io.start.abs_diff(run.start));
            return nearest.map(|(&key, _)| key);
        }
        let next = if behind {
            waiting.range((run.start, 0)..).next()
        } else {
            waiting.range(..(run.start, 0)).next_back()
        };
        next.filter(|(_, io)| fits(io)).map(|(&key, _)| key)
    }
}

#[cfg(test)]
mod tests {
    use super::{Class, Io, LeafQueue, Owner};
    use crate::config::QueueConfig;

    fn queue() -> LeafQueue {
        LeafQueue::new(QueueConfig::of_2014())
    }

    const fn io(start: u64, count: u64, owner: u32) -> Io {
        Io {
            start,
            count,
            owner: Owner::Read(owner),
        }
    }

    fn issued(queue: &mut LeafQueue, writes: u32) -> Vec<(u64, u64)> {
        std::iter::from_fn(|| queue.next(writes))
            .map(|(_, issue)| (issue.start, issue.count))
            .collect()
    }

    #[test]
    fn ten_synchronous_reads_in_order_of_arrival() {
        let mut queue = queue();
        for index in 0..12 {
            queue.push(Class::SyncRead, io((50 - index) * 1000, 16, 0));
        }
        let starts: Vec<u64> = issued(&mut queue, 10).iter().map(|run| run.0).collect();
        let expected: Vec<u64> = (0..10).map(|index| (50 - index) * 1000).collect();
        assert_eq!(starts, expected);
        assert_eq!(queue.active(), 10);
        queue.completed(Class::SyncRead);
        assert_eq!(issued(&mut queue, 10), [(40_000, 16)]);
    }

    /// Minima first in class order, then maxima in class order.
    #[test]
    fn classes_compete_by_minimum_then_maximum() {
        let mut queue = queue();
        for index in 0..4 {
            queue.push(Class::Scrub, io(100_000 + index * 1000, 16, 0));
            queue.push(Class::AsyncWrite, io(200_000 + index * 1000, 16, 0));
            queue.push(Class::AsyncRead, io(300_000 + index * 1000, 16, 0));
        }
        let order: Vec<Class> = std::iter::from_fn(|| queue.next(2))
            .map(|(class, _)| class)
            .collect();
        use Class::{AsyncRead, AsyncWrite, Scrub};
        assert_eq!(
            order,
            [
                AsyncRead, AsyncWrite, Scrub, AsyncRead, AsyncRead, AsyncWrite, Scrub
            ]
        );
    }

    #[test]
    fn asynchronous_classes_go_up_and_wrap() {
        let mut queue = queue();
        for start in [5000, 1000, 9000] {
            queue.push(Class::AsyncWrite, io(start, 16, 0));
        }
        queue.last_start = 5000;
        assert_eq!(issued(&mut queue, 10), [(9000, 16), (1000, 16), (5000, 16)]);
    }

    /// 256 sectors at most, both ways; writes only without a gap, reads over
    /// 64 sectors of it.
    #[test]
    fn neighbours_are_merged_up_to_the_limit() {
        let mut queue = queue();
        for index in 0..20 {
            queue.push(Class::AsyncWrite, io(index * 16, 16, 0));
        }
        queue.push(Class::AsyncWrite, io(328, 16, 0));
        queue.last_start = 150;
        assert_eq!(issued(&mut queue, 10), [(0, 256), (256, 64), (328, 16)]);
        for start in [0, 80, 180] {
            queue.push(Class::SyncRead, io(start, 16, 7));
        }
        let (_, issue) = queue.next(10).expect("reads wait");
        assert_eq!((issue.start, issue.count), (0, 96));
        assert_eq!(issue.owners, [Owner::Read(7); 2]);
        assert_eq!(issued(&mut queue, 10), [(180, 16)]);
    }

    #[test]
    fn a_drained_queue_names_everyone_who_waits() {
        let mut queue = queue();
        queue.push(Class::SyncRead, io(0, 8, 1));
        queue.push(Class::Scrub, io(0, 8, 2));
        assert_eq!(queue.drain(), [Owner::Read(1), Owner::Read(2)]);
        assert!(queue.next(10).is_none());
    }
}
