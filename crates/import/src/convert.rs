//! A tool's result as rows and facts of the store.
//!
//! A job of a suite gives one row for each operation and part, whatever the number of
//! processes that did it: fio's jobs of one group are added up, with the run time of the
//! longest and the latencies of all. Figures that the tool did not report stay 0 or absent,
//! as the row's fields say.

mod observations;
#[cfg(test)]
mod tests;

pub use observations::observations;

use hdrhistogram::Histogram;
use raidlab_store::{Latency, Measurement, Operation};
use raidlab_tools::{Part, ReportedLatency, ToolResult};
use raidlab_units::grouped;

/// The rows of a result. `template` has what the tool does not know: subject, job, sequence; its
/// figures are replaced.
#[must_use]
pub fn rows(result: &ToolResult, template: &Measurement) -> Vec<Measurement> {
    let parts = result.parts.iter().filter(|part| result.tool.is_row(part));
    let groups = grouped(parts.map(|part| ((part.operation, result.tool.part_name(part)), part)));
    groups
        .into_iter()
        .map(|((op, name), parts)| row(result, template, op, name, &parts))
        .collect()
}

fn row(
    result: &ToolResult,
    template: &Measurement,
    op: Operation,
    name: String,
    parts: &[&Part],
) -> Measurement {
    // A sum that is too large is refused by the store.
    let sum = |of: fn(&Part) -> Option<u64>| {
        let counts = parts.iter().filter_map(|part| of(part));
        counts.fold(0, u64::saturating_add)
    };
    let mut row = template.clone();
    row.op = op;
    row.part = name;
    row.tool = tool_name(result);
    row.total_ios = sum(|part| part.total_ios);
    row.total_bytes = sum(|part| part.total_bytes);
    row.runtime_ns = parts
        .iter()
        .filter_map(|part| part.runtime_ns)
        .max()
        .unwrap_or(0);
    let of_time = |count: u64, given: fn(&Part) -> Option<f64>| {
        if row.runtime_ns > 0 && count > 0 {
            per_second(count, row.runtime_ns)
        } else {
            parts
                .iter()
                .filter_map(|part| given(part))
                .fold(0.0, |sum, rate| sum + rate)
        }
    };
    let iops = of_time(row.total_ios, |part| part.operations_per_second);
    let bytes_per_second = of_time(row.total_bytes, |part| part.bytes_per_second);
    row.iops = iops;
    row.bytes_per_second = bytes_per_second;
    if let [part] = parts
        && result.tool.is_one_by_one()
        && !part.has_rate()
    {
        rate_of_one_by_one(part, &mut row);
    }
    // For clones that fio reports together it prints the mean.
    let clones = |part: &Part| result.fact(Some(part.job), "jobs")?.value.number();
    row.cpu_percent = parts
        .iter()
        .filter_map(|part| Some(part.cpu_percent? * clones(part).unwrap_or(1.0)))
        .reduce(|sum, percent| sum + percent);
    if let Some(block) = parts.iter().find_map(|part| part.block_size_bytes) {
        row.block_size_bytes = block;
    }
    row.latency = latency(parts);
    // Each of the processes does one operation after the other.
    if let Some(processes) = parts.iter().filter_map(|part| result.processes(part)).max() {
        row.streams = processes;
        row.queue_depth = processes;
    }
    row
}

/// Computes rates from the mean time of an operation, where only that is reported: one process does
/// one operation after the other.
fn rate_of_one_by_one(part: &Part, row: &mut Measurement) {
    let mean = part.latency().and_then(|latency| latency.mean_ns);
    if let Some(mean) = mean.filter(|mean| *mean > 0.0) {
        row.iops = 1e9 / mean;
        row.bytes_per_second = row.iops * part.block_size_bytes.unwrap_or(0) as f64;
    }
}

/// The tool with its version, `fio 3.33`; without one where the tool prints none.
fn tool_name(result: &ToolResult) -> String {
    if result.version.is_empty() {
        result.tool.name().to_owned()
    } else {
        format!("{} {}", result.tool.name(), result.version)
    }
}

fn per_second(count: u64, time_ns: u64) -> f64 {
    count as f64 * 1e9 / time_ns as f64
}

/// The latencies of all parts together; for a single part with the tool's own percentiles.
fn latency(parts: &[&Part]) -> Latency {
    let given: Vec<&ReportedLatency> = parts.iter().filter_map(|part| part.latency()).collect();
    let histogram = histogram(&given);
    let mut latency = match (&histogram, given.as_slice()) {
        (None, []) => return Latency::default(),
        (Some(histogram), _) => Latency::of(histogram),
        (None, [only]) => Latency {
            p50_ns: percentile(only, 50.0),
            p90_ns: percentile(only, 90.0),
            p99_ns: percentile(only, 99.0),
            p999_ns: percentile(only, 99.9),
            ..Latency::default()
        },
        // Percentiles of some parts do not give those of all.
        (None, _) => Latency::default(),
    };
    // Means and maxima are exact where histograms are not.
    latency.mean_ns = mean_ns(parts).unwrap_or(latency.mean_ns);
    let slowest = given.iter().filter_map(|one| one.max_ns).max();
    latency.max_ns = slowest.unwrap_or(latency.max_ns);
    latency
}

/// The mean of all parts' latencies; `None` where a part has no mean or, with several parts, no
/// number of samples.
fn mean_ns(parts: &[&Part]) -> Option<f64> {
    let timed = parts
        .iter()
        .filter_map(|part| Some((part, part.latency()?)));
    let (mut sum, mut count) = (0.0, 0.0);
    for (part, latency) in timed {
        let mut own = latency.samples.or(part.total_ios).map(|own| own as f64);
        if parts.len() == 1 {
            own = Some(1.0);
        }
        sum += latency.mean_ns? * own?;
        count += own?;
    }
    (count > 0.0).then(|| sum / count)
}

fn percentile(latency: &ReportedLatency, percent: f64) -> u64 {
    let near = |(given, _): &&(f64, u64)| (given - percent).abs() < 1e-6;
    let found = latency.percentiles.iter().find(near);
    found.map_or(0, |(_, time)| *time)
}

/// All bins in one histogram of three digits; `None` where a latency has none.
fn histogram(latencies: &[&ReportedLatency]) -> Option<Histogram<u64>> {
    if latencies.iter().any(|latency| latency.bins.is_empty()) {
        return None;
    }
    let mut histogram = Histogram::<u64>::new(3).ok()?;
    for (time, count) in latencies.iter().flat_map(|latency| &latency.bins) {
        histogram.record_n(*time, *count).ok()?;
    }
    (!histogram.is_empty()).then_some(histogram)
}
