//! The rules on events while a tool ran.

use crate::case::Case;
use crate::devices::{
    has_auxiliary, is_direct, is_flushed, is_settled, may_be_cached, tool, working_set,
};
use crate::finding::Ruling;
use crate::rule::Check;
use crate::rules::cache_state::first_is_slower;
use raidlab_statistics::{Confidence, Sample, autocorrelation, change_point};
use raidlab_store::Severity::{Fatal, Note, Warning};
use raidlab_store::{CommandRecord, Measurement, MemberUse, fact};
use std::collections::BTreeMap;

pub(super) const CHECKS: &[(&str, Check)] = &[
    ("T5", Check::Rows(start_in_mean)),
    ("T9", Check::Whole(first_write)),
    ("T10", Check::Rows(stalls)),
    ("T11", Check::Rows(group_tail)),
    ("T25", Check::Whole(not_together)),
    ("T27", Check::Rows(monitor_visible)),
    ("T28", Check::Whole(errors)),
    ("T29", Check::Rows(disturbed)),
    ("T32", Check::Rows(too_short)),
    ("T33", Check::Rows(fio_unflushed)),
];

/// The shortest run time that passes, in seconds: jobs of five seconds may end a little before.
const SHORTEST_SECONDS: f64 = 4.9;

fn too_short(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) -> Option<()> {
    // A modelled machine has no start-up and no chance.
    if row.bytes_per_second <= 0.0 || row.bench == "model" {
        return None;
    }
    // iozone's small files are meant to be quick.
    let by_rate = || {
        let bytes = working_set(case, row).filter(|_| tool(row) == "bonnie++")?;
        Some(bytes / row.bytes_per_second)
    };
    let seconds = match row.runtime_ns {
        0 => by_rate(),
        time => Some(time as f64 / 1e9),
    };
    let seconds = ruling.need(seconds, "the job's run time")?;
    ruling.judged();
    if seconds < SHORTEST_SECONDS {
        ruling.row(Warning, row, format!("it took {seconds:.1} s"));
    }
    Some(())
}

fn fio_unflushed(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) -> Option<()> {
    if tool(row) != "fio" || !row.op.only_writes() {
        return None;
    }
    ruling.need(is_direct(case, row), "fio.option.direct")?;
    let flushed = ruling.need(is_flushed(case, row), "fio.option.end_fsync")?;
    ruling.judged();
    if !flushed {
        let memory = case.number(row, fact::MEMORY_TOTAL_BYTES);
        let large = memory.is_some_and(|memory| row.total_bytes as f64 >= 4.0 * memory);
        let severity = if large { Note } else { Warning };
        let text = "neither direct=1 nor end_fsync=1 nor fsync was given";
        ruling.row(severity, row, text.to_owned());
    }
    Some(())
}

fn start_in_mean(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) -> Option<()> {
    let values = ruling.need(case.rate_series(row), fact::series::READ_BYTES_PER_SECOND)?;
    let sample = Sample::new(&values)
        .ok()
        .filter(|sample| sample.len() >= 20)?;
    ruling.judged();
    let change = change_point(&sample)?;
    let early = change.index * 4 <= sample.len();
    if early && change.after > 0.0 && (change.before / change.after - 1.0).abs() > 0.2 {
        let (before, after) = (change.before, change.after);
        let text = format!("{before:.0} for {} samples, then {after:.0}", change.index);
        ruling.row(Note, row, text);
    }
    Some(())
}

fn first_write(case: &Case<'_>, ruling: &mut Ruling) {
    for rows in case.repeated() {
        if !rows[0].op.only_writes() {
            continue;
        }
        ruling.judged();
        if let Some(text) = first_is_slower(&rows) {
            ruling.row(Warning, rows[0], text);
        }
    }
    for row in case.evidence.rows {
        let unwritten = case.number(row, fact::UNWRITTEN_EXTENTS_PERCENT);
        let Some(percent) = ruling.need(unwritten, fact::UNWRITTEN_EXTENTS_PERCENT) else {
            continue;
        };
        ruling.judged();
        if percent > 1.0 && row.op.only_writes() {
            ruling.row(
                Warning,
                row,
                format!("{percent:.0} % of the extents were unwritten"),
            );
        }
    }
}

