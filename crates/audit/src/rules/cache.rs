//! Pitfalls of the data set: what is smaller, emptier or more alike than it
//! seems.

use crate::bound::{TOLERANCE, bound, megabytes, random_iops};
use crate::case::Case;
use crate::devices::{
    copies_on_write, dd_operand, honours_direct, is_counted_whole, is_direct, is_flushed,
    is_random, may_be_cached, member_bytes, members, only_writes, system, tool, working_set,
};
use crate::finding::Ruling;
use crate::rule::Check;
use crate::rules::fio::{DRAWS, OffsetsSeed, offsets_seed};
use raidlab_store::Severity::{Fatal, Note, Warning};
use raidlab_store::{Measurement, fact};
use raidlab_units::Bytes;

pub(super) const CHECKS: &[(&str, Check)] = &[
    ("B1", Check::Rows(faster_than_disks)),
    ("C1", Check::Rows(smaller_than_memory)),
    ("C2", Check::Rows(effective_set_small)),
    ("C3", Check::Rows(buffer_swallowed)),
    ("C7", Check::Rows(never_written)),
    ("C8", Check::Rows(zeros_compressed)),
    ("C9", Check::Rows(deduplicated)),
    ("C11", Check::Whole(same_sequence)),
    ("C13", Check::Rows(in_memory)),
    ("C14", Check::Rows(too_quick)),
];

/// A latency shorter than any device's, nanoseconds.
const QUICKEST_NS: u64 = 4_000;

fn too_quick(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) -> Option<()> {
    let each_flushed = || {
        let sync = case.text(row, &fact::fio_option("sync"));
        sync.is_some_and(|value| !matches!(value, "0" | "none"))
    };
    // ZFS may take direct I/O and ignore it, and answers writes from memory then.
    let ignored = || system(case, row) == "zfs" && honours_direct(case, row) != Some(true);
    let straight = || is_direct(case, row) == Some(true) && !ignored();
    let past_memory = || straight() || each_flushed();
    // The time of flushes is in the rate, and not in the latency of the writes.
    let flushes = || {
        let options = ["fsync", "fdatasync"].map(fact::fio_option);
        let mut values = options.iter().filter_map(|name| case.text(row, name));
        values.any(|value| value != "0")
    };
    let writes = row.op.only_writes() && past_memory() && !flushes();
    let to_device = row.op.only_reads() || writes;
    if !is_random(row) || has_streams(case, row) || !to_device {
        return None;
    }
    let median = Some(row.latency.p50_ns).filter(|median| *median > 0);
    let median = ruling.need(median, "latencies")?;
    ruling.judged();
    if median < QUICKEST_NS {
        let microseconds = median as f64 / 1e3;
        let text = format!("half of them took at most {microseconds:.1} microseconds");
        ruling.row(Fatal, row, text);
    }
    Some(())
}

fn in_memory(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) -> Option<()> {
    let options = ["filename", "directory"].map(|name| case.text(row, &fact::fio_option(name)));
    let operands = ["if", "of"].map(|name| dd_operand(case, row, name));
    let paths: Vec<&str> = options.into_iter().chain(operands).flatten().collect();
    let kind = case.text(row, fact::FILESYSTEM_TYPE);
    let kind = kind.or(Some(row.filesystem.as_str()).filter(|label| !label.is_empty()));
    let known = (kind.is_some() || !paths.is_empty()).then_some(());
    ruling.need(known, fact::FILESYSTEM_TYPE)?;
    ruling.judged();
    let folders = ["/dev/shm", "/dev/ram", "/dev/zram"];
    let path = paths
        .into_iter()
        .find(|path| folders.iter().any(|folder| path.starts_with(folder)));
    let kind = kind.filter(|kind| matches!(*kind, "tmpfs" | "ramfs" | "devtmpfs"));
    if let Some(place) = path.or(kind) {
        ruling.row(Fatal, row, format!("the job ran on {place}"));
    }
    Some(())
}

fn faster_than_disks(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) -> Option<()> {
    if row.bytes_per_second <= 0.0 {
        return None;
    }
    let bound = ruling.need(bound(case, row), "member.0.device and what disk it is")?;
    ruling.judged();
    if row.bytes_per_second > TOLERANCE * bound.bytes_per_second {
        let rate = megabytes(row.bytes_per_second);
        ruling.row(Fatal, row, format!("{rate}, but {}", bound.reason));
    }
    if row.op.only_reads()
        && is_random(row)
        && !has_streams(case, row)
        && let Some(most) = random_iops(case, row)
        && row.iops > TOLERANCE * most
    {
        let text = format!(
            "{:.0} random reads per second, but disks that turn do at most {most:.0}",
            row.iops
        );
        ruling.row(Fatal, row, text);
    }
    Some(())
}

