//! The kernel bench for a run: which kernel, which part of the disks, and what
//! the guest must know to run the same experiment.
//!
//! The guest gets the command line and the files that it names, and works out
//! the same list of experiments; a fingerprint tells whether it did.

mod fault;
mod files;

use super::host::TRIAL_FOLDER;
use super::prepare::{self, Prepared};
use super::{Arguments, threads};
use crate::failure::{Failure, Kind};
use crate::output;
use raidlab_kernel::{KernelBench, Obstacle, Room, Settings, Storage, agent};
use raidlab_lab::{Choices, Experiment, HostChoice, QueueStyle, Region, Subject, Suite};
use raidlab_uml::{Cache, image};
use raidlab_units::{Bytes, parse_bytes};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where the guest finds what it is to run.
const DESCRIPTION: &str = "/raidlab/experiment.json";

/// Arguments that only the kernel bench has.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "On the kernel bench (--on kernel)")]
pub struct KernelArguments {
    /// The kernel, as `raidlab kernel status` calls it. Default: the newest; one
    /// with OpenZFS if a subject is a pool, one without it otherwise.
    #[arg(long, value_name = "NAME")]
    kernel: Option<String>,

    /// Use this much of each disk, its outermost part, or `whole`. What is
    /// copied or filled as a whole really moves; 4 GiB take seconds.
    #[arg(long, value_name = "SIZE|whole", default_value = "4g")]
    member_size: String,

    /// The guest's memory: what a file system's cache can take of.
    #[arg(long, value_name = "SIZE", default_value = "512m")]
    memory: String,

    /// Virtual time of a system call in the guest, nanoseconds.
    #[arg(long, value_name = "NS", default_value_t = 1000)]
    call_cost: u32,

    /// Seconds of real time without a sign of life after which the guest
    /// counts as spinning.
    #[arg(long, value_name = "S", default_value_t = 60)]
    patience: u64,

    /// Something happens to a disk: its place among the members, the virtual
    /// time, and `dies`, `hangs` or `returns`: `1:40s:dies`; or sectors go bad:
    /// `1:40s:unreadable=1g+64k` (until they are written), `unreadable-for-good`,
    /// `unwritable`. May be repeated.
    #[arg(long = "disk-fault", value_name = "DISK:TIME:WHAT")]
    faults: Vec<String>,

    /// What the disks hold stays in this machine's memory up to this size, for all
    /// experiments of the run together; what is more goes into a file. Default: three
    /// quarters of what is available, less what the guests need.
    #[arg(long, value_name = "SIZE")]
    storage_memory: Option<String>,

    /// The folder for that file, which has no name in it. It should not be in memory
    /// itself.
    #[arg(long, value_name = "FOLDER", default_value = TRIAL_FOLDER)]
    storage_folder: PathBuf,
}

/// The bench with all that is to be done on it.
pub struct KernelRun {
    /// The bench.
    pub bench: KernelBench,
    /// The experiments.
    pub prepared: Prepared,
    /// How many of them at the same time.
    pub threads: usize,
}

/// What the guest is to run.
#[derive(Debug, Serialize, Deserialize)]
pub struct Description {
    /// The command line of the run, without the program's name.
    arguments: Vec<String>,
    /// The folder that its relative paths begin at.
    folder: PathBuf,
    /// Which of its experiments.
    index: usize,
    /// What the guest's experiment must be like.
    fingerprint: String,
}

