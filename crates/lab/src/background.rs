//! The background work of an array, as measurements: how long a resync, a recovery or a check
//! took and at what rate, how long the array was degraded, and which share of their rates the
//! jobs kept meanwhile.
//!
//! Every bench passes on looks at its array: states with their times. A modelled array is looked at
//! when it changes, a real one every second. The rest is done here, for all of them alike. A change
//! between two looks happened somewhere between them: the time of what begins or ends there is
//! taken from the middle, and the row carries how far that may be off. Work that is unfinished at
//! the run's end has a row too, whose time is a lower bound.
//!
//! A sync that is interrupted, because another member fails for instance, and continues where it
//! was is one sync, with the pause in it; one that starts over is another.

mod kept;
#[cfg(test)]
mod tests;

use crate::experiment::Experiment;
use raidlab_store::{EventRecord, MAKING, Measurement, Operation, Role};
use raidlab_units::{Bytes, BytesPerSecond, Nanos};
use serde::{Deserialize, Serialize};

pub(crate) use kept::kept;

/// The job name of the rows of background work.
pub const BACKGROUND_JOB: &str = "background";

/// The class of times and rates of syncs.
pub const BACKGROUND_CLASS: &str = "rebuild";

/// The time within which a sync ends when another member is lost (`md_error`): requests in flight
/// are still completed.
const STOPS_WITHIN: Nanos = Nanos::SECOND;

/// The state of an array at one moment, as its bench saw it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArrayLook {
    /// The time of the look, since the experiment began.
    pub at: Nanos,
    /// Whether a change since the previous look happened at this very moment; otherwise it happened
    /// at any time between the two.
    pub is_exact: bool,
    /// The members in the letters of `/proc/mdstat`, `U` in sync and `_` not: `[U_]`.
    pub letters: String,
    /// The sync that is under way; `None` when there is none.
    pub sync: Option<SyncLook>,
    /// The part of the time since the experiment began that was skipped analytically; zero
    /// on real machines.
    pub leaped: Nanos,
}

/// The progress of a resync, recovery, check or reshape.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SyncLook {
    /// The kind of sync: [`Operation::Resync`], [`Operation::Recovery`],
    /// [`Operation::Check`] or [`Operation::Reshape`].
    pub op: Operation,
    /// The progress, 0 to 100 percent; `None` where the sync waits to begin, or to end.
    pub percent: Option<f64>,
    /// The bytes of each member that make 100 percent; `None` where the system does
    /// not report them.
    pub member: Option<Bytes>,
}

impl ArrayLook {
    fn is_degraded(&self) -> bool {
        self.letters.contains('_')
    }

    fn members_in_sync(&self) -> usize {
        self.letters.matches('U').count()
    }
}

/// The interval of time within which something happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Edge {
    earliest: Nanos,
    latest: Nanos,
}

impl Edge {
    fn middle(self) -> Nanos {
        Nanos(self.earliest.0.midpoint(self.latest.0))
    }

    /// The time from here to `end`, and its uncertainty.
    fn until(self, end: Self) -> (Nanos, Nanos) {
        let least = end.earliest.saturating_sub(self.latest).0;
        let most = end.latest.saturating_sub(self.earliest).0;
        (
            Nanos(least.midpoint(most)),
            Nanos((most - least).div_ceil(2)),
        )
    }
}

/// A period of background work.
#[derive(Debug, Clone, PartialEq)]
struct Period {
    op: Operation,
    from: Edge,
    /// The end; `None` while the work goes on, also at the end of the run.
    to: Option<Edge>,
    is_finished: bool,
    percent: [Option<f64>; 2],
    member: Option<Bytes>,
    letters: [String; 2],
    leaped: [Nanos; 2],
}

impl Period {
    fn begins(op: Operation, from: Edge, percent: Option<f64>, look: &ArrayLook) -> Self {
        let sync = look.sync.filter(|sync| sync.op == op);
        Self {
            op,
            from,
            to: None,
            is_finished: false,
            percent: [percent, sync.and_then(|sync| sync.percent)],
            member: sync.and_then(|sync| sync.member),
            letters: [look.letters.clone(), look.letters.clone()],
            leaped: [look.leaped; 2],
        }
    }

    /// Records at a look how far the work is.
    fn goes_on(&mut self, look: &ArrayLook) {
        if let Some(sync) = look.sync {
            self.percent[1] = sync.percent.or(self.percent[1]);
            self.member = sync.member.or(self.member);
        }
        self.sees(look);
    }

    fn sees(&mut self, look: &ArrayLook) {
        self.letters[1].clone_from(&look.letters);
        self.leaped[1] = look.leaped;
    }

