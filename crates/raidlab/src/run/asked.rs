//! What the command line of a run says: what is asked for, how it is done here, and
//! where the results go.
//!
//! Only the first decides the rows: it goes into the run's plan. The other two are said
//! anew where a run goes on.

use super::DEFAULT_SEED;
use super::asked_of_benches::{HostAsked, KERNEL, KernelAsked, REAL, TRIAL_FOLDER};
use super::features;
use crate::cli::{Cli, Command};
use crate::failure::{Failure, Kind};
use crate::notes::STORE;
use clap::{Args, Parser, ValueEnum};
use serde::{Deserialize, Serialize};
use std::num::NonZero;
use std::path::PathBuf;

/// What is asked for: with the files that it names, all that decides a run's rows.
#[derive(Debug, Clone, PartialEq, Eq, Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// A built-in suite, a suite file (.toml), a plan (.json), or a fio job file.
    #[arg(value_name = "SUITE|SUITE.toml|PLAN.json|JOBS.fio")]
    pub suite: String,

    /// Where to run.
    #[arg(long = "on", value_enum, default_value_t = On::Model, value_name = "BENCH")]
    pub on: On,

    /// Run only this subject, by name or path; may be repeated. Default: those
    /// of the suite.
    #[arg(long = "subject", value_name = "NAME|PATH")]
    pub subjects: Vec<String>,

    /// Use this disk. On the model a preset by name or path: once for every
    /// member, or once per member in order; default: those of the suite. On
    /// real machines a device, once per member: best by a name that stays the
    /// same, as those in /dev/disk/by-id.
    #[arg(long = "disk", value_name = "PRESET|DEVICE")]
    pub disks: Vec<String>,

    /// The parameter set of the disk models. `all` runs each set that the disks have:
    /// the first gives the figure, the others give the band around it.
    #[arg(long, value_name = "strict|joint|all", default_value = "all")]
    pub fit: String,

    /// The number from which everything random is drawn, 0 to 2^64-1. The same seed
    /// gives the same rows, byte by byte.
    #[arg(
        long,
        value_name = "N",
        default_value_t = DEFAULT_SEED,
        value_parser = seed,
        allow_negative_numbers = true
    )]
    pub seed: u64,

    /// The number of the draw, for a suite that draws its subjects and jobs by chance,
    /// 0 to 2^64-1. Another number gives other subjects and jobs. Default: 1. Other
    /// suites take no such number.
    #[arg(long, value_name = "N", value_parser = draw, allow_negative_numbers = true)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draw: Option<u64>,

    /// Leave out a feature of the model; may be repeated.
    #[arg(long = "without", value_name = "FEATURE", value_parser = features())]
    pub without: Vec<String>,

    /// Model the subjects on this host, by name (`raidlab subjects --hosts`) or
    /// path, not on their own.
    #[arg(long, value_name = "NAME|PATH")]
    pub model_host: Option<String>,

    /// A first look: only the first parameter set, and no job that ends by
    /// time runs longer than 6 s of virtual time. Noisier, and without a band.
    #[arg(long)]
    pub quick: bool,

    /// Let the suite or job file use this option of fio's although it does more
    /// than shape the load: `exec_prerun` runs a command, `write_bw_log` writes
    /// files. With `filename` or `directory` the array takes the place of what
    /// the file names. `include` lets a job file read others. '${NAME}' has the
    /// variable's value from the environment put in, '${NAME}=VALUE' this one.
    /// May be repeated. Read the file first: fio runs as root on real machines.
    #[arg(long = "allow-fio", value_name = "OPTION")]
    #[serde(default)]
    pub allow_fio: Vec<String>,

    #[command(flatten)]
    pub host: HostAsked,

    #[command(flatten)]
    pub kernel: KernelAsked,
}

/// How it is done here, of `run` and of `resume`: it changes no row.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = None::<&'static str>)]
pub struct Here {
    /// Experiments at the same time; the output does not depend on it.
    /// Default: one for each processor; on the kernel bench as far as the memory
    /// goes.
    #[arg(long, value_name = "N", value_parser = count, allow_negative_numbers = true)]
    pub threads: Option<NonZero<u16>>,

    /// Do not ask before data on the disks are lost.
    #[arg(long, help_heading = REAL)]
    pub yes: bool,

    /// Let a subject's file name the target that is written to: this export,
    /// nbd://HOST/NAME, and no other; may be repeated.
    #[arg(long = "allow-target", help_heading = REAL, value_name = "URI")]
    pub allowed_targets: Vec<String>,

    /// After so many seconds of real time without a sign of life the guest counts as
    /// stuck, and the experiment ends with an error.
    #[arg(
        long,
        help_heading = KERNEL,
        value_name = "S",
        default_value_t = 60,
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    pub patience: u64,

    /// What the disks hold stays in this machine's memory up to this size, for all
    /// experiments of the run together; what is more goes into a file. Default: three
    /// quarters of what is available, less what the guests need.
    #[arg(long, help_heading = KERNEL, value_name = "SIZE")]
    pub storage_memory: Option<String>,

