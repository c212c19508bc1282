//! The queue above one disk: classes, limits, order and merging.
//!
//! Rules (illumos 4045, August 2013, and FreeBSD 10's `vdev_queue.c`):
//! - Issue from the first class, in the order of [`Class`], that has fewer
//!   commands in the disk than its minimum; if there is none, from the first
//!   below its maximum. Never more than the total.
//! - Synchronous classes are served in order of arrival, the others by
//!   address, upwards from the start of the last issued command, then again
//!   from the lowest.
//! - Since OpenZFS 2.1 the class below its minimum is searched from the one after that which issued
//!   last, cyclically. I/Os of the same half second are served by address, and before later ones.
//!   And scrub and resilver have a credit while other commands are in the disk: one command when
//!   that begins, five after each completion of the others; without others, one at a time until
//!   five have completed.
//! - The chosen I/O is merged with its neighbours of the same class up to 128 KiB; reads over gaps
//!   of up to 32 KiB. (FreeBSD 10.4 also merges across classes of the same direction; that is left
//!   out.) In OpenZFS 2.3 up to 1 MiB, and synchronous reads also with prefetch, and writes
//!   likewise; the command counts in the class of the chosen one (`vdev_queue_aggregate`).
//! - In OpenZFS 2.3 a prefetch read becomes a synchronous one when a request waits for it.

#[cfg(test)]
mod tests;

use crate::config::{ClassLimits, QueueConfig};
use raidlab_units::Nanos;
use std::collections::{BTreeMap, BTreeSet};

/// The classes in order of precedence.
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

/// The owner of an I/O, which waits for it: an index into the pool's tables.
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

/// The next command for the disk, for one or more I/Os.
#[derive(Debug)]
pub(crate) struct Issue {
    pub(crate) start: u64,
    pub(crate) count: u64,
    pub(crate) owner: Owner,
    /// The owners of the I/Os that were merged with the first one.
    pub(crate) others: Vec<Owner>,
}

/// The key of an I/O: (arrival, 0) where arrival decides and (sector, arrival) where
/// the address does.
type Key = (u64, u64);

/// The waiting I/Os of one class, each with the interval of its arrival.
#[derive(Debug, Default)]
struct Waiting {
    ios: BTreeMap<Key, (Io, u64)>,
    /// The same I/Os by interval; empty if intervals do not count.
    batches: BTreeSet<(u64, Key)>,
}

/// The queue before one disk that the top of the file describes.
#[derive(Debug)]
pub(crate) struct LeafQueue {
    config: QueueConfig,
    waiting: [Waiting; 5],
    active: [u32; 5],
    total_active: u32,
    total_waiting: usize,
    arrivals: u64,
    last_start: u64,
    last_end: u64,
    /// The index of the class that issued last.
    last_class: usize,
    /// The number of commands in the disk that are neither scrub nor resilver.
    interactive: u32,
    credit: u32,
}

impl Class {
    const fn index(self) -> usize {
        self as usize
    }

    const fn by_arrival(self) -> bool {
        matches!(self, Self::SyncRead | Self::SyncWrite)
    }

    /// The other class of reads or writes that ZFS may merge with this one; reads of scrub and
    /// resilver carry other flags (`ZIO_FLAG_AGG_INHERIT`).
    const fn companion(self) -> Option<Self> {
        match self {
            Self::SyncRead => Some(Self::AsyncRead),
            Self::AsyncRead => Some(Self::SyncRead),
            Self::SyncWrite => Some(Self::AsyncWrite),
            Self::AsyncWrite => Some(Self::SyncWrite),
            Self::Scrub => None,
        }
    }

    const fn is_read(self) -> bool {
        !matches!(self, Self::SyncWrite | Self::AsyncWrite)
    }
}

impl LeafQueue {
    pub(crate) fn new(config: QueueConfig) -> Self {
        Self {
            config,
            waiting: std::array::from_fn(|_| Waiting::default()),
            active: [0; 5],
            total_active: 0,
            total_waiting: 0,
            arrivals: 0,
            last_start: 0,
            last_end: 0,
            last_class: 0,
            interactive: 0,
            credit: 0,
        }
    }

