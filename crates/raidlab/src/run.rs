//! `raidlab run`: a suite or a job file on a bench, kept in a store, shown in
//! tables and as a page.
//!
//! Everything that can be refused is refused before anything runs: the files,
//! the names, the sizes, the places to write to. Then rows go into the store
//! as they arise, and whatever happens afterwards, those rows stay.

mod host;
mod keeper;
mod kernel;
mod prepare;
mod progress;

use crate::failure::{Failure, Kind};
use crate::{audit, interrupt, output, report};
use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum, builder::PossibleValue};
pub use host::TRIAL_FOLDER;
use keeper::Keeper;
pub use keeper::{begin_as, command_line};
pub use kernel::{Description, is_agent};
use prepare::Prepared;
use raidlab_lab::{Bench, BenchError, Finish, RunEnd, RunError, RunOptions, run_suite};
use raidlab_model::{Ablation, ModelBench};
use raidlab_report::RunData;
use raidlab_store::{RunSummary, Store};
use std::fmt::Write;
use std::num::NonZero;
use std::path::{Path, PathBuf};

/// The seed where none is given. Which two of three streams share a disk of md
/// is decided by a race in the first milliseconds of job 19 of the 2015 suite;
/// with this seed, the smallest that does, it goes as it went in 2015.
pub const DEFAULT_SEED: u64 = 2;

/// Where runs are kept when nothing else is said.
pub const STORE: &str = "raidlab.db";

/// Arguments of `raidlab run`.
#[derive(Debug, Args)]
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
.toml, or a fio job file (any other path). A job file runs on two wd4000fyyz under \
md unless --disk and --subject say otherwise.",
    after_help = "\
Examples:
  raidlab run mirror-2015
  raidlab run mirror-2015 --subject md --subject zfs --fit strict
  raidlab run mirror-2015 --without rpo --no-report
  raidlab run mirror-2015 --json > rows.jsonl
  raidlab run ./my-suite.toml --disk ./my-disk.toml --dry-run
  raidlab run ./jobs.fio --subject gmirror
  raidlab run quick --on kernel --subject md-raid1
  raidlab run quick --on host --dry-run
  raidlab run quick --on host --subject btrfs-raid1 --trial-size 1g"
)]
pub struct Arguments {
    /// A built-in suite, a suite file (.toml), or a fio job file.
    #[arg(value_name = "SUITE|SUITE.toml|JOBS.fio")]
    suite: String,

    /// Where to run.
    #[arg(long = "on", value_enum, default_value_t = On::Model, value_name = "BENCH")]
    on: On,

    /// Run only this subject, by name or path; may be repeated. Default: those
    /// of the suite.
    #[arg(long = "subject", value_name = "NAME|PATH")]
    subjects: Vec<String>,

    /// Use this disk. On the model a preset by name or path: once for every
    /// member, or once per member in order; default: those of the suite. On
    /// real machines a device, once per member: best by a name that stays the
    /// same, as those in /dev/disk/by-id.
    #[arg(long = "disk", value_name = "PRESET|DEVICE")]
    disks: Vec<String>,

    /// Parameter set of the disk models; `all` runs each set that the disks
    /// have: the first is the main figure, the others give the band.
    #[arg(long, value_name = "strict|joint|all", default_value = "all")]
    fit: String,

    /// Seed of everything random, 0 to 2^64-1. The same seed gives the same
    /// rows, byte by byte.
    #[arg(long, value_name = "N", default_value_t = DEFAULT_SEED)]
    seed: u64,

    /// Experiments at the same time; the output does not depend on it.
    /// Default: one for each processor; on the kernel bench as far as the memory
    /// goes.
    #[arg(long, value_name = "N")]
    threads: Option<NonZero<u16>>,

    /// Leave out a feature of the model; may be repeated.
    #[arg(long = "without", value_name = "FEATURE", value_parser = features())]
    without: Vec<String>,

    /// Model the subjects on this host, by name (`raidlab subjects --hosts`) or
    /// path, not on their own.
    #[arg(long, value_name = "NAME|PATH")]
    model_host: Option<String>,

    /// The file that keeps the rows; made if it is not there.
    #[arg(long, value_name = "FILE", default_value = STORE)]
    pub store: PathBuf,

    /// The HTML report; an older one is replaced when the new one is whole.
    #[arg(long, value_name = "FILE", default_value = "raidlab-report.html")]
    report: PathBuf,

    /// Write no HTML report.
    #[arg(long, conflicts_with = "report")]
    no_report: bool,

    /// Print one JSON object per measurement on standard output and nothing
    /// else; progress and paths go to standard error.
    #[arg(long)]
    json: bool,

    /// Say what would be done, do and write nothing.
    #[arg(long)]
    dry_run: bool,

    /// A first look: only the first parameter set, and no job that ends by
    /// time runs longer than 6 s of virtual time. Noisier, and without a band.
    #[arg(long)]
    quick: bool,

