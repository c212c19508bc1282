//! Modelling of jobs: from lists of options to groups of jobs that run together.

use super::error::{JobFileError, OptionError, Place};
use super::modelled::{self, Draft};
use super::options::{FioJob, FioJobs, FioOption};
use super::table::{self, Rule};
use super::{JobFile, Note};
use crate::job::{JobError, JobSpec, group_jobs};
use crate::shape::{Rate, Sizes};
use raidlab_units::Nanos;

impl FioJobs {
    /// The job file as the model runs it.
    ///
    /// # Errors
    /// The first error, or option that is not modelled, with its place and option.
    pub fn model(&self) -> Result<JobFile, JobFileError> {
        match self.partly_model()? {
            (file, None) => Ok(file),
            (_, Some(error)) => Err(error),
        }
    }

    /// The job file as the model would run it without the options that it does not know, and the
    /// first of those.
    ///
    /// # Errors
    /// The first error, with its place and option.
    pub fn partly_model(&self) -> Result<(JobFile, Option<JobFileError>), JobFileError> {
        let mut collector = Collector::new(&self.notes);
        for job in &self.jobs {
            collector.job(job.section.as_deref().unwrap_or(&self.name), job)?;
        }
        let (mut file, error) = collector.finish(&self.name)?;
        for job in file.groups.iter_mut().flat_map(|group| &mut group.jobs) {
            job.first_process = job.first_process.saturating_add(self.processes_before);
        }
        Ok((file, error))
    }
}

/// The largest number of clones that fio runs (`REAL_MAX_JOBS`).
const MOST_CLONES: u64 = 4096;

/// Collects the jobs of a file or command line, one section after the other.
#[derive(Debug, Default)]
pub(super) struct Collector {
    jobs: Vec<JobSpec>,
    notes: Vec<Note>,
    /// The file that the jobs run on.
    file_name: Option<String>,
    stop_together: bool,
    /// The number of clones in the open group.
    clones: u64,
    /// The error of the first option that is not modelled, which is left out.
    not_modelled: Option<JobFileError>,
    /// The number of the open reporting group.
    reports: u32,
    /// The job that would end all others, and the error where there are later ones.
    ends_all: Option<(usize, JobFileError)>,
}

impl Collector {
    pub(super) fn new(notes: &[Note]) -> Self {
        Self {
            notes: notes.to_vec(),
            ..Self::default()
        }
    }

    /// Adds a job, which is called `name` by default.
    pub(super) fn job(&mut self, name: &str, job: &FioJob) -> Result<(), JobFileError> {
        let (place, options) = (&job.place, &job.options);
        let mut draft = Draft::default();
        name.clone_into(&mut draft.spec.name);
        self.apply(&mut draft, options)?;
        // The place of a check that is done now is where the section last gave the option.
        let place_of = |names: &[&str]| {
            let said = options
                .iter()
                .rfind(|said| names.iter().any(|name| said.is(name)));
            said.map_or(place, |said| &said.place).clone()
        };
        let option_error = |names: &[&str], cause| JobFileError::Option {
            place: place_of(names),
            option: names[0].to_owned(),
            cause: Box::new(cause),
        };
        if let Err((option, cause)) = modelled::settle(&mut draft) {
            self.refuse(option_error(&[option], cause))?;
        }
        let runtime = draft.spec.runtime.filter(|&time| time > Nanos::ZERO);
        if draft.spec.time_based && runtime.is_none() {
            draft.spec.time_based = false;
            self.notes.push(Note {
                place: place_of(&["time_based"]),
                option: String::from("time_based"),
                text: "ignored, as in fio: there is no `runtime`",
            });
        }
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
        let wrong = |spec: &JobSpec, cause| JobFileError::Job {
            place: place.clone(),
            job: spec.name.clone(),
            cause: Box::new(cause),
        };
        if let Some(awaited) = draft.spec.wait_for.take() {
            draft.spec.wait_for = self
                .awaited(&draft.spec, awaited)
                .map_err(|cause| wrong(&draft.spec, cause))?;
        }
        self.count_clones(&draft.spec)
            .and_then(|()| draft.spec.validate())
            .map_err(|cause| wrong(&draft.spec, cause))?;
        self.reports += u32::from(draft.new_group);
        draft.spec.report_group = self.reports;
        if draft.ends_all {
            let reason = "jobs of later groups that never run";
            let error = option_error(&["exit_what"], OptionError::NotModelled { reason });
            self.ends_all = Some((self.jobs.len(), error));
        }
        self.note_what_differs(&draft.spec, place_of);
        self.jobs.push(draft.spec);
        Ok(())
    }

