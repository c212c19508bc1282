//! Suites and experiments in words, for people: `raidlab suites NAME` and
//! `raidlab run --dry-run`.

use crate::experiment::{Experiment, PlannedJob, PlannedStep};
use crate::suite::{Condition, Event, EventKind, FioText, Job, Step, Suite, Wait, Work};
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
                Step::Wait(wait) => wait_in_words(*wait),
                Step::Event(event) => event_in_words(*event),
                Step::Job(job) => job_in_words(job),
                Step::Rounds(rounds) => {
                    let jobs: Vec<String> = rounds.jobs.iter().map(job_in_words).collect();
                    format!(
                        "rounds of {} jobs until `{}` is steady, at most {}:\n             {}",
                        jobs.len(),
                        rounds.track,
                        rounds.at_most,
                        jobs.join("\n             ")
                    )
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
        let subject = &self.subject;
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
        let modelled = subject.host.as_ref().map_or("", |host| host.title.as_str());
        line(
            "host",
            if self.host.is_empty() {
                modelled
            } else {
                &self.host
            },
        );
        line("on", &self.filesystem_label());
        line("disk fit", &self.fit);
        line("seed", &self.seed.to_string());
        line("without", &self.without.join(", "));
        for (index, step) in self.steps.iter().enumerate() {
            let words = match step {
                PlannedStep::Wait(wait) => wait_in_words(*wait),
                PlannedStep::Event(event) => event_in_words(*event),
                PlannedStep::Job(job) => planned_in_words(job),
                PlannedStep::Rounds(rounds) => {
                    let jobs: Vec<String> = rounds.jobs.iter().map(planned_in_words).collect();
                    format!(
                        "rounds of {} jobs until `{}` is steady, at most {}:\n             {}",
                        jobs.len(),
                        rounds.track,
                        rounds.at_most,
                        jobs.join("\n             ")
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

/// A suite's job in words, with what its tool is told.
fn job_in_words(job: &Job) -> String {
    let tool = match &job.work {
        Work::Fio {
            text: FioText::Options(lines),
            ..
        } => format!("fio {}", lines.join(" + ")),
        Work::Fio { group, .. } => match group {
            Ok(group) => format!("fio job file: {}", describe(group)),
            Err(_) => "fio job file".to_owned(),
        },
        Work::Tool { name, arguments } => format!("{name} {}", arguments.join(" ")),
    };
    format!("job {}: {}\n             {tool}", job.name, job.title)
}

/// A job as a host runs it, in words.
fn planned_in_words(job: &PlannedJob) -> String {
    let work = match &job.work {
        Work::Fio {
            text: FioText::Options(lines),
            group: Err(_),
        } => format!("fio {}", lines.join(" + ")),
        Work::Fio { group, .. } => group.as_ref().map_or_else(Clone::clone, describe),
        Work::Tool { name, arguments } => format!("{name} {}", arguments.join(" ")),
    };
    format!("job {}: {}\n             {work}", job.name, job.title)
}

/// What is waited for, in words.
fn wait_in_words(wait: Wait) -> String {
    match wait {
        Wait::Time(time) => format!("wait {}", time_in_words(time)),
        Wait::Until { condition, at_most } => {
            let condition = match condition {
                Condition::SyncDone => "nothing is copied in the background".to_owned(),
                Condition::SyncPercent(percent) => {
                    format!("the background copying has done {percent} %")
                }
                Condition::Idle => "the members are idle".to_owned(),
            };
            format!("wait until {condition}, at most {}", time_in_words(at_most))
        }
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
        EventKind::ReAdd => {
            format!("put member {member} back as it was; what it missed is copied")
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
