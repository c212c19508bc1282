use super::{observations, rows};
use raidlab_store::{Measurement, Operation, Scope, fact};
use raidlab_tools::{Part, Tool, ToolResult};

fn value(text: &str, tool: Tool, name: &str) -> Option<String> {
    let result = tool.parse(text).expect("a tool's output");
    let all = observations(&result, &Scope::default());
    let mut found = all.into_iter().filter(|one| one.name == name);
    let first = found.next()?.value;
    assert_eq!(found.next(), None, "{name} is written once");
    Some(first)
}

#[test]
fn clones_of_one_group_are_one_row_with_the_longest_time() {
    let text = "a: (g=0): rw=read, bs=4K-4K/4K-4K/4K-4K, ioengine=sync, iodepth=1\n\
        b: (g=0): rw=read, bs=4K-4K/4K-4K/4K-4K, ioengine=sync, iodepth=1\n\
        fio-2.1.9\n\
        a: (groupid=0, jobs=1): err= 0: pid=1: Mon Apr  6 08:34:08 2015\n  \
        read : io=40KB, bw=4KB/s, iops=1, runt= 10000msec\n     \
        issued    : total=r=10/w=0/d=0, short=r=0/w=0/d=0\n\
        b: (groupid=0, jobs=2): err= 0: pid=2: Mon Apr  6 08:34:08 2015\n  \
        read : io=120KB, bw=6KB/s, iops=1, runt= 20000msec\n     \
        issued    : total=r=30/w=0/d=0, short=r=0/w=0/d=0\n\n\
        Run status group 0 (all jobs):\n   \
        READ: io=160KB, aggrb=8KB/s, minb=4KB/s, maxb=6KB/s, mint=10000msec, maxt=20000msec\n";
    let result = raidlab_tools::fio::TOOL
        .parse(text)
        .expect("fio's own output");
    let rows = rows(&result, &Measurement::blank(crate::BENCH));
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].op, Operation::Read);
    assert_eq!(rows[0].total_ios, 40);
    assert_eq!(rows[0].total_bytes, 40 * 4096);
    assert_eq!(rows[0].runtime_ns, 20_000_000_000);
    assert!((rows[0].iops - 2.0).abs() < 1e-9);
    assert_eq!(
        value(text, raidlab_tools::fio::TOOL, fact::FIO_JOBS).as_deref(),
        Some("3")
    );
    let shortest = value(
        text,
        raidlab_tools::fio::TOOL,
        fact::FIO_SHORTEST_RUNTIME_NS,
    );
    assert_eq!(shortest.as_deref(), Some("10000000000"));
    let engine = value(
        text,
        raidlab_tools::fio::TOOL,
        &fact::fio_option("ioengine"),
    );
    assert_eq!(engine.as_deref(), Some("sync"));
}

#[test]
fn files_of_bonnie_are_counted_in_thousands_of_their_own() {
    let line = "1.98,1.98,m,1,,64G,,8192,5,299k,97,76.8m,6,40.8m,3,702k,96,232m,8,220.6,2,16,,,,,\
        +++++,+++,+++++,+++,4145.3,1,+++++,+++,+++++,+++,3683.1,1,,,,,175ms,325ms,,,,,,";
    let get = |name: &str| value(line, raidlab_tools::bonnie::TOOL, name);
    assert_eq!(get(fact::BONNIE_FILES).as_deref(), Some("16384"));
    assert_eq!(get(fact::BONNIE_FILES_ASKED).as_deref(), Some("16"));
    let short = fact::bonnie_not_timed(Operation::CreateSequential);
    assert_eq!(get(&short).as_deref(), Some(fact::TRUE));
    let size = (64_u64 << 30).to_string();
    assert_eq!(get(fact::JOB_WORKING_SET_BYTES), Some(size));
    let result = raidlab_tools::bonnie::TOOL
        .parse(line)
        .expect("bonnie++'s own form");
    let rows = rows(&result, &Measurement::blank(crate::BENCH));
    let read = rows.iter().find(|row| row.op == Operation::Read);
    assert!(read.is_some_and(
        |row| (row.bytes_per_second - 232.0 * 1_048_576.0).abs() < 1.0
            && row.latency.max_ns == 175_000_000
    ));
    assert!(rows.iter().all(|row| row.op != Operation::CreateSequential));
}

