//! The reader of fio's command-line options.
//!
//! As in `parse_cmd_line` of fio's init.c, options before the first `--name`
//! are defaults, and each `--name` starts a job. Where there is no `--name` at
//! all fio finds no job; here that is one job.

use super::error::{JobFileError, Place};
use super::job_file::assignment;
use super::section::{Assignment, Collector};
use super::table::{PROGRAM_OPTIONS, lists};
use super::{JobFile, Note};

/// Reads options as fio's command line has them: `--bs=4k`, `--bs 4k`,
/// `--time_based`, also with one dash. `name` is what errors and notes call the
/// command line, and the job's name where no `--name` is given.
///
/// # Errors
/// The first thing that is wrong, with the argument's number and the option.
pub fn parse_command_line_options<S: AsRef<str>>(
    name: &str,
    arguments: &[S],
) -> Result<JobFile, JobFileError> {
    let mut options = Vec::new();
    let mut collector = Collector::default();
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
        let mut option = assignment(text, place);
        let next = arguments.get(index).map(AsRef::as_ref);
        if option.value.is_none()
            && let Some(value) = next.filter(|next| !next.starts_with('-'))
        {
            option.value = Some(value);
            index += 1;
        }
        if lists(PROGRAM_OPTIONS, option.option) {
            collector.note(Note {
                place: option.place,
                option: option.option.to_owned(),
                text: "an option of the fio program, which is not run",
            });
        } else {
            options.push(option);
        }
    }
    collect(collector, name, &options)
}

fn collect(
    mut collector: Collector,
    name: &str,
    options: &[Assignment<'_>],
) -> Result<JobFile, JobFileError> {
    let is_name = |assignment: &Assignment<'_>| assignment.option == "name";
    let defaults = options.iter().position(is_name).unwrap_or(options.len());
    let (before, named) = options.split_at(defaults);
    if named.is_empty() {
        let place = Place::Argument {
            name: name.to_owned(),
            number: 1,
        };
        collector.job(name, &place, before)?;
        return collector.finish(name);
    }
    collector.global(before)?;
    for job in named.chunk_by(|_, next| !is_name(next)) {
        let place = &job[0].place;
        if job[0]
            .value
            .is_some_and(|value| value.starts_with("global"))
        {
            collector.global(&job[1..])?;
        } else {
            collector.job(name, place, job)?;
        }
    }
    collector.finish(name)
}
