//! What the command line of a run says.

use crate::values::{count, draw, features, seed};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use raidlab_runs::notes::STORE;
use raidlab_runs::{
    ALL_FITS, Asked, CALL_COST_NS, DEFAULT_SEED, GUEST_MEMORY, Here, HostAsked, KernelAsked,
    MEMBER_SIZE, On, TRIAL_FOLDER,
};
use std::num::NonZero;
use std::path::{Path, PathBuf};

/// Above what only real machines have.
const REAL: &str = "On real machines (--on host)";
/// Above what only the kernel bench has.
const KERNEL: &str = "On the kernel bench (--on kernel)";

/// What is asked for, as it is typed.
#[derive(Debug, Clone, Args)]
pub struct Wanted {
    /// A built-in suite, a suite file (.toml), a plan (.json), or a fio job file.
    #[arg(value_name = "SUITE|SUITE.toml|PLAN.json|JOBS.fio")]
    suite: String,

    /// Where to run.
    #[arg(long = "on", value_parser = benches(), default_value = On::Model.name(), value_name = "BENCH")]
    on: On,

    /// Run only this subject, by name or path; may be repeated. Default: those
    /// of the suite.
    #[arg(long = "subject", value_name = "NAME|PATH")]
    subjects: Vec<String>,

    /// Use this disk. On the model a preset by name or path: once for every
    /// member, or once per member in order; default: those of the suite. On
    /// real machines a device, once per member: best by a name that stays the
    /// same, as those in /dev/disk/by-id.
    #[arg(long = "disk", value_name = "PRESET|DEVICE")]
    disks: Vec<String>,

    /// The parameter set of the disk models. `all` runs each set that the disks have:
    /// the first gives the figure, the others give the band around it.
    #[arg(long, value_name = "strict|joint|all", default_value = ALL_FITS)]
    fit: String,

    /// The number from which everything random is drawn, 0 to 2^64-1. The same seed
    /// gives the same rows, byte by byte.
    #[arg(
        long,
        value_name = "N",
        default_value_t = DEFAULT_SEED,
        value_parser = seed,
        allow_negative_numbers = true
    )]
    seed: u64,

    /// The number of the draw, for a suite that draws its subjects and jobs by chance,
    /// 0 to 2^64-1. Another number gives other subjects and jobs. Default: 1. Other
    /// suites take no such number.
    #[arg(long, value_name = "N", value_parser = draw, allow_negative_numbers = true)]
    draw: Option<u64>,

    /// Leave out a feature of the model; may be repeated.
    #[arg(long = "without", value_name = "FEATURE", value_parser = features())]
    without: Vec<String>,

    /// Model the subjects on this host, by name (`raidlab subjects --hosts`) or
    /// path, not on their own.
    #[arg(long, value_name = "NAME|PATH")]
    model_host: Option<String>,

    /// Let computing take the time that it takes on this processor, by name (`raidlab
    /// processors`) or path. Default: the suite's; most have none, and computing takes
    /// no time.
    #[arg(long, value_name = "NAME|PATH")]
    processor: Option<String>,

    /// A first look: only the first parameter set, and no job that ends by
    /// time runs longer than 6 s of virtual time. Its figures are noisier.
    #[arg(long)]
    quick: bool,

    /// Let the suite or job file use this option of fio's although it does more
    /// than shape the load: `exec_prerun` runs a command, `write_bw_log` writes
    /// files. With `filename` or `directory` the array takes the place of what
    /// the file names. `include` lets a job file read others. '${NAME}' has the
    /// variable's value from the environment put in, '${NAME}=VALUE' this one.
    /// May be repeated. Read the file first: fio runs as root on real machines.
    #[arg(long = "allow-fio", value_name = "OPTION")]
    allow_fio: Vec<String>,

    #[command(flatten)]
    host: HostWanted,

    #[command(flatten)]
    kernel: KernelWanted,
}

