//! Figures that cannot be true together, and results copied from another run.

use crate::case::Case;
use crate::devices::tool;
use crate::finding::Ruling;
use crate::rule::Check;
use raidlab_store::Severity::{Fatal, Warning};
use raidlab_store::{Cell, Measurement, Scope, fact};
use std::collections::BTreeMap;

pub(super) const CHECKS: &[(&str, Check)] = &[
    ("T35", Check::Rows(contradicts)),
    ("R2", Check::Whole(same_digits)),
];

fn contradicts(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) -> Option<()> {
    let words = case.text(row, fact::CONTRADICTION);
    if let Some(words) = words.filter(|words| !words.is_empty()) {
        ruling.scope(Fatal, Scope::of(row), words.to_owned());
        return Some(());
    }
    if let Some(words) = records_of_dd(case, row, ruling) {
        ruling.row(Fatal, row, words);
    }
    let recorded = row.latency.is_recorded().then_some(());
    if case.number(row, fact::FIO_IN_FLIGHT).is_some() {
        ruling.judged();
    }
    ruling.need(recorded, "latencies, or what dd counted")?;
    ruling.judged();
    let latency = &row.latency;
    let times = [
        ("half", latency.p50_ns),
        ("90 %", latency.p90_ns),
        ("99 %", latency.p99_ns),
        ("99.9 %", latency.p999_ns),
        ("all", latency.max_ns),
    ];
    let known: Vec<(&str, u64)> = times.into_iter().filter(|(_, time)| *time > 0).collect();
    // Percentiles are rounded to a histogram's steps, and the maximum is exact.
    let falls = known.windows(2).find(|pair| {
        let [(_, one), (_, next)] = pair else {
            return false;
        };
        *one as f64 > *next as f64 * 1.05 + 2e3
    });
    let us = |time: u64| time as f64 / 1e3;
    if let Some([(low, one), (high, next)]) = falls {
        let (one, next) = (us(*one), us(*next));
        let text = format!("{low} took at most {one:.1} us, and {high} at most {next:.1}");
        ruling.row(Fatal, row, text);
    }
    if latency.max_ns > 0 && latency.mean_ns > latency.max_ns as f64 * 1.05 + 2e3 {
        let (mean, longest) = (latency.mean_ns / 1e3, us(latency.max_ns));
        let text = format!("the mean of {mean:.1} us is above the longest, {longest:.1}");
        ruling.row(Fatal, row, text);
    }
    Some(())
}

/// Checks dd's counts of records against its bytes.
fn records_of_dd(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) -> Option<String> {
    if tool(row) != "dd" || row.total_bytes == 0 {
        return None;
    }
    let count = |name| case.number(row, name);
    let whole = count(fact::DD_RECORDS_OUT_WHOLE)?;
    let partial = [fact::DD_RECORDS_IN_PARTIAL, fact::DD_RECORDS_OUT_PARTIAL];
    if whole < 1.0 || partial.into_iter().any(|name| count(name) != Some(0.0)) {
        return None;
    }
    ruling.judged();
    let bytes = row.total_bytes as f64;
    let size = bytes / whole;
    let asked = count(fact::JOB_ASKED_SIZE_BYTES).zip(count(&fact::dd_operand("count")));
    let asked = asked.filter(|(_, count)| *count == whole);
    let is_other = asked.is_some_and(|(asked, count)| asked / count != size);
    (is_other || size.fract() != 0.0)
        .then(|| format!("{whole:.0} whole records are no {bytes:.0} bytes"))
}

/// The fewest digits that two results do not share by chance.
const LEAST_DIGITS: u32 = 12;
/// Digits of a mean latency, which tools print with six decimals.
const DIGITS_OF_MEAN: u32 = 6;

/// All figures of a cell that depend on chance, and how many digits they have together.
struct Digits<'a> {
    first: &'a Measurement,
    all: Vec<[u64; 4]>,
    count: u32,
}

/// The number of digits of a number, without the zeros at its end.
fn digits(mut number: u64) -> u32 {
    while number > 0 && number.is_multiple_of(10) {
        number /= 10;
    }
    number.checked_ilog10().map_or(0, |log| log + 1)
}

fn same_digits(case: &Case<'_>, ruling: &mut Ruling) {
    let mut cells: BTreeMap<Cell, Digits<'_>> = BTreeMap::new();
    // Virtual time leaves nothing to chance.
    let by_chance = |row: &&Measurement| matches!(row.bench.as_str(), "host" | "import");
    for row in case.evidence.rows.iter().filter(by_chance) {
        let mean = row.latency.mean_ns;
        let cell = cells.entry(row.cell()).or_insert_with(|| Digits {
            first: row,
            all: Vec::new(),
            count: 0,
        });
        cell.all.push([
            row.total_ios,
            row.total_bytes,
            row.runtime_ns,
            mean.to_bits(),
        ]);
        // The number of requests says nothing where the job ends by size.
        if row.runtime_ns > 0 && mean > 0.0 {
            cell.count += digits(row.runtime_ns) + digits(row.total_ios) + DIGITS_OF_MEAN;
        }
    }
    let mut known: BTreeMap<&[[u64; 4]], &Measurement> = BTreeMap::new();
    for digits in cells.values().filter(|cell| cell.count >= LEAST_DIGITS) {
        let Some(first) = known.get(digits.all.as_slice()) else {
            known.insert(&digits.all, digits.first);
            continue;
        };
        let (subject, job, number) = (&first.subject, &first.job, first.repetition + 1);
        let text = format!("the same figures as job {job} on {subject}, repetition {number}");
        ruling.scope(Warning, Scope::of(digits.first), text);
    }
    if cells
        .values()
        .filter(|cell| cell.count >= LEAST_DIGITS)
        .count()
        > 1
    {
        ruling.judged();
    }
    ruling.need(
        None::<()>,
        "a second result with counts, time and latencies",
    );
}
