//! Comparison of two figures: whether their difference can be told from chance.
//!
//! Repetitions are the sample. A cell measured once is judged by its one-second series, as batch
//! means, where that has enough samples: they show how steady the rate was during that one job, but
//! not how another start would differ. Over a class of several rows the score of a repetition is
//! the geometric mean of its figures.

use super::fold::stream;
use super::rate::Rate;
use super::standing::Better;
use super::view::Row;
use raidlab_random::Stream;
use raidlab_statistics::{
    Comparison, Confidence, Direction, Interval, Measured, Question, Sample, batch_means,
    compare_measured, compare_samples,
};
use raidlab_store::fact::series as names;
use raidlab_store::{Measurement, Metric, Series};
use std::collections::BTreeSet;

/// The data behind a figure.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Side {
    /// One value per repetition.
    pub values: Vec<f64>,
    /// The mean of the series with its interval, for a cell measured once.
    pub series: Option<Measured>,
}

impl Side {
    /// The data of a row's column: the repetitions that are not struck out.
    pub(crate) fn of_row(row: &Row<'_>, column: usize, series: &[Series]) -> Self {
        let kept: Vec<&Measurement> = row.kept(column).collect();
        Self::of_measurements(row.rate, &kept, series)
    }

    /// The data of repetitions of one cell.
    pub(crate) fn of_measurements(rate: Rate, kept: &[&Measurement], series: &[Series]) -> Self {
        Self {
            values: kept.iter().map(|m| rate.of(m)).collect(),
            series: match kept {
                [m] => of_series(rate, m, series),
                _ => None,
            },
        }
    }

    /// The scores of a column over several rows: a repetition counts where every row has it.
    pub(crate) fn of_class(rows: &[&Row<'_>], column: usize, series: &[Series]) -> Self {
        if let [row] = rows {
            return Self::of_row(row, column, series);
        }
        let repetitions: BTreeSet<u32> = rows
            .iter()
            .flat_map(|row| row.kept(column).map(|m| m.repetition))
            .collect();
        let score = |repetition: u32| {
            let logs: Option<Vec<f64>> = rows
                .iter()
                .map(|row| {
                    let mut kept = row.kept(column);
                    let m = kept.find(|m| m.repetition == repetition)?;
                    Some(row.rate.of(m).ln())
                })
                .collect();
            let logs = logs?;
            Some((logs.iter().sum::<f64>() / logs.len() as f64).exp())
        };
        Self {
            values: repetitions.into_iter().filter_map(score).collect(),
            series: None,
        }
    }
}

/// Compares `other` with `base`; `None` where either has no figure above zero.
pub(crate) fn compare(
    base: &Side,
    other: &Side,
    rate: Rate,
    stream: &mut Stream,
) -> Option<Comparison> {
    let question = Question::new(match (rate, rate.better()) {
        // Who keeps more of its rate need not be faster.
        (Rate::Percent, _) => Direction::HigherIsBetter,
        (_, Better::More) => Direction::MoreIsBetter,
        (_, Better::Less) => Direction::LessIsBetter,
    });
    let above_zero = |side: &Side| side.values.iter().all(|value| *value > 0.0);
    if !above_zero(base) || !above_zero(other) {
        return None;
    }
    if let (Some(base), Some(other)) = (&base.series, &other.series) {
        return Some(compare_measured(base, other, &question));
    }
    let sample = |side: &Side| Sample::new(&side.values).ok();
    Some(compare_samples(
        &sample(base)?,
        &sample(other)?,
        &question,
        stream,
    ))
}

/// The random stream for comparisons that begin at this row.
pub(crate) fn stream_of(seed: u64, row: &Row<'_>) -> Stream {
    stream(seed, row.head).fork("compare", 0)
}

/// A row's figure with the relative interval of the samples taken meanwhile, as batch means. The
/// figure itself stays the tool's: a monitor may see only the members, which move more bytes than
/// the array delivers.
fn of_series(rate: Rate, m: &Measurement, series: &[Series]) -> Option<Measured> {
    let name = match (m.metric(), m.op.only_reads(), m.op.only_writes()) {
        (Metric::BytesPerSecond, true, _) => names::READ_BYTES_PER_SECOND,
        (Metric::BytesPerSecond, _, true) => names::WRITE_BYTES_PER_SECOND,
        (Metric::OperationsPerSecond, true, _) => names::READ_IOPS,
        (Metric::OperationsPerSecond, _, true) => names::WRITE_IOPS,
        _ => return None,
    };
    let mut all = series.iter();
    let own = all.find(|series| series.name == name && series.scope.covers(m))?;
    let end = m.started_ns.saturating_add(m.runtime_ns);
    // The first and the last second are cut by the job's own edges.
    let within = own
        .points
        .iter()
        .filter(|(at, _)| (m.started_ns..end).contains(at));
    let values: Vec<f64> = within.map(|(_, value)| *value).collect();
    let inner = values.get(1..values.len().saturating_sub(1))?;
    let found = batch_means(&Sample::new(inner).ok()?, Confidence::NINETY_FIVE)?;
    let value = rate.of(m);
    let scale = value / found.mean;
    let interval = Interval {
        low: found.interval.low * scale,
        high: found.interval.high * scale,
        confidence: found.interval.confidence,
    };
    let usable = scale.is_finite() && scale > 0.0;
    usable.then_some(Measured { value, interval })
}

#[cfg(test)]
mod tests {
    use super::{Rate, Side, compare, names, stream_of};
    use crate::compute::fold::stream;
    use crate::compute::view::View;
    use crate::data::RunData;
    use crate::sample;
    use raidlab_store::{Scope, Series};

