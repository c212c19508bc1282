//! The arguments of a run: what is asked for, and how it is done on this machine.
//!
//! Only what is asked for decides the rows and goes into the run's plan. The rest is given again
//! when a run is resumed.

use crate::failure::{Failure, Kind};
use crate::values::{count, draw, features, seed};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, ValueEnum};
use raidlab_store::Shard;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::num::NonZero;
use std::path::PathBuf;

/// The default seed. Which two of three streams share a disk of md is decided by a race in the
/// first milliseconds of job 19 of the 2015 suite; with this seed, the smallest that does, it goes
/// as it went in 2015.
pub const DEFAULT_SEED: u64 = 2;
/// The default of the parameter sets: each that the disks have.
pub(crate) const ALL_FITS: &str = "all";
/// The default folder for trial disks.
const TRIAL_FOLDER: &str = "/var/tmp";
/// The default size of the part of each disk that the kernel bench uses.
const MEMBER_SIZE: &str = "4g";
/// The default memory of a guest of the kernel bench.
const GUEST_MEMORY: &str = "512m";
/// The default virtual time of a system call in a guest, nanoseconds.
pub(crate) const CALL_COST_NS: u32 = 1000;
/// The heading in help texts above options that only real machines have.
const REAL: &str = "On real machines (--on host)";
/// The heading in help texts above options that only the kernel bench has.
const KERNEL: &str = "On the kernel bench (--on kernel)";

/// What is asked for: with the files that it names, all that decides a run's rows. A plan
/// keeps it, and the command line is read as it. A field has the name of its option.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Args)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// A built-in suite, a suite file (.toml), a plan (.json), or a fio job file.
    #[arg(value_name = "SUITE|SUITE.toml|PLAN.json|JOBS.fio")]
    pub suite: String,

    /// The bench on which the suite runs.
    #[arg(long, value_enum, default_value_t = On::Model, value_name = "BENCH")]
    pub on: On,

    /// Run only this subject, by name or path; may be repeated. Default: the
    /// subjects of the suite.
    #[arg(long = "subject", value_name = "NAME|PATH")]
    pub subjects: Vec<String>,

    /// Use this disk. On the model and the kernel bench it is a preset, by name or
    /// path: given once it is for every member, else once per member in order; `6xpm9a3` is
    /// six of them. `pm9a3:steady` is a drive that is steady when the run begins; the other states are
    /// `fresh` and `filled`. Default: the disks of the suite. On real machines it is a device,
    /// once per member, best by a name in /dev/disk/by-id.
    #[arg(long = "disk", value_name = "PRESET|DEVICE")]
    pub disks: Vec<String>,

    /// The parameter set of the disk models (`raidlab disks` lists the sets of each disk). `all`
    /// runs each set that the disks have. The first set gives the figure, and the others give
    /// the band around it.
    #[arg(long, value_name = "SET|all", default_value = ALL_FITS)]
    pub fit: String,

    /// The seed of everything random, 0 to 2^64-1. On the model and the kernel bench
    /// the same seed gives the same rows, byte by byte.
    #[arg(
        long,
        value_name = "N",
        default_value_t = DEFAULT_SEED,
        value_parser = seed,
        allow_negative_numbers = true
    )]
    pub seed: u64,

    /// The number of the draw, 0 to 2^64-1, for suites of which each run takes only some
    /// subjects and jobs, drawn by chance. Another number gives others. Default: 1. Suites
    /// without a draw refuse the option.
    #[arg(long, value_name = "N", value_parser = draw, allow_negative_numbers = true)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draw: Option<u64>,

    /// Leave out a feature of the model; may be repeated.
    #[arg(long = "without", value_name = "FEATURE", value_parser = features())]
    pub without: Vec<String>,

    /// Model all subjects on this host instead of their own, by name (`raidlab
    /// subjects --hosts`) or path.
    #[arg(long, value_name = "NAME|PATH")]
    pub model_host: Option<String>,

    /// Let computing take the time that it takes on this processor, by name (`raidlab
    /// processors`) or path. Default: the processor of the suite. Most suites have none,
    /// and then computing takes no time.
    #[arg(long, value_name = "NAME|PATH")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor: Option<String>,

    /// Take a first look: only the first parameter set is used, and jobs that end by
    /// time are cut at 6 s of virtual time. The figures are noisier.
    #[arg(long)]
    pub quick: bool,

    /// Allow an option of fio that does more than shape the load; may be repeated.
    /// For example, `exec_prerun` runs a command, and `write_bw_log` writes files.
    /// With `filename` or `directory` the array is used in place of what the file
    /// names. `include` lets a job file read other files. '${NAME}' allows a variable
    /// with its value from the environment, '${NAME}=VALUE' with this value. Read the
    /// suite or job file first: on real machines fio runs as root.
    #[arg(long = "allow-fio", value_name = "OPTION")]
    #[serde(default)]
    pub allow_fio: Vec<String>,

    /// What is asked of real machines.
    #[command(flatten)]
    pub host: HostAsked,

    /// What is asked of the kernel bench.
    #[command(flatten)]
    pub kernel: KernelAsked,

    /// The options that were typed, each as `--seed`, also where it sets what holds anyway. The
    /// fields also have the options that were not typed.
    #[arg(skip)]
    #[serde(skip)]
    pub typed: Vec<String>,
}