fn stalls(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) -> Option<()> {
    // Buffered writes reach the disks in bursts, cached reads not at all.
    let straight = may_be_cached(case, row) == Ok(false);
    let values = case
        .rate_series(row)
        .filter(|values| straight && values.len() >= 10);
    if let Some(values) = values {
        ruling.judged();
        // The first and last points cover parts of a second.
        let inner = &values[1..values.len() - 1];
        let still = inner.iter().filter(|value| **value <= 0.0).count();
        if still > 0 {
            let text = format!("nothing was done in {still} of {} samples", values.len());
            ruling.row(Warning, row, text);
        }
    }
    let latency = row.latency.is_recorded().then_some(&row.latency);
    let latency = ruling.need(latency, "latencies or a series of the rate")?;
    ruling.judged();
    let (max, percentile) = (latency.max_ns, latency.p999_ns);
    if percentile > 0 && max > 1_000_000_000 && max / 10 > percentile {
        let (max, percentile) = (max as f64 / 1e6, percentile as f64 / 1e6);
        let text = format!("longest {max:.0} ms, 99.9 % within {percentile:.1} ms");
        ruling.row(Note, row, text);
    }
    Some(())
}

fn group_tail(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) -> Option<()> {
    if tool(row) != "fio" {
        return None;
    }
    let least = case.number(row, fact::FIO_SHORTEST_RUNTIME_NS);
    let least = ruling.need(least, fact::FIO_SHORTEST_RUNTIME_NS)?;
    let most = case.number(row, fact::FIO_LONGEST_RUNTIME_NS);
    let most = ruling.need(most, fact::FIO_LONGEST_RUNTIME_NS)?;
    ruling.judged();
    if least > 0.0 && most > 1.05 * least {
        let text = format!("from {:.1} to {:.1} s", least / 1e9, most / 1e9);
        ruling.row(Warning, row, text);
    }
    Some(())
}

fn not_together(case: &Case<'_>, ruling: &mut Ruling) {
    let mut cells: BTreeMap<_, Vec<&Measurement>> = BTreeMap::new();
    for row in case
        .evidence
        .rows
        .iter()
        .filter(|row| tool(row) == "fio" && row.runtime_ns > 0)
    {
        cells.entry((row.cell(), row.op)).or_default().push(row);
    }
    for rows in cells.values() {
        ruling.judged();
        let times = rows.iter().map(|row| row.runtime_ns);
        let (Some(least), Some(most)) = (times.clone().min(), times.max()) else {
            continue;
        };
        if rows.len() > 1 && most as f64 > 1.05 * least as f64 {
            let (least, most) = (least as f64 / 1e9, most as f64 / 1e9);
            let text = format!("{} parts ran from {least:.1} to {most:.1} s", rows.len());
            for row in rows {
                ruling.row(Note, row, text.clone());
            }
        }
    }
}

fn monitor_visible(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) -> Option<()> {
    let period = case.number(row, fact::MONITOR_PERIOD_NS);
    let period = ruling.need(period, fact::MONITOR_PERIOD_NS)?;
    let values = ruling.need(case.rate_series(row), fact::series::READ_BYTES_PER_SECOND)?;
    let sample = Sample::new(&values)
        .ok()
        .filter(|sample| sample.len() >= 20)?;
    let step = row.runtime_ns as f64 / sample.len() as f64;
    let lag = (period / step).round();
    // A monitor as quick as the samples cannot be told from the load.
    if !(2.0..=1e6).contains(&lag) {
        return None;
    }
    let confidence = Confidence::new(0.999).unwrap_or(Confidence::NINETY_FIVE);
    let found = autocorrelation(&sample, lag as usize, confidence)?;
    ruling.judged();
    if found.is_significant() && found.value > 0.3 {
        let text = format!("autocorrelation {:.2} at {lag:.0} samples", found.value);
        ruling.row(Warning, row, text);
    }
    Some(())
}

/// Commands without which another array, or one with other settings, is measured. Commands that
/// only take down or query may fail.
const BUILDERS: [&str; 14] = [
    "mdadm --create",
    "zpool create",
    "zfs create",
    "zfs set",
    "btrfs device add",
    "lvcreate",
    "vgcreate",
    "gmirror label",
    "gstripe label",
    "graid3 label",
    "gflash create",
    "sysctl -w",
    "blockdev --set",
    "hdparm -",
];

