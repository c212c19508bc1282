//! The bench: one boot for each experiment.
//!
//! Experiments know nothing of each other: each has a kernel, disks and a clock
//! of its own, on a processor of its own, so that they can run at the same time
//! and in any order with the same results.

use crate::devices::Disks;
use crate::error::DisksError;
use crate::messages::{Ended, Message, MessageError};
use crate::obstacle::{self, Obstacle};
use crate::processors::{self, PROCESSOR, Processors};
use crate::settings::{ClockCost, Settings, charges};
use crate::shown;
use crate::told::Told;
use raidlab_bench_model::{Unfitted, presets};
use raidlab_initramfs::{Archive, InitramfsError};
use raidlab_lab::{Bench, BenchError, Experiment, Finish, Observer};
use raidlab_random::Stream;
use raidlab_store::fact::CPU_PRESET;
use raidlab_store::{Observation, Records};
use raidlab_uml::{Boot, BootError, Kernel, Machine, Place};
use raidlab_uml_calendar::Storage;
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

/// The time between two looks at the guest's frames.
const LOOK: Duration = Duration::from_millis(10);
/// The time that a guest that has ended its experiment may take to switch itself off, and a
/// calendar to notice that its guest is gone.
const LAST: Duration = Duration::from_secs(10);
/// The time that a calendar may take to say why its guest is gone: one that has never had a guest
/// waits for it.
const WHY: Duration = Duration::from_secs(1);

/// A function that makes the files by which the agent in the guest knows the experiment that it
/// is to run.
pub type Describe = dyn Fn(&Experiment) -> Archive + Send + Sync;

/// Puts the guest's first file system together. Its first program runs the experiment that
/// the files of [`Describe`] say.
pub type MakeImage = dyn Fn() -> Result<Archive, InitramfsError> + Send + Sync;

/// The bench of the real Linux over modelled disks.
pub struct KernelBench {
    kernel: Kernel,
    make_image: Box<MakeImage>,
    image: OnceLock<Archive>,
    settings: Settings,
    storage: Storage,
    describe: Box<Describe>,
    processors: Processors,
}

impl KernelBench {
    /// Makes a bench with a built kernel. The contents of the disks of all experiments are
    /// kept in `storage`.
    #[must_use]
    pub fn new(
        kernel: Kernel,
        make_image: Box<MakeImage>,
        settings: Settings,
        storage: Storage,
        describe: Box<Describe>,
    ) -> Self {
        Self {
            kernel,
            make_image,
            image: OnceLock::new(),
            settings,
            storage,
            describe,
            processors: Processors::of_this_process(),
        }
    }

    /// The guest's first file system, put together when it is first asked for: a shard
    /// without experiments needs none.
    ///
    /// # Errors
    /// When this machine lacks a program that every guest needs, or a file cannot be read.
    pub fn image(&self) -> Result<&Archive, InitramfsError> {
        match self.image.get() {
            Some(image) => Ok(image),
            None => {
                let image = (self.make_image)()?;
                Ok(self.image.get_or_init(|| image))
            }
        }
    }

    /// Finds the reason why an experiment cannot run, if there is one.
    ///
    /// # Errors
    /// With the first obstacle.
    pub fn obstacle(&self, experiment: &Experiment) -> Result<(), Obstacle> {
        // The jobs' regions must lie within the used part of the disks.
        match shown::sizes(experiment, &self.settings) {
            Some(sizes) => obstacle::check(experiment, &self.kernel, &sizes),
            None => Ok(()),
        }
    }

