//! The command `raidlab fit`: it finds a preset's parameters from the facts about its disk.

use crate::failure::{Failure, Kind};
use crate::{data, disks, output};
use clap::Args;
use indicatif::ProgressBar;
use raidlab_bench_model::presets;
use raidlab_disk::DiskParameters;
use raidlab_fit::{
    FactRow, Facts, FitError, FitOutcome, LeftOutBand, LeftOutRow, Progress, bands_file,
    left_out_bands,
};
use raidlab_lab::catalogue::read_file;
use raidlab_lab::{FileKind, LoadError, check_file};
use raidlab_store::text::visible_path;
use serde::Serialize;
use std::fmt::Write;
use std::path::PathBuf;

/// The options that say how a preset is fitted, or compared with its facts.
const OF_A_FIT: [&str; 4] = ["disk", "set", "check", "facts"];

/// Arguments of `raidlab fit`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The preset to start from, by name or path.
    #[arg(default_value = "wd4000fyyz", value_name = "PRESET|PATH")]
    disk: String,

    /// The parameter set. Default: the preset's first.
    #[arg(long, value_name = "SET")]
    set: Option<String>,

    /// Compare the preset's parameters as they are; fit nothing.
    #[arg(long)]
    check: bool,

    /// Predict disks that were not fitted, and print the errors.
    #[arg(long, conflicts_with_all = OF_A_FIT)]
    left_out: bool,

    /// With --left-out: print the bands in the form of `data/facts/bands.toml`.
    #[arg(long, requires = "left_out", conflicts_with = "json", conflicts_with_all = OF_A_FIT)]
    toml: bool,

    /// The file of facts to fit to. Default: the facts built in for the preset.
    #[arg(long, value_name = "FILE")]
    facts: Option<PathBuf>,

    /// How many virtual seconds of each fact are simulated; more is slower and less noisy.
    #[arg(long, value_name = "N", default_value_t = 60,
          value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,

    /// Seed of everything random, 0 to 2^64-1.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Print one JSON object on standard output and nothing else.
    #[arg(long)]
    json: bool,
}

/// The output of `--json`.
#[derive(Serialize)]
struct Line<'a> {
    disk: &'a str,
    set: &'a str,
    seconds: u64,
    seed: u64,
    /// The outcome of the fit; `None` where numbers were only checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    fit: Option<Fitted>,
    facts: &'a [FactRow],
}

#[derive(Serialize)]
struct Fitted {
    cost: f64,
    evaluations: u64,
    parameters: serde_json::Map<String, serde_json::Value>,
    /// The parameters that lie at an end of their range.
    at_range_ends: Vec<String>,
}

/// Fits a preset, or checks it.
///
/// # Errors
/// When a file is missing or wrong, or the set has no facts.
pub fn fit(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.left_out {
        return left_out(arguments);
    }
    let preset = presets::load(&arguments.disk)?;
    let set = disks::set(&preset, arguments.set.as_deref())?;
    let base = preset.parameters(&set).map_err(Failure::usage)?;
    let facts = facts(arguments)?;
    if !facts.sets().contains(&set) {
        let words = format!("no fact belongs to set `{set}`");
        let known = facts.sets().join(", ");
        return Err(Failure::words(Kind::Usage, words).help(format!("sets with facts: {known}")));
    }
    let (outcome, rows);
    if arguments.check {
        outcome = None;
        rows = check(arguments, &facts, &set, base)?;
    } else {
        let found = search(arguments, &facts, &set, base)?;
        rows = found.rows.clone();
        outcome = Some(found);
    }
    if arguments.json {
        return output::print(&json(arguments, &set, &rows, outcome.as_ref())?);
    }
    let mut text = table(&rows);
    for [one, other] in facts.contradictions(&set) {
        let _ = writeln!(
            text,
            "\n`{}` and `{}` are of the same load and differ by {:.0} %: no parameters give both",
            one.id,
            other.id,
            (one.iops.max(other.iops) / one.iops.min(other.iops) - 1.0) * 100.0
        );
    }
    if let Some(outcome) = &outcome {
        text.push_str(&parameters(&set, outcome));
    }
    output::print(&text)
}

