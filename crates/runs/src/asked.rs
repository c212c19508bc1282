//! What a run is asked for, and how it is done here.
//!
//! Only the first decides the rows: it goes into the run's plan. The other is said anew
//! where a run goes on.

use crate::failure::{Failure, Kind};
use raidlab_store::Shard;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::num::NonZero;
use std::path::PathBuf;

/// The seed where none is given. Which two of three streams share a disk of md
/// is decided by a race in the first milliseconds of job 19 of the 2015 suite;
/// with this seed, the smallest that does, it goes as it went in 2015.
pub const DEFAULT_SEED: u64 = 2;
/// The parameter sets where none is named: each that the disks have.
pub const ALL_FITS: &str = "all";
/// The folder for trial disks where none is named.
pub const TRIAL_FOLDER: &str = "/var/tmp";
/// The part of each disk that the kernel bench uses where nothing is said.
pub const MEMBER_SIZE: &str = "4g";
/// The memory of a guest of the kernel bench where nothing is said.
pub const GUEST_MEMORY: &str = "512m";
/// Virtual time of a system call in a guest where nothing is said, nanoseconds.
pub const CALL_COST_NS: u32 = 1000;

/// What is asked for: with the files that it names, all that decides a run's rows. A
/// field has the name of its option.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// A built-in suite, a suite file (.toml), a plan (.json), or a fio job file.
    pub suite: String,
    /// The bench that it is to run on.
    pub on: On,
    /// Subjects by name or path; none: those of the suite.
    pub subjects: Vec<String>,
    /// Presets by name or path, or devices of real machines; none: those of the suite.
    pub disks: Vec<String>,
    /// A parameter set of the disk models, or [`ALL_FITS`].
    pub fit: String,
    /// The number from which everything random is drawn.
    pub seed: u64,
    /// The number of the draw, of a suite that draws by chance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draw: Option<u64>,
    /// Features of the model that are left out.
    pub without: Vec<String>,
    /// The host that all subjects are modelled on, by name or path.
    pub model_host: Option<String>,
    /// The processor of the modelled host, by name or path, instead of the suite's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor: Option<String>,
    /// Whether jobs that end by time are cut short, and one parameter set is enough.
    pub quick: bool,
    /// What files may ask of fio beside its load.
    #[serde(default)]
    pub allow_fio: Vec<String>,
    /// What is asked of real machines.
    pub host: HostAsked,
    /// What is asked of the kernel bench.
    pub kernel: KernelAsked,
}

/// What is asked of real machines alone, and how often everything is measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostAsked {
    /// Machines behind ssh; none: this one.
    pub machines: Vec<String>,
    /// A file of machines with their own disks.
    pub machine_file: Option<PathBuf>,
    /// Words before every command on machines behind ssh.
    pub elevate: Option<String>,
    /// The size of trial disks.
    pub trial_size: Option<String>,
    /// The folder for the trial's files.
    pub trial_folder: PathBuf,
    /// Whether what nobody uses now may be lost from disks.
    pub wipe_signatures: bool,
    /// How often everything is measured, on any bench; `None`: as the suite says.
    pub repetitions: Option<NonZero<u32>>,
}

/// What is asked of the kernel bench alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelAsked {
    /// The kernel's name; `None`: the newest that suits.
    pub kernel: Option<String>,
    /// The outermost part of each disk that is used, or `whole`.
    pub member_size: String,
    /// How much memory each guest has.
    pub memory: String,
    /// Virtual time of a system call in the guest, nanoseconds.
    pub call_cost: u32,
    /// What happens to disks: `1:40s:dies`.
    pub faults: Vec<String>,
}

/// The benches, one of which does the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
    /// All of them, each with its name and what it is in a few words.
    pub const ALL: [(Self, &str, &str); 3] = [
        (Self::Model, "model", "Modelled disks in virtual time"),
        (
            Self::Kernel,
            "kernel",
            "The real Linux kernel over modelled disks, in virtual time",
        ),
        (
            Self::Host,
            "host",
            "Real machines with real disks, this one or others behind ssh",
        ),
    ];

    /// The name by which rows and options call the bench.
    #[must_use]
    pub fn name(self) -> &'static str {
        let found = Self::ALL.iter().find(|(bench, ..)| *bench == self);
        found.map_or("", |(_, name, _)| name)
    }
}

/// How a run is done here, of `run` and of `resume`: it changes no row.
#[derive(Debug, Clone)]
pub struct Here {
    /// Experiments at the same time; `None`: as many as this machine can bear.
    pub threads: Option<NonZero<u16>>,
    /// Whether the loss of data on the disks is agreed to.
    pub yes: bool,
    /// The targets that subjects' files may name.
    pub allowed_targets: Vec<String>,
    /// After so many seconds of real time without a sign of life a guest counts as stuck.
    pub patience: u64,
    /// How much of what disks hold stays in memory; `None`: what is available.
    pub storage_memory: Option<String>,
    /// The folder for what of the disks' content does not stay in memory.
    pub storage_folder: PathBuf,
    /// The file that keeps the rows.
    pub store: PathBuf,
    /// The part of the run that is done here; `None`: all of it.
    pub shard: Option<Shard>,
    /// The folder for every command of every disk.
    pub disk_commands: Option<PathBuf>,
    /// Whether nothing is to be run, and a plan is all that is wanted.
    pub dry_run: bool,
    /// Whether a plan is written, perhaps for other machines: this one need not have the
    /// programs that a run takes.
    pub plan_only: bool,
}

impl Here {
    /// What is usual, with this store.
    #[must_use]
    pub fn of(store: PathBuf) -> Self {
        Self {
            threads: None,
            yes: false,
            allowed_targets: Vec::new(),
            patience: 60,
            storage_memory: None,
            storage_folder: PathBuf::from(TRIAL_FOLDER),
            store,
            shard: None,
            disk_commands: None,
            dry_run: false,
            plan_only: false,
        }
    }
}

/// The benches that an option is for, where it is not for all of them.
const FOR: [(&str, &[On]); 16] = [
    ("--without", &[On::Model]),
    ("--model-host", &[On::Model]),
    ("--processor", &[On::Model, On::Kernel]),
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
    /// What `raidlab run SUITE` asks for, without another word.
    #[must_use]
    pub fn of(suite: &str) -> Self {
        Self {
            suite: suite.to_owned(),
            on: On::Model,
            subjects: Vec::new(),
            disks: Vec::new(),
            fit: ALL_FITS.to_owned(),
            seed: DEFAULT_SEED,
            draw: None,
            without: Vec::new(),
            model_host: None,
            processor: None,
            quick: false,
            allow_fio: Vec::new(),
            host: HostAsked {
                machines: Vec::new(),
                machine_file: None,
                elevate: None,
                trial_size: None,
                trial_folder: PathBuf::from(TRIAL_FOLDER),
                wipe_signatures: false,
                repetitions: None,
            },
            kernel: KernelAsked {
                kernel: None,
                member_size: MEMBER_SIZE.to_owned(),
                memory: GUEST_MEMORY.to_owned(),
                call_cost: CALL_COST_NS,
                faults: Vec::new(),
            },
        }
    }

    /// The options that differ from the plain command on the same suite.
    pub(crate) fn options(&self) -> Vec<String> {
        let mut names = Vec::new();
        let plain = serde_json::to_value(Self::of(&self.suite));
        if let (Ok(plain), Ok(given)) = (plain, serde_json::to_value(self)) {
            differing(&plain, &given, &mut names);
        }
        names
    }

    /// Refuses what would do nothing on the bench that is asked for.
    ///
    /// # Errors
    /// With the first such option.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let given = self.options();
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
