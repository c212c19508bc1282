//! Options of fio's jobs that decide their figures: rate limits, think times, clones on one region;
//! and the number of their requests in flight.

use super::jobs::{clones, jobs, number, of_three, text};
use super::several::is_of_several;
use crate::Operation;
use crate::facts::Facts;
use crate::result::{LatencyKind, Part, ReportedValue, ToolResult};
use raidlab_results::fact::{self, rate_of};
use raidlab_units::parse_duration;
use std::collections::BTreeMap;

/// Adds all of these facts that are known.
pub(super) fn add(result: &ToolResult, all: &mut Facts) {
    limits(result, all);
    let thinking = jobs(result).into_iter();
    let thinking = thinking.filter(|&job| !is_of_several(result, job));
    let most = thinking.filter_map(|job| thinking_percent(result, job));
    if let Some(percent) = most.reduce(f64::max) {
        all.add(fact::FIO_THINKING_PERCENT, &format!("{percent:.1}"), "%");
    }
    depths(result, all);
    if let Some(streams) = streams_on_one_region(result) {
        let name = fact::FIO_STREAMS_ON_ONE_REGION;
        all.add(name, &streams.to_string(), "");
    }
    let disks = result.facts.iter().find(|fact| fact.name == "disks");
    if let Some(disks) = disks {
        all.say(fact::FIO_DISKS, disks);
    }
}

/// The parts of a job that move data, each request in one of them: with `unified_rw_reporting=both`
/// the sum over all of them is left out.
fn directions(result: &ToolResult, job: u32) -> Vec<&Part> {
    use Operation::{Mixed, Read, Trim, Write};
    let own = |operations: &[Operation]| -> Vec<&Part> {
        let parts = result.parts.iter();
        parts
            .filter(|part| part.job == job && operations.contains(&part.operation))
            .filter(|part| result.tool.is_row(part))
            .collect()
    };
    let apart = own(&[Read, Write, Trim]);
    if apart.is_empty() {
        own(&[Mixed])
    } else {
        apart
    }
}

/// Adds the limits on the rates of all clones together, where each job has one.
fn limits(result: &ToolResult, all: &mut Facts) {
    let operations = [Operation::Read, Operation::Write, Operation::Trim];
    for (place, operation) in operations.into_iter().enumerate() {
        for (option, what) in [("rate", rate_of::BYTES), ("rate_iops", rate_of::REQUESTS)] {
            let doing = jobs(result).into_iter().filter(|&job| {
                let mut parts = directions(result, job).into_iter();
                parts.any(|part| part.operation == operation)
            });
            let limit = |job| {
                if is_of_several(result, job) {
                    return None;
                }
                let each = of_three(&text(result, job, option)?, place)?;
                Some(each * f64::from(clones(result, job)))
            };
            let sum: Option<f64> = doing.map(limit).sum();
            if let Some(sum) = sum.filter(|sum| *sum > 0.0) {
                all.add(&fact::fio_limit(operation, what), &sum.to_string(), "");
            }
        }
    }
}

/// Parses a time into nanoseconds; a plain number is in microseconds.
fn microseconds(value: &str) -> Option<f64> {
    match value.parse::<u64>() {
        Ok(number) => Some(number as f64 * 1e3),
        Err(_) => parse_duration(value).ok().map(|time| time.0 as f64),
    }
}

/// The percentage of its time that each clone of a job waited because of `thinktime`.
fn thinking_percent(result: &ToolResult, job: u32) -> Option<f64> {
    let time = |name| microseconds(&text(result, job, name)?).filter(|time| *time > 0.0);
    let think = time("thinktime")?;
    if let Some(between) = time("thinktime_iotime") {
        return Some(100.0 * think / (think + between));
    }
    let blocks = text(result, job, "thinktime_blocks").and_then(|text| text.parse().ok());
    let blocks: f64 = blocks.filter(|blocks| *blocks >= 1.0).unwrap_or(1.0);
    let parts = directions(result, job);
    let ran = parts.iter().filter_map(|part| part.runtime_ns).max()?;
    let requests = parts.iter().filter_map(|part| part.total_ios);
    let each = requests.sum::<u64>() as f64 / f64::from(clones(result, job));
    let share = each / blocks * think / ran.max(1) as f64;
    Some(100.0 * share.min(1.0))
}

