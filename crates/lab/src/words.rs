//! Suites and experiments in words, for people: `raidlab suites NAME` and
//! `raidlab run --dry-run`.

use crate::experiment::{Experiment, PlannedJob, PlannedStep};
use crate::job_words::{describe, time_in_words};
use crate::subject::{Subject, SubjectKind};
use crate::suite::{
    Begin, Condition, Event, EventKind, Job, Region, Rounds, Step, Suite, TimedEvent, Wait, When,
    Work,
};
use raidlab_systems::FileSystemSpec;
use raidlab_units::Nanos;
use std::fmt::Write;

impl Suite {
    /// The suite's steps in words. A matrix is written out, rounds are one step. Entries that the
    /// draw did not select are left out.
    #[must_use]
    pub fn plan(&self) -> String {
        let mut text = format!("{}: {}\n", self.name, self.title);
        header(&mut text, "source", &self.source);
        header(
            &mut text,
            "disks",
            &disks_in_words(&self.disks, &self.regions),
        );
        header(&mut text, "subjects", &subjects_in_words(&self.subjects));
        if self.filesystems.iter().any(Option::is_some) {
            header(&mut text, "on", &filesystems_in_words(&self.filesystems));
        }
        if self.begin == Begin::AsCreated {
            let words = "as their systems create them, first resyncs included";
            header(&mut text, "begin", words);
        }
        if self.repetitions > 1 {
            let times = format!("{} times, each with a newly built array", self.repetitions);
            header(&mut text, "done", &times);
        }
        if let Some(published) = &self.published {
            header(&mut text, "figures", &published.title);
        }
        for (index, step) in self.steps.iter().enumerate() {
            let doers = self.subjects.iter().filter(|subject| subject.does(index));
            let doers: Vec<&str> = doers.map(|subject| subject.name.as_str()).collect();
            if doers.is_empty() {
                continue;
            }
            let mut lines = step_in_words(step, job_in_words);
            if doers.len() < self.subjects.len() {
                lines.push(format!("for {}", doers.join(", ")));
            }
            write_step(&mut text, index, &lines);
        }
        for remark in &self.remarks {
            let _ = writeln!(text, "  remark: {remark}");
        }
        text
    }
}

/// The disks with the descriptions of their regions.
fn disks_in_words(disks: &[String], regions: &[Region]) -> String {
    let whole = Region::default();
    let words = disks.iter().enumerate().map(|(member, disk)| {
        let region = regions.get(member).unwrap_or(&whole).in_words();
        if region.is_empty() {
            disk.clone()
        } else {
            format!("{disk} ({region})")
        }
    });
    words.collect::<Vec<_>>().join(", ")
}

impl Experiment {
    /// The experiment's steps in words, with each job as this subject's host
    /// runs it.
    #[must_use]
    pub fn plan(&self) -> String {
        self.plan_with(&steps_in_words(&self.steps))
    }

    /// The experiment in words, given the words of its steps, which callers with many plans make
    /// once for all experiments that share them.
    pub(crate) fn plan_with(&self, steps: &str) -> String {
        let subject = &self.subject;
        let mut text = format!(
            "{}: {} on {}\n",
            subject.name,
            subject.title,
            disks_in_words(&self.disks, &self.regions)
        );
        let modelled = subject.host.as_ref().map_or("", |host| host.title.as_str());
        let built =
            !self.host.is_empty() || subject.host.is_none() || subject.kind == SubjectKind::Array;
        header(
            &mut text,
            "host",
            if self.host.is_empty() {
                modelled
            } else {
                &self.host
            },
        );
        header(
            &mut text,
            "scheduler",
            subject.scheduler.as_deref().unwrap_or_default(),
        );
        let throttling = subject.write_throttling.map(throttling_in_words);
        header(&mut text, "writes", &throttling.unwrap_or_default());
        if let Some(build) = subject.build.as_ref().filter(|_| built) {
            header(&mut text, "built as", &build.title());
        }
        if let Some(filesystem) = &self.filesystem {
            header(&mut text, "on", &filesystem_in_words(filesystem));
        }
        if self.repetition > 0 {
            header(&mut text, "repetition", &(self.repetition + 1).to_string());
        }
        header(&mut text, "disk fit", &self.fit);
        header(&mut text, "seed", &self.seed.to_string());
        header(&mut text, "without", &self.without.join(", "));
        if let Some(processor) = &self.processor {
            header(&mut text, "processor", processor);
        }
        text.push_str(steps);
        if self.left_out > 0 {
            let _ = writeln!(
                text,
                "  the suite's last {} steps are left out: it has no redundancy, so nothing can be taken out or checked",
                self.left_out
            );
        }
        text
    }
}