/// Bytes that members moved per byte of a job; `None` where they were not counted or the
/// job moved none.
fn device_share(row: &Measurement, bytes: fn((u64, u64)) -> u64) -> Option<f64> {
    let moved = member_bytes(row)?;
    (row.total_bytes > 0).then(|| bytes(moved) as f64 / row.total_bytes as f64)
}

/// Whether some of a row's requests follow each other: those of a job beside the random one, as jobs
/// that run together share a row, or runs within a random job (`rw=randread:64`).
fn has_streams(case: &Case<'_>, row: &Measurement) -> bool {
    let option = |name: &str| case.text(row, &fact::fio_option(name));
    let runs = option("rw").is_some_and(|pattern| pattern.contains(':'));
    let in_part = option("percentage_random")
        .is_some_and(|percent| percent.split(',').any(|percent| percent != "100"));
    let beside = case.number(row, fact::FIO_STREAMS_ON_ONE_REGION);
    runs || in_part || beside.is_some()
}

/// Commands that members received per random read of a job, where their bytes were not counted.
/// Streams are merged on the way, random reads are not.
fn command_share(case: &Case<'_>, row: &Measurement) -> Option<f64> {
    let random = is_random(row) && !has_streams(case, row);
    let enough = random && row.total_ios >= 1000 && !row.members.is_empty();
    let enough = enough && is_counted_whole(row);
    if !enough || member_bytes(row).is_some_and(|bytes| bytes != (0, 0)) {
        return None;
    }
    let reads = row.members.iter().map(|member| member.read_ios as f64);
    Some(reads.sum::<f64>() / row.total_ios as f64)
}

fn smaller_than_memory(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) -> Option<()> {
    if row.bytes_per_second <= 0.0 {
        return None;
    }
    let cached = ruling.decided(may_be_cached(case, row))?;
    let set = ruling.need(working_set(case, row), fact::JOB_WORKING_SET_BYTES)?;
    let known = case.number(row, fact::MEMORY_TOTAL_BYTES);
    let any = (set < 2.0 * LEAST_MEMORY).then_some(LEAST_MEMORY);
    let memory = ruling.need(known.or(any), fact::MEMORY_TOTAL_BYTES)?;
    ruling.judged();
    let flushed = only_writes(row) && is_flushed(case, row) == Some(true);
    if !cached || flushed || set >= 2.0 * memory {
        return None;
    }
    let bound = bound(case, row);
    let beyond = bound.is_some_and(|b| row.bytes_per_second > TOLERANCE * b.bytes_per_second);
    let share = device_share(row, |(read, _)| read).or_else(|| command_share(case, row));
    let idle = share.is_some_and(|share| share < 0.5);
    let cold = case.flag(row, fact::CACHES_DROPPED) == Some(true) && set <= row.total_bytes as f64;
    let severity = match () {
        () if row.op.only_reads() && set < memory && (beyond || idle) => Fatal,
        () if row.op.only_reads() && cold => Note,
        () => Warning,
    };
    let [set, memory] = [set, memory].map(|bytes| Bytes(bytes as u64));
    let text = match known {
        Some(_) => format!("touches {set}, memory holds {memory}"),
        None => format!("touches {set}, hardly any machine's memory holds less"),
    };
    ruling.row(severity, row, text);
    Some(())
}

/// The memory, in bytes, that nearly every machine has on which these tools were run since 2008.
const LEAST_MEMORY: f64 = 536_870_912.0;

/// Whether a job may replay a trace: fio does not yet know the disks of a trace's files when it
/// begins to count. Where few options are known, such a job looks like one without any.
fn may_be_trace(case: &Case<'_>, row: &Measurement) -> bool {
    let is_untold = case.flag(row, fact::FIO_OPTIONS_UNTOLD) == Some(true);
    let is_plain = row.class == "sequential-read" && row.block_size_bytes == 4096;
    let is_told = case.text(row, &fact::fio_option("read_iolog")).is_some();
    is_told || (is_untold && is_plain)
}

