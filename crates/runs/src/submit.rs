//! A run's shards handed to a scheduler: scripts, and a record beside the shards' files.
//!
//! Slurm is the only scheduler supported. The shards are the tasks of one array job, and the merge
//! waits for all of them. A task ends itself before its time is up, with the exit code for "start
//! me again", and its script requeues it, up to a limit. A preempted task is requeued by Slurm
//! itself. The shard keeps what is finished (`raidlab run --shard`), so the end of a task costs one
//! experiment at most.
//!
//! Submitting again submits the shards that are not whole.

mod profile;
mod slurm;

use crate::asked::On;
use crate::failure::{Failure, Kind};
use crate::notes::STORE;
use crate::planned;
use crate::status::{State, states};
use crate::submission::Submission;
use crate::task::holder;
use crate::typed::in_shell;
use clap::Args;
use profile::Profile;
use raidlab_shell::{Command, Lock, LockError, Target, lock_file};
use raidlab_store::output::{Format, check_writable, write};
use raidlab_store::text::visible_path;
use raidlab_store::{Shard, Store};
use std::num::NonZero;
use std::path::{Path, PathBuf};

/// What is to be handed over, as options of `raidlab submit`.
#[derive(Debug, Clone, Args)]
pub struct Submit {
    /// The plan, which `raidlab run SUITE --plan-only FILE.json` wrote.
    #[arg(value_name = "PLAN.json")]
    pub plan: PathBuf,

    /// The number of shards into which the run is cut.
    #[arg(long, value_name = "N")]
    pub shards: NonZero<u32>,

    /// The folder for the shards' files, which every machine must see. It is made
    /// if it is not there.
    #[arg(long, value_name = "FOLDER")]
    pub folder: PathBuf,

    /// The store that the merged run goes into.
    #[arg(long, value_name = "FILE", default_value = STORE)]
    pub store: PathBuf,

    /// The profile of the site, a TOML file.
    #[arg(long, value_name = "FILE")]
    pub profile: Option<PathBuf>,
}

/// Scripts that were written, and the commands that submit them.
#[derive(Debug)]
pub struct Scripts {
    folder: PathBuf,
    /// The command that submits the shards, and prints the number of the array job.
    pub array: Command,
    /// The command that submits the merge, without the number of the array job.
    merge: Vec<String>,
    /// The shards that are not whole.
    pub missing: Vec<Shard>,
    shards: NonZero<u32>,
    /// The lock that keeps other submissions from this folder out meanwhile.
    _lock: Lock,
}

/// Writes the scripts for the shards that are not whole; `None` if all are.
///
/// # Errors
/// When the plan or the profile is wrong, a file is in the way, or tasks of an earlier
/// submission have not come to their end.
pub fn scripts(asked: &Submit, target: &dyn Target) -> Result<Option<Scripts>, Failure> {
    let Some(plan) = planned::in_file(&asked.plan)? else {
        let words = format!("{} is no plan", visible_path(&asked.plan));
        let help = "`raidlab run SUITE --plan-only plan.json` writes one";
        return Err(Failure::words(Kind::Usage, words).help(help));
    };
    if asked.shards.get() > Shard::MOST {
        let words = format!("{} shards are more than {}", asked.shards, Shard::MOST);
        let help = "a shard beyond the number of experiments has nothing to do";
        return Err(Failure::words(Kind::Usage, words).help(help));
    }
    let profile = Profile::read(asked.profile.as_deref())?;
    let folder = absolute(&asked.folder)?;
    slurm::check_folder(&folder)?;
    std::fs::create_dir_all(&folder).map_err(|error| Failure::write_file(&folder, error))?;
    // The merge would be refused only when all shards are whole.
    Store::check_place(&asked.store)?;
    check_writable(&asked.store, Format::Store)?;
    let lock = lock(&folder)?;
    let missing = missing(asked, &folder, &plan.sha256()?)?;
    under_way(&folder, target)?;
    if missing.is_empty() {
        return Ok(None);
    }
    let job = slurm::Job {
        plan: &plan.asked,
        on_kernel: plan.asked.on == On::Kernel,
        count: asked.shards,
        missing: &missing,
        folder: &folder,
        paths: [absolute(&asked.plan)?, absolute(&asked.store)?],
        profile: &profile,
    };
    let (shard, merge) = (folder.join("shard.sh"), folder.join("merge.sh"));
    write(&shard, Format::Script, job.shard()?.as_bytes())?;
    write(&merge, Format::Script, job.merge().as_bytes())?;
    let named = |path: &Path| path.to_string_lossy().into_owned();
    Ok(Some(Scripts {
        array: Command::changes("sbatch", ["--parsable".to_owned(), named(&shard)]),
        merge: vec![
            "--parsable".to_owned(),
            "--kill-on-invalid-dep=yes".to_owned(),
            named(&merge),
        ],
        folder,
        missing,
        shards: asked.shards,
        _lock: lock,
    }))
}

