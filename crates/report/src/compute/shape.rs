//! The shape of a run: what it varies, from which its charts follow.
//!
//! Jobs of a class that are alike but for one quantity (queue depth, block size, streams, the share
//! of reads, or a number in their titles) form a [`Ladder`]. Jobs of several classes that are alike
//! in all of these but met the array in different states form a [`Passage`]. Subjects that are
//! alike but for their members form a [`MemberLine`]. Other jobs are drawn as bars.

mod members;
mod numbers;
mod passage;

pub(crate) use members::{MemberLine, member_lines};
pub(crate) use passage::{Passage, event_words, passages};

use super::sync;
use super::view::{Cell, Row, View};
use numbers::{Number, numbers_of};
use raidlab_store::Operation;
use raidlab_units::grouped;

/// The fewest steps of a ladder: jobs with fewer are drawn as bars.
pub(crate) const LADDER_STEPS: usize = 3;

/// The fewest steps of a ladder of streams, whose numbers are few and whole: fewer than this are
/// drawn as bars.
const STREAM_STEPS: usize = 5;

/// The largest difference between the measured share of reads and a number in the job's title that
/// is taken for it, percent: with few requests the share is not exact.
const SHARE_MISS: f64 = 3.0;

/// A quantity in which jobs differ.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Parameter {
    /// The number of I/Os in flight of each stream.
    QueueDepth,
    /// The size of one I/O, bytes.
    BlockSize,
    /// The number of streams at a time.
    Streams,
    /// The share of reads in the requests of a mixed job, percent.
    ReadShare,
    /// A number in the title, which has `N` in its place.
    Named(String),
}

impl Parameter {
    /// The title of the parameter's axis.
    pub(crate) fn axis(&self) -> String {
        match self {
            Self::QueueDepth => "queue depth".to_owned(),
            Self::BlockSize => "block size".to_owned(),
            Self::Streams => "streams at a time".to_owned(),
            Self::ReadShare => "reads, percent of the requests".to_owned(),
            Self::Named(_) => "N".to_owned(),
        }
    }

    /// An explanation of the parameter beyond its axis.
    pub(crate) fn explanation(&self) -> String {
        match self {
            Self::Named(title) => format!("N is the number in “{title}”."),
            _ => String::new(),
        }
    }

    /// The parameter's name within a chart's title.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::QueueDepth => "queue depth",
            Self::BlockSize => "block size",
            Self::Streams => "streams",
            Self::ReadShare => "share of reads",
            Self::Named(_) => "N",
        }
    }

    /// A value in words: `queue depth 4`.
    pub(crate) fn words(&self, value: f64) -> String {
        match self {
            Self::QueueDepth => format!("queue depth {value}"),
            Self::BlockSize => format!("blocks of {}", size_words(value)),
            Self::Streams => format!("{value} streams"),
            Self::ReadShare => format!("{value}\u{a0}% reads"),
            Self::Named(_) => format!("N = {value}"),
        }
    }
}

/// A size in words: `4 KiB`, `1.5 MiB`.
pub(crate) fn size_words(bytes: f64) -> String {
    let (unit, factor) = match bytes {
        b if b < 1024.0 => ("B", 1.0),
        b if b < 1_048_576.0 => ("KiB", 1024.0),
        b if b < 1_073_741_824.0 => ("MiB", 1_048_576.0),
        _ => ("GiB", 1_073_741_824.0),
    };
    let number = (bytes / factor * 100.0).round() / 100.0;
    format!("{number}\u{a0}{unit}")
}

/// The direction of a job's requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Load {
    /// The job reads, and writes nothing.
    Read,
    /// The job writes, and reads nothing.
    Write,
    /// The job does both at once: its two rows count together.
    Mixed,
}

impl Load {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Read => "reads",
            Self::Write => "writes",
            Self::Mixed => "reads and writes",
        }
    }
}

/// A job that only reads, or only writes, or does both at once.
#[derive(Debug, Clone)]
pub(crate) struct Job<'v, 'a> {
    /// The job's row, or that of its reads and that of its writes.
    pub rows: Vec<&'v Row<'a>>,
    pub load: Load,
    /// The share of reads in its requests, percent.
    share: f64,
}

