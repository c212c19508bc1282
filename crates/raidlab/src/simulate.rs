//! The command `raidlab simulate`: it does fault simulation of raidlab's own array.

mod parts;

use crate::failure::{Failure, Kind};
use crate::{interrupt, output};
use clap::Args;
use raidlab_array::Level;
use raidlab_faults::exhaustive::{Enumerated, Small};
use raidlab_faults::{Filter, Reach, State, Statistics, explain, run_seeds};
use raidlab_runs::values::time;
use raidlab_store::Shard;
use raidlab_units::count;
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The number of seeds between two looks whether to stop.
const BATCH: u64 = 500;
/// The number of runs that shrinking a failing script may take.
const SHRINKING: usize = 600;
/// The number of failing seeds that are reported.
const TOLD: usize = 20;
/// The heading above options for many machines.
const MANY: &str = "On many machines";
/// The commit that this program was made of.
const COMMIT: &str = env!("RAIDLAB_COMMIT");

/// Options whose work is not cut into shards.
const NO_SHARD: [&str; 4] = ["replay", "exhaustive", "reach", "merge"];

/// Arguments of `raidlab simulate`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// How many seeds to run.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,

    /// The first seed.
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    from: u64,

    /// Only arrays of this level.
    #[arg(long)]
    level: Option<Level>,

    /// Give arrays a bitmap (true) or none (false). RAID 0 and linear never have one.
    #[arg(long, value_name = "BOOL")]
    bitmap: Option<bool>,

    /// Give arrays of levels with parity a log (true) or none (false); others have none.
    #[arg(long, value_name = "BOOL")]
    log: Option<bool>,

    /// Only runs with more faults than the level can bear (true), in which loss must
    /// be reported and never hidden; or only the other runs (false).
    #[arg(long, value_name = "BOOL")]
    over_budget: Option<bool>,

    /// Add faults of the driver between the array and its disks: reads and writes that
    /// move fewer bytes than asked or are interrupted, members that answer after their
    /// time limit, and several commands that end before the driver looks.
    #[arg(long, conflicts_with = "exhaustive")]
    driver: bool,

    /// Also show how often each thing that can happen (a request, a fault, a command, a
    /// crash) happened in each state of the array, and what never happened there.
    #[arg(long, conflicts_with_all = ["replay", "exhaustive"])]
    reach: bool,

    /// Run only this seed. If it breaks a promise, show the smallest script that still
    /// breaks it, and every event.
    #[arg(long, value_name = "SEED", conflicts_with_all = ["seeds", "from"])]
    replay: Option<u64>,

    /// Cut the power at every event of every short script on small arrays, with
    /// every landing of the writes, and lose every set of members that the level
    /// can bear. `--level`, `--log` and `--bitmap` choose among the arrays.
    #[arg(long, conflicts_with_all = ["seeds", "from", "replay", "over_budget"])]
    exhaustive: bool,

    /// Run only one part of the seeds: number I, from 0, of N. What was counted goes into
    /// the file `simulate-I-of-N.json`, which is there when the part is whole, and not
    /// before. Started again, a part goes on, and a whole one does nothing.
    #[arg(
        long,
        value_name = "I/N",
        help_heading = MANY,
        conflicts_with_all = NO_SHARD
    )]
    shard: Option<Shard>,

    /// The folder for that file.
    #[arg(long, value_name = "FOLDER", help_heading = MANY, requires = "shard", conflicts_with_all = NO_SHARD, default_value = ".")]
    shard_folder: PathBuf,

    /// Stop after this time, such as `55m`. What is finished is kept, and exit code 75 says
    /// that the part is to be started again.
    #[arg(long, value_name = "TIME", help_heading = MANY, requires = "shard", conflicts_with_all = NO_SHARD, value_parser = time)]
    stop_after: Option<Duration>,

    /// Merge the parts in these files, and show what one machine would have counted. With
    /// `--reach` its table is shown too.
    #[arg(
        long,
        value_name = "FILE",
        num_args = 1..,
        help_heading = MANY,
        conflicts_with_all = [
            "seeds", "from", "level", "bitmap", "log", "over_budget", "driver", "replay",
            "exhaustive", "shard"
        ]
    )]
    merge: Vec<PathBuf>,
}

