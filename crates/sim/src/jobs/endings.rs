//! Clones that search a depth, and jobs that end when they run evenly.

use super::{Flight, Jobs};
use crate::latency_target::Step;
use crate::machine::{Issue, Machine};
use crate::result::{DepthFound, JobOperations, Steadiness};
use crate::steady::{Done, SteadyWatch};
use raidlab_units::Nanos;
use raidlab_workload::{Direction, JobGroup};

/// Makes the watches over clones that end when they run evenly. Clones are looked at together where
/// the job is alone, as fio reports it then; each by itself among several jobs. The first looks are
/// put into the calendar: a turn of a clone that does not exist.
pub(super) fn watches(group: &JobGroup, machine: &mut Machine) -> Vec<SteadyWatch> {
    let mut watches = Vec::new();
    let mut first = 0;
    for job in &group.jobs {
        let clones = first..first + job.num_jobs as usize;
        first = clones.end;
        let Some(rule) = job.steady_state else {
            continue;
        };
        if group.jobs.len() == 1 {
            watches.push(SteadyWatch::new(rule, clones, machine.now));
        } else {
            watches
                .extend(clones.map(|clone| SteadyWatch::new(rule, clone..clone + 1, machine.now)));
        }
    }
    for (index, watch) in watches.iter().enumerate() {
        let look = Issue {
            clone: first + index,
            era: 0,
        };
        machine
            .calendar
            .schedule(machine.now + watch.rule.interval, look);
    }
    watches
}

impl Jobs {
    /// Looks whether a job runs evenly, in a turn of a clone that does not exist.
    pub(super) fn look_whether_even(&mut self, machine: &mut Machine, index: usize) {
        let Some(watch) = self.watches.get_mut(index - self.clones.len()) else {
            return;
        };
        let clones = watch.clones.clone();
        let own = &self.clones[clones.clone()];
        if own.iter().all(|clone| clone.ended) {
            return;
        }
        let done = own.iter().map(|clone| clone.done);
        let done = done.fold(Done::default(), Done::plus);
        let begun = own.iter().all(|clone| clone.begun);
        let begins = own.iter().map(|clone| clone.begins).max();
        let begins = begins.filter(|_| begun).unwrap_or(Nanos::MAX);
        if machine.now.saturating_sub(begins) < watch.rule.interval {
            // Not all of this interval belonged to the clones.
            watch.begin(begins, done);
        } else if watch.check(machine.now, done) {
            for clone in clones {
                if !self.clones[clone].stopped {
                    self.stop(machine, clone);
                }
            }
            return;
        }
        let look = Issue {
            clone: index,
            era: 0,
        };
        let next = machine.now + watch.rule.interval;
        machine.calendar.schedule(next, look);
    }

    /// Has the search for a depth take notice of a request; a last window is measured alone.
    pub(super) fn search_depth(&mut self, flight: &Flight, now: Nanos) -> Step {
        let clone = &mut self.clones[flight.clone];
        let ramping = now < clone.counts_from();
        let in_flight = clone.in_flight;
        let Some(search) = clone.search.as_mut() else {
            return Step::GoOn;
        };
        if flight.direction == Direction::Flush || ramping {
            return Step::GoOn;
        }
        let was_settled = search.depth.is_settled();
        let mut step = search.depth.completed(now, now - flight.issued, in_flight);
        if search.depth.is_settled() && !was_settled {
            search.last_window_begins = true;
        }
        if search.last_window_begins && in_flight == 0 {
            search.last_window_begins = false;
            search.results = JobOperations::default();
            search.since = now;
            self.counts_from = self.counts_from.max(now);
        }
        if step == Step::Drain && in_flight == 0 {
            // There is nothing to wait for: the next window begins at once.
            search.depth.completed(now, Nanos::ZERO, 0);
            step = Step::GoOn;
        }
        step
    }

    /// The number of a clone among its job's, from 0.
    fn number(&self, clone: usize) -> u32 {
        let job = self.clones[clone].job_index;
        let first = self.clones.iter().position(|clone| clone.job_index == job);
        u32::try_from(clone - first.unwrap_or(0)).unwrap_or(u32::MAX)
    }

    /// The depths that were found.
    pub(crate) fn depths(&self) -> Vec<DepthFound> {
        let found = self.clones.iter().enumerate().filter_map(|(index, clone)| {
            let search = clone.search.as_ref()?;
            Some(DepthFound {
                job: clone.job_index,
                clone: self.number(index),
                depth: search.depth.depth(),
                settled: search.depth.is_settled(),
            })
        });
        found.collect()
    }

    /// The outcome of each job that ends when it runs evenly (fio's `steadystate`).
    pub(crate) fn steady(&self) -> Vec<Steadiness> {
        let of = |watch: &SteadyWatch| {
            let first = watch.clones.start;
            let alone = watch.clones.len() == 1 && self.results.len() > 1;
            Steadiness {
                job: self.clones[first].job_index,
                clone: alone.then(|| self.number(first)),
                attained: watch.attained,
                criterion: watch.criterion,
            }
        };
        self.watches.iter().map(of).collect()
    }
}
