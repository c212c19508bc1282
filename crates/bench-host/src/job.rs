//! One job: the machine made ready, the tool run, its output read.
//!
//! Before: the members are quiet (unless something is copied in the background, which is then
//! known), caches are dropped, and whether they were is checked. While the tool runs, the sampler
//! goes on, and the job's events happen. After: the kernel's counters say what each member did, the
//! memory's state what has not reached a disk yet, and the tool's own report says which options
//! were really in force.

use crate::arguments::{self, Invocation};
use crate::error::HostError;
use crate::facts::{self, EVENTS_MISSED, Facts};
use crate::members;
use crate::memory;
use crate::moment::Moment;
use crate::sampler::{health_name, letters, nanoseconds, sync_operation};
use crate::session::Session;
use crate::watch::Watch;
use raidlab_import as import;
use raidlab_inventory::caches::{self, Settled};
use raidlab_inventory::counters::{Activity, memory_state};
use raidlab_lab::{EventKind, PlannedJob, TimedEvent, When};
use raidlab_shell::Output;
use raidlab_store::{CellResult, Measurement, Operation, Records, Role, Scope, fact};
use raidlab_systems::ArrayStatus;
use raidlab_tools::ToolResult;
use std::time::Duration;

/// The number of seconds without a write after which members count as quiet.
const QUIET_S: u64 = 1;
/// The number of seconds after which busy members are waited for no longer.
const QUIET_LIMIT_S: u64 = 30;
/// The time between two looks at a running tool.
const LOOK: Duration = Duration::from_millis(50);
/// The time that a stopped tool has to end.
const PATIENCE: Duration = Duration::from_secs(5);

/// Runs a job; `round` numbers its rows in one of several rounds.
///
/// # Errors
/// When the machine cannot be made ready, the tool fails or its output is not
/// understood; [`HostError::Interrupted`] when the watcher says so.
pub fn run(
    session: &mut Session<'_>,
    job: &PlannedJob,
    round: Option<u32>,
    watcher: &mut Watch<'_>,
) -> Result<CellResult, HostError> {
    let invocation = arguments::invocation(session, job)?;
    let cell = job.cell(session.experiment);
    let scope = Scope {
        sequence: Some(cell.sequence),
        ..session.scope()
    };
    let mut facts = Facts::new(scope.clone());
    facts::asked(&mut facts, job, &invocation, &session.place);
    prepare(session, &mut facts, watcher)?;

    let before = Moment::now(session)?;
    session.note("job-start", None, format!("job {} begins", job.name));
    let (output, missed) = run_tool(session, job, &invocation, watcher)?;
    if let Some(said) = invocation.tool.gave_up(&output.stderr) {
        return Err(HostError::Tool {
            command: invocation.command.to_string(),
            how: format!("did not end: {said}"),
        });
    }
    session.note("job-end", None, format!("job {} ends", job.name));
    let after = Moment::now(session)?;
    session.poll()?;

    let result = measured(&invocation, &output)?;
    after_job(session, &mut facts, &before, &after)?;
    facts.add(EVENTS_MISSED, missed, "", "raidlab");
    facts.flag(fact::JOB_ALLOWS_SYNC, session.deeds.allows_sync(), "suite");
    facts.flag(
        fact::JOB_ALLOWS_DEGRADED,
        session.deeds.allows_degraded(),
        "suite",
    );
    options(&invocation, &result, &mut facts);
    // Facts from the suite are preferred to those in a tool's report.
    let told = import::observations(&result, &facts.scope).into_iter();
    let new = told.filter(|fact| !facts.all.iter().any(|known| known.name == fact.name));
    let new: Vec<_> = new.collect();
    facts.all.extend(new);
    let mut records = session.drain(&scope);
    records.observations.append(&mut facts.all);
    let rows = if job.prepares {
        Vec::new()
    } else {
        rows(session, job, round, &invocation, &result, &before, &after)
    };
    Ok(CellResult {
        cell,
        rows,
        records,
    })
}

/// Reads what the tool measured, also from a tool that failed, which may have measured something.
fn measured(invocation: &Invocation, output: &Output) -> Result<ToolResult, HostError> {
    let good = &invocation.command.success;
    let succeeded = output.code.is_some_and(|code| good.contains(&code));
    match arguments::parse(invocation, output) {
        Ok(result) if succeeded || !result.parts.is_empty() => Ok(result),
        Err(source) if succeeded => Err(HostError::Output {
            tool: invocation.tool.name().to_owned(),
            source,
        }),
        _ => Err(failed(invocation, output)),
    }
}

fn failed(invocation: &Invocation, output: &Output) -> HostError {
    // Standard error first: the last line of fio's output is the brace that ends its JSON.
    let said = last_line(&output.stderr)
        .or_else(|| last_line(&output.stdout))
        .unwrap_or("and said nothing");
    let code = output.code.map_or_else(
        || "was killed".to_owned(),
        |code| format!("ended with {code}"),
    );
    HostError::Tool {
        command: invocation.command.to_string(),
        how: format!("{code}: {}", said.trim()),
    }
}

