//! Site profiles: what is particular about a site, in a file beside the plans.

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
    /// Processors of a task; 1 by default.
    pub processors: Option<NonZero<u16>>,
    /// Memory of a task: `4g`.
    pub memory: Option<String>,
    /// The time limit of a task: `55m`; an hour by default.
    pub time: Option<String>,
    /// The largest number of tasks that run at the same time.
    pub at_most: Option<NonZero<u32>>,
    /// The number of times that a task is started again; 50 by default.
    pub restarts: Option<u32>,
}

impl Profile {
    /// Reads the profile in a file; an empty one where no file is named.
    ///
    /// # Errors
    /// When the file cannot be read, or has anything but a profile's fields.
    pub fn read(path: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = path else {
            return Ok(Self::default());
        };
        let profile: Self = read_toml(&Files::default(), path).map_err(|error| match error {
            MachineFileError::Load(error) => error.into(),
            wrong => Failure::new(Kind::Input, wrong)
                .help("docs/guide/many-machines.md has a profile with every field"),
        })?;
        profile.check()?;
        Ok(profile)
    }

    /// Refuses options of sbatch that the scripts set themselves: the last one counts, and that of
    /// the scripts would not.
    fn check(&self) -> Result<(), Failure> {
        let wrong =
            |words: String, help: String| Err(Failure::words(Kind::Input, words).help(help));
        if self.raidlab.first().is_some_and(String::is_empty) {
            let words = "`raidlab` of the profile begins with an empty word".to_owned();
            return wrong(words, "name the program, or leave the field out".to_owned());
        }
        for option in &self.sbatch {
            if !option.starts_with('-') {
                let words = format!("{option:?} in `sbatch` of the profile is no option");
                return wrong(words, "it is like `--partition=long`".to_owned());
            }
            let own = OWN
                .iter()
                .find(|(long, short, _)| is_option(option, long, *short));
            if let Some((long, _, instead)) = own {
                let words =
                    format!("`{option}` in `sbatch` of the profile is what the scripts say");
                return wrong(
                    words,
                    instead.map_or_else(
                        || format!("leave it out: tasks are started again, and found, by `{long}`"),
                        |field| format!("the profile's field `{field}` says it"),
                    ),
                );
            }
        }
        Ok(())
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

/// Options of sbatch that the scripts set, by their long and short names, each with the field of
/// the profile that changes it.
const OWN: [(&str, Option<char>, Option<&str>); 11] = [
    ("--array", Some('a'), Some("at_most")),
    ("--time", Some('t'), Some("time")),
    ("--cpus-per-task", Some('c'), Some("processors")),
    ("--mem", None, Some("memory")),
    ("--mem-per-cpu", None, Some("memory")),
    ("--mem-per-gpu", None, Some("memory")),
    ("--output", Some('o'), None),
    ("--open-mode", None, None),
    ("--requeue", None, None),
    ("--no-requeue", None, None),
    ("--dependency", Some('d'), None),
];

/// Whether words for sbatch set this option, with a value or without.
fn is_option(words: &str, long: &str, short: Option<char>) -> bool {
    let name = words.split(['=', ' ', '\t']).next().unwrap_or_default();
    let is_short = |short| name.starts_with('-') && name.chars().nth(1) == Some(short);
    name == long || short.is_some_and(is_short)
}

fn zero(field: &str) -> Failure {
    Failure::words(Kind::Input, format!("`{field}` of the profile is 0"))
}
