use super::{observations, rows};
use raidlab_store::{Measurement, Operation, Scope, fact};
use raidlab_tools::{LatencyKind, Part, ReportedLatency, Tool, ToolResult};

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

/// A broken file does not become a small number.
#[test]
fn a_sum_that_is_too_large_does_not_begin_again_at_0() {
    let job = format!(
        r#"{{ "jobname": "a", "groupid": 0, "error": 0, "read": {{ "io_bytes": {0},
        "total_ios": {0}, "runtime": 2000 }} }}"#,
        u64::MAX / 2 + 1
    );
    let text = format!(r#"{{ "fio version": "fio-3.33", "jobs": [ {job}, {job} ] }}"#);
    let result = raidlab_tools::fio::TOOL.parse(&text).expect("JSON");
    let rows = rows(&result, &Measurement::blank(crate::BENCH));
    assert_eq!(
        (rows[0].total_ios, rows[0].total_bytes),
        (u64::MAX, u64::MAX)
    );
}

/// `iozone -t 2` and `bonnie++ -c 4`: each row says how many did it together.
#[test]
fn processes_of_a_tool_are_streams_of_its_rows() {
    let streams = |text: &str, tool: raidlab_tools::Tool| {
        let result = tool.parse(text).expect("the tool's output");
        let rows = rows(&result, &Measurement::blank(crate::BENCH));
        let told: Vec<_> = rows
            .iter()
            .map(|row| (row.streams, row.queue_depth))
            .collect();
        assert!(!told.is_empty());
        assert!(told.iter().all(|one| *one == told[0]), "{told:?}");
        told[0]
    };
    let iozone = include_str!("../../../tools/src/iozone/data/3.489-throughput.txt");
    assert_eq!(streams(iozone, raidlab_tools::iozone::TOOL), (2, 2));
    let csv = "1.97,1.97,nas,4,1425384953,16G,,612,98,187654,30,87654,15,1650,95,234567,18,\
        456.7,12,,,,,,,,,,,,,,,,,,17432us,612ms,1234ms,22334us,210ms,345ms,,,,,,";
    assert_eq!(streams(csv, raidlab_tools::bonnie::TOOL), (4, 4));
    let table = "\
Version  1.97       ------Sequential Output------ --Sequential Input- --Random-
Concurrency   4     -Per Chr- --Block-- -Rewrite- -Per Chr- --Block-- --Seeks--
Machine        Size K/sec %CP K/sec %CP K/sec %CP K/sec %CP K/sec %CP  /sec %CP
nas             16G   612  98 187654  30 87654  15  1650  95 234567  18 456.7  12
Latency             17432us     612ms    1234ms   22334us     210ms     345ms
";
    assert_eq!(streams(table, raidlab_tools::bonnie::TOOL), (4, 4));
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

/// Every recording of a tool's output, with its path: what lies in the folders `data` of
/// the tools' own.
fn recordings() -> Vec<(Tool, String, String)> {
    let tools = concat!(env!("CARGO_MANIFEST_DIR"), "/../tools/src");
    let mut found = Vec::new();
    for tool in Tool::all() {
        let folder = format!("{tools}/{}/data", tool.name().trim_end_matches('+'));
        for entry in std::fs::read_dir(&folder).expect(&folder) {
            let path = entry.expect("a recording").path();
            let text = std::fs::read_to_string(&path).expect("a recording is text");
            if path.extension().is_some_and(|extension| extension != "md") {
                found.push((*tool, path.display().to_string(), text));
            }
        }
    }
    found.sort_by(|one, other| one.1.cmp(&other.1));
    found
}

#[test]
fn each_part_of_a_tool_s_output_is_a_row_or_says_why_not() {
    let mut seen = std::collections::BTreeSet::new();
    let recordings = recordings();
    assert!(recordings.len() >= 32, "{}", recordings.len());
    for (tool, path, text) in &recordings {
        let result = tool.parse(text).expect(path);
        assert!(!result.parts.is_empty(), "{path} has no result in it");
        let rows = rows(&result, &Measurement::blank(crate::BENCH));
        for part in &result.parts {
            let row = rows.iter().find(|row| {
                let named = row.part.is_empty() || row.part == part.label;
                row.op == part.operation && named
            });
            let why = part.fact("no-rate").is_some();
            let place = format!("{path}: {} {}", part.operation, part.label);
            assert!(row.is_some() || why, "{place} is lost");
            assert!(row.is_none_or(|row| row.value() > 0.0 || why), "{place}");
            seen.extend(row.map(|row| row.op));
        }
        let told = observations(&result, &Scope::default());
        let known = |name: &str| told.iter().any(|one| one.name == name);
        let of_all = result.facts.iter().map(|fact| (fact, None));
        let of_parts = result
            .parts
            .iter()
            .flat_map(|part| part.facts.iter().map(move |fact| (fact, Some(part))));
        for (fact, part) in of_all.chain(of_parts) {
            let own = tool.fact(fact, part, &mut raidlab_tools::Facts::default());
            let kept = own || known(&format!("tool.{}", fact.name));
            assert!(kept, "{path}: {} is lost", fact.name);
        }
    }
    for op in [Operation::Mixed, Operation::Sync] {
        assert!(seen.contains(&op), "no recording has {op}");
    }
}

#[test]
fn every_recording_can_be_imported_and_gives_its_rows() {
    for (_, path, text) in recordings() {
        let name = path.rsplit('/').next().unwrap_or_default();
        let imported = crate::import_file(name, &text, &crate::ImportOptions::default());
        let imported = imported.expect(&path);
        let rows = imported.cells.iter().map(|cell| cell.rows.len());
        assert!(rows.sum::<usize>() > 0, "{path} has no row");
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

#[test]
fn the_percentiles_of_one_process_are_not_those_of_all() {
    let mut result = ToolResult::new(raidlab_tools::fio::JSON);
    for (job, mean_ns, count) in [(0, 1e6, 300), (1, 9e6, 100)] {
        let mut part = Part::new(job, "a", Operation::Read);
        (part.total_ios, part.runtime_ns) = (Some(count), Some(10_000_000_000));
        part.latencies.push(ReportedLatency {
            mean_ns: Some(mean_ns),
            max_ns: Some(20_000_000),
            percentiles: vec![(50.0, 900_000)],
            ..ReportedLatency::new(LatencyKind::Total)
        });
        result.parts.push(part);
    }
    let latency = &rows(&result, &Measurement::blank(crate::BENCH))[0].latency;
    assert_eq!((latency.p50_ns, latency.max_ns), (0, 20_000_000));
    assert!((latency.mean_ns - 3e6).abs() < 1.0, "{latency:?}");
}
