//! `raidlab run`: a suite or a job file on a bench, kept in a store, shown in
//! tables and as a page.
//!
//! Everything that can be refused is refused before anything runs: the files,
//! the names, the sizes, the places to write to. Then rows go into the store
//! as they arise, and whatever happens afterwards, those rows stay.

mod asked;
mod asked_of_benches;
mod host;
mod keeper;
mod kept;
mod kernel;
mod places;
mod planned;
mod prepare;
mod progress;

use crate::failure::{Failure, Kind};
use crate::{audit, claims, interrupt, output, report, typed};
use asked::{Asked, On};
pub use asked::{Here, Outputs, count, seed};
use clap::builder::PossibleValuesParser;
use clap::{Args, builder::PossibleValue};
use keeper::Keeper;
pub use keeper::begin_as;
use kept::{Kept, see};
pub use kernel::{Description, is_agent};
use prepare::Prepared;
use raidlab_lab::{
    Before, Bench, BenchError, Files, Finish, Plan, RunError, RunOptions, run_suite,
};
use raidlab_model::{Ablation, ModelBench};
use raidlab_shell::{Lock, LockError, lock_file};
use raidlab_store::output::Format;
use raidlab_store::text::visible_path;
use raidlab_store::{Measurement, RunId, RunSummary, Store};
use std::fmt::Write;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The seed where none is given. Which two of three streams share a disk of md
/// is decided by a race in the first milliseconds of job 19 of the 2015 suite;
/// with this seed, the smallest that does, it goes as it went in 2015.
pub const DEFAULT_SEED: u64 = 2;

/// Arguments of `raidlab run`.
#[derive(Debug, Clone, Args)]
#[command(
    long_about = "\
Runs a suite: its jobs and events, in order, on each of its subjects. On the model \
bench the disks are models and the clock is virtual, so that days take seconds, no \
root is needed, and the same seed gives the same numbers everywhere. On the kernel \
bench the disks are the same models, and the kernel, its md and file systems, mdadm and \
fio are the real ones (`raidlab kernel build`). On the host bench \
everything is real: arrays are built on disks that you name, or on loop devices for a \
trial, measured, and taken down.

Rows are kept in the store as they are measured. At the end there are tables (KiB/s \
or I/Os per second, with the percent of the best; published figures beside ours with \
the error), and the same as one offline HTML page with charts.

SUITE is the name of a built-in suite (`raidlab suites`), a suite file ending in \
.toml, a plan ending in .json that `--plan-only` wrote, or a fio job file (any other \
path). A job file runs on two wd4000fyyz under md unless --disk and --subject say \
otherwise.",
    after_help = "\
Examples:
  raidlab run mirror-2015
  raidlab run mirror-2015 --subject md --subject zfs --fit strict
  raidlab run mirror-2015 --without rpo --no-report
  raidlab run mirror-2015 --json > rows.jsonl
  raidlab run ./my-suite.toml --disk ./my-disk.toml --dry-run
  raidlab run ./jobs.fio --subject gmirror
  raidlab run mirror-2015 --seed 7 --plan-only plan.json
  raidlab run plan.json
  raidlab run quick --on kernel --subject md-raid1
  raidlab run quick --on host --dry-run
  raidlab run quick --on host --subject btrfs-raid1 --trial-size 1g"
)]
pub struct Arguments {
    #[command(flatten)]
    asked: Asked,

    #[command(flatten)]
    here: Here,

    #[command(flatten)]
    outputs: Outputs,

    /// Say what would be done; run nothing and write nothing.
    #[arg(long)]
    dry_run: bool,

    /// Write the plan into this file, do nothing else: all that decides the rows, the
    /// texts of all files with it, as JSON. `-` is standard output. `raidlab run
    /// FILE.json` runs it, here or elsewhere. Not for real machines: what they lack is
    /// left out of a plan, so it is made where it is run.
    #[arg(long, value_name = "FILE.json", conflicts_with = "dry_run")]
    plan_only: Option<PathBuf>,
}

impl Arguments {
    /// What is asked for.
    pub const fn asked(&self) -> &Asked {
        &self.asked
    }
}

/// The names for `--without`, each with what the bench does then.
pub fn features() -> PossibleValuesParser {
    Ablation::all()
        .into_iter()
        .map(|(name, what)| PossibleValue::new(name).help(what))
        .collect::<Vec<_>>()
        .into()
}

/// The number of threads asked for, or of processors.
pub fn threads(asked: Option<NonZero<u16>>) -> usize {
    match asked {
        Some(threads) => usize::from(threads.get()),
        None => std::thread::available_parallelism().map_or(1, NonZero::get),
    }
}

/// A run to be done: what is asked for, of which files, and how it is done here.
pub struct Task {
    asked: Asked,
    files: Arc<Files>,
    here: Here,
    outputs: Outputs,
    dry_run: bool,
    plan_only: Option<PathBuf>,
    /// The plan that it is of; `None`: it is planned now.
    planned: Option<Plan<Asked>>,
    /// The run that goes on with it.
    resumed: Option<RunSummary>,
}

