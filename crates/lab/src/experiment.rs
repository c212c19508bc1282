//! An experiment: one subject of a suite with everything decided, ready to
//! run on any bench.

use crate::host::QueueStyle;
use crate::subject::{Subject, SubjectKind};
use crate::suite::{Event, Job, QueueRule, Step, Suite};
use raidlab_store::{Direction, Latency, Measurement, Role};
use raidlab_units::{Bytes, Nanos};
use raidlab_workload::{Engine, JobError, JobGroup, JobSpec};

/// One subject under one suite, ready to run.
#[derive(Debug, Clone, PartialEq)]
pub struct Experiment {
    /// The suite's name.
    pub suite: String,
    /// What is measured, with the host it runs on.
    pub subject: Subject,
    /// One disk preset per member, by name or path.
    pub disks: Vec<String>,
    /// Parameter set of the disk models: `strict`, `joint`; empty on real
    /// disks.
    pub fit: String,
    /// The one seed of everything.
    pub seed: u64,
    /// Features of the model that are switched off, by name: `read-ahead`.
    pub without: Vec<String>,
    /// What is done, in this order.
    pub steps: Vec<PlannedStep>,
    /// Steps at the suite's end that this subject cannot do: a single disk
    /// has no member to take out.
    pub left_out: usize,
}

/// What all experiments of a run have in common.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Choices {
    /// Parameter sets of the disk models, in the order of the rows; none on
    /// real disks.
    pub fits: Vec<String>,
    /// The one seed of everything.
    pub seed: u64,
    /// Features of the model to switch off.
    pub without: Vec<String>,
}

/// One thing that is done.
#[derive(Debug, Clone, PartialEq)]
pub enum PlannedStep {
    /// fio runs.
    Job(PlannedJob),
    /// Something happens to a member.
    Event(Event),
    /// Time passes; a rebuild goes on.
    Wait(Nanos),
}

/// A job as this subject's host runs it.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedJob {
    /// Position among the suite's jobs, from 0.
    pub sequence: u32,
    /// Short and unique in the suite: `9`.
    pub name: String,
    /// In words.
    pub title: String,
    /// For accuracy statements and graphs.
    pub class: String,
    /// What runs, at the same time.
    pub group: JobGroup,
}

/// A job does not fit on the array.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CapacityError {
    /// The members are too small for the array to hold anything.
    #[error("members of {member} are too small for subject `{subject}`")]
    Members {
        /// The subject.
        subject: String,
        /// The smallest member.
        member: Bytes,
    },
    /// A job reaches behind the array's end.
    #[error("job `{job}` does not fit on `{subject}`, which holds {capacity}")]
    Job {
        /// The job.
        job: String,
        /// The subject.
        subject: String,
        /// Bytes of the array.
        capacity: Bytes,
        /// Why.
        #[source]
        source: JobError,
    },
    /// A job asks for more than there is behind its offset.
    #[error("job `{job}` asks `{subject}` for bytes up to {end}, but it holds {capacity}")]
    TooLarge {
        /// The job.
        job: String,
        /// The subject.
        subject: String,
        /// Where the job's region would end.
        end: Bytes,
        /// Bytes of the array.
        capacity: Bytes,
    },
}

impl Suite {
    /// The experiments of a run, in the order of the rows: subject by
    /// subject, and for each of them fit by fit.
    #[must_use]
    pub fn experiments(&self, subjects: &[Subject], choices: &Choices) -> Vec<Experiment> {
        let mut experiments = Vec::new();
        for subject in subjects {
            if choices.fits.is_empty() {
                experiments.push(Experiment::new(self, subject, "", choices));
            }
            for fit in &choices.fits {
                experiments.push(Experiment::new(self, subject, fit, choices));
            }
        }
        experiments
    }
}