/// Every fixture of the tools' readers, by tool.
const FIXTURES: [(Tool, &[&str]); 4] = [
    (
        raidlab_tools::fio::TOOL,
        &[
            include_str!("../../../tools/src/fio/data/fio-2.1.14.json"),
            include_str!("../../../tools/src/fio/data/fio-2.20.json"),
            include_str!("../../../tools/src/fio/data/fio-3.33-global-options.json"),
            include_str!("../../../tools/src/fio/data/fio-3.33-glued.json"),
            include_str!("../../../tools/src/fio/data/fio-3.33-group.json"),
            include_str!("../../../tools/src/fio/data/fio-3.33-mixed.json"),
            include_str!("../../../tools/src/fio/data/fio-3.33-reduced.json"),
            include_str!("../../../tools/src/fio/data/fio-3.33-steady-state.json"),
            include_str!("../../../tools/src/fio/data/fio-3.33-two-jobs.json"),
            include_str!("../../../tools/src/fio/data/fio-3.33-v3.terse"),
            include_str!("../../../tools/src/fio/data/fio-3.33-v4.terse"),
            include_str!("../../../tools/src/fio/data/fio-3.33-v5.terse"),
            include_str!("../../../tools/src/fio/data/fio-3.33.txt"),
            include_str!("../../../tools/src/fio/data/fio-3.42.txt"),
        ],
    ),
    (
        raidlab_tools::bonnie::TOOL,
        &[
            include_str!("../../../tools/src/bonnie/data/2.00a-fast.txt"),
            include_str!("../../../tools/src/bonnie/data/2.00a-files.txt"),
            include_str!("../../../tools/src/bonnie/data/2.00a-small.txt"),
            include_str!("../../../tools/src/bonnie/data/2.00a-x2.csv"),
        ],
    ),
    (
        raidlab_tools::iozone::TOOL,
        &[
            include_str!("../../../tools/src/iozone/data/3.489-excel.txt"),
            include_str!("../../../tools/src/iozone/data/3.489-latency.txt"),
            include_str!("../../../tools/src/iozone/data/3.489-ops.txt"),
            include_str!("../../../tools/src/iozone/data/3.489-subset.txt"),
            include_str!("../../../tools/src/iozone/data/3.489-throughput-excel.txt"),
            include_str!("../../../tools/src/iozone/data/3.489-throughput.txt"),
        ],
    ),
    (
        raidlab_tools::dd::TOOL,
        &[
            include_str!("../../../tools/src/dd/data/busybox-1.35-debian.txt"),
            include_str!("../../../tools/src/dd/data/gnu-9.1-c.txt"),
            include_str!("../../../tools/src/dd/data/gnu-9.1-de.txt"),
            include_str!("../../../tools/src/dd/data/gnu-9.1-fr.txt"),
            include_str!("../../../tools/src/dd/data/gnu-9.1-ru.txt"),
        ],
    ),
];

#[test]
fn each_part_of_a_tool_s_output_is_a_row_or_says_why_not() {
    let mut seen = std::collections::BTreeSet::new();
    for (tool, texts) in FIXTURES {
        for (index, text) in texts.iter().enumerate() {
            let result = tool.parse(text).expect("a tool's output");
            let rows = rows(&result, &Measurement::blank(crate::BENCH));
            for part in &result.parts {
                let row = rows.iter().find(|row| {
                    let named = row.part.is_empty() || row.part == part.label;
                    row.op == part.operation && named
                });
                let why = part.fact("no-rate").is_some();
                let place = format!("{tool} {index}: {} {}", part.operation, part.label);
                assert!(row.is_some() || why, "{place} is lost");
                assert!(row.is_none_or(|row| row.value() > 0.0 || why), "{place}");
                seen.extend(row.map(|row| row.op));
            }
        }
    }
    for op in [Operation::Mixed, Operation::Sync] {
        assert!(seen.contains(&op), "no fixture has {op}");
    }
}

#[test]
fn whatever_a_tool_timed_is_a_row_by_its_own_name() {
    let mut result = ToolResult::new(raidlab_tools::iozone::TEXT);
    for (job, op) in (0..).zip(Operation::ALL) {
        let mut part = Part::new(job, "64k/4k", *op);
        part.bytes_per_second = Some(1e6);
        result.parts.push(part);
    }
    let rows = rows(&result, &Measurement::blank(crate::BENCH));
    let ops: Vec<Operation> = rows.iter().map(|row| row.op).collect();
    assert_eq!(ops, Operation::ALL);
}

#[test]
fn flushes_are_a_row_of_their_own() {
    let text = include_str!("../../../tools/src/fio/data/fio-3.33-two-jobs.json");
    let result = raidlab_tools::fio::TOOL
        .parse(text)
        .expect("fio's own output");
    let rows = rows(&result, &Measurement::blank(crate::BENCH));
    let flushes = rows.iter().find(|row| row.op == Operation::Sync);
    let flushes = flushes.expect("15 flushes of the second job");
    assert_eq!((flushes.total_ios, flushes.total_bytes), (15, 0));
    assert_eq!(flushes.runtime_ns, 9_000_000);
    assert!(flushes.latency.is_recorded());
}

#[test]
fn a_printed_rate_of_dd_is_kept_where_it_is_not_bytes_over_seconds() {
    let text = "262144+0 records in\n262144+0 records out\n\
        1073741824 bytes transferred in 20.888 secs (49020000 bytes/sec)\n";
    let printed = value(
        text,
        raidlab_tools::dd::TOOL,
        fact::DD_PRINTED_BYTES_PER_SECOND,
    );
    assert_eq!(printed.as_deref(), Some("49020000"));
    let right = text.replace("49020000", "51404721");
    assert_eq!(
        value(
            &right,
            raidlab_tools::dd::TOOL,
            fact::DD_PRINTED_BYTES_PER_SECOND
        ),
        None
    );
}