    /// The number of commands in the disk, which child selection uses as the load.
    pub(crate) const fn active(&self) -> u32 {
        self.total_active
    }

    pub(crate) fn push(&mut self, now: Nanos, class: Class, io: Io) {
        self.arrivals += 1;
        let key = if class.by_arrival() {
            (self.arrivals, 0)
        } else {
            (io.start, self.arrivals)
        };
        let batch = self.config.batch.map(|length| now.0 / length.0.max(1));
        let waiting = &mut self.waiting[class.index()];
        waiting.ios.insert(key, (io, batch.unwrap_or(0)));
        if let Some(batch) = batch
            && !class.by_arrival()
        {
            waiting.batches.insert((batch, key));
        }
        self.total_waiting += 1;
    }

    /// Makes a prefetch read synchronous, as a request waits for it now: if it is not in the disk
    /// yet, it becomes the last of the synchronous ones (`vdev_queue_change_io_priority`, which
    /// sends nothing to the disk).
    pub(crate) fn raise(&mut self, start: u64, owner: Owner) {
        let ahead = &self.waiting[Class::AsyncRead.index()].ios;
        let mut there = ahead.range((start, 0)..(start + 1, 0));
        let found = there.find(|(_, (io, _))| io.owner == owner);
        let Some(key) = found.map(|(&key, _)| key) else {
            return;
        };
        if let Some(io) = self.take(Class::AsyncRead, key) {
            self.push(Nanos::ZERO, Class::SyncRead, io);
        }
    }

    /// Whether an I/O waits, and the disk can take more commands.
    pub(crate) const fn may_issue(&self) -> bool {
        self.total_waiting > 0 && self.total_active < self.config.total_active
    }

    /// The next command, if a class may issue; `maximum_async_writes` is the limit by the amount
    /// of dirty data.
    pub(crate) fn next(&mut self, maximum_async_writes: u32) -> Option<(Class, Issue)> {
        if !self.may_issue() {
            return None;
        }
        let class = self.class_to_issue(maximum_async_writes)?;
        let key = self.first_key(class)?;
        let issue = self.merge(class, key)?;
        self.active[class.index()] += 1;
        self.total_active += 1;
        self.last_start = issue.start;
        self.last_end = issue.start + issue.count;
        self.last_class = class.index();
        if class == Class::Scrub {
            if self.interactive > 0 {
                self.credit = self.credit.saturating_sub(1);
            }
        } else {
            self.interactive += 1;
            if self.interactive == 1 {
                self.credit = 1;
            }
        }
        Some((class, issue))
    }

    pub(crate) fn completed(&mut self, class: Class) {
        self.active[class.index()] -= 1;
        self.total_active -= 1;
        let renewed = self.config.courtesy.map_or(0, |courtesy| courtesy.credit);
        if class == Class::Scrub {
            if self.interactive == 0 {
                self.credit += 1;
            }
        } else {
            self.interactive -= 1;
            self.credit = if self.interactive == 0 { 0 } else { renewed };
        }
    }