/// The steps of an experiment, counted from 1.
pub(crate) fn steps_in_words(steps: &[PlannedStep]) -> String {
    let mut text = String::new();
    for (index, step) in steps.iter().enumerate() {
        write_step(&mut text, index, &step_in_words(step, planned_in_words));
    }
    text
}

/// A step in lines, the first one its heading; `words` describes a job.
fn step_in_words<J>(step: &Step<J>, words: fn(&J) -> Vec<String>) -> Vec<String> {
    match step {
        Step::Wait(wait) => vec![wait_in_words(*wait)],
        Step::Event(event) => vec![event_in_words(*event)],
        Step::Check => vec![CHECK_IN_WORDS.to_owned()],
        Step::Job(job) => words(job),
        Step::Rounds(rounds) => rounds_in_words(rounds, words),
    }
}

/// A line of a plan's head, if it has a value.
fn header(text: &mut String, name: &str, value: &str) {
    let mut lines = value.lines();
    if let Some(first) = lines.next() {
        let _ = writeln!(text, "  {name:<10} {first}");
    }
    for line in lines {
        let _ = writeln!(text, "  {:<10} {line}", "");
    }
}

/// A step, counted from 1, with its further lines below the first.
fn write_step(text: &mut String, index: usize, lines: &[String]) {
    for (line, words) in lines.iter().enumerate() {
        let _ = match line {
            0 => writeln!(text, "  step {:>3}   {words}", index + 1),
            _ => writeln!(text, "             {words}"),
        };
    }
}

/// The subjects in words: their names where they are plain built-in ones, else each on a line with
/// the suite's settings for it.
fn subjects_in_words(subjects: &[Subject]) -> String {
    let plain = |subject: &Subject| {
        subject.members.is_none()
            && subject.removed.is_empty()
            && subject.scheduler.is_none()
            && subject.write_throttling.is_none()
            && subject.filesystems.is_none()
    };
    if subjects.iter().all(plain) {
        let names: Vec<&str> = subjects
            .iter()
            .map(|subject| subject.name.as_str())
            .collect();
        return names.join(", ");
    }
    let lines: Vec<String> = subjects.iter().map(subject_in_words).collect();
    lines.join("\n")
}

/// The throttling of writes in words, from `wbt_lat_usec`.
fn throttling_in_words(latency: Nanos) -> String {
    match latency {
        Nanos::ZERO => "not held back".to_owned(),
        latency => format!("held back for reads over {latency}"),
    }
}

fn subject_in_words(subject: &Subject) -> String {
    let mut text = format!("{}: {}", subject.name, subject.title);
    if let Some(build) = &subject.build {
        let _ = write!(text, " ({})", build.title());
    }
    let list = |positions: &[u16]| {
        let positions: Vec<String> = positions.iter().map(u16::to_string).collect();
        positions.join(", ")
    };
    match subject.members.as_deref() {
        None => {}
        Some([one]) => {
            let _ = write!(text, " on disk {one}");
        }
        Some(members) => {
            let _ = write!(text, " on disks {}", list(members));
        }
    }
    if !subject.removed.is_empty() {
        let _ = write!(text, ", member {} taken out", list(&subject.removed));
    }
    if let Some(scheduler) = &subject.scheduler {
        let _ = write!(text, ", scheduler {scheduler}");
    }
    if let Some(latency) = subject.write_throttling {
        let _ = write!(text, ", writes {}", throttling_in_words(latency));
    }
    if let Some(filesystems) = &subject.filesystems {
        let _ = write!(text, ", with {}", filesystems_in_words(filesystems));
    }
    text
}

