//! The time line of an experiment: samples on its own clock, with events, thinned out so that
//! eighteen hours of seconds fit on a page.
//!
//! Samples are put into bins of equal width; of each bin the lowest, the mean and the highest are
//! kept. A bin without samples is a gap. The more experiments a run has, the fewer bins each gets.

use super::column::Column;
use raidlab_store::{EventRecord, Measurement, Scope, Series};
use raidlab_units::distinct;
use std::collections::BTreeMap;

/// The number of bins of all experiments of a page together, and of one at most and at least: some
/// 40 bytes for each bin and line.
const ALL_BINS: u64 = 6000;
const MOST_BINS: u64 = 300;
const LEAST_BINS: u64 = 60;

const SECOND_NS: u64 = 1_000_000_000;

/// The key of an experiment: its column and its repetition.
type Key<'a> = (Column<'a>, Option<u32>);

/// The samples and events of one experiment, over time.
#[derive(Debug)]
pub(crate) struct Timeline<'a> {
    pub column: Column<'a>,
    pub repetition: Option<u32>,
    /// The width of the bins, nanoseconds.
    pub bin_ns: u64,
    /// The end of the clock, nanoseconds.
    pub end_ns: u64,
    /// The lines by name; one bin after the other from 0.
    pub lines: BTreeMap<&'a str, Vec<Option<Bin>>>,
    /// The events, in order of time, without beginnings and ends of jobs.
    pub events: Vec<&'a EventRecord>,
    pub jobs: Vec<Job<'a>>,
}

/// The summary of the samples within one bin.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Bin {
    pub low: f64,
    pub mean: f64,
    pub high: f64,
}

/// The time during which a job ran.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Job<'a> {
    pub name: &'a str,
    pub from_ns: u64,
    pub to_ns: u64,
}

fn key(scope: &Scope) -> Key<'_> {
    (Column::of_scope(scope), scope.repetition)
}

/// All experiments that were sampled, in the order of their first samples.
pub(crate) fn timelines<'a>(
    series: &'a [Series],
    events: &'a [EventRecord],
    measurements: &'a [Measurement],
) -> Vec<Timeline<'a>> {
    let sampled = series.iter().filter(|series| !series.points.is_empty());
    let keys = distinct(sampled.map(|series| key(&series.scope)));
    let experiments = u64::try_from(keys.len()).unwrap_or(u64::MAX).max(1);
    let bins = (ALL_BINS / experiments).clamp(LEAST_BINS, MOST_BINS);
    let one = |own: &Key<'a>| timeline(*own, series, events, measurements, bins);
    keys.iter().map(one).collect()
}

fn timeline<'a>(
    own: Key<'a>,
    series: &'a [Series],
    events: &'a [EventRecord],
    measurements: &'a [Measurement],
    bins: u64,
) -> Timeline<'a> {
    let mut points: BTreeMap<&str, Vec<(u64, f64)>> = BTreeMap::new();
    for series in series.iter().filter(|series| key(&series.scope) == own) {
        let all = points.entry(series.name.as_str()).or_default();
        all.extend(&series.points);
    }
    let mut happened: Vec<&EventRecord> = events
        .iter()
        .filter(|event| key(&event.scope) == own)
        .collect();
    happened.sort_by_key(|event| event.at_ns);
    let ends = points.values().flatten().map(|(at, _)| *at);
    let end_ns = ends.chain(happened.iter().map(|event| event.at_ns)).max();
    let end_ns = end_ns.unwrap_or(0).max(1);
    // Whole seconds, so that all bins hold the same number of samples.
    let seconds = end_ns.div_ceil(bins).div_ceil(SECOND_NS).max(1);
    let bin_ns = seconds.saturating_mul(SECOND_NS);
    let (starts_and_ends, events): (Vec<&EventRecord>, Vec<_>) = happened
        .into_iter()
        .partition(|event| matches!(event.kind.as_str(), "job-start" | "job-end"));
    let (column, repetition) = own;
    Timeline {
        column,
        repetition,
        bin_ns,
        end_ns,
        lines: points
            .into_iter()
            .map(|(name, points)| (name, binned(&points, bin_ns, end_ns)))
            .collect(),
        events,
        jobs: jobs(&starts_and_ends, measurements, own, end_ns),
    }
}

/// Puts samples into bins; a bin without samples is `None`. Points may come in any order.
fn binned(points: &[(u64, f64)], bin_ns: u64, end_ns: u64) -> Vec<Option<Bin>> {
    let count = usize::try_from(end_ns / bin_ns).map_or(0, |last| last + 1);
    let mut bins: Vec<Option<(Bin, usize)>> = vec![None; count];
    for &(at, value) in points {
        let place = usize::try_from(at / bin_ns).unwrap_or(usize::MAX);
        let Some(bin) = bins.get_mut(place) else {
            continue;
        };
        // The mean holds the sum until all samples are in.
        let (own, samples) = bin.get_or_insert((
            Bin {
                low: value,
                mean: 0.0,
                high: value,
            },
            0,
        ));
        own.low = own.low.min(value);
        own.high = own.high.max(value);
        own.mean += value;
        *samples += 1;
    }
    let close = |(bin, samples): (Bin, usize)| Bin {
        mean: bin.mean / samples as f64,
        ..bin
    };
    bins.into_iter().map(|bin| bin.map(close)).collect()
}