    fn boot(
        &self,
        experiment: &Experiment,
        observer: &mut dyn Observer,
    ) -> Result<Finish, KernelError> {
        let processor = self.processors.take();
        let place = Place::new(self.image()?, &(self.describe)(experiment))?;
        let disks = Disks::begin(
            &place,
            experiment,
            &self.kernel,
            &self.settings,
            &self.storage,
            processor.number(),
        )?;
        let flash = disks.word().is_some();
        let clock = self.settings.clock(flash, self.kernel.shared_memory);
        let machine = Machine {
            memory_bytes: self.settings.memory.0,
            seed: seed(experiment),
            clock_cost_ns: clock.reading_ns,
            call_cost_ns: self.settings.call_ns(),
            charges: (self.settings.processor.as_ref()).map(|one| charges(&one.numbers)),
            clock_call_cost_ns: clock.call_ns,
            disks: disks.count(),
            queue_depth: disks.queue_depth(),
            processor: processor.number(),
            words: disks.word().map(str::to_owned).into_iter().collect(),
        };
        let boot = Boot::start(&self.kernel, &machine, place)?;
        observer.record(self.facts(experiment, clock));
        let files = &self.settings.files;
        observer.record(Records {
            observations: Told::of_disks(experiment, files).map_err(DisksError::from)?,
            ..Records::default()
        });
        let unfitted = Unfitted::of(experiment, files).map_err(DisksError::from)?;
        let mut run = Run {
            boot,
            disks,
            told: Told::new(experiment, unfitted, self.settings.processor.is_some()),
            ended: None,
        };
        let finish = run.follow(observer);
        // Whatever the outcome, nothing of it runs on.
        run.boot.stop();
        let report = run.disks.end(LAST);
        let finish = finish?;
        match report {
            Ok(report) => observer.record(run.told.report(&report, &self.settings.faults)),
            // A guest that is stopped leaves its disks as they are.
            Err(_) if matches!(finish, Finish::Cancelled) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(finish)
    }

    /// The facts about the guest and its parts.
    fn facts(&self, experiment: &Experiment, clock: ClockCost) -> Records {
        let scope = experiment.scope();
        let fact = |name: &str, value: String, unit: &str| {
            Observation::new(&scope, name, value, unit, "raidlab")
        };
        let settings = &self.settings;
        let limited = settings.member.is_some();
        let made_by = self.kernel.made_with().made_by();
        let mut observations = vec![
            fact("guest.kernel", self.kernel.release.clone(), ""),
            fact("guest.kernel_source", self.kernel.source.clone(), ""),
            fact("guest.kernel_made_by", made_by.to_owned(), ""),
            fact("guest.memory_bytes", settings.memory.0.to_string(), "bytes"),
            fact("guest.clock_cost_ns", clock.reading_ns.to_string(), "ns"),
            fact("guest.call_cost_ns", settings.call_ns().to_string(), "ns"),
        ];
        let processor = settings.processor.as_ref();
        observations.extend(processor.map(|one| fact(CPU_PRESET, one.name.clone(), "")));
        let clock_call = clock.call_ns;
        let clock_call =
            clock_call.map(|cost| fact("guest.clock_call_cost_ns", cost.to_string(), "ns"));
        observations.extend(clock_call);
        observations.extend(processors::kind().map(|kind| fact(PROCESSOR, kind, "")));
        if let Some(changes) = &self.kernel.changes {
            observations.push(fact("guest.kernel_changes", changes.clone(), ""));
        }
        if let Some(zfs) = &self.kernel.zfs {
            observations.push(fact("guest.openzfs", zfs.clone(), ""));
        }
        // Disks that are smaller than the limit on their use are used wholly.
        if let Some(sizes) = shown::sizes(experiment, settings).filter(|_| limited) {
            let most = sizes.iter().map(|size| size.0).max().unwrap_or(0);
            observations.push(fact("guest.member_bytes", most.to_string(), "bytes"));
        }
        Records {
            observations,
            settings: processor.map_or_else(Vec::new, presets::processor_settings),
            ..Records::default()
        }
    }
}

/// The seed of the guest's entropy: the experiment's own, whatever else runs.
fn seed(experiment: &Experiment) -> u64 {
    let label = format!(
        "{} {} {}",
        experiment.subject.name,
        experiment.filesystem_label(),
        experiment.fit
    );
    let stream = Stream::new(experiment.seed).fork("kernel", 0);
    stream
        .fork(&label, u64::from(experiment.repetition))
        .next_u64()
}

impl Bench for KernelBench {
    fn name(&self) -> &'static str {
        "kernel"
    }

