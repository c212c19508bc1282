//! Measurements arranged as the tables have them: a row per job and
//! operation, a column per subject.
//!
//! Where a cell was modelled with several fits, `strict` is its figure and the
//! others only widen its band; without a `strict` the fit that came first is.

use raidlab_store::{Measurement, Operation};
use std::collections::BTreeMap;

/// The fit whose figures are shown; it knows least about what it predicts.
const MAIN_FIT: &str = "strict";

/// I/Os of this size and above are about throughput, smaller ones about
/// operations: the article's 128 KiB streams against its 4 and 8 KiB jobs.
const THROUGHPUT_BLOCK_BYTES: u64 = 64 * 1024;

/// What a row is measured in. More is better in both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rate {
    /// Operations per second.
    Iops,
    /// What the article prints as "KB/s".
    KibibytesPerSecond,
}

impl Rate {
    /// The unit's name.
    pub(crate) fn unit(self) -> &'static str {
        match self {
            Self::Iops => "iops",
            Self::KibibytesPerSecond => "KiB/s",
        }
    }

    /// A measurement's figure in this unit.
    pub(crate) fn of(self, m: &Measurement) -> f64 {
        match self {
            Self::Iops => m.iops,
            Self::KibibytesPerSecond => m.bytes_per_second / 1024.0,
        }
    }

    /// Iops of `m`'s block size in this unit.
    #[expect(clippy::cast_precision_loss, reason = "block sizes are small")]
    pub(crate) fn convert_iops(self, iops: f64, m: &Measurement) -> f64 {
        match self {
            Self::Iops => iops,
            Self::KibibytesPerSecond => iops * m.block_size_bytes as f64 / 1024.0,
        }
    }

    /// The first published figure in this unit.
    pub(crate) fn published(self, m: &Measurement) -> Option<f64> {
        let figure = m.published.first()?;
        Some(match (self, figure.bytes_per_second) {
            (Self::KibibytesPerSecond, Some(rate)) => rate / 1024.0,
            _ => self.convert_iops(figure.iops, m),
        })
    }
}

/// One subject's figure for a row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cell<'a> {
    /// The measurement to show.
    pub m: &'a Measurement,
    /// Lowest and highest iops over the fits; both `m.iops` where there is one.
    pub band_iops: (f64, f64),
}

/// One job's reads or writes.
#[derive(Debug)]
pub(crate) struct Row<'a> {
    /// Any of the row's measurements: what they have in common is read here.
    pub head: &'a Measurement,
    /// The unit of the row.
    pub rate: Rate,
    /// The job's name, with the operation where the job has both: `16 write`.
    pub label: String,
    /// In the order of the subjects.
    pub cells: Vec<Option<Cell<'a>>>,
}

impl<'a> Row<'a> {
    /// The row's figures in its unit.
    pub(crate) fn values(&self) -> Vec<Option<f64>> {
        let value = |cell: &Option<Cell<'a>>| cell.map(|cell| self.rate.of(cell.m));
        self.cells.iter().map(value).collect()
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

/// All rows of a run.
#[derive(Debug)]
pub(crate) struct View<'a> {
    /// In order of appearance.
    pub subjects: Vec<&'a str>,
    /// In the suite's order, reads before writes.
    pub rows: Vec<Row<'a>>,
}

impl<'a> View<'a> {
    /// Arranges measurements.
    pub(crate) fn new(measurements: &'a [Measurement]) -> Self {
        let mut subjects: Vec<&str> = Vec::new();
        let mut rows: BTreeMap<(u32, Operation), Vec<&Measurement>> = BTreeMap::new();
        for m in measurements {
            if !subjects.contains(&m.subject.as_str()) {
                subjects.push(&m.subject);
            }
            rows.entry((m.sequence, m.op)).or_default().push(m);
        }
        let both = |sequence| {
            [Operation::Read, Operation::Write]
                .iter()
                .all(|op| rows.contains_key(&(sequence, *op)))
        };
        let rows = rows
            .iter()
            .filter_map(|((sequence, _), found)| row(found, &subjects, both(*sequence)))
            .collect();
        Self { subjects, rows }
    }

