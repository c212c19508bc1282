//! The kernel bench for a run: which kernel, which part of the disks, and what
//! the guest must know to run the same experiment.
//!
//! The guest gets what was asked for and the texts of the files, as a plan has them, and
//! makes the same experiments of them.

use crate::asked::{Asked, CALL_COST_NS, Here, KernelAsked};
use crate::failure::{Failure, Kind};
use crate::notes::remark;
use crate::prepare;
use crate::prepared::{self, Prepared, possible};
use crate::task::{Task, threads};
use crate::values::{member_size, size};
use raidlab_bench_kernel::{
    KernelBench, Obstacle, Room, Settings, Storage, WrongFault, agent, check_faults,
    faults_in_words, scheduled_fault,
};
use raidlab_bench_model::presets::ProcessorPreset;
use raidlab_initramfs::{Archive, Node};
use raidlab_lab::{Choices, Experiment, Files, HostChoice, QueueStyle, Region, Subject, Suite};
use raidlab_store::AccuracyNote;
use raidlab_uml::{Cache, CacheError, Changes, Kernel, Packages, image};
use raidlab_units::Bytes;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The path of the description in the guest.
const DESCRIPTION: &str = "/raidlab/experiment.json";

/// The size in bytes of which the description in the guest's memory takes a multiple, so that the
/// lengths of folder names and suite texts in it do not shift anything else there.
const DESCRIPTION_SLOT: usize = 1 << 20;

impl prepared::Obstacle for Obstacle {
    fn remedy(&self) -> Option<&'static str> {
        self.help()
    }

    fn is_curable(&self) -> bool {
        false
    }
}

/// The description of what the guest is to run.
#[derive(Debug, Serialize, Deserialize)]
struct Description {
    /// The arguments of the run when it began.
    asked: Asked,
    /// The texts of all files.
    files: BTreeMap<String, String>,
    /// The position, from 0, of the run's experiment that the guest carries out.
    index: usize,
    /// The name of the experiment, for progress and errors.
    label: String,
}

/// Finds the kernel, and decides what is run and how many guests at the same time.
///
/// # Errors
/// When no kernel is built, a file is wrong, or nothing is left to run.
pub fn prepare(task: &Task) -> Result<(KernelBench, Prepared, usize), Failure> {
    let (asked, files) = (&task.asked, &task.files);
    let own = &asked.kernel;
    let (mut suite, subjects) = prepare::chosen(task)?;
    let with_zfs = subjects.iter().any(raidlab_bench_kernel::wants_openzfs);
    let kernel = chosen(task, with_zfs)?;
    let settings = settings(task, &suite)?;
    prepare::choose_disks(&mut suite, &asked.disks)?;
    let mut fits = prepare::chosen_fits(files, &suite, &asked.fit)?;
    // Several parameter sets are for the model's bands; here one is enough.
    fits.truncate(1);
    let host = HostChoice {
        name: format!("linux-{}", kernel.release),
        queue: QueueStyle::Libaio,
        disks: suite.disks.clone(),
    };
    let all = experiments(asked, &suite, &subjects, fits, host);
    let mut remarks = prepare::remarks(asked, &mut suite);
    remarks.extend(faults(own, &all, &settings)?);
    let whole = |region: &Region| region.size.is_none();
    if let Some(member) = settings.member
        && suite.regions.iter().any(whole)
    {
        let statement = format!(
            "Members are the outermost {member} of their disks: the arm travels less than over \
             whole ones, so random access is faster. `--member-size` changes that."
        );
        remarks.push(remark("A part of the disks", statement));
    }
    if let Some(processor) = &settings.processor {
        check_charges(&kernel, kernel.made_with())?;
        remarks.push(one_core_of(processor));
    }
    if let Some(words) = kernel.warning() {
        task.front.say(&format!("warning: {words}"));
        remarks.push(remark("An older kernel", words));
    }
    let program = std::env::current_exe().map_err(|source| {
        let error = std::io::Error::other(format!("raidlab's own program is not found: {source}"));
        Failure::new(Kind::Run, error)
    })?;
    let beside = Packages::of(&Cache::of_user()?).root();
    let with_zfs = kernel.zfs.is_some();
    let make_image = Box::new(move || image(&program, with_zfs, &beside));
    let describe = describe(task, &all, suite.repetitions);
    let (threads, storage) = share(&task.here, settings.memory, all.len())?;
    let bench = KernelBench::new(kernel, make_image, settings, storage, describe);
    let prepared = possible(task, suite, all, remarks, |one| bench.obstacle(one))?;
    Ok((bench, prepared, threads))
}

