//! Order, cancelling and failures of runs.

use super::{Before, RunEnd, RunError, RunOptions, Sink, run_suite};
use crate::bench::{Bench, BenchError, Finish, Observer, Progress};
use crate::experiment::{Choices, Experiment, HostChoice};
use crate::host::QueueStyle;
use crate::suite::Suite;
use raidlab_store::{CellResult, Measurement, Records};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

mod mock;

use mock::MockBench;

/// Keeps everything; may fail, or cancel, after some rows.
#[derive(Default)]
struct Keep<'a> {
    rows: Vec<(usize, Measurement)>,
    settings: usize,
    progress: Vec<(usize, Progress)>,
    fail_after: Option<usize>,
    cancel_after: Option<(usize, &'a AtomicBool)>,
    ended: Vec<usize>,
    before: Before,
}

#[derive(Debug, thiserror::Error)]
#[error("the disk is full")]
struct Full;

impl Sink for Keep<'_> {
    type Error = Full;

    fn progress(&mut self, experiment: usize, progress: Progress) {
        self.progress.push((experiment, progress));
    }

    fn record(&mut self, _experiment: usize, records: Records) -> Result<(), Full> {
        self.settings += records.settings.len();
        Ok(())
    }

    fn cell(&mut self, experiment: usize, result: CellResult) -> Result<(), Full> {
        for row in result.rows {
            if self.fail_after == Some(self.rows.len()) {
                return Err(Full);
            }
            self.rows.push((experiment, row));
            if let Some((_, cancel)) = self
                .cancel_after
                .filter(|(after, _)| *after == self.rows.len())
            {
                cancel.store(true, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    fn ended(&mut self, experiment: usize) -> Result<(), Full> {
        self.ended.push(experiment);
        Ok(())
    }

    fn ended_before(&mut self, experiment: usize) -> Result<(), Full> {
        self.ended.push(experiment);
        Ok(())
    }
}

fn experiments() -> (Suite, Vec<Experiment>) {
    let suite = Suite::load("mirror-2015").expect("built in");
    let choices = Choices {
        fits: vec!["strict".to_owned(), "joint".to_owned()],
        ..Choices::default()
    };
    let experiments = suite.experiments(&suite.subjects, &choices);
    (suite, experiments)
}

fn run(bench: &dyn Bench, threads: usize, keep: &mut Keep<'_>) -> Result<RunEnd, RunError<Full>> {
    let (suite, experiments) = experiments();
    let own = AtomicBool::new(false);
    let before = keep.before.clone();
    let options = RunOptions {
        threads,
        cancel: keep.cancel_after.map_or(&own, |(_, cancel)| cancel),
        published: suite.published.as_ref(),
        before: &before,
    };
    run_suite(bench, &experiments, options, keep)
}

#[test]
fn rows_come_in_the_same_order_at_any_number_of_threads() {
    let mut expected = None;
    for threads in [1, 2, 4, 64] {
        let mut keep = Keep::default();
        let end = run(&MockBench::default(), threads, &mut keep).expect("runs");
        assert_eq!((end.finish, end.failures.len()), (Finish::Complete, 0));
        assert_eq!(keep.rows.len(), 8 * 30);
        assert_eq!(keep.ended, (0..8).collect::<Vec<_>>());
        assert!(
            keep.rows
                .is_sorted_by_key(|(experiment, row)| (*experiment, row.sequence))
        );
        assert!(keep.rows.iter().all(|(_, row)| !row.published.is_empty()));
        assert!(keep.settings > 100);
        let last = keep
            .progress
            .iter()
            .filter(|(_, progress)| progress.step == progress.steps);
        assert_eq!(last.count(), 8);
        assert_eq!(
            &keep.rows,
            expected.get_or_insert_with(|| keep.rows.clone())
        );
    }
}

#[test]
fn what_had_ended_is_not_run_again_and_takes_its_turn() {
    let mut whole = Keep::default();
    run(&MockBench::default(), 1, &mut whole).expect("runs");
    for threads in [1, 4] {
        let mut keep = Keep::default();
        keep.before.ended = [0, 1, 5, 7].into();
        run(&MockBench::default(), threads, &mut keep).expect("runs");
        assert_eq!(keep.ended, (0..8).collect::<Vec<_>>());
        let mut expected = whole.rows.clone();
        expected.retain(|(experiment, _)| [2, 3, 4, 6].contains(experiment));
        assert_eq!(keep.rows, expected);
    }
}

#[test]
fn what_was_measured_before_a_failure_is_delivered() {
    let bench = MockBench {
        fail_at_step: Some(4),
    };
    let mut keep = Keep::default();
    let end = run(&bench, 2, &mut keep).expect("runs");
    assert_eq!((keep.rows.len(), end.failures.len()), (8 * 3, 8));
    let failed: Vec<usize> = end.failures.iter().map(|(index, _)| *index).collect();
    assert_eq!(failed, (0..8).collect::<Vec<_>>());
    assert!(keep.ended.is_empty());
    assert_eq!(end.failures[0].1.to_string(), "step 4 failed");
}

#[test]
fn a_cancelled_run_keeps_what_it_has() {
    let cancel = AtomicBool::new(false);
    let mut keep = Keep {
        cancel_after: Some((5, &cancel)),
        ..Keep::default()
    };
    let end = run(&Endless, 2, &mut keep).expect("runs");
    assert_eq!(end.finish, Finish::Cancelled);
    assert!(keep.rows.len() >= 5);
    assert!(keep.rows.is_sorted_by_key(|(experiment, _)| *experiment));
}

#[test]
fn a_full_store_ends_the_run() {
    let mut keep = Keep {
        fail_after: Some(3),
        ..Keep::default()
    };
    let error = run(&Endless, 2, &mut keep).expect_err("full");
    assert!(matches!(error, RunError::Sink(Full)));
    assert_eq!(keep.rows.len(), 3);
}

#[test]
fn nothing_runs_when_one_experiment_cannot() {
    let (_, mut experiments) = experiments();
    experiments[7].disks.clear();
    let cancel = AtomicBool::new(false);
    let options = RunOptions {
        threads: 2,
        cancel: &cancel,
        published: None,
        before: &Before::default(),
    };
    let mut keep = Keep::default();
    let error =
        run_suite(&MockBench::default(), &experiments, options, &mut keep).expect_err("no disks");
    assert_eq!(error.to_string(), "subject `zfs` cannot run");
    assert!(keep.rows.is_empty() && keep.progress.is_empty());
}

/// Repeats its experiment until it is told to stop.
struct Endless;

impl Bench for Endless {
    fn name(&self) -> &'static str {
        "endless"
    }

    fn repeats_exactly(&self) -> bool {
        true
    }

    fn check(&self, _experiment: &Experiment) -> Result<(), BenchError> {
        Ok(())
    }

    fn run(
        &self,
        experiment: &Experiment,
        observer: &mut dyn Observer,
    ) -> Result<Finish, BenchError> {
        loop {
            if MockBench::default().run(experiment, observer)? == Finish::Cancelled {
                return Ok(Finish::Cancelled);
            }
            std::thread::yield_now();
        }
    }
}

/// Three machines: what `slow` does first ends when `fast` has done everything, and `gone`
/// does not answer any more.
#[derive(Default)]
struct Machines {
    /// How many experiments of each machine have begun and have ended.
    counts: Mutex<BTreeMap<String, (usize, usize)>>,
    changed: Condvar,
}

impl Bench for Machines {
    fn name(&self) -> &'static str {
        "machines"
    }
    fn repeats_exactly(&self) -> bool {
        false
    }
    fn occupies<'a>(&self, experiment: &'a Experiment) -> Option<&'a str> {
        Some(&experiment.host)
    }
    fn check(&self, _experiment: &Experiment) -> Result<(), BenchError> {
        Ok(())
    }
    fn run(
        &self,
        experiment: &Experiment,
        observer: &mut dyn Observer,
    ) -> Result<Finish, BenchError> {
        let host = experiment.host.as_str();
        let mut counts = self.counts.lock().expect("no worker panics");
        let own = counts.entry(host.to_owned()).or_default();
        assert_eq!(own.0, own.1, "{host} does one experiment at a time");
        own.0 += 1;
        if host == "slow" {
            let others_go_on = |counts: &mut BTreeMap<String, (usize, usize)>| {
                counts.get("fast").is_none_or(|fast| fast.1 < 4)
            };
            let long = Duration::from_secs(60);
            let (guard, waited) = (self.changed)
                .wait_timeout_while(counts, long, others_go_on)
                .expect("no worker panics");
            assert!(!waited.timed_out(), "fast waits for slow");
            counts = guard;
        }
        counts.entry(host.to_owned()).or_default().1 += 1;
        self.changed.notify_all();
        drop(counts);
        match host {
            "gone" => Err(BenchError::setup(
                "asking the machine",
                "it does not answer",
            )),
            _ => MockBench::default().run(experiment, observer),
        }
    }
}

