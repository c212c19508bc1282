//! The command `raidlab submit`: it hands the shards of a run to a scheduler.

use crate::failure::Failure;
use crate::output;
use clap::{Args, ValueEnum};
use raidlab_runs::submit::{Submit, scripts};
use raidlab_runs::typed::in_shell;
use raidlab_shell::Local;
use std::path::PathBuf;

/// Arguments of `raidlab submit`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The scheduler to which the shards are handed
    #[arg(value_name = "SCHEDULER")]
    scheduler: Scheduler,

    #[command(flatten)]
    asked: Submit,

    /// Write the scripts, print the commands that would submit them, and submit nothing.
    #[arg(long)]
    print: bool,
}

/// The schedulers that are known.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Scheduler {
    /// Slurm, with array jobs and dependencies.
    Slurm,
}

/// Hands shards to a scheduler.
///
/// # Errors
/// When the plan or the profile is wrong, or the scheduler does not take them.
pub fn command(arguments: &Arguments) -> Result<(), Failure> {
    let Scheduler::Slurm = arguments.scheduler;
    let asked = &arguments.asked;
    let machine = Local::new();
    let word = |path: &PathBuf| in_shell(path.as_os_str());
    let folder = word(&asked.folder);
    let Some(scripts) = scripts(asked, &machine)? else {
        let (plan, store) = (word(&asked.plan), word(&asked.store));
        return output::print(&format!(
            "all shards are whole: `raidlab merge {plan} {folder} --store {store}` puts them together\n"
        ));
    };
    if arguments.print {
        // With several clusters sbatch prints `number;cluster`.
        const ARRAY: &str = "${array%%;*}";
        let merge = scripts.merge(ARRAY).to_string();
        let word = format!("--dependency=afterok:{ARRAY}");
        return output::print(&format!(
            "array=$({})\n{}\n",
            scripts.array,
            merge.replace(&format!("'{word}'"), &format!("\"{word}\""))
        ));
    }
    let submitted = scripts.submit(&machine)?;
    output::print(&format!(
        "job {} has {} shards, job {} merges them: `raidlab status {folder}` says how far they are\n",
        submitted.array,
        scripts.missing.len(),
        submitted.merge
    ))
}