/// Breaks raidlab's own array in virtual time, and reports the findings.
///
/// # Errors
/// When a promise was broken, or it was interrupted.
pub fn command(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.from.checked_add(arguments.seeds).is_none() {
        let words = format!(
            "there are no {} seeds from {} on",
            arguments.seeds, arguments.from
        );
        let help = format!("the last seed is {}", u64::MAX - 1);
        return Err(Failure::words(Kind::Usage, words).help(help));
    }
    refuse_what_the_level_lacks(arguments)?;
    // A panic of the core is a finding of its seed, which tells it.
    std::panic::set_hook(Box::new(|_| {}));
    let filter = Filter {
        level: arguments.level,
        over_budget: arguments.over_budget,
        log: arguments.log,
        bitmap: arguments.bitmap,
        driver: arguments.driver,
    };
    if !arguments.merge.is_empty() {
        return parts::merge(&arguments.merge, arguments.reach);
    }
    if let Some(shard) = arguments.shard {
        return parts::run(arguments, &filter, shard);
    }
    let stop = interrupt::listen()?;
    if arguments.exhaustive {
        return exhaustive(&filter, stop);
    }
    match arguments.replay {
        Some(seed) => replay(&filter, seed),
        None => many(arguments, &filter, stop),
    }
}

/// Refuses a bitmap or a log for a level whose arrays never have one.
fn refuse_what_the_level_lacks(arguments: &Arguments) -> Result<(), Failure> {
    let Some(level) = arguments.level else {
        return Ok(());
    };
    let has_redundancy = !matches!(level, Level::Raid0 | Level::Linear);
    let options = [
        ("--bitmap true", arguments.bitmap, has_redundancy),
        ("--log true", arguments.log, level.parity_count() > 0),
    ];
    match options
        .iter()
        .find(|(_, asked, has)| *asked == Some(true) && !has)
    {
        Some((option, ..)) => {
            let words = format!("`{option}` cannot be had with `--level {level}`");
            let help = "RAID 0 and linear have no bitmap, and only RAID 4, 5 and 6 have a log";
            Err(Failure::words(Kind::Usage, words).help(help))
        }
        None => Ok(()),
    }
}

fn replay(filter: &Filter, seed: u64) -> Result<(), Failure> {
    match explain(filter, seed, COMMIT, SHRINKING) {
        None => output::print(&format!("seed {seed}: every promise was kept\n")),
        Some(failure) => {
            output::print(&format!("{failure}\n"))?;
            Err(Failure::words(
                Kind::Run,
                format!("seed {seed} breaks a promise"),
            ))
        }
    }
}

fn many(arguments: &Arguments, filter: &Filter, stop: &AtomicBool) -> Result<(), Failure> {
    let begun = Instant::now();
    let end = arguments.from.saturating_add(arguments.seeds);
    let (mut at, mut all, mut broken) = (arguments.from, Statistics::default(), Vec::new());
    while at < end && !stop.load(Ordering::Relaxed) {
        let next = end.min(at.saturating_add(BATCH));
        let summary = run_seeds(filter, at..next);
        all.add(&summary.statistics);
        for (seed, violation) in summary.failures {
            if broken.len() < TOLD {
                output::print(&format!("seed {seed}: {violation}\n"))?;
            }
            broken.push(seed);
        }
        at = next;
    }
    let counted = Counted {
        from: arguments.from,
        at,
        statistics: &all,
        broken: &broken,
        options: &options(arguments),
    };
    let seconds = format!("; {:.0} s", begun.elapsed().as_secs_f64());
    counted.print(arguments.reach, &seconds)?;
    if at < end {
        let ran = at - arguments.from;
        let words = format!("interrupted after {ran} seeds, none of which broke a promise");
        return Err(Failure::words(Kind::Interrupted, words));
    }
    Ok(())
}

/// The counts over many seeds, as they are printed.
struct Counted<'a> {
    /// The first seed.
    from: u64,
    /// The seed behind the last one.
    at: u64,
    statistics: &'a Statistics,
    broken: &'a [u64],
    /// The options without which a seed is another run.
    options: &'a str,
}

impl Counted<'_> {
    /// Prints the counts, followed by `more`.
    ///
    /// # Errors
    /// When a promise was broken.
    fn print(&self, with_reach: bool, more: &str) -> Result<(), Failure> {
        let mut text = match with_reach {
            true => reach(&self.statistics.reach),
            false => String::new(),
        };
        text.push_str(&self.statistics.to_string());
        let (from, at, broken) = (self.from, self.at, self.broken.len());
        let _ = writeln!(
            text,
            "\ncommit {COMMIT}: {broken} of {} seeds ({from}..{at}) broke a promise{more}",
            at - from,
        );
        output::print(&text)?;
        let Some(seed) = self.broken.first() else {
            return Ok(());
        };
        let help = again(self.options, *seed);
        Err(Failure::words(Kind::Run, broke(broken)).help(help))
    }
}

