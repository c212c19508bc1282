//! Running a group of jobs from its start to its end.

use crate::jobs::Jobs;
use crate::machine::{LOOK, Machine, SimError, Watch};
use crate::processor::ProcessorUse;
use crate::result::{JobResult, MemberStatistics};
use raidlab_units::Nanos;
use raidlab_workload::JobGroup;

/// The virtual time after which a job that has not ended never will: a year.
const ENDLESS: Nanos = Nanos::from_secs(365 * 86_400);

/// The counters of members and processor when a group's rows began to count.
struct Before {
    at: Nanos,
    members: Vec<MemberStatistics>,
    overflows: u64,
    processor: Option<ProcessorUse>,
}

impl Machine {
    fn done_so_far(&self) -> Before {
        Before {
            at: self.now,
            members: self.member_statistics(),
            overflows: self.tag_overflows(),
            processor: self.processor_used(),
        }
    }

    /// Runs a group of jobs to its end. The data that the jobs left in the subject's and the disks'
    /// caches go on being written while later things run.
    ///
    /// # Errors
    /// A job that does not fit the subject; a simulation that does not end.
    pub fn run(&mut self, group: &JobGroup) -> Result<JobResult, SimError> {
        self.run_watched(group, &mut |_| true)
    }

    /// [`Self::run`] under the eyes of `watch`, which is told the virtual time
    /// now and then and may end it by answering false.
    ///
    /// # Errors
    /// As [`Self::run`]; [`SimError::Interrupted`] if `watch` ended it. The
    /// machine is then in mid-job and good for nothing more.
    pub fn run_watched(
        &mut self,
        group: &JobGroup,
        watch: &mut Watch<'_>,
    ) -> Result<JobResult, SimError> {
        // fio's randrepeat has every run of a job draw from the same seed.
        let random = self.random.clone();
        let health = self.health();
        let sync = self.sync().map(|sync| sync.percent());
        if let Some(explain) = &mut self.explain {
            explain.begin(self.now);
        }
        self.subject.job_begins();
        let mut before = self.done_so_far();
        let mut jobs = Jobs::start(group, self, &random)?;
        self.step_until_done(&mut jobs, &mut before, watch)?;
        // The calendar may hold turns that the clones no longer take: a stopped one may still
        // have been thinking.
        self.calendar.clear();
        self.processes_end();
        for drive in &mut self.drives {
            drive.processes_end(self.now);
        }
        let mut members: Vec<MemberStatistics> = self.member_statistics();
        for (index, member) in members.iter_mut().enumerate() {
            *member = member
                .since(before.members[index])
                .plus(jobs.leaped_member(index));
        }
        Ok(JobResult {
            runtime: jobs
                .results
                .iter()
                .map(|job| job.runtime)
                .max()
                .unwrap_or_default(),
            elapsed: self.now - before.at,
            members,
            health: [health, self.health()],
            sync_percent: [sync, self.sync().map(|sync| sync.percent())],
            tag_overflows: self.tag_overflows() - before.overflows,
            leaped: jobs.leaped(),
            depths: jobs.depths(),
            steady: jobs.steady(),
            zone_resets: jobs.zone_resets(),
            explained: self.explain.as_ref().map(|explain| explain.explained()),
            processor: self
                .processor_used()
                .zip(before.processor)
                .map(|(now, before)| now.since(&before)),
            jobs: jobs.results,
        })
    }

    /// Carries out one step of the jobs; `before` gets the counters when the rows begin to count.
    fn step_until_done(
        &mut self,
        jobs: &mut Jobs,
        before: &mut Before,
        watch: &mut Watch<'_>,
    ) -> Result<(), SimError> {
        let limit = self.now + ENDLESS;
        let mut leap = self.leap_plan(jobs);
        let mut look_at = self.now + LOOK;
        while !jobs.is_done() {
            if self.now > limit {
                return Err(SimError::Endless { limit: ENDLESS });
            }
            if self.now >= look_at {
                look_at = self.now + LOOK;
                self.look_for_standstill(jobs.oldest_request())?;
            }
            if let Some(plan) = leap.as_mut() {
                self.leap_job(plan, jobs, watch)?;
            }
            let due = Some(jobs.counts_from).filter(|from| *from > before.at);
            if !self.step(Some(jobs), due.unwrap_or(Nanos::MAX), watch)? {
                if let Some(from) = due {
                    self.now = self.now.max(from);
                    *before = self.done_so_far();
                    continue;
                }
                return Err(SimError::Stuck {
                    at: self.now,
                    in_flight: jobs.in_flight(),
                    waits: self.waits(),
                });
            }
        }
        Ok(())
    }
}
