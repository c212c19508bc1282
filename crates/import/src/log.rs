//! Logs of a shell script: fio's text for people among what other programs
//! print, as the 2015 comparisons published them.
//!
//! The log is cut into fio's runs and the gaps between them. Gaps are searched for looks at the
//! array (mdstat, lists of gmirror and gflash, `zpool status`), and for output about the machine. A
//! look stands at the time of the job that follows it. Between two equal looks nothing is taken to
//! have changed; otherwise what lies between them stays unknown. A member that vanishes from one
//! look to the next was removed, one that is being rebuilt was inserted.
//!
//! Where every job has a name of the 2015 comparison of mirrors (`9_4rr4k`, and `sr` for streams),
//! the jobs are those of its suite, and what its scripts did is added: options, commands, settings
//! asked for. The scripts ignored exit codes, which the logs do not have: they are recorded as 0.

mod cell;
mod look;
mod machine;
mod records;
mod scripts;
#[cfg(test)]
mod tests;

use crate::figures::misread;
use crate::groups::groups;
use crate::imported::{ImportOptions, Imported, RunHead};
use crate::suite::{Job, Suite};
use crate::{BENCH, ImportError, file_stem};
use jiff::civil::DateTime;
pub(crate) use look::{Look, looks};
use machine::Machine;
use raidlab_store::Scope;
use raidlab_tools::ToolResult;
use scripts::Script;
use std::ops::Range;

/// Whether a text is a log rather than the output of one run of fio: it has several runs, or lines
/// that fio does not print.
pub(crate) fn is_log(text: &str) -> bool {
    raidlab_tools::fio::human::find_all(text).len() > 1
        || text.lines().any(|line| {
            ["Personalities", "Geom name:", "  pool: "]
                .iter()
                .any(|begin| line.starts_with(begin))
        })
}

/// Imports a log.
pub(crate) fn import(
    name: &str,
    text: &str,
    options: &ImportOptions,
) -> Result<Imported, ImportError> {
    let file = name.rsplit(['/', '\\']).next().unwrap_or(name);
    let broken = |error| misread("built-in", "", &error);
    let suite = Suite::mirror_2015().map_err(broken)?;
    let log = Log::read(text, &suite);
    if log.runs.is_empty() {
        return Err(ImportError::Empty {
            name: name.to_owned(),
        });
    }
    let subject = options.subject.clone().unwrap_or_else(|| log.subject(name));
    let script = if log.is_2015() {
        Script::of(&log.subject(name)).map_err(broken)?
    } else {
        None
    };
    let head = if log.is_2015() && options.suite.is_none() {
        (suite.name.clone(), suite.title.clone())
    } else {
        let suite = options.suite.clone().unwrap_or_else(|| "fio".to_owned());
        (suite, format!("fio: {}", file_stem(name)))
    };
    let source = match &script {
        Some(_) => format!("{file}, of geomflash/geomflash on GitHub, May 2015"),
        None => file.to_owned(),
    };
    let context = Context {
        log: &log,
        script: script.as_ref(),
        scope: options.scope(&subject),
        filesystem: options.filesystem.clone().unwrap_or_default(),
        suite: head.0.clone(),
        source: file.to_owned(),
    };
    let mut imported = Imported {
        run: RunHead {
            bench: BENCH.to_owned(),
            suite: head.0,
            suite_title: head.1,
            source,
        },
        cells: Vec::new(),
        records: context.records(),
        notes: log.notes(file),
    };
    // A job that ran again is a repetition.
    for index in 0..log.runs.len() {
        imported.add(context.cell(index));
    }
    Ok(imported)
}

/// The results that one run of fio in the log measured at one time.
struct Run {
    lines: Range<usize>,
    result: ToolResult,
    /// The run's job in the suite of the 2015 comparison.
    job: Option<Job>,
    ended: Option<DateTime>,
    took_ns: u64,
}

