//! Side effects of fio's options.

use super::told::waits_by_intent;
use crate::case::Case;
use crate::devices::{
    honours_direct, is_direct, is_random, is_zfs_volume, reports_options, system, tool, version_in,
};
use crate::finding::Ruling;
use crate::rule::Check;
use raidlab_store::Severity::{Fatal, Note, Warning};
use raidlab_store::{Measurement, Operation, fact};
use std::collections::BTreeSet;

pub(super) const CHECKS: &[(&str, Check)] = &[
    ("T1", Check::Rows(clock_tail)),
    ("T2", Check::Whole(depths)),
    ("T3", Check::Rows(random_maps)),
    ("T4", Check::Rows(same_seed)),
    ("T6", Check::Rows(ended_early)),
    ("T7", Check::Rows(direct_on_zfs)),
    ("T8", Check::Whole(direct_refused)),
];

fn option_of<'a>(case: &Case<'a>, row: &Measurement, name: &str) -> Option<&'a str> {
    case.text(row, &fact::fio_option(name))
}

fn asked_runtime(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) -> Option<f64> {
    if tool(row) != "fio" || row.runtime_ns == 0 {
        return None;
    }
    let asked = case
        .number(row, fact::JOB_ASKED_RUNTIME_NS)
        .filter(|asked| *asked > 0.0);
    ruling.need(asked, fact::JOB_ASKED_RUNTIME_NS)
}

/// I/Os between two looks at the clock: `ts_cache_mask` is 63.
const CLOCK_EVERY: u64 = 64;
/// I/Os of each clone that are not counted in the total, in fio 2.1 and 3.33.
const UNCOUNTED: u64 = 2;

fn clock_tail(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) -> Option<()> {
    // The model copies this habit of fio on purpose: its rows are compared with real ones.
    if row.bench == "model" {
        return None;
    }
    let asked = asked_runtime(case, row, ruling)?;
    let ratio = row.runtime_ns as f64 / asked;
    let reduced = case.flag(row, &fact::fio_option("gtod_reduce"));
    let jobs = case.number(row, fact::FIO_JOBS).map(|jobs| jobs as u64);
    // Clones of a mixed job are counted over reads and writes together.
    let cell = row.cell();
    let same = case.evidence.rows.iter().filter(|other| {
        // The cheap conditions first: this runs for all pairs of rows. fio does not look at the
        // clock after flushes.
        other.sequence == row.sequence
            && other.op != Operation::Sync
            && other.part == row.part
            && other.cell() == cell
    });
    let ios = same.fold(0_u64, |sum, other| sum.saturating_add(other.total_ios));
    let fits = |jobs: u64| {
        ios > 0 && ios.saturating_add(jobs.saturating_mul(UNCOUNTED)) % CLOCK_EVERY == 0
    };
    let quantised = jobs.is_some_and(fits) && !row.latency.is_recorded();
    let known = (reduced.is_some() || jobs.is_some()).then_some(());
    ruling.need(known, fact::FIO_JOBS)?;
    ruling.judged();
    if ratio > 1.03 && (reduced == Some(true) || quantised) {
        let (ran, asked) = (row.runtime_ns as f64 / 1e9, asked / 1e9);
        let mut text = format!(
            "ran {ran:.1} s of {asked:.1}, {:+.0} %",
            (ratio - 1.0) * 100.0
        );
        if quantised {
            let jobs = jobs.unwrap_or(0);
            let rounds = ios.saturating_add(jobs.saturating_mul(UNCOUNTED)) / CLOCK_EVERY;
            text +=
                &format!("; {ios} I/Os + {UNCOUNTED} x {jobs} clones = {CLOCK_EVERY} x {rounds}");
        }
        if reduced == Some(true) {
            text += "; gtod_reduce is set";
        }
        ruling.row(Warning, row, text);
    }
    Some(())
}

