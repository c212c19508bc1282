//! Where the time of a job's requests goes: runs the experiments of a kept run again up to that
//! job, and follows each request.
//!
//! The model bench repeats exactly, so what is explained is what was measured. Nothing is
//! kept, as the rows are there already.

use crate::asked::{Here, On};
use crate::failure::{Failure, Kind, open_store};
use crate::front::Front;
use crate::kept::see;
use crate::prepared::CannotRun;
use crate::task::Task;
use raidlab_bench_model::ModelBench;
use raidlab_lab::catalogue::nearby;
use raidlab_lab::{Bench, Experiment, Finish, Observer, PlannedStep};
use raidlab_store::{CellResult, Measurement, Observation, Records, RunSummary};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A job of one subject, with its rows and the facts about its time.
#[derive(Debug, Clone)]
pub struct ExplainedJob {
    /// The job's rows, one for each direction; at least one.
    pub rows: Vec<Measurement>,
    /// The facts on where the job's time went: `time.medium.ns`,
    /// `cpu.busy_percent`, `lock.device_lock.wait_ns`.
    pub facts: Vec<Observation>,
}

impl ExplainedJob {
    /// The value of a fact, if it is there and a number.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<f64> {
        let found = self.facts.iter().find(|fact| fact.name == name)?;
        found.value.parse().ok()
    }
}

/// A watcher that keeps what is measured of one job.
struct Watched {
    job: String,
    cancel: &'static AtomicBool,
    found: Option<ExplainedJob>,
}

impl Observer for Watched {
    fn record(&mut self, _: Records) {}

    fn cell(&mut self, result: CellResult) {
        if result.rows.iter().any(|row| row.job == self.job) {
            self.found = Some(ExplainedJob {
                rows: result.rows,
                facts: result.records.observations,
            });
        }
    }

    fn cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }
}

/// Runs a job of a kept run again, with all that came before it, for each of the run's subjects or
/// for those that are named; of several repetitions and parameter sets only the first.
///
/// # Errors
/// When there is no such run or job, the run was not on the model, or it cannot be repeated.
pub fn explain(
    store: &Path,
    run: &str,
    job: &str,
    subjects: &[String],
    front: &'static dyn Front,
) -> Result<Vec<ExplainedJob>, Failure> {
    let found: RunSummary = open_store(store, &[run])?.run_by_name(run)?;
    let shows = see(&found.run.name, store);
    let task = Task::again(found, Here::of(store.to_owned()), front)?;
    if task.on() != On::Model {
        let words = format!(
            "the run was on the {} bench, where nobody sees what requests wait for",
            task.on().name()
        );
        let help = "run the same suite on the model, and explain that";
        return Err(Failure::words(Kind::Usage, words).help(help));
    }
    let ready = task.prepare()?;
    let bench = ModelBench {
        files: Arc::clone(&task.files),
        explains: true,
        ..ModelBench::default()
    };
    let cancel = front.listen()?;
    let mut explained = Vec::new();
    let mut seen = BTreeSet::new();
    for experiment in ready.experiments() {
        let name = experiment.subject.name.as_str();
        let named = subjects.is_empty() || subjects.iter().any(|one| one == name);
        if !named || !seen.insert(name) {
            continue;
        }
        let Some(experiment) = up_to(experiment, job) else {
            continue;
        };
        let mut watched = Watched {
            job: job.to_owned(),
            cancel,
            found: None,
        };
        let finish = bench
            .run(&experiment, &mut watched)
            .map_err(|source| Failure::new(Kind::Run, CannotRun::new(&experiment, source)))?;
        if finish == Finish::Cancelled {
            return Err(Failure::words(Kind::Interrupted, "interrupted"));
        }
        explained.extend(watched.found);
    }
    if explained.is_empty() {
        let help = format!("`{shows}` shows the run with its jobs");
        return Err(unknown(ready.experiments(), job, subjects).help(help));
    }
    Ok(explained)
}

/// The experiment without the steps after a job; `None` if it has no such job.
fn up_to(experiment: &Experiment, job: &str) -> Option<Experiment> {
    let is_it = |step: &PlannedStep| matches!(step, PlannedStep::Job(one) if one.name == job);
    let last = experiment.steps.iter().position(is_it)?;
    let mut steps = experiment.steps[..=last].to_vec();
    // Jobs that only prepare keep no rows, but here their rows are asked for.
    if let Some(PlannedStep::Job(job)) = steps.last_mut() {
        job.job.prepares = false;
    }
    Some(Experiment {
        steps: steps.into(),
        ..experiment.clone()
    })
}

/// The failure where neither the job nor the subject is in the run.
fn unknown(all: &[Experiment], job: &str, subjects: &[String]) -> Failure {
    let names = |each: &mut dyn Iterator<Item = &str>| -> Vec<String> {
        let set: BTreeSet<&str> = each.collect();
        set.into_iter().map(str::to_owned).collect()
    };
    let jobs = names(
        &mut all
            .iter()
            .flat_map(Experiment::jobs)
            .map(|job| job.name.as_str()),
    );
    let words = if jobs.iter().any(|known| known == job) {
        let known = names(&mut all.iter().map(|one| one.subject.name.as_str()));
        let asked = subjects.join("`, `");
        format!(
            "no subject `{asked}` of the run does job `{job}`{}",
            nearby(subjects.first().map_or("", String::as_str), &known)
        )
    } else {
        format!("the run has no job `{job}`{}", nearby(job, &jobs))
    };
    Failure::words(Kind::Usage, words)
}
