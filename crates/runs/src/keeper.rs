//! The receivers of a run's results: the store, and the watcher.

use crate::asked::Asked;
use crate::failure::Failure;
use crate::front::{KeepError, Watcher};
use crate::prepared::Prepared;
use crate::{notes, planned, typed};
use jiff::Timestamp;
use raidlab_lab::{Before, Plan, Progress, Published, RunEnd, Sink};
use raidlab_store::{
    AccuracyNote, CellResult, KeptPlan, Measurement, Origin, Records, Run, RunId, Setting, Shard,
    Store, StoreError,
};
use raidlab_units::in_one_line;
use std::collections::BTreeSet;

/// Records that a run begins, with what its reader must know. Returns the run's number in the
/// store, and its name, which tells when it began and of which suite.
///
/// # Errors
/// When the store cannot be written.
pub fn begin(
    bench: &str,
    prepared: &Prepared,
    plan: &Plan<Asked>,
    shard: Option<Shard>,
    store: &mut Store,
) -> Result<(RunId, String), Failure> {
    let suite = &prepared.suite;
    let mut run = Run {
        seed: prepared.experiments.first().map_or(0, |one| one.seed),
        plan_hash: plan.sha256()?,
        ..new_run(&suite.name, bench, &suite.name, &suite.title)
    };
    let kept = KeptPlan {
        program: planned::program(),
        json: plan.canonical()?,
        shard,
    };
    let mut notes = suite.published.as_ref().map_or_else(Vec::new, notes);
    notes.extend(prepared.remarks.iter().cloned());
    let id = store.begin_run_as(&mut run, Some(&kept), &notes)?;
    Ok((id, run.name))
}

/// The finished part of an interrupted run of so many experiments. Where experiments repeat
/// exactly, unfinished ones are deleted: they begin again from their start.
///
/// # Errors
/// When the store cannot be read or written.
pub fn before(
    store: &mut Store,
    run: RunId,
    experiments: usize,
    repeats: bool,
) -> Result<Before, StoreError> {
    let ended = store.ended_experiments(run)?;
    let mut before = Before {
        ended: ended.into_iter().map(|one| one as usize).collect(),
        ..Before::default()
    };
    if repeats {
        store.forget_unfinished(run)?;
    } else {
        store.forget_failures(run)?;
        before.finished = store.finished_cells(run)?.into_iter().collect();
        for index in (0..experiments).filter(|index| !before.ended.contains(index)) {
            let rows = store.measurements_of(run.experiment(position(index)))?;
            before.rows.insert(index, rows);
        }
    }
    Ok(before)
}

/// Records which experiments of a run failed.
///
/// # Errors
/// When the store cannot be written.
pub fn failures(
    store: &mut Store,
    run: RunId,
    end: &RunEnd,
    prepared: &Prepared,
) -> Result<(), StoreError> {
    for (index, error) in &end.failures {
        let remark = notes::remark(
            &format!("{} failed", prepared.label(*index)),
            in_one_line(error),
        );
        store.add_notes(run.experiment(position(*index)), &[remark])?;
    }
    Ok(())
}

/// An experiment's position in the type that the store uses.
fn position(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

/// A run that begins now, of this program and its command line, named by the time and by
/// `name`; without a seed and a plan.
#[must_use]
pub fn new_run(name: &str, bench: &str, suite: &str, suite_title: &str) -> Run {
    let now = Timestamp::now();
    Run {
        name: format!("{}-{name}", now.strftime("%Y%m%dT%H%M%SZ")),
        started: seconds(now),
        finished: None,
        bench: bench.to_owned(),
        suite: suite.to_owned(),
        suite_title: suite_title.to_owned(),
        seed: 0,
        raidlab_version: env!("CARGO_PKG_VERSION").to_owned(),
        command_line: typed::command_line(),
        plan_hash: String::new(),
    }
}

/// Formats a time by RFC 3339 in UTC, to the second.
pub fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The notes on accuracy of the figures' source, class by class: first what was fitted on what,
/// then what is declared, narrower statements first in the source's order.
fn notes(published: &Published) -> Vec<AccuracyNote> {
    let mut notes = Vec::new();
    for class in &published.classes {
        let note = AccuracyNote {
            class: class.id.clone(),
            title: class.title.clone(),
            ..AccuracyNote::default()
        };
        notes.push(AccuracyNote {
            statement: class.fitted_on.trim().to_owned(),
            ..note.clone()
        });
        notes.extend(class.accuracy.iter().map(|accuracy| AccuracyNote {
            statement: accuracy.note.clone(),
            declared_percent: Some(accuracy.percent),
            subjects: accuracy.subjects.clone(),
            jobs: accuracy.jobs.clone(),
            ..note.clone()
        }));
    }
    notes
}

/// Stores what a run measures.
pub struct Keeper<'a> {
    store: &'a mut Store,
    run: RunId,
    watcher: &'a mut dyn Watcher,
    /// Settings not yet in the store, gathered because each transaction waits for the disk.
    settings: Vec<Setting>,
    /// Settings seen so far, also before an interruption: experiments share disks and hosts. A
    /// setting belongs to the first experiment that has it, so those of experiments count that have
    /// all ended up to the first gap.
    seen: BTreeSet<Setting>,
    /// Experiments that came to their end before an interruption. Experiments of other shards are
    /// left out: a large run may have thousands of them.
    ended: BTreeSet<u32>,
}

