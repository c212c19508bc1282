//! The scheduler's jobs that make the shards of a run: a record in the shards' folder, and what the
//! scheduler says of them (squeue(1)).
//!
//! Accounting (`sacct`) is not asked: many sites have none. `squeue --states=all` lists a task for
//! `MinJobAge` after its end (five minutes where nothing is configured); then only the files tell
//! how it ended.

use crate::failure::Failure;
use raidlab_shell::{Command, Target, TargetError};
use raidlab_store::output::{Format, write};
use raidlab_store::text::visible_path;
use raidlab_units::lists;
use serde::{Deserialize, Serialize};
use std::num::NonZero;
use std::path::{Path, PathBuf};

/// The name of the file that keeps what was submitted.
const RECORD: &str = "submission.json";

/// The submitted jobs, as recorded in the shards' folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Submission {
    /// The name of the scheduler that has the jobs: `slurm`.
    pub engine: String,
    /// The scheduler's number of the array job of the shards.
    pub array: String,
    /// The scheduler's number of the merge job; empty where it was not taken.
    pub merge: String,
    /// The cluster that has the jobs, where it is not the usual one (`sbatch --clusters`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// The number of shards, those among them that were whole already.
    pub shards: NonZero<u32>,
}

impl Submission {
    /// The record of a folder; `None` where nothing was submitted.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn of(folder: &Path) -> Result<Option<Self>, Failure> {
        #[derive(Debug, thiserror::Error)]
        #[error("{} is no record of a submission", visible_path(.0))]
        struct Wrong(PathBuf, #[source] serde_json::Error);

        let path = folder.join(RECORD);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Failure::read_file(&path, error)),
        };
        match serde_json::from_str(&text) {
            Ok(found) => Ok(Some(found)),
            Err(error) => Err(Failure::input(Wrong(path, error)).help("move it away")),
        }
    }

    pub(crate) fn keep(&self, folder: &Path) -> Result<(), Failure> {
        // Plain words always have a form as JSON.
        let text = serde_json::to_string_pretty(self).unwrap_or_default();
        let path = folder.join(RECORD);
        Ok(write(
            &path,
            Format::Submission,
            format!("{text}\n").as_bytes(),
        )?)
    }

    /// The scheduler's answer on each task of the array, by the number of its shard, as long
    /// as it remembers them.
    ///
    /// # Errors
    /// When the scheduler does not answer.
    pub fn tasks(&self, target: &dyn Target) -> Result<Vec<(u32, Task)>, Failure> {
        self.ask(&self.array, target)
    }

    /// The state of the merge job, as long as the scheduler remembers it.
    ///
    /// # Errors
    /// When the scheduler does not answer.
    pub fn merge_task(&self, target: &dyn Target) -> Result<Option<Task>, Failure> {
        if self.merge.is_empty() {
            return Ok(None);
        }
        let found = self.ask(&self.merge, target)?;
        Ok(found.into_iter().next().map(|(_, task)| task))
    }

    /// Asks Slurm for the tasks of a job, by their numbers; 0 for a job that is no array.
    fn ask(&self, job: &str, target: &dyn Target) -> Result<Vec<(u32, Task)>, Failure> {
        let arguments = [
            "--array",
            "--noheader",
            "--states=all",
            "--format=%K|%T|%r|%N",
            "--jobs",
            job,
        ];
        let cluster = self
            .cluster
            .as_ref()
            .map(|name| format!("--clusters={name}"));
        let arguments = arguments.into_iter().map(str::to_owned).chain(cluster);
        tasks(&Command::reads("squeue", arguments), target)
    }
}

/// A task's state according to Slurm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// The task's state in Slurm's words: `RUNNING`, `PENDING`, `FAILED`.
    pub state: String,
    /// The reason of the state in Slurm's words: `Resources`, `NonZeroExitCode`; or the node
    /// it runs on.
    pub reason: String,
}

impl Task {
    /// Whether the task will not run any more.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        const GOING_ON: &str = "PENDING RUNNING SUSPENDED COMPLETING CONFIGURING REQUEUED \
            REQUEUE_FED REQUEUE_HOLD RESIZING RESV_DEL_HOLD SIGNALING SPECIAL_EXIT STAGE_OUT \
            STOPPED";
        !lists(GOING_ON, &self.state)
    }

    /// Whether the task has ended, and not successfully.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.has_ended() && self.state != "COMPLETED"
    }
}

/// The tasks in Slurm's answer.
fn tasks(squeue: &Command, target: &dyn Target) -> Result<Vec<(u32, Task)>, Failure> {
    let said = match target.run(squeue) {
        Ok(said) => said.stdout,
        // Slurm has forgotten the job.
        Err(TargetError::Failed { output, .. }) if output.stderr.contains("Invalid job id") => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(Failure::run(error)),
    };
    let task = |line: &str| {
        let mut parts = line.trim().split('|');
        let index = parts.next()?.parse().unwrap_or(0);
        let state = parts.next()?.to_owned();
        let (reason, node) = (parts.next()?, parts.next().unwrap_or_default());
        let reason = match (reason, node) {
            ("None", "") => String::new(),
            ("None", node) => format!("on {node}"),
            (reason, _) => reason.to_owned(),
        };
        Some((index, Task { state, reason }))
    };
    Ok(said.lines().filter_map(task).collect())
}

/// The last error that a task has printed, if any.
#[must_use]
pub fn why(folder: &Path, task: &str) -> Option<String> {
    let text = std::fs::read(folder.join(format!("slurm-{task}.log"))).ok()?;
    let text = String::from_utf8_lossy(&text);
    let mut lines = text.lines().rev();
    lines.find_map(|line| line.strip_prefix("error: ").map(str::to_owned))
}
