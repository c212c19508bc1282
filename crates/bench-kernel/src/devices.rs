//! The guest's disks and its clock: a calendar on a thread of its own.

use crate::agent::{self, disks::Kind};
use crate::error::DisksError;
use crate::processors::stay_on;
use crate::settings::Settings;
use crate::shown;
use raidlab_bench_model::commands::{CommandFile, CommandLine};
use raidlab_lab::{Experiment, PlannedJob, PlannedStep, Wait};
use raidlab_uml::{Kernel, Place};
use raidlab_uml_calendar::{
    Calendar, DeviceConfig, DiskCounters, DiskOperation, Observer, Options, Outcome, Protocol,
    Storage, TraceRecord,
};
use raidlab_units::{Bytes, Nanos};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The most that all disks of a guest may hold together: as much as pages can be counted. The
/// [`Storage`] refuses much earlier.
const STORAGE: Bytes = Bytes(15 << 40);

/// The time beyond that of the steps: for building and taking down.
const SLACK: Nanos = Nanos::from_secs(3600);
const DAY: Nanos = Nanos::from_secs(24 * 3600);
const MINUTE: Nanos = Nanos::from_secs(60);

/// An observer that writes every command down, if that was asked for.
struct Written(CommandFile);

impl Observer for Written {
    fn completed(&mut self, record: &TraceRecord) {
        let operation = match record.operation {
            DiskOperation::Read => "read",
            DiskOperation::Write => "write",
            DiskOperation::Flush => "flush",
            DiskOperation::Discard => "discard",
            DiskOperation::WriteZeroes => "write-zeroes",
            DiskOperation::Other => "other",
        };
        self.0.write(&CommandLine {
            arrived: record.arrived,
            completed: record.completed,
            disk: record.disk,
            operation,
            start: record.start,
            count: record.count,
            good: record.good,
        });
    }
}

/// The disks and the clock of one guest.
#[derive(Debug)]
pub(crate) struct Disks {
    count: usize,
    queue_depth: usize,
    word: Option<String>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<Report, DisksError>>>,
    /// The end of the calendar, until it is told.
    outcome: Option<Result<Report, DisksError>>,
}

impl Disks {
    /// Makes the disks of an experiment; their sockets listen in `place` when
    /// this returns.
    pub(crate) fn begin(
        place: &Place,
        experiment: &Experiment,
        kernel: &Kernel,
        settings: &Settings,
        storage: &Storage,
        processor: Option<usize>,
    ) -> Result<Self, DisksError> {
        let shown = shown::disks(experiment, settings)?;
        let stop = Arc::new(AtomicBool::new(false));
        let options = Options {
            protocol: if kernel.shared_memory {
                Protocol::SharedMemory
            } else {
                Protocol::Messages
            },
            patience: settings.patience,
            time_limit: Some(time_limit(experiment)),
            storage_limit: STORAGE,
            storage: storage.clone(),
            stop: Some(Arc::clone(&stop)),
            ..Options::default()
        };
        let observer = Written(CommandFile::of(settings.commands.as_deref(), experiment)?);
        Self::bind(place.folder(), shown, options, (stop, observer), processor)
    }

    fn bind(
        folder: &Path,
        (configs, kinds): (Vec<DeviceConfig>, Vec<Kind>),
        options: Options,
        (stop, mut observer): (Arc<AtomicBool>, Written),
        processor: Option<usize>,
    ) -> Result<Self, DisksError> {
        let count = configs.len();
        let queue_depth = shown::queue_depth(&configs);
        let mut calendar = Calendar::bind(folder, configs, options)?;
        let thread = std::thread::Builder::new()
            .name("calendar".to_owned())
            .spawn(move || {
                stay_on(processor);
                let outcome = calendar.run(&mut observer).map_err(DisksError::Calendar)?;
                observer.0.finish()?;
                Ok(Report::of(&calendar, outcome))
            })
            .map_err(DisksError::Thread)?;
        Ok(Self {
            count,
            queue_depth,
            word: agent::disks::word(&kinds),
            stop,
            thread: Some(thread),
            outcome: None,
        })
    }

    /// The number of disks.
    pub(crate) const fn count(&self) -> usize {
        self.count
    }

    /// The number of commands that the guest may let into each of them at a time.
    pub(crate) const fn queue_depth(&self) -> usize {
        self.queue_depth
    }

    /// The word about the disks that the agent in the guest has to know.
    pub(crate) fn word(&self) -> Option<&str> {
        self.word.as_deref()
    }

    /// Whether the calendar has ended; [`Self::end`] tells how.
    pub(crate) fn ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.outcome = Some(thread.join().unwrap_or(Err(DisksError::Panicked)));
        }
    }

    /// Waits until the calendar has noticed that its guest is gone, and tells
    /// it to stop where it has not after a while.
    pub(crate) fn end(&mut self, patience: Duration) -> Result<Report, DisksError> {
        let limit = Instant::now() + patience;
        while Instant::now() < limit && !self.ended() {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.stop.store(true, Ordering::Relaxed);
        self.join();
        self.outcome.take().unwrap_or(Err(DisksError::Told))
    }
}