/// What is asked of real machines alone, and how often everything is measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Args)]
#[command(next_help_heading = REAL)]
#[serde(deny_unknown_fields)]
pub struct HostAsked {
    /// A machine behind ssh, such as `root@store1`; may be repeated. All of them
    /// use disks of the same names. Default: this machine.
    #[arg(long = "machine", value_name = "DESTINATION")]
    pub machines: Vec<String>,

    /// Machines with their own disks, from a file with `[[machine]]` tables.
    #[arg(long, value_name = "FILE.toml", conflicts_with_all = ["machines", "disks", "elevate"])]
    pub machine_file: Option<PathBuf>,

    /// A command to put before every command on machines behind ssh, such as `sudo -n`.
    #[arg(long, value_name = "WORDS", requires = "machines")]
    pub elevate: Option<String>,

    /// The size of the trial's loop devices, which are used without --disk and lie on
    /// sparse files. Default: 1 GiB.
    #[arg(long, value_name = "SIZE", conflicts_with = "disks")]
    pub trial_size: Option<String>,

    /// The folder for the trial's files.
    #[arg(
        long,
        value_name = "FOLDER",
        default_value = TRIAL_FOLDER,
        conflicts_with = "disks"
    )]
    pub trial_folder: PathBuf,

    /// Use disks even if they hold file systems, arrays or partition tables that
    /// are not in use. These are lost.
    #[arg(long)]
    pub wipe_signatures: bool,

    /// Measure everything this many times, whatever the suite says.
    #[arg(long, value_name = "N", help_heading = None::<&'static str>)]
    pub repetitions: Option<NonZero<u32>>,
}

/// What is asked of the kernel bench alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Args)]
#[command(next_help_heading = KERNEL)]
#[serde(deny_unknown_fields)]
pub struct KernelAsked {
    /// The kernel, as `raidlab kernel status` calls it. Default: the newest; one
    /// with OpenZFS if a subject is a pool, one without it otherwise.
    #[arg(long, value_name = "NAME")]
    pub kernel: Option<String>,

    /// Use this much of each disk, its outermost part, or all of it (`whole`). A rebuild
    /// or a fill really moves these bytes, one to two gigabytes in each second of real
    /// time: seconds for 4 GiB, about an hour for 4 TB.
    #[arg(long, value_name = "SIZE|whole", default_value = MEMBER_SIZE)]
    pub member_size: String,

    /// The memory of the guest, which is also the most that its caches can hold.
    #[arg(long, value_name = "SIZE", default_value = GUEST_MEMORY)]
    pub memory: String,

