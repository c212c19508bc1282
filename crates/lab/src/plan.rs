//! Suites and experiments in words, for people: `raidlab suites NAME` and
//! `raidlab run --dry-run`.

use crate::experiment::{Experiment, PlannedStep};
use crate::suite::{Event, EventKind, FioText, Step, Suite};
use raidlab_units::Nanos;
use raidlab_workload::{Engine, JobGroup, JobSpec, Pattern};
use std::fmt::Write;

impl Suite {
    /// The suite's steps in words, numbered as errors number them.
    #[must_use]
    pub fn plan(&self) -> String {
        let mut text = format!("{}: {}\n", self.name, self.title);
        let mut line = |name: &str, value: &str| {
            let _ = writeln!(text, "  {name:<10} {value}");
        };
        line("source", &self.source);
        line("disks", &self.disks.join(", "));
        let subjects: Vec<&str> = self
            .subjects
            .iter()
            .map(|subject| subject.name.as_str())
            .collect();
        line("subjects", &subjects.join(", "));
        if let Some(published) = &self.published {
            line("figures", &published.title);
        }
        for (index, step) in self.steps.iter().enumerate() {
            let words = match step {
                Step::Wait(time) => format!("wait {}", time_in_words(*time)),
                Step::Event(event) => event_in_words(*event),
                Step::Job(job) => {
                    let fio = match &job.fio {
                        FioText::Options(lines) => format!("fio {}", lines.join(" + ")),
                        FioText::JobFile { .. } => {
                            format!("fio job file: {}", describe(&job.group))
                        }
                    };
                    format!("job {}: {}\n             {fio}", job.name, job.title)
                }
            };
            let _ = writeln!(text, "  step {:>3}   {words}", index + 1);
        }
        text
    }
}

impl Experiment {
    /// The experiment's steps in words, with each job as this subject's host
    /// runs it.
    #[must_use]
    pub fn plan(&self) -> String {
        let (subject, host) = (&self.subject, &self.subject.host);
        let mut text = format!(
            "{}: {} on {}\n",
            subject.name,
            subject.title,
            self.disks.join(", ")
        );
        let mut line = |name: &str, value: &str| {
            if !value.is_empty() {
                let _ = writeln!(text, "  {name:<10} {value}");
            }
        };
        line("host", &host.title);
        line("disk fit", &self.fit);
        line("seed", &self.seed.to_string());
        line("without", &self.without.join(", "));
        for (index, step) in self.steps.iter().enumerate() {
            let words = match step {
                PlannedStep::Wait(time) => format!("wait {}", time_in_words(*time)),
                PlannedStep::Event(event) => event_in_words(*event),
                PlannedStep::Job(job) => {
                    format!(
                        "job {}: {}\n             {}",
                        job.name,
                        job.title,
                        describe(&job.group)
                    )
                }
            };
            let _ = writeln!(text, "  step {:>3}   {words}", index + 1);
        }
        if self.left_out > 0 {
            let _ = writeln!(
                text,
                "  the suite's last {} steps are left out: a single disk has no member to take out",
                self.left_out
            );
        }
        text
    }
}

/// An event in words.
fn event_in_words(event: Event) -> String {
    let member = event.member;
    match event.kind {
        EventKind::Remove => format!("remove member {member}"),
        EventKind::Fail => format!("fail member {member}"),
        EventKind::Insert => {
            format!("insert member {member} as if new; it is rebuilt from here on")
        }
    }
}

/// A time in the largest unit that divides it: `1 h`, `90 min`, `1 s`.
fn time_in_words(time: Nanos) -> String {
    const UNITS: [(u64, &str); 6] = [
        (3_600_000_000_000, "h"),
        (60_000_000_000, "min"),
        (1_000_000_000, "s"),
        (1_000_000, "ms"),
        (1_000, "us"),
        (1, "ns"),
    ];
    let fits = |(unit, _): &&(u64, &str)| time.0 >= *unit && time.0.is_multiple_of(*unit);
    match UNITS.iter().find(fits) {
        Some((unit, name)) => format!("{} {name}", time.0 / unit),
        None => "0 s".to_owned(),
    }
}

/// What runs together, in words.
pub(crate) fn describe(group: &JobGroup) -> String {
    let jobs: Vec<String> = group.jobs.iter().map(describe_job).collect();
    jobs.join(" + ")
}

/// The class of a job that nobody classed: what its first job does.
pub(crate) fn class_of_job(group: &JobGroup) -> &'static str {
    match group.jobs.first().map(|job| job.pattern) {
        Some(Pattern::Write) => "sequential-write",
        Some(Pattern::RandRead) => "random-read",
        Some(Pattern::RandWrite) => "random-write",
        Some(Pattern::ReadWrite | Pattern::RandRw) => "mixed",
        Some(Pattern::Read) | None if group.jobs.len() > 1 => "streams",
        Some(Pattern::Read) | None => "sequential-read",
    }
}

/// A job in words: `random read 4 KiB, 32 threads, from 19 MiB to 3 TiB, 60 s`.
#[must_use]
pub fn describe_job(job: &JobSpec) -> String {
    let pattern = match job.pattern {
        Pattern::Read => "sequential read".to_owned(),
        Pattern::Write => "sequential write".to_owned(),
        Pattern::RandRead => "random read".to_owned(),
        Pattern::RandWrite => "random write".to_owned(),
        Pattern::ReadWrite => format!(
            "sequential read and write, {} % reads,",
            job.read_mix_percent
        ),
        Pattern::RandRw => format!("random read and write, {} % reads,", job.read_mix_percent),
    };
    let queue = match (job.engine, job.num_jobs) {
        (Engine::Libaio, 1) => format!("{} in flight", job.io_depth),
        (Engine::Libaio, jobs) => format!("{jobs} jobs with {} in flight each", job.io_depth),
        (Engine::Sync, 1) => "1 thread".to_owned(),
        (Engine::Sync, threads) => format!("{threads} threads"),
    };
    let place = match (job.file_size, job.size) {
        (Some(end), _) => format!("from {} to {end}", job.offset),
        (None, Some(size)) => format!("{size} from {}", job.offset),
        (None, None) => format!("from {} to the end", job.offset),
    };
    let mut text = format!("{pattern} {}, {queue}, {place}", job.block_size);
    if let Some(time) = job.runtime {
        let _ = write!(text, ", {}", time_in_words(time));
    }
    text
}