    /// Write every command of every disk, with its virtual times, into this folder:
    /// a file of comma-separated values for each experiment. On the model those are
    /// missing that a leap passes over (`--without leaps`); real machines write none.
    #[arg(long, value_name = "FOLDER")]
    disk_commands: Option<PathBuf>,

    #[command(flatten)]
    host: host::HostArguments,

    #[command(flatten)]
    kernel: kernel::KernelArguments,
}

/// The benches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum On {
    /// Modelled disks in virtual time.
    Model,
    /// The real Linux kernel over modelled disks, in virtual time.
    Kernel,
    /// Real machines with real disks, this one or others behind ssh.
    Host,
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

/// Runs.
///
/// # Errors
/// When the input is wrong, an experiment or an output fails, or the user
/// stops it.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    run_from(arguments, None)
}

/// Goes on with a run that did not come to its end.
///
/// # Errors
/// As [`run()`], and where the plan is no longer the same.
pub fn resume(arguments: &Arguments, run: &RunSummary) -> Result<(), Failure> {
    run_from(arguments, Some(run))
}

fn run_from(arguments: &Arguments, resumed: Option<&RunSummary>) -> Result<(), Failure> {
    if arguments.model_host.is_some() && arguments.on != On::Model {
        let words = "on this bench the host is a real one";
        return Err(
            Failure::words(Kind::Usage, words).help("`--model-host` is for the model bench")
        );
    }
    match arguments.on {
        On::Model => {
            let prepared = prepare::prepare(arguments)?;
            let bench = ModelBench {
                commands: arguments.disk_commands.clone(),
            };
            for experiment in &prepared.experiments {
                bench.check(experiment).map_err(|source| {
                    let subject = experiment.subject.name.clone();
                    Failure::new(Kind::Input, CannotRun { subject, source })
                })?;
            }
            if arguments.dry_run {
                return output::print(&prepared.plan());
            }
            let threads = threads(arguments.threads);
            run_on(&bench, arguments, &prepared, threads, resumed)
        }
        On::Kernel => {
            let typed: Vec<String> = match resumed {
                Some(run) => run.run.arguments.clone(),
                None => std::env::args().skip(1).collect(),
            };
            let kernel = kernel::prepare(arguments, &typed)?;
            if arguments.dry_run {
                return output::print(&kernel.prepared.plan());
            }
            let (bench, prepared) = (&kernel.bench, &kernel.prepared);
            run_on(bench, arguments, prepared, kernel.threads, resumed)
        }
        On::Host => {
            if arguments.disk_commands.is_some() {
                let words = "real machines do not write down their disks' commands";
                return Err(Failure::words(Kind::Usage, words)
                    .help("`--disk-commands` is for the model and the kernel bench"));
            }
            // From here on an interruption must find the trial disks' owner.
            interrupt::listen()?;
            let host = host::prepare(arguments, resumed.is_some())?;
            if arguments.dry_run {
                return output::print(&host.plan()?);
            }
            if let Some(run) = resumed {
                let store = Store::open_existing(&arguments.store)?;
                host::check_unchanged(&host, &store, run)?;
            }
            host.consent(arguments)?;
            let prepared = &host.prepared;
            run_on(
                &host.bench,
                arguments,
                prepared,
                prepared.machines(),
                resumed,
            )
        }
    }
}

fn run_on(
    bench: &dyn Bench,
    arguments: &Arguments,
    prepared: &Prepared,
    threads: usize,
    resumed: Option<&RunSummary>,
) -> Result<(), Failure> {
    let report = (!arguments.no_report).then_some(arguments.report.as_path());
    if let Some(path) = report {
        output::check(path)?;
    }
    let mut store = Store::open(&arguments.store)?;
    let ended = carry_out(bench, arguments, prepared, &mut store, threads, resumed)?;
    audit::renew(&mut store, &ended.name)?;
    show(arguments, &store, &ended.name, report)?;
    ended.failure.map_or(Ok(()), Err)
}

