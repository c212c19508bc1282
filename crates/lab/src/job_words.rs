//! Descriptions of fio's jobs in words.

use raidlab_units::Nanos;
use raidlab_workload::{Engine, JobGroup, JobSpec, Pattern};
use std::fmt::Write;

/// A time in the largest unit that divides it: `1 h`, `90 min`, `1 s`.
pub(crate) fn time_in_words(time: Nanos) -> String {
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

/// The jobs that run together, by the user's names and in words:
/// `slow + fast: random read 4 KiB, ...`. Two jobs may have the same words.
pub(crate) fn named_in_words(group: &JobGroup) -> String {
    let mut names: Vec<&str> = group.jobs.iter().map(|job| job.name.as_str()).collect();
    names.dedup();
    names.retain(|name| !name.is_empty());
    let words = describe(group);
    if names.is_empty() {
        return words;
    }
    format!("{}: {words}", names.join(" + "))
}

/// The jobs that run together, in words.
pub(crate) fn describe(group: &JobGroup) -> String {
    let jobs: Vec<String> = group.jobs.iter().map(describe_job).collect();
    jobs.join(" + ")
}

/// The default class of a job: that of its first fio job.
pub(crate) fn class_of_job(group: &JobGroup) -> &'static str {
    match group.jobs.first().map(|job| job.pattern) {
        Some(Pattern::Write) => "sequential-write",
        Some(Pattern::RandRead) => "random-read",
        Some(Pattern::RandWrite) => "random-write",
        Some(Pattern::Trim | Pattern::RandTrim) => "trim",
        Some(
            Pattern::ReadWrite | Pattern::RandRw | Pattern::TrimWrite | Pattern::RandTrimWrite,
        ) => "mixed",
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
        Pattern::Trim => "sequential discard".to_owned(),
        Pattern::RandTrim => "random discard".to_owned(),
        Pattern::TrimWrite => "sequential discard and write".to_owned(),
        Pattern::RandTrimWrite => "random discard and write".to_owned(),
        Pattern::ReadWrite => format!(
            "sequential read and write, {} % reads,",
            job.read_mix_percent
        ),
        Pattern::RandRw => format!("random read and write, {} % reads,", job.read_mix_percent),
    };
    let queue = match (job.engine, job.num_jobs) {
        (Engine::Libaio, 1) => format!("{} in flight", job.io_depth),
        (Engine::Libaio, jobs) => format!("{jobs} jobs with {} in flight each", job.io_depth),
        (Engine::Null, _) => "no device".to_owned(),
        (Engine::Sync, 1) => "1 thread".to_owned(),
        (Engine::Sync, threads) => format!("{threads} threads"),
    };
    let mut text = format!(
        "{pattern} {}, {queue}, {}",
        sizes_in_words(job),
        place_in_words(job)
    );
    if let Some(time) = job.runtime {
        let _ = write!(text, ", {}", time_in_words(time));
    }
    text
}

/// A job's region in words: `1 GiB from 0 B`, `20 % from 80 %`, `from 0 B to the end`.
fn place_in_words(job: &JobSpec) -> String {
    let start = match job.percents.offset {
        Some(percent) => format!("{percent} %"),
        None => job.offset.to_string(),
    };
    match (job.file_size, job.size, job.percents.size) {
        (Some(end), _, _) => format!("from {start} to {end}"),
        (None, Some(size), _) => format!("{size} from {start}"),
        (None, None, Some(percent)) if percent < 100 => format!("{percent} % from {start}"),
        (None, None, _) => format!("from {start} to the end"),
    }
}

/// The sizes of a job's requests: `4 KiB`, `4 KiB to 64 KiB`, and with a size for each direction
/// `4 KiB reads and 8 KiB writes`.
fn sizes_in_words(job: &JobSpec) -> String {
    let Some(sizes) = &job.sizes else {
        return job.block_size.to_string();
    };
    let pattern = job.pattern;
    let uses = [pattern.reads(), pattern.writes(), pattern.trims()];
    let mut each: Vec<(String, &str)> = Vec::new();
    for ((sizes, used), name) in sizes.iter().zip(uses).zip(["reads", "writes", "discards"]) {
        let (least, most) = (sizes.least(), sizes.most());
        if used && least == most {
            each.push((least.to_string(), name));
        } else if used {
            each.push((format!("{least} to {most}"), name));
        }
    }
    match each.split_first() {
        Some(((first, _), rest)) if rest.iter().all(|(sizes, _)| sizes == first) => first.clone(),
        _ => {
            let words = |(sizes, name): &(String, &str)| format!("{sizes} {name}");
            each.iter().map(words).collect::<Vec<_>>().join(" and ")
        }
    }
}
