//! Site profiles: what is particular about a site, in a file beside the plans.

use crate::failure::{Failure, Kind};
use raidlab_bench_host::{MachineFileError, read_toml};
use raidlab_lab::{FileKind, Files};
use raidlab_units::{Bytes, Nanos, parse_bytes, parse_duration};
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use std::num::NonZero;
use std::path::Path;

/// The remedy where a file is no profile.
const PROFILE: &str = "docs/guide/many-machines.md has a profile with every field";

/// A site's profile; every field may be left out.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Profile {
    /// More options of `sbatch`: `["--partition=long", "--account=storage"]`.
    #[serde(deserialize_with = "options")]
    pub sbatch: Vec<String>,
    /// Lines of the shell before anything else: `["module load raidlab"]`.
    pub before: Vec<String>,
    /// The words that start raidlab, instead of the path of this program:
    /// `["apptainer", "exec", "raidlab.sif", "raidlab"]`.
    #[serde(deserialize_with = "program")]
    pub raidlab: Vec<String>,
    /// Processors of a task; 1 by default.
    pub processors: Option<NonZero<u16>>,
    /// Memory of a task: `4g`.
    #[serde(deserialize_with = "memory")]
    pub memory: Option<Bytes>,
    /// The time limit of a task, `55m`, in whole minutes as Slurm counts; an hour by default.
    #[serde(rename = "time", deserialize_with = "minutes")]
    pub minutes: Option<NonZero<u64>>,
    /// The largest number of tasks that run at the same time.
    pub at_most: Option<NonZero<u32>>,
    /// The number of times that a task is started again; 50 by default.
    pub restarts: Option<u32>,
}

impl Profile {
    /// Reads the profile in a file; an empty one where no file is named.
    ///
    /// # Errors
    /// When the file cannot be read, or has anything but a profile's fields, with the line.
    pub fn read(path: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = path else {
            return Ok(Self::default());
        };
        read_toml(&Files::default(), FileKind::Profile, path).map_err(|error| match error {
            MachineFileError::Load(error) => Failure::from(error).or_help(PROFILE),
            wrong => Failure::new(Kind::Input, wrong).help(PROFILE),
        })
    }
}

/// Reads options of sbatch, without those that the scripts set themselves: the last one counts, and
/// that of the scripts would not.
fn options<'a, D: Deserializer<'a>>(from: D) -> Result<Vec<String>, D::Error> {
    let options = Vec::<String>::deserialize(from)?;
    for option in &options {
        if !option.starts_with('-') {
            let words = format!("{option:?} is no option of sbatch, as `--partition=long` is");
            return Err(D::Error::custom(words));
        }
        let mut own = OWN.iter();
        let Some((long, _, instead)) = own.find(|(long, short, _)| is_option(option, long, *short))
        else {
            continue;
        };
        let words = instead.map_or_else(
            || format!("leave it out: tasks are started again, and found, by `{long}`"),
            |field| format!("the field `{field}` says it"),
        );
        let words = format!("`{option}` is what the scripts say; {words}");
        return Err(D::Error::custom(words));
    }
    Ok(options)
}

/// Reads the words of a program.
fn program<'a, D: Deserializer<'a>>(from: D) -> Result<Vec<String>, D::Error> {
    let words = Vec::<String>::deserialize(from)?;
    match words.first().is_some_and(String::is_empty) {
        true => Err(D::Error::custom(
            "it begins with an empty word; name the program, or leave the field out",
        )),
        false => Ok(words),
    }
}

/// Reads a size that is not 0: Slurm takes 0 for all of a machine's memory.
fn memory<'a, D: Deserializer<'a>>(from: D) -> Result<Option<Bytes>, D::Error> {
    match parse_bytes(&String::deserialize(from)?) {
        Ok(Bytes(0)) => Err(D::Error::custom("it is 0, and not as `512m` or `4g`")),
        Ok(memory) => Ok(Some(memory)),
        Err(error) => Err(D::Error::custom(error)),
    }
}

/// Reads a time that is not 0, in minutes. Slurm takes 0 for no limit, and raidlab stops itself shortly
/// before the limit.
fn minutes<'a, D: Deserializer<'a>>(from: D) -> Result<Option<NonZero<u64>>, D::Error> {
    const MINUTE: Nanos = Nanos(60_000_000_000);
    let time = parse_duration(&String::deserialize(from)?).map_err(D::Error::custom)?;
    match NonZero::new(time.0.div_ceil(MINUTE.0)) {
        Some(minutes) => Ok(Some(minutes)),
        None => Err(D::Error::custom("it is 0, and not as `55m` or `8h`")),
    }
}

/// Options of sbatch that the scripts set, by their long and short names, each with the field of
/// the profile that changes it.
const OWN: [(&str, Option<char>, Option<&str>); 12] = [
    ("--array", Some('a'), Some("at_most")),
    ("--time", Some('t'), Some("time")),
    ("--cpus-per-task", Some('c'), Some("processors")),
    ("--mem", None, Some("memory")),
    ("--mem-per-cpu", None, Some("memory")),
    ("--mem-per-gpu", None, Some("memory")),
    ("--output", Some('o'), None),
    ("--error", Some('e'), None),
    ("--open-mode", None, None),
    ("--requeue", None, None),
    ("--no-requeue", None, None),
    ("--dependency", Some('d'), None),
];

/// Whether words for sbatch set this option, with a value or without. One line may have several
/// options, and sbatch takes the beginning of a long one for all of it.
fn is_option(words: &str, long: &str, short: Option<char>) -> bool {
    words.split([' ', '\t']).any(|word| {
        let name = word.split('=').next().unwrap_or_default();
        let is_short = |short| name.starts_with('-') && name.chars().nth(1) == Some(short);
        (name.len() > 2 && long.starts_with(name)) || short.is_some_and(is_short)
    })
}