/// Tables, the page, and where everything is.
fn show(
    arguments: &Arguments,
    store: &Store,
    name: &str,
    report: Option<&Path>,
) -> Result<(), Failure> {
    let data = RunData::load(store, name)?;
    if !arguments.json {
        output::print(&report::text(&data))?;
    }
    if let Some(path) = report {
        let page = raidlab_report::html(&data)?;
        let again = format!("the rows are kept: `{}`", see(name, &arguments.store));
        output::write(path, page.as_bytes()).map_err(|failure| failure.help(again))?;
    }
    let places = places(name, &arguments.store, report);
    if arguments.json {
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
    name: String,
    /// Of experiments; the others went to their end.
    failure: Option<Failure>,
}

/// Runs the experiments into the store.
fn carry_out(
    bench: &dyn Bench,
    arguments: &Arguments,
    prepared: &Prepared,
    store: &mut Store,
    threads: usize,
    resumed: Option<&RunSummary>,
) -> Result<Ended, Failure> {
    let stop = interrupt::listen()?;
    let real = arguments.on == On::Host;
    let run = match resumed {
        Some(run) => keeper::go_on(run, prepared)?,
        None => keeper::begin(bench.name(), prepared, store)?,
    };
    let finished = store.finished_cells(run.id)?.into_iter().collect();
    let mut keeper = Keeper::new(store, run.id, prepared, arguments.json);
    let options = RunOptions {
        threads,
        cancel: stop,
        published: prepared.suite.published.as_ref(),
        finished: &finished,
        ordered: !real,
    };
    let end = run_suite(bench, &prepared.experiments, options, &mut keeper);
    let last = keeper.finish();
    let kept = Kept {
        run: &run.name,
        store: &arguments.store,
        planned: prepared.rows(),
    };
    let end = match end {
        Ok(end) => end,
        Err(RunError::Sink(error)) => return Err(error.into_failure().or_help(&kept.help())),
        Err(error @ RunError::Check { .. }) => {
            let failure = Failure::new(Kind::Input, error);
            return Err(if !real && prepared.needs_real_systems() {
                failure.help("`--on host` runs real systems; `--subject` names modelled ones")
            } else {
                failure
            });
        }
    };
    last.map_err(keeper::KeepError::into_failure)?;
    if end.finish == Finish::Cancelled {
        if end.rows == 0 && resumed.is_none() {
            // A run without a row is not worth keeping.
            store.delete_run(run.id)?;
        }
        return Err(kept.interrupted(end.rows));
    }
    keeper::end(store, run.id, &end, prepared)?;
    Ok(Ended {
        failure: kept.failed(end, prepared),
        name: run.name,
    })
}

/// What to say of a run that did not go to its end.
struct Kept<'a> {
    run: &'a str,
    store: &'a Path,
    /// How many rows there were to be, where that was known.
    planned: Option<usize>,
}

impl Kept<'_> {
    /// The user stopped it.
    fn interrupted(&self, rows: usize) -> Failure {
        if rows == 0 {
            return Failure::words(
                Kind::Interrupted,
                "interrupted before anything was measured; nothing was kept",
            );
        }
        let words = format!(
            "interrupted; {} kept in {} as run {}",
            kept_words(rows, self.planned),
            self.store.display(),
            self.run
        );
        let help = format!("{}; `{}` goes on", self.help(), self.again());
        Failure::words(Kind::Interrupted, words).help(help)
    }

    /// The first experiment that failed, if one did; the others are remarks
    /// of the run.
    fn failed(&self, end: RunEnd, prepared: &Prepared) -> Option<Failure> {
        let failures = end.failures.len();
        let (index, source) = end.failures.into_iter().next()?;
        let experiment = prepared.label(index);
        let help = format!(
            "{failures} of {} experiments failed, {} kept; {}; `{}` tries again",
            prepared.experiments.len(),
            kept_words(end.rows, self.planned),
            self.help(),
            self.again()
        );
        Some(Failure::new(Kind::Run, ExperimentFailed { experiment, source }).help(help))
    }

    fn help(&self) -> String {
        format!("`{}` shows them", see(self.run, self.store))
    }

    fn again(&self) -> String {
        see(self.run, self.store).replace("raidlab report", "raidlab resume")
    }
}

/// `3 of 12 rows are`; where nobody knows how many there would have been, `3 rows
/// are`.
fn kept_words(rows: usize, planned: Option<usize>) -> String {
    match planned {
        Some(planned) => format!("{rows} of {planned} rows are"),
        None if rows == 1 => "1 row is".to_owned(),
        None => format!("{rows} rows are"),
    }
}

/// An experiment that broke off.
#[derive(Debug, thiserror::Error)]
#[error("{experiment} failed")]
struct ExperimentFailed {
    experiment: String,
    #[source]
    source: BenchError,
}

/// The command that shows a run.
fn see(run: &str, store: &Path) -> String {
    if store == Path::new(STORE) {
        format!("raidlab report {run}")
    } else {
        format!("raidlab report {run} --store {}", store.display())
    }
}

/// Where everything is now.
fn places(run: &str, store: &Path, report: Option<&Path>) -> String {
    let absolute = |path: &Path| {
        std::path::absolute(path)
            .unwrap_or_else(|_| path.to_owned())
            .display()
            .to_string()
    };
    let mut text = String::new();
    if let Some(report) = report {
        let _ = writeln!(text, "report  {}", absolute(report));
    }
    let _ = writeln!(text, "store   {}", absolute(store));
    let _ = writeln!(text, "run     {run}");
    text
}

#[cfg(test)]
mod tests {
    use super::kept_words;

    #[test]
    fn rows_are_counted_against_a_plan_where_there_is_one() {
        assert_eq!(kept_words(3, Some(12)), "3 of 12 rows are");
        assert_eq!(kept_words(56, None), "56 rows are");
        assert_eq!(kept_words(1, None), "1 row is");
    }
}
