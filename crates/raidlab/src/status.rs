//! The command `raidlab status`: it shows how far the shards of a run are.

use crate::failure::Failure;
use crate::output;
use clap::Args;
use raidlab_runs::status::{State, status};
use raidlab_runs::submission::{Submission, Task, why};
use raidlab_shell::Local;
use raidlab_store::Shard;
use raidlab_units::count;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Arguments of `raidlab status`.
#[derive(Debug, Args)]
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
    let (tasks, merge) = asked(&arguments.folder);
    let known = |shard: &Shard| {
        let task = tasks.get(&shard.index())?;
        Some(in_words(
            &arguments.folder,
            &shard.index().to_string(),
            task,
        ))
    };
    let mut text = String::new();
    if arguments.json {
        for (shard, state) in &states {
            let (name, detail) = words(state);
            let line = serde_json::json!({
                "shard": shard.to_string(), "state": name, "detail": detail, "task": known(shard),
            });
            text.push_str(&output::json(&line)?);
        }
        return output::print(&text);
    }
    for (shard, state) in &states {
        if !matches!(state, State::Whole(..)) {
            let (name, detail) = words(state);
            let parts = [
                shard.to_string(),
                name.to_owned(),
                detail,
                known(shard).unwrap_or_default(),
            ];
            let parts: Vec<&str> = (parts.iter().map(String::as_str))
                .filter(|part| !part.is_empty())
                .collect();
            let _ = writeln!(text, "{}", parts.join("  "));
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
    if let Some(task) = merge {
        let _ = writeln!(
            text,
            "merge  {}",
            in_words(&arguments.folder, "merge", &task)
        );
    }
    output::print(&text)
}

/// Asks the scheduler about the shards that were submitted, by their numbers, and about the merge.
/// The files are what counts: where the scheduler does not answer, that is said.
fn asked(folder: &Path) -> (BTreeMap<u32, Task>, Option<Task>) {
    let asked = || -> Result<_, Failure> {
        let Some(submission) = Submission::of(folder)? else {
            return Ok(Default::default());
        };
        let machine = Local::new();
        let tasks = submission.tasks(&machine)?.into_iter().collect();
        Ok((tasks, submission.merge_task(&machine)?))
    };
    asked().unwrap_or_else(|failure| {
        output::say(&format!(
            "warning: by the files alone: {}",
            failure.to_string().trim_end()
        ));
        Default::default()
    })
}

/// The scheduler's state of a task in words, and its last error where it failed.
fn in_words(folder: &Path, name: &str, task: &Task) -> String {
    let error = task.has_failed().then(|| why(folder, name)).flatten();
    let words = format!("{} {}", task.state, task.reason);
    match error {
        Some(error) => format!("{}: {error}", words.trim_end()),
        None => words.trim_end().to_owned(),
    }
}

/// A state's name, and further words on it.
fn words(state: &State) -> (&'static str, String) {
    match state {
        State::Whole(experiments, end) => {
            let experiments = count(*experiments, "experiment", "experiments");
            ("whole", format!("{experiments}, {end}"))
        }
        State::Begun(age) => ("begun", format!("last written {} s ago", age.as_secs())),
        State::Broken(why) => ("broken", why.clone()),
        State::Missing => ("missing", String::new()),
    }
}
