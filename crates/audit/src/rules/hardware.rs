//! Pitfalls of the processors, and of the disks' health and settings.

use crate::case::Case;
use crate::devices::{Member, copies_on_write, is_auxiliary_role, is_random, members, role};
use crate::finding::Ruling;
use crate::rule::Check;
use raidlab_statistics::{Sample, cliff};
use raidlab_store::Severity::{Note, Warning};
use raidlab_store::{
    Measurement, MemberUse, Operation, Scope, fact, fact::disk_property as property,
};
use std::collections::{BTreeMap, BTreeSet};

pub(super) const CHECKS: &[(&str, Check)] = &[
    ("H7", Check::Rows(processor_bound)),
    ("H8", Check::Rows(flash_cliff)),
    ("H9", Check::Rows(sick_member)),
    ("H10", Check::Rows(spun_up)),
    ("H11", Check::Whole(queue_settings)),
    ("H12", Check::Whole(free_computing)),
    ("H13", Check::Whole(quick_flash)),
];

/// How often SNIA's test specification has a drive's capacity written before a measurement.
const PRECONDITIONING: f64 = 2.0;

fn processor_bound(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) -> Option<()> {
    if let Some(governor) = case.text(row, fact::CPU_GOVERNOR) {
        ruling.judged();
        if !matches!(governor, "performance" | "none") {
            let scope = Scope::host(&row.host);
            ruling.scope(Note, scope, format!("frequency policy {governor}"));
        }
    }
    if let Some(times) = case.number(row, fact::CPU_THROTTLED) {
        ruling.judged();
        if times > 0.0 {
            ruling.row(Warning, row, format!("slowed by heat {times:.0} times"));
        }
    }
    // Reads and writes byte by byte, and files without data, load the processor by intent.
    let by_intent = matches!(row.op, Operation::WriteCharacter | Operation::ReadCharacter);
    if by_intent || row.bytes_per_second <= 0.0 {
        return None;
    }
    // fio reports the mean over a group's processes.
    if let Some(system) = case.number(row, fact::FIO_SYSTEM_CPU_PERCENT) {
        ruling.judged();
        if system > 80.0 {
            let text = format!("{system:.0} % of a processor in the kernel");
            ruling.row(Warning, row, text);
        }
    }
    // The time is that of all clones (`numjobs`) together, of which a stream may have several.
    let streams = f64::from(row.streams.max(1));
    let clones = case.number(row, fact::FIO_JOBS).unwrap_or(streams);
    let processes = clones.max(streams);
    let used = ruling.need(row.cpu_percent, "the job's processor time")?;
    // The model bills interrupts apart, which come to the cores that sent the commands.
    let used = used + case.number(row, fact::CPU_INTERRUPT_PERCENT).unwrap_or(0.0);
    ruling.judged();
    if used / processes > 90.0 {
        ruling.row(
            Warning,
            row,
            format!("{used:.0} % of a processor, {processes:.0} processes"),
        );
    }
    Some(())
}

fn flash_cliff(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) -> Option<()> {
    let mut members = members(case, row);
    members.retain(|member| member.rotational == Some(false));
    ruling.need(members.first(), "disk.<device>.rotational of an SSD")?;
    for member in &members {
        if let Some(degrees) = member.reading(case, row, property::TEMPERATURE_CELSIUS) {
            ruling.judged();
            if degrees > 70.0 {
                ruling.row(
                    Note,
                    row,
                    format!("{}: {degrees:.0} degrees", member.name()),
                );
            }
        }
    }
    if !row.op.only_writes() {
        return None;
    }
    let values = ruling.need(case.rate_series(row), fact::series::WRITE_BYTES_PER_SECOND)?;
    let sample = Sample::new(&values)
        .ok()
        .filter(|sample| sample.len() >= 20)?;
    ruling.judged();
    if let Some(fall) = cliff(&sample) {
        let text = format!("the rate fell from {:.0} to {:.0}", fall.first, fall.last);
        ruling.row(Warning, row, text);
    }
    Some(())
}