/// Looks for the kernel and decides what is run; `typed`: the run's command
/// line.
///
/// # Errors
/// When no kernel is built, a file is wrong, or nothing is left to run.
pub fn prepare(arguments: &Arguments, typed: &[String]) -> Result<KernelRun, Failure> {
    let own = &arguments.kernel;
    let mut suite = load(arguments)?;
    let subjects = prepare::chosen_subjects(&suite, &arguments.subjects)?;
    let with_zfs = subjects.iter().any(raidlab_kernel::wants_openzfs);
    let kernel = Cache::of_user()?.choose(own.kernel.as_deref(), with_zfs)?;
    let settings = Settings {
        memory: size("--memory", &own.memory)?,
        member: match own.member_size.as_str() {
            "whole" => None,
            text => Some(size("--member-size", text)?),
        },
        call_cost_ns: own.call_cost,
        patience: Duration::from_secs(own.patience),
        faults: own
            .faults
            .iter()
            .map(|text| fault::fault(text))
            .collect::<Result<_, _>>()?,
        commands: arguments.disk_commands.clone(),
        ..Settings::default()
    };
    prepare::choose_disks(&mut suite, &arguments.disks)?;
    let mut fits = prepare::chosen_fits(&suite.disks, &arguments.fit)?;
    // A band of parameter sets is the model's; here one is enough.
    fits.truncate(1);
    let host = HostChoice {
        name: format!("linux-{}", kernel.release),
        queue: QueueStyle::Libaio,
        disks: suite.disks.clone(),
    };
    let all = experiments(arguments, &suite, &subjects, fits, host);
    let mut remarks = prepare::remarks(arguments, &suite);
    let whole = |region: &Region| region.size.is_none();
    if let Some(member) = settings.member
        && suite.regions.iter().any(whole)
    {
        let statement = format!(
            "Members are the outermost {member} of their disks: the arm travels less than over \
             whole ones, so random access is faster. `--member-size` changes that."
        );
        remarks.push(prepare::remark("A part of the disks", statement));
    }
    if let Some(words) = kernel.warning() {
        output::say(&format!("warning: {words}"));
        remarks.push(prepare::remark("An older kernel", words));
    }
    if let Some(words) = prepare::foreign_figures(&suite) {
        suite.published = None;
        remarks.push(prepare::remark("Other disks", words));
    }
    let program = std::env::current_exe().map_err(|source| {
        let error = std::io::Error::other(format!("raidlab's own program is not found: {source}"));
        Failure::new(Kind::Run, error)
    })?;
    let archive =
        image(&program, kernel.zfs.is_some()).map_err(|error| Failure::new(Kind::Run, error))?;
    let describe = describe(arguments, typed, &all)?;
    let (threads, storage) = share(arguments, settings.memory, all.len())?;
    let bench = KernelBench::new(kernel, archive, settings, storage, describe);
    let (kept, left_out) = possible(&bench, all, arguments, &suite.name)?;
    for line in left_out {
        remarks.push(prepare::remark("Left out", line));
    }
    Ok(KernelRun {
        bench,
        prepared: Prepared {
            suite,
            experiments: kept,
            remarks,
        },
        threads,
    })
}

/// How many guests run at a time, and where what their disks hold is kept.
fn share(
    arguments: &Arguments,
    memory: Bytes,
    experiments: usize,
) -> Result<(usize, Storage), Failure> {
    let own = &arguments.kernel;
    let wanted = threads(arguments.threads).min(experiments.max(1));
    let room = Room::of_this_machine(memory, wanted);
    let room = room.map_err(|error| Failure::new(Kind::Run, error))?;
    let guests = match arguments.threads {
        Some(_) => wanted,
        None => room.guests,
    };
    let budget = match &own.storage_memory {
        Some(text) => size("--storage-memory", text)?,
        None => room.storage,
    };
    if !own.storage_folder.is_dir() {
        let words = format!("{} is not a folder", own.storage_folder.display());
        let help = "name one with --storage-folder";
        return Err(Failure::words(Kind::Input, words).help(help));
    }
    Ok((guests, Storage::new(budget, &own.storage_folder)))
}

/// Those of `all` that `bench` can run, and a line for every subject that it
/// cannot. A subject that was asked for by name is an error instead, and so is
/// a suite of which nothing is left.
fn possible(
    bench: &KernelBench,
    all: Vec<Experiment>,
    arguments: &Arguments,
    suite: &str,
) -> Result<(Vec<Experiment>, Vec<String>), Failure> {
    let mut kept = Vec::new();
    let mut left_out: Vec<String> = Vec::new();
    for experiment in all {
        match bench.obstacle(&experiment) {
            Ok(()) => kept.push(experiment),
            Err(obstacle) if arguments.subjects.is_empty() => {
                let line = format!("{}: {obstacle}", experiment.subject.name);
                if !left_out.contains(&line) {
                    left_out.push(line);
                }
            }
            Err(obstacle) => return Err(refused(&experiment, obstacle)),
        }
    }
    if kept.is_empty() {
        let words = format!("nothing of suite `{suite}` can run on this kernel");
        return Err(Failure::words(Kind::Run, words).help(left_out.join("\n      ")));
    }
    Ok((kept, left_out))
}

