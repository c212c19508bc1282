//! The results: a row per job and operation, a column per subject; and every
//! repetition that a figure was made of.

use super::{JobRow, Tone, fitted_mark};
use crate::compute::bound::percent_of_disks;
use crate::compute::doubt::words;
use crate::compute::facts::Facts;
use crate::compute::findings::{Mark, groups, marks};
use crate::compute::fold::outlying;
use crate::compute::rate::Rate;
use crate::compute::standing::{Standing, against_best};
use crate::compute::sync::progress_percent;
use crate::compute::view::{Cell, Row, View};
use crate::data::RunData;
use crate::format::figure;
use raidlab_store::Measurement;
use serde::Serialize;

/// A row of the article's table.
type ResultRow = JobRow<ResultCell>;

/// A subject's figure, its relation to the best, and the sync's progress.
#[derive(Debug, Serialize)]
pub(crate) struct ResultCell {
    pub value: String,
    pub mark: &'static str,
    /// The 95 % interval and number of repetitions, and the range on real disks:
    /// `98.1 to 101, n 3; disks 50.0…200`; empty for one repetition on fitted disks.
    pub spread: String,
    /// Half the interval, percent of the figure, and the band of disks that were not fitted; empty
    /// where there is neither.
    pub half_width: String,
    /// The relation to the best that is not struck out; empty where it is the best itself.
    pub standing: String,
    /// The percentage of the disks' bound; empty where that is not known.
    pub of_disks: String,
    /// The sync's progress, percent; empty where there was no sync, or its progress is not known.
    pub sync: String,
    pub tone: Tone,
    /// Whether the audit struck out the figure.
    pub struck: bool,
    /// The marks of the audit's findings.
    pub marks: Vec<Mark>,
}

/// The article's table in two parts.
#[derive(Debug, Serialize)]
pub(crate) struct ResultTables {
    /// Jobs without a sync.
    pub steady: Vec<ResultRow>,
    /// Jobs during a resync or recovery.
    pub syncing: Vec<ResultRow>,
    /// The background work of the arrays, and the shares of rates that jobs kept meanwhile.
    pub background: Vec<ResultRow>,
    /// Whether any figure without a sync is compared with the disks' bound.
    pub of_disks: bool,
    /// Whether any figure has the band of disks that nobody fitted.
    pub band: bool,
    /// Whether any figure has its interval below it, which widens its column.
    pub spread: bool,
    /// The warnings of each column that apply to every figure in it: they are printed at
    /// its head only.
    pub column_marks: Vec<Vec<Mark>>,
}

/// All rows of the run but those of matrices.
pub(crate) fn results(data: &RunData, view: &View<'_>) -> ResultTables {
    let facts = Facts::new(&data.observations);
    let groups = groups(&data.findings, view);
    let marks_of =
        |row: &Row<'_>, column: usize| marks(&data.findings, &groups, &row.findings[column]);
    let column_marks: Vec<Vec<Mark>> = (0..view.names.len())
        .map(|column| everywhere(view, column, marks_of))
        .collect();
    let row = |row: &Row<'_>| {
        let standings = against_best(&row.valid_values(), row.rate.better());
        let cells = row.cells.iter().zip(standings).enumerate();
        let cells = cells.map(|(column, (cell, standing))| {
            let mut own = result_cell(row, (*cell)?, standing);
            own.marks = marks_of(row, column);
            own.marks
                .retain(|mark| !column_marks[column].contains(mark));
            if let Some(percent) = percent_of_disks(&facts, row, (*cell)?) {
                own.of_disks = format!("{percent:.0}\u{a0}%");
            }
            Some(own)
        });
        JobRow::new(row, cells)
    };
    let (syncing, steady): (Vec<&Row<'_>>, Vec<_>) = view.main_rows().partition(|r| r.has_sync());
    let steady: Vec<ResultRow> = steady.into_iter().map(row).collect();
    let against_disks = |row: &ResultRow| {
        let mut cells = row.cells.iter().flatten();
        cells.any(|cell| !cell.of_disks.is_empty())
    };
    let syncing: Vec<ResultRow> = syncing.into_iter().map(row).collect();
    let background: Vec<ResultRow> = view.background.iter().map(row).collect();
    let mut cells = steady
        .iter()
        .chain(&syncing)
        .chain(&background)
        .flat_map(|row| row.cells.iter().flatten());
    ResultTables {
        of_disks: steady.iter().any(against_disks),
        band: view.all_cells().any(|(_, _, cell)| cell.of_disks.is_some()),
        spread: cells.any(|cell| !cell.spread.is_empty()),
        column_marks: column_marks.clone(),
        steady,
        syncing,
        background,
    }
}

