//! Pitfalls of printed numbers: units and percents.
//!
//! Claims are what an article printed about a cell. They are compared with the
//! rows, which are computed from bytes and seconds, and with one another.

use crate::case::Case;
use crate::devices::{is_random, tool};
use crate::finding::Ruling;
use crate::rule::Check;
use raidlab_statistics::relative_standard_error;
use raidlab_store::Severity::{Note, Warning};
use raidlab_store::{Measurement, Metric, Operation, Scope, fact, fact::claim_part, fact::rate_of};
use raidlab_units::bytes_in;
use std::collections::{BTreeMap, BTreeSet};

pub(super) const CHECKS: &[(&str, Check)] = &[
    ("T19", Check::Whole(wrong_unit)),
    ("T20", Check::Whole(wrong_percent)),
    ("T21", Check::Whole(too_coarse)),
    ("T22", Check::Rows(within_error)),
    ("T30", Check::Whole(wrong_direction)),
    ("T31", Check::Rows(not_measured)),
];

/// A claim about a row's operation and part.
pub(super) struct Claim<'a> {
    pub(super) value: f64,
    unit: &'a str,
    /// Half a unit of the last printed digit, in the claim's unit.
    rounding: f64,
}

pub(super) fn claim<'a>(case: &Case<'a>, row: &Measurement, what: &str) -> Option<Claim<'a>> {
    let found = case.observation(row, &fact::claim(row.op, &row.part, what))?;
    let text = found.value.trim();
    let value: f64 = text.parse().ok().filter(|value: &f64| value.is_finite())?;
    let decimals = text
        .split_once('.')
        .map_or(0, |(_, digits)| digits.len().min(15));
    Some(Claim {
        value,
        unit: found.unit.trim(),
        rounding: 0.5 * 0.1_f64.powi(i32::try_from(decimals).unwrap_or(0)),
    })
}

/// The number of bytes in a printed unit of rate.
fn unit_bytes(unit: &str) -> Option<f64> {
    bytes_in(unit, 1000.0).filter(|_| unit.contains('B') || unit.starts_with("bytes"))
}

/// Ratios between binary and decimal units.
const UNIT_STEPS: [(f64, &str); 6] = [
    (1.024, "KiB were called KB"),
    (1.048_576, "MiB were called MB"),
    (1.073_741_824, "GiB were called GB"),
    (1.0 / 1.024, "KB were called KiB"),
    (1.0 / 1.048_576, "MB were called MiB"),
    (1.0 / 1.073_741_824, "GB were called GiB"),
];

/// The unit step between a printed rate and a measured one; `Some(None)` where they agree, `None`
/// where neither is certain.
fn unit_step(measured: f64, printed: f64, rounding: f64) -> Option<Option<&'static str>> {
    let tolerance = 0.002 + rounding / printed;
    if !(printed > 0.0 && measured > 0.0 && tolerance < 0.01) {
        return None;
    }
    let ratio = measured / printed;
    if (ratio - 1.0).abs() < tolerance {
        return Some(None);
    }
    let step = UNIT_STEPS
        .iter()
        .find(|(step, _)| (ratio / step - 1.0).abs() < tolerance);
    step.map(|(_, words)| Some(*words))
}

fn wrong_unit(case: &Case<'_>, ruling: &mut Ruling) {
    let mut groups: BTreeMap<_, Vec<(&Measurement, Option<&str>, String)>> = BTreeMap::new();
    for row in case
        .evidence
        .rows
        .iter()
        .filter(|row| row.bytes_per_second > 0.0)
    {
        let key = (row.sequence, row.op, row.part.as_str());
        let printed = claim(case, row, claim_part::VALUE).and_then(|claim| {
            let unit = unit_bytes(claim.unit)?;
            let text = format!("{} {}", claim.value, claim.unit);
            Some((claim.value * unit, claim.rounding * unit, text))
        });
        let by_tool = case
            .number(row, fact::DD_PRINTED_BYTES_PER_SECOND)
            .map(|rate| {
                // The value is decoded and its printed digits are not known: three, as dd prints.
                (rate, rate * 0.002, format!("{rate:.0} bytes/s"))
            });
        let by_fio = case
            .number(row, &fact::fio_printed(row.op, rate_of::BYTES))
            .map(|rate| (rate, rate * 0.002, format!("{rate:.0} bytes/s")));
        // What dd and fio printed is kept only where it is not what they counted.
        let counted = [fact::DD_RECORDS_OUT_WHOLE, fact::FIO_ERROR];
        let counted = counted.iter().any(|name| case.text(row, name).is_some());
        if counted && printed.is_none() && by_tool.is_none() && by_fio.is_none() {
            let rows = groups.entry(key).or_default();
            rows.push((row, None, String::new()));
        }
        if case.text(row, &fact::fio_option("kb_base")) == Some("1000") {
            ruling.row(Warning, row, "kb_base=1000: `4k` are 4000 bytes".to_owned());
        }
        for (rate, rounding, text) in [printed, by_tool, by_fio].into_iter().flatten() {
            if let Some(step) = unit_step(row.bytes_per_second, rate, rounding) {
                ruling.judged();
                groups.entry(key).or_default().push((row, step, text));
            }
        }
    }
    for rows in groups.values() {
        let kinds: BTreeSet<&Option<&str>> = rows.iter().map(|(_, step, _)| step).collect();
        for (row, step, text) in rows {
            let Some(words) = step else {
                continue;
            };
            if kinds.len() > 1 {
                let bytes = row.bytes_per_second;
                ruling.row(
                    Warning,
                    row,
                    format!("{text} is {bytes:.0} bytes/s: {words}"),
                );
            } else {
                let text = format!("{words}, alike for all that is compared");
                ruling.scope(Note, Scope::default(), text);
            }
        }
    }
    ruling.need(
        None::<()>,
        "claim.<op>.value in a unit of bytes, or dd's printed rate",
    );
}

