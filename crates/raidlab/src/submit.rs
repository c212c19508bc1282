//! `raidlab submit`: the shards of a run handed to a scheduler.

use crate::failure::Failure;
use crate::output;
use clap::{Args, ValueEnum};
use raidlab_runs::notes::STORE;
use raidlab_runs::submit::{Submit, scripts};
use raidlab_runs::typed::in_shell;
use raidlab_shell::Local;
use std::num::NonZero;
use std::path::PathBuf;

/// Arguments of `raidlab submit`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Which scheduler the shards are handed to
    engine: Engine,

    /// The plan, which `raidlab run SUITE --plan-only FILE.json` wrote.
    #[arg(value_name = "PLAN.json")]
    plan: PathBuf,

    /// How many shards it is cut into.
    #[arg(long, value_name = "N")]
    shards: NonZero<u32>,

    /// Where the shards' files go, which every machine must see; made if it is not there.
    #[arg(long, value_name = "FOLDER")]
    folder: PathBuf,

    /// The store that the merged run goes into.
    #[arg(long, value_name = "FILE", default_value = STORE)]
    store: PathBuf,

    /// What is particular about the site (TOML).
    #[arg(long, value_name = "FILE")]
    profile: Option<PathBuf>,

    /// Write the scripts, print the commands that would submit them, and submit nothing.
    #[arg(long)]
    print: bool,
}

/// The schedulers that are known.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Engine {
    /// Slurm, with array jobs and dependencies.
    Slurm,
}

/// Hands shards to a scheduler.
///
/// # Errors
/// When the plan or the profile is wrong, or the scheduler does not take them.
pub fn command(arguments: &Arguments) -> Result<(), Failure> {
    let Engine::Slurm = arguments.engine;
    let asked = Submit {
        plan: arguments.plan.clone(),
        shards: arguments.shards,
        folder: arguments.folder.clone(),
        store: arguments.store.clone(),
        profile: arguments.profile.clone(),
    };
    let machine = Local::new();
    let word = |path: &PathBuf| in_shell(path.as_os_str());
    let folder = word(&arguments.folder);
    let Some(scripts) = scripts(&asked, &machine)? else {
        let (plan, store) = (word(&arguments.plan), word(&arguments.store));
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