fn sick_member(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) -> Option<()> {
    let counts = [
        (property::REALLOCATED_SECTORS, "sectors remapped"),
        (property::PENDING_SECTORS, "sectors that cannot be read"),
        (
            property::UNCORRECTABLE_SECTORS,
            "sectors that self-tests cannot read",
        ),
        (property::CHECKSUM_ERRORS, "transfers with a wrong checksum"),
        (property::MEDIA_ERRORS, "errors of the medium"),
    ];
    let members = members(case, row);
    let mut links: BTreeMap<Option<&str>, BTreeSet<&str>> = BTreeMap::new();
    for member in &members {
        for (name, words) in counts {
            let Some(count) = member.reading(case, row, name) else {
                continue;
            };
            ruling.judged();
            if count > 0.0 {
                ruling.subject(
                    Warning,
                    row,
                    format!("{}: {count:.0} {words}", member.name()),
                );
            }
        }
        let link = fact::disk(member.disk(case, row), property::LINK_SPEED);
        if let Some(speed) = case.text(row, &link).filter(|_| !member.is_auxiliary()) {
            let alike = links.entry(member.model.as_deref()).or_default();
            alike.insert(speed);
        }
    }
    for links in links.into_values().filter(|links| links.len() > 1) {
        let list: Vec<&str> = links.into_iter().collect();
        let text = format!("links of {} bits per second", list.join(" and "));
        ruling.subject(Note, row, text);
    }
    slow_member(case, row, ruling);
    ruling.need(
        None::<()>,
        "disk.<device>.smart.pending_sectors or members' counters",
    )
}

/// The fewest commands of a member whose mean time is meaningful.
const LEAST_COMMANDS: u64 = 200;

/// Finds a member that is slow in random reads, where each command is a seek of its own: in streams
/// and mixed jobs members with as many commands have unequal work. Modelled disks are never sick.
fn slow_member(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) {
    if row.bench == "model" || row.class != "random-read" {
        return;
    }
    let all = row.members.iter().enumerate();
    let alike = all.filter(|(slot, _)| {
        let role = role(case, row, *slot, row.members.len());
        !role.is_some_and(is_auxiliary_role)
    });
    let alike: Vec<&MemberUse> = alike.map(|(_, member)| member).collect();
    let models: BTreeSet<&str> = alike.iter().map(|member| member.model.as_str()).collect();
    for model in models {
        let same = alike.iter().filter(|member| member.model == model);
        slow_among(row, same.copied(), ruling);
    }
}

/// The slowest of members that should be alike, if it is much slower.
fn slow_among<'a>(
    row: &Measurement,
    members: impl Iterator<Item = &'a MemberUse>,
    ruling: &mut Ruling,
) {
    let times: Vec<(f64, f64)> = members
        .map(|member| {
            let commands = member.read_ios.saturating_add(member.write_ios);
            let ticks = member.read_ticks_ns.saturating_add(member.write_ticks_ns);
            (commands as f64, ticks as f64 / commands.max(1) as f64)
        })
        .collect();
    let commands = times.iter().map(|(commands, _)| *commands);
    let most = commands.clone().fold(0.0, f64::max);
    let least = commands.fold(f64::INFINITY, f64::min);
    let sync = row.sync_percent_start.is_some() || row.array_state_start.contains('_');
    // Under unequal load the busier member waits longer, sick or not.
    if times.len() < 2 || sync || least < LEAST_COMMANDS as f64 || least < 0.8 * most {
        return;
    }
    ruling.judged();
    let mut sorted: Vec<f64> = times.iter().map(|(_, time)| *time).collect();
    sorted.sort_by(f64::total_cmp);
    let (fastest, slowest) = (sorted[0], sorted[sorted.len() - 1]);
    if fastest > 0.0 && slowest > 2.0 * fastest {
        let (fastest, slowest) = (fastest / 1e6, slowest / 1e6);
        let text = format!("{slowest:.1} ms per command on one member, {fastest:.1} on another");
        ruling.row(Warning, row, text);
    }
}

fn spun_up(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) -> Option<()> {
    let first = ruling.need(case.number(row, fact::FIRST_IO_NS), fact::FIRST_IO_NS)?;
    ruling.judged();
    if first > 1e9 {
        ruling.row(
            Warning,
            row,
            format!("the first I/O took {:.1} s", first / 1e9),
        );
    }
    Some(())
}

/// A member's scheduler, read-ahead and throttling of writes, as far as they are known.
fn queue_of(case: &Case<'_>, row: &Measurement, member: &Member) -> Option<String> {
    let disk = member.disk(case, row);
    let text = |name| case.text(row, &fact::disk(disk, name));
    let (scheduler, ahead) = (text(property::SCHEDULER), text(property::READ_AHEAD_BYTES));
    let throttling = text(property::WRITE_THROTTLING_MICROSECONDS);
    let known = scheduler.is_some() || ahead.is_some() || throttling.is_some();
    let mut words = format!(
        "scheduler {}, read-ahead {}",
        scheduler.unwrap_or("unknown"),
        ahead.unwrap_or("unknown")
    );
    match throttling {
        Some("0") => words.push_str(", writes not held back"),
        Some(latency) => words.push_str(&format!(", writes held back for reads over {latency} us")),
        None => {}
    }
    known.then_some(words)
}