impl<'v, 'a> Job<'v, 'a> {
    fn new(rows: Vec<&'v Row<'a>>) -> Option<Self> {
        let load = match rows.as_slice() {
            [one] if one.head.op == Operation::Read => Load::Read,
            [one] if one.head.op == Operation::Write => Load::Write,
            [r, w] if (r.head.op, w.head.op) == (Operation::Read, Operation::Write) => Load::Mixed,
            _ => return None,
        };
        let share = match load {
            Load::Read => 100.0,
            Load::Write => 0.0,
            Load::Mixed => read_share(rows[0], rows[1]),
        };
        Some(Self { rows, load, share })
    }

    pub(crate) fn head(&self) -> &'v Row<'a> {
        self.rows[0]
    }

    fn value(&self, parameter: &Parameter) -> f64 {
        let head = self.head().head;
        match parameter {
            Parameter::QueueDepth => f64::from(head.queue_depth / head.streams.max(1)),
            Parameter::BlockSize => head.block_size_bytes as f64,
            Parameter::Streams => f64::from(head.streams),
            Parameter::ReadShare => self.share,
            Parameter::Named(_) => 0.0,
        }
    }

    /// A subject's figure with its band, in megabytes or operations per second; for a mixed job the
    /// sum of reads and writes.
    pub(crate) fn figure(&self, column: usize, megabytes: bool) -> Option<Figure<'a>> {
        let mut all = self
            .rows
            .iter()
            .map(|row| Some((*row, row.cells[column]?)))
            .collect::<Option<Vec<_>>>()?
            .into_iter();
        let (row, cell) = all.next()?;
        let mut sum = Figure::new(row, cell, megabytes);
        for (row, cell) in all {
            let other = Figure::new(row, cell, megabytes);
            sum.value += other.value;
            sum.band = (sum.band.0 + other.band.0, sum.band.1 + other.band.1);
            let both = sum.published.zip(other.published);
            sum.published = both.map(|(a, b)| a + b);
            sum.struck |= other.struck;
        }
        (sum.value > 0.0).then_some(sum)
    }
}

/// A figure as charts draw it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Figure<'a> {
    pub cell: Cell<'a>,
    pub value: f64,
    /// The lowest and the highest value; both `value` where the error is not known.
    pub band: (f64, f64),
    pub published: Option<f64>,
    /// Whether the audit struck out the figure.
    pub struck: bool,
}

impl<'a> Figure<'a> {
    /// A cell's figure, if it was reported; otherwise nothing is drawn.
    pub(crate) fn told(row: &Row<'_>, cell: Cell<'a>, megabytes: bool) -> Option<Self> {
        let tells = row.rate.tells(cell.m, cell.value);
        tells.then(|| Self::new(row, cell, megabytes))
    }

    /// A cell's figure, in megabytes or in operations per second.
    fn new(row: &Row<'_>, cell: Cell<'a>, megabytes: bool) -> Self {
        let block = cell.m.block_size_bytes as f64;
        let of = |value: f64| match (megabytes, row.rate.is_bytes()) {
            (true, true) => row.rate.in_megabytes(value),
            (true, false) => value * block / 1e6,
            (false, true) if block > 0.0 => row.rate.in_megabytes(value) * 1e6 / block,
            (false, _) => value,
        };
        Self {
            cell,
            value: of(cell.value),
            band: (of(cell.band.0), of(cell.band.1)),
            published: row.rate.published(cell.m).map(of),
            struck: cell.fatal || cell.at_least,
        }
    }
}

/// The share of reads in a mixed job, percent: from its title where that is near the counted share,
/// else the counted share, rounded.
fn read_share(reads: &Row<'_>, writes: &Row<'_>) -> f64 {
    let pairs = reads.cells.iter().zip(&writes.cells);
    let mut counted: Vec<f64> = pairs
        .filter_map(|(reads, writes)| {
            let (reads, writes) = ((*reads)?.m.iops, (*writes)?.m.iops);
            (reads + writes > 0.0).then(|| 100.0 * reads / (reads + writes))
        })
        .collect();
    counted.sort_by(f64::total_cmp);
    let Some(share) = counted.get(counted.len() / 2).copied() else {
        return 50.0;
    };
    let said = [&reads.head.job_title, &reads.head.job];
    let said = said.iter().flat_map(|text| numbers_of(text).1);
    let near = said
        .flat_map(|number| [number.value, 100.0 - number.value])
        .filter(|value| (0.0..=100.0).contains(value) && (value - share).abs() <= SHARE_MISS);
    near.min_by(|a, b| (a - share).abs().total_cmp(&(b - share).abs()))
        .unwrap_or(share.round())
}

