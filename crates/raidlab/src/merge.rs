//! The command `raidlab merge`: it puts shards of a run together into one store.

use crate::failure::{Failure, Kind};
use crate::run::terminal::Terminal;
use crate::{audit, output};
use clap::Args;
use raidlab_runs::notes::STORE;
use raidlab_runs::{Merge, go_on, merge, see};
use raidlab_store::text::visible_path;
use raidlab_store::to_json_line;
use raidlab_units::count;
use std::path::PathBuf;

/// Arguments of `raidlab merge`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Files of shards, or folders with files `shard-*.db`. If a plan (.json) comes first,
    /// the shards must be of this plan.
    #[arg(value_name = "PLAN.json|SHARD", required = true)]
    files: Vec<PathBuf>,

    /// The file that keeps the run; made if it is not there.
    #[arg(long, value_name = "FILE", default_value = STORE)]
    store: PathBuf,

    /// Merge even if shards are missing or not whole. In folders the files that end in .part
    /// are taken too. The run says what is missing, and `raidlab resume` does the rest.
    #[arg(long)]
    partial: bool,

    /// Do not audit the run; the audit reads all of it into memory. `raidlab audit`
    /// can do it later.
    #[arg(long)]
    no_audit: bool,

    /// Print one JSON object per measurement on standard output, as `run --json` does.
    #[arg(long)]
    json: bool,
}

/// Puts shards together.
///
/// # Errors
/// When a file is no shard, one is missing, or the store cannot be written.
pub fn command(arguments: &Arguments) -> Result<(), Failure> {
    let is_plan = |path: &&PathBuf| path.extension().is_some_and(|ending| ending == "json");
    let (plans, shards): (Vec<_>, Vec<_>) = arguments.files.iter().partition(is_plan);
    if let [_, second, ..] = plans.as_slice() {
        let words = format!("{} is a second plan", visible_path(second));
        return Err(Failure::words(Kind::Usage, words).help("shards are of one plan"));
    }
    let asked = Merge {
        plan: plans.first().map(|&path| path.clone()),
        shards: shards.into_iter().cloned().collect(),
        store: arguments.store.clone(),
        partial: arguments.partial,
    };
    let mut merged = merge(&asked, &Terminal)?;
    if !arguments.no_audit {
        audit::renew(&mut merged.store, &merged.name)?;
    }
    merged.finish()?;
    if arguments.json {
        merged.rows(|row| output::print_bytes(format!("{}\n", to_json_line(row)?).as_bytes()))?;
    }
    output::say(&format!(
        "run {} of {}, {}: `{}` shows it",
        merged.name,
        count(merged.shards, "shard", "shards"),
        count(merged.experiments as usize, "experiment", "experiments"),
        see(&merged.name, &arguments.store)
    ));
    if !merged.missing.is_empty() {
        output::say(&format!(
            "warning: it is only a part: {} missing or not whole; `{}` does the rest",
            count(merged.missing.len(), "shard is", "shards are"),
            go_on(&merged.name, &arguments.store)
        ));
    }
    Ok(())
}