fn queue_settings(case: &Case<'_>, ruling: &mut Ruling) {
    let mut by_host: BTreeMap<String, &str> = BTreeMap::new();
    for row in case.subjects() {
        let mut queues = BTreeSet::new();
        for (slot, member) in members(case, row).iter().enumerate() {
            if case.text(row, &fact::member_role(slot)) == Some("write-mostly") {
                ruling.subject(Note, row, format!("{} is write-mostly", member.name()));
            }
            if !member.is_auxiliary() {
                queues.extend(queue_of(case, row, member));
            }
        }
        if queues.is_empty() {
            continue;
        }
        ruling.judged();
        if queues.len() > 1 {
            let list: Vec<String> = queues.iter().cloned().collect();
            ruling.subject(Warning, row, list.join("; "));
        }
        let all = queues.into_iter().collect::<Vec<_>>().join("; ");
        by_host.entry(all).or_insert(&row.host);
    }
    let hosts: BTreeSet<&&str> = by_host.values().collect();
    if hosts.len() > 1 {
        let list: Vec<String> = by_host
            .iter()
            .map(|(queue, host)| format!("{host}: {queue}"))
            .collect();
        ruling.scope(Note, Scope::default(), list.join("; "));
    }
    ruling.need(None::<()>, "disk.<device>.scheduler");
}

/// Simulated arrays of flash alone, on a host whose computing takes no time: such drives are so
/// fast that the host is often what holds their array up.
fn free_computing(case: &Case<'_>, ruling: &mut Ruling) {
    for row in case.subjects() {
        let mut members = members(case, row);
        members.retain(|member| !member.is_auxiliary());
        let is_flash = members
            .iter()
            .all(|member| member.rotational == Some(false));
        let is_simulated = matches!(row.bench.as_str(), "model" | "kernel");
        if !is_simulated || members.len() < 2 || !is_flash {
            continue;
        }
        ruling.judged();
        if case.text(row, fact::CPU_PRESET).is_none() {
            ruling.subject(Warning, row, "no processor is modelled".to_owned());
        }
    }
}

/// Random writes to drives of flash that began in another state than `steady`, before so much was
/// written that they have come to it. A job's members are counted once, though its reads and writes
/// are a row each.
fn quick_flash(case: &Case<'_>, ruling: &mut Ruling) {
    let mut rows: Vec<&Measurement> = case.evidence.rows.iter().collect();
    let array = |row: &Measurement| {
        let fit = row.fit.clone();
        (
            row.host.clone(),
            row.subject.clone(),
            row.filesystem.clone(),
            row.repetition,
            fit,
        )
    };
    rows.sort_by_cached_key(|row| (array(row), row.sequence));
    for rows in rows.chunk_by(|one, other| array(one) == array(other)) {
        let mut written = 0.0;
        for job in rows.chunk_by(|one, other| one.sequence == other.sequence) {
            let members = job[0].members.iter();
            written += members.map(|one| one.write_bytes as f64).sum::<f64>();
            for row in job {
                let _ = not_yet_steady(case, row, written, ruling);
            }
        }
    }
}

/// Judges one row of an array on which so many bytes were written until the end of its job.
fn not_yet_steady(
    case: &Case<'_>,
    row: &Measurement,
    written: f64,
    ruling: &mut Ruling,
) -> Option<()> {
    if !is_random(row) || row.op.only_reads() || copies_on_write(case, row) {
        return None;
    }
    let mut members = members(case, row);
    members.retain(|member| member.rotational == Some(false) && !member.is_auxiliary());
    ruling.need(members.first(), "disk.<device>.rotational of an SSD")?;
    let state = |member: &Member| {
        let name = fact::disk(member.disk(case, row), property::STATE);
        Some((case.text(row, &name)?, member.size_bytes?))
    };
    let states: Option<Vec<_>> = members.iter().map(state).collect();
    let states = ruling.need(states, "disk.<device>.state and size_bytes")?;
    ruling.judged();
    let quick = states.iter().find(|(state, _)| *state != "steady");
    let size: f64 = states.iter().map(|(_, size)| size).sum();
    if let Some((state, _)) = quick.filter(|_| written < PRECONDITIONING * size) {
        let times = written / size.max(1.0);
        let text = format!("began {state}, and {times:.2} times their size was written");
        ruling.row(Warning, row, text);
    }
    Some(())
}