/// All jobs of the main tables, in the suite's order; tools that time other operations have none.
pub(crate) fn jobs<'v, 'a>(view: &'v View<'a>) -> Vec<Job<'v, 'a>> {
    let rows: Vec<&Row<'a>> = view.main_rows().collect();
    rows.chunk_by(|a, b| a.head.sequence == b.head.sequence)
        .filter_map(|rows| {
            // The flushes of a job are another row.
            let own = rows.iter().copied();
            Job::new(own.filter(|row| row.head.op != Operation::Sync).collect())
        })
        .collect()
}

/// Jobs that differ in one quantity alone.
#[derive(Debug)]
pub(crate) struct Ladder<'v, 'a> {
    pub class: &'a str,
    pub load: Load,
    pub parameter: Parameter,
    /// The steps in the order of their values: the value, how it is written, and the job.
    pub steps: Vec<(Number, Job<'v, 'a>)>,
}

impl Ladder<'_, '_> {
    /// Whether the figures are drawn in megabytes per second: where block sizes differ, and where
    /// they are large.
    pub(crate) fn in_megabytes(&self) -> bool {
        let mut rows = self.steps.iter().flat_map(|(_, job)| &job.rows);
        self.parameter == Parameter::BlockSize || rows.any(|row| row.rate.is_bytes())
    }

    /// The value that all jobs of the ladder have in common and other ladders of the class may not:
    /// `queue depth 4`.
    pub(crate) fn fixed(&self, parameter: &Parameter) -> f64 {
        self.steps[0].1.value(parameter)
    }
}

/// The quantities that are fields of jobs, in the order of preference.
const STRUCTURED: [Parameter; 4] = [
    Parameter::QueueDepth,
    Parameter::BlockSize,
    Parameter::ReadShare,
    Parameter::Streams,
];

/// All ladders of the run, in the order of classes.
pub(crate) fn ladders<'v, 'a>(view: &'v View<'a>) -> Vec<Ladder<'v, 'a>> {
    let series = sync::series(view);
    let in_series = |job: &Job<'_, '_>| {
        let mut series = series.iter();
        series.any(|row| std::ptr::eq(*row, job.head()))
    };
    let mut all = Vec::new();
    for class in view.classes() {
        let mut own = jobs(view);
        own.retain(|job| job.head().head.class == class && !in_series(job));
        for group in by_load(own) {
            all.extend(ladders_of(class, group));
        }
    }
    all
}

/// A class's jobs by their load. Beside mixed jobs of several shares, pure ones are the ends of
/// the same ladder.
fn by_load<'v, 'a>(jobs: Vec<Job<'v, 'a>>) -> Vec<Vec<Job<'v, 'a>>> {
    let mixed = jobs.iter().filter(|job| job.load == Load::Mixed);
    let ends = mixed.count() >= 2;
    let mut groups: [Vec<Job<'_, '_>>; 3] = Default::default();
    for mut job in jobs {
        if ends {
            job.load = Load::Mixed;
        }
        groups[job.load as usize].push(job);
    }
    groups.into_iter().filter(|jobs| !jobs.is_empty()).collect()
}

/// The ladders among jobs: those of the quantity with the longest one first, then those of
/// the remaining jobs.
fn ladders_of<'v, 'a>(class: &'a str, mut left: Vec<Job<'v, 'a>>) -> Vec<Ladder<'v, 'a>> {
    let load = left[0].load;
    let mut all = Vec::new();
    let mut parameters = STRUCTURED.to_vec();
    while !parameters.is_empty() {
        let found = parameters.iter().map(|own| families(&left, own));
        let longest = |all: &Vec<Vec<usize>>| all.iter().map(Vec::len).max().unwrap_or(0);
        let mut best: Option<(usize, Vec<Vec<usize>>)> = None;
        for (place, families) in found.enumerate() {
            let more = |(_, other): &(usize, Vec<Vec<usize>>)| longest(&families) > longest(other);
            if best.as_ref().is_none_or(more) {
                best = Some((place, families));
            }
        }
        let Some((place, families)) = best else { break };
        let parameter = parameters.remove(place);
        let least = match parameter {
            Parameter::Streams => STREAM_STEPS,
            _ => LADDER_STEPS,
        };
        let long = families.into_iter().filter(|own| own.len() >= least);
        let mut taken: Vec<usize> = Vec::new();
        for family in long {
            let mut steps: Vec<(Number, Job<'_, '_>)> = family
                .iter()
                .map(|&place| (step(&parameter, &left[place]), left[place].clone()))
                .collect();
            steps.sort_by(|a, b| a.0.value.total_cmp(&b.0.value));
            all.push(Ladder {
                class,
                load,
                parameter: parameter.clone(),
                steps,
            });
            taken.extend(family);
        }
        left = without(left, &taken);
    }
    all.extend(named_ladders(class, load, &left));
    all
}

