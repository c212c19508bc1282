//! The parts of a simulation on many machines: each runs a part of the seeds and writes down its
//! counts; together the counts are those that one machine would have.

use super::{Arguments, COMMIT, Counted, TOLD, again, broke, options};
use crate::failure::{Failure, Kind};
use crate::{interrupt, output};
use raidlab_faults::{Filter, Part, PartError, Simulation, run_seeds};
use raidlab_runs::typed::in_shell;
use raidlab_store::output::{Format, write};
use raidlab_store::text::visible_path;
use raidlab_store::{Shard, read_bytes};
use raidlab_units::{FNV_BASIS, count, fnv1a, text_of};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The number of seeds between two looks whether to stop: a program that is told to
/// stop has seconds.
const BATCH: u64 = 50;
/// The number of broken seeds that a part mentions by name.
const NAMED: usize = 5;
/// The longest time between two savings of the counts.
const KEPT_EVERY: Duration = Duration::from_secs(5);

/// The largest size of a part, in bytes: parts have counts, and seeds that broke a promise.
const LONGEST: u64 = 64 << 20;

/// The text in a file between the part and its digest. The digest reveals a number that has
/// changed, and the file is JSON all the same.
const DIGEST: &str = ",\n  \"fnv1a\": \"";

/// The error that a file is no part.
#[derive(Debug, thiserror::Error)]
enum Unreadable {
    #[error("cannot read {}", visible_path(.0))]
    Read(PathBuf, #[source] io::Error),
    #[error("{} is not a part of a simulation", visible_path(.0))]
    Form(PathBuf, #[source] serde_json::Error),
    #[error("{} is not a part of a simulation", visible_path(.0))]
    None(PathBuf),
    #[error("{} is damaged: it does not have the numbers that were written", visible_path(.0))]
    Damaged(PathBuf),
}

/// Runs a part of the seeds, or what is left of it.
///
/// # Errors
/// When it was stopped before its end, or its file cannot be written.
pub fn run(arguments: &Arguments, filter: &Filter, shard: Shard) -> Result<(), Failure> {
    let stop = interrupt::listen_until(arguments.stop_after)?;
    let of = Simulation {
        commit: COMMIT.to_owned(),
        options: options(arguments),
        from: arguments.from,
        seeds: arguments.seeds,
    };
    let file = arguments.shard_folder.join(file_name(shard));
    let unfinished = file.with_extension("json.part");
    let new = Part::new(of, shard.index(), shard.count().get());
    if let Some(part) = there(&file, &new)? {
        forget(&unfinished)?;
        return told(&part, shard, &file, "is whole already");
    }
    let mut part = there(&unfinished, &new)?.unwrap_or(new);
    let end = part.seeds().end;
    let mut kept = Instant::now();
    while part.at < end && !stop.load(Ordering::Relaxed) {
        let next = end.min(part.at.saturating_add(BATCH));
        part.add(run_seeds(filter, part.at..next), next);
        if kept.elapsed() >= KEPT_EVERY {
            keep(&unfinished, &part)?;
            kept = Instant::now();
        }
    }
    if !part.is_whole() {
        keep(&unfinished, &part)?;
        if let Some(words) = warning(&part) {
            output::say(&words);
        }
        let words = format!(
            "part {shard} was stopped before its end, at seed {}; what it has counted is kept in {}",
            part.at,
            visible_path(&unfinished)
        );
        let help = "start it again with the same command; it goes on";
        return Err(Failure::words(Kind::StartAgain, words).help(help));
    }
    keep(&file, &part)?;
    forget(&unfinished)?;
    told(&part, shard, &file, "is whole")
}

/// Removes the unfinished state of a part that is whole now.
fn forget(unfinished: &Path) -> Result<(), Failure> {
    match fs::remove_file(unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Failure::write_file(unfinished, error))
        }
        _ => Ok(()),
    }
}

/// Says that a part is whole. Broken promises are no reason to run it again, so they are no failure
/// yet. The message stands at the end of the part's log, where it is not missed.
fn told(part: &Part, shard: Shard, file: &Path, how: &str) -> Result<(), Failure> {
    let broken = part.broken.len();
    output::say(&format!(
        "part {shard} {how}, {broken} of {} seeds broke a promise: {}",
        part.seeds().end - part.seeds().start,
        visible_path(file)
    ));
    if let Some(words) = warning(part) {
        output::say(&words);
    }
    Ok(())
}

/// The warning that seeds broke a promise, with the first of them by name, and how one
/// is seen again.
fn warning(part: &Part) -> Option<String> {
    let (first, _) = part.broken.first()?;
    let named = part.broken.iter().take(NAMED);
    let named: Vec<String> = named.map(|(seed, _)| seed.to_string()).collect();
    let more = if part.broken.len() > NAMED {
        " ..."
    } else {
        ""
    };
    Some(format!(
        "warning: {}: {}{more}; {}",
        broke(part.broken.len()),
        named.join(", "),
        again(&part.of.options, *first)
    ))
}

