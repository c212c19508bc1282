//! The command `raidlab ablations`: it runs the suite in full, then without each feature.
//!
//! All of it is one run with many experiments, so that processors are shared as in any run; nothing
//! goes into a store.

use crate::failure::{Failure, Kind};
use crate::output;
use clap::Args;
use indicatif::ProgressBar;
use raidlab_bench_model::{Ablation, ModelBench};
use raidlab_lab::{
    Before, Choices, Experiment, Progress, RunError, RunOptions, Sink, Suite, run_suite,
};
use raidlab_runs::values::{count, features, seed};
use raidlab_runs::{DEFAULT_SEED, threads};
use raidlab_store::{CellResult, Measurement, Operation, Records};
use serde::Serialize;
use std::convert::Infallible;
use std::num::NonZero;
use std::sync::atomic::AtomicBool;

/// The jobs that are shown where none are named: one of each kind.
const JOBS: [&str; 10] = ["6", "9", "11", "13", "15", "16", "17", "18", "19", "20"];
/// The feature that is not left out where none are named: it changes the speed of the simulation,
/// not the numbers.
const NOT_BY_DEFAULT: &str = "leaps";

/// Arguments of `raidlab ablations`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The features to leave out, one at a time. Default: all but `leaps`.
    #[arg(value_name = "FEATURE", value_parser = features())]
    features: Vec<String>,

    /// The suite, by name or path (.toml).
    #[arg(long, value_name = "SUITE", default_value = "mirror-2015")]
    suite: String,

    /// The subject, by name or path.
    #[arg(long, value_name = "NAME|PATH", default_value = "md")]
    subject: String,

    /// The jobs to show, by name.
    #[arg(long, value_name = "JOB", value_delimiter = ',', default_values = JOBS)]
    jobs: Vec<String>,

    /// Parameter set of the disk models.
    #[arg(long, value_name = "SET", default_value = "strict")]
    fit: String,

    /// Seed of everything random, 0 to 2^64-1.
    #[arg(
        long,
        value_name = "N",
        default_value_t = DEFAULT_SEED,
        value_parser = seed,
        allow_negative_numbers = true
    )]
    seed: u64,

    /// How many experiments run at the same time; the output does not depend on it.
    /// Default: one for each processor.
    #[arg(long, value_name = "N", value_parser = count, allow_negative_numbers = true)]
    threads: Option<NonZero<u16>>,

    /// Print one JSON object per cell on standard output and nothing else.
    #[arg(long)]
    json: bool,
}

/// A cell of the table, and of the output of `--json`.
#[derive(Serialize)]
struct Cell<'a> {
    /// The feature that the model lacks; `None` in the full model.
    without: Option<&'a str>,
    subject: &'a str,
    fit: &'a str,
    job: &'a str,
    job_title: &'a str,
    op: Operation,
    iops: f64,
    /// The difference of the figure from the full model's, in percent of that.
    change_percent: f64,
}

/// Runs the suite with each feature left out, and shows what changes.
///
/// # Errors
/// When a file is missing or wrong, or an experiment fails.
pub fn ablations(arguments: &Arguments) -> Result<(), Failure> {
    let help = "`raidlab suites` and `raidlab subjects` list what there is";
    let experiments = experiments(arguments).map_err(|failure| failure.or_help(help))?;
    let mut collected = Collected::new(&experiments);
    let never = AtomicBool::new(false);
    let options = RunOptions {
        threads: threads(arguments.threads),
        cancel: &never,
        published: None,
        before: &Before::default(),
    };
    let end = run_suite(
        &ModelBench::default(),
        &experiments,
        options,
        &mut collected,
    );
    collected.bar.finish_and_clear();
    let end = match end {
        Ok(end) => end,
        Err(error @ RunError::Check { .. }) => return Err(Failure::new(Kind::Input, error)),
        Err(error @ RunError::Sink(_)) => return Err(Failure::new(Kind::Run, error)),
    };
    if let Some((_, error)) = end.failures.into_iter().next() {
        return Err(Failure::new(Kind::Run, error));
    }
    let cells = cells(&experiments, &collected.rows, &arguments.jobs);
    if arguments.json {
        let lines: Result<String, Failure> = cells.iter().map(output::json).collect();
        return output::print(&lines?);
    }
    output::print(&table(&cells))
}