fn without<'v, 'a>(jobs: Vec<Job<'v, 'a>>, taken: &[usize]) -> Vec<Job<'v, 'a>> {
    let kept = jobs.into_iter().enumerate();
    kept.filter(|(place, _)| !taken.contains(place))
        .map(|(_, job)| job)
        .collect()
}

fn step(parameter: &Parameter, job: &Job<'_, '_>) -> Number {
    let value = job.value(parameter);
    let text = match parameter {
        Parameter::BlockSize => size_words(value),
        _ => value.to_string(),
    };
    Number { value, text }
}

/// Groups of jobs, as positions, that differ in this quantity alone; of jobs with the same
/// value the first.
fn families(jobs: &[Job<'_, '_>], parameter: &Parameter) -> Vec<Vec<usize>> {
    let others = |job: &Job<'_, '_>| -> Vec<f64> {
        let others = STRUCTURED.iter().filter(|other| *other != parameter);
        others.map(|other| job.value(other)).collect()
    };
    let alike = grouped(
        jobs.iter()
            .enumerate()
            .map(|(place, job)| (others(job), place)),
    );
    // Of jobs with the same value the first is kept.
    let steps = |group: Vec<usize>| {
        let by_value = grouped(
            group
                .into_iter()
                .map(|place| (jobs[place].value(parameter), place)),
        );
        by_value.into_iter().map(|(_, places)| places[0]).collect()
    };
    alike.into_iter().map(|(_, group)| steps(group)).collect()
}

/// Ladders of jobs that are alike in all known quantities, and whose titles (or names) differ
/// in one number.
fn named_ladders<'v, 'a>(class: &'a str, load: Load, jobs: &[Job<'v, 'a>]) -> Vec<Ladder<'v, 'a>> {
    let titled = |job: &Job<'_, '_>| job.head().head.job_title.clone();
    let named = |job: &Job<'_, '_>| job.head().head.job.clone();
    let texts: [fn(&Job<'_, '_>) -> String; 2] = [titled, named];
    let alike = |a: &Job<'_, '_>, b: &Job<'_, '_>| {
        let same = |own: &Parameter| a.value(own) == b.value(own);
        STRUCTURED.iter().all(same)
    };
    for text in texts {
        let mut all: Vec<Ladder<'_, '_>> = Vec::new();
        let mut seen: Vec<usize> = Vec::new();
        for (place, first) in jobs.iter().enumerate() {
            if seen.contains(&place) {
                continue;
            }
            let family = (place..jobs.len()).filter(|other| alike(first, &jobs[*other]));
            let family: Vec<usize> = family.collect();
            let own: Vec<String> = family.iter().map(|&own| text(&jobs[own])).collect();
            let Some((template, numbers)) = numbers::one_varies(&own) else {
                continue;
            };
            // Jobs that are merely numbered vary nothing.
            if !template.replace('N', "").contains(char::is_alphabetic) {
                continue;
            }
            let mut steps: Vec<(Number, Job<'_, '_>)> = Vec::new();
            for (number, &place) in numbers.into_iter().zip(&family) {
                let known = |(own, _): &(Number, Job<'_, '_>)| own.value == number.value;
                if !steps.iter().any(known) {
                    steps.push((number, jobs[place].clone()));
                }
            }
            if steps.len() >= LADDER_STEPS {
                steps.sort_by(|a, b| a.0.value.total_cmp(&b.0.value));
                seen.extend(family);
                all.push(Ladder {
                    class,
                    load,
                    parameter: Parameter::Named(template),
                    steps,
                });
            }
        }
        if !all.is_empty() {
            return all;
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests;