    /// Adds notes on options that do not do what their names say; `place_of`: the place where the
    /// section last gave one of these options.
    fn note_what_differs(&mut self, spec: &JobSpec, place_of: impl Fn(&[&str]) -> Place) {
        let mut note = |names: &[&str], option: &str, text| {
            self.notes.push(Note {
                place: place_of(names),
                option: option.to_owned(),
                text,
            });
        };
        if spec.random_map && spec.pattern.is_random() && spec.alignment.is_some() {
            let text = "blocks may come again, as in fio: there is no random map beside it";
            note(&["ba"], "blockalign", text);
        }
        if spec.io_depth > spec.queue_depth() {
            let text =
                "ignored, as in fio: a synchronous engine has one request in flight per clone";
            note(&["iodepth"], "iodepth", text);
        }
        let is_open = |rate: Rate| rate.offload && rate.per_second != [0; 3];
        if spec.rate.is_some_and(is_open) {
            let text = "a latency counts in the model from when its request was due; fio counts it \
                        from when the request has its place in `iodepth`";
            note(&["io_submit_mode"], "io_submit_mode", text);
        }
        let sizes = |job: &JobSpec, direction: usize| {
            let of = job.sizes.as_ref().map(|sizes| sizes[direction].clone());
            of.unwrap_or(Sizes::One(job.block_size))
        };
        let does = |job: &JobSpec| [job.reads(), job.pattern.writes(), job.pattern.trims()];
        let differs = |before: &JobSpec| {
            let both = |way: &usize| does(before)[*way] && does(spec)[*way];
            (0..3)
                .filter(both)
                .any(|way| sizes(before, way) != sizes(spec, way))
        };
        let group = self.jobs.iter().rposition(|job| job.stonewall).unwrap_or(0);
        if !spec.stonewall && self.jobs[group..].iter().any(differs) {
            let text = "another size than that of a job before, with which it shares a row: \
                        `stonewall`, or in a suite a step, gives it one of its own, behind that job";
            note(&["bs", "blocksize", "bsrange", "bssplit"], "bs", text);
        }
    }

    /// The job file called `name`, and the error of the first option that is not modelled.
    pub(super) fn finish(
        mut self,
        name: &str,
    ) -> Result<(JobFile, Option<JobFileError>), JobFileError> {
        if self.jobs.is_empty() {
            return Err(JobFileError::NoJob {
                name: name.to_owned(),
            });
        }
        if let Some((job, error)) = self.ends_all.take()
            && self.stop_together
            && self.jobs[job + 1..].iter().any(|later| later.stonewall)
        {
            self.not_modelled.get_or_insert(error);
        }
        self.notes.sort_by(|one, other| one.place.cmp(&other.place));
        // The options of a `[global]` section are in the list of each job.
        self.notes.dedup();
        let file = JobFile {
            groups: group_jobs(self.jobs, self.stop_together),
            notes: self.notes,
        };
        Ok((file, self.not_modelled))
    }

    /// Adds a job's clones to those that run with it, up to fio's limit.
    fn count_clones(&mut self, spec: &JobSpec) -> Result<(), JobError> {
        let beside = if spec.stonewall { 0 } else { self.clones };
        self.clones = beside + u64::from(spec.num_jobs);
        match self.clones {
            ..=MOST_CLONES => Ok(()),
            given => Err(JobError::TooMany {
                what: "clones that run together",
                given,
                most: MOST_CLONES,
            }),
        }
    }

    /// The job that `spec` waits for, if they run together: one of an earlier group has ended.
    fn awaited(&self, spec: &JobSpec, name: String) -> Result<Option<String>, JobError> {
        let found = self.jobs.iter().rposition(|job| job.name == name);
        let Some(index) = found else {
            return Err(JobError::NoJobToWaitFor { name });
        };
        let mut later = self.jobs[index + 1..].iter();
        let ended = spec.stonewall || later.any(|job| job.stonewall);
        Ok((!ended).then_some(name))
    }

    fn apply(&mut self, draft: &mut Draft, options: &[FioOption]) -> Result<(), JobFileError> {
        for option in options {
            let said = |text| Note {
                place: option.place.clone(),
                option: option.name.clone(),
                text,
            };
            match apply_one(draft, option) {
                Ok(note) => self.notes.extend(note.map(said)),
                Err(cause) => self.refuse(JobFileError::Option {
                    place: option.place.clone(),
                    option: option.name.clone(),
                    cause: Box::new(cause),
                })?,
            }
        }
        self.stop_together |= draft.stop_together;
        Ok(())
    }

    /// Handles an error: an option that is not modelled is left out and remembered; any other error
    /// ends the reading.
    fn refuse(&mut self, error: JobFileError) -> Result<(), JobFileError> {
        match &error {
            JobFileError::Option { cause, .. }
                if matches!(**cause, OptionError::NotModelled { .. }) =>
            {
                self.not_modelled.get_or_insert(error);
                Ok(())
            }
            _ => Err(error),
        }
    }
}

fn apply_one(draft: &mut Draft, option: &FioOption) -> Result<Option<&'static str>, OptionError> {
    let value = option.value.as_deref();
    match table::rule(&option.name) {
        Some(Rule::Modelled(set)) => set.apply(draft, value),
        Some(Rule::WithoutEffect(reason)) => Ok(Some(reason)),
        Some(Rule::NotModelled(reason)) => {
            let harmless = table::harmless(&option.name);
            match value.is_some_and(|value| harmless.contains(&value)) {
                true => Ok(None),
                false => Err(OptionError::NotModelled { reason }),
            }
        }
        None => Err(OptionError::Unknown {
            nearest: table::nearest(&option.name),
        }),
    }
}