/// The kernel of that name, or the one that suits; where there is none, the user is
/// offered a build.
fn chosen(task: &Task, with_zfs: bool) -> Result<Kernel, Failure> {
    let cache = Cache::of_user()?;
    let (name, dry_run) = (task.asked.kernel.kernel.as_deref(), task.here.dry_run);
    match cache.choose(name, with_zfs) {
        Err(CacheError::NotBuilt { name: None, known }) if known.is_empty() && !dry_run => {
            let error = CacheError::NotBuilt { name: None, known };
            let built = task.front.offer_kernel(&cache, with_zfs)?;
            built.ok_or_else(|| error.into())
        }
        chosen => Ok(chosen?),
    }
}

/// The disk faults that are planned, as a note for the reader of the results.
fn faults(
    own: &KernelAsked,
    all: &[Experiment],
    settings: &Settings,
) -> Result<Option<AccuracyNote>, Failure> {
    let spared = check_faults(all, settings).map_err(|error| {
        let help = "--disk-fault: members count from 0; `--member-size` says how much of each \
                    disk is used";
        Failure::new(Kind::Usage, error).help(help)
    })?;
    let words = faults_in_words(&own.faults, &spared);
    Ok((!own.faults.is_empty()).then(|| remark("Faults of disks", words)))
}

/// Refuses a kernel that does not charge virtual time for computing.
fn check_charges(kernel: &Kernel, made_with: Changes) -> Result<(), Failure> {
    if made_with != Changes::Current {
        let words = format!(
            "kernel {} may not know what computing costs (made by: {})",
            kernel.name,
            made_with.made_by()
        );
        let help = "`raidlab kernel build --again`, or leave the processor out";
        return Err(Failure::words(Kind::Usage, words).help(help));
    }
    if kernel.shared_memory {
        return Ok(());
    }
    let words = format!(
        "a processor needs Linux 6.11 or later, and kernel {} is {}",
        kernel.name, kernel.release
    );
    let help = "leave it out, or build a newer one: `raidlab kernel build --source 6.12`";
    Err(Failure::words(Kind::Usage, words).help(help))
}

/// The note on the share of a processor that the guest has.
fn one_core_of(processor: &ProcessorPreset) -> AccuracyNote {
    let statement = format!(
        "Computing takes the time that it takes on one core of {}, and the guest has no other: what \
         the processor's {} core(s) do at the same time, it does one after the other. Locks, OpenZFS and \
         the checksums of file systems cost nothing.",
        processor.name, processor.numbers.cores
    );
    remark("One core", statement)
}

/// The processor that the run or its suite names.
fn processor(
    asked: &Asked,
    suite: &Suite,
    files: &Files,
) -> Result<Option<ProcessorPreset>, Failure> {
    let is_asked = asked.processor.is_some() || suite.processor.is_some();
    if is_asked && asked.kernel.call_cost != CALL_COST_NS {
        let words = "the processor says what a system call costs, and so does `--call-cost`";
        let help = "leave one of them out, or say `call_ns` in a processor's file of your own";
        return Err(Failure::words(Kind::Usage, words).help(help));
    }
    prepare::processor(files, asked.processor.as_deref(), suite)
}

/// The settings of the guests.
fn settings(task: &Task, suite: &Suite) -> Result<Settings, Failure> {
    let own = &task.asked.kernel;
    Ok(Settings {
        processor: processor(&task.asked, suite, &task.files)?,
        memory: memory(&own.memory)?,
        member: match own.member_size.as_str() {
            "whole" => None,
            text => Some(member_size("--member-size", text)?),
        },
        call_cost_ns: own.call_cost,
        patience: Duration::from_secs(task.here.patience),
        faults: own
            .faults
            .iter()
            .map(|text| scheduled_fault(text))
            .collect::<Result<_, _>>()
            .map_err(|error| Failure::new(Kind::Usage, error).help(WrongFault::REMEDY))?,
        commands: task.here.disk_commands.clone(),
        files: Arc::clone(&task.files),
        ..Settings::default()
    })
}