impl Drop for Disks {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.join();
    }
}

/// The virtual time in which every step must be done: a guest that waits for an event that never
/// comes still looks at its counters each second, and would do so for ever.
fn time_limit(experiment: &Experiment) -> Nanos {
    let steps = experiment.steps.iter().map(|step| match step {
        PlannedStep::Wait(Wait::Time(time) | Wait::Until { at_most: time, .. }) => *time,
        PlannedStep::Event(_) | PlannedStep::Check => Nanos::ZERO,
        PlannedStep::Job(job) => longest(job),
        PlannedStep::Rounds(rounds) => {
            let once = rounds.jobs.iter().map(longest).fold(Nanos::ZERO, sum);
            Nanos(once.0.saturating_mul(u64::from(rounds.at_most)))
        }
    });
    steps.fold(SLACK, sum)
}

fn sum(one: Nanos, other: Nanos) -> Nanos {
    Nanos(one.0.saturating_add(other.0))
}

/// The time that a job may take: those that end by size have a day.
fn longest(job: &PlannedJob) -> Nanos {
    let Ok(group) = job.work.group() else {
        return DAY;
    };
    let times = group.jobs.iter().map(|job| {
        let before = sum(job.start_delay, job.ramp_time);
        sum(before, job.runtime.unwrap_or(DAY))
    });
    // The jobs take this one after the other, if they wait for each other.
    sum(times.fold(Nanos::ZERO, sum), MINUTE)
}

/// The counters of a disk, each with its name and unit: all of them but the number of commands
/// under way, which is zero where a run has come to its end.
fn counted(counters: &DiskCounters) -> Vec<(&'static str, u64, &'static str)> {
    let &DiskCounters {
        reads,
        read_bytes,
        read_time,
        writes,
        written_bytes,
        write_time,
        flushes,
        discards,
        errors,
        busy,
        in_flight: _,
    } = counters;
    vec![
        ("reads", reads, ""),
        ("read_bytes", read_bytes, "bytes"),
        ("read_time_ns", read_time.0, "ns"),
        ("writes", writes, ""),
        ("written_bytes", written_bytes, "bytes"),
        ("write_time_ns", write_time.0, "ns"),
        ("flushes", flushes, ""),
        ("discards", discards, ""),
        ("errors", errors, ""),
        ("busy_ns", busy.0, "ns"),
    ]
}

/// The end of a run of the disks, and their counters.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Report {
    outcome: Outcome,
    now: Nanos,
    disks: Vec<Vec<(&'static str, u64, &'static str)>>,
    /// The disks that have not answered, and the number of commands of each.
    unanswered: Vec<(usize, usize)>,
    digest: u64,
}

impl Report {
    fn of(calendar: &Calendar, outcome: Outcome) -> Self {
        let counters = calendar.counters();
        let in_flight = counters
            .iter()
            .map(|one| usize::try_from(one.in_flight).unwrap_or(usize::MAX));
        let unanswered = in_flight.enumerate().filter(|(_, count)| *count > 0);
        let unanswered = unanswered.collect();
        let disks = counters.iter().map(counted);
        Self {
            outcome,
            now: calendar.now(),
            disks: disks.collect(),
            unanswered,
            digest: calendar.trace_digest().value(),
        }
    }

    /// The name, value and unit of each disk's counters.
    pub(crate) fn disks(&self) -> &[Vec<(&'static str, u64, &'static str)>] {
        &self.disks
    }

    /// The virtual time of the end.
    pub(crate) const fn now(&self) -> Nanos {
        self.now
    }

    /// The digest of all the disks' commands, and of their times.
    pub(crate) const fn digest(&self) -> u64 {
        self.digest
    }

    /// Whether the run ended because the guest did, and not the disks.
    pub(crate) const fn guest_ended(&self) -> bool {
        matches!(self.outcome, Outcome::GuestEnded)
    }

    /// The reason why the run of clock and disks ended, in words.
    pub(crate) fn why(&self) -> String {
        let at = self.now.0 / 1_000_000_000;
        match &self.outcome {
            Outcome::GuestEnded => "the guest has ended".to_owned(),
            Outcome::IdleForEver { .. } => format!(
                "after {at} s of virtual time the guest waits for nothing that will ever happen{}",
                owing(&self.unanswered)
            ),
            Outcome::Hung { unanswered } => format!(
                "after {at} s of virtual time a disk has hung for half a minute, and nothing \
                 that waits for it will ever end{}",
                owing(unanswered)
            ),
            Outcome::GuestStuck => format!(
                "after {at} s of virtual time the guest gave no sign of life any more: it computes \
                 without end, or for longer than `--patience` says, which takes no virtual time"
            ),
            Outcome::TimeLimit => format!(
                "after {at} s of virtual time, more than its steps may take, the experiment has \
                 not ended{}",
                owing(&self.unanswered)
            ),
            Outcome::Stopped => "it was stopped".to_owned(),
            Outcome::NoGuest => "the kernel did not ask for the time".to_owned(),
        }
    }
}

