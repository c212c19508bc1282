//! The units of rows' figures.
//!
//! One rule for the whole page: operations per second for small blocks and for operations that move
//! no bytes, bytes per second for all others ([`raidlab_store::Measurement::metric`]). Bytes are
//! printed in MB/s of 10^6 bytes, except for suites whose source prints KiB/s, so that their rows
//! can be compared with it. Background work is measured in seconds, where less is better, and the
//! share of its rate that a job keeps meanwhile in percent.

use super::standing::Better;
use crate::format::figure;
use raidlab_store::{Measurement, Metric, Operation};
use raidlab_units::distinct;

/// Suites whose source prints KiB/s: the 2015 comparison of mirrors quotes
/// fio's "KB/s", which are of 1024 bytes.
const KIBIBYTE_SUITES: [&str; 1] = ["mirror-2015"];

/// The unit of a row's figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rate {
    /// Reads or writes per second.
    Iops,
    /// Seeks or files per second.
    OperationsPerSecond,
    /// KiB/s, which the 2015 article prints as "KB/s".
    KibibytesPerSecond,
    /// 10^6 bytes per second.
    MegabytesPerSecond,
    /// The duration in seconds; less is better.
    Seconds,
    /// The percentage of the rate without a sync.
    Percent,
}

impl Rate {
    /// The unit of a row with these figures: bytes where any of them has no
    /// operations per second to show.
    pub(crate) fn of_row(found: &[&Measurement]) -> Self {
        let bytes = found.iter().any(|m| m.metric() == Metric::BytesPerSecond);
        let kibibytes = |m: &&Measurement| KIBIBYTE_SUITES.contains(&m.suite.as_str());
        if bytes && found.iter().all(kibibytes) {
            Self::KibibytesPerSecond
        } else if bytes {
            Self::MegabytesPerSecond
        } else if found.iter().all(|m| moves_blocks(m.op)) {
            Self::Iops
        } else {
            Self::OperationsPerSecond
        }
    }

    /// The unit of a row of background work.
    pub(crate) const fn of_background(metric: Metric) -> Self {
        match metric {
            Metric::Seconds => Self::Seconds,
            Metric::KeptPercent => Self::Percent,
            Metric::BytesPerSecond => Self::MegabytesPerSecond,
            Metric::OperationsPerSecond => Self::OperationsPerSecond,
        }
    }

    /// The direction in which its figures are better.
    pub(crate) const fn better(self) -> Better {
        match self {
            Self::Seconds => Better::Less,
            _ => Better::More,
        }
    }

    /// A figure turned so that more is better: for a time its inverse.
    pub(crate) fn goodness(self, value: f64) -> f64 {
        match self.better() {
            Better::More => value,
            Better::Less => 1.0 / value,
        }
    }

    /// The unit's name.
    pub(crate) fn unit(self) -> &'static str {
        match self {
            Self::Iops => "iops",
            Self::OperationsPerSecond => "1/s",
            Self::KibibytesPerSecond => "KiB/s",
            Self::MegabytesPerSecond => "MB/s",
            Self::Seconds => "s",
            Self::Percent => "%",
        }
    }

    /// Whether the unit counts bytes.
    pub(crate) fn is_bytes(self) -> bool {
        self.bytes().is_some()
    }

    /// The number of bytes in one unit.
    fn bytes(self) -> Option<f64> {
        match self {
            Self::Iops | Self::OperationsPerSecond | Self::Seconds | Self::Percent => None,
            Self::KibibytesPerSecond => Some(1024.0),
            Self::MegabytesPerSecond => Some(1e6),
        }
    }

    /// A measurement's figure in this unit.
    pub(crate) fn of(self, m: &Measurement) -> f64 {
        match self {
            Self::Seconds => m.value_of(Metric::Seconds),
            Self::Percent => m.value_of(Metric::KeptPercent),
            _ => self
                .bytes()
                .map_or(m.iops, |bytes| m.bytes_per_second / bytes),
        }
    }

    /// Whether this figure of a measurement, in this unit, is valid: a rate of 0 was not reported,
    /// unless nothing was done. A time may be 0.
    pub(crate) fn tells(self, m: &Measurement, value: f64) -> bool {
        self == Self::Seconds || value > 0.0 || m.did_nothing()
    }

    /// A figure of a measurement for people, `-` where there is none.
    pub(crate) fn words(self, m: &Measurement, value: f64) -> String {
        if self.tells(m, value) {
            figure(value)
        } else {
            "-".to_owned()
        }
    }

    /// A rate in bytes per second, in this unit; `None` for operations.
    pub(crate) fn of_bytes(self, bytes_per_second: f64) -> Option<f64> {
        self.bytes().map(|bytes| bytes_per_second / bytes)
    }

    /// A figure of this unit in MB/s where it counts bytes, so that charts of the same quantity
    /// have one unit.
    pub(crate) fn in_megabytes(self, value: f64) -> f64 {
        self.bytes().map_or(value, |bytes| value * bytes / 1e6)
    }

    /// A rate in iops of `m`'s block size, in this unit.
    pub(crate) fn convert_iops(self, iops: f64, m: &Measurement) -> f64 {
        self.bytes()
            .map_or(iops, |bytes| iops * m.block_size_bytes as f64 / bytes)
    }

    /// The first published figure in this unit, if it has one.
    pub(crate) fn published(self, m: &Measurement) -> Option<f64> {
        let figure = m.published.first()?;
        let rate = figure.bytes_per_second.and_then(|rate| self.of_bytes(rate));
        let rate = rate.unwrap_or_else(|| self.convert_iops(figure.iops, m));
        (rate > 0.0).then_some(rate)
    }
}

