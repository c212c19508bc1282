//! kyber, a scheduler of Linux for fast disks (`block/kyber-iosched.c` of 6.12).
//!
//! Reads, writes and discards are *domains*. A domain has tokens, which limit its commands with the
//! disk: 256, 128 and 64 to begin with. Waiting commands go domain by domain in batches of 16
//! reads, 8 writes and one discard, each in order of arrival; a domain without a token, or with
//! nothing to send, gives its turn to the next.
//!
//! When a domain sends its next command, all its waiting ones are taken off the arrival list
//! (`kyber_flush_busy_kcqs`), and are then sent one by one before that list is visited again. A new
//! command is merged with one that is still on the list, and one of the last eight there
//! (`kyber_bio_merge`, `blk_bio_list_merge` in `block/blk-merge.c`).
//!
//! Each command's time is noted in a histogram of its domain, from its arrival and from the moment
//! at which the disk got it, in eight buckets of a quarter of the domain's target: 2 ms, 10 ms and
//! 5 s. The first four buckets are good. A tenth of a second after the first command that ended
//! since the last time, the histograms are evaluated, if they have 500 commands or are a second
//! old. The disk is congested where a tenth of a domain's commands took the disk more than the
//! target. Then every domain whose own commands are fast enough (99 in 100, from their arrival)
//! gets fewer tokens, in proportion to how much faster they are than the target; and one whose
//! commands are too slow gets more, congested or not.
//!
//! As in the source, both histograms of a domain share the time at which they are a second old, and
//! evaluating the first resets it. So the tokens of a domain with fewer than 500 commands per
//! second never change, which is the case for every hard disk.
//!
//! Left out: the fourth domain, of commands that the model does not have (16 tokens); the limit of
//! three quarters of the requests for buffered writes; the queues of each processor, which are
//! modelled as one, so that a batch is one of the whole machine.

use super::waiting::Waiting;
use crate::command::CommandKind;
use raidlab_units::Nanos;
use std::collections::BTreeMap;

/// The number of Kyber's domains in the model: reads, writes and discards.
const DOMAINS: usize = 3;
/// The tokens of each domain to begin with, and at most (`kyber_depth`).
const DEPTH: [u32; DOMAINS] = [256, 128, 64];
/// The commands of each domain in a batch (`kyber_batch_size`).
const BATCH: [u32; DOMAINS] = [16, 8, 1];
/// The target time of a command in each domain (`kyber_latency_targets`).
const TARGET: [Nanos; DOMAINS] = [
    Nanos::from_millis(2),
    Nanos::from_millis(10),
    Nanos::from_secs(5),
];
/// The number of buckets of a histogram, each a quarter of the target wide.
const BUCKETS: usize = 8;
/// The number of the first buckets, which are good.
const GOOD: usize = BUCKETS / 2;
/// The time from the end of a command until the histograms are evaluated.
const LOOK: Nanos = Nanos::from_millis(100);
/// The number of commands with which a histogram is full, and the age at which it is.
const FULL: u32 = 500;
const OLD: Nanos = Nanos::SECOND;
/// The number of latest commands that a new one is compared with.
const LOOKED_AT: usize = 8;

/// A histogram of the times of a domain's commands.
#[derive(Debug, Clone, Copy, Default)]
struct Histogram([u32; BUCKETS]);

impl Histogram {
    fn add(&mut self, time: Nanos, target: Nanos) {
        let bucket = time.0.saturating_sub(1) / (target.0 / 4);
        let last = BUCKETS - 1;
        self.0[usize::try_from(bucket).unwrap_or(last).min(last)] += 1;
    }

    /// The bucket of a percentile; the histogram is emptied.
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
    /// The tokens in all, and those in use, which may exceed them for a while after a reduction.
    tokens: u32,
    in_use: u32,
    /// The histogram of times with the disk, and that of times since the arrival.
    device: Histogram,
    total: Histogram,
    /// The number of waiting commands, the first ones, that were taken off the arrival list.
    taken_off: usize,
    /// The time from which its histograms count as old, though they are not full.
    old: Option<Nanos>,
    /// The bucket of the 99th percentile when it was last known, until it is used.
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

/// A command with the disk.
#[derive(Debug, Clone, Copy)]
struct Sent {
    domain: usize,
    arrived: Nanos,
    at: Nanos,
}

/// The state of Kyber: its domains, and the commands with the disk.
#[derive(Debug, Clone)]
pub(super) struct Kyber {
    domains: [Domain; DOMAINS],
    /// The domain whose turn it is, and the number of its commands in a row.
    current: usize,
    batch: u32,
    with_disk: BTreeMap<u64, Sent>,
    /// The time at which the histograms are evaluated.
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

/// The indexes of a domain's commands among the waiting ones, in order of their arrival.
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
            // The scheduler is not called (`kyber_has_work`), so the batch continues later.
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

    /// The first command of the domain whose turn it is, if there is a token for it, as sent.
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

    /// The indexes of the commands that a new one may be merged with, the latest first.
    pub(super) fn latest(&self, waiting: &[Waiting], new: &Waiting) -> impl Iterator<Item = usize> {
        let domain = domain(new.command.kind).unwrap_or(DOMAINS);
        let taken_off = self.domains.get(domain).map_or(0, |own| own.taken_off);
        let on_list = places(waiting, domain).count().saturating_sub(taken_off);
        places(waiting, domain).rev().take(on_list.min(LOOKED_AT))
    }

    /// Notes a command that goes to the disk.
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

    /// Notes a command that the disk has done.
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

    /// Evaluates the histograms if it is time. Nothing is sent as a result: a domain with more
    /// tokens uses them when a command ends or arrives.
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

    /// The tokens in use and in all, domain by domain.
    #[cfg(test)]
    pub(super) fn tokens(&self) -> [(u32, u32); DOMAINS] {
        self.domains.map(|own| (own.in_use, own.tokens))
    }
}

#[cfg(test)]
mod tests;
