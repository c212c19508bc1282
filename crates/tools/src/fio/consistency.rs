//! Consistency checks of fio's figures for a job. fio computes all of them from the same counts, so
//! a figure that does not fit was changed afterwards, or is of another job.

use super::jobs::{jobs, text};
use super::several::{TOLERANCE, is_of_several, other_operation, other_size};
use crate::Operation;
use crate::number::{differ, measured};
use crate::result::{LatencyKind, Part, Reported, ReportedLatency, ToolResult};
use raidlab_units::bytes_in;

/// Keeps the rates that fio printed, each with its rounding, where they are not its counts
/// over its time.
pub(super) fn note_printed(
    part: &mut Part,
    bytes: Option<(f64, f64)>,
    requests: Option<(f64, f64)>,
) {
    let own = [part.bytes_per_second, part.operations_per_second];
    let names = [("printed-rate", "bytes/s"), ("printed-iops", "")];
    for ((own, printed), (name, unit)) in own.into_iter().zip([bytes, requests]).zip(names) {
        if let (Some(own), Some((printed, step))) = (own, printed)
            && differ(own, printed, 0.01)
            && (own - printed).abs() > step
        {
            part.note(name, printed, unit);
        }
    }
}

/// Finds figures that cannot be true together, and describes them in words.
pub(super) fn contradictions(result: &ToolResult) -> Vec<String> {
    let parts = result.parts.iter().filter(|part| result.tool.is_row(part));
    let mut all: Vec<String> = parts
        .flat_map(|part| {
            let size = wrong_size(result, part);
            let pattern = wrong_operation(result, part);
            size.into_iter().chain(pattern).chain(wrong_latencies(part))
        })
        .collect();
    let sums = result
        .facts
        .iter()
        .filter_map(|fact| wrong_sum(result, fact));
    all.extend(sums);
    all.extend(wrong_time(result));
    all.dedup();
    all
}

/// Compares fio's end time in seconds with that in milliseconds.
fn wrong_time(result: &ToolResult) -> Option<String> {
    let number = |name| result.fact(None, name)?.value.number();
    let (seconds, milliseconds) = (number("timestamp")?, number("timestamp_ms")?);
    ((milliseconds / 1000.0 - seconds).abs() > 2.0)
        .then(|| format!("it ended at second {seconds:.0} and at millisecond {milliseconds:.0}"))
}

/// Whether requests are those of a trace or of several jobs, about which a job's options and
/// defaults say nothing. In text for people a job of a trace looks like one without options.
fn is_untold(result: &ToolResult, job: u32) -> bool {
    let option = |name| text(result, job, name);
    let is_text = result.options.is_empty();
    let mut own = result.parts.iter().filter(|part| part.job == job);
    let default = own.any(|part| part.block_size_bytes == Some(4096));
    is_of_several(result, job)
        || option("read_iolog").is_some()
        || (is_text && default && option("rw").as_deref() == Some("read"))
}

/// Checks that requests times their size are the bytes.
fn wrong_size(result: &ToolResult, part: &Part) -> Option<String> {
    other_size(result, part).filter(|_| !is_untold(result, part.job))
}

/// Checks that a job that only reads wrote nothing, and one that only writes read nothing.
fn wrong_operation(result: &ToolResult, part: &Part) -> Option<String> {
    other_operation(result, part).filter(|_| !is_untold(result, part.job))
}