fn refused(experiment: &Experiment, obstacle: Obstacle) -> Failure {
    #[derive(Debug, thiserror::Error)]
    #[error("subject `{subject}` cannot run")]
    struct Refused {
        subject: String,
        #[source]
        source: Obstacle,
    }
    let help = obstacle.help().unwrap_or("name another with --subject");
    let subject = experiment.subject.name.clone();
    let source = obstacle;
    Failure::new(Kind::Run, Refused { subject, source }).help(help)
}

fn size(option: &str, text: &str) -> Result<Bytes, Failure> {
    parse_bytes(text).map_err(|error| {
        Failure::new(Kind::Usage, error).help(format!("{option} takes `512m` or `4g`"))
    })
}

/// The suite as it is asked for.
fn load(arguments: &Arguments) -> Result<Suite, Failure> {
    let mut suite = prepare::load(arguments)?;
    if let Some(repetitions) = arguments.host.repetitions() {
        suite.repetitions = repetitions;
    }
    if arguments.quick {
        prepare::shorten(&mut suite);
        prepare::shorten_text(&mut suite);
    }
    Ok(suite)
}

fn experiments(
    arguments: &Arguments,
    suite: &Suite,
    subjects: &[Subject],
    fits: Vec<String>,
    host: HostChoice,
) -> Vec<Experiment> {
    let choices = Choices {
        fits,
        seed: arguments.seed,
        hosts: vec![host],
        ..Choices::default()
    };
    suite.experiments(subjects, &choices)
}

/// What the guest gets for each experiment.
fn describe(
    arguments: &Arguments,
    typed: &[String],
    all: &[Experiment],
) -> Result<Box<raidlab_kernel::Describe>, Failure> {
    let folder = std::env::current_dir().map_err(|error| Failure::new(Kind::Run, error))?;
    let files = files::named(&arguments.suite, &arguments.subjects, &folder);
    let (typed, all) = (typed.to_vec(), all.to_vec());
    Ok(Box::new(move |experiment: &Experiment| {
        let description = Description {
            arguments: typed.clone(),
            folder: folder.clone(),
            index: all
                .iter()
                .position(|one| one == experiment)
                .unwrap_or(usize::MAX),
            fingerprint: fingerprint(experiment),
        };
        files::archive(&files, &folder, &description)
    }))
}

/// What must be the same outside and in the guest: FNV-1a, 64 bits.
fn fingerprint(experiment: &Experiment) -> String {
    let text = format!(
        "{:?} {:?} {:?} {:?}",
        experiment.subject.build, experiment.filesystem, experiment.repetition, experiment.steps
    );
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{hash:016x}")
}

/// Whether this process is the first program of a guest of the kernel bench.
pub fn is_agent() -> bool {
    agent::is_first_program() && Path::new(DESCRIPTION).exists()
}

impl Description {
    /// What this guest is to run.
    ///
    /// # Errors
    /// When there is no such file, or it is wrong.
    pub fn read() -> Result<Self, Failure> {
        let text = std::fs::read_to_string(DESCRIPTION)
            .map_err(|error| Failure::new(Kind::Input, error))?;
        serde_json::from_str(&text).map_err(|error| Failure::new(Kind::Input, error))
    }

    /// The folder that relative paths begin at.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The command line, with the program's name.
    pub fn command_line(&self) -> impl Iterator<Item = &str> {
        std::iter::once("raidlab").chain(self.arguments.iter().map(String::as_str))
    }

    /// The experiment, on this guest's disks.
    ///
    /// # Errors
    /// When it is not the one outside.
    pub fn experiment(&self, arguments: &Arguments) -> Result<Experiment, Failure> {
        let suite = load(arguments)?;
        let host = HostChoice {
            name: agent::MACHINE.to_owned(),
            queue: QueueStyle::Libaio,
            disks: agent::devices(suite.disks.len()),
        };
        let fits = vec![String::new()];
        let subjects = prepare::chosen_subjects(&suite, &arguments.subjects)?;
        let experiments = experiments(arguments, &suite, &subjects, fits, host);
        let found = experiments.into_iter().nth(self.index);
        let mut experiment = found
            .filter(|one| fingerprint(one) == self.fingerprint)
            .ok_or_else(|| {
                let words = "the guest's experiment is not the one outside";
                Failure::words(Kind::Input, words)
            })?;
        // Outside, each member has a disk of its own, in the order of members.
        experiment.disks = agent::devices(experiment.disks.len());
        Ok(experiment)
    }
}
