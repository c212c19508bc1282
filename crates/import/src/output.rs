//! Output of one tool, alone in its file: a cell for all that was measured at one time.

use crate::convert::{observations, rows};
use crate::groups::{did_nothing, groups};
use crate::imported::{ImportOptions, Imported, RunHead};
use crate::surroundings::Surroundings;
use crate::{BENCH, ImportError, file_stem};
use raidlab_store::{CellResult, Measurement, MemberUse, Records, Scope};
use raidlab_tools::{Format, ToolResult};

/// Imports a tool's output of a known form.
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
    let subject = options.subject.clone().unwrap_or_else(|| file_stem(name));
    let suite = options.suite.clone().unwrap_or_else(|| tool.to_owned());
    let notes = notes(name, &result);
    let around = Surroundings::read(text);
    let mut cells: Vec<CellResult> = Vec::new();
    let mut labels: Vec<String> = Vec::new();
    for group in groups(&result) {
        let words = result.tool.title(&group);
        let sequence = u32::try_from(cells.len()).unwrap_or(u32::MAX);
        let name_of_job = result.tool.label(&group).unwrap_or_else(|| tool.to_owned());
        let same = labels.iter().filter(|known| **known == name_of_job).count();
        labels.push(name_of_job.clone());
        let template = Measurement {
            suite: suite.clone(),
            host: options.host.clone().unwrap_or_default(),
            subject: subject.clone(),
            filesystem: options.filesystem.clone().unwrap_or_default(),
            sequence,
            job: crate::numbered(&name_of_job, same),
            job_title: words.title,
            class: words.class,
            queue_depth: words.queue_depth,
            streams: words.streams,
            ..Measurement::blank(BENCH)
        };
        cells.extend(cell(&group, &template, &around));
    }
    if cells.is_empty() {
        return Err(ImportError::Empty {
            name: name.to_owned(),
        });
    }
    Ok(Imported {
        run: RunHead {
            bench: BENCH.to_owned(),
            suite_title: format!("{tool}: {}", file_stem(name)),
            suite,
            source: name.to_owned(),
        },
        cells,
        records: Records::default(),
        notes,
    })
}

/// What was measured at one time; `None` if nothing was.
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

/// What a tool says beside its results, and which of its jobs did nothing.
fn notes(name: &str, result: &ToolResult) -> Vec<String> {
    /// Enough to see what kind of lines they are.
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