/// Predicts the disks that were left out.
fn left_out(arguments: &Arguments) -> Result<(), Failure> {
    let facts = data::left_out().map_err(Failure::input)?;
    let numbers = |name: &str, set: Option<&str>| {
        let preset = presets::load(name)?;
        let set = disks::set(&preset, set)?;
        preset.parameters(&set).cloned().map_err(Failure::usage)
    };
    let drives = facts.drives().map(|name| numbers(name, None));
    let rows = facts.rows(
        &numbers(&facts.donor, Some(&facts.set))?,
        &numbers(&facts.shingled, None)?,
        &drives.collect::<Result<Vec<_>, _>>()?,
        arguments.seconds,
        arguments.seed,
    );
    let rows = rows.map_err(failed)?;
    let bands = left_out_bands(&rows);
    if arguments.toml {
        return output::print(&bands_file(&bands));
    }
    if arguments.json {
        let rows = rows.iter().map(LeftOutLine::new).collect();
        let bands = bands.iter().map(BandLine::new).collect();
        return output::print(&output::json(&LeftOutLines { rows, bands })?);
    }
    output::print(&left_out_tables(&rows, &bands))
}

fn left_out_tables(rows: &[LeftOutRow], bands: &[LeftOutBand]) -> String {
    let lines = rows.iter().map(|row| {
        vec![
            row.disk.clone(),
            row.medium.name().to_owned(),
            row.load.name().to_owned(),
            row.what.clone(),
            Short(row.measured).to_string(),
            Short(row.predicted).to_string(),
            format!("{:+.0} %", row.error_percent()),
            if row.disputed.is_empty() {
                row.source.clone()
            } else {
                format!("does not count: {}; {}", row.disputed, row.source)
            },
        ]
    });
    let head = [
        "disk", "kind", "load", "figure", "measured", "model", "error", "source",
    ];
    let mut text = output::table(&head, &[4, 5, 6], lines.collect());
    let lines = bands.iter().map(|one| {
        vec![
            one.medium.name().to_owned(),
            one.load.name().to_owned(),
            format!("{} to {}", one.band.low, one.band.high),
            format!("{}", one.band.ratio),
            one.disks.to_string(),
        ]
    });
    let head = [
        "kind",
        "load",
        "real over modelled",
        "ratio off by",
        "disks",
    ];
    text.push('\n');
    text.push_str(&output::table(&head, &[3, 4], lines.collect()));
    text
}

/// A figure with four digits at most: `72.05`, `0.529`.
struct Short(f64);

impl std::fmt::Display for Short {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let decimals = match self.0 {
            number if number >= 100.0 => 0,
            number if number >= 10.0 => 1,
            _ => 3,
        };
        write!(formatter, "{:.decimals$}", self.0)
    }
}

/// The output of `--left-out --json`.
#[derive(Serialize)]
struct LeftOutLines<'a> {
    rows: Vec<LeftOutLine<'a>>,
    bands: Vec<BandLine>,
}

#[derive(Serialize)]
struct LeftOutLine<'a> {
    disk: &'a str,
    kind: &'static str,
    load: &'static str,
    figure: &'a str,
    measured: f64,
    model: f64,
    error_percent: f64,
    disputed: &'a str,
    source: &'a str,
}

#[derive(Serialize)]
struct BandLine {
    kind: &'static str,
    load: &'static str,
    low: f64,
    high: f64,
    ratio: f64,
    disks: usize,
}

impl<'a> LeftOutLine<'a> {
    fn new(row: &'a LeftOutRow) -> Self {
        Self {
            disk: &row.disk,
            kind: row.medium.name(),
            load: row.load.name(),
            figure: &row.what,
            measured: row.measured,
            model: row.predicted,
            error_percent: row.error_percent(),
            disputed: &row.disputed,
            source: &row.source,
        }
    }
}

impl BandLine {
    fn new(one: &LeftOutBand) -> Self {
        Self {
            kind: one.medium.name(),
            load: one.load.name(),
            low: one.band.low,
            high: one.band.high,
            ratio: one.band.ratio,
            disks: one.disks,
        }
    }
}