impl Run {
    /// The results of a run of fio, for each of its groups: these ran one after the other, and fio
    /// prints the time of its end beside all of them.
    fn of_groups(
        lines: &[&str],
        range: &Range<usize>,
        result: &ToolResult,
        suite: &Suite,
    ) -> Vec<Self> {
        let mut ended = lines[range.clone()].iter().find_map(|line| {
            let (_, date) = line.split_once(": pid=")?.1.split_once(": ")?;
            self::date(date)
        });
        let mut runs = Vec::new();
        for result in groups(result).into_iter().rev() {
            let took = result.parts.iter().filter_map(|part| part.runtime_ns).max();
            let took_ns = took.unwrap_or(0);
            runs.push(Self {
                job: job_of(&result, suite),
                ended,
                took_ns,
                lines: range.clone(),
                result,
            });
            ended = ended.map(|ended| before(ended, took_ns));
        }
        runs.reverse();
        runs
    }
}

/// A log, split into runs and the gaps between them.
struct Log {
    runs: Vec<Run>,
    /// The looks at the array before each run and after the last.
    looks: Vec<Vec<Look>>,
    machine: Machine,
    /// The members in the order of slots, as far as any look shows them.
    members: Vec<String>,
    began: Option<DateTime>,
    /// The runs without a result, and why.
    failed: Vec<String>,
}

impl Log {
    fn read(text: &str, suite: &Suite) -> Self {
        let lines: Vec<&str> = text
            .lines()
            .map(|line| line.trim_end_matches('\r'))
            .collect();
        let mut failed = Vec::new();
        let mut runs = Vec::new();
        for (range, result) in raidlab_tools::fio::human::find_all(text) {
            if result.parts.is_empty() {
                let why = result.messages.first().map_or("no result", String::as_str);
                failed.push(format!("line {}: {why}", range.start + 1));
                continue;
            }
            runs.extend(Run::of_groups(&lines, &range, &result, suite));
        }
        let starts = runs.iter().map(|run| run.lines.start).chain([lines.len()]);
        let ends = [0].into_iter().chain(runs.iter().map(|run| run.lines.end));
        let mut machine = Machine::default();
        let mut looks_before = Vec::new();
        let mut began = None;
        for (end, start) in ends.zip(starts) {
            let gap = lines.get(end..start).unwrap_or_default();
            machine.read(gap);
            looks_before.push(looks(gap));
            if end == 0 {
                began = gap.iter().rev().find_map(|line| date(line));
            }
        }
        let mut members: Vec<String> = looks_before
            .iter()
            .flatten()
            .flat_map(|look| look.in_sync.iter().chain(&look.syncing))
            .cloned()
            .collect();
        members.sort();
        members.dedup();
        let first = runs.first().and_then(|run| Some((run.ended?, run.took_ns)));
        let began = began.or_else(|| first.map(|(ended, took)| before(ended, took)));
        Self {
            runs,
            looks: looks_before,
            machine,
            members,
            began,
            failed,
        }
    }

    /// Whether all jobs are of the 2015 comparison.
    fn is_2015(&self) -> bool {
        self.runs.iter().all(|run| run.job.is_some())
    }

    fn subject(&self, name: &str) -> String {
        let look = self.looks.iter().flatten().next();
        let stem = file_stem(name);
        look.map_or_else(
            || stem.strip_prefix("test_").unwrap_or(&stem).to_owned(),
            |look| look.system.to_owned(),
        )
    }

    /// The start of a run, nanoseconds since the log began; 0 where it prints no times.
    fn started_ns(&self, index: usize) -> u64 {
        let run = &self.runs[index];
        let began = self.began.zip(run.ended);
        began.map_or(0, |(began, ended)| {
            since(began, ended).saturating_sub(run.took_ns)
        })
    }

    fn ended_ns(&self, index: usize) -> u64 {
        self.started_ns(index)
            .saturating_add(self.runs[index].took_ns)
    }