/// The name of a part's file, such as `simulate-03-of-64.json`.
fn file_name(shard: Shard) -> String {
    let name = shard.file_name().replace("shard-", "simulate-");
    name.replace(".db", ".json")
}

fn keep(path: &Path, part: &Part) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(part).map_err(Failure::run)?;
    let body = text.strip_suffix("\n}").unwrap_or(&text);
    let text = format!("{body}{DIGEST}{}\"\n}}\n", digest(body));
    Ok(write(path, Format::SimulationPart, text.as_bytes())?)
}

fn read(path: &Path) -> Result<Part, Failure> {
    let text = read_bytes(path, LONGEST).and_then(text_of);
    let text = text.map_err(|error| {
        let help = match error.kind() {
            io::ErrorKind::IsADirectory => parts_in(path),
            _ => "name the files that `raidlab simulate --shard I/N` wrote".to_owned(),
        };
        Failure::input(Unreadable::Read(path.to_owned(), error)).help(help)
    })?;
    let sealed = text.split_once(DIGEST).and_then(|(body, end)| {
        let is_its = end.strip_suffix("\"\n}\n") == Some(digest(body).as_str());
        is_its.then(|| format!("{body}\n}}"))
    });
    let Some(part) = sealed else {
        let path = path.to_owned();
        let refused = match text.contains("\"simulation_part\"") {
            true => Unreadable::Damaged(path),
            false => Unreadable::None(path),
        };
        return Err(Failure::input(refused).help("move it away, and run that part again"));
    };
    serde_json::from_str(&part)
        .map_err(|error| Failure::input(Unreadable::Form(path.to_owned(), error)))
}

/// What to type where a folder is named in place of the parts in it.
fn parts_in(folder: &Path) -> String {
    let mut parts = [0, 0];
    for entry in folder.read_dir().into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let part = name.starts_with("simulate-");
        for (count, ending) in parts.iter_mut().zip([".json", ".json.part"]) {
            *count += usize::from(part && name.ends_with(ending));
        }
    }
    let [whole, begun] = parts;
    let named = in_shell(folder.as_os_str());
    match (whole, begun) {
        (0, 0) => "there is no part in it; `raidlab simulate --shard I/N` makes them".to_owned(),
        (0, _) => format!(
            "in it {} that `raidlab simulate --shard I/N` goes on with, and none that is whole",
            count(begun, "is a part", "are parts")
        ),
        _ => format!(
            "name the files in it, of which {}: `raidlab simulate --merge {named}/simulate-*.json`",
            count(whole, "is whole", "are whole")
        ),
    }
}

fn digest(text: &str) -> String {
    format!("{:016x}", fnv1a(FNV_BASIS, text.bytes()))
}

/// Reads the part in a file, if it is there.
fn there(path: &Path, wanted: &Part) -> Result<Option<Part>, Failure> {
    if !path.exists() {
        return Ok(None);
    }
    let found = read(path)?;
    let same = (&found.of, found.index, found.count) == (&wanted.of, wanted.index, wanted.count);
    if same && found.is_sound() {
        return Ok(Some(found));
    }
    let words = format!(
        "{} is there, and is another part, of another simulation, or of another raidlab",
        visible_path(path)
    );
    Err(Failure::words(Kind::Input, words)
        .help("move it away, or name another folder with --shard-folder"))
}

/// Shows the counts of parts together.
///
/// # Errors
/// When they do not belong together, one is missing, or a promise was broken.
pub fn merge(files: &[PathBuf], with_reach: bool) -> Result<(), Failure> {
    let parts = files
        .iter()
        .map(|path| Ok((visible_path(path), read(path)?)));
    let parts: Vec<(String, Part)> = parts.collect::<Result<_, Failure>>()?;
    let whole = Part::together(parts).map_err(|error| {
        let help = match error {
            PartError::Missing(..) | PartError::Unfinished(..) => {
                "`raidlab simulate --shard I/N`, with the options of the others, makes it"
            }
            _ => "leave it out, or run it again",
        };
        Failure::input(error).help(help)
    })?;
    if whole.of.commit != COMMIT {
        let words = format!(
            "the parts are of commit {}, this is {COMMIT}",
            whole.of.commit
        );
        return Err(Failure::words(Kind::Input, words).help("use the raidlab that made them"));
    }
    for (seed, violation) in whole.broken.iter().take(TOLD) {
        output::print(&format!("seed {seed}: {violation}\n"))?;
    }
    let broken: Vec<u64> = whole.broken.iter().map(|(seed, _)| *seed).collect();
    let counted = Counted {
        from: whole.of.from,
        at: whole.at,
        statistics: &whole.statistics,
        broken: &broken,
        options: &whole.of.options,
    };
    counted.print(with_reach, "")
}
