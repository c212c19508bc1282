//! Measurements arranged as in the tables: a row per job, operation and part of a tool's output, a
//! column per host, subject and file system.
//!
//! Where a cell was modelled with several fits, `strict` is its figure and the
//! others only widen its band; without a `strict` the fit that came first is.
//! Repetitions are one figure, see [`super::fold`].

use super::column::{Column, columns, names};
use super::doubt::around;
use super::fold::fold;
use super::rate::Rate;
use crate::data::RunData;
use raidlab_store::{
    Finding, MAIN_FIT, Measurement, Metric, Operation, Severity,
    published_error_percent as error_percent,
};
use raidlab_units::distinct;
use std::collections::{BTreeMap, BTreeSet};

/// The number of parts from which a job's operation is a matrix with a table of its own, as
/// iozone's file sizes by record sizes.
const MATRIX_PARTS: usize = 4;

/// The bench of imported measurements.
const IMPORT_BENCH: &str = "import";

/// One column's figure for a row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cell<'a> {
    /// The measurement to show: with several repetitions the one nearest to the median.
    pub m: &'a Measurement,
    /// The figure, in the row's unit: with several repetitions the median.
    pub value: f64,
    /// The range around the figure, in the row's unit: the lowest and highest over the fits of a
    /// model, or the 95 % interval over repetitions, widened by the disks' uncertainty; both
    /// `value` where there is none.
    pub band: (f64, f64),
    /// The 95 % interval over repetitions alone, in the row's unit; `None` for one repetition, or equal ones.
    pub interval: Option<(f64, f64)>,
    /// The range of the figure on real disks, where the modelled ones were never fitted.
    pub of_disks: Option<(f64, f64)>,
    /// The number of repetitions behind the figure, at least 1.
    pub used: usize,
    /// Whether the audit struck out the figure.
    pub fatal: bool,
    /// Whether the figure is a time that had not ended.
    pub at_least: bool,
}

/// A row: one job's operation, or one kind of background work.
#[derive(Debug)]
pub(crate) struct Row<'a> {
    /// Any of the row's measurements, for the fields that they have in common.
    pub head: &'a Measurement,
    /// The unit of the row.
    pub rate: Rate,
    /// The job's name, with the operation where the job has several, and the
    /// part where the operation has several: `16 write`.
    pub label: String,
    /// The number of operations of the job.
    pub job_ops: usize,
    /// Whether the row is one cell of a matrix with a table of its own.
    pub in_matrix: bool,
    /// The cells in the order of the columns.
    pub cells: Vec<Option<Cell<'a>>>,
    /// The repetitions of the shown fit in the order of the columns, each with whether the audit
    /// struck it out.
    pub repetitions: Vec<Vec<(&'a Measurement, bool)>>,
    /// The positions of the findings about any repetition, in the order of the
    /// columns, worst first.
    pub findings: Vec<Vec<usize>>,
}

impl<'a> Row<'a> {
    /// The figures that count: those that are not struck out, without times that had not ended.
    pub(crate) fn valid_values(&self) -> Vec<Option<f64>> {
        let counts = |cell: &Cell<'a>| !cell.fatal && !cell.at_least;
        let valid = |cell: &Option<Cell<'a>>| Some(cell.filter(counts)?.value);
        self.cells.iter().map(valid).collect()
    }

    /// The repetitions of a column that are not struck out, have ended, and have a figure.
    pub(crate) fn kept(&self, column: usize) -> impl Iterator<Item = &'a Measurement> {
        let kept = self.repetitions[column].iter();
        let counts = |m: &Measurement| match self.rate {
            Rate::Seconds => !m.is_unfinished(),
            rate => rate.tells(m, rate.of(m)),
        };
        kept.filter(move |(m, struck)| !struck && counts(m))
            .map(|(m, _)| *m)
    }

    /// Whether the row is of a job.
    pub(crate) const fn is_of_job(&self) -> bool {
        !self.head.op.is_background()
    }

    /// Whether the row has the main figure of its measurements: not the rate of a recovery
    /// beside its time.
    pub(crate) fn is_main(&self) -> bool {
        self.is_of_job() || !self.rate.is_bytes()
    }

    /// Whether a resync or recovery ran during the job on any subject.
    pub(crate) fn has_sync(&self) -> bool {
        let syncing = |cell: &Cell<'a>| {
            cell.m.sync_percent_start.is_some()
                || cell
                    .m
                    .published
                    .iter()
                    .any(|figure| figure.sync_percent.is_some())
        };
        self.cells.iter().flatten().any(syncing)
    }
}

