//! An experiment: one subject of a suite with everything decided, ready to
//! run on any bench.

mod option_notes;
mod planned_job;
mod planning;

pub use option_notes::{UnalignedError, option_notes, unaligned};
pub use planned_job::PlannedJob;

use crate::host::QueueStyle;
use crate::subject::Subject;
use crate::suite::{Condition, Event, EventKind, Region, Step, Suite, Wait};
use planning::{first_sync, removals, suite_steps};
use raidlab_store::{Measurement, Scope};
use raidlab_systems::FileSystemSpec;
use raidlab_units::{Bytes, Nanos};
use raidlab_workload::JobError;
use std::collections::BTreeMap;
use std::sync::Arc;

/// One subject under one suite, ready to run.
#[derive(Debug, Clone, PartialEq)]
pub struct Experiment {
    /// The suite's name.
    pub suite: String,
    /// The machine that the experiment runs on; empty for modelled ones.
    pub host: String,
    /// The subject that is measured, with the host it is modelled on.
    pub subject: Subject,
    /// The file system that jobs run on; `None` is the raw array.
    pub filesystem: Option<FileSystemSpec>,
    /// The number of earlier repetitions, from 0.
    pub repetition: u32,
    /// The disks, one per member: a preset by name or path, or a device.
    pub disks: Vec<String>,
    /// The part of a modelled drive that each disk is.
    pub regions: Vec<Region>,
    /// The parameter set of the disk models: `strict`, `joint`; empty on real disks.
    pub fit: String,
    /// The seed of all random choices.
    pub seed: u64,
    /// Features of the model that are switched off, by name: `read-ahead`.
    pub without: Vec<String>,
    /// The processor of the modelled host, a preset by name or path; `None` if computing
    /// takes no time.
    pub processor: Option<String>,
    /// The steps, in this order. Experiments that differ only in the parameter set, the file system
    /// or the repetition share them.
    pub steps: Arc<[PlannedStep]>,
    /// The place of each step in the suite's file, for errors; empty for steps that no file has.
    pub places: Arc<[String]>,
    /// The sequence number of background work among the rows: after all of the suite's jobs,
    /// including those that this subject cannot do.
    pub background_sequence: u32,
    /// Steps at the suite's end that this subject cannot do: a single disk and an array without
    /// redundancy have no member that could be removed.
    pub left_out: usize,
}

/// The settings that all experiments of a run have in common.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Choices {
    /// The parameter sets of the disk models, in the order of the rows; empty on real disks.
    pub fits: Vec<String>,
    /// The seed of all random choices.
    pub seed: u64,
    /// Features of the model to switch off.
    pub without: Vec<String>,
    /// The processor of modelled hosts, instead of the suite's.
    pub processor: Option<String>,
    /// The machines, in the order of the rows; empty for modelled ones.
    pub hosts: Vec<HostChoice>,
    /// Whether the machines' disks are blank, so that all members are equal without a resync.
    /// Modelled disks always are.
    pub blank_disks: bool,
}

/// A real machine that a run uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostChoice {
    /// The name of the machine in rows.
    pub name: String,
    /// The way in which a queue depth above one is reached there.
    pub queue: QueueStyle,
    /// The devices of the members, one for each.
    pub disks: Vec<String>,
}

/// The wait for the end of an array's first resync. 24 TB at 100 MB/s take 67 hours.
const IN_SYNC: Wait = Wait::Until {
    condition: Condition::SyncDone,
    at_most: Nanos::from_secs(96 * 3600),
};

/// One step of an experiment, with all that a bench needs to carry it out.
pub type PlannedStep = Step<PlannedJob>;