fn moves_blocks(op: Operation) -> bool {
    matches!(
        op,
        Operation::Read
            | Operation::Write
            | Operation::Trim
            | Operation::Mixed
            | Operation::RandomRead
            | Operation::RandomWrite
    )
}

/// The units' names in words: `iops or KiB/s`.
pub(crate) fn unit_names(rates: impl Iterator<Item = Rate>) -> String {
    distinct(rates.map(Rate::unit)).join(" or ")
}

/// A note on how to read the units of these rows.
pub(crate) fn units_note(rates: &[Rate]) -> String {
    let has = |rate| rates.contains(&rate);
    let every = if has(Rate::Seconds) {
        "More is better in every unit but s."
    } else {
        "More is better in every unit."
    };
    let mut words = vec![every.to_owned()];
    if has(Rate::Iops) {
        words.push("iops: reads or writes per second, for blocks below 64 KiB.".to_owned());
    }
    if has(Rate::OperationsPerSecond) {
        words.push("1/s: seeks, files or flushes per second.".to_owned());
    }
    if has(Rate::MegabytesPerSecond) {
        words.push("MB/s: 10⁶ bytes per second, whatever unit the tool printed.".to_owned());
    }
    if has(Rate::KibibytesPerSecond) {
        words.push("KiB/s: 1024 bytes per second, as the source of this suite prints.".to_owned());
    }
    if has(Rate::Seconds) {
        words.push("s: how long it took, less is better.".to_owned());
    }
    if has(Rate::Percent) {
        words.push("%: what a job has of its rate without a sync.".to_owned());
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::{Rate, units_note};
    use crate::sample;
    use raidlab_store::Operation;

    #[test]
    fn the_2015_suite_prints_kibibytes_as_its_source() {
        let mut m = sample::cell("md", 0);
        m.block_size_bytes = 128 * 1024;
        m.iops = 10.0;
        m.bytes_per_second = 10.0 * 128.0 * 1024.0;
        m.published[0].iops = 20.0;
        m.published[0].bytes_per_second = None;
        let rate = Rate::of_row(&[&m]);
        assert_eq!((rate, rate.of(&m)), (Rate::KibibytesPerSecond, 1280.0));
        assert_eq!(rate.published(&m), Some(2560.0));
        "quick".clone_into(&mut m.suite);
        let rate = Rate::of_row(&[&m]);
        assert_eq!((rate, rate.of(&m)), (Rate::MegabytesPerSecond, 1.31072));
    }

    #[test]
    fn seeks_are_no_iops_and_their_unit_says_the_direction() {
        let mut m = sample::cell("md", 0);
        m.op = Operation::Seek;
        m.bytes_per_second = 0.0;
        m.block_size_bytes = 0;
        assert_eq!(Rate::of_row(&[&m]), Rate::OperationsPerSecond);
        assert!(units_note(&[Rate::OperationsPerSecond]).starts_with("More is better"));
    }

    /// fio with `unified_rw_reporting=mixed`.
    #[test]
    fn reads_and_writes_told_as_one_are_iops() {
        let mut m = sample::cell("md", 0);
        m.op = Operation::Mixed;
        assert_eq!(Rate::of_row(&[&m]), Rate::Iops);
    }

    #[test]
    fn a_tool_without_operations_puts_the_row_in_bytes() {
        let fio = sample::cell("md", 0);
        let mut dd = sample::cell("zfs", 0);
        dd.iops = 0.0;
        assert_eq!(Rate::of_row(&[&fio]), Rate::Iops);
        assert!(Rate::of_row(&[&fio, &dd]).is_bytes());
    }
}