/// Engines that have at most one I/O in flight.
const WAITING_ENGINES: [&str; 6] = ["sync", "psync", "vsync", "pvsync", "pvsync2", "mmap"];

fn depths(case: &Case<'_>, ruling: &mut Ruling) {
    for row in case.evidence.rows {
        // `None` only says that nothing more can be seen in the row.
        depth_ignored(case, row, ruling).unwrap_or_default();
    }
    for rows in case.compared() {
        let clones: BTreeSet<u64> = rows
            .iter()
            .filter(|row| tool(row) == "fio" && row.queue_depth > 1)
            .filter_map(|row| Some(case.number(row, fact::FIO_JOBS)? as u64))
            .collect();
        if !clones.is_empty() {
            ruling.judged();
        }
        if clones.len() > 1 {
            let list: Vec<String> = clones.iter().map(u64::to_string).collect();
            let text = format!("the same depth by {} clones", list.join(" and by "));
            ruling.job(Note, rows[0], text);
        }
    }
}

fn depth_ignored(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) -> Option<()> {
    if tool(row) != "fio" {
        return None;
    }
    let option = |name: &str| option_of(case, row, name);
    // Of several jobs the levels and the options are the first one's, and what was asked is not.
    let asked = option("iodepth")
        .or_else(|| case.text(row, &fact::option("iodepth", fact::outcome::ASKED)));
    let alone = case.number(row, &fact::fio_depth_level("1"));
    let engine = option("ioengine");
    let known = alone.is_some() || engine.is_some();
    ruling.need(known.then_some(()), "fio.iodepth_level.1")?;
    // Without the option fio's depth is 1.
    let told = asked.is_some() || reports_options(case, row);
    ruling.need(told.then_some(()), "fio.option.iodepth")?;
    ruling.judged();
    let asked: u64 = asked.and_then(|depth| depth.parse().ok()).unwrap_or(1);
    if asked <= 1 {
        return Some(());
    }
    if alone.is_some_and(|percent| percent >= 99.0) {
        if waits_by_intent(case, row) {
            return Some(());
        }
        let text = format!(
            "depth {asked} asked, {:.0} % of I/Os were alone",
            alone.unwrap_or(0.0)
        );
        ruling.row(Fatal, row, text);
    } else if engine == Some("libaio") && is_direct(case, row) == Some(false) {
        let text = format!("depth {asked} asked of libaio, which waits for each buffered I/O");
        ruling.row(Warning, row, text);
    } else if alone.is_none() && engine.is_some_and(|engine| WAITING_ENGINES.contains(&engine)) {
        let engine = engine.unwrap_or_default();
        ruling.row(
            Fatal,
            row,
            format!("depth {asked} asked of engine {engine}"),
        );
    }
    Some(())
}

fn random_maps(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) -> Option<()> {
    // The model's fio has no memory that its random map could fill.
    let applies = tool(row) == "fio" && row.bench != "model" && row.block_size_bytes > 0;
    if !applies || !is_random(row) {
        return None;
    }
    let memory = case.number(row, fact::MEMORY_TOTAL_BYTES);
    let memory = ruling.need(memory, fact::MEMORY_TOTAL_BYTES)?;
    let range = case.number(row, fact::JOB_WORKING_SET_BYTES);
    let range = ruling.need(range, fact::JOB_WORKING_SET_BYTES)?;
    let jobs = ruling.need(case.number(row, fact::FIO_JOBS), fact::FIO_JOBS)?;
    let generator = option_of(case, row, "random_generator");
    let without = case.flag(row, &fact::fio_option("norandommap"));
    // fio does not repeat a switch without a value, and raidlab gives each one its value.
    let reports = row.bench != "import" && reports_options(case, row);
    let known = generator.is_some() || without.is_some() || reports;
    ruling.need(known.then_some(()), "fio.option.norandommap")?;
    ruling.judged();
    let without = without == Some(true);
    let other = generator.is_some_and(|name| !name.starts_with("tausworthe"));
    // The ranges of clones with files of their own are all in the data set.
    let apart =
        option_of(case, row, "directory").is_some() && option_of(case, row, "filename").is_none();
    let ranges = if apart { range } else { jobs * range };
    let maps = ranges / row.block_size_bytes as f64 / 8.0;
    if !without && !other && maps > 0.05 * memory {
        let share = maps / memory * 100.0;
        let text = format!(
            "{jobs:.0} maps of {:.0} MiB are {share:.0} % of memory",
            maps / jobs / 1_048_576.0
        );
        ruling.row(Warning, row, text);
    }
    Some(())
}