    fn answer(data: &RunData, row: usize, base: usize, other: usize) -> String {
        let view = View::new(data);
        let row = &view.rows[row];
        let side = |column| Side::of_row(row, column, &data.series);
        let mut stream = stream_of(data.run.seed, row);
        let found = compare(&side(base), &side(other), row.rate, &mut stream);
        found.map_or_else(String::new, |found| found.to_string())
    }

    #[test]
    fn repetitions_decide_and_a_single_one_does_not() {
        let mut data = sample::bench();
        insta::assert_snapshot!(answer(&data, 2, 0, 3));
        data.series.clear();
        data.measurements.retain(|m| m.repetition == 0);
        insta::assert_snapshot!(
            answer(&data, 2, 0, 3), @"cannot tell: 1 repetition each");
    }

    #[test]
    fn the_series_of_a_single_repetition_answers_for_it() {
        let mut data = sample::bench();
        data.measurements.retain(|m| m.repetition == 0);
        insta::assert_snapshot!(answer(&data, 0, 0, 3));
    }

    #[test]
    fn a_class_is_scored_by_repetition() {
        let data = sample::bench();
        let view = View::new(&data);
        let rows: Vec<_> = view
            .rows
            .iter()
            .filter(|row| row.head.class == "random-read")
            .collect();
        let side = Side::of_class(&rows, 0, &data.series);
        assert_eq!(side.values.len(), 3);
        let firsts: f64 = rows
            .iter()
            .map(|row| row.repetitions[0][0].0.iops.ln())
            .sum();
        assert!((side.values[0] - (firsts / rows.len() as f64).exp()).abs() < 1e-9);
    }

    /// Who keeps more of its rate during a rebuild is not faster for that.
    #[test]
    fn a_share_is_higher_and_a_rate_is_faster() {
        let side = |percent: f64| Side {
            values: [0.0, 1.0, 2.0].map(|more| percent + more).to_vec(),
            series: None,
        };
        let words = |rate| {
            let row = sample::cell("md", 0);
            let found = compare(&side(50.0), &side(90.0), rate, &mut stream(2, &row));
            found.expect("figures").to_string()
        };
        assert!(words(Rate::Percent).contains(" % higher ("));
        assert!(words(Rate::Iops).contains(" % faster ("));
        assert!(words(Rate::Seconds).contains(" % higher ("));
    }

    #[test]
    fn a_series_answers_in_the_unit_of_its_row() {
        let mut m = sample::cell("md", 0);
        (m.started_ns, m.runtime_ns) = (0, 60_000_000_000);
        let points = (0..60).map(|second| (second * 1_000_000_000, 100.0 + (second % 2) as f64));
        let series = Series {
            scope: Scope::of(&m),
            name: names::READ_IOPS.to_owned(),
            unit: "1/s".to_owned(),
            points: points.collect(),
        };
        let side = Side::of_measurements(Rate::MegabytesPerSecond, &[&m], &[series]);
        let measured = side.series.unwrap();
        assert_eq!(measured.value, side.values[0]);
        assert!(measured.interval.contains(measured.value));
    }
}