    /// The virtual time that a system call takes in the guest, in nanoseconds.
    #[arg(long, value_name = "NS", default_value_t = CALL_COST_NS)]
    pub call_cost: u32,

    /// Let a disk fail; may be repeated. DISK is its place among the members from 0,
    /// and TIME is virtual time since the guest's start. WHAT is `dies`, `hangs` or
    /// `returns`, as in `1:40s:dies`. Or sectors go bad, as in `1:40s:unreadable=1g+64k`:
    /// 64 KiB from 1 GiB on, until they are written. `unreadable-for-good` and
    /// `unwritable` name sectors in the same way.
    #[arg(long = "disk-fault", value_name = "DISK:TIME:WHAT")]
    pub faults: Vec<String>,
}

/// The benches, one of which does the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum On {
    /// Modelled disks in virtual time.
    Model,
    /// The real Linux kernel over modelled disks, in virtual time.
    Kernel,
    /// Real machines with real disks, this one or others behind ssh.
    Host,
}

impl On {
    /// The name by which rows and options call the bench.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Kernel => "kernel",
            Self::Host => "host",
        }
    }
}

/// How a run is done here, of `run` and of `resume`: it changes no row.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = None::<&'static str>)]
pub struct Here {
    /// How many experiments run at the same time; the output does not depend on it.
    /// Default: one for each processor. On the kernel bench there may be fewer, as the
    /// guests must fit into memory.
    #[arg(long, value_name = "N", value_parser = count, allow_negative_numbers = true)]
    pub threads: Option<NonZero<u16>>,

    /// Write every command of every disk, with its virtual times, into this folder: a
    /// file of comma-separated values for each experiment. Where nothing changes for
    /// hours the model skips commands, and does not write these; with `--without leaps`
    /// it skips none. Real machines write no such files.
    #[arg(long, value_name = "FOLDER")]
    pub disk_commands: Option<PathBuf>,

    /// Do not ask before data on the disks are lost.
    #[arg(long, help_heading = REAL)]
    pub yes: bool,

    /// Allow a subject's file to name this NBD export, nbd://HOST/NAME, as what is
    /// written to; may be repeated. Other exports are refused.
    #[arg(long = "allow-target", help_heading = REAL, value_name = "URI")]
    pub allowed_targets: Vec<String>,

    /// After this many seconds of real time without a sign of life the guest counts as
    /// stuck, and the experiment ends with an error.
    #[arg(
        long,
        help_heading = KERNEL,
        value_name = "S",
        default_value_t = 60,
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    pub patience: u64,

    /// How much of this machine's memory the contents of the modelled disks may take, for
    /// all experiments of the run together. The rest goes into a file. Default: three
    /// quarters of the available memory, less what the guests need.
    #[arg(long, help_heading = KERNEL, value_name = "SIZE")]
    pub storage_memory: Option<String>,

    /// The folder for that file, which has no name there. The folder should not be
    /// in memory itself.
    #[arg(long, help_heading = KERNEL, value_name = "FOLDER", default_value = TRIAL_FOLDER)]
    pub storage_folder: PathBuf,

    /// The file that keeps the rows.
    #[arg(skip)]
    pub store: PathBuf,
    /// The part of the run that is done here; `None`: all of it.
    #[arg(skip)]
    pub shard: Option<Shard>,
    /// The options of these that were typed, each as `--threads`.
    #[arg(skip)]
    pub typed: Vec<String>,
    /// Whether nothing is to be run, and a plan is all that is wanted.
    #[arg(skip)]
    pub dry_run: bool,
    /// Whether a plan is written, perhaps for other machines: this one need not have the
    /// programs that a run takes.
    #[arg(skip)]
    pub plan_only: bool,
}

impl Here {
    /// The usual arguments, with this store.
    #[must_use]
    pub fn of(store: PathBuf) -> Self {
        Self {
            store,
            ..usual(&[])
        }
    }
}

/// Arguments, with the names of the options that were typed: a typed value may equal the default.
#[derive(Debug, Clone)]
pub struct Typed<T> {
    /// The arguments, each with its default where it was not typed.
    pub arguments: T,
    /// The options that were typed, each as `--seed`.
    pub options: Vec<String>,
}