/// The last line of a text that is not blank.
fn last_line(text: &str) -> Option<&str> {
    text.lines().rfind(|line| !line.trim().is_empty())
}

/// Waits for quiet members and drops the caches.
fn prepare(
    session: &mut Session<'_>,
    facts: &mut Facts,
    watcher: &mut Watch<'_>,
) -> Result<(), HostError> {
    use fact::moment::{BEFORE, BEFORE_DROP};
    session.poll()?;
    let system = session.machine.system();
    let status = session.system().status(&session.target, &session.built)?;
    if status.sync.is_none() {
        let settled = settle(session, QUIET_S, QUIET_LIMIT_S, watcher)?;
        let written: u64 = settled.last_writes_bytes.values().sum();
        let written = if settled.quiet { 0 } else { written };
        facts.add(
            fact::IDLE_WRITTEN_BYTES,
            written,
            "bytes",
            "the system's counters",
        );
    }
    watcher.check()?;
    if let Some(before) = caches::drop_caches(&session.target, system)? {
        facts.add(
            fact::CACHES_DROPPED,
            fact::TRUE,
            "",
            "/proc/sys/vm/drop_caches",
        );
        memory::facts(&before, BEFORE_DROP, |name, value| {
            facts.add(name, value, "bytes", "/proc/meminfo");
        });
        rest(session, session.spec.idle_after_drop(), watcher)?;
    }
    let state = memory_state(&session.target, system)?;
    memory::facts(&state, BEFORE, |name, value| {
        facts.add(name, value, "bytes", "memory");
    });
    Ok(())
}

/// Waits in short pieces, so that a request to stop is noticed.
fn rest(session: &Session<'_>, time: Duration, watcher: &mut Watch<'_>) -> Result<(), HostError> {
    let begun = session.now();
    while session.now().saturating_sub(begun) < time {
        watcher.look(session.now());
        watcher.check()?;
        std::thread::sleep(LOOK);
    }
    Ok(())
}

/// Waits until the members have been quiet for `quiet_s` seconds, at most
/// `limit_s`.
///
/// # Errors
/// When the machine cannot be asked, or the watcher stops the step.
pub fn settle(
    session: &Session<'_>,
    quiet_s: u64,
    limit_s: u64,
    watcher: &mut Watch<'_>,
) -> Result<Settled, HostError> {
    let system = session.machine.system();
    caches::settle(
        &session.target,
        system,
        &session.sampler.members,
        quiet_s,
        limit_s,
        |time| rest(session, time, watcher),
    )
}

/// Runs the tool to its end, with the events that the job asks for. Returns how many of those
/// never came due.
fn run_tool(
    session: &mut Session<'_>,
    job: &PlannedJob,
    invocation: &Invocation,
    watcher: &mut Watch<'_>,
) -> Result<(Output, usize), HostError> {
    use raidlab_shell::Target;
    let mut waiting: Vec<TimedEvent> = job.events.clone();
    let mut running = session.target.start(&invocation.command)?;
    let begun = session.now();
    loop {
        if let Some(output) = running.poll()? {
            for event in &waiting {
                let text = format!(
                    "job {} ended before member {} was to {}",
                    job.name,
                    event.event.member,
                    match event.event.kind {
                        EventKind::Fail => "fail",
                        EventKind::Remove => "be taken out",
                        EventKind::Insert | EventKind::ReAdd => "be put back",
                    }
                );
                session.note("event-missed", Some(u32::from(event.event.member)), text);
            }
            return Ok((output, waiting.len()));
        }
        let went = go_on(session, &mut waiting, begun, watcher);
        if let Err(error) = went {
            // The first error is the one to return.
            running.stop(PATIENCE).ok();
            return Err(error);
        }
        std::thread::sleep(LOOK);
    }
}

/// Takes one look while a tool runs, and carries out the event that is due, if any.
fn go_on(
    session: &mut Session<'_>,
    waiting: &mut Vec<TimedEvent>,
    begun: Duration,
    watcher: &mut Watch<'_>,
) -> Result<(), HostError> {
    let now = watcher.poll(session)?;
    // A percentage from before the job or the last event does not count.
    let status = session.status_since(begun);
    let percent = status.and_then(|status| status.sync?.percent);
    let due = waiting.iter().position(|event| match event.when {
        When::After(time) => now - begun >= Duration::from_nanos(time.0),
        When::SyncPercent(limit) => percent.is_some_and(|percent| percent >= limit),
    });
    match due {
        Some(index) => session.event(waiting.remove(index).event),
        None => Ok(()),
    }
}

