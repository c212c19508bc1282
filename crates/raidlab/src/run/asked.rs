//! What the command line of a run says: what is asked for, how it is done here, and
//! where the results go.
//!
//! Only the first decides the rows: it goes into the run's plan. The other two are said
//! anew where a run goes on.

use super::features;
use super::host::HostAsked;
use super::host::TRIAL_FOLDER;
use super::kernel::KernelAsked;
use super::{DEFAULT_SEED, STORE};
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use std::num::NonZero;
use std::path::PathBuf;

/// Above what only real machines have.
pub const REAL: &str = "On real machines (--on host)";
/// Above what only the kernel bench has.
pub const KERNEL: &str = "On the kernel bench (--on kernel)";

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

    /// Parameter set of the disk models; `all` runs each set that the disks
    /// have: the first is the main figure, the others give the band.
    #[arg(long, value_name = "strict|joint|all", default_value = "all")]
    pub fit: String,

    /// Seed of everything random, 0 to 2^64-1. The same seed gives the same
    /// rows, byte by byte.
    #[arg(long, value_name = "N", default_value_t = DEFAULT_SEED)]
    pub seed: u64,

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
    #[arg(long, value_name = "N")]
    pub threads: Option<NonZero<u16>>,

    /// Do not ask before data on the disks are lost.
    #[arg(long, help_heading = REAL)]
    pub yes: bool,

    /// Let a subject's file name the target that is written to: this export,
    /// nbd://HOST/NAME, and no other; may be repeated.
    #[arg(long = "allow-target", help_heading = REAL, value_name = "URI")]
    pub allowed_targets: Vec<String>,

    /// Seconds of real time without a sign of life after which the guest
    /// counts as spinning.
    #[arg(long, help_heading = KERNEL, value_name = "S", default_value_t = 60)]
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

    /// Print one JSON object per measurement on standard output and nothing
    /// else; progress and paths go to standard error.
    #[arg(long)]
    pub json: bool,

    /// Write every command of every disk, with its virtual times, into this folder:
    /// a file of comma-separated values for each experiment. On the model those are
    /// missing that a leap passes over (`--without leaps`); real machines write none.
    #[arg(long, value_name = "FOLDER")]
    pub disk_commands: Option<PathBuf>,
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