/// All rows of a run, arranged.
#[derive(Debug)]
pub(crate) struct View<'a> {
    /// The columns of the run, in order of appearance.
    pub columns: Vec<Column<'a>>,
    /// The columns' short names.
    pub names: Vec<String>,
    /// The rows of jobs, in the suite's order; within a job reads before writes.
    pub rows: Vec<Row<'a>>,
    /// The rows of background work, and of the shares that jobs kept meanwhile.
    pub background: Vec<Row<'a>>,
}

/// The key of a row: the job, the operation, the part; and for background work its metric.
type Key<'a> = (u32, Operation, (u64, u64, &'a str), Option<(usize, Metric)>);

impl<'a> View<'a> {
    /// Arranges a run's measurements into rows and columns.
    pub(crate) fn new(data: &'a RunData) -> Self {
        Self::arranged(&data.measurements, &data.findings, data.run.seed)
    }

    /// Arranges measurements without findings.
    #[cfg(test)]
    pub(crate) fn of_rows(measurements: &'a [Measurement]) -> Self {
        Self::arranged(measurements, &[], 0)
    }

    fn arranged(measurements: &'a [Measurement], findings: &[Finding], seed: u64) -> Self {
        let columns = columns(measurements);
        let mut found: BTreeMap<Key<'_>, Vec<&Measurement>> = BTreeMap::new();
        for m in measurements {
            let mut place = |metric| {
                let key = (m.sequence, m.op, part_order(&m.part), metric);
                found.entry(key).or_default().push(m);
            };
            if m.op.is_background() {
                m.metrics().enumerate().map(Some).for_each(place);
            } else {
                place(None);
            }
        }
        let mut ops: BTreeMap<u32, BTreeSet<Operation>> = BTreeMap::new();
        let mut parts: BTreeMap<(u32, Operation), usize> = BTreeMap::new();
        for (sequence, op, ..) in found.keys() {
            ops.entry(*sequence).or_default().insert(*op);
            *parts.entry((*sequence, *op)).or_default() += 1;
        }
        let rows = found.iter().map(|((sequence, op, _, metric), found)| {
            let head = found[0];
            let parts = parts[&(*sequence, *op)];
            let job_ops = ops[sequence].len();
            let (label, rate) = match metric {
                None => (job_label(head, job_ops, parts), Rate::of_row(found)),
                Some((_, metric)) => (
                    background_label(head, *metric),
                    Rate::of_background(*metric),
                ),
            };
            let mut row = Row {
                head,
                rate,
                label,
                job_ops,
                in_matrix: metric.is_none() && parts >= MATRIX_PARTS,
                cells: Vec::new(),
                repetitions: Vec::new(),
                findings: Vec::new(),
            };
            for column in &columns {
                row.add(column, found, findings, seed);
            }
            row
        });
        let (rows, background) = rows.partition(Row::is_of_job);
        Self {
            rows,
            background,
            names: names(&columns),
            columns,
        }
    }

    /// The rows of jobs, then those of background work.
    pub(crate) fn all_rows(&self) -> impl Iterator<Item = &Row<'a>> + Clone {
        self.rows.iter().chain(&self.background)
    }

    /// All cells of jobs, with the index of the column, in row order.
    pub(crate) fn cells(&self) -> impl Iterator<Item = (usize, &Row<'a>, Cell<'a>)> + Clone {
        self.all_cells().filter(|(_, row, _)| row.is_of_job())
    }

    /// The cells of [`Self::cells`], and those of background work.
    pub(crate) fn all_cells(&self) -> impl Iterator<Item = (usize, &Row<'a>, Cell<'a>)> + Clone {
        self.all_rows().flat_map(|row| {
            let cells = row.cells.iter().enumerate();
            cells.filter_map(move |(subject, cell)| cell.map(|cell| (subject, row, cell)))
        })
    }

    /// What the bands around figures of jobs are: `Shaded: ...`.
    pub(crate) fn band_words(&self, drawn: &str) -> String {
        band_words(drawn, self.cells().map(|(_, _, cell)| cell))
    }

    /// The rows of the main tables and charts.
    pub(crate) fn main_rows(&self) -> impl Iterator<Item = &Row<'a>> + Clone {
        self.rows.iter().filter(|row| !row.in_matrix)
    }

    /// The indexes of the columns that have a published figure. Empty where the run is an import of
    /// those very figures.
    pub(crate) fn compared(&self) -> Vec<usize> {
        let itself = |m: &Measurement| {
            m.bench == IMPORT_BENCH && error_percent(m).is_none_or(|percent| percent == 0.0)
        };
        if self.cells().all(|(_, _, cell)| itself(cell.m)) {
            return Vec::new();
        }
        let has_figures = |subject: &usize| {
            let mut rows = self.rows.iter();
            rows.any(|row| row.cells[*subject].is_some_and(|cell| !cell.m.published.is_empty()))
        };
        (0..self.names.len()).filter(has_figures).collect()
    }

    /// The names of the columns that have a published figure.
    pub(crate) fn compared_names(&self) -> Vec<String> {
        let columns = self.compared().into_iter();
        columns.map(|column| self.names[column].clone()).collect()
    }

    /// The classes in the order of their first job.
    pub(crate) fn classes(&self) -> Vec<&'a str> {
        distinct(self.all_rows().map(|row| row.head.class.as_str()))
    }
}

