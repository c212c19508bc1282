//! `raidlab status`: how far the shards of a run are.

use crate::failure::Failure;
use crate::output;
use clap::Args;
use raidlab_runs::status::{State, status};
use std::fmt::Write;
use std::path::PathBuf;

/// Arguments of `raidlab status`.
#[derive(Debug, Args)]
#[command(
    long_about = "\
Says which shards of a run are whole, which are begun, and which are missing or broken, by \
the files of the folder that `raidlab run --shard` writes into. No scheduler is asked: of a \
shard that is begun it says how long ago it last wrote something. Nothing is changed, and \
files that another machine may be writing are not opened.",
    after_help = "\
Examples:
  raidlab status shards/
  raidlab status shards/ --json"
)]
pub struct Arguments {
    /// The folder with the shards' files.
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,

    /// Print one JSON object per shard, the whole ones too.
    #[arg(long)]
    json: bool,
}

/// Shows how far shards are.
///
/// # Errors
/// When there are none, or the folder cannot be read.
pub fn command(arguments: &Arguments) -> Result<(), Failure> {
    let states = status(&arguments.folder)?;
    let mut text = String::new();
    if arguments.json {
        for (shard, state) in &states {
            let (name, detail) = words(state);
            let line = serde_json::json!({
                "shard": shard.to_string(), "state": name, "detail": detail,
            });
            text.push_str(&output::json(&line)?);
            text.push('\n');
        }
        return output::print(&text);
    }
    for (shard, state) in &states {
        if !matches!(state, State::Whole(..)) {
            let (name, detail) = words(state);
            let line = format!("{shard}  {name}  {detail}");
            let _ = writeln!(text, "{}", line.trim_end());
        }
    }
    let of = |kind: &str| {
        states
            .iter()
            .filter(|(_, state)| words(state).0 == kind)
            .count()
    };
    let _ = writeln!(
        text,
        "of {} shards {} are whole, {} begun, {} missing, {} broken",
        states.len(),
        of("whole"),
        of("begun"),
        of("missing"),
        of("broken")
    );
    output::print(&text)
}

/// A state's name, and what else is known.
fn words(state: &State) -> (&'static str, String) {
    match state {
        State::Whole(experiments, end) => ("whole", format!("{experiments} experiments, {end}")),
        State::Begun(age) => ("begun", format!("last written {} s ago", age.as_secs())),
        State::Broken(why) => ("broken", why.clone()),
        State::Missing => ("missing", String::new()),
    }
}