/// Decides how many guests run at a time, and where the contents of their disks are kept.
fn share(here: &Here, memory: Bytes, experiments: usize) -> Result<(usize, Storage), Failure> {
    let wanted = threads(here.threads).min(experiments.max(1));
    let fitting = match raidlab_uml::shared_memory_left() {
        Some(left) if !here.dry_run => check_shared(left, memory)?,
        _ => usize::MAX,
    };
    let room = Room::of_this_machine(memory, wanted);
    let room = room.map_err(Failure::run)?;
    let guests = match here.threads {
        Some(_) => wanted,
        None => room.guests.min(fitting),
    };
    let budget = match &here.storage_memory {
        Some(text) => size("--storage-memory", text)?,
        None => room.storage,
    };
    if !here.storage_folder.is_dir() {
        let words = format!("{} is not a folder", here.storage_folder.display());
        let help = "name one with --storage-folder";
        return Err(Failure::words(Kind::Input, words).help(help));
    }
    Ok((guests, Storage::new(budget, &here.storage_folder)))
}

/// The number of guests that fit into shared memory, at least one.
fn check_shared(left: Bytes, memory: Bytes) -> Result<usize, Failure> {
    match Room::in_shared_memory(left, memory) {
        0 => {
            let words = format!("/dev/shm has {left} left, too little for a guest of {memory}");
            let help = "a container has more with `--shm-size=2g`, a guest less with `--memory`";
            Err(Failure::words(Kind::Run, words).help(help))
        }
        guests => Ok(guests),
    }
}

/// Parses the guest's memory: no kernel comes up with its programs in less than 64 MiB, and no
/// machine lends more than a tebibyte.
fn memory(text: &str) -> Result<Bytes, Failure> {
    let memory = size("--memory", text)?;
    if (64 << 20..=1 << 40).contains(&memory.0) {
        return Ok(memory);
    }
    let words = format!("no guest has {memory} of memory");
    Err(Failure::words(Kind::Usage, words).help("`--memory` is from 64m to 1t"))
}

fn experiments(
    asked: &Asked,
    suite: &Suite,
    subjects: &[Subject],
    fits: Vec<String>,
    host: HostChoice,
) -> Vec<Experiment> {
    let choices = Choices {
        fits,
        seed: asked.seed,
        hosts: vec![host],
        blank_disks: true,
        ..Choices::default()
    };
    suite.experiments(subjects, &choices)
}

/// Returns the function that makes the archive of files for the guest of an experiment.
fn describe(
    task: &Task,
    all: &[Experiment],
    repetitions: u32,
) -> Box<raidlab_bench_kernel::Describe> {
    // A copy of what is asked for now: files that are read later do not concern the guest.
    let (asked, files, all) = (task.asked.clone(), task.files.texts(), all.to_vec());
    Box::new(move |experiment: &Experiment| {
        let description = Description {
            asked: asked.clone(),
            files: files.clone(),
            index: all
                .iter()
                .position(|one| one == experiment)
                .unwrap_or(usize::MAX),
            label: inside(experiment).label(repetitions),
        };
        let contents = description.bytes();
        let mut archive = Archive::default();
        let mode = 0o644;
        archive.insert(DESCRIPTION, Node::File { mode, contents });
        archive
    })
}

/// An experiment as the guest sees it: with another name for the machine and without disk models;
/// each disk is a device of its own, in the order of members.
fn inside(experiment: &Experiment) -> Experiment {
    Experiment {
        host: agent::MACHINE.to_owned(),
        fit: String::new(),
        disks: agent::devices(experiment.disks.len()),
        ..experiment.clone()
    }
}

/// Runs the guest's experiment and powers the guest off, if this process is the first program of a
/// guest of the kernel bench. Returns whether it is.
#[must_use]
pub fn serve_guest() -> bool {
    if !agent::is_first_program() || !Path::new(DESCRIPTION).exists() {
        return false;
    }
    let served = agent::begin().and_then(|()| {
        let experiment = Description::read().and_then(Description::experiment);
        agent::serve(experiment.map_err(|failure| vec![failure.to_string()]))
    });
    if let Err(error) = served {
        // The console carries it to the bench outside.
        write!(io::stderr().lock(), "{}", Failure::new(Kind::Run, error)).ok();
    }
    agent::end();
    true
}

impl Description {
    /// The description as bytes, padded to whole [`DESCRIPTION_SLOT`]s.
    fn bytes(&self) -> Vec<u8> {
        // Plain words and numbers always have a form as JSON.
        let mut bytes = serde_json::to_vec(self).unwrap_or_default();
        // Blanks behind a JSON value mean nothing.
        bytes.resize(bytes.len().next_multiple_of(DESCRIPTION_SLOT), b' ');
        bytes
    }

    /// Reads what this guest is to run.
    ///
    /// # Errors
    /// When there is no such file, or it is wrong.
    fn read() -> Result<Self, Failure> {
        let text = std::fs::read_to_string(DESCRIPTION).map_err(Failure::input)?;
        serde_json::from_str(&text).map_err(Failure::input)
    }