    fn repeats_exactly(&self) -> bool {
        true
    }

    fn check(&self, experiment: &Experiment) -> Result<(), BenchError> {
        self.obstacle(experiment)
            .map_err(|source| BenchError::setup("the check before the run", source))
    }

    fn run(
        &self,
        experiment: &Experiment,
        observer: &mut dyn Observer,
    ) -> Result<Finish, BenchError> {
        self.boot(experiment, observer)
            .map_err(|source| BenchError::setup("the guest", source))
    }
}

/// One boot with all that belongs to it.
struct Run {
    boot: Boot,
    disks: Disks,
    told: Told,
    ended: Option<Ended>,
}

impl Run {
    /// Passes on the guest's messages until it has ended.
    fn follow(&mut self, observer: &mut dyn Observer) -> Result<Finish, KernelError> {
        loop {
            if observer.cancelled() {
                return Ok(Finish::Cancelled);
            }
            // The end is looked at before the frames: the last messages are then there.
            let gone = self.boot.ended()?.is_some();
            let is_broken_off = self.disks.ended();
            while let Some(frame) = self.boot.frame()? {
                match Message::read(&frame)? {
                    Message::Ended(ended) => self.ended = Some(ended),
                    message => self.told.pass_on(message, observer),
                }
            }
            match &self.ended {
                Some(ended) => return self.judge(ended.clone()),
                None if is_broken_off => return Err(self.broken_off()),
                None if gone => return Err(self.early()),
                None => thread::sleep(LOOK),
            }
        }
    }

    fn judge(&mut self, ended: Ended) -> Result<Finish, KernelError> {
        let limit = Instant::now() + LAST;
        while self.boot.ended()?.is_none() && Instant::now() < limit {
            thread::sleep(LOOK);
        }
        match ended {
            Ended::Complete => Ok(Finish::Complete),
            Ended::Cancelled => Ok(Finish::Cancelled),
            Ended::Failed(reasons) => Err(KernelError::Experiment {
                reasons: reasons.join(": "),
            }),
        }
    }

    /// The error for disks and a clock that ended first.
    fn broken_off(&mut self) -> KernelError {
        match self.disks.end(LAST) {
            Err(error) => KernelError::Disks(error),
            Ok(report) => {
                let why = report.why();
                if report.guest_ended() {
                    return self.early();
                }
                let console = raidlab_initramfs::excerpt(&self.boot.console());
                KernelError::BrokenOff { why, console }
            }
        }
    }

    /// The error for a guest that is gone. If its disks had no room left it has lost its clock, and
    /// panicked for that; the thread that knows may end after it.
    fn early(&mut self) -> KernelError {
        match self.disks.end(WHY) {
            Err(error) if error.is_without_room() => KernelError::Disks(error),
            _ => KernelError::Boot(self.boot.ended_early()),
        }
    }
}

/// The reason why an experiment has failed.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// The programs that the guest needs are missing.
    #[error(transparent)]
    Image(#[from] InitramfsError),
    /// The guest could not be booted, or ended early.
    #[error(transparent)]
    Boot(#[from] BootError),
    /// The guest's disks or its clock failed.
    #[error(transparent)]
    Disks(#[from] DisksError),
    /// The guest sent a message that cannot be understood.
    #[error(transparent)]
    Message(#[from] MessageError),
    /// The clock has stopped the guest.
    #[error("{why}\nits console ends with:\n{console}")]
    BrokenOff {
        /// The reason, in words for the user.
        why: String,
        /// The console's last lines.
        console: String,
    },
    /// The experiment itself failed in the guest.
    #[error("in the guest: {reasons}")]
    Experiment {
        /// The reasons, the outermost first.
        reasons: String,
    },
}