    fn ends(&mut self, at: Edge, is_finished: bool, look: &ArrayLook) {
        self.to = Some(at);
        self.is_finished = is_finished;
        if is_finished && self.op != Operation::Degraded {
            self.percent[1] = Some(100.0);
        }
        self.sees(look);
    }
}

/// The background work of one experiment's array so far.
#[derive(Debug, Default)]
pub struct Background {
    last: Option<ArrayLook>,
    periods: Vec<Period>,
    /// The positions in `periods` of the current sync and degraded time.
    sync: Option<usize>,
    degraded: Option<usize>,
    /// The time at which a member was last seen to be lost.
    lost: Option<Nanos>,
    /// The time at which all members were first seen in sync.
    whole: Option<Nanos>,
    events: Vec<(Nanos, &'static str, String)>,
}

impl Background {
    /// Takes a look at the array. Looks come in the order of their times; a late one is ignored.
    pub fn look(&mut self, look: ArrayLook) {
        let last = self.last.as_ref();
        if last.is_some_and(|last| look.at < last.at) {
            return;
        }
        let edge = Edge {
            earliest: match last {
                _ if look.is_exact => look.at,
                Some(last) => last.at,
                None => Nanos::ZERO,
            },
            latest: look.at,
        };
        if last.is_some_and(|last| look.members_in_sync() < last.members_in_sync()) {
            self.lost = Some(look.at);
        }
        self.follow_sync(edge, &look);
        self.follow_health(edge, &look);
        if !look.is_degraded() {
            self.whole.get_or_insert(look.at);
        }
        self.last = Some(look);
    }

    fn follow_sync(&mut self, edge: Edge, look: &ArrayLook) {
        let last = self.last.as_ref();
        let before = last.and_then(|last| last.sync);
        // A sync without progress that has not begun waits to begin; one that has is about to end.
        let waits = |sync: &SyncLook| sync.percent.is_none() && self.sync.is_none();
        let sync = look.sync.filter(|sync| !waits(sync));
        let is_another = |now: SyncLook, before: SyncLook| {
            let fell = now.percent < before.percent && now.percent.is_some();
            now.op != before.op || fell
        };
        let has_ended = match (before, sync) {
            (Some(before), Some(now)) => is_another(now, before),
            (before, _) => before.is_some(),
        };
        if let Some(index) = self.sync.filter(|_| has_ended) {
            self.sync = None;
            let period = &mut self.periods[index];
            let in_sync = look.members_in_sync();
            let before = last.map_or(0, ArrayLook::members_in_sync);
            let since = self.lost.map(|lost| look.at.saturating_sub(lost));
            let is_finished = match period.op {
                Operation::Recovery => in_sync > before || !look.is_degraded(),
                _ => since.is_none_or(|since| since > STOPS_WITHIN),
            };
            period.ends(edge, is_finished, look);
            let text = if is_finished {
                "ended"
            } else {
                "stopped short"
            };
            let text = format!("{} {text}", period.op);
            self.events.push((look.at, "sync-end", text));
        }
        let Some(now) = sync else { return };
        if let Some(index) = self.sync {
            self.periods[index].goes_on(look);
            return;
        }
        let op = now.op;
        let stopped = self.periods.iter().rposition(|one| one.op == op);
        let resumed = stopped.filter(|&index| {
            let one = &self.periods[index];
            !one.is_finished && one.percent[1] > Some(0.0) && now.percent >= one.percent[1]
        });
        let text = match resumed {
            Some(index) => {
                self.periods[index].to = None;
                self.periods[index].goes_on(look);
                "goes on"
            }
            None => {
                // A real sync has begun at 0, before it was first seen.
                let first = now.percent.filter(|_| look.is_exact).unwrap_or(0.0);
                let period = Period::begins(op, edge, Some(first), look);
                self.periods.push(period);
                "began"
            }
        };
        self.sync = resumed.or(self.periods.len().checked_sub(1));
        self.events
            .push((look.at, "sync-start", format!("{op} {text}")));
    }

    fn follow_health(&mut self, edge: Edge, look: &ArrayLook) {
        match (self.degraded, look.is_degraded()) {
            (None, true) => {
                self.degraded = Some(self.periods.len());
                let period = Period::begins(Operation::Degraded, edge, None, look);
                self.periods.push(period);
            }
            (Some(index), true) => self.periods[index].sees(look),
            (Some(index), false) => {
                self.degraded = None;
                let since = self.periods[index].from;
                let was_seen = self.periods.iter().any(|one| {
                    let ended = one.to.filter(|_| one.is_finished);
                    let within = ended.is_some_and(|end| end.latest > since.earliest);
                    one.op == Operation::Recovery && within
                });
                self.periods[index].ends(edge, true, look);
                if !was_seen {
                    // The sync was over before the first look at it.
                    let first = Some(0.0);
                    let mut period = Period::begins(Operation::Recovery, edge, first, look);
                    period.ends(edge, true, look);
                    self.periods.push(period);
                }
            }
            (None, false) => {}
        }
    }