fn ran_badly(command: &CommandRecord) -> Option<raidlab_store::Severity> {
    if command.code == Some(0) {
        return None;
    }
    let line = command.command.as_str();
    let program = line.split_whitespace().next().unwrap_or_default();
    let program = program.rsplit('/').next().unwrap_or_default();
    let measures = ["fio", "bonnie++", "iozone", "dd"].contains(&program);
    if measures && command.scope.sequence.is_some() {
        return Some(Fatal);
    }
    let builds = program == "mount" || BUILDERS.iter().any(|words| line.contains(words));
    builds.then_some(Warning)
}

fn errors(case: &Case<'_>, ruling: &mut Ruling) {
    for command in case.evidence.commands {
        ruling.judged();
        if let Some(severity) = ran_badly(command) {
            let code = command
                .code
                .map_or("a signal".to_owned(), |code| format!("code {code}"));
            let said = command.stderr.lines().next().unwrap_or_default();
            let text = format!("`{}` ended with {code}: {said}", command.command);
            ruling.scope(severity, command.scope.clone(), text);
        }
    }
    let counts = [
        (fact::FIO_ERROR, "error", Fatal),
        (fact::FIO_SHORT_IOS, "short I/Os", Warning),
        (fact::FIO_DROPPED_IOS, "dropped I/Os", Warning),
    ];
    for row in case.evidence.rows {
        if case.text(row, fact::DD_RECORDS_IN_WHOLE).is_some() {
            ruling.judged();
        }
        if let Some(said) = case.text(row, fact::DD_ERROR) {
            ruling.judged();
            ruling.row(Fatal, row, format!("dd: {said}"));
        }
        for (name, words, severity) in counts {
            let Some(count) = ruling.need(case.number(row, name), name) else {
                continue;
            };
            ruling.judged();
            if count != 0.0 {
                ruling.row(severity, row, format!("{words}: {count:.0}"));
            }
        }
    }
}

/// The fewest commands that cannot be only a journal's and a superblock's.
const LEAST_WRITES: u64 = 200;
/// Bytes per second below which writes may be a journal's commits and superblock updates.
const IDLE_LIMIT_BYTES: f64 = 1_048_576.0;

/// Finds signs of foreign writes, such as a rebuild that went unnoticed. A cache on disks of its
/// own is filled and emptied in the background by design.
fn written_by_others(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) {
    if has_auxiliary(case, row) || !is_settled(row) {
        return;
    }
    let bare = row.filesystem.is_empty();
    if let Some(bytes) = case.number(row, fact::IDLE_WRITTEN_BYTES).filter(|_| bare) {
        ruling.judged();
        if bytes > IDLE_LIMIT_BYTES {
            let text = format!("{bytes:.0} bytes were written in an idle second before the job");
            ruling.row(Warning, row, text);
        }
    }
    let cell = row.cell();
    let only_reads = case.evidence.rows.iter().all(|other| {
        other.sequence != row.sequence || other.op.only_reads() || other.cell() != cell
    });
    // Where bytes were counted, the traffic of other programs is known better.
    let counted = case.number(row, fact::FOREIGN_BYTES).is_some();
    if row.members.is_empty() || counted || !only_reads || row.bench == "model" {
        return;
    }
    ruling.judged();
    let sum = |of: fn(&MemberUse) -> u64| row.members.iter().map(of).fold(0, u64::saturating_add);
    let (reads, writes) = (sum(|one| one.read_ios), sum(|one| one.write_ios));
    if writes >= LEAST_WRITES && writes > reads / 10 {
        let text = format!("{writes} writes to the members while the job only read");
        ruling.row(Warning, row, text);
    }
}

fn disturbed(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) -> Option<()> {
    let runtime = row.runtime_ns as f64;
    let signs = [
        (
            fact::CPU_STEAL_PERCENT,
            100.0,
            1.0,
            "of the time went to other machines",
        ),
        (
            fact::FOREIGN_BYTES,
            row.total_bytes as f64,
            2.0,
            "as many bytes were moved by others",
        ),
        (
            fact::CLOCK_STEP_NS,
            runtime,
            1.0,
            "is how far the clocks disagree",
        ),
    ];
    for (name, whole, limit, words) in signs {
        let Some(value) = ruling.need(case.number(row, name), name) else {
            continue;
        };
        if whole <= 0.0 {
            continue;
        }
        ruling.judged();
        let percent = value.abs() / whole * 100.0;
        if percent > limit {
            ruling.row(Warning, row, format!("{percent:.1} % {words}"));
        }
    }
    written_by_others(case, row, ruling);
    Some(())
}
