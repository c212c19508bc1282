//! Pitfalls of the data set: what is smaller, emptier or more alike than it
//! seems.

use crate::bound::{TOLERANCE, bound, megabytes};
use crate::case::Case;
use crate::devices::{
    copies_on_write, dd_operand, is_direct, is_flushed, is_random, may_be_cached, member_bytes,
    members, tool, working_set,
};
use crate::finding::Ruling;
use crate::rule::{Check, Family, Rule};
use crate::rules::fio::{OffsetsSeed, offsets_seed};
use raidlab_store::Severity::{Fatal, Note, Warning};
use raidlab_store::{Measurement, fact};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "B1",
        family: Family::Cache,
        title: "faster than the disks can be",
        explanation: "The rate is more than 1.1 times what all disks together can do, by their \
            measured or declared rates or by a ceiling for their kind (300 MB/s for a disk that \
            turns), and by the channels that they share. Arithmetic alone shows that bytes came \
            from or stayed in memory, a cache device or a compressor.",
        effect: "The number is not the array's.",
        remedy: "Find which cache answered (C1, C2, C7, C8), use incompressible data at least \
            twice the size of memory, and measure again.",
        source: "2.7 GB/s read from two 4 TB disks in a comparison of ZFS mirrors on FreeBSD",
        check: Check::Rows(faster_than_disks),
    },
    Rule {
        id: "C1",
        family: Family::Cache,
        title: "working set smaller than memory",
        explanation: "A buffered job touches fewer bytes than twice main memory; where nothing \
            tells how large that is, fewer than 1 GiB. The page cache or the ARC then answers \
            reads and swallows writes that nobody flushes. Fatal for a read whose whole \
            working set fits in memory and whose rate or whose members' counters show that the \
            disks did not do the work.",
        effect: "Reads are as fast as memory; writes end before they reach the disks.",
        remedy: "Use a working set of two to four times memory, direct I/O, or start the machine \
            with less memory (`mem=`); drop caches before reads and verify it (C5).",
        source: "1 GiB files on a machine with 1.25 GB in mdadm against gmirror, 2010; Phoronix \
            Test Suite issue 417",
        check: Check::Rows(smaller_than_memory),
    },
    Rule {
        id: "C2",
        family: Family::Cache,
        title: "cache or compression answered",
        explanation: "The working set is large enough, yet the disks did not deliver the bytes: \
            the members read less than 0.9 of what the job read (in random reads of which only \
            commands were counted: half of them), or more than a tenth of the \
            data came from the ARC (not counting what prefetch had fetched), or the data set compresses by more than 1.05, or the rate is \
            beyond the physical bound (B1). Compressed data make the effective working set \
            smaller than memory.",
        effect: "The rate is that of memory and processor, in part or whole.",
        remedy: "Write incompressible data or set compression=off, record the compression ratio, \
            and keep only metadata in the ARC or export and import the pool before each read.",
        source: "the same 2.7 GB/s: 64 GiB of bonnie++'s alike blocks on a 32 GB machine",
        check: Check::Rows(effective_set_small),
    },
    Rule {
        id: "C3",
        family: Family::Cache,
        title: "write buffer swallowed the job",
        explanation: "When the job ended more than 5 % of its bytes were dirty in memory, or the \
            members had been written less than 0.9 of them, or flushing at the end took more \
            than a fifth of the time.",
        effect: "The rate is that of memory until the buffer is full; what follows is not timed.",
        remedy: "Flush at the end and count it (`end_fsync=1`), write at least four times the \
            dirty limit, or use direct I/O; show the rate with and without the buffer.",
        source: "8 x 512 MB written to eight disks in Ars Technica's comparison of ZFS and mdraid, \
            2020; with larger files the rate fell below a fifth",
        check: Check::Rows(buffer_swallowed),
    },
    Rule {
        id: "C7",
        family: Family::Cache,
        title: "read of what was never written",
        explanation: "Part of the region read was never written. Thin volumes, ZFS volumes, \
            sparse files and trimmed SSDs answer such reads with zeros from memory. A bare array \
            of disks that turn reads its platters all the same.",
        effect: "Reads need no disk and run at memory speed.",
        remedy: "Write the whole region once in sequence before the first read and check that \
            nothing was left out.",
        source: "the 2015 comparison of mirrors states it of its ZFS volume",
        check: Check::Rows(never_written),
    },
    Rule {
        id: "C8",
        family: Family::Cache,
        title: "zeros into a compressor",
        explanation: "The job wrote zeros or one repeated block where compression was on, or \
            fio was told to and nothing says that it was off. Worse than a warning where the data set's compression ratio shows that they shrank.",
        effect: "Hardly anything is written.",
        remedy: "Write random data (fio `refill_buffers`), or switch compression off; watch the \
            processor cost of making random data (KDiskMark issue 175).",
        source: "field experience; dd if=/dev/zero in mdadm against gmirror, 2010",
        check: Check::Rows(zeros_compressed),
    },
    Rule {
        id: "C9",
        family: Family::Cache,
        title: "equal blocks were stored once",
        explanation: "Deduplication is on and blocks repeat: the ratio is above 1.01.",
        effect: "Writes of known blocks cost no data write, reads come from few blocks.",
        remedy: "Switch deduplication off, or write unique blocks (`refill_buffers`, \
            `randrepeat=0`).",
        source: "fio repeats its scrambled buffers",
        check: Check::Rows(deduplicated),
    },
    Rule {
        id: "C11",
        family: Family::Cache,
        title: "the same random sequence again",
        explanation: "Two cached jobs of the subject read at random with the same seed from the \
            same place with the same block size: fio draws the same offsets in each run unless \
            told otherwise (`randrepeat=1`); before 3.35 a `randseed` counts only with \
            `randrepeat=0`.",
        effect: "The later job finds the earlier one's blocks in a cache: later steps of a queue \
            depth ladder are too fast.",
        remedy: "Shift the offset of each job, or give each one its own recorded `randseed`, \
            with `randrepeat=0`.",
        source: "the 2015 comparison shifts the offset by 1 MiB for each job",
        check: Check::Whole(same_sequence),
    },
    Rule {
        id: "C13",
        family: Family::Cache,
        title: "the files are in memory",
        explanation: "The job's files are on tmpfs, ramfs or a RAM disk: the file system's type \
            says so, or the path does (`/dev/shm`, `/dev/ram0`, `/dev/zram0`).",
        effect: "No disk is measured.",
        remedy: "Look at `df` of the folder; on many systems /tmp is tmpfs too.",
        source: "tmpfs(5); Debian 13 and Fedora keep /tmp in memory",
        check: Check::Rows(in_memory),
    },
    Rule {
        id: "C14",
        family: Family::Cache,
        title: "quicker than any device answers",
        explanation: "Half of the random reads, or of the random writes that went past the page \
            cache or were flushed one by one, took less than 4 microseconds. No device answers \
            so quickly over PCI Express, flash and Optane included.",
        effect: "The number is memory's.",
        remedy: "Find which memory answered: the page cache (C1), a hole in a sparse file (C7), \
            tmpfs (C13).",
        source: "Intel's data sheet of the Optane P5800X: 5 microseconds for a random read",
        check: Check::Rows(too_quick),
    },
];

