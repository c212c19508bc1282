//! The facts file: what is known of a disk, and what a fit may move.

use raidlab_disk::Medium;
use raidlab_units::{line_of, plain_words, suggestion};
use raidlab_workload::{FioJobs, JobFileError, JobGroup, JobSpec, Permission, group_jobs};
use serde::Deserialize;
use std::collections::BTreeSet;
use thiserror::Error;
use toml::Spanned;

/// The facts about a disk, and the parameters that a fit may move.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    /// Name of the preset that describes the disk.
    pub disk: String,
    /// Parameters that may move.
    pub free: Vec<Free>,
    /// Expectations that hold a parameter where no measured job decides it.
    pub priors: Vec<Prior>,
    /// Jobs whose rates were measured, in the order of the file.
    pub facts: Vec<Fact>,
}

/// A parameter that a fit may move.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Free {
    /// The name of the parameter in preset files.
    pub parameter: String,
    /// The value at which the search starts.
    pub start: f64,
    /// The range in which it may move, both ends included.
    pub range: [f64; 2],
}

/// The quantity of a disk that a prior has an expectation of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// The mean seek over all pairs of places, in milliseconds.
    AverageSeekMs,
}

/// Knowledge of the kind of disk, held weakly.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prior {
    /// The short name of the prior, by which tables list it.
    pub id: String,
    /// The quantity that it has an expectation of.
    pub quantity: Quantity,
    /// The value that is expected of the quantity, in its unit.
    pub value: f64,
    /// The standard deviation, in percent of the value.
    pub tolerance_percent: f64,
    /// The parameter sets that use it.
    pub sets: Vec<String>,
    /// The document that the expected value is from.
    pub source: String,
}

/// The requests of a job that a measured rate counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// Its reads alone.
    Reads,
    /// Its writes alone.
    Writes,
    /// Its reads and writes together.
    Both,
}

impl Counted {
    /// Reads alone, or writes alone.
    pub(crate) const fn one(reads: bool) -> Self {
        if reads { Self::Reads } else { Self::Writes }
    }
}

/// A measured job, and the rate that it had.
#[derive(Debug, Clone, PartialEq)]
pub struct Fact {
    /// The short name of the fact, which no other fact of the file has.
    pub id: String,
    /// The measurement in words for the reader of a table.
    pub title: String,
    /// The read policy over two disks; `None`: one disk alone.
    pub subject: Option<String>,
    /// The jobs, of which the first one was measured.
    pub jobs: Vec<JobSpec>,
    /// The host's turnaround, in microseconds.
    pub turnaround_us: u64,
    /// The requests of that job that were counted.
    pub counted: Counted,
    /// The measured I/Os per second: issued over run time.
    pub iops: f64,
    /// The parameter sets that were fitted on it.
    pub sets: Vec<String>,
    /// The document or log that the rate is from.
    pub source: String,
}

impl Fact {
    /// The jobs as a group.
    #[must_use]
    pub fn group(&self) -> JobGroup {
        JobGroup {
            jobs: self.jobs.clone(),
            stop_together: true,
        }
    }
}

/// The reason why a facts file cannot be used.
#[derive(Debug, Error)]
pub enum FactsError {
    /// The file is not TOML, or not in a facts file's form.
    #[error("{file}:{line}: {message}")]
    Syntax {
        /// The facts file, by the name that the caller gave it.
        file: String,
        /// The line of the mistake, counted from 1.
        line: usize,
        /// The mistake on that line.
        message: String,
    },
    /// A job is one that fio would not run either.
    #[error("{file}:{line}: `{options}` is no job")]
    Job {
        /// The facts file, by the name that the caller gave it.
        file: String,
        /// The line where the fact begins, counted from 1.
        line: usize,
        /// The job's fio options as the file gives them.
        options: String,
        /// The reason why fio's options make no job.
        #[source]
        source: Box<JobFileError>,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    schema: Spanned<u32>,
    disk: String,
    free: Vec<Spanned<Free>>,
    #[serde(default)]
    prior: Vec<Spanned<Prior>>,
    fact: Vec<Spanned<RawFact>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFact {
    id: String,
    title: String,
    subject: Option<String>,
    fio: Vec<String>,
    turnaround_us: u64,
    op: Op,
    ios: u64,
    runtime_ms: u64,
    sets: Vec<String>,
    source: String,
}

#[derive(Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Op {
    Read,
    Write,
}

impl Facts {
    /// Reads a facts file; `file` names it in errors.
    ///
    /// # Errors
    /// The first mistake, with file and line.
    pub fn parse(file: &str, text: &str) -> Result<Self, FactsError> {
        let syntax = |offset: usize, message: String| FactsError::Syntax {
            file: file.to_owned(),
            line: line_of(text, offset),
            message,
        };
        let raw: File = toml::from_str(text).map_err(|error| {
            let span = error.span().unwrap_or(0..0);
            let place = text.get(span.clone()).unwrap_or_default();
            syntax(span.start, plain_words(error.message(), place))
        })?;
        let at = |(offset, message)| syntax(offset, message);
        if *raw.schema.get_ref() != 1 {
            let message = "schema must be 1, the only version there is".to_owned();
            return Err(syntax(raw.schema.span().start, message));
        }
        check_told_once("parameter", &raw.free, |free| &free.parameter).map_err(at)?;
        for free in &raw.free {
            check_free(free.get_ref()).map_err(|message| at((free.span().start, message)))?;
        }
        check_told_once("prior", &raw.prior, |prior| &prior.id).map_err(at)?;
        for prior in &raw.prior {
            check_prior(prior.get_ref(), &raw.fact)
                .map_err(|message| at((prior.span().start, message)))?;
        }
        check_told_once("fact", &raw.fact, |fact| &fact.id).map_err(at)?;
        let mut facts = Vec::new();
        for fact in &raw.fact {
            let line = line_of(text, fact.span().start);
            facts.push(fact.get_ref().read(file, line)?);
        }
        Ok(Self {
            disk: raw.disk,
            free: raw.free.into_iter().map(Spanned::into_inner).collect(),
            priors: raw.prior.into_iter().map(Spanned::into_inner).collect(),
            facts,
        })
    }