/// Runs.
///
/// # Errors
/// When the input is wrong, an experiment or an output fails, or the user
/// stops it.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let Arguments {
        asked,
        here,
        outputs,
        dry_run,
        plan_only,
    } = arguments.clone();
    let planned = planned::from_file(&asked)?;
    let (asked, files) = match &planned {
        Some(plan) => (plan.asked.clone(), Files::brought(plan.files.clone())),
        None => (
            Asked {
                allow_fio: prepare::with_values(&asked.allow_fio),
                ..asked
            },
            Files::default(),
        ),
    };
    let permission = prepare::permission(&asked.allow_fio)?;
    carry_out(&Task {
        asked,
        files: Arc::new(files.allowing(permission)),
        here,
        outputs,
        dry_run,
        plan_only,
        planned,
        resumed: None,
    })
}

/// Goes on with a run that did not come to its end.
///
/// # Errors
/// As [`run()`], and where the run has no plan that can be gone on with.
pub fn resume(here: &Here, outputs: &Outputs, run: RunSummary) -> Result<(), Failure> {
    let plan = planned::from_store(&outputs.store, &run)?;
    let permission = prepare::permission(&plan.asked.allow_fio)?;
    carry_out(&Task {
        asked: plan.asked.clone(),
        files: Arc::new(Files::brought(plan.files.clone()).allowing(permission)),
        here: here.clone(),
        outputs: outputs.clone(),
        dry_run: false,
        plan_only: None,
        planned: Some(plan),
        resumed: Some(run),
    })
}

fn carry_out(task: &Task) -> Result<(), Failure> {
    task.check_outputs()?;
    task.asked.check()?;
    match task.asked.on {
        On::Model => on_model(task),
        On::Kernel => {
            let kernel = kernel::prepare(task)?;
            if show_only(task, &kernel.prepared)? {
                return Ok(());
            }
            run_on(&kernel.bench, task, &kernel.prepared, kernel.threads)
        }
        On::Host => on_host(task),
    }
}

fn on_model(task: &Task) -> Result<(), Failure> {
    let prepared = prepare::prepare(task)?;
    let bench = ModelBench {
        commands: task.outputs.disk_commands.clone(),
        files: Arc::clone(&task.files),
    };
    for experiment in &prepared.experiments {
        bench.check(experiment).map_err(|source| {
            let subject = experiment.subject.name.clone();
            Failure::new(Kind::Input, CannotRun { subject, source })
        })?;
    }
    if show_only(task, &prepared)? {
        return Ok(());
    }
    run_on(&bench, task, &prepared, threads(task.here.threads))
}

fn on_host(task: &Task) -> Result<(), Failure> {
    for (given, option, why) in [
        (
            task.outputs.disk_commands.is_some(),
            "--disk-commands",
            "real machines do not write down their disks' commands",
        ),
        (
            task.plan_only.is_some(),
            "--plan-only",
            "what real machines lack is left out of a plan, so it is made where it is run",
        ),
    ] {
        if given {
            let help = format!("`{option}` is for the model and the kernel bench");
            return Err(Failure::words(Kind::Usage, why).help(help));
        }
    }
    // From here on an interruption must find the trial disks' owner.
    interrupt::listen()?;
    let host = host::prepare(task)?;
    planned::check(task, &host.prepared)?;
    task.check_prepared(&host.prepared)?;
    if task.dry_run {
        return output::print(&host.plan()?);
    }
    if let Some(run) = &task.resumed {
        let store = Store::open_existing(&task.outputs.store)?;
        host::check_unchanged(&host, &store, run)?;
    }
    host.consent(&task.here)?;
    host.mark()?;
    let prepared = &host.prepared;
    run_on(&host.bench, task, prepared, prepared.machines())
}

/// Shows or writes what would be done; whether no more is asked for.
fn show_only(task: &Task, prepared: &Prepared) -> Result<bool, Failure> {
    planned::check(task, prepared)?;
    task.check_prepared(prepared)?;
    if task.dry_run {
        output::print(&prepared.plan())?;
    }
    if let Some(path) = &task.plan_only {
        let plan = planned::of(task, prepared);
        planned::write(&plan, path)?;
    }
    Ok(task.dry_run || task.plan_only.is_some())
}

fn run_on(
    bench: &dyn Bench,
    task: &Task,
    prepared: &Prepared,
    threads: usize,
) -> Result<(), Failure> {
    let outputs = &task.outputs;
    let report = (!outputs.no_report).then_some(outputs.report.as_path());
    if let Some(path) = report {
        raidlab_store::output::check_writable(path, Format::Page)?;
    }
    let mut store = Store::open(&outputs.store)?;
    let _lock = lock_store(&outputs.store)?;
    let ended = measure(bench, task, prepared, &mut store, threads)?;
    audit::renew(&mut store, &ended.name)?;
    if ended.failure.is_none() {
        keeper::finish(&mut store, ended.run)?;
    }
    show(outputs, &store, &ended.name, report)?;
    ended.failure.map_or(Ok(()), Err)
}