/// Finds latencies of a part that contradict each other: submission and completion add up to the
/// total, and a mean lies between the shortest and the longest.
fn wrong_latencies(part: &Part) -> Vec<String> {
    let op = part.operation;
    let mut wrong: Vec<String> = part
        .latencies
        .iter()
        .filter_map(|latency| Some(format!("{op}: {}", out_of_order(latency)?)))
        .collect();
    let of = |kind| part.latencies.iter().find(|latency| latency.kind == kind);
    let mean = |kind| of(kind).and_then(|latency| latency.mean_ns);
    let samples = |kind| of(kind).and_then(|latency| latency.samples);
    let (submission, completion) = (LatencyKind::Submission, LatencyKind::Completion);
    let Some((total, own)) = mean(LatencyKind::Total).zip(mean(completion)) else {
        return wrong;
    };
    // Text for people is rounded to two microseconds.
    let slack = TOLERANCE * total + 2e3;
    let with_submission = own + mean(submission).unwrap_or(0.0);
    // Each request was timed twice, unless that was switched off.
    let all_submitted = of(submission).is_some() && samples(submission) == samples(completion);
    if own > total + slack || (all_submitted && (with_submission - total).abs() > slack) {
        let [total, own] = [total, with_submission].map(|time| time / 1e3);
        wrong.push(format!(
            "{op}: requests took {total:.1} us on the mean, and {own:.1} us to be submitted and completed"
        ));
    }
    wrong
}

/// Finds contradictions within the latencies of one kind.
fn out_of_order(latency: &ReportedLatency) -> Option<String> {
    let more = |less: f64, than: f64| less > than * (1.0 + TOLERANCE) + 2e3;
    let [least, most] = [latency.min_ns, latency.max_ns].map(|time| time.map(|time| time as f64));
    let us = |time: f64| time / 1e3;
    if let Some((mean, most)) = latency.mean_ns.zip(most)
        && more(mean, most)
    {
        return Some(format!(
            "the mean of {:.1} us is above the longest, {:.1}",
            us(mean),
            us(most)
        ));
    }
    if let Some((mean, least)) = latency.mean_ns.zip(least)
        && more(least, mean)
    {
        return Some(format!(
            "the mean of {:.1} us is below the shortest, {:.1}",
            us(mean),
            us(least)
        ));
    }
    let times = latency.percentiles.iter();
    let mut pairs = times.clone().zip(times.skip(1));
    let falls = pairs.find(|((_, one), (_, next))| more(*one as f64, *next as f64));
    if let Some(((low, one), (high, next))) = falls {
        let (one, next) = (us(*one as f64), us(*next as f64));
        return Some(format!(
            "{low} % are within {one:.1} us, and {high} % within {next:.1}"
        ));
    }
    let (percent, last) = latency.percentiles.last()?;
    let most = most.filter(|most| more(*last as f64, most * 1.05))?;
    let (last, most) = (us(*last as f64), us(most));
    Some(format!(
        "{percent} % are within {last:.1} us, and the longest took {most:.1}"
    ))
}

/// Checks that a group's line of status sums up its jobs: `READ: bw=..., io=...`.
fn wrong_sum(result: &ToolResult, said: &Reported) -> Option<String> {
    let name = said.name.strip_prefix("run status ")?;
    let operation: Operation = name.parse().ok()?;
    let group = |job| result.fact(Some(job), "groupid").map(|fact| &fact.value);
    let own = group(said.job?)?;
    let all = jobs(result)
        .into_iter()
        .filter(|&job| group(job) == Some(own));
    let all: Vec<u32> = all.collect();
    let mut parts = result
        .parts
        .iter()
        .filter(|part| part.operation == operation && all.contains(&part.job));
    let bytes: f64 = parts.try_fold(0.0, |sum, part| Some(sum + part.total_bytes? as f64))?;
    let status = said.value.to_string();
    let mut pairs = status
        .split(',')
        .filter_map(|pair| pair.trim().split_once('='));
    let (_, printed) = pairs.find(|(key, _)| *key == "io")?;
    // The form is `io=3584MiB (3758MB)`.
    let printed = measured(printed.split('(').next()?)?;
    let unit = bytes_in(printed.unit, 1024.0)?;
    let (sum, step) = (printed.value * unit, printed.step * unit);
    let slack = TOLERANCE * bytes + step * (1.0 + all.len() as f64);
    let is_unit =
        !differ(bytes, sum, 0.08) && printed.unit.contains('B') && !printed.unit.contains('i');
    ((bytes - sum).abs() > slack && bytes > 0.0 && !is_unit)
        .then(|| format!("{name} of all jobs is {sum} bytes, and of each together {bytes}"))
}
