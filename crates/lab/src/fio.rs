//! What a suite says to fio, read by the workload's own reader.

use crate::document::{Document, FileError, Problem};
use crate::suite::FioText;
use raidlab_workload::{JobFile, JobFileError, JobGroup, Place};
use std::error::Error;
use std::ops::Range;

/// Reads a job's fio text: everything in it runs at the same time.
///
/// Command lines are split at blanks, quotes have no meaning.
///
/// # Errors
/// With the suite's file and line and fio's option.
pub(crate) fn read_fio(
    document: &Document,
    span: Range<usize>,
    job: &str,
    fio: &FioText,
) -> Result<JobGroup, FileError> {
    let mut group = JobGroup::default();
    let mut add = |file: JobFile| {
        let [one] = <[JobGroup; 1]>::try_from(file.groups).map_err(|groups| {
            let what = format!(
                "with `stonewall` this is {} runs, one after the other",
                groups.len()
            );
            document.invalid(span.clone(), what, "write one step for each of them")
        })?;
        group.stop_together |= one.stop_together;
        group.jobs.extend(one.jobs);
        Ok(())
    };
    match fio {
        FioText::Options(lines) => {
            for line in lines {
                let arguments: Vec<&str> = line.split_whitespace().collect();
                let name = format!("job {job}");
                let file = raidlab_workload::parse_command_line_options(&name, &arguments);
                add(file.map_err(|error| blame(document, span.clone(), &error))?)?;
            }
        }
        FioText::JobFile { name, text } => {
            let file = raidlab_workload::read_job_file(name, text);
            add(file.map_err(|error| blame(document, span.clone(), &error))?)?;
        }
    }
    Ok(group)
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