#[test]
fn no_machine_waits_for_another_and_one_that_is_gone_costs_its_own_experiments() {
    let suite = Suite::load("mirror-2015").expect("built in");
    let host = |name: &str| HostChoice {
        name: name.to_owned(),
        queue: QueueStyle::Libaio,
        disks: vec!["a".to_owned(), "b".to_owned()],
    };
    let choices = Choices {
        hosts: ["slow", "fast", "gone"].map(host).to_vec(),
        ..Choices::default()
    };
    let experiments = suite.experiments(&suite.subjects[..4], &choices);
    assert_eq!(experiments.len(), 12);
    let (cancel, mut keep) = (AtomicBool::new(false), Keep::default());
    let options = RunOptions {
        threads: 3,
        cancel: &cancel,
        published: None,
        before: &Before::default(),
    };
    let end = run_suite(&Machines::default(), &experiments, options, &mut keep).expect("runs");
    let host_of = |index: usize| experiments[index].host.as_str();
    assert_eq!(end.failures.len(), 4);
    assert!(
        end.failures
            .iter()
            .all(|(index, _)| host_of(*index) == "gone")
    );
    assert_eq!(keep.ended.len(), 8);
    assert!(keep.ended.iter().all(|index| host_of(*index) != "gone"));

    // Gone on with, it is those of the machine that was away.
    let before = Before {
        ended: keep.ended.iter().copied().collect(),
        ..Before::default()
    };
    let (options, mut keep) = (
        RunOptions {
            before: &before,
            ..options
        },
        Keep::default(),
    );
    run_suite(&MockBench::default(), &experiments, options, &mut keep).expect("runs");
    assert!(!keep.rows.is_empty());
    assert!(keep.rows.iter().all(|(index, _)| host_of(*index) == "gone"));
    assert_eq!(keep.ended.len(), 12);
}