fn effective_set_small(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) -> Option<()> {
    if !row.op.only_reads() || row.bytes_per_second <= 0.0 {
        return None;
    }
    let memory = case.number(row, fact::MEMORY_TOTAL_BYTES).unwrap_or(0.0);
    let set = working_set(case, row);
    let is_small = set.is_some_and(|set| set < 2.0 * memory);
    if is_small && may_be_cached(case, row) != Ok(false) {
        // Rule C1 covers that case, but not direct reads.
        return None;
    }
    let mut signs = Vec::new();
    let mut worst = 0.0_f64;
    let is_trace = may_be_trace(case, row);
    let share = device_share(row, |(read, _)| read).filter(|_| !is_trace);
    if let Some(share) = share {
        ruling.judged();
        if share < 0.9 {
            let percent = share * 100.0;
            signs.push(format!(
                "the members read {percent:.0} % of the job's bytes"
            ));
            worst = worst.max(1.0 - share);
        }
    }
    if let Some(share) = command_share(case, row).filter(|_| !is_trace) {
        ruling.judged();
        if share < 0.5 {
            let percent = share * 100.0;
            signs.push(format!("the disks saw {percent:.0} % of the reads"));
            worst = worst.max(1.0 - share);
        }
    }
    if let Some(hits) = case.number(row, fact::ARC_HITS)
        && let Some(misses) = case.number(row, fact::ARC_MISSES)
        && hits + misses > 0.0
    {
        ruling.judged();
        let share = hits / (hits + misses);
        if share > 0.1 {
            let percent = share * 100.0;
            signs.push(format!("the ARC answered {percent:.0} % of the reads"));
            worst = worst.max(share);
        }
    }
    let ratio = case.number(row, fact::COMPRESS_RATIO);
    if let Some(ratio) = ratio {
        ruling.judged();
        signs.extend((ratio > 1.05).then(|| format!("data are compressed by {ratio:.2}")));
    }
    if let Some(bound) = bound(case, row) {
        ruling.judged();
        if row.bytes_per_second > TOLERANCE * bound.bytes_per_second {
            let processor = row.cpu_percent.filter(|cpu| *cpu > 90.0);
            let busy = processor.map_or_else(String::new, |cpu| {
                format!(" with {cpu:.0} % processor time")
            });
            let rate = megabytes(row.bytes_per_second);
            signs.push(format!("{rate}{busy}, but {}", bound.reason));
        }
    }
    ruling.need(
        None::<()>,
        "members' counters, arc.hits or compression.ratio",
    );
    if !signs.is_empty() {
        let severity = if worst > 0.5 { Fatal } else { Warning };
        ruling.row(severity, row, signs.join("; "));
    }
    Some(())
}

fn buffer_swallowed(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) -> Option<()> {
    if !row.op.only_writes() || row.total_bytes == 0 {
        return None;
    }
    let mut signs = Vec::new();
    let mut unwritten = 0.0_f64;
    let dirty = case.number(row, &fact::dirty_bytes(fact::moment::AFTER));
    if let Some(dirty) = ruling.need(dirty, "memory.after.dirty_bytes") {
        ruling.judged();
        let before = case.number(row, &fact::dirty_bytes(fact::moment::BEFORE));
        let share = (dirty - before.unwrap_or(0.0)) / row.total_bytes as f64;
        // A direct job's writes bypass memory, so bytes beyond its own are those of other writers.
        let direct = case.text(row, &fact::fio_option("direct")) == Some("1");
        if share > 0.05 && share <= 1.05 && !direct {
            let percent = share * 100.0;
            signs.push(format!("{percent:.0} % of the bytes were still in memory"));
            unwritten = share;
        }
    }
    // Fewer bytes than the job's are written where they are compressed, too.
    let compression = case.text(row, fact::COMPRESSION);
    let plain = compression.or((!copies_on_write(case, row)).then_some("off"));
    let plain = ruling.need(plain, fact::COMPRESSION) == Some("off");
    if let Some(share) = device_share(row, |(_, written)| written).filter(|_| plain) {
        ruling.judged();
        if share < 0.9 {
            let percent = share * 100.0;
            signs.push(format!(
                "the members were written {percent:.0} % of the bytes"
            ));
            unwritten = unwritten.max(1.0 - share);
        }
    }
    let flush = case.number(row, fact::END_SYNC_NS);
    if let Some(flush) = flush.filter(|_| row.runtime_ns > 0) {
        ruling.judged();
        let share = flush / row.runtime_ns as f64;
        if share > 0.2 {
            let percent = share * 100.0;
            signs.push(format!(
                "flushing at the end took {percent:.0} % of the time"
            ));
        }
    }
    if !signs.is_empty() {
        let severity = if unwritten > 0.5 { Fatal } else { Warning };
        ruling.row(severity, row, signs.join("; "));
    }
    Some(())
}