/// Who holds a lock, for others to read: this process and what it does.
pub fn holder() -> String {
    format!(
        "`{}` (process {}, since {})",
        typed::command_line(),
        std::process::id(),
        jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ")
    )
}

/// One run at a time writes into a store; the lock dies with this process.
fn lock_store(store: &Path) -> Result<Lock, Failure> {
    let mut path = store.as_os_str().to_owned();
    path.push(".lock");
    lock_file(Path::new(&path), &holder()).map_err(|error| match error {
        LockError::Held { .. } => Failure::new(Kind::Run, error)
            .help("wait until it has ended, or name another file with --store"),
        error => Failure::new(Kind::Output, error),
    })
}

/// Tables, the page, and where everything is.
fn show(
    outputs: &Outputs,
    store: &Store,
    name: &str,
    report: Option<&Path>,
) -> Result<(), Failure> {
    let data = claims::with_verdicts(store, name)?;
    if !outputs.json {
        output::print(&report::text(&data))?;
    }
    if let Some(path) = report {
        let page = raidlab_report::html(&data)?;
        let again = format!("the rows are kept: `{}`", see(name, &outputs.store));
        let written = raidlab_store::output::write(path, Format::Page, page.as_bytes());
        written.map_err(|error| Failure::from(error).help(again))?;
    }
    let places = places(name, &outputs.store, report);
    if outputs.json {
        output::say(places.trim_end());
        return Ok(());
    }
    output::print(&format!("\n{places}"))
}

/// An experiment that its bench refuses.
#[derive(Debug, thiserror::Error)]
#[error("subject `{subject}` cannot run")]
struct CannotRun {
    subject: String,
    #[source]
    source: BenchError,
}

/// A run that has ended.
struct Ended {
    run: RunId,
    name: String,
    /// Of experiments; the others went to their end.
    failure: Option<Failure>,
}

/// Runs the experiments into the store.
fn measure(
    bench: &dyn Bench,
    task: &Task,
    prepared: &Prepared,
    store: &mut Store,
    threads: usize,
) -> Result<Ended, Failure> {
    let stop = interrupt::listen()?;
    let run = match &task.resumed {
        Some(run) => planned::go_on(run, store)?,
        None => keeper::begin(bench.name(), prepared, &planned::of(task, prepared), store)?,
    };
    let before = match &task.resumed {
        Some(_) => {
            let experiments = prepared.experiments.len();
            keeper::before(store, run.id, experiments, bench.repeats_exactly())?
        }
        None => Before::default(),
    };
    let mut keeper = Keeper::new(store, run.id, prepared, task.outputs.json)?;
    for index in (0..prepared.experiments.len()).filter(|one| !before.ended.contains(one)) {
        keeper
            .print_kept(index)
            .map_err(keeper::KeepError::into_failure)?;
    }
    let options = RunOptions {
        threads,
        cancel: stop,
        published: prepared.suite.published.as_ref(),
        before: &before,
    };
    let end = run_suite(bench, &prepared.experiments, options, &mut keeper);
    let last = keeper.finish();
    let kept = Kept {
        run: &run.name,
        store: &task.outputs.store,
        planned: prepared.rows(),
        rows: of_jobs(&store.measurements(run.id)?),
        begun_before: task.resumed.is_some(),
    };
    let end = match end {
        Ok(end) => end,
        Err(RunError::Sink(error)) => return Err(error.into_failure().or_help(&kept.help())),
        Err(error @ RunError::Check { .. }) => {
            let failure = Failure::new(Kind::Input, error);
            return Err(
                if task.asked.on != On::Host && prepared.needs_real_systems() {
                    failure.help("`--on host` runs real systems; `--subject` names modelled ones")
                } else {
                    failure
                },
            );
        }
    };
    last.map_err(keeper::KeepError::into_failure)?;
    if end.finish == Finish::Cancelled {
        if kept.rows == 0 && !kept.begun_before {
            // A run without a row is not worth keeping.
            store.delete_run(run.id)?;
        }
        return Err(kept.interrupted());
    }
    keeper::failures(store, run.id, &end, prepared)?;
    Ok(Ended {
        run: run.id,
        failure: kept.failed(end, prepared),
        name: run.name,
    })
}

/// How many rows are those of jobs: only they are known beforehand.
fn of_jobs(rows: &[Measurement]) -> usize {
    rows.iter().filter(|row| !row.op.is_background()).count()
}

/// Where everything is now.
fn places(run: &str, store: &Path, report: Option<&Path>) -> String {
    let absolute =
        |path: &Path| visible_path(&std::path::absolute(path).unwrap_or_else(|_| path.to_owned()));
    let mut text = String::new();
    if let Some(report) = report {
        let _ = writeln!(text, "report  {}", absolute(report));
    }
    let _ = writeln!(text, "store   {}", absolute(store));
    let _ = writeln!(text, "run     {run}");
    text
}