impl<T: Args> FromArgMatches for Typed<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let own = T::augment_args(Command::new("own"));
        let is_typed = |one: &&Arg| {
            matches.value_source(one.get_id().as_str()) == Some(ValueSource::CommandLine)
        };
        let options = own.get_arguments().filter(is_typed);
        let options = options.filter_map(|one| Some(format!("--{}", one.get_long()?)));
        Ok(Self {
            arguments: T::from_arg_matches(matches)?,
            options: options.collect(),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl<T: Args> Args for Typed<T> {
    fn augment_args(command: Command) -> Command {
        T::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        T::augment_args_for_update(command)
    }
}

/// The arguments that a command line of these words gives, with defaults for the rest.
fn usual<T: Args>(words: &[&str]) -> T {
    let line = T::augment_args(Command::new("run").no_binary_name(true));
    let given = line.try_get_matches_from(words);
    let given = given.and_then(|given| T::from_arg_matches(&given));
    given.expect("no option must be given")
}

/// The benches that an option is for; options for all of them are not listed.
const FOR: [(&str, &[On]); 23] = [
    ("--threads", &[On::Model, On::Kernel]),
    ("--disk-commands", &[On::Model, On::Kernel]),
    ("--patience", &[On::Kernel]),
    ("--storage-memory", &[On::Kernel]),
    ("--storage-folder", &[On::Kernel]),
    ("--allow-target", &[On::Host]),
    ("--without", &[On::Model]),
    ("--model-host", &[On::Model]),
    ("--processor", &[On::Model, On::Kernel]),
    ("--fit", &[On::Model, On::Kernel]),
    ("--seed", &[On::Model, On::Kernel]),
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
    /// The arguments of `raidlab run SUITE` without another word.
    #[must_use]
    pub fn of(suite: &str) -> Self {
        usual(&["--", suite])
    }

    /// The options that were typed, or that differ from the plain command on the same suite.
    pub(crate) fn options(&self) -> Vec<String> {
        let mut names = self.typed.clone();
        let plain = serde_json::to_value(Self::of(&self.suite));
        if let (Ok(plain), Ok(given)) = (plain, serde_json::to_value(self)) {
            differing(&plain, &given, &mut names);
        }
        names
    }

    /// Refuses options that would do nothing on the bench that is asked for. `manner`: the typed
    /// options among those of how the run is done.
    ///
    /// # Errors
    /// With the first such option.
    pub(crate) fn check(&self, manner: &[String]) -> Result<(), Failure> {
        let given = [manner, &self.options()].concat();
        let idle = FOR.iter().find(|(name, benches)| {
            !benches.contains(&self.on) && given.iter().any(|one| one == name)
        });
        let Some((option, benches)) = idle else {
            return Ok(());
        };
        let words = format!("`{option}` does nothing on the {} bench", self.on.name());
        let on: Vec<String> = benches
            .iter()
            .map(|bench| format!("`--on {}`", bench.name()))
            .collect();
        Err(Failure::words(Kind::Usage, words)
            .help(format!("it is for {}; leave it out", on.join(" and "))))
    }
}

/// The names of the fields that differ, as options.
fn differing(plain: &Value, given: &Value, names: &mut Vec<String>) {
    let (Some(plain), Some(given)) = (plain.as_object(), given.as_object()) else {
        return;
    };
    for (name, value) in given {
        let usual = plain.get(name).unwrap_or(&Value::Null);
        if value.is_object() {
            differing(usual, value, names);
        } else if value != usual {
            // An option that may be repeated is named in the singular, its field in the plural.
            let single = match name.as_str() {
                "faults" => "disk-fault",
                name if value.is_array() => name.trim_end_matches('s'),
                name => name,
            };
            let option = format!("--{}", single.replace('_', "-"));
            if !names.contains(&option) {
                names.push(option);
            }
        }
    }
}