impl Experiment {
    /// One subject of a suite with one fit.
    fn new(suite: &Suite, subject: &Subject, fit: &str, choices: &Choices) -> Self {
        let single = subject.kind == SubjectKind::Disk;
        let mut steps = Vec::new();
        let mut sequence = 0;
        for step in &suite.steps {
            steps.push(match step {
                Step::Event(_) if single => break,
                Step::Event(event) => PlannedStep::Event(*event),
                Step::Wait(time) => PlannedStep::Wait(*time),
                Step::Job(job) => {
                    let planned = plan_job(job, sequence, subject.host.queue);
                    sequence += 1;
                    PlannedStep::Job(planned)
                }
            });
        }
        let members = if single { 1 } else { suite.disks.len() };
        Self {
            suite: suite.name.clone(),
            subject: subject.clone(),
            disks: suite.disks[..members].to_vec(),
            fit: fit.to_owned(),
            seed: choices.seed,
            without: choices.without.clone(),
            left_out: suite.steps.len() - steps.len(),
            steps,
        }
    }

    /// Checks every job against the array that members of these sizes give.
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
        for step in &self.steps {
            let PlannedStep::Job(job) = step else {
                continue;
            };
            for spec in &job.group.jobs {
                let last = spec.num_jobs.saturating_sub(1);
                let (start, _) = spec.region(last, capacity).map_err(|source| {
                    let (job, subject) = (job.name.clone(), subject());
                    CapacityError::Job {
                        job,
                        subject,
                        capacity,
                        source,
                    }
                })?;
                // A region that is cut at the array's end would silently
                // measure something else than the suite says.
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
                    });
                }
            }
        }
        Ok(capacity)
    }
}

impl PlannedJob {
    /// Requests in flight at most, over everything that runs together.
    #[must_use]
    pub fn queue_depth(&self) -> u32 {
        self.group.jobs.iter().map(JobSpec::queue_depth).sum()
    }

    /// Jobs with a place of their own that run together: what a person would
    /// call streams. Threads that only make up a queue depth count as one.
    #[must_use]
    pub fn streams(&self) -> u32 {
        u32::try_from(self.group.jobs.len()).unwrap_or(u32::MAX)
    }

    /// Whether it reads, writes, or both: the operations that get a row.
    #[must_use]
    pub fn operations(&self) -> Vec<Direction> {
        let reads = self.group.jobs.iter().any(|job| job.pattern.reads());
        let writes = self.group.jobs.iter().any(|job| job.pattern.writes());
        let mut operations = Vec::new();
        if reads {
            operations.push(Direction::Read);
        }
        if writes {
            operations.push(Direction::Write);
        }
        operations
    }

    /// A row for one of the job's operations with everything filled in that
    /// is known before it runs; the bench fills in what it measured.
    #[must_use]
    pub fn row(&self, experiment: &Experiment, bench: &str, op: Direction) -> Measurement {
        let block = self
            .group
            .jobs
            .first()
            .map_or(Bytes(0), |job| job.block_size);
        Measurement {
            bench: bench.to_owned(),
            suite: experiment.suite.clone(),
            subject: experiment.subject.name.clone(),
            fit: experiment.fit.clone(),
            sequence: self.sequence,
            job: self.name.clone(),
            job_title: self.title.clone(),
            class: self.class.clone(),
            op,
            block_size_bytes: block.0,
            queue_depth: self.queue_depth(),
            streams: self.streams(),
            total_ios: 0,
            total_bytes: 0,
            runtime_ns: 0,
            iops: 0.0,
            bytes_per_second: 0.0,
            latency: Latency::default(),
            array_state_start: String::new(),
            array_state_end: String::new(),
            sync_percent_start: None,
            sync_percent_end: None,
            tag_overflows: 0,
            leaped_percent: 0.0,
            role: Role::Predicted,
            members: Vec::new(),
            published: Vec::new(),
        }
    }
}

/// A suite's job as a host runs it.
fn plan_job(job: &Job, sequence: u32, host: QueueStyle) -> PlannedJob {
    let mut group = job.group.clone();
    for spec in &mut group.jobs {
        match (job.queue, host) {
            (QueueRule::Fio, _) => {}
            (QueueRule::Host, QueueStyle::Libaio) => spec.engine = Engine::Libaio,
            (QueueRule::Host, QueueStyle::Threads) | (QueueRule::Threads, _) => {
                spec.engine = Engine::Sync;
                spec.num_jobs = spec.num_jobs.saturating_mul(spec.io_depth);
                spec.io_depth = 1;
            }
        }
    }
    PlannedJob {
        sequence,
        name: job.name.clone(),
        title: job.title.clone(),
        class: job.class.clone(),
        group,
    }
}

#[cfg(test)]
mod tests;