fn never_written(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) -> Option<()> {
    if !row.op.only_reads() {
        return None;
    }
    let written = case.number(row, fact::WRITTEN_PERCENT);
    let written = ruling.need(written, fact::WRITTEN_PERCENT)?;
    let members = members(case, row);
    let platters = members.iter().all(|member| member.rotational == Some(true));
    let bare = row.filesystem.is_empty() && !copies_on_write(case, row);
    if bare && platters && !members.is_empty() {
        return None;
    }
    ruling.judged();
    if written < 99.0 {
        let severity = if written < 50.0 { Fatal } else { Warning };
        let text = format!("{written:.0} % of the region were ever written");
        ruling.row(severity, row, text);
    }
    Some(())
}

fn zeros_compressed(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) -> Option<()> {
    if !row.op.only_writes() {
        return None;
    }
    let pattern = case.text(row, fact::JOB_DATA_PATTERN).or_else(|| {
        let from = dd_operand(case, row, "if")?;
        (tool(row) == "dd" && from == "/dev/zero").then_some("zero")
    });
    let pattern = ruling.need(pattern, fact::JOB_DATA_PATTERN)?;
    let told = tool(row) == "fio" && pattern != "random";
    let compression = case.text(row, fact::COMPRESSION);
    let compression = compression.or((told && !keeps_bytes(case, row)).then_some("unknown"));
    let compression = ruling.need(compression, fact::COMPRESSION)?;
    ruling.judged();
    if pattern != "random" && compression != "off" {
        let ratio = case.number(row, fact::COMPRESS_RATIO);
        let shrinks = ratio.is_some_and(|ratio| ratio > 1.5);
        let severity = if shrinks { Fatal } else { Warning };
        let ratio = ratio.map_or_else(String::new, |ratio| format!(", ratio {ratio:.2}"));
        let text = format!("{pattern} data, compression {compression}{ratio}");
        ruling.row(severity, row, text);
    }
    Some(())
}

/// Whether the file system is one that cannot compress.
fn keeps_bytes(case: &Case<'_>, row: &Measurement) -> bool {
    let kind = case.text(row, fact::FILESYSTEM_TYPE);
    let kind = kind.unwrap_or(&row.filesystem);
    ["ext", "xfs", "ufs", "jfs", "vfat", "none"]
        .iter()
        .any(|begin| kind.starts_with(begin))
}

fn deduplicated(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) -> Option<()> {
    let kind = ruling.need(case.text(row, fact::DEDUPLICATION), fact::DEDUPLICATION)?;
    ruling.judged();
    if kind == "off" {
        return None;
    }
    let ratio = case.number(row, fact::DEDUPLICATION_RATIO)?;
    if ratio > 1.01 {
        let text = format!("deduplication {kind}, ratio {ratio:.2}");
        ruling.row(Warning, row, text);
    }
    Some(())
}

fn same_sequence(case: &Case<'_>, ruling: &mut Ruling) {
    let mut seen: Vec<(Vec<String>, &Measurement)> = Vec::new();
    for row in case.evidence.rows {
        if !row.op.only_reads() || !is_random(row) || tool(row) != "fio" {
            continue;
        }
        let cached = ruling.decided(may_be_cached(case, row));
        let option = |name: &str| case.text(row, &fact::fio_option(name));
        let range = case.text(row, fact::JOB_WORKING_SET_BYTES);
        let offset = case.text(row, fact::JOB_OFFSET_BYTES);
        let offset = ruling.need(offset, fact::JOB_OFFSET_BYTES);
        let (Some(cached), Some(offset)) = (cached, offset) else {
            continue;
        };
        let seed = offsets_seed(row, option("randrepeat"), option("randseed"));
        let Some(seed) = ruling.need(seed, "the tool's version") else {
            continue;
        };
        ruling.judged();
        let seed = match seed {
            OffsetsSeed::Own(seed) => seed,
            OffsetsSeed::Default => "",
            OffsetsSeed::Random => continue,
        };
        if !cached {
            continue;
        }
        let drawn = DRAWS.map(|name| option(name).unwrap_or_default());
        let key: Vec<String> = [
            row.host.as_str(),
            &row.subject,
            &row.filesystem,
            &row.repetition.to_string(),
            &row.block_size_bytes.to_string(),
            &row.part,
            offset,
            range.unwrap_or_default(),
            seed,
        ]
        .into_iter()
        .chain(drawn)
        .map(str::to_owned)
        .collect();
        match seen.iter().find(|(known, _)| *known == key) {
            Some((_, first)) if first.sequence != row.sequence => {
                let text = format!("job {} read the same blocks in the same order", first.job);
                ruling.row(Warning, row, text);
            }
            Some(_) => {}
            None => seen.push((key, row)),
        }
    }
}