impl Scripts {
    /// The command that submits the merge, which waits for this array job.
    #[must_use]
    pub fn merge(&self, array: &str) -> Command {
        let after = format!("--dependency=afterok:{array}");
        let words = std::iter::once(after).chain(self.merge.iter().cloned());
        Command::changes("sbatch", words)
    }

    /// Submits the scripts, and records the numbers of the jobs.
    ///
    /// # Errors
    /// When the scheduler does not take them, or the record cannot be written.
    pub fn submit(&self, target: &dyn Target) -> Result<Submission, Failure> {
        let number = |command: &Command| -> Result<(String, Option<String>), Failure> {
            let said = target.run(command).map_err(|error| {
                Failure::run(error).help("`--print` writes the scripts and submits nothing")
            })?;
            // With several clusters Slurm prints `number;cluster`.
            let (number, cluster) = match said.stdout.trim().split_once(';') {
                Some((number, cluster)) => (number, Some(cluster.to_owned())),
                None => (said.stdout.trim(), None),
            };
            match number.parse::<u64>() {
                Ok(number) => Ok((number.to_string(), cluster)),
                Err(_) => {
                    let words = format!("`{command}` said no number of a job: {}", said.stdout);
                    Err(Failure::words(Kind::Run, words))
                }
            }
        };
        let (array, cluster) = number(&self.array)?;
        let mut submission = Submission {
            engine: "slurm".to_owned(),
            merge: String::new(),
            shards: self.shards,
            array,
            cluster,
        };
        let array = submission.array.clone();
        // Recorded at once: whatever happens to the merge, the tasks are known.
        submission.keep(&self.folder).map_err(|error| {
            error.help(format!(
                "job {array} has the shards, and is not written down: `scancel {array}` takes it back"
            ))
        })?;
        let merge = number(&self.merge(&array)).map_err(|error| {
            error.help(format!(
                "job {array} has the shards, and nothing merges them behind it: submit again when it \
                 has ended, or `scancel {array}`"
            ))
        })?;
        submission.merge = merge.0;
        submission.keep(&self.folder)?;
        Ok(submission)
    }
}

/// Locks a folder for submitting: two submissions at the same time would each see
/// nothing under way.
fn lock(folder: &Path) -> Result<Lock, Failure> {
    lock_file(&folder.join("submission.lock"), &holder()).map_err(|error| match error {
        LockError::Held { .. } => Failure::run(error).help("wait until it has ended"),
        error => Failure::new(Kind::Output, error),
    })
}

/// The shards that are not whole; `plan`: the SHA-256 of the plan that all are of.
fn missing(asked: &Submit, folder: &Path, plan: &str) -> Result<Vec<Shard>, Failure> {
    let count = asked.shards;
    let all = (0..count.get()).filter_map(|index| Shard::new(index, count));
    let Some(found) = states(folder, Some(plan))? else {
        return Ok(all.collect());
    };
    let mut missing = Vec::new();
    for (shard, state) in found {
        if shard.count() != count {
            let words = format!(
                "{} has shards of {}, not of {count}",
                visible_path(folder),
                shard.count()
            );
            return Err(Failure::words(Kind::Input, words).help("give each run a folder"));
        }
        match state {
            State::Whole(..) => {}
            State::Broken(why) => {
                let words = format!("the file of shard {shard} cannot stay: {why}");
                return Err(Failure::words(Kind::Input, words).help("move it away"));
            }
            State::Begun(_) | State::Missing => missing.push(shard),
        }
    }
    Ok(missing)
}

/// Refuses while tasks of an earlier submission have not ended.
fn under_way(folder: &Path, target: &dyn Target) -> Result<(), Failure> {
    let Some(earlier) = Submission::of(folder)? else {
        return Ok(());
    };
    let tasks = earlier.tasks(target)?;
    match tasks.iter().find(|(_, task)| !task.has_ended()) {
        None => Ok(()),
        Some((index, task)) => {
            let words = format!(
                "job {} is under way for these shards: task {index} is {}",
                earlier.array, task.state
            );
            let help = format!("wait for it, or `scancel {}`", earlier.array);
            Err(Failure::words(Kind::Run, words).help(help))
        }
    }
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|error| Failure::write_file(path, error))
}

/// A path as a word of a script.
fn word(path: &Path) -> String {
    in_shell(path.as_os_str())
}

#[cfg(test)]
mod tests;