    /// Empties the queue of a disk that is gone; returns the owners.
    pub(crate) fn drain(&mut self) -> Vec<Owner> {
        self.total_waiting = 0;
        let waiting = self.waiting.iter_mut().map(std::mem::take);
        waiting
            .flat_map(|class| class.ios.into_values().map(|(io, _)| io.owner))
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

    /// The limits of a class: its number of commands at which it yields to others, and
    /// the largest number.
    fn limits_now(&self, class: Class, maximum_async_writes: u32) -> ClassLimits {
        let mut limits = self.limits(class);
        match (class, self.config.courtesy) {
            (Class::AsyncWrite, _) => limits.max_active = maximum_async_writes,
            (Class::Scrub, Some(_)) if self.interactive > 0 => {
                limits.min_active = limits.min_active.min(self.credit);
                limits.max_active = limits.min_active;
            }
            (Class::Scrub, Some(courtesy)) if self.credit < courtesy.delay => {
                limits.max_active = limits.min_active.max(1);
            }
            _ => {}
        }
        limits
    }

    fn class_to_issue(&self, maximum_async_writes: u32) -> Option<Class> {
        let first = match self.config.courtesy {
            Some(_) => self.last_class + 1,
            None => 0,
        };
        let active = |class: Class| self.active[class.index()];
        let waits = |class: Class| !self.waiting[class.index()].ios.is_empty();
        let limits = |class| self.limits_now(class, maximum_async_writes);
        let mut ring = (first..first + CLASSES.len()).map(|place| CLASSES[place % CLASSES.len()]);
        let in_need = ring.find(|&class| waits(class) && active(class) < limits(class).min_active);
        in_need.or_else(|| {
            let mut all = CLASSES.into_iter();
            all.find(|&class| waits(class) && active(class) < limits(class).max_active)
        })
    }

    fn first_key(&self, class: Class) -> Option<Key> {
        let waiting = &self.waiting[class.index()];
        if let Some(&(batch, first)) = waiting.batches.first() {
            let following = waiting.batches.range((batch, (self.last_end, 0))..);
            let mut following = following.take_while(|(other, _)| *other == batch);
            return Some(following.next().map_or(first, |&(_, key)| key));
        }
        let from = if class.by_arrival() {
            (0, 0)
        } else {
            (self.last_start + 1, 0)
        };
        let next = waiting.ios.range(from..).next();
        let next = next.or_else(|| waiting.ios.iter().next());
        next.map(|(&key, _)| key)
    }

    fn merge(&mut self, class: Class, key: Key) -> Option<Issue> {
        let io = self.take(class, key)?;
        let mut issue = Issue {
            start: io.start,
            count: io.count,
            owner: io.owner,
            others: Vec::new(),
        };
        let gap = if class.is_read() {
            self.config.read_gap_limit.0
        } else {
            0
        };
        for behind in [false, true] {
            while let Some((class, key)) = self.neighbour(class, &issue, gap, behind) {
                self.absorb(class, key, &mut issue);
            }
        }
        Some(issue)
    }

    fn take(&mut self, class: Class, key: Key) -> Option<Io> {
        let waiting = &mut self.waiting[class.index()];
        let (io, batch) = waiting.ios.remove(&key)?;
        waiting.batches.remove(&(batch, key));
        self.total_waiting -= 1;
        Some(io)
    }

    fn absorb(&mut self, class: Class, key: Key, issue: &mut Issue) {
        if let Some(io) = self.take(class, key) {
            let end = (issue.start + issue.count).max(io.start + io.count);
            issue.start = issue.start.min(io.start);
            issue.count = end - issue.start;
            issue.others.push(io.owner);
        }
    }

    /// The nearest waiting I/O before or after the run that may be merged with it; the run is
    /// of a class.
    fn neighbour(&self, class: Class, run: &Issue, gap: u64, behind: bool) -> Option<(Class, Key)> {
        let nearest = |class: Class| {
            let (distance, key) = self.neighbour_in(class, run, gap, behind)?;
            Some((distance, class, key))
        };
        let other = class.companion().filter(|_| self.config.merges_classes);
        let found = [Some(class), other]
            .into_iter()
            .flatten()
            .filter_map(nearest);
        let found = found.min_by_key(|(distance, ..)| *distance);
        found.map(|(_, class, key)| (class, key))
    }

    /// The nearest one of a class, and the distance between the starts.
    fn neighbour_in(
        &self,
        class: Class,
        run: &Issue,
        gap: u64,
        behind: bool,
    ) -> Option<(u64, Key)> {
        let waiting = &self.waiting[class.index()].ios;
        let limit = self.config.aggregation_limit.0;
        // An I/O before the run makes it longer.
        if run.count + u64::from(!behind) > limit {
            return None;
        }
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
        let distance = |io: &Io| io.start.abs_diff(run.start);
        if class.by_arrival() {
            let near = waiting.iter().filter(|(_, (io, _))| fits(io));
            let nearest = near.min_by_key(|(_, (io, _))| distance(io));
            return nearest.map(|(&key, (io, _))| (distance(io), key));
        }
        let next = if behind {
            waiting.range((run.start, 0)..).next()
        } else {
            waiting.range(..(run.start, 0)).next_back()
        };
        let next = next.filter(|(_, (io, _))| fits(io));
        next.map(|(&key, (io, _))| (distance(io), key))
    }
}
