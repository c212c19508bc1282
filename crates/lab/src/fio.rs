//! What a suite says to fio, read by the workload's own reader.

use crate::document::{Document, FileError, Problem};
use crate::placeholder;
use crate::suite::FioText;
use raidlab_workload::{JobFile, JobFileError, JobGroup, OptionError, Place};
use std::error::Error;
use std::ops::Range;

/// A job's fio text as read.
#[derive(Debug, Clone, Default)]
pub(crate) struct FioReading {
    /// What runs together; without the options that are not modelled, and with
    /// examples in the place of placeholders.
    pub group: JobGroup,
    /// Why the group is not all that the text says, and cannot be modelled.
    pub not_modelled: Option<String>,
}

/// Reads a job's fio text: everything in it runs at the same time.
///
/// Command lines are split at blanks, quotes have no meaning. Options that fio
/// has and the model has not are left out and named, one by one, until the
/// rest can be read.
///
/// # Errors
/// With the suite's file and line and fio's option.
pub(crate) fn read_fio(
    document: &Document,
    span: Range<usize>,
    job: &str,
    fio: &FioText,
) -> Result<FioReading, FileError> {
    let mut reading = FioReading::default();
    let texts = match fio {
        FioText::Options(lines) => lines.iter().collect(),
        FioText::JobFile { text, .. } => vec![text],
    };
    for text in texts {
        let example = placeholder::example(text).map_err(|error| {
            document.invalid(span.clone(), error.to_string(), placeholder::REMEDY)
        })?;
        if example.is_some() {
            let reason = "part of it depends on the machine: the words in braces";
            reading.not_modelled = Some(reason.to_owned());
        }
        let text = example.as_deref().unwrap_or(text);
        let partly = match fio {
            FioText::Options(_) => read_options(&format!("job {job}"), text),
            FioText::JobFile { name, .. } => read_lines(name, text),
        };
        let partly = partly.map_err(|error| blame(document, span.clone(), &error))?;
        if reading.not_modelled.is_none() {
            reading.not_modelled = partly.not_modelled;
        }
        let [one] = <[JobGroup; 1]>::try_from(partly.groups).map_err(|groups| {
            let what = format!(
                "with `stonewall` this is {} runs, one after the other",
                groups.len()
            );
            document.invalid(span.clone(), what, "write one step for each of them")
        })?;
        reading.group.stop_together |= one.stop_together;
        reading.group.jobs.extend(one.jobs);
    }
    Ok(reading)
}

/// What could be read, and the first thing that is fio's but not modelled.
struct Partly {
    groups: Vec<JobGroup>,
    not_modelled: Option<String>,
}

/// Reads a command line.
fn read_options(name: &str, text: &str) -> Result<Partly, JobFileError> {
    let arguments = text.split_whitespace().map(str::to_owned).collect();
    // It stands for an option that is left out; it has no effect.
    leave_out(arguments, "--group_reporting", |arguments| {
        raidlab_workload::parse_command_line_options(name, arguments)
    })
}

/// Reads a job file.
fn read_lines(name: &str, text: &str) -> Result<Partly, JobFileError> {
    let lines = text.lines().map(str::to_owned).collect();
    leave_out(lines, "", |lines| {
        raidlab_workload::read_job_file(name, &lines.join("\n"))
    })
}

/// Reads `parts` again and again, with `filler` for each part that says
/// something that is not modelled, until the rest can be read.
fn leave_out(
    mut parts: Vec<String>,
    filler: &str,
    read: impl Fn(&[String]) -> Result<JobFile, JobFileError>,
) -> Result<Partly, JobFileError> {
    let mut not_modelled = None;
    loop {
        let error = match read(&parts) {
            Ok(JobFile { groups, .. }) => {
                return Ok(Partly {
                    groups,
                    not_modelled,
                });
            }
            Err(error) => error,
        };
        let JobFileError::Option {
            place,
            option,
            cause,
        } = &error
        else {
            return Err(error);
        };
        if !matches!(**cause, OptionError::NotModelled { .. }) {
            return Err(error);
        }
        not_modelled.get_or_insert_with(|| chain(&error));
        let (Place::Line { line: number, .. } | Place::Argument { number, .. }) = place;
        let first = number - 1;
        if !parts
            .get(first)
            .is_some_and(|part| part.contains(option.as_str()))
        {
            // Some other part is to blame, and nobody says which.
            return Ok(Partly {
                groups: vec![JobGroup::default()],
                not_modelled,
            });
        }
        // `--rate 10m` is two arguments.
        let value = parts
            .get(first + 1)
            .is_some_and(|next| !next.starts_with('-'));
        let last = match place {
            Place::Argument { .. } if value && !parts[first].contains('=') => first + 1,
            _ => first,
        };
        parts[first..=last].fill(filler.to_owned());
    }
}

/// A workload's error at its place in the suite's file. A job file inside the
/// suite begins below the opening quotes, so its lines are the suite's lines.
fn blame(document: &Document, span: Range<usize>, error: &JobFileError) -> FileError {
    let inline = document.text[span.clone()].starts_with("\"\"\"\n");
    let mut blamed = document.error(span, Problem::Fio(chain(error)));
    if let (true, Some(line)) = (inline, line_of(error)) {
        blamed.line += line;
    }
    blamed
}

/// The line of a job file that an error is about.
const fn line_of(error: &JobFileError) -> Option<usize> {
    match error {
        JobFileError::Option { place, .. }
        | JobFileError::Job { place, .. }
        | JobFileError::SectionHeader { place, .. }
        | JobFileError::OutsideSection { place, .. }
        | JobFileError::Include { place, .. }
        | JobFileError::Argument { place, .. } => match place {
            Place::Line { line, .. } => Some(*line),
            Place::Argument { .. } => None,
        },
        JobFileError::NoJob { .. } => None,
    }
}

/// An error and its causes in one line.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
