//! The reader of fio's job files.
//!
//! The rules are those of `__parse_jobs_ini` in fio's init.c: `[name]` starts a
//! job, a name that begins with `global` starts defaults for the jobs after
//! it, `;` and `#` start a comment anywhere in a line, a line is `option=value`
//! or a bare `option`.

use super::JobFile;
use super::error::{JobFileError, Place};
use super::section::{Assignment, Collector};

/// Reads a job file. `name` is what errors and notes call it, `text` its
/// content.
///
/// # Errors
/// The first thing that is wrong, with its line and option.
pub fn read_job_file(name: &str, text: &str) -> Result<JobFile, JobFileError> {
    let mut collector = Collector::default();
    let mut section: Option<Section<'_>> = None;
    for (index, line) in text.lines().enumerate() {
        let place = Place::Line {
            file: name.to_owned(),
            line: index + 1,
        };
        let line = line.split([';', '#']).next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        if line.starts_with('[') {
            if let Some(ended) = section.take() {
                ended.close(&mut collector)?;
            }
            section = Some(Section::open(line, place)?);
            continue;
        }
        if line.split_whitespace().next() == Some("include") {
            return Err(JobFileError::Include {
                place,
                text: line.to_owned(),
            });
        }
        let Some(section) = &mut section else {
            return Err(JobFileError::OutsideSection {
                place,
                text: line.to_owned(),
            });
        };
        section.options.push(assignment(line, place));
    }
    if let Some(ended) = section {
        ended.close(&mut collector)?;
    }
    collector.finish(name)
}

/// Splits `option=value`.
pub(super) fn assignment(text: &str, place: Place) -> Assignment<'_> {
    let (option, value) = match text.split_once('=') {
        Some((option, value)) => (option.trim(), Some(value.trim())),
        None => (text, None),
    };
    Assignment {
        place,
        option,
        value,
    }
}

/// A section until its last line is read.
#[derive(Debug)]
struct Section<'text> {
    name: &'text str,
    place: Place,
    options: Vec<Assignment<'text>>,
}

impl<'text> Section<'text> {
    fn open(line: &'text str, place: Place) -> Result<Self, JobFileError> {
        match line
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            Some(name) if !name.trim().is_empty() => Ok(Self {
                name: name.trim(),
                place,
                options: Vec::new(),
            }),
            _ => Err(JobFileError::SectionHeader {
                place,
                text: line.to_owned(),
            }),
        }
    }

    fn close(self, collector: &mut Collector) -> Result<(), JobFileError> {
        if self.name.starts_with("global") {
            collector.global(&self.options)
        } else {
            collector.job(self.name, &self.place, &self.options)
        }
    }
}