    /// The folder for that file, which has no name in it. It should not be in memory
    /// itself.
    #[arg(long, help_heading = KERNEL, value_name = "FOLDER", default_value = TRIAL_FOLDER)]
    pub storage_folder: PathBuf,
}

/// Where a run's results go, of `run` and of `resume`.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = None::<&'static str>)]
pub struct Outputs {
    /// The file that keeps the rows; made if it is not there.
    #[arg(long, value_name = "FILE", default_value = STORE)]
    pub store: PathBuf,

    /// The HTML report; an older one is replaced when the new one is whole.
    #[arg(long, value_name = "FILE", default_value = "raidlab-report.html")]
    pub report: PathBuf,

    /// Write no HTML report.
    #[arg(long, conflicts_with = "report")]
    pub no_report: bool,

    /// Print one JSON object per measurement on standard output, and nothing else
    /// there; progress and paths go to standard error.
    #[arg(long)]
    pub json: bool,

    /// Write every command of every disk, with its virtual times, into this folder: a
    /// file of comma-separated values for each experiment. The model leaves out
    /// commands that it skips where nothing changes for hours; with `--without leaps`
    /// it skips none. Real machines write no such files.
    #[arg(long, value_name = "FOLDER")]
    pub disk_commands: Option<PathBuf>,
}

/// A seed out of its digits.
pub fn seed(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("a seed is a whole number from 0 to {}", u64::MAX))
}

/// The number of a draw out of its digits.
pub fn draw(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("a draw is a whole number from 0 to {}", u64::MAX))
}

/// A number of something out of its digits.
pub fn count(text: &str) -> Result<NonZero<u16>, String> {
    text.parse()
        .map_err(|_| format!("this is a whole number from 1 to {}", u16::MAX))
}

/// The benches that an option is for, where it is not for all of them.
const FOR: [(&str, &[On]); 15] = [
    ("--without", &[On::Model]),
    ("--model-host", &[On::Model]),
    ("--fit", &[On::Model, On::Kernel]),
    ("--quick", &[On::Model, On::Kernel]),
    ("--kernel", &[On::Kernel]),
    ("--member-size", &[On::Kernel]),
    ("--memory", &[On::Kernel]),
    ("--call-cost", &[On::Kernel]),
    ("--disk-fault", &[On::Kernel]),
    ("--machine", &[On::Host]),
    ("--machine-file", &[On::Host]),
    ("--elevate", &[On::Host]),
    ("--trial-size", &[On::Host]),
    ("--trial-folder", &[On::Host]),
    ("--wipe-signatures", &[On::Host]),
];

impl Asked {
    /// The options that differ from the plain command on the same suite.
    pub fn options(&self) -> Vec<String> {
        let plain = match Cli::try_parse_from(["raidlab", "run", &self.suite]) {
            Ok(Cli {
                command: Command::Run(arguments),
            }) => serde_json::to_value(arguments.asked()),
            _ => return Vec::new(),
        };
        let mut names = Vec::new();
        if let (Ok(plain), Ok(given)) = (plain, serde_json::to_value(self)) {
            differing(&plain, &given, &mut names);
        }
        names
    }

    /// Refuses what would do nothing on the bench that is asked for.
    ///
    /// # Errors
    /// With the first such option.
    pub fn check(&self) -> Result<(), Failure> {
        let given = self.options();
        let idle = FOR.iter().find(|(name, benches)| {
            !benches.contains(&self.on) && given.iter().any(|one| one == name)
        });
        let Some((option, benches)) = idle else {
            return Ok(());
        };
        let name = |bench: &On| {
            bench
                .to_possible_value()
                .map_or_else(String::new, |it| it.get_name().to_owned())
        };
        let words = format!("`{option}` does nothing on the {} bench", name(&self.on));
        let on: Vec<String> = benches
            .iter()
            .map(|bench| format!("`--on {}`", name(bench)))
            .collect();
        Err(Failure::words(Kind::Usage, words)
            .help(format!("it is for {}; leave it out", on.join(" and "))))
    }
}

/// The names of the fields that differ, as options.
fn differing(plain: &serde_json::Value, given: &serde_json::Value, names: &mut Vec<String>) {
    let (Some(plain), Some(given)) = (plain.as_object(), given.as_object()) else {
        return;
    };
    for (name, value) in given {
        let usual = plain.get(name).unwrap_or(&serde_json::Value::Null);
        if value.is_object() {
            differing(usual, value, names);
        } else if value != usual {
            // What may be repeated has the plural's name.
            let single = match name.as_str() {
                "faults" => "disk-fault",
                name if value.is_array() => name.trim_end_matches('s'),
                name => name,
            };
            names.push(format!("--{}", single.replace('_', "-")));
        }
    }
}

/// The benches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum On {
    /// Modelled disks in virtual time.
    Model,
    /// The real Linux kernel over modelled disks, in virtual time.
    Kernel,
    /// Real machines with real disks, this one or others behind ssh.
    Host,
}