fn same_seed(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) -> Option<()> {
    if tool(row) != "fio" || !is_random(row) {
        return None;
    }
    let option = |name: &str| option_of(case, row, name);
    let own = option("randrepeat").is_some() || option("randseed").is_some();
    let known = own || reports_options(case, row);
    ruling.need(known.then_some(()), "fio.option.randseed")?;
    let (repeats, seed) = (option("randrepeat"), option("randseed"));
    let of_offsets = offsets_seed(row, repeats, seed);
    ruling.need(of_offsets, "the tool's version")?;
    ruling.judged();
    if row.repetition > 0 && of_offsets == Some(OffsetsSeed::Default) {
        let words = match seed {
            None => "neither randseed nor randrepeat=0 is set",
            Some(_) => "randseed without randrepeat=0, which this fio does not heed",
        };
        ruling.row(Note, row, words.to_owned());
    }
    if of_offsets != Some(OffsetsSeed::Default) {
        return Some(());
    }
    let loops = option("loops").and_then(|loops| loops.parse::<u64>().ok());
    if let Some(loops) = loops.filter(|loops| *loops > 1) {
        let text = format!("the same offsets in each of {loops} loops");
        ruling.row(Note, row, text);
    }
    if let Some(before) = same_job_before(case, row) {
        let text = format!("the same offsets as job {}", before.job);
        ruling.row(Note, row, text);
    }
    Some(())
}

/// The options of fio that change which blocks a random job draws with the same seed, beside its
/// pattern and its sizes.
pub(super) const DRAWS: [&str; 9] = [
    "random_distribution",
    "percentage_random",
    "random_generator",
    "norandommap",
    "bssplit",
    "bsrange",
    "blockalign",
    "rw_sequencer",
    "zonemode",
];

/// An earlier job on the same subject that asked for the same random blocks.
fn same_job_before<'a>(case: &Case<'a>, row: &Measurement) -> Option<&'a Measurement> {
    let whose = |one: &Measurement| {
        let options = [
            "rw",
            "bs",
            "size",
            "filesize",
            "iodepth",
            "numjobs",
            "rwmixread",
        ];
        let option = |name| option_of(case, one, name);
        let options = options.into_iter().chain(DRAWS);
        let options: Vec<Option<String>> = options
            .map(|name| option(name).map(str::to_owned))
            .collect();
        let offset = case.text(one, fact::JOB_OFFSET_BYTES).map(str::to_owned);
        (
            options,
            offset,
            offsets_seed(one, option("randrepeat"), option("randseed"))
                == Some(OffsetsSeed::Default),
        )
    };
    let own = whose(row);
    case.evidence.rows.iter().find(|other| {
        // The cheap conditions first: this runs for all pairs of rows.
        other.sequence < row.sequence
            && other.op == row.op
            && (&other.host, &other.subject) == (&row.host, &row.subject)
            && (&other.filesystem, &other.part) == (&row.filesystem, &row.part)
            && (other.repetition, &other.fit) == (row.repetition, &row.fit)
            && is_random(other)
            && whose(other) == own
    })
}

/// The seed of a fio job's random offsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OffsetsSeed<'a> {
    /// fio's own seed, so that offsets are the same in each run.
    Default,
    /// The value of the job's own seed option.
    Own(&'a str),
    /// A random seed, so that offsets differ in each run.
    Random,
}