impl Claim<'_> {
    /// The claim's value in a unit; `None` where its own unit is of another kind.
    fn in_unit(&self, unit: &str) -> Option<f64> {
        match (unit_bytes(self.unit), unit_bytes(unit)) {
            _ if self.unit == unit => Some(self.value),
            (Some(own), Some(wanted)) => Some(self.value * own / wanted),
            _ => None,
        }
    }
}

/// The printed values of each job, operation and part.
fn printed_values<'a>(case: &Case<'a>) -> BTreeMap<(u32, Operation, &'a str), Vec<Claim<'a>>> {
    let mut printed: BTreeMap<_, Vec<Claim<'_>>> = BTreeMap::new();
    for row in case.evidence.rows {
        let key = (row.sequence, row.op, row.part.as_str());
        let value = claim(case, row, claim_part::VALUE);
        printed.entry(key).or_default().extend(value);
    }
    printed
}

fn wrong_percent(case: &Case<'_>, ruling: &mut Ruling) {
    let printed = printed_values(case);
    for row in case.evidence.rows {
        let percent = claim(case, row, claim_part::PERCENT);
        let Some(percent) = ruling.need(percent, "claim.<op>.percent") else {
            continue;
        };
        let value = claim(case, row, claim_part::VALUE);
        let Some(value) = ruling.need(value, "claim.<op>.value") else {
            continue;
        };
        let base = claim(case, row, claim_part::BASE).map(|base| base.value);
        let key = (row.sequence, row.op, row.part.as_str());
        let best = || {
            let all = printed.get(&key)?.iter();
            all.filter_map(|one| one.in_unit(value.unit))
                .reduce(f64::max)
        };
        let base = base.or_else(best).filter(|base| *base > 0.0);
        let Some(base) = base else {
            continue;
        };
        ruling.judged();
        let real = (value.value / base - 1.0) * 100.0;
        let miss = (percent.value - real).abs();
        if miss <= percent.rounding * 1.1 {
            continue;
        }
        let severity = if miss >= 2.0 { Warning } else { Note };
        let mut text = format!(
            "{} against {base} is {real:+.1} %, printed {:+} %",
            value.value, percent.value
        );
        if (percent.value - value.value / base * 100.0).abs() <= 1.0 {
            text += "; that is the ratio, not the change";
        }
        ruling.row(severity, row, text);
    }
}

/// The fewest I/Os of which one is at most a quarter of a percent.
const LEAST_IOS: u64 = 400;

fn too_coarse(case: &Case<'_>, ruling: &mut Ruling) {
    for row in case.evidence.rows.iter().filter(|row| row.total_ios > 0) {
        ruling.judged();
        // Rates of large blocks are counted in bytes.
        if row.metric() == Metric::OperationsPerSecond && row.total_ios < LEAST_IOS {
            let ios = row.total_ios;
            let step = 100.0 / ios as f64;
            ruling.row(Warning, row, format!("{ios} I/Os: one is {step:.2} %"));
        }
        let Some(printed) = claim(case, row, claim_part::VALUE) else {
            continue;
        };
        if !matches!(printed.unit, "KB/s" | "KiB/s" | "kB/s") || row.bytes_per_second <= 0.0 {
            continue;
        }
        let block = row.block_size_bytes as f64 / 1024.0;
        let whole = row.iops.floor() * block;
        let miss = row.bytes_per_second / 1024.0 / whole - 1.0;
        if whole > 0.0 && printed.value == whole && miss > 0.001 {
            let iops = row.iops.floor();
            let text = format!(
                "{whole} is {iops:.0} x {block}; {:.2} % were cut off",
                miss * 100.0
            );
            ruling.row(Note, row, text);
        }
    }
}

fn within_error(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) -> Option<()> {
    if !is_random(row) {
        return None;
    }
    let percent = claim(case, row, claim_part::PERCENT);
    let percent = ruling.need(percent, "claim.<op>.percent")?.value;
    // The times of one I/O after the other vary about as much as their mean: c = 1.
    let error = relative_standard_error(row.total_ios, 1.0);
    let error = ruling.need(error, "the number of I/Os")?;
    ruling.judged();
    let reach = 2.0 * std::f64::consts::SQRT_2 * error * 100.0;
    if percent != 0.0 && percent.abs() < reach {
        let ios = row.total_ios;
        let text = format!("{percent:+} % of {ios} I/Os, chance gives up to {reach:.1} %");
        ruling.row(Warning, row, text);
    }
    Some(())
}

fn wrong_direction(case: &Case<'_>, ruling: &mut Ruling) {
    for row in case.evidence.rows {
        let Some(claim) = claim(case, row, claim_part::VALUE) else {
            continue;
        };
        ruling.judged();
        if matches!(claim.unit, "s" | "sec" | "secs" | "seconds" | "ms") && row.iops > 0.0 {
            let text = format!(
                "{} printed in {}, it is {} per second",
                claim.value, claim.unit, row.iops
            );
            ruling.row(Warning, row, text);
        }
    }
    for rows in case.compared() {
        let values = || {
            rows.iter()
                .map(|row| row.value())
                .filter(|value| *value > 0.0)
        };
        let best = values().fold(0.0, f64::max);
        let worst = values().fold(f64::INFINITY, f64::min);
        for row in &rows {
            let name = fact::claim(row.op, &row.part, claim_part::WINNER);
            let Some(winner) = ruling.need(case.flag(row, &name), "claim.<op>.winner") else {
                continue;
            };
            ruling.judged();
            if winner && row.value() > 0.0 && row.value() <= worst && best > worst {
                let text = format!(
                    "called best with {:.1}, the best has {best:.1}",
                    row.value()
                );
                ruling.row(Warning, row, text);
            }
        }
    }
}

/// Finds a rate that dd or fio printed where bytes, requests and time give another one.
fn misprinted_by_tool(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) {
    let fio = |what| case.number(row, &fact::fio_printed(row.op, what));
    let bytes = case.number(row, fact::DD_PRINTED_BYTES_PER_SECOND);
    let bytes = bytes.or_else(|| fio(rate_of::BYTES));
    let rates = [
        (bytes, row.bytes_per_second, "bytes/s"),
        (fio(rate_of::REQUESTS), row.iops, "requests per second"),
    ];
    for (printed, measured, unit) in rates {
        let Some(printed) = printed.filter(|printed| *printed > 0.0 && measured > 0.0) else {
            continue;
        };
        ruling.judged();
        let by_unit = unit == "bytes/s" && unit_step(measured, printed, printed * 0.005).is_some();
        let off = (printed / measured - 1.0) * 100.0;
        if off.abs() > 2.0 && !by_unit {
            let tool = tool(row);
            let text =
                format!("{tool} printed {printed:.0} {unit}, {off:+.1} % off what it counted");
            ruling.row(Warning, row, text);
        }
    }
}

fn not_measured(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) -> Option<()> {
    misprinted_by_tool(case, row, ruling);
    let printed = claim(case, row, claim_part::VALUE);
    let printed = ruling.need(printed, "claim.<op>.value")?;
    let (measured, value, rounding) = match unit_bytes(printed.unit) {
        Some(unit) => (
            row.bytes_per_second,
            printed.value * unit,
            printed.rounding * unit,
        ),
        // Whole numbers of I/Os may have been rounded or cut off.
        None if matches!(printed.unit, "1/s" | "iops" | "IOPS") => {
            (row.iops, printed.value, printed.rounding * 2.0)
        }
        None => return None,
    };
    if measured <= 0.0 || value <= 0.0 {
        return None;
    }
    ruling.judged();
    let off = (value / measured - 1.0) * 100.0;
    let bytes = unit_bytes(printed.unit).is_some();
    let by_unit = bytes && unit_step(measured, value, rounding).is_some();
    let tolerance = f64::max(2.0, rounding / measured * 100.0);
    if off.abs() > tolerance && !by_unit {
        let text = format!(
            "printed {} {}, {off:+.1} % off",
            printed.value, printed.unit
        );
        ruling.row(Warning, row, text);
    }
    Some(())
}
