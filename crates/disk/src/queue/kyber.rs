//! kyber, a scheduler of Linux for fast disks (`block/kyber-iosched.c` of 6.12).
//!
//! Reads, writes and discards are *domains*. A domain has tokens: as many of its commands are
//! with the disk at most, 256, 128 and 64 to begin with. What waits goes domain by domain in
//! batches of 16 reads, 8 writes and one discard, each in order of arrival; a domain without
//! a token, or with nothing to send, gives its turn to the next.
//!
//! Where a domain sends its next command, all that wait of it are taken off the list where they
//! came (`kyber_flush_busy_kcqs`), and are then sent one by one before that list is looked at
//! again. A new command is merged with one that is still on the list, and one of the last eight there
//! (`kyber_bio_merge`, `blk_bio_list_merge` in `block/blk-merge.c`).
//!
//! Each command's time is noted in a histogram of its domain, from its arrival and from the
//! moment at which the disk got it, in eight buckets of a quarter of the domain's target: 2 ms,
//! 10 ms and 5 s. The first four buckets are good. A tenth of a second after the first
//! command that ended since the last time, the histograms are looked at, if they have 500
//! commands or are a second old. The disk is congested where a tenth of some domain's commands
//! took the disk more than the target. Then every domain whose own commands are fast enough
//! (99 in 100, from their arrival) gets fewer tokens, in proportion to how much faster they
//! are than the target; and one whose commands are too slow gets more, congested or not.
//!
//! As in the source, both histograms of a domain share the moment at which they are a second
//! old, and the first that is looked at takes it away. So a domain with fewer than 500
//! commands in a second never has its tokens changed, which is every hard disk.
//!
//! Left out: the fourth domain, of commands that the model has none of (16 tokens); the limit
//! of three quarters of the requests for buffered writes; the queue of each processor, of
//! which one stands for all, so that a batch is one of the whole machine.

use super::waiting::Waiting;
use crate::command::CommandKind;
use raidlab_units::Nanos;
use std::collections::BTreeMap;

/// The number of Kyber's domains in the model: reads, writes and discards.
const DOMAINS: usize = 3;
/// Tokens of each to begin with, and at most (`kyber_depth`).
const DEPTH: [u32; DOMAINS] = [256, 128, 64];
/// Commands in a row (`kyber_batch_size`).
const BATCH: [u32; DOMAINS] = [16, 8, 1];
/// How long a command of each may take (`kyber_latency_targets`).
const TARGET: [Nanos; DOMAINS] = [
    Nanos::from_millis(2),
    Nanos::from_millis(10),
    Nanos::from_secs(5),
];
/// Buckets of a histogram, each a quarter of the target wide.
const BUCKETS: usize = 8;
/// The first buckets, which are good.
const GOOD: usize = BUCKETS / 2;
/// From the end of a command until the histograms are looked at.
const LOOK: Nanos = Nanos::from_millis(100);
/// A histogram is full with so many commands, or when it is so old.
const FULL: u32 = 500;
const OLD: Nanos = Nanos::SECOND;
/// The latest commands that a new one is compared with.
const LOOKED_AT: usize = 8;

/// How many commands of a domain took how long.
#[derive(Debug, Clone, Copy, Default)]
struct Histogram([u32; BUCKETS]);

impl Histogram {
    fn add(&mut self, time: Nanos, target: Nanos) {
        let bucket = time.0.saturating_sub(1) / (target.0 / 4);
        let last = BUCKETS - 1;
        self.0[usize::try_from(bucket).unwrap_or(last).min(last)] += 1;
    }

    /// The bucket below which so many of a hundred are; the histogram is empty then.
    fn percentile(&mut self, percent: u32) -> usize {
        let buckets = std::mem::take(&mut self.0);
        let samples: u32 = buckets.iter().sum();
        let mut left = (samples * percent).div_ceil(100);
        let mut all = buckets.iter().take(BUCKETS - 1);
        let found = all.position(|&bucket| {
            let ends = bucket >= left;
            left = left.saturating_sub(bucket);
            ends
        });
        found.unwrap_or(BUCKETS - 1)
    }
}

/// A domain's tokens and times.
#[derive(Debug, Clone, Copy, Default)]
struct Domain {
    /// Tokens in all, and those in use, which are more for a while after it has got fewer.
    tokens: u32,
    in_use: u32,
    /// With the disk, and from the arrival on.
    device: Histogram,
    total: Histogram,
    /// How many of those that wait, the first of them, were taken off the list where they came.
    taken_off: usize,
    /// The time from which its histograms count as old, though they are not full.
    old: Option<Nanos>,
    /// The bucket of 99 in 100 when that was last known, until it was used.
    p99: Option<usize>,
}

impl Domain {
    /// The bucket of a percentile, if one of its histograms is full or old.
    fn look(&mut self, total: bool, percent: u32, now: Nanos) -> Option<usize> {
        let histogram = match total {
            true => &mut self.total,
            false => &mut self.device,
        };
        let samples: u32 = histogram.0.iter().sum();
        if samples == 0 {
            return None;
        }
        let old = *self.old.get_or_insert(now + OLD);
        if samples < FULL && now < old {
            return None;
        }
        self.old = None;
        Some(histogram.percentile(percent))
    }
}