    /// The experiment, on this guest's disks.
    ///
    /// # Errors
    /// When it differs from the one outside.
    fn experiment(self) -> Result<Experiment, Failure> {
        let permission = prepare::permission(&self.asked.allow_fio)?;
        let files = Files::brought(self.files).allowing(permission);
        let mut suite = prepare::load(&self.asked, &files)?;
        prepare::choose_disks(&mut suite, &self.asked.disks)?;
        let host = HostChoice {
            name: agent::MACHINE.to_owned(),
            queue: QueueStyle::Libaio,
            disks: agent::devices(suite.disks.len()),
        };
        let fits = vec![String::new()];
        let subjects = prepare::chosen_subjects(&suite, &files, &self.asked.subjects)?;
        let experiments = experiments(&self.asked, &suite, &subjects, fits, host);
        let found = experiments.into_iter().nth(self.index);
        let found = found.filter(|one| one.label(suite.repetitions) == self.label);
        found.map(|one| inside(&one)).ok_or_else(|| {
            let words = "the guest's experiment is not the one outside";
            Failure::words(Kind::Input, words)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZero;
    use std::path::PathBuf;

    fn kernel(shared_memory: bool) -> Kernel {
        Kernel {
            name: "6.12".to_owned(),
            release: "6.12.117".to_owned(),
            source: "a test".to_owned(),
            zfs: None,
            shared_memory,
            seccomp: false,
            changes: None,
            program: PathBuf::new(),
        }
    }

    #[test]
    fn a_kernel_that_may_not_charge_is_refused_with_the_remedy() {
        for made_with in [Changes::Unknown, Changes::Older] {
            let failure = check_charges(&kernel(true), made_with).expect_err("it may not");
            let words = failure.to_string();
            assert!(words.contains(made_with.made_by()), "{words}");
            assert!(words.contains("raidlab kernel build --again"), "{words}");
        }
        check_charges(&kernel(true), Changes::Current).expect("it charges");
        let failure = check_charges(&kernel(false), Changes::Current).expect_err("too old");
        assert!(failure.to_string().contains("6.11 or later"), "{failure}");
    }

    #[test]
    fn the_run_or_the_suite_names_the_processor_and_then_nothing_else_costs_a_call() {
        let mut suite = Suite::load("quick").expect("built in");
        let mut asked = Asked::of("quick");
        let files = Files::default();
        assert_eq!(processor(&asked, &suite, &files).expect("none"), None);
        suite.processor = Some("nas".to_owned());
        let nas = processor(&asked, &suite, &files).expect("the suite's");
        assert_eq!(nas.expect("one").name, "nas");
        asked.processor = Some("server-2021".to_owned());
        let server = processor(&asked, &suite, &files).expect("the run's");
        let remark = one_core_of(&server.expect("one"));
        let words = "one core of server-2021";
        assert!(remark.statement.contains(words), "{}", remark.statement);
        asked.kernel.call_cost = 500;
        let failure = processor(&asked, &suite, &files).expect_err("two costs");
        assert!(failure.to_string().contains("`--call-cost`"), "{failure}");
    }

    #[test]
    fn the_guest_makes_the_same_experiments_of_what_it_gets() {
        let mut twice = Asked::of("quick");
        twice.quick = true;
        twice.host.repetitions = NonZero::new(2);
        let mut more = Asked::of("quick");
        more.disks = vec!["sp1614n".to_owned(); 6];
        for asked in &[twice, more] {
            let files = Files::default();
            let mut suite = prepare::load(asked, &files).expect("built in");
            prepare::choose_disks(&mut suite, &asked.disks).expect("enough disks");
            let host = HostChoice {
                name: "linux-6.12".to_owned(),
                queue: QueueStyle::Libaio,
                disks: suite.disks.clone(),
            };
            let fits = vec!["strict".to_owned()];
            let all = experiments(asked, &suite, &suite.subjects, fits, host);
            assert!(all.len() > 5, "{}", all.len());
            for (index, outside) in all.iter().enumerate() {
                let description = Description {
                    asked: asked.clone(),
                    files: files.texts(),
                    index,
                    label: inside(outside).label(suite.repetitions),
                };
                let bytes = description.bytes();
                assert_eq!(bytes.len(), DESCRIPTION_SLOT);
                let read: Description = serde_json::from_slice(&bytes).expect("the same");
                assert_eq!(read.experiment().expect("it is there"), inside(outside));
                let mut other = description;
                other.index += 1;
                assert!(other.experiment().is_err(), "another one is refused");
            }
        }
    }
}