    /// The looks with their times: right before the run that follows, one second apart, or at the
    /// end of the last run.
    fn timed_looks(&self) -> Vec<(u64, &Look)> {
        const SECOND_NS: u64 = 1_000_000_000;
        let mut all = Vec::new();
        for (gap, looks) in self.looks.iter().enumerate() {
            let last = self.runs.len().saturating_sub(1);
            for (place, look) in looks.iter().enumerate() {
                let at = if gap < self.runs.len() {
                    let back = (looks.len() - 1 - place) as u64;
                    let earliest = gap.checked_sub(1).map_or(0, |before| self.ended_ns(before));
                    let at = self.started_ns(gap).saturating_sub(back * SECOND_NS);
                    at.max(earliest)
                } else {
                    self.ended_ns(last)
                };
                all.push((at, look));
            }
        }
        all
    }

    /// The last look before a run and the first after it, each with whether it was taken in the gap
    /// next to the run.
    fn around(&self, index: usize) -> [(Option<&Look>, bool); 2] {
        let (before, after) = self.looks.split_at(index + 1);
        let near = |gap: Option<&Vec<Look>>| gap.is_some_and(|looks| !looks.is_empty());
        [
            (before.iter().flatten().last(), near(before.last())),
            (after.iter().flatten().next(), near(after.first())),
        ]
    }

    fn notes(&self, name: &str) -> Vec<String> {
        /// The number of lines that a note shows: enough to see their kind.
        const SHOWN: usize = 5;
        let failed = self.failed.iter().map(|why| format!("{name}: {why}"));
        let unknown = &self.machine.unknown;
        let shown = unknown.iter().take(SHOWN);
        let shown = shown.map(|line| format!("{name}: not understood: `{}`", short(line)));
        let more = unknown.len().saturating_sub(SHOWN);
        let more = (more > 0).then(|| format!("{name}: {more} more kinds of lines not understood"));
        failed.chain(shown).chain(more).collect()
    }
}

/// The data that all cells of a log have in common.
struct Context<'a> {
    log: &'a Log,
    script: Option<&'a Script>,
    scope: Scope,
    filesystem: String,
    suite: String,
    source: String,
}

/// The suite's job of a run: by the number before its name, or by the number of streams in a run
/// called `sr`; pattern and block size must agree.
fn job_of(result: &ToolResult, suite: &Suite) -> Option<Job> {
    let label = &result.parts.first()?.label;
    let job = match label.split_once('_') {
        Some((number, _)) => suite.job(number)?,
        None if label == "sr" => {
            let streams = result.tool.title(result).streams;
            let mut jobs = suite.jobs.iter();
            jobs.find(|job| job.is_file && u32::try_from(job.streams.len()) == Ok(streams))?
        }
        None => return None,
    };
    let pattern = result.facts.iter().find(|fact| fact.name == "rw")?;
    let block = raidlab_units::parse_bytes(job.option("bs")?).ok()?;
    let same_block = result.parts.first()?.block_size_bytes == Some(block.0);
    (same_block && Some(pattern.value.to_string().as_str()) == job.option("rw"))
        .then(|| job.clone())
}

/// Parses `Thu Apr 9 07:07:41 EDT 2015`, with a time zone or without. All compared times are of one
/// log, so the zone is left out.
fn date(line: &str) -> Option<DateTime> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let words = match words[..] {
        [weekday, month, day, time, year] => [weekday, month, day, time, year],
        [weekday, month, day, time, _, year] => [weekday, month, day, time, year],
        _ => return None,
    };
    DateTime::strptime("%a %b %d %H:%M:%S %Y", words.join(" ")).ok()
}

fn since(from: DateTime, to: DateTime) -> u64 {
    u64::try_from(to.duration_since(from).as_nanos()).unwrap_or(0)
}

fn before(time: DateTime, by_ns: u64) -> DateTime {
    let by = jiff::SignedDuration::from_nanos(i64::try_from(by_ns).unwrap_or(i64::MAX));
    time.checked_sub(by).unwrap_or(time)
}

fn short(line: &str) -> String {
    line.chars().take(60).collect()
}