fn filesystems_in_words(filesystems: &[Option<FileSystemSpec>]) -> String {
    let words = |spec: &Option<FileSystemSpec>| match spec {
        None => "no file system but the array's own".to_owned(),
        Some(spec) => filesystem_in_words(spec),
    };
    let words: Vec<String> = filesystems.iter().map(words).collect();
    words.join(", then ")
}

fn filesystem_in_words(spec: &FileSystemSpec) -> String {
    let mut text = spec.label();
    if text != spec.kind.name() {
        let _ = write!(text, " ({})", spec.kind.name());
    }
    for (what, words) in [("made", &spec.options), ("mounted", &spec.mount_options)] {
        if !words.is_empty() {
            let _ = write!(text, ", {what} with {}", words.join(" "));
        }
    }
    text
}

/// A suite's job in words, with the arguments of its tool.
fn job_in_words(job: &Job) -> Vec<String> {
    let work = match &job.work {
        Work::Fio { jobs, .. } if !jobs.is_from_job_file() => {
            format!("fio {}", jobs.lines().join(" + "))
        }
        Work::Fio { group, .. } => match group {
            Ok(group) => format!("fio job file: {}", describe(group)),
            Err(_) => "fio job file".to_owned(),
        },
        Work::Tool { name, arguments } => format!("{name} {}", arguments.join(" ")),
    };
    around(job, work)
}

/// A job as a host runs it, in words.
fn planned_in_words(job: &PlannedJob) -> Vec<String> {
    let work = match &job.work {
        Work::Fio {
            jobs,
            group: Err(_),
        } if !jobs.is_from_job_file() => format!("fio {}", jobs.lines().join(" + ")),
        Work::Fio { group, .. } => group.as_ref().map_or_else(Clone::clone, describe),
        Work::Tool { name, arguments } => format!("{name} {}", arguments.join(" ")),
    };
    around(job, work)
}

/// The lines of a job: title, work, events while it runs, and note.
fn around(job: &Job, work: String) -> Vec<String> {
    let prepares = match job.prepares {
        true => " (prepares; not measured)",
        false => "",
    };
    let title = format!("job {}: {}{prepares}", job.name, job.title);
    let event = |timed: &TimedEvent| {
        let when = match timed.when {
            When::After(time) => format!("after {}", time_in_words(time)),
            When::SyncPercent(percent) => format!("at {percent} % of the background copying"),
        };
        format!("{when}: {}", event_in_words(timed.event))
    };
    let note = (!job.note.is_empty()).then(|| format!("note: {}", job.note));
    let events = job.events.iter().map(event);
    [title, work]
        .into_iter()
        .chain(events)
        .chain(note)
        .collect()
}

/// Rounds in words, their jobs indented below.
fn rounds_in_words<J>(rounds: &Rounds<J>, words: fn(&J) -> Vec<String>) -> Vec<String> {
    let head = format!(
        "rounds `{}` of {} jobs until job {} is steady, at most {}:",
        rounds.name,
        rounds.jobs.len(),
        rounds.track,
        rounds.at_most
    );
    let jobs = rounds.jobs.iter().flat_map(|job| {
        let indent = |(line, words)| match line {
            0 => format!("  {words}"),
            _ => format!("    {words}"),
        };
        words(job)
            .into_iter()
            .enumerate()
            .map(indent)
            .collect::<Vec<_>>()
    });
    std::iter::once(head).chain(jobs).collect()
}

/// The condition of a wait in words.
#[must_use]
pub fn wait_in_words(wait: Wait) -> String {
    match wait {
        Wait::Time(time) => format!("wait {}", time_in_words(time)),
        Wait::Until { condition, at_most } => {
            let condition = match condition {
                Condition::SyncDone => "nothing is copied in the background".to_owned(),
                Condition::SyncPercent(percent) => {
                    format!("the background copying has done {percent} %")
                }
                Condition::Idle => "the members are idle".to_owned(),
                Condition::Clean => "nothing is dirty in the cache".to_owned(),
            };
            format!("wait until {condition}, at most {}", time_in_words(at_most))
        }
    }
}

/// The beginning of a check in words.
pub const CHECK_IN_WORDS: &str = "begin a check of all members; nothing is changed";

/// An event in words, as plans and reports name it.
#[must_use]
pub fn event_in_words(event: Event) -> String {
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
