//! Folding of a cell's repetitions into one figure.
//!
//! The figure is the median. With several repetitions it has a 95 % interval
//! (bootstrap, Student's t for few values); its random stream is forked from
//! the run's seed by the cell's place, so the same run gives the same page.
//! Repetitions that the audit struck out, and those without a rate, stay out of the figure
//! as long as any other is left; outliers stay in it and are marked.

use super::rate::Rate;
use raidlab_random::Stream;
use raidlab_statistics::{Sample, estimate, outliers};
use raidlab_store::Measurement;

/// A cell's figure, folded from its repetitions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Folded<'a> {
    /// The repetition nearest to the figure.
    pub m: &'a Measurement,
    /// The median, in the row's unit.
    pub value: f64,
    /// The ends of the median's 95 % interval; `None` for one repetition or equal ones.
    pub interval: Option<(f64, f64)>,
    /// The number of repetitions behind the figure, at least 1.
    pub used: usize,
    /// Whether all repetitions are struck out.
    pub fatal: bool,
    /// Whether the figure is a time, and one of the middle repetitions had not ended.
    pub at_least: bool,
}

/// Folds repetitions, each with whether it is struck out; `None` without any.
pub(crate) fn fold<'a>(
    rate: Rate,
    repetitions: &[(&'a Measurement, bool)],
    seed: u64,
) -> Option<Folded<'a>> {
    let fatal = repetitions.iter().all(|(_, struck)| *struck);
    let kept: Vec<&Measurement> = repetitions
        .iter()
        .filter(|(_, struck)| fatal || !struck)
        .map(|(m, _)| *m)
        .collect();
    // A repetition that was too short to be timed has no rate.
    let told = |m: &&Measurement| rate.tells(m, rate.of(m));
    let kept: Vec<&Measurement> = match kept.iter().any(told) {
        true => kept.into_iter().filter(told).collect(),
        false => kept,
    };
    let head = *kept.first()?;
    let values: Vec<f64> = kept.iter().map(|m| rate.of(m)).collect();
    let mut folded = Folded {
        m: head,
        value: values[0],
        interval: None,
        used: kept.len(),
        fatal,
        at_least: rate == Rate::Seconds
            && kept.iter().any(|m| goes_on_in_the_middle(rate, &kept, m)),
    };
    // A store holds finite numbers only, so there is a sample.
    if let (2.., Ok(sample)) = (kept.len(), Sample::new(&values)) {
        let mut stream = stream(seed, head);
        let found = estimate(&sample, &mut stream);
        folded.value = found.value;
        // A rate is never below zero, though Student's t of three values may reach there.
        let interval = found.interval.ok();
        folded.interval = interval.map(|interval| (interval.low.max(0.0), interval.high));
        let far = |m: &Measurement| (rate.of(m) - found.value).abs();
        let nearest = kept.iter().min_by(|a, b| far(a).total_cmp(&far(b)));
        folded.m = nearest.copied().unwrap_or(head);
    }
    Some(folded)
}

/// Whether this repetition had not ended, and the median would change if it had taken longer.
fn goes_on_in_the_middle(rate: Rate, all: &[&Measurement], own: &Measurement) -> bool {
    let shorter = all.iter().filter(|m| rate.of(m) < rate.of(own)).count();
    own.is_unfinished() && shorter <= all.len() / 2
}

/// The random stream of a row's column.
pub(crate) fn stream(seed: u64, m: &Measurement) -> Stream {
    let place = [
        m.host.as_str(),
        &m.subject,
        &m.filesystem,
        m.op.name(),
        &m.part,
    ];
    Stream::new(seed).fork(&place.join("\n"), u64::from(m.sequence))
}

/// The fewest repetitions among which one is called an outlier: with three values drawn from one
/// distribution, a third of all triplets has one "far" from two that happen to be close together.
const LEAST_FOR_OUTLIERS: usize = 5;

/// The positions of the outliers among these figures.
pub(crate) fn outlying(values: &[f64]) -> Vec<usize> {
    if values.len() < LEAST_FOR_OUTLIERS {
        return Vec::new();
    }
    Sample::new(values).map_or_else(|_| Vec::new(), |sample| outliers(&sample))
}

#[cfg(test)]
mod tests {
    use super::{fold, outlying};
    use crate::compute::rate::Rate;
    use crate::sample;
    use raidlab_store::Measurement;

    fn repetitions(iops: &[f64]) -> Vec<Measurement> {
        (0..)
            .zip(iops)
            .map(|(repetition, iops)| {
                let mut m = sample::cell("md", 0);
                (m.repetition, m.iops) = (repetition, *iops);
                m
            })
            .collect()
    }

    #[test]
    fn the_median_stands_for_repetitions_with_its_interval() {
        let rows = repetitions(&[90.0, 101.0, 100.0, 102.0]);
        let kept: Vec<_> = rows.iter().map(|m| (m, false)).collect();
        let folded = fold(Rate::Iops, &kept, 1).unwrap();
        assert_eq!(folded.value, 100.5);
        assert_eq!((folded.m.repetition, folded.used), (1, 4));
        let (low, high) = folded.interval.unwrap();
        assert!(low < 100.5 && 100.5 < high, "{low} {high}");
    }

    #[test]
    fn what_is_struck_out_counts_only_where_nothing_else_is_left() {
        let rows = repetitions(&[9000.0, 100.0, 102.0]);
        let kept: Vec<_> = rows.iter().map(|m| (m, m.repetition == 0)).collect();
        let folded = fold(Rate::Iops, &kept, 1).unwrap();
        assert_eq!((folded.value, folded.used, folded.fatal), (101.0, 2, false));
        let kept: Vec<_> = rows.iter().map(|m| (m, true)).collect();
        let folded = fold(Rate::Iops, &kept, 1).unwrap();
        assert_eq!((folded.value, folded.used, folded.fatal), (102.0, 3, true));
    }

    #[test]
    fn one_repetition_has_no_interval() {
        let rows = repetitions(&[90.0]);
        let folded = fold(Rate::Iops, &[(&rows[0], false)], 1).unwrap();
        assert_eq!((folded.value, folded.interval), (90.0, None));
        assert!(fold(Rate::Iops, &[], 1).is_none());
    }

    #[test]
    fn a_value_far_out_is_named() {
        let mut values = vec![100.0, 101.0, 99.0, 100.5, 99.5, 100.2];
        assert!(outlying(&values).is_empty());
        values[2] = 50.0;
        assert_eq!(outlying(&values), [2]);
        assert!(outlying(&[100.0, 100.1, 150.0]).is_empty());
    }
}