/// The reason why a job does not fit on the array.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CapacityError {
    /// The members are too small for the array to hold any data.
    #[error("members of {member} are too small for subject `{subject}`")]
    Members {
        /// The subject on which it does not fit.
        subject: String,
        /// The size of the smallest member.
        member: Bytes,
    },
    /// A job reaches beyond the array's end.
    #[error("job `{job}` does not fit on `{subject}`, which holds {capacity}")]
    Job {
        /// The job that does not fit.
        job: String,
        /// The subject on which it does not fit.
        subject: String,
        /// The capacity of the array.
        capacity: Bytes,
        /// The error of the job.
        #[source]
        source: JobError,
    },
    /// A job asks for more bytes than there are after its offset.
    #[error(
        "job `{job}` asks `{subject}` for bytes up to {end}, but it holds {capacity}; ask for less \
         (`size`, `filesize`, `offset`), or {remedy}"
    )]
    TooLarge {
        /// The job that does not fit.
        job: String,
        /// The subject on which it does not fit.
        subject: String,
        /// The end that the job's region would have.
        end: Bytes,
        /// The capacity of the array.
        capacity: Bytes,
        /// What makes it larger.
        remedy: &'static str,
    },
}

impl CapacityError {
    /// Whether larger members would make room, which they do not where a job begins behind its
    /// own `filesize`.
    #[must_use]
    pub const fn wants_larger_members(&self) -> bool {
        match self {
            Self::Members { .. } | Self::TooLarge { .. } => true,
            Self::Job {
                capacity, source, ..
            } => match source {
                JobError::OffsetBehindEnd { end, .. } => end.0 >= capacity.0,
                JobError::NoRoom { .. } => true,
                _ => false,
            },
        }
    }
}

impl Suite {
    /// The experiments of a run, in the order of the rows: the machine or fit changes fastest, then
    /// the file system, then the subject, and the repetition slowest, so that repetitions of a cell
    /// lie far apart and slow changes of the machine hit all subjects alike.
    #[must_use]
    pub fn experiments(&self, subjects: &[Subject], choices: &Choices) -> Vec<Experiment> {
        let modelled = HostChoice::modelled();
        let hosts = match choices.hosts.as_slice() {
            [] => std::slice::from_ref(&modelled),
            hosts => hosts,
        };
        let real = String::new();
        let fits = match choices.fits.as_slice() {
            [] => std::slice::from_ref(&real),
            fits => fits,
        };
        let mut once = Vec::new();
        for subject in subjects {
            let on_host = |host| Experiment::new(self, subject, host, choices);
            let on_hosts: Vec<Experiment> = hosts.iter().map(on_host).collect();
            let own = subject.filesystems.as_ref();
            for filesystem in own.unwrap_or(&self.filesystems) {
                for (experiment, fit) in on_hosts
                    .iter()
                    .flat_map(|experiment| fits.iter().map(move |fit| (experiment, fit)))
                {
                    once.push(Experiment {
                        filesystem: filesystem.clone(),
                        fit: fit.clone(),
                        ..experiment.clone()
                    });
                }
            }
        }
        let repeated = |repetition| {
            let experiments = once.iter().cloned();
            experiments.map(move |one| Experiment { repetition, ..one })
        };
        (0..self.repetitions).flat_map(repeated).collect()
    }
}

/// Maps each experiment by `each`, which also gets the result of `once` for its steps, in the order
/// of the experiments. `once` is called once for all experiments that share their steps: a run may
/// have thousands of repetitions of hundreds of jobs.
pub fn by_steps<T, R>(
    experiments: &[Experiment],
    once: impl Fn(&[PlannedStep]) -> T,
    each: impl Fn(&Experiment, &T) -> R,
) -> Vec<R> {
    let mut sharing: BTreeMap<*const PlannedStep, Vec<usize>> = BTreeMap::new();
    for (position, experiment) in experiments.iter().enumerate() {
        let steps = experiment.steps.as_ptr();
        sharing.entry(steps).or_default().push(position);
    }
    let mut made: Vec<(usize, R)> = Vec::with_capacity(experiments.len());
    for positions in sharing.into_values() {
        let of_steps = once(&experiments[positions[0]].steps);
        let of_each = |position: usize| (position, each(&experiments[position], &of_steps));
        made.extend(positions.into_iter().map(of_each));
    }
    made.sort_by_key(|(position, _)| *position);
    made.into_iter().map(|(_, result)| result).collect()
}

