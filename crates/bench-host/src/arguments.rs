//! From a planned job to a tool's argument vector, and from its output back.
//!
//! fio's options pass through as the suite or the job file writes them, also
//! those that the model does not know. raidlab adds where to run and how to
//! report; the engine and the depth are already those of the host where the
//! suite leaves the way of queueing to it. Other tools get the folder or the file in the
//! place where their own options want it.

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
    /// The command that calls it, with all arguments.
    pub command: Command,
    /// The operation, where the tool's output does not name it.
    pub operation: Option<Operation>,
}

/// The invocation of a job's tool on a machine.
///
/// # Errors
/// When the tool cannot do the job there.
pub(crate) fn invocation(session: &Session<'_>, job: &PlannedJob) -> Result<Invocation, HostError> {
    let state = memory_state(&session.target, session.machine.system())?;
    let mut invocation = planned(job, &session.place, state.total_bytes)?;
    if let Some(clock) = session.machine.fio_clock() {
        let first = invocation.tool.clock(clock);
        invocation.command.arguments.splice(0..0, first);
    }
    Ok(invocation)
}

/// The tool that a job runs.
///
/// # Errors
/// When there is no tool of this name.
pub(crate) fn tool(job: &PlannedJob) -> Result<Tool, HostError> {
    let tool = Tool::from_str(job.work.tool());
    tool.map_err(|error| HostError::of_job(job, error))
}

/// The invocation of a job's tool for a place that may not exist yet.
///
/// # Errors
/// When the tool cannot do the job there.
pub fn planned(
    job: &PlannedJob,
    place: &Place,
    memory_bytes: u64,
) -> Result<Invocation, HostError> {
    let values = Placeholders {
        target: place.path.clone(),
        file: place.file(),
        memory_bytes,
        capacity_bytes: place.capacity_bytes,
    };
    // A line break or NUL in a disk's name must not end a word of the command.
    if let Some(letter) = place.path.chars().find(|letter| letter.is_control()) {
        let what = "the place to run in has the control character";
        return Err(HostError::of_job(
            job,
            format!("{what} {letter:?} in its name"),
        ));
    }
    let expanded =
        |text: &str| expand(text, &values).map_err(|error| HostError::of_job(job, error));
    match &job.work {
        Work::Fio { jobs, .. } => {
            let jobs = jobs.expand(expanded)?;
            let target = if place.is_folder {
                Target::Folder(&place.path)
            } else {
                Target::File(&place.path)
            };
            let mut arguments = vec!["--output-format=json+".to_owned(), "--eta=never".to_owned()];
            arguments.extend(jobs.arguments(target));
            Ok(Invocation {
                tool: tool(job)?,
                command: Command::changes("fio", arguments),
                operation: None,
            })
        }
        Work::Tool { arguments, .. } => {
            let arguments: Vec<String> = arguments
                .iter()
                .map(|argument| expanded(argument))
                .collect::<Result<_, _>>()?;
            other(arguments, job, place)
        }
    }
}

/// The invocation of a tool that is called word by word.
fn other(arguments: Vec<String>, job: &PlannedJob, place: &Place) -> Result<Invocation, HostError> {
    let unsuitable = |what: String| HostError::of_job(job, what);
    let tool = tool(job)?;
    if tool.needs_folder() && !place.is_folder {
        return Err(unsuitable(format!(
            "{tool} needs a file system; the suite's `filesystems` makes one"
        )));
    }
    let at = raidlab_tools::Place {
        path: &place.path,
        file: &place.file(),
    };
    let call = tool.call(arguments, &at).map_err(unsuitable)?;
    Ok(Invocation {
        tool,
        command: Command::changes(tool.name(), call.arguments),
        operation: call.operation,
    })
}

/// Reads what a tool printed.
///
/// # Errors
/// When the output is not understood.
pub fn parse(invocation: &Invocation, output: &Output) -> Result<ToolResult, ParseError> {
    let tool = invocation.tool;
    tool.parse(tool.output(&output.stdout, &output.stderr))
}

#[cfg(test)]
mod tests;