    /// The events since the last call, for the time line.
    pub fn drain_events(&mut self, experiment: &Experiment) -> Vec<EventRecord> {
        let scope = experiment.scope();
        let events = self.events.drain(..);
        events
            .map(|(at, kind, text)| EventRecord {
                scope: scope.clone(),
                at_ns: at.0,
                kind: kind.to_owned(),
                member: None,
                text,
            })
            .collect()
    }

    /// A row for each period, in the order in which they began. Work that was under way at the last
    /// look has no end.
    #[must_use]
    pub fn rows(&self, experiment: &Experiment, bench: &str) -> Vec<Measurement> {
        let Some(last) = &self.last else {
            return Vec::new();
        };
        let is_made_so = experiment.is_made_by_recovery();
        let makes =
            |one: &Period| is_made_so && self.whole.is_none_or(|whole| one.from.latest < whole);
        let part = |index: usize| {
            let own = &self.periods[index];
            let before = self.periods[..index].iter();
            let before = before.filter(|one| one.op == own.op && makes(one) == makes(own));
            match (makes(own), before.count() + 1) {
                // The first period of a kind has the same row in runs with more of them.
                (false, 1) => String::new(),
                (false, number) => number.to_string(),
                (true, 1) => MAKING.to_owned(),
                (true, number) => format!("{MAKING} {number}"),
            }
        };
        let periods = self.periods.iter().enumerate();
        periods
            .map(|(index, period)| period.row(part(index), last.at, experiment, bench))
            .collect()
    }
}

/// The most that a period which has not ended can say that it has done: 100 is the end.
const UNFINISHED_PERCENT: f64 = 99.99;

impl Period {
    /// How far the work was at its end, or at the last look. A resilver that has
    /// more blocks than were counted when it began is at 100 percent before it has ended.
    fn percent_at_end(&self) -> Option<f64> {
        let percent = self.percent[1]?;
        Some(if self.is_finished {
            percent
        } else {
            percent.min(UNFINISHED_PERCENT)
        })
    }

    /// The row of a period. `which`: which one of its kind it is; `now`: the time of the last look.
    fn row(&self, which: String, now: Nanos, experiment: &Experiment, bench: &str) -> Measurement {
        let end = self.to.unwrap_or(Edge {
            earliest: now,
            latest: now,
        });
        let (took, band) = self.from.until(end);
        let passes_over = self.op == Operation::Recovery && experiment.re_adds_by_bitmap();
        let member = self.member.filter(|_| !passes_over);
        let bytes = match (member, self.percent) {
            (Some(member), [Some(first), Some(last)]) => part(member, last - first),
            _ => Bytes(0),
        };
        Measurement {
            op: self.op,
            part: which,
            job: BACKGROUND_JOB.to_owned(),
            job_title: title(self.op).to_owned(),
            class: BACKGROUND_CLASS.to_owned(),
            started_ns: self.from.middle().0,
            runtime_ns: took.0,
            runtime_band_ns: band.0,
            total_bytes: bytes.0,
            bytes_per_second: BytesPerSecond::mean(bytes, took).0,
            array_state_start: self.letters[0].clone(),
            array_state_end: self.letters[1].clone(),
            sync_percent_start: self.percent[0],
            sync_percent_end: self.percent_at_end(),
            leaped_percent: share(self.leaped[1].saturating_sub(self.leaped[0]), took),
            ..template(experiment, bench)
        }
    }
}

/// The row with the fields that all these rows of an experiment have in common.
fn template(experiment: &Experiment, bench: &str) -> Measurement {
    Measurement {
        role: match experiment.fit.as_str() {
            "" => Role::Measured,
            _ => Role::Predicted,
        },
        ..experiment.row(bench, experiment.background_sequence)
    }
}

/// An operation in words, for people.
const fn title(op: Operation) -> &'static str {
    match op {
        Operation::Resync => "members are made equal",
        Operation::Recovery => "a member is filled anew",
        Operation::Check => "members are compared",
        Operation::Reshape => "the layout changes",
        _ => "a member less, until all are filled",
    }
}

// A percentage has few digits; a result below zero becomes zero.
fn part(whole: Bytes, percent: f64) -> Bytes {
    Bytes((whole.0 as f64 * percent / 100.0).round() as u64)
}

fn share(part: Nanos, whole: Nanos) -> f64 {
    match whole.0 {
        0 => 0.0,
        whole => (part.0 as f64 / whole as f64 * 100.0).min(100.0),
    }
}