/// The sentence that so many seeds broke a promise.
fn broke(seeds: usize) -> String {
    format!("{} broke a promise", count(seeds, "seed", "seeds"))
}

/// The command to type to see what a seed broke.
fn again(options: &str, seed: u64) -> String {
    format!("`raidlab simulate{options} --replay {seed}` shows one")
}

/// A table of how often each deed met each state, and the pairs that never met.
fn reach(reach: &Reach) -> String {
    let mut head = vec!["deed", "times"];
    head.extend(State::ALL.map(State::name));
    let right: Vec<usize> = (1..head.len()).collect();
    let rows = reach.deeds().map(|(deed, met)| {
        let mut row = vec![deed.to_owned(), met.times.to_string()];
        row.extend(State::ALL.map(|state| match met.states(state) {
            0 => "-".to_owned(),
            times => times.to_string(),
        }));
        row
    });
    let mut text = output::table(&head, &right, rows.collect());
    for (deed, met) in reach.deeds() {
        let never = State::ALL.into_iter().filter(|it| met.states(*it) == 0);
        let never: Vec<&str> = never.map(State::name).collect();
        if !never.is_empty() {
            let _ = writeln!(text, "{deed} never met: {}", never.join(", "));
        }
    }
    text
}

/// The options without which a seed is another run.
fn options(arguments: &Arguments) -> String {
    let mut text = String::new();
    if let Some(level) = arguments.level {
        let _ = write!(text, " --level {level}");
    }
    let flags = [
        ("bitmap", arguments.bitmap),
        ("log", arguments.log),
        ("over-budget", arguments.over_budget),
    ];
    for (name, value) in flags {
        if let Some(value) = value {
            let _ = write!(text, " --{name} {value}");
        }
    }
    if arguments.driver {
        text.push_str(" --driver");
    }
    text
}

/// The scripts of one small array.
struct Row {
    array: &'static str,
    /// The number of the array's scripts, and the number that have run.
    scripts: usize,
    ran: usize,
    sum: Enumerated,
}

fn exhaustive(filter: &Filter, stop: &AtomicBool) -> Result<(), Failure> {
    let all = Small::all(filter);
    if all.is_empty() {
        let words = "none of the small arrays is one of these".to_owned();
        let help = "there are RAID 5 and 6 with and without a log, RAID 1 and 10";
        return Err(Failure::words(Kind::Usage, words).help(help.to_owned()));
    }
    let mut rows: Vec<Row> = Vec::new();
    let (mut first, mut interrupted) = (None, false);
    for small in all {
        let known = rows.iter().position(|row| row.array == small.name);
        let at = known.unwrap_or_else(|| {
            rows.push(Row {
                array: small.name,
                scripts: 0,
                ran: 0,
                sum: Enumerated::default(),
            });
            rows.len() - 1
        });
        let row = &mut rows[at];
        row.scripts += 1;
        interrupted |= stop.load(Ordering::Relaxed);
        if interrupted {
            continue;
        }
        let enumerated = small.enumerate();
        if let Some((place, violation)) = &enumerated.violation {
            let actions: Vec<_> = small.script.iter().map(|step| step.action).collect();
            let words = format!("{}, {actions:?}: {place}: {violation}", small.name);
            first.get_or_insert(words);
        }
        row.sum = std::mem::take(&mut row.sum).with(enumerated);
        row.ran += 1;
    }
    output::print(&enumeration(&rows))?;
    match first {
        Some(words) => Err(Failure::words(Kind::Run, words)),
        None if interrupted => {
            let words = "interrupted; no promise was broken until then".to_owned();
            Err(Failure::words(Kind::Interrupted, words))
        }
        None => Ok(()),
    }
}

fn enumeration(rows: &[Row]) -> String {
    let cells = rows.iter().map(|row| {
        let verdict = match (&row.sum.violation, row.ran) {
            (Some(_), _) => "broken",
            (None, 0) => "-",
            (None, _) => "kept",
        };
        vec![
            row.array.to_owned(),
            format!("{} of {}", row.ran, row.scripts),
            row.sum.crash_points.to_string(),
            row.sum.cases.to_string(),
            verdict.to_owned(),
        ]
    });
    let head = ["array", "scripts", "crash points", "cases", "promises"];
    output::table(&head, &[1, 2, 3], cells.collect())
}