/// What the bands around these figures are: `Shaded: ...`.
pub(crate) fn band_words<'a>(drawn: &str, cells: impl Iterator<Item = Cell<'a>> + Clone) -> String {
    let any = |has: fn(&Cell<'_>) -> bool| cells.clone().any(|cell| has(&cell));
    let mut parts = Vec::new();
    if any(|cell| cell.used > 1) {
        parts.push("the 95\u{a0}% interval over repetitions");
    }
    if any(|cell| cell.of_disks.is_some()) {
        parts.push("where real disks may be, as these were never fitted");
    }
    if parts.is_empty() {
        parts.push("the band between fits of the disk model");
    }
    format!("{drawn}: {}.", parts.join("; "))
}

impl<'a> Row<'a> {
    /// Adds the cell of the next column.
    fn add(
        &mut self,
        column: &Column<'_>,
        found: &[&'a Measurement],
        findings: &[Finding],
        seed: u64,
    ) {
        let own: Vec<&Measurement> = found.iter().copied().filter(|m| column.holds(m)).collect();
        let main = own.iter().find(|m| m.fit == MAIN_FIT).or(own.first());
        let fit = main.map_or("", |m| m.fit.as_str());
        let shown: Vec<&Measurement> = own.iter().copied().filter(|m| m.fit == fit).collect();
        let mut concerned: Vec<usize> = (0..findings.len())
            .filter(|index| shown.iter().any(|m| findings[*index].covers(m)))
            .collect();
        concerned.sort_by_key(|index| std::cmp::Reverse(findings[*index].severity));
        let struck = |m: &Measurement| {
            let mut fatal = concerned.iter().map(|index| &findings[*index]);
            fatal.any(|finding| finding.severity == Severity::Fatal && finding.covers(m))
        };
        let repetitions: Vec<_> = shown.iter().map(|m| (*m, struck(m))).collect();
        let folded = fold(self.rate, &repetitions, seed);
        self.cells.push(folded.map(|folded| {
            let value = folded.value;
            let over_fits = own.iter().filter(|m| m.fit != fit);
            let fits = over_fits.fold((value, value), |(low, high), other| {
                let other = self.rate.of(other);
                (low.min(other), high.max(other))
            });
            let (mut low, mut high) = folded.interval.unwrap_or(fits);
            let of_disks = around(folded.m, value);
            if let Some(band) = of_disks {
                (low, high) = (low.min(band.0), high.max(band.1));
            }
            Cell {
                m: folded.m,
                value,
                band: (low, high),
                interval: folded.interval,
                of_disks,
                used: folded.used,
                fatal: folded.fatal,
                at_least: folded.at_least,
            }
        }));
        self.repetitions.push(repetitions);
        self.findings.push(concerned);
    }
}

/// A job's name, with the operation where the job has several, and the part where the
/// operation has several.
fn job_label(head: &Measurement, operations: usize, parts: usize) -> String {
    let mut label = head.job.clone();
    if operations > 1 {
        label = format!("{label} {}", head.op);
    }
    if parts > 1 && !head.part.is_empty() {
        label = format!("{label} {}", head.part);
    }
    label
}

/// The label of background work: `recovery`, `recovery 2 rate`, `kept 15 read`.
fn background_label(head: &Measurement, metric: Metric) -> String {
    let is_rate = metric == Metric::BytesPerSecond;
    let rate = if is_rate { "rate" } else { "" };
    let words = [head.op.name(), head.part.as_str(), rate].into_iter();
    words
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// The sort key of a part: `16384k/64k` by file and record size as in iozone's table,
/// others by name.
fn part_order(part: &str) -> (u64, u64, &str) {
    let (file, record) = matrix_sizes(part).unwrap_or((0, 0));
    (file, record, part)
}

/// The two sizes of a part such as `16384k/64k`, bytes.
pub(crate) fn matrix_sizes(part: &str) -> Option<(u64, u64)> {
    let (file, record) = part.split_once('/')?;
    Some((size_bytes(file)?, size_bytes(record)?))
}

fn size_bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" => 1,
        "k" => 1 << 10,
        "m" => 1 << 20,
        "g" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests;
