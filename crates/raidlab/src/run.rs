//! The command `raidlab run`: it runs a suite or a job file on a bench, keeps the run in a store,
//! and shows it in tables and as a page. The work is done in `raidlab_runs`; here are the arguments
//! and the output.

mod asked;
mod progress;
pub mod terminal;

use crate::failure::{Failure, Kind};
use crate::{audit, claims, interrupt, output, report};
pub use asked::Manner;
use asked::Outputs;
use clap::Args;
use progress::Shown;
use raidlab_runs::values::time;
use raidlab_runs::{Asked, On, Ready, Task, Typed, file_of, go_on, lock_store, see};
use raidlab_store::output::Format;
use raidlab_store::text::visible_path;
use raidlab_store::{RunSummary, Shard, Store};
use raidlab_units::count;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;
use terminal::Terminal;

/// Arguments of `raidlab run`.
#[derive(Debug, Clone, Args)]
pub struct Arguments {
    #[command(flatten)]
    wanted: Typed<Asked>,

    #[command(flatten)]
    manner: Manner,

    /// Say what would be done; run nothing and write nothing. With `--on host` and without
    /// `--disk` the trial's loop devices are made, and removed again.
    #[arg(long)]
    dry_run: bool,

    /// Write the run's plan into this file and do nothing else; `-` is standard output. The
    /// plan is all that decides the rows, with the texts of all files, as JSON. `raidlab run
    /// FILE.json` runs it, here or elsewhere. Not for real machines, whose plans depend on
    /// what the machine lacks.
    #[arg(long, value_name = "FILE.json", conflicts_with = "dry_run")]
    plan_only: Option<PathBuf>,

    #[command(flatten)]
    part: Part,
}

/// The part of a run that is done here.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = MANY)]
struct Part {
    /// Run only one shard: number I, from 0, of N parts that take about as long. Its rows go
    /// into the file `shard-I-of-N.db` in this folder, in the folder that --store names, or
    /// into the file that it names. The file is there when the shard is whole, and not
    /// before. Started again, a shard goes on, and a whole one does nothing. `raidlab merge`
    /// merges the files. Not for real machines.
    #[arg(long, value_name = "I/N", conflicts_with_all = NO_SHARD)]
    shard: Option<Shard>,

    /// Stop after this time, such as `55m`. Finished experiments are kept, and exit code 75
    /// says that the shard is to be started again.
    #[arg(
        long,
        value_name = "TIME",
        requires = "shard",
        conflicts_with_all = NO_SHARD,
        value_parser = time
    )]
    stop_after: Option<Duration>,
}

/// Options of outputs that a shard does not give. clap does not ask for the shard that an option
/// requires where one of these rules it out.
const NO_SHARD: [&str; 3] = ["plan_only", "report", "json"];

/// The heading above options for many machines.
const MANY: &str = "On many machines";

impl Arguments {
    /// The request that these arguments make.
    pub fn asked(&self) -> Asked {
        Asked {
            typed: self.wanted.options.clone(),
            ..self.wanted.arguments.clone()
        }
    }
}

/// Runs a suite or a job file, or shows the plan.
///
/// # Errors
/// When the input is wrong, an experiment or an output fails, or the user stops it.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let (manner, dry_run) = (&arguments.manner, arguments.dry_run);
    let plan_only = arguments.plan_only.as_deref();
    if let Some(path) = plan_only
        && !output::is_standard_output(path)
        && path.extension().is_none_or(|ending| ending != "json")
    {
        let words = format!(
            "--plan-only {}: a plan's name ends in .json",
            visible_path(path)
        );
        let help = "under another name nobody would read it as a plan; `-` is standard output";
        return Err(Failure::words(Kind::Usage, words).help(help));
    }
    let mut here = manner.here(dry_run);
    here.plan_only = plan_only.is_some();
    if let Some(shard) = arguments.part.shard {
        (here.store, here.shard) = (file_of(shard, &here.store), Some(shard));
        interrupt::listen_until(arguments.part.stop_after)?;
    } else {
        manner.check_outputs(plan_only)?;
    }
    let task = Task::new(arguments.asked(), here, &Terminal)?;
    if task.on() == On::Host && plan_only.is_some() {
        let why = "what real machines lack is left out of a plan, so it is made where it is run";
        let help = "`--plan-only` is for the model and the kernel bench";
        return Err(Failure::words(Kind::Usage, why).help(help));
    }
    carry_out(&task, manner, dry_run, plan_only)
}

/// Goes on with a run that did not come to its end.
///
/// # Errors
/// As [`run()`], and where the run has no plan that can be gone on with.
pub fn resume(manner: &Manner, run: RunSummary) -> Result<(), Failure> {
    manner.check_outputs(None)?;
    let task = Task::resume(run, manner.here(false), &Terminal)?;
    carry_out(&task, manner, false, None)
}