    /// Every cell with the index of its subject, in row order.
    pub(crate) fn cells(&self) -> impl Iterator<Item = (usize, &Row<'a>, Cell<'a>)> {
        self.rows.iter().flat_map(|row| {
            let cells = row.cells.iter().enumerate();
            cells.filter_map(move |(subject, cell)| cell.map(|cell| (subject, row, cell)))
        })
    }

    /// Indexes of the subjects that have a published figure anywhere.
    pub(crate) fn compared(&self) -> Vec<usize> {
        let has_figures = |subject: &usize| {
            let mut rows = self.rows.iter();
            rows.any(|row| row.cells[*subject].is_some_and(|cell| !cell.m.published.is_empty()))
        };
        (0..self.subjects.len()).filter(has_figures).collect()
    }

    /// The classes in the order of their first job.
    pub(crate) fn classes(&self) -> Vec<&'a str> {
        let mut classes: Vec<&str> = Vec::new();
        for row in &self.rows {
            if !classes.contains(&row.head.class.as_str()) {
                classes.push(&row.head.class);
            }
        }
        classes
    }
}

fn row<'a>(found: &[&'a Measurement], subjects: &[&str], both: bool) -> Option<Row<'a>> {
    let head = *found.first()?;
    let label = if both {
        format!("{} {}", head.job, head.op)
    } else {
        head.job.clone()
    };
    let rate = if head.block_size_bytes >= THROUGHPUT_BLOCK_BYTES {
        Rate::KibibytesPerSecond
    } else {
        Rate::Iops
    };
    let cells = subjects.iter().map(|subject| cell(found, subject));
    Some(Row {
        head,
        rate,
        label,
        cells: cells.collect(),
    })
}

fn cell<'a>(found: &[&'a Measurement], subject: &str) -> Option<Cell<'a>> {
    let own = || found.iter().copied().filter(|m| m.subject == subject);
    let m = own().find(|m| m.fit == MAIN_FIT).or_else(|| own().next())?;
    let band_iops = own().fold((m.iops, m.iops), |(low, high), other| {
        (low.min(other.iops), high.max(other.iops))
    });
    Some(Cell { m, band_iops })
}

#[cfg(test)]
mod tests {
    use super::{Rate, View};
    use crate::sample;
    use raidlab_store::Operation;

    #[test]
    fn strict_is_shown_and_the_other_fits_are_the_band() {
        let mut measurements = Vec::new();
        for (fit, iops) in [("joint", 90.0), ("strict", 100.0), ("cost", 110.0)] {
            let mut m = sample::cell("md", 0);
            m.fit = fit.to_owned();
            m.iops = iops;
            measurements.push(m);
        }
        let view = View::new(&measurements);
        let cell = view.rows[0].cells[0].unwrap();
        assert_eq!(cell.m.fit, "strict");
        assert_eq!(cell.band_iops, (90.0, 110.0));
    }

    #[test]
    fn a_job_with_reads_and_writes_has_two_rows_named_so() {
        let mut write = sample::cell("md", 0);
        write.op = Operation::Write;
        let measurements = [write, sample::cell("md", 0), sample::cell("gflash", 1)];
        let view = View::new(&measurements);
        let labels: Vec<_> = view.rows.iter().map(|row| row.label.as_str()).collect();
        assert_eq!(labels, ["1 read", "1 write", "2"]);
        assert_eq!(view.subjects, ["md", "gflash"]);
        assert!(view.rows[0].cells[1].is_none());
    }

    #[test]
    fn large_blocks_are_shown_as_kibibytes_per_second() {
        let mut m = sample::cell("md", 0);
        m.block_size_bytes = 128 * 1024;
        m.iops = 10.0;
        m.bytes_per_second = 10.0 * 128.0 * 1024.0;
        m.published[0].iops = 20.0;
        m.published[0].bytes_per_second = None;
        let measurements = [m];
        let view = View::new(&measurements);
        assert_eq!(view.rows[0].rate, Rate::KibibytesPerSecond);
        assert_eq!(view.rows[0].values(), [Some(1280.0)]);
        let rate = view.rows[0].rate;
        assert_eq!(rate.published(&measurements[0]), Some(2560.0));
    }
}
