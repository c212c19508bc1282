//! The reader of fio's command-line options.
//!
//! As in `parse_cmd_line` of fio's init.c, options before the first `--name`
//! are defaults, and each `--name` starts a job. Where there is no `--name` at
//! all fio finds no job; here that is one job, and so is a line with one
//! `--name` somewhere.

use super::error::{JobFileError, Place};
use super::options::{FioJob, FioJobs, FioOption};
use super::permission::Permission;
use super::reader::{Reader, split};

impl FioJobs {
    /// Reads options as fio's command line has them: `--bs=4k`, `--bs 4k`, `--time_based`, also
    /// with one dash. `name` is the command line's name in errors and notes, and the job's name
    /// where no `--name` is given.
    ///
    /// # Errors
    /// The first error, or forbidden option, with the argument's number and the option.
    pub fn from_command_line<S: AsRef<str>>(
        name: &str,
        arguments: &[S],
        permission: &Permission,
    ) -> Result<Self, JobFileError> {
        let mut reader = Reader::new(permission);
        let mut options = Vec::new();
        let mut index = 0;
        while let Some(argument) = arguments.get(index) {
            let place = Place::Argument {
                name: name.to_owned(),
                number: index + 1,
            };
            index += 1;
            let argument = argument.as_ref().trim();
            let text = argument
                .strip_prefix("--")
                .or_else(|| argument.strip_prefix('-'))
                .filter(|text| !text.is_empty())
                .ok_or_else(|| JobFileError::Argument {
                    place: place.clone(),
                    text: argument.to_owned(),
                })?;
            let (option, mut value) = split(text);
            let next = arguments.get(index).map(AsRef::as_ref);
            if value.is_none()
                && let Some(next) = next.filter(|next| !next.starts_with('-'))
            {
                value = Some(next);
                index += 1;
            }
            options.extend(reader.option(option, value, place)?);
        }
        let place = Place::Argument {
            name: name.to_owned(),
            number: 1,
        };
        Ok(Self {
            name: name.to_owned(),
            jobs: jobs(options, place),
            notes: reader.notes,
            processes_before: 0,
        })
        .and_then(Self::checked)
    }
}

/// Splits a command line into jobs, each with the options before the first job.
fn jobs(options: Vec<FioOption>, place: Place) -> Vec<FioJob> {
    let is_name = |option: &FioOption| option.name == "name";
    let job = |place: Place, options: Vec<FioOption>| FioJob {
        section: None,
        place,
        options,
    };
    let is_global = |option: &FioOption| {
        let name = option.value.as_deref().filter(|_| is_name(option));
        name.is_some_and(|name| name.starts_with("global"))
    };
    let names = options.iter().filter(|option| is_name(option));
    if names.count() < 2 && !options.iter().any(is_global) {
        return vec![job(place, options)];
    }
    let first = options.iter().position(is_name).unwrap_or(options.len());
    let (before, named) = options.split_at(first);
    let mut defaults = before.to_vec();
    let mut jobs = Vec::new();
    for own in named.chunk_by(|_, next| !is_name(next)) {
        if is_global(&own[0]) {
            defaults.extend_from_slice(&own[1..]);
        } else {
            let all = defaults.iter().chain(own).cloned().collect();
            jobs.push(job(own[0].place.clone(), all));
        }
    }
    jobs
}