/// The warnings that every cell of a column has.
fn everywhere(
    view: &View<'_>,
    column: usize,
    marks_of: impl Fn(&Row<'_>, usize) -> Vec<Mark>,
) -> Vec<Mark> {
    let mut rows = view.rows.iter().filter(|row| row.cells[column].is_some());
    let mut common = rows
        .next()
        .map_or_else(Vec::new, |row| marks_of(row, column));
    common.retain(|mark| mark.is_warning());
    let mut others = 0;
    for row in rows {
        let own = marks_of(row, column);
        common.retain(|mark| own.contains(mark));
        others += 1;
    }
    // In a single row the mark belongs beside the figure.
    if others == 0 { Vec::new() } else { common }
}

fn result_cell(row: &Row<'_>, cell: Cell<'_>, standing: Option<Standing>) -> ResultCell {
    let sync = row.is_of_job() && row.has_sync();
    let sync = sync.then(|| progress_percent(cell.m)).flatten();
    let (mut spread, mut half_width) = (Vec::new(), Vec::new());
    if row.rate == Rate::Seconds && cell.used == 1 && cell.m.runtime_band_ns > 0 {
        let band = cell.m.runtime_band_ns as f64 / 1e9;
        half_width.push(format!("±{band:.1}\u{a0}s"));
        spread.clone_from(&half_width);
    }
    if cell.used > 1 {
        let (low, high) = cell.interval.unwrap_or((cell.value, cell.value));
        spread.push(format!("{}, n\u{a0}{}", range(low, high), cell.used));
        if low < high && cell.value > 0.0 {
            half_width.push(format!("±{:.1}\u{a0}%", 50.0 * (high - low) / cell.value));
        }
    }
    if let Some(band) = cell.of_disks {
        spread.push(format!("band {}", words(band)));
        half_width.push(format!("({})", words(band)));
    }
    ResultCell {
        value: value_words(row.rate, cell),
        mark: fitted_mark(cell),
        spread: spread.join("; "),
        half_width: half_width.join(" "),
        standing: match (cell.fatal, standing) {
            (true, _) => String::new(),
            (false, None) => "-".to_owned(),
            (false, Some(standing)) => standing.to_string(),
        },
        of_disks: String::new(),
        sync: sync.map_or_else(String::new, |percent| format!("{percent:.0}\u{a0}%")),
        tone: match standing {
            Some(Standing::Best) => Tone::Good,
            Some(Standing::Percent(percent)) if percent < -50.0 => Tone::Bad,
            _ => Tone::Plain,
        },
        struck: cell.fatal,
        marks: Vec::new(),
    }
}

/// The text in place of the interval of repetitions without any spread.
const ALL_EQUAL: &str = "all equal";
/// A figure in words, `640`; for a time that had not ended `> 640, 12 % done`.
fn value_words(rate: Rate, cell: Cell<'_>) -> String {
    let done = cell.m.sync_percent_end;
    let done = done.filter(|_| cell.at_least && cell.m.is_unfinished());
    let done = done.map(|percent| format!(", {percent:.1}\u{a0}% done"));
    words_of(rate, cell.m, (cell.value, cell.at_least)) + &done.unwrap_or_default()
}

/// Formats a figure; for a time that had not ended as a lower bound.
fn words_of(rate: Rate, m: &Measurement, (value, at_least): (f64, bool)) -> String {
    let more = if at_least { ">\u{a0}" } else { "" };
    format!("{more}{}", rate.words(m, value))
}

/// A range in words, `98.1 to 101`; for equal ends only the value.
fn range(low: f64, high: f64) -> String {
    if low < high {
        format!("{} to {}", figure(low), figure(high))
    } else {
        ALL_EQUAL.to_owned()
    }
}

/// All repetitions of a row's column.
#[derive(Debug, Serialize)]
pub(crate) struct RepetitionRow {
    pub label: String,
    pub column: usize,
    pub unit: &'static str,
    /// The figure folded from them, with its interval.
    pub value: String,
    pub interval: String,
    /// The repetitions in the order in which they were measured.
    pub all: Vec<Repetition>,
}

/// One repetition of a cell.
#[derive(Debug, Serialize)]
pub(crate) struct Repetition {
    pub value: String,
    /// Whether it is an outlier; it counts nevertheless.
    pub outlier: bool,
    /// Whether the audit struck out the repetition.
    pub struck: bool,
}

/// All rows and columns that were measured more than once.
pub(crate) fn repetitions(view: &View<'_>) -> Vec<RepetitionRow> {
    let mut all = Vec::new();
    for row in view.all_rows() {
        for (column, cell) in row.cells.iter().enumerate() {
            let measured = &row.repetitions[column];
            let Some(cell) = cell.filter(|_| measured.len() > 1) else {
                continue;
            };
            let values: Vec<f64> = measured.iter().map(|(m, _)| row.rate.of(m)).collect();
            let far = outlying(&values);
            let goes_on = |m: &Measurement| row.rate == Rate::Seconds && m.is_unfinished();
            let repetition = |(place, (m, struck)): (usize, &(&Measurement, bool))| Repetition {
                value: words_of(row.rate, m, (values[place], goes_on(m))),
                outlier: far.contains(&place),
                struck: *struck,
            };
            all.push(RepetitionRow {
                label: row.label.clone(),
                column,
                unit: row.rate.unit(),
                value: words_of(row.rate, cell.m, (cell.value, cell.at_least)),
                interval: cell
                    .interval
                    .map_or_else(|| ALL_EQUAL.to_owned(), |(low, high)| range(low, high)),
                all: measured.iter().enumerate().map(repetition).collect(),
            });
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::{repetitions, results};
    use crate::compute::view::View;
    use crate::sample;
    use raidlab_store::Operation;

    #[test]
    fn a_rate_that_nobody_told_is_no_rate_of_0() {
        let mut data = sample::data();
        data.measurements.clear();
        for (repetition, rate) in [(0, 0.0), (1, 120.0), (2, 120.0)] {
            let mut m = sample::cell("md", 0);
            (m.repetition, m.iops, m.bytes_per_second) = (repetition, rate, 4096.0 * rate);
            data.measurements.push(m.clone());
            if repetition == 0 {
                m.subject = "zfs".to_owned();
                data.measurements.push(m);
            }
        }
        let view = View::new(&data);
        let shown = results(&data, &view).steady;
        let [Some(md), Some(zfs)] = shown[0].cells.as_slice() else {
            panic!("two subjects");
        };
        assert_eq!((md.value.as_str(), md.standing.as_str()), ("120.0", "best"));
        assert_eq!((zfs.value.as_str(), zfs.standing.as_str()), ("-", "-"));
        let repeated = repetitions(&view);
        let all: Vec<&str> = repeated[0].all.iter().map(|one| &*one.value).collect();
        assert_eq!(all, ["-", "120.0", "120.0"]);
    }

    #[test]
    fn a_job_that_did_nothing_in_its_time_has_a_rate_of_0() {
        let mut data = sample::data();
        let mut starved = sample::cell("zfs", 0);
        (starved.iops, starved.bytes_per_second) = (0.0, 0.0);
        (starved.total_ios, starved.total_bytes) = (0, 0);
        data.measurements = vec![sample::cell("md", 0), starved];
        let shown = results(&data, &View::new(&data)).steady;
        let [Some(_), Some(zfs)] = shown[0].cells.as_slice() else {
            panic!("two subjects");
        };
        let words = (zfs.value.as_str(), zfs.standing.as_str());
        assert_eq!(words, ("0.00", "-"));
    }

    #[test]
    fn a_time_that_had_not_ended_is_told_as_one() {
        let mut data = sample::data();
        data.measurements.clear();
        for (repetition, seconds, percent) in [(0, 100, 100.0), (1, 50, 40.0)] {
            let mut m = sample::cell("md", 0);
            (m.op, m.repetition) = (Operation::Recovery, repetition);
            m.runtime_ns = seconds * 1_000_000_000;
            m.sync_percent_end = Some(percent);
            data.measurements.push(m);
        }
        let view = View::new(&data);
        let values = |row: &super::RepetitionRow| {
            let all = row.all.iter().map(|one| one.value.clone());
            let values: Vec<String> = std::iter::once(row.value.clone()).chain(all).collect();
            values.join("; ").replace('\u{a0}', " ")
        };
        assert_eq!(values(&repetitions(&view)[0]), "> 75.0; 100.0; > 50.0");
        let shown = results(&data, &view).background;
        let cell = shown[0].cells[0].as_ref().unwrap();
        assert_eq!(cell.value.replace('\u{a0}', " "), "> 75.0");
    }
}
