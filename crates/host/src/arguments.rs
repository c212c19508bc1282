//! From a planned job to a tool's argument vector, and from its output back.
//!
//! fio's options pass through as the suite or the job file writes them, also
//! those that the model does not know. raidlab adds where to run and how to
//! report; the engine and the depth are already those of the host where the
//! suite leaves the way of queueing to it. bonnie++, iozone and dd get the
//! folder or the file in the place where their own options want it.

use crate::error::HostError;
use crate::place::Place;
use crate::session::Session;
use raidlab_inventory::counters::memory_state;
use raidlab_lab::{Placeholders, PlannedJob, Work, expand};
use raidlab_shell::{Command, Output};
use raidlab_store::Operation;
use raidlab_tools::{ParseError, Tool, ToolResult};
use raidlab_workload::Target;
use std::str::FromStr;

/// A tool ready to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    /// The benchmark that is called.
    pub tool: Tool,
    /// With its arguments.
    pub command: Command,
    /// What it does, where its output does not tell (dd).
    pub operation: Option<Operation>,
}

/// What a job runs on a machine.
///
/// # Errors
/// When the tool cannot do it there.
pub fn invocation(session: &Session<'_>, job: &PlannedJob) -> Result<Invocation, HostError> {
    let state = memory_state(&session.target, session.machine.system())?;
    let mut invocation = planned(job, &session.place, state.total_bytes)?;
    if let (Tool::Fio, Some(clock)) = (invocation.tool, session.machine.fio_clock()) {
        // Before any job's name it holds for all jobs.
        let option = format!("--clocksource={clock}");
        invocation.command.arguments.insert(0, option);
    }
    Ok(invocation)
}

/// The same for a place that may not exist yet.
///
/// # Errors
/// When the tool cannot do it there.
pub fn planned(
    job: &PlannedJob,
    place: &Place,
    memory_bytes: u64,
) -> Result<Invocation, HostError> {
    let values = Placeholders {
        target: place.path().to_owned(),
        file: place.file(),
        memory_bytes,
        capacity_bytes: place.capacity_bytes(),
    };
    // A line break or NUL in a disk's name must not end anybody's word.
    if let Some(letter) = place.path().chars().find(|letter| letter.is_control()) {
        return Err(HostError::Unsuitable {
            what: format!(
                "job `{}`: the place to run in has the control character {letter:?} in its name",
                job.name
            ),
        });
    }
    let expanded = |text: &str| {
        expand(text, &values).map_err(|error| HostError::Unsuitable {
            what: format!("job `{}`: {error}", job.name),
        })
    };
    match &job.work {
        Work::Fio { jobs, .. } => {
            let jobs = jobs.expand(expanded)?;
            let target = if place.is_folder() {
                Target::Folder(place.path())
            } else {
                Target::File(place.path())
            };
            let mut arguments = vec!["--output-format=json+".to_owned(), "--eta=never".to_owned()];
            arguments.extend(jobs.arguments(target));
            Ok(Invocation {
                tool: Tool::Fio,
                command: Command::changes("fio", arguments),
                operation: None,
            })
        }
        Work::Tool { name, arguments } => {
            let arguments: Vec<String> = arguments
                .iter()
                .map(|argument| expanded(argument))
                .collect::<Result<_, _>>()?;
            other(name, arguments, job, place)
        }
    }
}

/// bonnie++, iozone and dd.
fn other(
    name: &str,
    mut arguments: Vec<String>,
    job: &PlannedJob,
    place: &Place,
) -> Result<Invocation, HostError> {
    let unsuitable = |what: String| HostError::Unsuitable { what };
    let tool =
        Tool::from_str(name).map_err(|error| unsuitable(format!("job `{}`: {error}", job.name)))?;
    let has = |arguments: &[String], option: &str| arguments.iter().any(|one| one == option);
    if !place.is_folder() && matches!(tool, Tool::Bonnie | Tool::Iozone) {
        return Err(unsuitable(format!(
            "job `{}`: {name} needs a file system; the suite's `filesystems` makes one",
            job.name
        )));
    }
    let mut operation = None;
    match tool {
        Tool::Bonnie => {
            for (option, value) in [("-d", place.path()), ("-u", "root")] {
                if !has(&arguments, option) {
                    arguments.extend([option.to_owned(), value.to_owned()]);
                }
            }
            if !has(&arguments, "-q") {
                arguments.push("-q".to_owned());
            }
        }
        Tool::Iozone => {
            let throughput = arguments.iter().position(|one| one == "-t");
            let count = throughput.and_then(|at| arguments.get(at + 1)?.parse::<u32>().ok());
            if has(&arguments, "-f") || has(&arguments, "-F") {
                // The suite says where.
            } else if let Some(count) = count {
                // One file for each of its processes, else they are made in
                // whatever folder it was started in.
                arguments.push("-F".to_owned());
                let files = (0..count).map(|index| format!("{}.{index}", place.file()));
                arguments.extend(files);
            } else {
                arguments.extend(["-f".to_owned(), place.file()]);
            }
        }
        Tool::Dd => {
            operation = Some(dd_operation(&arguments, place).ok_or_else(|| {
                unsuitable(format!(
                    "job `{}`: dd neither reads `if={{file}}` nor writes `of={{file}}`",
                    job.name
                ))
            })?);
        }
        Tool::Fio => {
            return Err(unsuitable(format!(
                "job `{}`: fio's jobs are written with `fio`",
                job.name
            )));
        }
    }
    Ok(Invocation {
        tool,
        command: Command::changes(tool.needs().program, arguments),
        operation,
    })
}

/// Whether dd reads the place or writes to it; `None` where it does neither.
fn dd_operation(arguments: &[String], place: &Place) -> Option<Operation> {
    let inside = format!("{}/", place.path());
    let ours = |prefix: &str| {
        let mut paths = arguments.iter().filter_map(|one| one.strip_prefix(prefix));
        paths.any(|path| path == place.path() || path.starts_with(&inside))
    };
    if ours("if=") {
        Some(Operation::Read)
    } else if ours("of=") {
        Some(Operation::Write)
    } else {
        None
    }
}

/// What a tool said.
///
/// # Errors
/// When it is not understood.
pub fn parse(invocation: &Invocation, output: &Output) -> Result<ToolResult, ParseError> {
    let text = match invocation.tool {
        Tool::Dd => &output.stderr,
        Tool::Fio | Tool::Bonnie | Tool::Iozone => &output.stdout,
    };
    raidlab_tools::parse(invocation.tool, text)
}

#[cfg(test)]
mod tests;
