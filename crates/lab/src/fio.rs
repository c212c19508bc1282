//! The fio text of a suite or a job file: its list of options, and the model's reading of them.

use crate::catalogue;
use crate::document::{Document, FileError, Problem};
use crate::files::Files;
use crate::placeholder;
use raidlab_units::in_one_line;
use raidlab_workload::{FioJobs, JobFileError, JobGroup, Note, Permission, Place};
use std::ops::Range;
use std::path::Path;

/// fio's text in a suite's step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FioText {
    /// Command lines, one for each job that runs at the same time.
    Options(Vec<String>),
    /// A job file.
    JobFile {
        /// The name of the file in messages.
        name: String,
        /// The text of the job file.
        text: String,
    },
}

/// A job's fio text as read.
#[derive(Debug, Clone)]
pub(crate) struct FioReading {
    /// fio's options as the file has them.
    pub jobs: FioJobs,
    /// The jobs that run together, without options that are not modelled, and with examples in the
    /// place of placeholders.
    pub group: JobGroup,
    /// The reason why the group is incomplete, and cannot be modelled.
    pub not_modelled: Option<String>,
    /// Notes for the user.
    pub notes: Vec<Note>,
}

impl FioReading {
    /// The group that the model runs, or the reason why it cannot.
    pub(crate) fn modelled(&self) -> Result<JobGroup, String> {
        match &self.not_modelled {
            None => Ok(self.group.clone()),
            Some(reason) => Err(reason.clone()),
        }
    }
}

/// Reads a job's fio text: everything in it runs at the same time. Command
/// lines are split at blanks, quotes have no meaning. Files that a job file
/// includes are looked for in `folder`.
///
/// # Errors
/// With the suite's file and line and fio's option.
pub(crate) fn read_fio(
    document: &Document,
    span: Range<usize>,
    job: &str,
    fio: &FioText,
    (folder, files): (&Path, &Files),
) -> Result<FioReading, FileError> {
    let blamed = |error: JobFileError| blame(document, span.clone(), &error);
    let jobs = match fio {
        FioText::Options(lines) => read_lines(&format!("job {job}"), lines, files.permission()),
        FioText::JobFile { name, text } => read_job_file(name, text, folder, files),
    }
    .map_err(blamed)?;
    let groups = jobs.groups().len();
    if groups > 1 {
        let what = format!("with `stonewall` this is {groups} runs, one after the other");
        let remedy = "write one step for each of them";
        return Err(document.invalid(span, what, remedy));
    }
    read_group(jobs).map_err(|error| match error {
        GroupError::Placeholder(error) => {
            document.invalid(span.clone(), error.to_string(), placeholder::REMEDY)
        }
        GroupError::Fio(error) => blamed(error),
    })
}

/// Reads command lines of jobs that run together. A job whose line begins a group is alone in it.
fn read_lines(
    name: &str,
    lines: &[String],
    permission: &Permission,
) -> Result<FioJobs, JobFileError> {
    let mut all = FioJobs {
        name: name.to_owned(),
        ..FioJobs::default()
    };
    for line in lines {
        let words: Vec<&str> = line.split_whitespace().collect();
        let read = FioJobs::from_command_line(name, &words, permission)?;
        all.jobs.extend(read.jobs);
        all.notes.extend(read.notes);
    }
    Ok(all)
}

/// Reads a job file, and its includes, if that is allowed.
pub(crate) fn read_job_file(
    name: &str,
    text: &str,
    folder: &Path,
    files: &Files,
) -> Result<FioJobs, JobFileError> {
    let open = |file: &str| {
        let read = catalogue::read_text(files, &catalogue::beside(Path::new(file), folder));
        read.map_err(|error| in_one_line(&error))
    };
    FioJobs::from_job_file(name, text, files.permission(), &open)
}

/// The reason why jobs have no group.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GroupError {
    /// A word in braces is wrong.
    #[error(transparent)]
    Placeholder(placeholder::PlaceholderError),
    /// An option is wrong.
    #[error(transparent)]
    Fio(JobFileError),
}

/// Reads jobs that run together, as the model understands them.
pub(crate) fn read_group(jobs: FioJobs) -> Result<FioReading, GroupError> {
    let mut not_modelled = None;
    let examples = jobs.expand(|text| {
        let example = placeholder::example(text)?;
        Ok(example.unwrap_or_else(|| text.to_owned()))
    });
    let examples = examples.map_err(GroupError::Placeholder)?;
    if examples != jobs {
        let reason = "part of it depends on the machine: the words in braces";
        not_modelled = Some(reason.to_owned());
    }
    let (file, error) = examples.partly_model().map_err(GroupError::Fio)?;
    let not_modelled = not_modelled.or_else(|| error.map(|error| in_one_line(&error)));
    let mut group = JobGroup::default();
    for one in file.groups {
        group.stop_together |= one.stop_together;
        group.jobs.extend(one.jobs);
    }
    Ok(FioReading {
        jobs,
        group,
        not_modelled,
        notes: file.notes,
    })
}

/// A workload's error at its place in the suite's file. A job file inside the
/// suite begins below the opening quotes, so its lines are the suite's lines.
fn blame(document: &Document, span: Range<usize>, error: &JobFileError) -> FileError {
    let written = &document.text[span.clone()];
    let inline = ["\"\"\"", "'''"].iter().any(|quotes| {
        let begin = written.strip_prefix(quotes).unwrap_or_default();
        begin.starts_with('\n') || begin.starts_with("\r\n")
    });
    let mut blamed = document.error(span, Problem::Fio(in_one_line(error)));
    if let (true, Some(Place::Line { line, .. })) = (inline, error.place()) {
        blamed.line += line;
    }
    blamed
}
