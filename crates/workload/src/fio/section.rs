//! From lines or arguments to jobs: what job files and command lines share.

use super::error::{JobFileError, OptionError, Place};
use super::modelled::Draft;
use super::table::{self, Rule};
use super::value::variable;
use super::{JobFile, Note};
use crate::job::{JobSpec, group_jobs};
use raidlab_units::Bytes;

/// One option as written.
#[derive(Debug, Clone)]
pub(super) struct Assignment<'text> {
    pub(super) place: Place,
    pub(super) option: &'text str,
    pub(super) value: Option<&'text str>,
}

/// Collects sections into jobs.
#[derive(Debug, Default)]
pub(super) struct Collector {
    /// What `[global]` sections said so far.
    defaults: Draft,
    jobs: Vec<JobSpec>,
    notes: Vec<Note>,
    /// The file that the jobs run on.
    file_name: Option<String>,
    stop_together: bool,
}

impl Collector {
    /// A `[global]` section: defaults for the jobs after it.
    pub(super) fn global(&mut self, options: &[Assignment<'_>]) -> Result<(), JobFileError> {
        let mut draft = self.defaults.clone();
        self.apply(&mut draft, options)?;
        self.defaults = draft;
        Ok(())
    }

    /// A job that begins at `place`.
    pub(super) fn job(
        &mut self,
        name: &str,
        place: &Place,
        options: &[Assignment<'_>],
    ) -> Result<(), JobFileError> {
        let mut draft = self.defaults.clone();
        name.clone_into(&mut draft.spec.name);
        self.apply(&mut draft, options)?;
        // What is settled only now stands where the section last said it.
        let place_of = |names: &[&str]| {
            let said = options.iter().rfind(|said| names.contains(&said.option));
            said.map_or(place, |said| &said.place).clone()
        };
        let option_error = |names: &[&str], cause| JobFileError::Option {
            place: place_of(names),
            option: names[0].to_owned(),
            cause: Box::new(cause),
        };
        draft.spec.block_size =
            block_size(&draft).map_err(|cause| option_error(&["bs", "blocksize"], cause))?;
        draft.spec.random_map = !draft.no_random_map || draft.shift_register;
        if let Some(name) = draft.file_name {
            let first = self.file_name.get_or_insert_with(|| name.clone());
            if *first != name {
                let reason = "jobs on different files; all jobs run on one device";
                return Err(option_error(
                    &["filename"],
                    OptionError::NotModelled { reason },
                ));
            }
        }
        draft.spec.validate().map_err(|cause| JobFileError::Job {
            place: place.clone(),
            job: draft.spec.name.clone(),
            cause: Box::new(cause),
        })?;
        if draft.spec.io_depth > draft.spec.queue_depth() {
            self.notes.push(Note {
                place: place_of(&["iodepth"]),
                option: String::from("iodepth"),
                text: "ignored, as in fio: a synchronous engine has one request in flight per clone",
            });
        }
        self.jobs.push(draft.spec);
        Ok(())
    }

    /// Something that the user should know.
    pub(super) fn note(&mut self, note: Note) {
        self.notes.push(note);
    }

    /// The jobs of the file or command line called `name`.
    pub(super) fn finish(mut self, name: &str) -> Result<JobFile, JobFileError> {
        if self.jobs.is_empty() {
            return Err(JobFileError::NoJob {
                name: name.to_owned(),
            });
        }
        self.notes.sort_by(|one, other| one.place.cmp(&other.place));
        Ok(JobFile {
            groups: group_jobs(self.jobs, self.stop_together),
            notes: self.notes,
        })
    }

    fn apply(&mut self, draft: &mut Draft, options: &[Assignment<'_>]) -> Result<(), JobFileError> {
        // fio sorts `kb_base` to the front, since sizes before it mean it too.
        let (first, rest): (Vec<_>, Vec<_>) = options
            .iter()
            .partition(|assignment| assignment.option == "kb_base");
        for assignment in first.into_iter().chain(rest) {
            let note = apply_one(draft, assignment).map_err(|cause| JobFileError::Option {
                place: assignment.place.clone(),
                option: assignment.option.to_owned(),
                cause: Box::new(cause),
            })?;
            if let Some(text) = note {
                self.notes.push(Note {
                    place: assignment.place.clone(),
                    option: assignment.option.to_owned(),
                    text,
                });
            }
        }
        self.stop_together |= draft.stop_together;
        Ok(())
    }
}

fn apply_one(
    draft: &mut Draft,
    assignment: &Assignment<'_>,
) -> Result<Option<&'static str>, OptionError> {
    if let Some(variable) = assignment.value.and_then(variable) {
        return Err(OptionError::Variable {
            variable: variable.to_owned(),
        });
    }
    match table::rule(assignment.option) {
        Some(Rule::Modelled(set)) => set(draft, assignment.value),
        Some(Rule::WithoutEffect(reason)) => Ok(Some(reason)),
        Some(Rule::NotModelled { reason, harmless }) => {
            if assignment
                .value
                .is_some_and(|value| harmless.contains(&value))
            {
                return Ok(None);
            }
            Err(OptionError::NotModelled { reason })
        }
        None => Err(OptionError::Unknown {
            nearest: table::nearest(assignment.option),
        }),
    }
}

/// The block size of the directions that the job uses.
fn block_size(draft: &Draft) -> Result<Bytes, OptionError> {
    let Some([reads, writes]) = draft.block_sizes else {
        return Ok(draft.spec.block_size);
    };
    let pattern = draft.spec.pattern;
    if pattern.is_mixed() && reads != writes {
        return Err(OptionError::NotModelled {
            reason: "requests of different sizes; use one block size",
        });
    }
    Ok(if pattern.reads() { reads } else { writes })
}