    /// Pairs of facts of one set that no parameters can give both: the same load, with
    /// figures that lie apart by more than a twentieth.
    #[must_use]
    pub fn contradictions(&self, set: &str) -> Vec<[&Fact; 2]> {
        let in_set = |fact: &&Fact| fact.sets.iter().any(|name| name == set);
        let facts: Vec<&Fact> = self.facts.iter().filter(in_set).collect();
        let pairs = facts.iter().enumerate().flat_map(|(index, &one)| {
            let others = facts[index + 1..].iter();
            others.map(move |&other| [one, other])
        });
        let load = |fact: &Fact| {
            let mut jobs = fact.jobs.clone();
            jobs.iter_mut().for_each(|job| job.name.clear());
            (fact.subject.clone(), jobs, fact.turnaround_us, fact.counted)
        };
        let apart = |one: f64, other: f64| one.max(other) > 1.05 * one.min(other);
        pairs
            .filter(|[one, other]| apart(one.iops, other.iops) && load(one) == load(other))
            .collect()
    }

    /// Every parameter set that some fact names, in order of name.
    #[must_use]
    pub fn sets(&self) -> Vec<String> {
        let sets: BTreeSet<&String> = self.facts.iter().flat_map(|fact| &fact.sets).collect();
        sets.into_iter().cloned().collect()
    }
}

fn check_free(free: &Free) -> Result<(), String> {
    let [low, high] = free.range;
    let (name, known) = (&free.parameter, Medium::Platters.names());
    let known: Vec<&str> = known.collect();
    if !known.contains(&name.as_str()) {
        let near = suggestion(name, &known);
        return Err(format!("`{name}` is not a parameter; {near}"));
    }
    if !(low.is_finite() && high.is_finite() && low < high) {
        return Err("range must be two rising numbers".to_owned());
    }
    if !(low..=high).contains(&free.start) {
        return Err(format!("start {} lies outside the range", free.start));
    }
    Ok(())
}

fn check_prior(prior: &Prior, facts: &[Spanned<RawFact>]) -> Result<(), String> {
    let positive = |number: f64| number.is_finite() && number > 0.0;
    if !positive(prior.value) || !positive(prior.tolerance_percent) {
        return Err("value and tolerance_percent must be above 0".to_owned());
    }
    let has_facts = |set: &String| facts.iter().any(|fact| fact.get_ref().sets.contains(set));
    match prior.sets.iter().find(|set| !has_facts(set)) {
        Some(set) => Err(format!("no fact belongs to set `{set}`")),
        None => Ok(()),
    }
}

/// Checks that no two tables of a kind have one name; else returns where the second begins,
/// and the mistake.
fn check_told_once<T>(
    what: &str,
    tables: &[Spanned<T>],
    name: impl Fn(&T) -> &String,
) -> Result<(), (usize, String)> {
    let mut seen = BTreeSet::new();
    for table in tables {
        let name = name(table.get_ref());
        if !seen.insert(name) {
            let message = format!("{what} `{name}` stands twice");
            return Err((table.span().start, message));
        }
    }
    Ok(())
}

impl RawFact {
    /// The fact that begins on `line` of `file`.
    fn read(&self, file: &str, line: usize) -> Result<Fact, FactsError> {
        let wrong = |message: String| FactsError::Syntax {
            file: file.to_owned(),
            line,
            message,
        };
        if self.ios == 0 || self.runtime_ms == 0 || self.fio.is_empty() {
            return Err(wrong(
                "ios, runtime_ms and fio must not be empty".to_owned(),
            ));
        }
        let mut jobs = Vec::new();
        for options in &self.fio {
            let groups = groups(options).map_err(|source| FactsError::Job {
                file: file.to_owned(),
                line,
                options: options.clone(),
                source: Box::new(source),
            })?;
            jobs.extend(groups.into_iter().flat_map(|group| group.jobs));
        }
        // Groups are numbered as fio numbers the processes of one run, whichever entry they are of.
        let groups = group_jobs(jobs, true);
        let [JobGroup { jobs, .. }] = groups.as_slice() else {
            let message =
                "its jobs run one after the other (`stonewall`): each is a fact of its own";
            return Err(wrong(message.to_owned()));
        };
        let reads = self.op == Op::Read;
        if jobs.first().is_some_and(|job| match reads {
            true => !job.reads(),
            false => !job.pattern.writes(),
        }) {
            let op = if reads { "reads" } else { "writes" };
            return Err(wrong(format!("its first job has no {op}")));
        }
        Ok(Fact {
            id: self.id.clone(),
            title: self.title.clone(),
            subject: self.subject.clone(),
            jobs: jobs.clone(),
            turnaround_us: self.turnaround_us,
            counted: Counted::one(reads),
            iops: self.ios as f64 / (self.runtime_ms as f64 / 1e3),
            sets: self.sets.clone(),
            source: self.source.clone(),
        })
    }
}

/// Makes the jobs of fio's options: one, or with several `--name` as many.
fn groups(options: &str) -> Result<Vec<JobGroup>, JobFileError> {
    let options: Vec<&str> = options.split_whitespace().collect();
    let file = FioJobs::from_command_line("fio", &options, &Permission::default())?.model()?;
    Ok(file.groups)
}

#[cfg(test)]
mod tests;
