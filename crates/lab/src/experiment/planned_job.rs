//! A job of an experiment, and the row that it fills.

use super::Experiment;
use crate::suite::Job;
use raidlab_store::{Cell, Measurement, Operation, Role};
use raidlab_units::Bytes;
use raidlab_workload::JobSpec;
use std::ops::Deref;

/// A job as this subject's host runs it.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedJob {
    /// The position among the suite's jobs, from 0.
    pub sequence: u32,
    /// The suite's job, where fio's jobs have this host's way of queueing.
    pub job: Job,
}

impl Deref for PlannedJob {
    type Target = Job;

    fn deref(&self) -> &Job {
        &self.job
    }
}

impl PlannedJob {
    /// fio's jobs that run together; empty for other tools and for options that
    /// only a real fio understands.
    fn jobs(&self) -> &[JobSpec] {
        self.work.group().map_or(&[], |group| &group.jobs)
    }

    /// The largest number of requests in flight, over everything that runs together; 1 where that
    /// is not known.
    #[must_use]
    pub fn queue_depth(&self) -> u32 {
        let depth: u32 = self.jobs().iter().map(JobSpec::queue_depth).sum();
        depth.max(1)
    }

    /// The number of streams: jobs with a region of their own that run together. Threads that only
    /// make up a queue depth count as one.
    #[must_use]
    pub fn streams(&self) -> u32 {
        u32::try_from(self.jobs().len()).unwrap_or(u32::MAX).max(1)
    }

    /// The operations that get a row: reads, writes, discards, and flushes between them, as far as
    /// the job does them.
    #[must_use]
    pub fn operations(&self) -> Vec<Operation> {
        let reads = self.jobs().iter().any(JobSpec::reads);
        let writes = self.jobs().iter().any(|job| job.pattern.writes());
        let mut operations = Vec::new();
        if reads {
            operations.push(Operation::Read);
        }
        if writes {
            operations.push(Operation::Write);
        }
        if self.jobs().iter().any(|job| job.pattern.trims()) {
            operations.push(Operation::Trim);
        }
        let flushes = |job: &JobSpec| job.fsync_every > 0 || job.fdatasync_every > 0;
        if writes && self.jobs().iter().any(flushes) {
            operations.push(Operation::Sync);
        }
        operations
    }

    /// Bytes of a request in the row of `op`, the smallest of the first job that does it: for
    /// flushes of one that writes, and what is read back has the size with which it was written.
    /// 0 where that is not known.
    #[must_use]
    pub fn block_size(&self, op: Operation) -> Bytes {
        let size = |job: &JobSpec| {
            let pattern = job.pattern;
            let direction = match op {
                Operation::Read if pattern.reads() => 0,
                Operation::Read if job.verify.is_some() => 1,
                Operation::Write | Operation::Sync if pattern.writes() => 1,
                Operation::Trim if pattern.trims() => 2,
                _ => return None,
            };
            Some(job.least(direction))
        };
        self.jobs().iter().find_map(size).unwrap_or(Bytes(0))
    }

    /// The cell that the job fills.
    #[must_use]
    pub fn cell(&self, experiment: &Experiment) -> Cell {
        Cell {
            host: experiment.host.clone(),
            subject: experiment.subject.name.clone(),
            filesystem: experiment.filesystem_label(),
            fit: experiment.fit.clone(),
            sequence: self.sequence,
            repetition: experiment.repetition,
        }
    }

    /// A row for one of the job's operations with everything filled in that
    /// is known before it runs; the bench fills in what it measured.
    #[must_use]
    pub fn row(&self, experiment: &Experiment, bench: &str, op: Operation) -> Measurement {
        Measurement {
            job: self.name.clone(),
            job_title: self.title.clone(),
            class: self.class.clone(),
            op,
            block_size_bytes: self.block_size(op).0,
            queue_depth: self.queue_depth(),
            streams: self.streams(),
            role: Role::Predicted,
            ..experiment.row(bench, self.sequence)
        }
    }
}