/// The disks that have not answered, in words.
fn owing(unanswered: &[(usize, usize)]) -> String {
    let disks = unanswered.iter();
    let words = disks.map(|(disk, count)| format!("disk {disk} owes {count} answers"));
    let words: Vec<String> = words.collect();
    if words.is_empty() {
        String::new()
    } else {
        format!("; {}", words.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raidlab_lab::{Choices, Suite};

    #[test]
    fn discards_are_told_as_flushes_are() {
        let counters = DiskCounters {
            flushes: 3,
            discards: 5,
            ..DiskCounters::default()
        };
        let told = counted(&counters);
        assert!(told.contains(&("flushes", 3, "")) && told.contains(&("discards", 5, "")));
    }

    #[test]
    fn the_time_limit_covers_every_step() {
        let suite = Suite::load("quick").expect("built in");
        let experiments = suite.experiments(&suite.subjects, &Choices::default());
        let limit = time_limit(&experiments[0]);
        // An hour, two waits of a day, a filling by size, a minute of waiting, one
        // job of 6 s and eight of 5 s with a minute each.
        let jobs = 6 + 8 * 5 + 9 * 60;
        let seconds = 3600 + 3 * 24 * 3600 + 60 + 60 + jobs;
        assert_eq!(limit, Nanos::from_secs(seconds));
    }

    #[test]
    fn a_delay_and_a_ramp_are_time_that_a_job_may_take() {
        let text = "schema = 1\nname = \"late\"\ntitle = \"late\"\ndescription = \"late\"\n\
             source = \"here\"\ndisks = [\"wd4000fyyz\", \"wd4000fyyz\"]\nsubjects = [\"md-raid1\"]\n\
             [[step]]\njob = \"a\"\ntitle = \"a\"\nclass = \"a\"\nfio = \"--rw=read --size=1m \
             --time_based --runtime=10 --startdelay=7200 --ramp_time=5\"\n";
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("late.toml");
        std::fs::write(&path, text).expect("written");
        let suite = Suite::load(&path.to_string_lossy()).expect("sound");
        let experiments = suite.experiments(&suite.subjects, &Choices::default());
        let jobs: u64 = experiments[0]
            .steps
            .iter()
            .map(|step| match step {
                PlannedStep::Job(job) => longest(job).0,
                _ => 0,
            })
            .sum();
        assert_eq!(Nanos(jobs), Nanos::from_secs(7200 + 5 + 10 + 60));
    }

    /// It may have ended in the moment in which the guest said that it had: whoever looked
    /// whether it had does not keep the one who asks from being told how.
    #[test]
    fn whoever_looks_takes_nothing_from_who_asks() {
        let folder = tempfile::tempdir().expect("a folder");
        let suite = Suite::load("quick").expect("built in");
        let choices = Choices {
            fits: vec!["strict".to_owned()],
            ..Choices::default()
        };
        let experiment = &suite.experiments(&suite.subjects, &choices)[0];
        let shown = shown::disks(experiment, &Settings::default()).expect("there");
        let stop = Arc::new(AtomicBool::new(true));
        let options = Options {
            stop: Some(Arc::clone(&stop)),
            ..Options::default()
        };
        let observer = Written(CommandFile::of(None, experiment).expect("none"));
        let ends = (stop, observer);
        let mut disks = Disks::bind(folder.path(), shown, options, ends, None).expect("bound");
        while !disks.ended() {
            std::thread::yield_now();
        }
        assert!(disks.ended(), "it is asked twice");
        let report = disks.end(Duration::ZERO).expect("stopped");
        assert_eq!(report.outcome, Outcome::Stopped);
        assert!(matches!(disks.end(Duration::ZERO), Err(DisksError::Told)));
    }

    #[test]
    fn a_disk_that_owes_answers_is_named() {
        let report = |outcome, unanswered| Report {
            outcome,
            now: Nanos::from_secs(40),
            disks: Vec::new(),
            unanswered,
            digest: 0,
        };
        let why = report(Outcome::TimeLimit, vec![(1, 3)]).why();
        assert!(why.ends_with("not ended; disk 1 owes 3 answers"), "{why}");
        // Commands under way on the others are nothing to be told of.
        let unanswered = vec![(1, 2)];
        let why = report(Outcome::Hung { unanswered }, vec![(0, 7), (1, 2)]).why();
        assert!(
            why.ends_with("will ever end; disk 1 owes 2 answers"),
            "{why}"
        );
        let why = report(Outcome::GuestStuck, vec![]).why();
        assert!(
            why.contains("after 40 s") && why.contains("or for longer than `--patience`"),
            "{why}"
        );
    }
}