/// The bands of jobs: between the events of their start and end, named by the measurement that
/// began within; without events, from the measurements alone.
fn jobs<'a>(
    events: &[&'a EventRecord],
    measurements: &'a [Measurement],
    (column, repetition): Key<'a>,
    end_ns: u64,
) -> Vec<Job<'a>> {
    let own = |m: &&Measurement| {
        column.holds(m) && repetition.is_none_or(|repetition| repetition == m.repetition)
    };
    let measured = || measurements.iter().filter(own);
    let mut all: Vec<Job<'_>> = Vec::new();
    for (place, start) in events.iter().enumerate() {
        if start.kind != "job-start" {
            continue;
        }
        let mut later = events[place + 1..].iter();
        let from_ns = start.at_ns;
        let to_ns = later.next().map_or(end_ns, |event| event.at_ns);
        let within = |m: &&Measurement| (from_ns..=to_ns).contains(&m.started_ns);
        let name = measured().find(within).map_or(&start.text, |m| &m.job);
        all.push(Job {
            name,
            from_ns,
            to_ns,
        });
    }
    if all.is_empty() {
        for m in measured() {
            let job = Job {
                name: &m.job,
                from_ns: m.started_ns,
                to_ns: m.started_ns.saturating_add(m.runtime_ns).min(end_ns),
            };
            let is_another = all.last().is_none_or(|last| last.name != job.name);
            if is_another && job.from_ns <= job.to_ns {
                all.push(job);
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::{Bin, binned, timelines};
    use crate::sample;
    use proptest::prelude::*;

    #[test]
    fn bins_keep_the_ends_and_the_mean_and_gaps_stay_gaps() {
        let points = [(0, 1.0), (1, 5.0), (2, 3.0), (9, 7.0)];
        let found = binned(&points, 3, 9);
        let first = Bin {
            low: 1.0,
            mean: 3.0,
            high: 5.0,
        };
        assert_eq!((found.len(), found[0], found[1]), (4, Some(first), None));
    }

    proptest! {
        #[test]
        fn no_sample_is_lost(points in prop::collection::vec((0_u64..1000, 0.0..1e9_f64), 1..200), width in 1_u64..300) {
            let found = binned(&points, width, 1000);
            let high = found.iter().flatten().map(|bin| bin.high).fold(0.0, f64::max);
            let low = found.iter().flatten().map(|bin| bin.low).fold(f64::MAX, f64::min);
            prop_assert_eq!(high, points.iter().map(|p| p.1).fold(0.0, f64::max));
            prop_assert_eq!(low, points.iter().map(|p| p.1).fold(f64::MAX, f64::min));
            for bin in found.iter().flatten() {
                prop_assert!(bin.low <= bin.mean * (1.0 + 1e-12) && bin.mean <= bin.high * (1.0 + 1e-12));
            }
        }
    }

    #[test]
    fn every_experiment_has_its_own_clock_jobs_and_events() {
        let data = sample::bench();
        let all = timelines(&data.series, &data.events, &data.measurements);
        assert_eq!(all.len(), 12);
        let first = &all[0];
        assert_eq!(
            (first.column.subject, first.repetition),
            ("md-raid1", Some(0))
        );
        assert_eq!(first.jobs.len(), 15);
        assert_eq!(first.jobs[1].name, "seqwrite");
        let kinds: Vec<_> = first
            .events
            .iter()
            .map(|event| event.kind.as_str())
            .collect();
        assert_eq!(
            kinds,
            ["fail", "remove", "insert", "sync-start", "sync-end"]
        );
        assert!(first.lines["sync.percent"].first().unwrap().is_none());
    }

    #[test]
    fn eighteen_hours_become_a_few_hundred_bins() {
        let mut data = sample::bench();
        data.series.truncate(1);
        data.series[0].points = (0..64_800).map(|s| (s * 1_000_000_000, 1e8)).collect();
        let all = timelines(&data.series, &[], &[]);
        assert_eq!(all[0].bin_ns, 216_000_000_000);
        assert_eq!(all[0].lines.values().next().unwrap().len(), 300);
    }

    #[test]
    fn a_job_that_outlives_the_last_sample_has_a_band() {
        let mut data = sample::bench();
        data.series.truncate(1);
        data.series[0].points = (0..60).map(|s| (s * 1_000_000_000, 1e8)).collect();
        let scope = &data.series[0].scope;
        data.measurements.retain(|m| scope.covers(m));
        data.measurements.truncate(1);
        data.measurements[0].started_ns = 0;
        data.measurements[0].runtime_ns = 60_000_000_000;
        let all = timelines(&data.series, &[], &data.measurements);
        let band = &all[0].jobs[0];
        assert_eq!((band.from_ns, band.to_ns), (0, 59_000_000_000));
    }
}
