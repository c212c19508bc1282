//! What is particular about a site: a file of its own, beside the plans.

use crate::failure::{Failure, Kind};
use raidlab_bench_host::{MachineFileError, read_toml};
use raidlab_lab::Files;
use raidlab_units::{Bytes, Nanos, parse_bytes, parse_duration};
use serde::Deserialize;
use std::num::NonZero;
use std::path::Path;
use std::time::Duration;

/// A site's profile; every field may be left out.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Profile {
    /// More options of `sbatch`: `["--partition=long", "--account=storage"]`.
    pub sbatch: Vec<String>,
    /// Lines of the shell before anything else: `["module load raidlab"]`.
    pub before: Vec<String>,
    /// The words that start raidlab, instead of the path of this program:
    /// `["apptainer", "exec", "raidlab.sif", "raidlab"]`.
    pub raidlab: Vec<String>,
    /// Processors of a task; 1 where it is not said.
    pub processors: Option<NonZero<u32>>,
    /// Memory of a task: `4g`.
    pub memory: Option<String>,
    /// The time limit of a task: `55m`; an hour where it is not said.
    pub time: Option<String>,
    /// So many tasks run at the same time, and not more.
    pub at_most: Option<NonZero<u32>>,
    /// So often a task is started again; 50 where it is not said.
    pub restarts: Option<u32>,
}

impl Profile {
    /// The profile in a file; an empty one where none is named.
    ///
    /// # Errors
    /// When it cannot be read, or says something else.
    pub fn read(path: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = path else {
            return Ok(Self::default());
        };
        read_toml(&Files::default(), path).map_err(|error| match error {
            MachineFileError::Load(error) => error.into(),
            wrong => Failure::new(Kind::Input, wrong)
                .help("docs/guide/many-machines.md has a profile with every field"),
        })
    }

    /// The memory of a task, if it is said.
    pub fn memory(&self) -> Result<Option<Bytes>, Failure> {
        const HELP: &str = "`memory` of the profile is `512m` or `4g`";
        let read = |text: &String| match parse_bytes(text) {
            // Slurm takes 0 for all of a machine's memory.
            Ok(Bytes(0)) => Err(zero("memory").help(HELP)),
            read => read.map_err(|error| Failure::new(Kind::Input, error).help(HELP)),
        };
        self.memory.as_ref().map(read).transpose()
    }

    /// The time limit of a task, in whole minutes as Slurm counts, at least one.
    pub fn minutes(&self) -> Result<u64, Failure> {
        const HOUR: Duration = Duration::from_secs(3600);
        let time = match &self.time {
            None => HOUR,
            Some(text) => {
                const HELP: &str = "`time` of the profile is `55m` or `8h`";
                let time = parse_duration(text)
                    .map_err(|error| Failure::new(Kind::Input, error).help(HELP))?;
                if time == Nanos::ZERO {
                    // Slurm takes 0 for no limit, and raidlab stops in time before one.
                    return Err(zero("time").help(HELP));
                }
                Duration::from_nanos(time.0)
            }
        };
        Ok(time.as_secs().div_ceil(60).max(1))
    }
}

fn zero(field: &str) -> Failure {
    Failure::words(Kind::Input, format!("`{field}` of the profile is 0"))
}