/// A command that the disk has.
#[derive(Debug, Clone, Copy)]
struct Sent {
    domain: usize,
    arrived: Nanos,
    at: Nanos,
}

/// What Kyber knows of its domains and of the commands with the disk.
#[derive(Debug, Clone)]
pub(super) struct Kyber {
    domains: [Domain; DOMAINS],
    /// The domain whose turn it is, and how many commands of it went in a row.
    current: usize,
    batch: u32,
    with_disk: BTreeMap<u64, Sent>,
    /// When the histograms are looked at.
    look: Option<Nanos>,
}

fn domain(kind: CommandKind) -> Option<usize> {
    match kind {
        CommandKind::Read => Some(0),
        CommandKind::Write | CommandKind::WriteThrough => Some(1),
        CommandKind::Discard => Some(2),
        CommandKind::Flush => None,
    }
}

/// Where the commands of a domain are among those that wait, in order of their arrival.
fn places(waiting: &[Waiting], of: usize) -> impl DoubleEndedIterator<Item = usize> {
    let own = move |(place, one): (usize, &Waiting)| {
        (domain(one.command.kind) == Some(of)).then_some(place)
    };
    waiting.iter().enumerate().filter_map(own)
}

impl Kyber {
    pub(super) fn new() -> Self {
        let domain = |tokens| Domain {
            tokens,
            ..Domain::default()
        };
        Self {
            domains: DEPTH.map(domain),
            current: 0,
            batch: 0,
            with_disk: BTreeMap::new(),
            look: None,
        }
    }

    /// The next command to be sent; `None` where no domain has both a command and a token.
    pub(super) fn next(&mut self, waiting: &[Waiting]) -> Option<usize> {
        if waiting.is_empty() {
            // Nobody is asked (`kyber_has_work`), so the batch goes on.
            return None;
        }
        let in_batch = self.batch < BATCH[self.current];
        if let Some(first) = in_batch.then(|| self.first(waiting)).flatten() {
            self.batch += 1;
            return Some(first);
        }
        self.batch = 0;
        for _ in 0..DOMAINS {
            self.current = (self.current + 1) % DOMAINS;
            if let Some(first) = self.first(waiting) {
                self.batch = 1;
                return Some(first);
            }
        }
        None
    }

    /// The first command of the domain whose turn it is, if there is a token for it, to be sent.
    fn first(&mut self, waiting: &[Waiting]) -> Option<usize> {
        let mut all = places(waiting, self.current);
        let own = &mut self.domains[self.current];
        let first = all.next().filter(|_| own.in_use < own.tokens)?;
        own.taken_off = match own.taken_off {
            0 => all.count(),
            taken_off => taken_off - 1,
        };
        Some(first)
    }

    /// Where those are that a new command may be merged with, the latest first.
    pub(super) fn latest(&self, waiting: &[Waiting], new: &Waiting) -> impl Iterator<Item = usize> {
        let domain = domain(new.command.kind).unwrap_or(DOMAINS);
        let taken_off = self.domains.get(domain).map_or(0, |own| own.taken_off);
        let on_list = places(waiting, domain).count().saturating_sub(taken_off);
        places(waiting, domain).rev().take(on_list.min(LOOKED_AT))
    }

    /// A command goes to the disk.
    pub(super) fn sent(&mut self, now: Nanos, sent: &Waiting) {
        if let Some(domain) = domain(sent.command.kind) {
            self.domains[domain].in_use += 1;
            let tag = sent.command.tag;
            let sent = Sent {
                domain,
                arrived: sent.arrived,
                at: now,
            };
            self.with_disk.insert(tag, sent);
        }
    }

    /// The disk has done a command.
    pub(super) fn ended(&mut self, now: Nanos, tag: u64) {
        let Some(sent) = self.with_disk.remove(&tag) else {
            return;
        };
        let own = &mut self.domains[sent.domain];
        own.in_use -= 1;
        let target = TARGET[sent.domain];
        own.total.add(now - sent.arrived, target);
        own.device.add(now - sent.at, target);
        self.look.get_or_insert(now + LOOK);
    }

    /// Looks at the histograms if it is time. Nothing is sent because of that: a domain with
    /// more tokens uses them when something ends or arrives.
    pub(super) fn look(&mut self, now: Nanos) {
        let Some(due) = self.look.filter(|&due| due <= now) else {
            return;
        };
        self.look = None;
        let mut congested = false;
        for own in &mut self.domains {
            congested |= own.look(false, 90, due).is_some_and(|p90| p90 >= GOOD);
        }
        for (own, most) in self.domains.iter_mut().zip(DEPTH) {
            let mut p99 = own.look(true, 99, due);
            if congested {
                p99 = p99.or(own.p99);
                own.p99 = None;
            } else if p99.is_some() {
                own.p99 = p99;
            }
            let Some(p99) = p99.filter(|&p99| congested || p99 >= GOOD) else {
                continue;
            };
            let scaled = own.tokens as usize * (p99 + 1) / 4;
            own.tokens = u32::try_from(scaled).unwrap_or(most).clamp(1, most);
        }
    }

    /// Tokens in use and in all, domain by domain.
    #[cfg(test)]
    pub(super) fn tokens(&self) -> [(u32, u32); DOMAINS] {
        self.domains.map(|own| (own.in_use, own.tokens))
    }
}

#[cfg(test)]
mod tests;