impl<'a> Keeper<'a> {
    /// Creates a keeper for `store` that first shows `watcher` the rows that unfinished experiments
    /// gave before an interruption.
    ///
    /// # Errors
    /// When the store cannot be read, or the rows cannot be shown.
    pub fn new(
        store: &'a mut Store,
        run: RunId,
        before: &Before,
        watcher: &'a mut dyn Watcher,
    ) -> Result<Self, KeepError> {
        let first = (0..).find(|index| !before.ended.contains(index));
        let seen = store.settings_before(run, position(first.unwrap_or(usize::MAX)))?;
        let mut keeper = Self {
            run,
            watcher,
            settings: Vec::new(),
            seen: seen.into_iter().collect(),
            ended: store.ended_experiments(run)?.into_iter().collect(),
            store,
        };
        (before.rows.values()).try_for_each(|rows| keeper.show(rows))?;
        Ok(keeper)
    }

    /// Stores what is still waiting.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn finish(mut self) -> Result<(), KeepError> {
        self.flush(self.run.into())?;
        Ok(self.store.keep_first_settings(self.run)?)
    }

    fn show(&mut self, rows: &[Measurement]) -> Result<(), KeepError> {
        rows.iter().try_for_each(|row| self.watcher.row(row))
    }

    fn origin(&self, experiment: usize) -> Origin {
        self.run.experiment(position(experiment))
    }

    fn flush(&mut self, origin: Origin) -> Result<(), KeepError> {
        if !self.settings.is_empty() {
            let records = Records {
                settings: std::mem::take(&mut self.settings),
                ..Records::default()
            };
            self.store.add_records(origin, &records)?;
        }
        Ok(())
    }
}

impl Sink for Keeper<'_> {
    type Error = KeepError;

    fn progress(&mut self, experiment: usize, progress: Progress) {
        self.watcher.progress(experiment, progress);
    }

    fn record(&mut self, experiment: usize, mut records: Records) -> Result<(), KeepError> {
        for setting in std::mem::take(&mut records.settings) {
            if self.seen.insert(setting.clone()) {
                self.settings.push(setting);
            }
        }
        if records != Records::default() {
            self.store.add_records(self.origin(experiment), &records)?;
        }
        Ok(())
    }

    fn cell(&mut self, experiment: usize, result: CellResult) -> Result<(), KeepError> {
        self.flush(self.origin(experiment))?;
        self.store.add_cell(self.origin(experiment), &result)?;
        self.show(&result.rows)
    }

    fn ended(&mut self, experiment: usize) -> Result<(), KeepError> {
        self.flush(self.origin(experiment))?;
        Ok(self.store.end_experiment(self.run, position(experiment))?)
    }

    fn ended_before(&mut self, experiment: usize) -> Result<(), KeepError> {
        if self.ended.contains(&position(experiment)) {
            let rows = self.store.measurements_of(self.origin(experiment))?;
            self.show(&rows)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raidlab_lab::{BenchError, Choices, Finish, Suite};

    #[test]
    fn a_failure_is_said_until_the_run_goes_on() {
        let mut store = Store::open_in_memory().expect("a new store");
        let suite = Suite::load("quick").expect("built in");
        let prepared = Prepared {
            experiments: suite.experiments(&suite.subjects, &Choices::default()),
            suite,
            remarks: vec![notes::remark("A remark", "It stays.".to_owned())],
        };
        let mut run = Run {
            name: "a".to_owned(),
            started: String::new(),
            finished: None,
            bench: "kernel".to_owned(),
            suite: prepared.suite.name.clone(),
            suite_title: String::new(),
            seed: 2,
            raidlab_version: String::new(),
            command_line: String::new(),
            plan_hash: String::new(),
        };
        let run = store.begin_run_as(&mut run, None, &prepared.remarks);
        let run = run.expect("room");
        let begun = store.notes(run).expect("notes");
        let failed = BenchError::setup("the guest", "it spins");
        let ended = RunEnd {
            finish: Finish::Complete,
            failures: vec![(1, failed)],
        };
        for repeats in [true, false] {
            failures(&mut store, run, &ended, &prepared).expect("room for its end");
            let said = store.notes(run).expect("notes");
            assert_eq!(said.len(), begun.len() + 1);
            assert!(said[begun.len()].statement.contains("it spins"));
            before(&mut store, run, 2, repeats).expect("it goes on");
            assert_eq!(store.notes(run).expect("notes"), begun);
        }
    }
}