fn facts(arguments: &Arguments) -> Result<Facts, Failure> {
    if let Some(path) = &arguments.facts {
        let text = read_file(path)?;
        let name = visible_path(path);
        check_file(FileKind::FitFacts, &name, &text).map_err(LoadError::from)?;
        return Facts::parse(&name, &text).map_err(Failure::input);
    }
    let disk = &arguments.disk;
    let Some(text) = data::facts(disk) else {
        let words = format!("no facts are built in for `{}`", arguments.disk);
        return Err(Failure::words(Kind::Usage, words).help("name a file: --facts FILE"));
    };
    let name = format!("facts/{disk}.toml (built in)");
    Facts::parse(&name, text).map_err(Failure::input)
}

/// The failure of a fit that could not be made.
fn failed(error: FitError) -> Failure {
    let kind = match error {
        FitError::NoFacts { .. } => Kind::Usage,
        _ => Kind::Run,
    };
    Failure::new(kind, error)
}

fn check(
    arguments: &Arguments,
    facts: &Facts,
    set: &str,
    base: &DiskParameters,
) -> Result<Vec<FactRow>, Failure> {
    let spinner = ProgressBar::new_spinner().with_message("simulating the facts");
    spinner.enable_steady_tick(std::time::Duration::from_millis(100));
    let rows = raidlab_fit::check(facts, set, base, arguments.seconds, arguments.seed);
    spinner.finish_and_clear();
    rows.map_err(failed)
}

fn search(
    arguments: &Arguments,
    facts: &Facts,
    set: &str,
    base: &DiskParameters,
) -> Result<FitOutcome, Failure> {
    let template = "fit {bar:30} {pos}/{len} evaluations, about {eta} left, {msg}";
    let bar = output::bar(0, template);
    let progress = |progress: Progress| {
        // The number of evaluations to come is an estimate.
        bar.set_length(progress.expected.max(progress.evaluations));
        bar.set_position(progress.evaluations);
        bar.set_message(format!("least cost {:.2}", progress.best));
    };
    let (seconds, seed) = (arguments.seconds, arguments.seed);
    let outcome = raidlab_fit::fit(facts, set, base, seconds, seed, &progress);
    bar.finish_and_clear();
    outcome.map_err(failed)
}

fn table(rows: &[FactRow]) -> String {
    let lines = rows.iter().map(|row| {
        vec![
            row.id.clone(),
            row.title.clone(),
            format!("{:.2}", row.measured),
            format!("{:.2}", row.fitted),
            row.unit.to_owned(),
            format!("{:+.1} %", row.error_percent),
            if row.used { "yes" } else { "no" }.to_owned(),
            row.source.clone(),
        ]
    });
    let head = [
        "fact", "title", "measured", "model", "unit", "error", "used", "source",
    ];
    output::table(&head, &[2, 3, 5], lines.collect())
}

/// The parameters as lines for a preset's file.
fn parameters(set: &str, outcome: &FitOutcome) -> String {
    let mut text = format!(
        "\ncost {:.3} after {} evaluations (squared errors, in percent or tolerances)\n\n\
         [set.{set}.parameters]\n",
        outcome.cost, outcome.evaluations
    );
    for (name, value) in &outcome.parameters {
        let _ = writeln!(
            text,
            "{name} = {{ value = {value:?}, basis = \"fitted\", source = \"raidlab fit\" }}"
        );
    }
    if !outcome.at_ends.is_empty() {
        let _ = writeln!(
            text,
            "\nat an end of its range, beyond which the facts may want it: {}",
            outcome.at_ends.join(", ")
        );
    }
    text
}

fn json(
    arguments: &Arguments,
    set: &str,
    rows: &[FactRow],
    outcome: Option<&FitOutcome>,
) -> Result<String, Failure> {
    let line = Line {
        disk: &arguments.disk,
        set,
        seconds: arguments.seconds,
        seed: arguments.seed,
        fit: outcome.map(|outcome| Fitted {
            cost: outcome.cost,
            evaluations: outcome.evaluations,
            parameters: outcome
                .parameters
                .iter()
                .map(|(name, value)| (name.clone(), (*value).into()))
                .collect(),
            at_range_ends: outcome.at_ends.clone(),
        }),
        facts: rows,
    };
    output::json(&line)
}