/// Adds the mean number of requests in flight, and the largest possible one.
fn depths(result: &ToolResult, all: &mut Facts) {
    let working = jobs(result).into_iter();
    let working: Vec<u32> = working
        .filter(|&job| !directions(result, job).is_empty())
        .collect();
    if working.is_empty() {
        return;
    }
    let had: Option<f64> = working.iter().map(|&job| in_flight(result, job)).sum();
    if let Some(had) = had {
        all.add(fact::FIO_IN_FLIGHT, &format!("{had:.3}"), "");
    }
    let asked: Option<u64> = working.iter().map(|&job| asked_depth(result, job)).sum();
    if let Some(asked) = asked {
        all.add(fact::FIO_ASKED_IN_FLIGHT, &asked.to_string(), "");
    }
}

/// The mean number of requests in flight by Little's law: the sum of all latencies over the
/// time. Parts that did not run for the same time, as reads that verify, did not run at the
/// same time either.
fn in_flight(result: &ToolResult, job: u32) -> Option<f64> {
    let one = |part: &Part| {
        let total = |kind| part.latencies.iter().find(|known| known.kind == kind);
        let known = total(LatencyKind::Total).or_else(|| total(LatencyKind::Completion))?;
        let ran = part.runtime_ns.filter(|ran| *ran > 0)?;
        Some((ran, known.mean_ns? * part.total_ios? as f64 / ran as f64))
    };
    let all: Option<Vec<(u64, f64)>> = directions(result, job).into_iter().map(one).collect();
    let all = all?;
    let times = all.iter().map(|(ran, _)| *ran);
    let together = times.clone().max()? - times.min()? <= all[0].0 / 100;
    let had = all.iter().map(|(_, had)| *had);
    if together {
        Some(had.sum())
    } else {
        had.reduce(f64::max)
    }
}

fn asked_depth(result: &ToolResult, job: u32) -> Option<u64> {
    if is_of_several(result, job) {
        return None;
    }
    // fio repeats all options that were given, so a missing one had its default.
    let default = (!result.options.is_empty()).then(|| "1".to_owned());
    let depth = text(result, job, "iodepth").or(default)?;
    let depth: u64 = depth.parse().ok()?;
    Some(depth.saturating_mul(u64::from(clones(result, job))))
}

/// The largest number of sequential streams, clones or jobs, that begin at the same place of the
/// same file; `None` where no file is named, as each clone has its own then.
fn streams_on_one_region(result: &ToolResult) -> Option<u32> {
    let mut regions: BTreeMap<([String; 3], u32), u32> = BTreeMap::new();
    let mut listed: BTreeMap<[Option<String>; 2], u32> = BTreeMap::new();
    for job in jobs(result) {
        // The number of a clone among those of its job, where each is listed.
        let whose = ["jobname", "hostname"].map(|name| text(result, job, name));
        let before = listed.entry(whose).or_default();
        let clone = *before % number(result, job, "numjobs").unwrap_or(1).max(1);
        *before += 1;
        let (Some(file), false) = (
            text(result, job, "filename"),
            directions(result, job).is_empty(),
        ) else {
            continue;
        };
        let option = |name| text(result, job, name).unwrap_or_default();
        let pattern = option("rw");
        let pattern = pattern.split([':', ',']).next().unwrap_or_default();
        let is_apart = of_three(&option("offset_increment"), 0).is_some()
            || option("offset_increment").ends_with('%');
        if pattern.starts_with("rand") {
            continue;
        }
        let (own, clone) = if is_apart {
            (1, clone)
        } else {
            (clones(result, job), 0)
        };
        let offset = Some(option("offset")).filter(|offset| offset != "0");
        let place = [file, offset.unwrap_or_default(), pattern.to_owned()];
        let streams = regions.entry((place, clone)).or_default();
        *streams = streams.saturating_add(own);
    }
    regions.into_values().max()
}

/// The names of disks as one fact: fio reports them for all groups of jobs together.
pub(super) fn names_of_disks(result: &ToolResult) -> Option<ReportedValue> {
    let names: Vec<&str> = result.disks.iter().map(|disk| disk.name.as_str()).collect();
    (!names.is_empty()).then(|| names.join(" ").into())
}