/// Makes the experiments: the full model first, then the model without each feature.
fn experiments(arguments: &Arguments) -> Result<Vec<Experiment>, Failure> {
    let mut suite = Suite::load(&arguments.suite)?;
    let subject = suite.subject(&arguments.subject)?;
    let known: Vec<String> = suite.jobs().map(|job| job.name.clone()).collect();
    if let Some(unknown) = arguments.jobs.iter().find(|job| !known.contains(job)) {
        let words = format!("suite `{}` has no job `{unknown}`", suite.name);
        let help = format!("its jobs: {}", known.join(", "));
        return Err(Failure::words(Kind::Usage, words).help(help));
    }
    // Jobs after the last one that is shown need not be run.
    let shown = |step: &raidlab_lab::Step| match step {
        raidlab_lab::Step::Job(job) => arguments.jobs.contains(&job.name),
        _ => false,
    };
    let last = suite.steps.iter().rposition(shown).unwrap_or_default();
    suite.steps.truncate(last + 1);
    let mut features = arguments.features.clone();
    if features.is_empty() {
        let all = Ablation::all().into_iter().map(|(name, _)| name);
        features.extend(
            all.filter(|&name| name != NOT_BY_DEFAULT)
                .map(str::to_owned),
        );
    }
    let without = std::iter::once(Vec::new()).chain(features.into_iter().map(|one| vec![one]));
    Ok(without
        .flat_map(|without| {
            let choices = Choices {
                fits: vec![arguments.fit.clone()],
                seed: arguments.seed,
                without,
                ..Choices::default()
            };
            suite.experiments(std::slice::from_ref(&subject), &choices)
        })
        .collect())
}

/// The rows of each experiment, collected while they run.
struct Collected {
    rows: Vec<Vec<Measurement>>,
    steps: Vec<usize>,
    bar: ProgressBar,
}

impl Collected {
    fn new(experiments: &[Experiment]) -> Self {
        let all: usize = experiments.iter().map(|one| one.steps.len()).sum();
        Self {
            rows: experiments.iter().map(|_| Vec::new()).collect(),
            steps: vec![0; experiments.len()],
            bar: output::bar(all as u64, "ablations {bar:30} {pos}/{len} steps"),
        }
    }
}

impl Sink for Collected {
    type Error = Infallible;

    fn progress(&mut self, experiment: usize, progress: Progress) {
        if let Some(step) = self.steps.get_mut(experiment) {
            *step = progress.step;
        }
        self.bar
            .set_position(self.steps.iter().sum::<usize>() as u64);
    }

    fn record(&mut self, _: usize, _: Records) -> Result<(), Infallible> {
        Ok(())
    }

    fn cell(&mut self, experiment: usize, result: CellResult) -> Result<(), Infallible> {
        if let Some(rows) = self.rows.get_mut(experiment) {
            rows.extend(result.rows);
        }
        Ok(())
    }
}

/// Returns the cells of the chosen jobs, experiment by experiment.
fn cells<'a>(
    experiments: &'a [Experiment],
    rows: &'a [Vec<Measurement>],
    jobs: &[String],
) -> Vec<Cell<'a>> {
    let full = rows.first().map_or(&[][..], Vec::as_slice);
    let mut cells = Vec::new();
    for (experiment, rows) in experiments.iter().zip(rows) {
        for row in rows.iter().filter(|row| jobs.contains(&row.job)) {
            let same = |base: &&Measurement| (&base.job, base.op) == (&row.job, row.op);
            let base = full.iter().find(same).map_or(0.0, |base| base.iops);
            cells.push(Cell {
                without: experiment.without.first().map(String::as_str),
                subject: &row.subject,
                fit: &row.fit,
                job: &row.job,
                job_title: &row.job_title,
                op: row.op,
                iops: row.iops,
                change_percent: if base > 0.0 {
                    (row.iops / base - 1.0) * 100.0
                } else {
                    0.0
                },
            });
        }
    }
    cells
}

/// Prints a table with a row for each feature and a column for each job and operation.
fn table(cells: &[Cell<'_>]) -> String {
    let full: Vec<&Cell<'_>> = cells.iter().filter(|cell| cell.without.is_none()).collect();
    let mixed = |job: &str| full.iter().filter(|cell| cell.job == job).count() > 1;
    let mut head = vec!["without".to_owned()];
    head.extend(full.iter().map(|cell| match mixed(cell.job) {
        false => format!("job {}", cell.job),
        true => format!("job {} {}", cell.job, cell.op),
    }));
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (index, cell) in cells.iter().enumerate() {
        if full.is_empty() || index.is_multiple_of(full.len()) {
            rows.push(vec![cell.without.unwrap_or("(nothing)").to_owned()]);
        }
        let text = match cell.without {
            None => format!("{:.1}", cell.iops),
            Some(_) => format!("{:.1} {:+.0}%", cell.iops, cell.change_percent),
        };
        if let Some(row) = rows.last_mut() {
            row.push(text);
        }
    }
    let mut text = match full.first() {
        Some(cell) => format!(
            "I/Os per second of {} ({}), and the change against the full model\n",
            cell.subject, cell.fit
        ),
        None => String::new(),
    };
    let right: Vec<usize> = (1..head.len()).collect();
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    text.push_str(&output::table(&head, &right, rows));
    let mut titles = full;
    titles.dedup_by_key(|cell| cell.job);
    for cell in titles {
        text.push_str(&format!("job {}: {}\n", cell.job, cell.job_title));
    }
    text
}