impl HostChoice {
    /// The settings of an experiment that runs on no real machine.
    fn modelled() -> Self {
        Self {
            name: String::new(),
            queue: QueueStyle::Libaio,
            disks: Vec::new(),
        }
    }
}

impl Experiment {
    /// One subject of a suite on one machine, as the first repetition and on the raw array.
    fn new(suite: &Suite, subject: &Subject, host: &HostChoice, choices: &Choices) -> Self {
        let queue = if host.name.is_empty() {
            subject
                .host
                .as_ref()
                .map_or(host.queue, |modelled| modelled.queue)
        } else {
            host.queue
        };
        let mut subject = Subject {
            settings: subject.settings_on(host.name.is_empty(), &suite.name),
            ..subject.clone()
        };
        let blank = host.name.is_empty() || choices.blank_disks;
        let mut steps = first_sync(suite.begin, blank, &mut subject);
        steps.extend(removals(&subject));
        let own = |(place, _): &(usize, &Step)| subject.does(*place);
        let for_it = suite.steps.iter().enumerate().filter(own).count();
        let its_steps = suite_steps(suite, &subject, queue);
        let left_out = for_it - its_steps.len();
        let place = |(place, _)| suite.places.steps.get(place).cloned().unwrap_or_default();
        let its_places = suite.steps.iter().enumerate().filter(own).map(place);
        let added = std::iter::repeat_n(String::new(), steps.len());
        let places = added.chain(its_places).take(steps.len() + its_steps.len());
        let places: Vec<String> = places.collect();
        steps.extend(its_steps);
        let disks = subject.choose(if host.disks.is_empty() {
            &suite.disks
        } else {
            &host.disks
        });
        let regions = subject.choose(&suite.regions);
        let modelled = host.name.is_empty();
        let processor = || {
            choices
                .processor
                .as_ref()
                .or(suite.processor.as_ref())
                .cloned()
        };
        Self {
            suite: suite.name.clone(),
            host: host.name.clone(),
            subject,
            filesystem: None,
            repetition: 0,
            regions,
            disks,
            fit: String::new(),
            seed: choices.seed,
            without: choices.without.clone(),
            processor: modelled.then(processor).flatten(),
            left_out,
            steps: steps.into(),
            places: places.into(),
            background_sequence: suite.jobs().count().try_into().unwrap_or(u32::MAX),
        }
    }

    /// The row with the fields that all rows of one position in the suite have in common.
    pub(crate) fn row(&self, bench: &str, sequence: u32) -> Measurement {
        Measurement {
            suite: self.suite.clone(),
            host: self.host.clone(),
            subject: self.subject.name.clone(),
            filesystem: self.filesystem_label(),
            fit: self.fit.clone(),
            sequence,
            repetition: self.repetition,
            ..Measurement::blank(bench)
        }
    }

    /// The jobs in order; those of rounds are listed once.
    pub fn jobs(&self) -> impl Iterator<Item = &PlannedJob> {
        self.steps.iter().flat_map(Step::jobs)
    }

    /// Whether a member is re-added with a bitmap that knows what it missed: the progress of such a
    /// recovery does not tell how much it copies.
    pub(crate) fn re_adds_by_bitmap(&self) -> bool {
        let is_re_add = |event: &Event| event.kind == EventKind::ReAdd;
        let timed = self.jobs().flat_map(|job| &job.events);
        let mut events = timed.map(|timed| &timed.event);
        let steps = self
            .steps
            .iter()
            .any(|step| matches!(step, Step::Event(event) if is_re_add(event)));
        self.subject.has_bitmap() && (steps || events.any(is_re_add))
    }

    /// Whether the array is made by filling a member, as md makes a RAID 5. Such a recovery is no
    /// rebuild after a loss. Members that the suite takes out before its first step were in sync.
    pub(crate) fn is_made_by_recovery(&self) -> bool {
        let build = self.subject.build.as_ref();
        self.subject.removed.is_empty() && build.is_some_and(|build| build.has_first_sync())
    }

