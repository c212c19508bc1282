//! Rates during a resync or recovery, against its progress.

use super::view::{Row, View};
use raidlab_store::{Measurement, Operation};

/// A job's sync progress at its start, percent.
///
/// A job of the series that starts after the sync's end has none; if no member is missing then it
/// counts as 100 %, as in the article's chart.
pub(crate) fn progress_percent(m: &Measurement) -> Option<f64> {
    m.sync_percent_start
        .or_else(|| (!m.array_state_start.contains('_')).then_some(100.0))
}

/// The rows that belong to a series during a sync, of all classes that have one.
pub(crate) fn series<'v, 'a>(view: &'v View<'a>) -> Vec<&'v Row<'a>> {
    series_by_class(view).concat()
}

/// The series under sync, class by class: from the first job of a class that started
/// with a sync going on to the class's last, where there are at least two such jobs
/// and all of them are the same load and saw the same sync: only the progress differs.
pub(crate) fn series_by_class<'v, 'a>(view: &'v View<'a>) -> Vec<Vec<&'v Row<'a>>> {
    let syncing = |row: &&Row<'a>| {
        let mut cells = row.cells.iter().flatten();
        cells.any(|cell| cell.m.sync_percent_start.is_some())
    };
    let mut all = Vec::new();
    for class in view.classes() {
        let rows = view.rows.iter().filter(|row| row.head.class == class);
        let several = rows.clone().filter(syncing).count() >= 2;
        let series: Vec<&Row<'_>> = rows.skip_while(|row| !syncing(row)).collect();
        let alike = series.iter().all(|row| load(row) == load(series[0]));
        if several && alike && is_of_one_sync(&series) {
            all.push(series);
        }
    }
    all
}

/// Whether the jobs saw one sync: on no subject does the progress go back from one to the next.
fn is_of_one_sync(series: &[&Row<'_>]) -> bool {
    series.windows(2).all(|pair| {
        let [before, after] = [pair[0], pair[1]].map(|row| row.repetitions.iter());
        before.zip(after).all(|(before, after)| {
            let firsts = before.first().zip(after.first());
            firsts.is_none_or(|((before, _), (after, _))| {
                progress_percent(after) >= progress_percent(before)
            })
        })
    })
}

fn load(row: &Row<'_>) -> (Operation, u64, u32) {
    let head = row.head;
    (head.op, head.block_size_bytes, head.queue_depth)
}

#[cfg(test)]
mod tests {
    use super::{progress_percent, series, series_by_class};
    use crate::compute::view::View;
    use crate::sample;
    use raidlab_store::Operation;

    #[test]
    fn a_finished_sync_is_at_100_percent_and_a_broken_array_nowhere() {
        let mut m = sample::cell("md", 28);
        m.sync_percent_start = Some(92.1);
        assert_eq!(progress_percent(&m), Some(92.1));
        m.sync_percent_start = None;
        assert_eq!(progress_percent(&m), Some(100.0));
        m.array_state_start = "[U_]".to_owned();
        assert_eq!(progress_percent(&m), None);
    }

    /// What a check left of a rate is no part of what a rebuild leaves of it.
    #[test]
    fn two_syncs_are_no_series() {
        let mut measurements: Vec<_> = (0..4).map(|n| sample::cell("md", n)).collect();
        for (m, percent) in measurements.iter_mut().zip([5.0, 60.0, 12.0, 40.0]) {
            (m.op, m.block_size_bytes, m.queue_depth) = (Operation::Read, 4096, 32);
            "reads".clone_into(&mut m.class);
            m.sync_percent_start = Some(percent);
        }
        assert!(series(&View::of_rows(&measurements)).is_empty());
        for (m, percent) in measurements.iter_mut().zip([5.0, 12.0, 40.0, 60.0]) {
            m.sync_percent_start = Some(percent);
        }
        assert_eq!(series(&View::of_rows(&measurements)).len(), 4);
        // One after which a member was missing did not go on.
        measurements[1].sync_percent_start = None;
        "[U_]".clone_into(&mut measurements[1].array_state_start);
        assert!(series(&View::of_rows(&measurements)).is_empty());
    }

    #[test]
    fn a_series_runs_from_the_first_sync_to_the_end_of_its_class() {
        let mut measurements: Vec<_> = (0..5).map(|n| sample::cell("md", n)).collect();
        for m in &mut measurements {
            (m.op, m.block_size_bytes, m.queue_depth) = (Operation::Read, 4096, 32);
        }
        for m in &mut measurements[1..] {
            m.class = "resync".to_owned();
        }
        measurements[2].sync_percent_start = Some(0.0);
        assert!(series(&View::of_rows(&measurements)).is_empty());
        measurements[3].sync_percent_start = Some(50.0);
        let view = View::of_rows(&measurements);
        let labels: Vec<_> = series(&view).iter().map(|row| row.label.clone()).collect();
        assert_eq!(labels, ["3", "4", "5"]);
        drop(view);
        // Of another class it is another series.
        for m in &mut measurements[3..] {
            m.class = "rebuild".to_owned();
            m.sync_percent_start = Some(50.0);
        }
        measurements[1].sync_percent_start = Some(0.0);
        let view = View::of_rows(&measurements);
        let labels: Vec<Vec<_>> = series_by_class(&view)
            .iter()
            .map(|rows| rows.iter().map(|row| row.label.as_str()).collect())
            .collect();
        assert_eq!(labels, [["2", "3"], ["4", "5"]]);
        drop(view);
        for m in &mut measurements[3..] {
            m.class = "resync".to_owned();
        }
        // Of several depths it is a ladder, in a resync as at rest.
        measurements[4].queue_depth = 1;
        assert!(series(&View::of_rows(&measurements)).is_empty());
    }
}