fn carry_out(
    task: &Task,
    manner: &Manner,
    dry_run: bool,
    plan_only: Option<&Path>,
) -> Result<(), Failure> {
    let ready = task.prepare()?;
    if dry_run {
        return output::print(&ready.words()?);
    }
    if let Some(path) = plan_only {
        let plan = ready.plan();
        let text = format!("{}\n", plan.pretty()?);
        output::write_or_print(path, Format::Plan, text.as_bytes())?;
        let experiments = count(plan.experiments.len(), "experiment", "experiments");
        let sha256 = plan.sha256()?;
        output::say(&format!("plan of {experiments}, SHA-256 {sha256}"));
        return Ok(());
    }
    if let Some((shard, file)) = ready.shard() {
        return carry_out_shard(&ready, shard, file);
    }
    ready.consent()?;
    if task.on() == On::Host {
        interrupt::leaves(
            "stopped at once: what was built on the disks stays until `raidlab cleanup` or \
             `raidlab resume` removes it",
        );
    }
    let outputs = &manner.outputs;
    if let Some(path) = outputs.page() {
        raidlab_store::output::check_writable(path, Format::Page)?;
    }
    say_left_out(&ready);
    let mut shown = Shown::new(&ready.own_experiments(), outputs.json);
    let ended = ready.run(&mut shown);
    shown.clear();
    let mut ended = ended?;
    let help = format!(
        "what was measured is kept; once that is mended, `{}` brings the run to its end",
        go_on(&ended.name, &outputs.store)
    );
    audit::renew(&mut ended.store, &ended.name)
        .and_then(|_| ended.finish())
        .map_err(|failure| failure.help(help))?;
    outputs.show(&ended.store, &ended.name)?;
    ended.failure.map_or(Ok(()), Err)
}

/// Says before the run what will be missing in it: rows alone do not show that.
fn say_left_out(ready: &Ready<'_>) {
    for line in ready.left_out() {
        output::say(&format!("left out: {line}"));
    }
}

/// Does one shard of a run, if it is not there already.
fn carry_out_shard(ready: &Ready<'_>, shard: Shard, file: &Path) -> Result<(), Failure> {
    let name = visible_path(file);
    if ready.is_there()? {
        // A program that was killed as soon as the file had its name left its lock, which a list of
        // the folder's files would give to `merge`. Taking it and giving it back removes it.
        drop(lock_store(&Shard::part_of(file)));
        output::say(&format!("shard {shard} is whole already: {name}"));
        return Ok(());
    }
    say_left_out(ready);
    let mut shown = Shown::new(&ready.own_experiments(), false);
    let ended = ready.run(&mut shown);
    shown.clear();
    ended?.finish_shard(file)?;
    output::say(&format!("shard {shard} is whole: {name}"));
    Ok(())
}

impl Outputs {
    /// The path of the page, if one is wanted.
    fn page(&self) -> Option<&Path> {
        (!self.no_report).then_some(self.report.as_path())
    }

    /// Shows the tables, writes the page, and says where everything is.
    fn show(&self, store: &Store, run: &str) -> Result<(), Failure> {
        let data = claims::with_verdicts(store, run)?;
        if !self.json {
            output::print(&report::text(&data))?;
        }
        if let Some(path) = self.page() {
            let page = report::page(&data)?;
            let again = format!("the rows are kept: `{}`", see(run, &self.store));
            let written = raidlab_store::output::write(path, Format::Page, page.as_bytes());
            written.map_err(|error| Failure::from(error).help(again))?;
        }
        let places = self.places(run);
        if self.json {
            output::say(places.trim_end());
            return Ok(());
        }
        output::print(&format!("\n{places}"))
    }

    /// The paths of all files that the run has written, for people.
    fn places(&self, run: &str) -> String {
        let absolute = |path: &Path| {
            visible_path(&std::path::absolute(path).unwrap_or_else(|_| path.to_owned()))
        };
        let mut text = String::new();
        if let Some(report) = self.page() {
            let _ = writeln!(text, "report  {}", absolute(report));
        }
        let _ = writeln!(text, "store   {}", absolute(&self.store));
        let _ = writeln!(text, "run     {run}");
        text
    }
}

impl Manner {
    /// Refuses to write where something else stands.
    fn check_outputs(&self, plan: Option<&Path>) -> Result<(), Failure> {
        let outputs = &self.outputs;
        if outputs.page().is_some_and(output::is_standard_output) {
            let words = "--report -: `run` prints its tables, so its page is a file";
            let help = "afterwards `raidlab report --html -` prints the page of a run";
            return Err(Failure::words(Kind::Usage, words).help(help));
        }
        let mut all = Vec::new();
        all.extend(outputs.page().map(|path| ("--report", path, Format::Page)));
        all.extend(plan.map(|path| ("--plan-only", path, Format::Plan)));
        all.push(("--store", outputs.store.as_path(), Format::Store));
        output::check(&all)
    }
}
