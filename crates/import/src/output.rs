//! Output of one tool, alone in its file: one cell for what was measured at one time.

use crate::convert::{observations, rows};
use crate::groups::{did_nothing, groups};
use crate::imported::{ImportOptions, Imported, RunHead, move_cell};
use crate::surroundings::Surroundings;
use crate::{BENCH, ImportError, file_stem};
use raidlab_store::{CellResult, Measurement, MemberUse, Records, Scope};
use raidlab_tools::{Format, Part, ToolResult};
use std::collections::BTreeSet;

/// Imports a tool's output in a known format.
pub(crate) fn import(
    name: &str,
    text: &str,
    format: Format,
    options: &ImportOptions,
) -> Result<Imported, ImportError> {
    let result = (format.parse)(text).map_err(|source| ImportError::Output {
        name: name.to_owned(),
        source,
    })?;
    let tool = result.tool.name();
    let groups = groups(&result);
    let subjects = subjects(&groups, name, options);
    let suite = options.suite.clone().unwrap_or_else(|| tool.to_owned());
    let notes = notes(name, &result);
    let around = Surroundings::read(text);
    let mut imported = Imported {
        run: RunHead {
            bench: BENCH.to_owned(),
            suite_title: format!("{tool}: {}", file_stem(name)),
            suite: suite.clone(),
            source: name.to_owned(),
        },
        cells: Vec::new(),
        records: Records::default(),
        notes,
    };
    // The jobs that are not repetitions, each with its name in the output.
    let mut jobs: Vec<(String, Measurement)> = Vec::new();
    for (group, subject) in groups.iter().zip(subjects) {
        let words = result.tool.title(group);
        let label = result.tool.label(group).unwrap_or_else(|| tool.to_owned());
        let template = Measurement {
            suite: suite.clone(),
            host: options.host.clone().unwrap_or_default(),
            subject,
            filesystem: options.filesystem.clone().unwrap_or_default(),
            job: label.clone(),
            job_title: words.title,
            class: words.class,
            queue_depth: words.queue_depth,
            streams: words.streams,
            ..Measurement::blank(BENCH)
        };
        if let Some(one) = cell(group, &template, &around) {
            add(&mut imported, &mut jobs, label, template, one);
        }
    }
    if imported.cells.is_empty() {
        return Err(ImportError::Empty {
            name: name.to_owned(),
        });
    }
    imported.in_order();
    Ok(imported)
}

/// Adds a cell: a repetition of a job of the output, or another job, with the next number for its
/// name in the output.
fn add(
    imported: &mut Imported,
    jobs: &mut Vec<(String, Measurement)>,
    label: String,
    template: Measurement,
    mut one: CellResult,
) {
    let is_same =
        |(known, job): &&(String, Measurement)| *known == label && job.subject == template.subject;
    let same: Vec<_> = jobs.iter().filter(is_same).collect();
    let repeated = same.iter().find(|(_, job)| imported.repeats(&one, job));
    let (sequence, job) = match repeated {
        Some((_, job)) => (job.sequence, job.job.clone()),
        None => {
            let job = crate::numbered(&label, same.len());
            (place(jobs, &job, &template.job_title), job)
        }
    };
    move_cell(&mut one, |_| sequence);
    for row in &mut one.rows {
        row.job.clone_from(&job);
    }
    if repeated.is_none() {
        let known = Measurement {
            sequence,
            job,
            ..template
        };
        jobs.push((label, known));
    }
    imported.add(one);
}

/// The subject that each group was measured on: the one asked for; else, where the output has
/// several names, these; else the file's name.
fn subjects(groups: &[ToolResult], name: &str, options: &ImportOptions) -> Vec<String> {
    let stem = (options.subject.clone()).unwrap_or_else(|| options.file_subject(name));
    let measured = |group: &ToolResult| group.tool.measured(group);
    let names: BTreeSet<String> = groups.iter().filter_map(measured).collect();
    let are_told = options.subject.is_none() && names.len() > 1;
    let subject = |group| {
        let own = measured(group).filter(|_| are_told);
        own.unwrap_or_else(|| stem.clone())
    };
    groups.iter().map(subject).collect()
}

/// The position of a job: the one that it has on another subject, else the next.
fn place(jobs: &[(String, Measurement)], name: &str, title: &str) -> u32 {
    let mut known = jobs.iter().map(|(_, job)| job);
    let same = known.find(|job| job.job == name && job.job_title == title);
    let next = || jobs.iter().map(|(_, job)| job.sequence + 1).max();
    same.map_or_else(|| next().unwrap_or(0), |job| job.sequence)
}

/// The cell of what was measured at one time; `None` if nothing was.
fn cell(group: &ToolResult, template: &Measurement, around: &Surroundings) -> Option<CellResult> {
    let mut rows = rows(group, template);
    for row in &mut rows {
        row.members = members(group);
        around.describe(row);
    }
    let scope = Scope::of(template);
    let mut observations = observations(group, &scope);
    observations.extend(around.facts(&scope));
    (!rows.is_empty()).then(|| CellResult {
        cell: template.cell(),
        records: Records {
            observations,
            ..Records::default()
        },
        rows,
    })
}

/// Notes on what a tool printed beside its results, and on jobs that did nothing.
fn notes(name: &str, result: &ToolResult) -> Vec<String> {
    /// The number of lines that a note shows: enough to see their kind.
    const SHOWN: usize = 8;
    let tool = result.tool.name();
    let said = result.messages.iter().take(SHOWN);
    let mut notes: Vec<String> = said
        .map(|line| format!("{name}: {tool} says: {line}"))
        .collect();
    let more = result.messages.len().saturating_sub(SHOWN);
    if more > 0 {
        notes.push(format!("{name}: {tool} says {more} lines more"));
    }
    let is_told = |part: &Part| {
        let mut options = result.options.iter();
        options.any(|option| option.job == Some(part.job))
    };
    if result.tool == raidlab_tools::dd::TOOL && !result.parts.iter().all(is_told) {
        notes.push(format!(
            "{name}: dd does not tell whether it read or wrote: without its command it is taken for \
             a write"
        ));
    }
    for fact in result.facts.iter().filter(|fact| fact.name == "jobname") {
        let Some(job) = fact.job.filter(|&job| did_nothing(result, job)) else {
            continue;
        };
        let error = result.fact(Some(job), "error").map(|error| &error.value);
        if error.is_none() && result.tool == raidlab_tools::fio::TOOL {
            let job = &fact.value;
            notes.push(format!(
                "{name}: no result of job `{job}` is in it: was its end cut off?"
            ));
            continue;
        }
        let error = error.filter(|error| error.number() != Some(0.0));
        let error = error.map_or(String::new(), |error| {
            format!(", and ended with error {error}")
        });
        notes.push(format!("{name}: job `{}` did nothing{error}", fact.value));
    }
    notes
}

fn members(result: &ToolResult) -> Vec<MemberUse> {
    crate::members::members(&result.disks, &|_| String::new(), longest_ns(result))
}

fn longest_ns(result: &ToolResult) -> u64 {
    let times = result.parts.iter().filter_map(|part| part.runtime_ns);
    times.max().unwrap_or(0)
}
