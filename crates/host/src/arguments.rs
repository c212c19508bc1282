//! From a planned job to a tool's argument vector, and from its output back.
//!
//! fio's options pass through as the suite writes them, word by word, so that
//! options which nothing here knows reach fio too. raidlab adds where to run
//! and how to report, and replaces the engine and the depth where the suite
//! leaves the way of queueing to the host. bonnie++, iozone and dd get the
//! folder or the file in the place where their own options want it.

use crate::error::HostError;
use crate::place::Place;
use crate::session::Session;
use raidlab_inventory::counters::memory_state;
use raidlab_lab::{FioText, Placeholders, PlannedJob, QueueStyle, Work, expand};
use raidlab_shell::{Command, Output};
use raidlab_store::Operation;
use raidlab_tools::{ParseError, Tool, ToolResult, fio};
use std::str::FromStr;

/// A tool ready to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    /// Which.
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
    let expanded = |text: &str| {
        expand(text, &values).map_err(|error| HostError::Unsuitable {
            what: format!("job `{}`: {error}", job.name),
        })
    };
    match &job.work {
        Work::Fio {
            text: FioText::Options(lines),
            ..
        } => {
            let lines: Vec<String> = lines
                .iter()
                .map(|line| expanded(line))
                .collect::<Result<_, _>>()?;
            Ok(fio_command(options(&lines, job, place)))
        }
        Work::Fio { group, .. } => {
            let group = group.as_ref().map_err(|reason| HostError::Unsuitable {
                what: format!("job `{}`: {reason}", job.name),
            })?;
            let file = place.path().to_owned();
            let invocation = fio::Invocation {
                group,
                place: if place.is_folder() {
                    fio::Place::Folder(&file)
                } else {
                    fio::Place::File(&file)
                },
                asynchronous_engine: "libaio",
                synchronous_engine: "psync",
                clock_source: None,
                report_together: group.jobs.len() == 1,
                logs: None,
                extra: &[("direct".to_owned(), "1".to_owned())],
            };
            let arguments = invocation
                .arguments()
                .map_err(|error| HostError::Unsuitable {
                    what: format!("job `{}`: {error}", job.name),
                })?;
            Ok(fio_command(arguments))
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

fn fio_command(arguments: Vec<String>) -> Invocation {
    Invocation {
        tool: Tool::Fio,
        command: Command::changes("fio", arguments),
        operation: None,
    }
}

/// fio's argument vector out of option lines, one for each job.
fn options(lines: &[String], job: &PlannedJob, place: &Place) -> Vec<String> {
    let on = if place.is_folder() {
        "directory"
    } else {
        "filename"
    };
    // A colon separates paths in fio's list of files.
    let on = format!("--{on}={}", place.path().replace(':', "\\:"));
    let mut arguments = vec![
        "--output-format=json+".to_owned(),
        "--eta=never".to_owned(),
        "--name=global".to_owned(),
    ];
    let lines: Vec<Vec<String>> = lines.iter().map(|line| words(line)).collect();
    let elsewhere = |words: &[String]| {
        let mut own = words.iter();
        own.any(|word| word.starts_with("--filename=") || word.starts_with("--directory="))
    };
    // Even before a file's absolute path fio puts a folder that was given.
    let everywhere = !lines.iter().any(|words| elsewhere(words));
    if everywhere {
        arguments.push(on.clone());
    }
    // fio reports a group of different jobs under the first one's name with
    // the last one's options; clones of one job are the same.
    if lines.len() == 1 {
        arguments.push("--group_reporting=1".to_owned());
    }
    for (index, mut words) in lines.into_iter().enumerate() {
        // What stands before a job's name is for the jobs that follow.
        let named = words.iter().position(|word| word.starts_with("--name="));
        let name = named.map_or_else(
            || format!("--name=job{}", index + 1),
            |place| words.remove(place),
        );
        arguments.push(name);
        if !everywhere && !elsewhere(&words) {
            arguments.push(on.clone());
        }
        queue_as(&mut words, job.queue);
        heed_seed(&mut words);
        arguments.extend(words);
    }
    arguments
}

/// A line's options, each with its value in one word: `--bs 4k` is `--bs=4k`.
fn words(line: &str) -> Vec<String> {
    let mut words = line.split_whitespace().peekable();
    let mut options = Vec::new();
    while let Some(word) = words.next() {
        let value = words.next_if(|next| !word.contains('=') && !next.starts_with('-'));
        options.push(match value {
            Some(value) => switched(&format!("{word}={value}")),
            None => switched(word),
        });
    }
    options
}

/// A bare switch with its value: fio takes the argument behind a bare
/// `--end_fsync` for its value, and reports no bare switch back.
fn switched(word: &str) -> String {
    let option = word.trim_start_matches('-');
    if option.contains('=') {
        format!("--{option}")
    } else {
        format!("--{option}=1")
    }
}

/// Before fio 3.35 the offsets' generator looks at a seed only together with
/// `randrepeat=0` (axboe/fio issue 1502, mended in commit 95282650); with it all
/// versions do, and the run is repeatable still.
fn heed_seed(words: &mut Vec<String>) {
    let has = |name: &str| words.iter().any(|word| word.starts_with(name));
    if has("--randseed=") && !has("--randrepeat=") && !has("--allrandrepeat=") {
        words.push("--randrepeat=0".to_owned());
    }
}

/// Gives a job's options the way of queueing of the host.
fn queue_as(words: &mut Vec<String>, queue: Option<QueueStyle>) {
    let Some(queue) = queue else {
        return;
    };
    let number = |words: &[String], name: &str| -> u32 {
        let prefix = format!("--{name}=");
        let value = words
            .iter()
            .rev()
            .find_map(|word| word.strip_prefix(&prefix));
        value.and_then(|value| value.parse().ok()).unwrap_or(1)
    };
    let (depth, jobs) = (number(words, "iodepth"), number(words, "numjobs"));
    let replaced = ["--ioengine=", "--iodepth=", "--numjobs="];
    words.retain(|word| !replaced.iter().any(|prefix| word.starts_with(prefix)));
    let (engine, depth, jobs) = match queue {
        QueueStyle::Libaio => ("libaio", depth, jobs),
        QueueStyle::Threads => ("psync", 1, jobs.saturating_mul(depth)),
    };
    words.push(format!("--ioengine={engine}"));
    words.push(format!("--iodepth={depth}"));
    words.push(format!("--numjobs={jobs}"));
    if queue == QueueStyle::Threads {
        words.push("--thread=1".to_owned());
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