/// What is asked of real machines alone.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = REAL)]
struct HostWanted {
    /// A machine behind ssh, `root@store1`; may be repeated. All of them use
    /// disks of the same names. Default: this machine.
    #[arg(long = "machine", value_name = "DESTINATION")]
    machines: Vec<String>,

    /// Machines with their own disks, from a file with `[[machine]]` tables.
    #[arg(long, value_name = "FILE.toml", conflicts_with = "machines")]
    machine_file: Option<PathBuf>,

    /// A command to put before every command on machines behind ssh, such as `sudo -n`.
    #[arg(long, value_name = "WORDS")]
    elevate: Option<String>,

    /// Without --disk: loop devices of this size, on sparse files, for a trial.
    #[arg(long, value_name = "SIZE")]
    trial_size: Option<String>,

    /// The folder for the trial's files.
    #[arg(long, value_name = "FOLDER", default_value = TRIAL_FOLDER)]
    trial_folder: PathBuf,

    /// Use disks that hold file systems, arrays or partition tables which
    /// nobody uses now. They are lost.
    #[arg(long)]
    wipe_signatures: bool,

    /// Measure everything this many times, whatever the suite says.
    #[arg(long, value_name = "N")]
    repetitions: Option<NonZero<u32>>,
}

/// What is asked of the kernel bench alone.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = KERNEL)]
struct KernelWanted {
    /// The kernel, as `raidlab kernel status` calls it. Default: the newest; one
    /// with OpenZFS if a subject is a pool, one without it otherwise.
    #[arg(long, value_name = "NAME")]
    kernel: Option<String>,

    /// Use this much of each disk, its outermost part, or all of it (`whole`). A rebuild
    /// or a fill really moves all of these bytes, at one to two gigabytes in a second of
    /// real time: seconds for 4 GiB, about an hour for 4 TB.
    #[arg(long, value_name = "SIZE|whole", default_value = MEMBER_SIZE)]
    member_size: String,

    /// The guest's memory: what a file system's cache can take of.
    #[arg(long, value_name = "SIZE", default_value = GUEST_MEMORY)]
    memory: String,

    /// Virtual time of a system call in the guest, nanoseconds.
    #[arg(long, value_name = "NS", default_value_t = CALL_COST_NS)]
    call_cost: u32,

    /// Something happens to a disk: its place among the members, the virtual
    /// time, and `dies`, `hangs` or `returns`: `1:40s:dies`; or sectors go bad:
    /// `1:40s:unreadable=1g+64k` (until they are written), `unreadable-for-good`,
    /// `unwritable`. May be repeated.
    #[arg(long = "disk-fault", value_name = "DISK:TIME:WHAT")]
    faults: Vec<String>,
}

/// How it is done here, of `run` and of `resume`: it changes no row.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = None::<&'static str>)]
pub struct Manner {
    /// Experiments at the same time; the output does not depend on it.
    /// Default: one for each processor; on the kernel bench as far as the memory
    /// goes.
    #[arg(long, value_name = "N", value_parser = count, allow_negative_numbers = true)]
    threads: Option<NonZero<u16>>,

    /// Do not ask before data on the disks are lost.
    #[arg(long, help_heading = REAL)]
    yes: bool,

    /// Let a subject's file name the target that is written to: this export,
    /// nbd://HOST/NAME, and no other; may be repeated.
    #[arg(long = "allow-target", help_heading = REAL, value_name = "URI")]
    allowed_targets: Vec<String>,

    /// After so many seconds of real time without a sign of life the guest counts as
    /// stuck, and the experiment ends with an error.
    #[arg(
        long,
        help_heading = KERNEL,
        value_name = "S",
        default_value_t = 60,
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    patience: u64,

    /// What the disks hold stays in this machine's memory up to this size, for all
    /// experiments of the run together; what is more goes into a file. Default: three
    /// quarters of what is available, less what the guests need.
    #[arg(long, help_heading = KERNEL, value_name = "SIZE")]
    storage_memory: Option<String>,