/// The seed by the options `randrepeat` and `randseed`, as the row's version of fio heeds them;
/// `None` where its version decides and is not known.
pub(super) fn offsets_seed<'a>(
    row: &Measurement,
    repeats: Option<&str>,
    seed: Option<&'a str>,
) -> Option<OffsetsSeed<'a>> {
    Some(match (seed, repeats) {
        (Some(seed), Some("0")) => OffsetsSeed::Own(seed),
        (None, Some("0")) => OffsetsSeed::Random,
        (None, _) => OffsetsSeed::Default,
        // The model's own workload, which is of no version, does as the older ones.
        (Some(_), _) if row.bench == "model" => OffsetsSeed::Default,
        (Some(seed), _) => match version_in(&row.tool)? >= (3, 35) {
            true => OffsetsSeed::Own(seed),
            false => OffsetsSeed::Default,
        },
    })
}

fn ended_early(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) -> Option<()> {
    let asked = asked_runtime(case, row, ruling)?;
    ruling.judged();
    let ran = row.runtime_ns as f64;
    // The job ends as soon as its rate is steady, or the depth for its latency is found.
    let given = |name: &str| option_of(case, row, name).is_some_and(|value| value != "0");
    let searches = given("latency_target") && !given("latency_run");
    if ran < 0.9 * asked && !given("steadystate") && !searches {
        let by_time = case.flag(row, &fact::fio_option("time_based")) == Some(true);
        let severity = if by_time { Warning } else { Note };
        let text = format!("ran {:.1} s of {:.1}", ran / 1e9, asked / 1e9);
        ruling.row(severity, row, text);
    }
    Some(())
}

fn direct_on_zfs(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) -> Option<()> {
    if tool(row) != "fio" {
        return None;
    }
    let system = Some(system(case, row)).filter(|system| !system.is_empty());
    if ruling.need(system, fact::ARRAY_SYSTEM)? != "zfs" {
        return None;
    }
    let direct = ruling.need(is_direct(case, row), "fio.option.direct")?;
    let honours = honours_direct(case, row);
    if !direct || honours == Some(true) {
        ruling.judged();
        return Some(());
    }
    let hits = case.number(row, fact::ARC_HITS).unwrap_or(0.0);
    let misses = case.number(row, fact::ARC_MISSES).unwrap_or(0.0);
    let share = if hits > 0.0 {
        hits / (hits + misses) * 100.0
    } else {
        0.0
    };
    if row.op.only_reads() && share > 1.0 {
        ruling.row(
            Warning,
            row,
            format!("direct=1, and the ARC answered {share:.0} %"),
        );
        return Some(());
    }
    // Nothing shows what an unknown version did with the option.
    let version = fact::version("zfs");
    ruling.need(honours, &version)?;
    let version = case.text(row, &version).unwrap_or_default();
    let volume = if is_zfs_volume(case, row) {
        "a volume of "
    } else {
        ""
    };
    let text = format!("direct=1 on {volume}ZFS {version}");
    ruling.subject(Note, row, text.trim_end().to_owned());
    Some(())
}

/// The words of fio and dd when the kernel refuses O_DIRECT.
const REFUSALS: [&str; 3] = [
    "does not support direct=1",
    "does not support O_DIRECT",
    "failed to set O_DIRECT",
];

fn direct_refused(case: &Case<'_>, ruling: &mut Ruling) {
    for command in case.evidence.commands {
        let tool = command.command.contains("direct");
        if !tool {
            continue;
        }
        ruling.judged();
        let texts = [&command.stdout, &command.stderr];
        let lines = texts.into_iter().flat_map(|text| text.lines());
        for line in lines.filter(|line| REFUSALS.iter().any(|known| line.contains(known))) {
            ruling.scope(Fatal, command.scope.clone(), line.trim().to_owned());
        }
    }
    ruling.need(None::<()>, "a command with direct I/O");
}
