//! What a run says of fio's options in its jobs: notes for the user, and a refusal.

use super::Experiment;
use crate::subject::Subject;
use crate::suite::{Job, Suite, Work};
use raidlab_units::grouped;
use raidlab_workload::JobFileError;
use std::collections::BTreeSet;

/// Notes on options of fio that do not do what their names say in the jobs of these experiments.
/// Each is given once, with its first place. `modelled`: the model runs the jobs, so its treatment
/// of options is noted as well.
#[must_use]
pub fn option_notes(experiments: &[Experiment], modelled: bool) -> Vec<String> {
    let mut known = BTreeSet::new();
    let lists = experiments
        .iter()
        .filter(|one| known.insert(one.steps.as_ptr()));
    let notes = lists
        .flat_map(Experiment::jobs)
        .flat_map(|job| job.work.notes(modelled));
    grouped(notes.map(|note| ((note.option, note.text), note.place)))
        .into_iter()
        .filter_map(|((option, text), places)| {
            let places: BTreeSet<_> = places.into_iter().collect();
            let first = places.first()?;
            Some(match places.len() - 1 {
                0 => format!("{first}: `{option}`: {text}"),
                1 => format!("{first} and 1 more place: `{option}`: {text}"),
                more => format!("{first} and {more} more places: `{option}`: {text}"),
            })
        })
        .collect()
}

/// An option by which no disk would take a job's requests.
#[derive(Debug, thiserror::Error)]
pub enum UnalignedError {
    /// The option stands in a job file.
    #[error(transparent)]
    JobFile(JobFileError),
    /// The option stands in a step of a suite.
    #[error("{place}")]
    Step {
        /// The file and line of the step.
        place: String,
        /// The option, and what it needs.
        source: JobFileError,
    },
}

/// The first option with which direct I/O would reach a raw array in other than whole blocks, in the
/// steps of a suite that these subjects do. A file system may take such requests.
#[must_use]
pub fn unaligned(suite: &Suite, subjects: &[Subject]) -> Option<UnalignedError> {
    let is_raw = |subject: &&Subject| {
        let own = subject.filesystems.as_ref();
        let filesystems = own.unwrap_or(&suite.filesystems);
        let is_device = subject.build.as_ref().is_none_or(|build| build.is_device());
        is_device && filesystems.iter().any(Option::is_none)
    };
    let raw: Vec<&Subject> = subjects.iter().filter(is_raw).collect();
    let steps = suite.steps.iter().enumerate();
    let mut done = steps.filter(|(place, _)| raw.iter().any(|subject| subject.does(*place)));
    done.find_map(|(place, step)| {
        let of_job = |job: &Job| match &job.work {
            Work::Fio { jobs, .. } => Some((jobs.unaligned()?, jobs.is_from_job_file())),
            Work::Tool { .. } => None,
        };
        let (source, in_job_file) = step.jobs().iter().find_map(of_job)?;
        let place = suite.places.steps.get(place).filter(|_| !in_job_file);
        Some(match place.cloned() {
            Some(place) => UnalignedError::Step { place, source },
            None => UnalignedError::JobFile(source),
        })
    })
}