    /// Whether the array may sync or be degraded: then it has rows of that too, whose number is
    /// known only at the end.
    #[must_use]
    pub fn may_sync(&self) -> bool {
        let build = self.subject.build.as_ref();
        let resyncs = build.is_some_and(|build| build.has_first_sync());
        let happens =
            |step: &PlannedStep| matches!(step, PlannedStep::Event(_) | PlannedStep::Check);
        resyncs || self.steps.iter().any(happens) || self.jobs().any(|job| !job.events.is_empty())
    }

    /// Checks every job against the array that is built of members of these sizes, and
    /// returns its capacity.
    ///
    /// # Errors
    /// Names the first job that does not fit.
    pub fn check_capacity(&self, members: &[Bytes]) -> Result<Bytes, CapacityError> {
        let smallest = members.iter().min().copied().unwrap_or(Bytes(0));
        let subject = || self.subject.name.clone();
        let capacity = self
            .subject
            .capacity(smallest)
            .ok_or(CapacityError::Members {
                subject: subject(),
                member: smallest,
            })?;
        self.check_fits(capacity)?;
        Ok(capacity)
    }

    /// Checks every job that has a region against a device of this size.
    ///
    /// # Errors
    /// Names the first job that does not fit.
    pub fn check_fits(&self, capacity: Bytes) -> Result<(), CapacityError> {
        let subject = || self.subject.name.clone();
        for job in self.jobs() {
            let Ok(group) = job.work.group() else {
                continue;
            };
            for spec in &group.jobs {
                let last = spec.num_jobs.saturating_sub(1);
                let wrong = |source| CapacityError::Job {
                    job: job.name.clone(),
                    subject: subject(),
                    capacity,
                    source,
                };
                let (start, _) = spec.region(last, capacity).map_err(wrong)?;
                // A region that was cut at the array's end would silently measure something else
                // than the suite says.
                let end = match (spec.file_size, spec.size) {
                    (Some(end), _) => end.0,
                    (None, Some(size)) => start.0.saturating_add(size.0),
                    (None, None) => capacity.0,
                };
                if end > capacity.0 {
                    let (job, subject, end) = (job.name.clone(), subject(), Bytes(end));
                    return Err(CapacityError::TooLarge {
                        job,
                        subject,
                        end,
                        capacity,
                        remedy: match self.subject.zfs {
                            Some(_) => "give the volume more (`volume_size` in the subject's file)",
                            None => "take larger disks",
                        },
                    });
                }
                // fio ends too: "blocksize is larger than data set range".
                spec.check_room(last, capacity).map_err(wrong)?;
            }
        }
        Ok(())
    }
}

impl Experiment {
    /// A label of a word or two, unique among a run's experiments: `md, strict`; `repetitions`: the
    /// number of repetitions of the run.
    #[must_use]
    pub fn label(&self, repetitions: u32) -> String {
        let repetition = match repetitions {
            0 | 1 => String::new(),
            _ => format!("repetition {}", self.repetition + 1),
        };
        let mut words = vec![
            self.subject.name.clone(),
            self.fit.clone(),
            self.filesystem_label(),
            self.host.clone(),
            repetition,
        ];
        words.retain(|word| !word.is_empty());
        words.join(", ")
    }

    /// The file system's label in rows; empty on the raw array.
    #[must_use]
    pub fn filesystem_label(&self) -> String {
        self.filesystem
            .as_ref()
            .map_or_else(String::new, FileSystemSpec::label)
    }

    /// The scope of the whole experiment, for records.
    #[must_use]
    pub fn scope(&self) -> Scope {
        Scope {
            host: self.host.clone(),
            subject: self.subject.name.clone(),
            filesystem: self.filesystem_label(),
            sequence: None,
            repetition: Some(self.repetition),
        }
    }
}

#[cfg(test)]
mod tests;
