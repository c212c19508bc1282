//! Pitfalls of job options that decide the figures, and of the disks and places that they select.

use crate::case::Case;
use crate::devices::{is_direct, reports_options, tool, whole_disk};
use crate::finding::Ruling;
use crate::rule::Check;
use raidlab_store::Severity::{Fatal, Note, Warning};
use raidlab_store::{Measurement, Scope, fact, fact::rate_of};

pub(super) const CHECKS: &[(&str, Check)] = &[
    ("T34", Check::Rows(held_back)),
    ("T36", Check::Rows(depth_by_latency)),
    ("T37", Check::Rows(one_region)),
    ("T38", Check::Rows(another_disk)),
];

/// The share of its limit from which a rate counts as held back by the limit.
const NEAR_LIMIT: f64 = 0.95;
/// The percentage of its time that a job may think before its figure is that of the thinking.
const LEAST_THINKING: f64 = 10.0;

fn held_back(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) -> Option<()> {
    if tool(row) != "fio" {
        return None;
    }
    let limit = |what| case.number(row, &fact::fio_limit(row.op, what));
    let limits = [
        (
            limit(rate_of::BYTES),
            row.bytes_per_second,
            "bytes/s",
            "rate",
        ),
        (
            limit(rate_of::REQUESTS),
            row.iops,
            "requests per second",
            "rate_iops",
        ),
    ];
    let thinking = case.number(row, fact::FIO_THINKING_PERCENT);
    let told = thinking.is_some() || limits.iter().any(|(limit, ..)| limit.is_some());
    let known = told || reports_options(case, row);
    ruling.need(known.then_some(()), "fio.option.rate_iops")?;
    ruling.judged();
    let process = case.text(row, &fact::fio_option("rate_process"));
    for (limit, had, unit, option) in limits {
        let Some(limit) = limit.filter(|limit| had >= NEAR_LIMIT * limit) else {
            continue;
        };
        // Requests that arrive by chance are asked for their latencies.
        let severity = if process == Some("poisson") {
            Note
        } else {
            Warning
        };
        let text = format!("{had:.0} {unit}, and {option} allows {limit:.0}");
        ruling.row(severity, row, text);
    }
    if let Some(percent) = thinking.filter(|percent| *percent >= LEAST_THINKING) {
        let text = format!("each clone waited {percent:.0} % of the time, as thinktime told it to");
        ruling.row(Warning, row, text);
    }
    Some(())
}

/// Options that hold requests back by intent, or add waits beside them.
const WAITS: &str = "rate rate_iops thinktime flow latency_target iodepth_low iodepth_batch \
    iodepth_batch_complete_min serialize_overlap fsync fdatasync sync_file_range end_fsync \
    fsync_on_close verify do_verify zonemode";

/// Whether an option of the job holds requests back, or has the job wait between them.
pub(super) fn waits_by_intent(case: &Case<'_>, row: &Measurement) -> bool {
    WAITS.split_whitespace().any(|name| {
        let value = case.text(row, &fact::fio_option(name));
        value.is_some_and(|value| !matches!(value, "0" | "none"))
    })
}

fn depth_by_latency(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) -> Option<()> {
    let had = ruling.need(case.number(row, fact::FIO_IN_FLIGHT), "latencies")?;
    let asked = case.number(row, fact::FIO_ASKED_IN_FLIGHT);
    let asked = ruling.need(asked, "fio.option.iodepth")?;
    // fio rounds run times to whole milliseconds.
    if row.runtime_ns < 100_000_000 {
        return None;
    }
    ruling.judged();
    // A request under way at the end of a ramp counts with its whole latency.
    let longest = row.latency.max_ns as f64 / row.runtime_ns as f64;
    let text =
        format!("mean latency times requests per second are {had:.2} in flight, of {asked:.0}");
    // Requests of an open loop wait before they are sent, and that time counts.
    let offload = case.text(row, &fact::fio_option("io_submit_mode")) == Some("offload");
    if had > asked * (1.05 + longest) && !offload {
        ruling.scope(Fatal, Scope::of(row), text);
        return Some(());
    }
    let alone = case.number(row, &fact::fio_depth_level("1"));
    let refused = asked > 1.0 && alone.is_some_and(|percent| percent >= 99.0);
    let clones = case.number(row, fact::FIO_JOBS).unwrap_or(1.0);
    // Clones that have finished their size wait for the others.
    let uneven = clones > 1.0 && case.flag(row, &fact::fio_option("time_based")) != Some(true);
    let straight = is_direct(case, row) == Some(true) && reports_options(case, row);
    let may = !straight || refused || uneven || waits_by_intent(case, row);
    if had < 0.5 * asked && !may && row.runtime_ns >= 1_000_000_000 {
        ruling.scope(Warning, Scope::of(row), text);
    }
    Some(())
}

fn one_region(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) -> Option<()> {
    if tool(row) != "fio" {
        return None;
    }
    let streams = case.number(row, fact::FIO_STREAMS_ON_ONE_REGION);
    let streams = ruling.need(streams, "fio.option.filename")?;
    ruling.judged();
    if streams > 1.0 {
        let text = format!("{streams:.0} streams begin at the same place");
        ruling.scope(Warning, Scope::of(row), text);
    }
    Some(())
}

fn another_disk(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) -> Option<()> {
    if tool(row) != "fio" {
        return None;
    }
    let counted = ruling.need(case.text(row, fact::FIO_DISKS), fact::FIO_DISKS)?;
    let files = case.text(row, &fact::fio_option("filename"));
    let files = ruling.need(files, "fio.option.filename")?;
    let asked = files.split(':').filter_map(kernel_disk);
    let asked: Vec<&str> = asked.collect();
    if asked.is_empty() {
        return None;
    }
    ruling.judged();
    let is_counted = |disk: &&str| counted.split(' ').any(|known| known == *disk);
    if !asked.iter().any(is_counted) {
        let asked = asked.join(" and ");
        let text = format!("the job was of {asked}, and fio counted {counted}");
        ruling.scope(Warning, Scope::of(row), text);
    }
    Some(())
}

/// The disk that a file in `/dev` belongs to; `None` for names that may stand for any disk.
fn kernel_disk(file: &str) -> Option<&str> {
    let name = file.strip_prefix("/dev/")?;
    let disk = whole_disk(name);
    let letters = |begin: &str| {
        let rest = disk.strip_prefix(begin);
        rest.is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_lowercase()))
    };
    let numbered = |begin: &str| {
        let rest = disk.strip_prefix(begin);
        rest.is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
    };
    let known = ["sd", "hd", "vd", "xvd"].into_iter().any(letters)
        || [
            "nvme", "md", "dm-", "loop", "mmcblk", "nbd", "zd", "bcache", "zram",
        ]
        .into_iter()
        .any(numbered);
    known.then_some(disk)
}