/// Quicker than the quickest device, nanoseconds.
const QUICKEST_NS: u64 = 4_000;

fn too_quick(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) -> Option<()> {
    let each_flushed = || {
        let sync = case.text(row, &fact::fio_option("sync"));
        sync.is_some_and(|value| !matches!(value, "0" | "none"))
    };
    let past_memory = || is_direct(case, row) == Some(true) || each_flushed();
    let to_device = row.op.only_reads() || (row.op.only_writes() && past_memory());
    if !is_random(row) || !to_device {
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
    Some(())
}

/// Bytes that members moved for a job's bytes, 1 for one each; `None` where
/// they were not counted or the job moved none.
fn device_share(row: &Measurement, bytes: fn((u64, u64)) -> u64) -> Option<f64> {
    let moved = member_bytes(row)?;
    (row.total_bytes > 0).then(|| bytes(moved) as f64 / row.total_bytes as f64)
}

/// Commands that members got for each of a job's random reads, where their bytes
/// were not counted. Streams are merged on the way, random reads are not.
fn command_share(row: &Measurement) -> Option<f64> {
    let enough = is_random(row) && row.total_ios >= 1000 && !row.members.is_empty();
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
    let cached = ruling.need(may_be_cached(case, row), "fio.option.direct")?;
    let set = ruling.need(working_set(case, row), fact::JOB_WORKING_SET_BYTES)?;
    let known = case.number(row, fact::MEMORY_TOTAL_BYTES);
    let any = (set < 2.0 * LEAST_MEMORY).then_some(LEAST_MEMORY);
    let memory = ruling.need(known.or(any), fact::MEMORY_TOTAL_BYTES)?;
    ruling.judged();
    let flushed = row.op.only_writes() && is_flushed(case, row) == Some(true);
    if !cached || flushed || set >= 2.0 * memory {
        return None;
    }
    let bound = bound(case, row);
    let beyond = bound.is_some_and(|b| row.bytes_per_second > TOLERANCE * b.bytes_per_second);
    let idle = device_share(row, |(read, _)| read).is_some_and(|share| share < 0.5);
    let cold = case.flag(row, fact::CACHES_DROPPED) == Some(true) && set <= row.total_bytes as f64;
    let severity = match () {
        () if row.op.only_reads() && set < memory && (beyond || idle) => Fatal,
        () if row.op.only_reads() && cold => Note,
        () => Warning,
    };
    let (set, memory) = (set / GIB, memory / GIB);
    let text = match known {
        Some(_) => format!("touches {set:.2} GiB, memory holds {memory:.2} GiB"),
        None => format!("touches {set:.2} GiB, hardly any machine's memory holds less"),
    };
    ruling.row(severity, row, text);
    Some(())
}

/// Hardly any machine has less memory on which these tools were run since 2008.
const LEAST_MEMORY: f64 = 0.5 * GIB;
const GIB: f64 = 1_073_741_824.0;

fn effective_set_small(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) -> Option<()> {
    if !row.op.only_reads() || row.bytes_per_second <= 0.0 {
        return None;
    }
    let memory = case.number(row, fact::MEMORY_TOTAL_BYTES).unwrap_or(0.0);
    let set = working_set(case, row);
    if set.is_some_and(|set| set < 2.0 * memory) {
        // C1 speaks of that.
        return None;
    }
    let mut signs = Vec::new();
    let mut worst = 0.0_f64;
    if let Some(share) = device_share(row, |(read, _)| read) {
        ruling.judged();
        if share < 0.9 {
            let percent = share * 100.0;
            signs.push(format!(
                "the members read {percent:.0} % of the job's bytes"
            ));
            worst = worst.max(1.0 - share);
        }
    }
    if let Some(share) = command_share(row) {
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
    if let Some(ratio) = case.number(row, fact::COMPRESS_RATIO) {
        ruling.judged();
        if ratio > 1.05 {
            signs.push(format!("data are compressed by {ratio:.2}"));
        }
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
        // What a direct job writes passes memory by, and more than it wrote is
        // not its own: others write too.
        let direct = case.text(row, &fact::fio_option("direct")) == Some("1");
        if share > 0.05 && share <= 1.05 && !direct {
            let percent = share * 100.0;
            signs.push(format!("{percent:.0} % of the bytes were still in memory"));
            unwritten = share;
        }
    }
    let compressed = case
        .text(row, fact::COMPRESSION)
        .is_some_and(|kind| kind != "off");
    if let Some(share) = device_share(row, |(_, written)| written).filter(|_| !compressed) {
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
        let cached = ruling.need(may_be_cached(case, row), "fio.option.direct");
        let option = |name: &str| case.text(row, &fact::fio_option(name));
        let range = case.text(row, fact::JOB_WORKING_SET_BYTES);
        let offset = case.text(row, fact::JOB_OFFSET_BYTES);
        let offset = ruling.need(offset, fact::JOB_OFFSET_BYTES);
        let (Some(cached), Some(offset)) = (cached, offset) else {
            continue;
        };
        ruling.judged();
        let seed = match offsets_seed(row, option("randrepeat"), option("randseed")) {
            OffsetsSeed::Own(seed) => seed,
            OffsetsSeed::Default => "",
            OffsetsSeed::Random => continue,
        };
        if !cached {
            continue;
        }
        let key = [
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
        .map(str::to_owned)
        .to_vec();
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