    /// The folder for that file, which has no name in it. It should not be in memory
    /// itself.
    #[arg(long, help_heading = KERNEL, value_name = "FOLDER", default_value = TRIAL_FOLDER)]
    storage_folder: PathBuf,

    #[command(flatten)]
    pub(super) outputs: Outputs,
}

/// Where a run's results go, of `run` and of `resume`.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = None::<&'static str>)]
pub struct Outputs {
    /// The file that keeps the rows. `raidlab run` makes it if it is not there.
    #[arg(long, value_name = "FILE", default_value = STORE)]
    pub(super) store: PathBuf,

    /// The HTML report; an older one is replaced when the new one is whole.
    #[arg(long, value_name = "FILE", default_value = "raidlab-report.html")]
    pub(super) report: PathBuf,

    /// Write no HTML report.
    #[arg(long, conflicts_with = "report")]
    pub(super) no_report: bool,

    /// Print one JSON object per measurement on standard output, and nothing else
    /// there; progress and paths go to standard error.
    #[arg(long)]
    pub(super) json: bool,

    /// Write every command of every disk, with its virtual times, into this folder: a
    /// file of comma-separated values for each experiment. The model leaves out
    /// commands that it skips where nothing changes for hours; with `--without leaps`
    /// it skips none. Real machines write no such files.
    #[arg(long, value_name = "FOLDER")]
    disk_commands: Option<PathBuf>,
}

impl Wanted {
    /// What is asked for, in the form that a run takes.
    pub fn asked(self) -> Asked {
        let (host, kernel) = (self.host, self.kernel);
        Asked {
            suite: self.suite,
            on: self.on,
            subjects: self.subjects,
            disks: self.disks,
            fit: self.fit,
            seed: self.seed,
            draw: self.draw,
            without: self.without,
            model_host: self.model_host,
            processor: self.processor,
            quick: self.quick,
            allow_fio: self.allow_fio,
            host: HostAsked {
                machines: host.machines,
                machine_file: host.machine_file,
                elevate: host.elevate,
                trial_size: host.trial_size,
                trial_folder: host.trial_folder,
                wipe_signatures: host.wipe_signatures,
                repetitions: host.repetitions,
            },
            kernel: KernelAsked {
                kernel: kernel.kernel,
                member_size: kernel.member_size,
                memory: kernel.memory,
                call_cost: kernel.call_cost,
                faults: kernel.faults,
            },
        }
    }
}

impl Manner {
    /// The file that keeps the rows.
    pub fn store(&self) -> &Path {
        &self.outputs.store
    }

    /// How a run is done here, in the form that it takes.
    pub fn here(&self, dry_run: bool) -> Here {
        let own = self.clone();
        Here {
            threads: own.threads,
            yes: own.yes,
            allowed_targets: own.allowed_targets,
            patience: own.patience,
            storage_memory: own.storage_memory,
            storage_folder: own.storage_folder,
            store: own.outputs.store,
            shard: None,
            disk_commands: own.outputs.disk_commands,
            dry_run,
            plan_only: false,
        }
    }
}

/// The benches, each with what it is.
fn benches() -> impl TypedValueParser<Value = On> {
    let values = On::ALL.map(|(_, name, what)| PossibleValue::new(name).help(what));
    // One of these names is what the parser lets through.
    PossibleValuesParser::new(values).map(|given| {
        let mut all = On::ALL.into_iter();
        all.find(|(_, name, _)| *name == given)
            .map_or(On::Model, |(bench, ..)| bench)
    })
}

#[cfg(test)]
mod tests {
    use crate::cli::{Cli, Command};
    use clap::Parser;
    use raidlab_runs::Asked;

    #[test]
    fn the_plain_command_asks_for_what_a_plan_takes_for_plain() {
        let Ok(Command::Run(arguments)) =
            Cli::try_parse_from(["raidlab", "run", "quick"]).map(|cli| cli.command)
        else {
            panic!("a command line of a run");
        };
        assert_eq!(arguments.asked(), Asked::of("quick"));
    }
}