/// Records the machine's state after a job.
fn after_job(
    session: &Session<'_>,
    facts: &mut Facts,
    before: &Moment,
    after: &Moment,
) -> Result<(), HostError> {
    let state = memory_state(&session.target, session.machine.system())?;
    memory::facts(&state, fact::moment::AFTER, |name, value| {
        facts.add(name, value, "bytes", "memory");
    });
    for (name, moment) in [
        (fact::SYNC_ACTIVE_START, before),
        (fact::SYNC_ACTIVE_END, after),
    ] {
        if let Some(status) = &moment.status {
            let kind = status
                .sync
                .map_or("none", |sync| sync_operation(sync.kind).name());
            facts.add(name, kind, "", "array state");
        }
    }
    for (name, moment) in [
        (fact::ARRAY_HEALTH_START, before),
        (fact::ARRAY_HEALTH_END, after),
    ] {
        if let Some(status) = &moment.status {
            facts.add(name, health_name(status.health), "", "array state");
        }
    }
    let activity = Activity::between(&before.counters, &after.counters);
    let foreign = session.foreign.bytes(&activity);
    let source = "the system's counters";
    facts.add(fact::FOREIGN_BYTES, foreign, "bytes", source);
    facts::between(facts, &before.frame, &after.frame);
    if let (Some(before), Some(after)) = (&before.cache, &after.cache) {
        facts::cache(facts, before, after);
    }
    facts::temperatures(facts, &session.sampler.members, &after.counters);
    if let Some(steal) = activity.steal() {
        facts.add(
            fact::CPU_STEAL_PERCENT,
            steal * 100.0,
            "percent",
            "/proc/stat",
        );
    }
    facts.add(
        fact::MONITOR_PERIOD_NS,
        nanoseconds(crate::sampler::PERIOD),
        "ns",
        "raidlab",
    );
    Ok(())
}

/// Records which options were given to the tool, and whether it accepted them.
fn options(invocation: &Invocation, result: &ToolResult, facts: &mut Facts) {
    use fact::outcome::{APPLIED, ASKED, FOUND};
    let tool = invocation.tool.name();
    let told = Some(&result.version).filter(|version| !version.is_empty());
    facts.maybe(fact::version(tool), told, "", tool);
    let asked = invocation.tool.asked(&invocation.command.arguments);
    let differences = invocation.tool.differences(&asked, result);
    for option in &asked {
        let value = option.value.clone().unwrap_or_else(|| "1".to_owned());
        facts.add(fact::option(&option.name, ASKED), value, "", "command line");
    }
    for difference in differences {
        let name = &difference.name;
        facts.add(fact::option(name, APPLIED), fact::FALSE, "", tool);
        let found = difference.reported.as_deref().unwrap_or("not reported");
        facts.add(fact::option(name, FOUND), found, "", tool);
    }
}

fn rows(
    session: &Session<'_>,
    job: &PlannedJob,
    round: Option<u32>,
    invocation: &Invocation,
    result: &ToolResult,
    before: &Moment,
    after: &Moment,
) -> Vec<Measurement> {
    let mut template = job.row(session.experiment, "host", Operation::Read);
    template.role = Role::Measured;
    template.started_ns = nanoseconds(before.at);
    template.array_state_start = before.status.as_ref().map_or_else(String::new, letters);
    template.array_state_end = after.status.as_ref().map_or_else(String::new, letters);
    template.sync_percent_start = percent(before.status.as_ref());
    template.sync_percent_end = percent(after.status.as_ref());
    template.members = members::of(session, job, before, after);
    template.block_size_bytes = 0;
    let mut rows = import::rows(result, &template);
    for row in &mut rows {
        if let Some(op) = invocation.operation {
            row.op = op;
        }
        // Where the tool does not tell: its requests differ in size, or it counts flushes.
        if row.block_size_bytes == 0 {
            row.block_size_bytes = job.block_size(row.op).0;
        }
        if let Some(round) = round {
            let round = format!("round {round:02}");
            row.part = if row.part.is_empty() {
                round
            } else {
                format!("{round}, {}", row.part)
            };
        }
    }
    rows
}

fn percent(status: Option<&ArrayStatus>) -> Option<f64> {
    status?.sync?.percent
}

/// Drains the records that belong to the whole experiment.
pub fn leftovers(session: &mut Session<'_>) -> Records {
    let scope = session.scope();
    session.drain(&scope)
}

#[cfg(test)]
mod tests {
    use super::failed;
    use crate::arguments::Invocation;
    use raidlab_shell::{Command, Output};
    use raidlab_tools::Tool;

    #[test]
    fn the_reason_is_what_a_tool_said_on_standard_error() {
        let invocation = Invocation {
            tool: "fio".parse::<Tool>().expect("a tool"),
            command: Command::changes("fio", ["--name=a"]),
            operation: None,
        };
        let mut output = Output {
            code: Some(1),
            stdout: "{\n}\n".to_owned(),
            stderr: "fio: error=No space left on device\n\n".to_owned(),
            ..Output::default()
        };
        let told = failed(&invocation, &output).to_string();
        assert!(told.ends_with("No space left on device"), "{told}");
        output.stderr.clear();
        let told = failed(&invocation, &output).to_string();
        assert!(told.ends_with('}'), "{told}");
    }
}
