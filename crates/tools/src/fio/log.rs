//! The logs that fio writes beside its result: `write_bw_log` and its kin.
//!
//! A line is `time, value, direction, block size`, in later versions with
//! `offset` behind it, and on demand priority (`log_prio`) and the time of issue
//! (`log_issue_time`, 3.42); time is in milliseconds. With
//! `log_window_value=both` the highest value of a window stands behind the
//! mean, which the count of columns alone does not tell: the caller knows
//! whether it asked for that. Rates are in KiB/s, latencies in
//! nanoseconds since 2.99 and in microseconds before. A line that stands for a
//! window has block size and offset 0. Histograms (`_clat_hist`) are not read:
//! `json+` has the same numbers for the whole job.

use super::version_numbers;
use crate::Operation;
use crate::error::ParseError;
use crate::number::finite;
use crate::result::{Point, Series, SeriesKind};

/// What the reader of a log must know beside its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogUnits<'a> {
    /// What was logged.
    pub kind: SeriesKind,
    /// fio's version: `3.33`.
    pub version: &'a str,
    /// Whether each line has a mean and a highest value
    /// (`log_window_value=both`).
    pub both_values: bool,
}

impl<'a> LogUnits<'a> {
    /// The kind from a log's file name: `x_bw.1.log`, `x_clat.log`. `None` for
    /// histograms and other files.
    #[must_use]
    pub fn of_file(name: &str, version: &'a str) -> Option<Self> {
        let stem = name.strip_suffix(".log")?;
        let stem = match stem.rsplit_once('.') {
            Some((before, job)) if job.bytes().all(|byte| byte.is_ascii_digit()) => before,
            _ => stem,
        };
        let (_, kind) = stem.rsplit_once('_')?;
        let kind = match kind {
            "bw" => SeriesKind::BytesPerSecond,
            "iops" => SeriesKind::OperationsPerSecond,
            "slat" => SeriesKind::SubmissionLatency,
            "clat" => SeriesKind::CompletionLatency,
            "lat" => SeriesKind::TotalLatency,
            _ => return None,
        };
        Some(Self {
            kind,
            version,
            both_values: false,
        })
    }

    /// What one step of a value is worth in the series' unit.
    fn factor(&self) -> f64 {
        match self.kind {
            SeriesKind::BytesPerSecond => 1024.0,
            SeriesKind::OperationsPerSecond => 1.0,
            _ if version_numbers(self.version).is_some_and(|version| version < (2, 99)) => 1000.0,
            _ => 1.0,
        }
    }
}

/// Reads a log. An empty one has no points.
///
/// # Errors
/// Where a line has too few columns or a column that is no number; the last
/// line may be cut off, as when fio was killed.
pub fn parse_log(text: &str, units: LogUnits<'_>) -> Result<Series, ParseError> {
    let mut series = Series {
        kind: units.kind,
        job: None,
        points: Vec::new(),
    };
    let mut lines = text.lines().enumerate().peekable();
    while let Some((index, line)) = lines.next() {
        if line.trim().is_empty() {
            continue;
        }
        let is_cut = lines.peek().is_none() && !text.ends_with('\n');
        match point(line, units) {
            Ok(point) => series.points.push(point),
            Err(_) if is_cut => {}
            Err(expected) => return Err(ParseError::line(index, expected, line)),
        }
    }
    Ok(series)
}

fn point(line: &str, units: LogUnits<'_>) -> Result<Point, &'static str> {
    let columns: Vec<&str> = line.split(',').map(str::trim).collect();
    let shift = usize::from(units.both_values);
    if columns.len() < 4 + shift {
        return Err("at least four columns: time, value, direction, block size");
    }
    let value = |place: usize| {
        finite(columns[place])
            .map(|value| value * units.factor())
            .ok_or("a number as value")
    };
    let count = |place: usize| {
        columns
            .get(place)
            .and_then(|column| column.parse::<u64>().ok())
    };
    let time_ms = count(0).ok_or("whole milliseconds as time")?;
    let operation = match columns[2 + shift] {
        "0" => Operation::Read,
        "1" => Operation::Write,
        "2" => Operation::Trim,
        "3" => Operation::Sync,
        _ => return Err("0, 1, 2 or 3 as direction"),
    };
    let block_size = count(3 + shift).ok_or("whole bytes as block size")?;
    Ok(Point {
        time_ns: time_ms.saturating_mul(1_000_000),
        value: value(1)?,
        highest: if units.both_values {
            Some(value(2)?)
        } else {
            None
        },
        operation: Some(operation),
        block_size_bytes: Some(block_size).filter(|&size| size > 0),
        offset_bytes: count(4 + shift).filter(|_| block_size > 0),
    })
}

#[cfg(test)]
mod tests {
    use super::{LogUnits, parse_log};
    use crate::result::{Point, SeriesKind};
    use crate::{Operation, ParseError};

    fn units(file: &str) -> LogUnits<'static> {
        LogUnits::of_file(file, "3.33").expect(file)
    }

    #[test]
    fn columns_are_read_by_their_count() {
        // As in this project's own runs of fio 2.1.14, 3.33 and 3.42.
        let cases = [
            ("71, 95707, 1, 0, 0", None, None),
            ("0, 219196, 1, 4096", Some(4096), None),
            ("0, 219196, 1, 4096, 45056", Some(4096), Some(45056)),
            ("0, 219196, 1, 4096, 45056, 0x0000", Some(4096), Some(45056)),
            (
                "0, 219196, 1, 4096, 45056, 0x0000, 17",
                Some(4096),
                Some(45056),
            ),
        ];
        for (line, block_size_bytes, offset_bytes) in cases {
            let series = parse_log(line, units("x_clat.1.log")).expect(line);
            let point = series.points[0];
            assert_eq!(point.operation, Some(Operation::Write));
            assert_eq!(
                (point.block_size_bytes, point.offset_bytes),
                (block_size_bytes, offset_bytes)
            );
        }
    }

    #[test]
    fn units_follow_kind_and_version() {
        let value = |units| parse_log("5, 3, 0, 0\n", units).expect("a line").points[0].value;
        assert_eq!(value(units("x_bw.log")), 3072.0);
        assert_eq!(value(units("x_iops.12.log")), 3.0);
        assert_eq!(value(units("x_lat.1.log")), 3.0);
        let old = LogUnits::of_file("a_slat.1.log", "2.21").expect("a log");
        assert_eq!(value(old), 3000.0);
        assert_eq!(LogUnits::of_file("x_clat_hist.1.log", "3.33"), None);
        let both = LogUnits {
            both_values: true,
            ..units("x_lat.1.log")
        };
        assert_eq!(
            parse_log("1000, 5, 9, 2, 0, 0\n", both)
                .expect("a line")
                .points,
            [Point {
                time_ns: 1_000_000_000,
                value: 5.0,
                highest: Some(9.0),
                operation: Some(Operation::Trim),
                block_size_bytes: None,
                offset_bytes: None,
            }]
        );
    }

    #[test]
    fn only_the_last_line_may_be_cut_off() {
        let units = units("x_bw.1.log");
        let series = parse_log("1, 2, 0, 0\n2, 3, 0", units).expect("cut off");
        assert_eq!(series.points.len(), 1);
        assert_eq!(series.kind, SeriesKind::BytesPerSecond);
        let error = parse_log("1, 2, 0\n2, 3, 0, 0\n", units).expect_err("a hole");
        assert!(matches!(error, ParseError::Line { line: 1, .. }), "{error}");
        assert!(parse_log("1, 2, 7, 0\n", units).is_err());
        assert_eq!(parse_log("", units).expect("nothing").points, []);
    }
}
