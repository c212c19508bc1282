//! Real output of fio 2.1.14, 2.20 and 3.33 (this project's own runs on files),
//! and what is rare in it, written after stat.c.

use super::{parse, without_nan};
use crate::result::LatencyKind;
use crate::{Operation, ParseError};

const TWO_JOBS: &str = include_str!("../data/fio-3.33-two-jobs.json");
const GROUP: &str = include_str!("../data/fio-3.33-group.json");
const MIXED: &str = include_str!("../data/fio-3.33-mixed.json");
const REDUCED: &str = include_str!("../data/fio-3.33-reduced.json");
const STEADY: &str = include_str!("../data/fio-3.33-steady-state.json");

#[test]
fn parts_are_operations_of_jobs() {
    let result = parse(TWO_JOBS).expect("fio's own output");
    assert_eq!(result.version, "3.33");
    let parts: Vec<_> = result
        .parts
        .iter()
        .map(|part| {
            (
                part.job,
                part.label.as_str(),
                part.operation,
                part.block_size_bytes,
            )
        })
        .collect();
    assert_eq!(
        parts,
        [
            (0, "a", Operation::Read, Some(4096)),
            (0, "a", Operation::Write, Some(4096)),
            (1, "b", Operation::Write, Some(65536)),
            (1, "b", Operation::Sync, None),
        ]
    );
    let write = &result.parts[2];
    assert_eq!(
        (write.total_ios, write.total_bytes),
        (Some(128), Some(8 << 20))
    );
    assert_eq!(write.file_size_bytes, Some(8 << 20));
    let rate = write.total_bytes.expect("bytes") as f64 / write.runtime_ns.expect("a time") as f64;
    assert!((write.bytes_per_second.expect("a rate") - rate * 1e9).abs() < 1.0);
    let latency = write.latency().expect("timed");
    assert_eq!(latency.kind, LatencyKind::Completion);
    assert_eq!((latency.samples, latency.bins.len()), (Some(128), 5));
    assert!(latency.bins.is_sorted() && latency.percentiles.is_sorted_by(|a, b| a.0 < b.0));
    assert!(result.fact(Some(0), "usr_cpu").is_some());
    assert!(result.options.iter().any(|option| option.job == Some(1)
        && (option.name.as_str(), option.value.as_str()) == ("fsync", "8")));
}

#[test]
fn the_rate_of_a_group_is_bytes_by_time() {
    let result = parse(GROUP).expect("fio's own output");
    let [part] = &result.parts[..] else {
        panic!("one direction was used: {:?}", result.parts);
    };
    assert_eq!(part.total_bytes, Some(212_127_744));
    assert_eq!(part.runtime_ns, Some(1_001_000_000));
    let rate = part.bytes_per_second.expect("a rate");
    // fio itself printed 211915828 here.
    assert!((rate - 211_915_828.2).abs() < 1.0, "{rate}");
    assert_eq!(part.fact("printed-rate"), None);
    assert_eq!(part.latencies.len(), 3);
    let level = result.fact(Some(0), "iodepth_level 4").expect("a share");
    assert_eq!(level.to_string(), "iodepth_level 4=99.988415%");
    assert_eq!(result.fact(Some(0), "iodepth_level 8"), None);
    assert_eq!(result.disks[0].name, "vda");
    assert_eq!(result.disks[0].own.read_ios, Some(24541));
    assert_eq!(result.disks[0].members, None);
}

#[test]
fn unified_and_reduced_reports_are_read() {
    let mixed = parse(MIXED).expect("fio's own output");
    assert_eq!(mixed.parts[0].operation, Operation::Mixed);
    assert_eq!(mixed.parts[0].total_ios, Some(1024));
    let reduced = parse(REDUCED).expect("fio's own output");
    assert_eq!(reduced.parts.len(), 1);
    assert_eq!(reduced.parts[0].latencies, []);
    assert_eq!(reduced.parts[0].fact("bw_mean"), None);
    assert_eq!(reduced.parts[0].total_ios, Some(1024));
}

#[test]
fn a_steady_state_is_told_as_facts() {
    let result = parse(STEADY).expect("fio's own output");
    let value = |name: &str| {
        result
            .fact(Some(0), name)
            .map(|fact| fact.value.to_string())
    };
    assert_eq!(value("steadystate attained").as_deref(), Some("1"));
    assert_eq!(value("steadystate ss").as_deref(), Some("iops:50.000000%"));
}

/// A direction of fio 2.1.14 to 2.20 with 1024 requests of 4 KiB in 2 s.
fn old(version: &str, io_bytes: u64) -> String {
    format!(
        r#"fio: this platform does not support process shared mutexes, forcing use of threads
{{
  "fio version" : "fio-{version}",
  "jobs" : [ {{ "jobname" : "x", "error" : 0,
    "read" : {{ "io_bytes" : {io_bytes}, "bw" : 2048, "iops" : 512.00, "runtime" : 2000, "total_ios" : 1024,
      "slat" : {{ "min" : 0, "max" : 0, "mean" : 0.00, "stddev" : 0.00 }},
      "clat" : {{ "min" : 3, "max" : 5000, "mean" : 40.50, "stddev" : -nan,
        "percentile" : {{ "99.000000" : 128, "50.000000" : 40, "0.00" : 0 }},
        "bins" : {{ "FIO_IO_U_PLAT_BITS" : 6, "40" : 1000, "128" : 24, "41" : 0 }} }},
      "lat" : {{ "min" : 3, "max" : 5001, "mean" : 41.00, "stddev" : 1.00 }},
      "bw_min" : 1, "bw_max" : 2, "bw_agg" : 100.00, "bw_mean" : 1.50, "bw_dev" : inf }},
    "write" : {{ "io_bytes" : 0, "bw" : 0, "iops" : 0.00, "runtime" : 0, "total_ios" : 0 }} }} ],
  "disk_util" : [ {{ "name" : "md1", "read_ios" : 10, "write_ios" : 2, "aggr_read_ios" : 5, "aggr_write_merge" : 7, "util" : 0.00, "aggr_util" : 99.50 }},
    {{ "name" : "sdc", "read_ios" : 9 }} ]
}}
"#
    )
}

#[test]
fn old_versions_count_kibibytes_and_microseconds() {
    for (version, io_bytes) in [("2.1.14", 4096), ("2.20", 4096), ("2.21", 4096 * 1024)] {
        let result = parse(&old(version, io_bytes)).expect(version);
        let [part] = &result.parts[..] else {
            panic!("one part");
        };
        assert_eq!(part.total_bytes, Some(4 << 20), "{version}");
        assert_eq!(part.bytes_per_second, Some(2_097_152.0), "{version}");
        assert_eq!(part.fact("printed-rate"), None, "{version}");
        let latency = part.latency().expect("timed");
        assert_eq!(latency.kind, LatencyKind::Completion);
        assert_eq!(
            (latency.mean_ns, latency.deviation_ns),
            (Some(40500.0), None)
        );
        assert_eq!(latency.percentiles, [(50.0, 40_000), (99.0, 128_000)]);
        assert_eq!(latency.bins, [(40_000, 1000), (129_000, 24)]);
        assert_eq!(result.disks[0].own.read_ios, Some(10));
        let members = result.disks[0].members.expect("an array");
        assert_eq!(
            (members.write_merges, members.util_percent),
            (Some(7), Some(99.5))
        );
        assert!(result.messages[0].contains("forcing use of threads"));
    }
}

/// fio 3.33: `total_ios` of flushes counts `fsync` alone, and what is timed is the flush
/// at the end too.
#[test]
fn flushes_by_fdatasync_are_counted_by_their_times() {
    let syncs = |options: &str, counted: u64, timed: u64| {
        let job = format!(
            r#""jobname" : "x", "job options" : {{ {options} }},
            "sync" : {{ "total_ios" : {counted}, "lat_ns" : {{ "min" : 1, "max" : 5, "mean" : 3.0,
              "stddev" : 1.0, "N" : {timed} }} }},"#
        );
        let text = old("3.33", 4096 * 1024).replace("\"jobname\" : \"x\",", &job);
        let result = parse(&text).expect("3.33");
        let mut parts = result.parts.into_iter();
        let part = parts.find(|part| part.operation == Operation::Sync)?;
        part.total_ios
    };
    assert_eq!(syncs(r#""fdatasync" : "1""#, 0, 299), Some(299));
    assert_eq!(syncs(r#""end_fsync" : "1""#, 0, 299), None);
    // As with `--size=4m --bs=64k --rw=write`.
    let both = r#""fsync" : "5", "fdatasync" : "3""#;
    assert_eq!(syncs(both, 12, 29), Some(29));
    // With `gtod_reduce` nothing is timed.
    assert_eq!(syncs(both, 12, 0), None);
    assert_eq!(syncs(r#""fsync" : "5""#, 12, 0), Some(12));
}

#[test]
fn bins_are_buckets_up_to_2_19_and_times_since() {
    let times = old("2.20", 4096).replace("\"FIO_IO_U_PLAT_BITS\" : 6, ", "");
    let result = parse(&times).expect("2.20");
    let latency = result.parts[0].latency().expect("timed");
    assert_eq!(latency.bins, [(40_000, 1000), (128_000, 24)]);
}

#[test]
fn real_output_of_old_versions_is_consistent() {
    for (text, version) in [
        (include_str!("../data/fio-2.1.14.json"), "2.1.14"),
        (include_str!("../data/fio-2.20.json"), "2.20"),
    ] {
        let result = parse(text).expect(version);
        assert_eq!(result.version, version);
        let bytes: Vec<_> = result.parts.iter().map(|part| part.total_bytes).collect();
        assert_eq!(bytes.len(), 3, "{version}");
        assert_eq!(
            bytes[0].and_then(|read| Some(read + bytes[1]?)),
            Some(4 << 20)
        );
        assert_eq!(bytes[2], Some(4 << 20));
        for part in &result.parts {
            assert_eq!(part.fact("printed-rate"), None, "{version}");
            assert_eq!(part.fact("bw_mean"), None, "{version}");
            let latency = part.latency().expect("timed");
            let slowest = latency.max_ns.expect("a time");
            assert!(slowest >= 10_000 && slowest < part.runtime_ns.expect("a time"));
        }
    }
}

#[test]
fn a_wrong_unit_would_be_told_by_the_printed_rate() {
    let result = parse(&old("2.21", 4096)).expect("a document");
    assert!(result.parts[0].fact("printed-rate").is_some());
}

#[test]
fn clients_are_read_without_their_sum() {
    let client = |name: &str, host: &str| {
        format!(
            r#"{{"jobname":"{name}","hostname":"{host}","read":{{"io_bytes":8,"io_kbytes":0,"total_ios":2,"runtime":1}}}}"#
        )
    };
    let text = format!(
        r#"{{"fio version":"fio-3.28","client_stats":[{},{},{}],"disk_util":[]}}"#,
        client("a", "one"),
        client("a", "two"),
        client("All clients", "")
    );
    let result = parse(&text).expect("a document");
    assert_eq!(result.parts.len(), 2);
    let host = result.fact(Some(1), "hostname").expect("a host");
    assert_eq!(host.value.to_string(), "two");
    assert_eq!(result.messages, ["the sum over all clients is left out"]);
}

#[test]
fn the_last_of_several_documents_counts() {
    let text = format!(
        "{}\n{}\ntrailing words\n",
        old("2.1.14", 4),
        old("2.1.14", 4096)
    );
    let result = parse(&text).expect("two documents");
    assert_eq!(result.parts[0].total_bytes, Some(4 << 20));
    assert_eq!(
        result.messages.last().map(String::as_str),
        Some("trailing words")
    );
    let cut = format!("{}\n{{ \"fio", old("2.1.14", 4096));
    let result = parse(&cut).expect("one whole document");
    assert!(
        result
            .messages
            .last()
            .expect("a message")
            .contains("is broken")
    );
}

#[test]
fn errors_name_line_and_member() {
    let message = |text: &str| parse(text).expect_err(text).to_string();
    assert_eq!(
        message("fio: nothing"),
        "no output of fio found: expected a line that begins with `{`, and in it `jobs` or `client_stats`"
    );
    assert_eq!(
        message("warning\n{\"jobs\":[{\"jobname\":7}]}"),
        "the JSON that begins in line 2: `jobs[0].jobname`: expected a text, found `7`"
    );
    assert_eq!(
        message("{\"jobs\":[{\"read\":{\"io_bytes\":-4}}]}"),
        "the JSON that begins in line 1: `jobs[0].read.io_bytes`: expected a whole number, found `-4`"
    );
    assert!(matches!(
        parse(&TWO_JOBS[..3000]),
        Err(ParseError::Json { line: 1, .. })
    ));
}

#[test]
fn words_for_no_number_become_null() {
    assert_eq!(
        without_nan(r#"{"a":-nan,"nan":"-nan \" inf","b":[inf,NaN],"c":1}"#),
        r#"{"a":null,"nan":"-nan \" inf","b":[null,null],"c":1}"#
    );
}

#[test]
fn clones_that_are_reported_together_are_counted() {
    let clones = |text: &str| {
        let result = parse(text).expect("fio's own output");
        let of = |job| Some(result.fact(Some(job), "jobs")?.value.to_string());
        [of(0), of(1)]
    };
    let one = |count: &str| Some(count.to_owned());
    assert_eq!(clones(GROUP), [one("2"), None]);
    assert_eq!(clones(TWO_JOBS), [None, None]);
    let apart = "{ \"fio version\": \"fio-3.33\", \"jobs\": [
        { \"jobname\": \"a\", \"job options\": { \"numjobs\": \"2\" }, \"error\": 0 },
        { \"jobname\": \"a\", \"job options\": { \"numjobs\": \"2\" }, \"error\": 0 } ] }";
    assert_eq!(clones(apart), [one("1"), one("1")]);
}

#[test]
fn clones_of_several_jobs_in_one_report_are_not_counted() {
    let jobs = |name: &str| {
        let text = format!(
            r#"{{"jobs":[{{"jobname":"a","job options":{{"name":"{name}","numjobs":"3"}}}}]}}"#
        );
        let result = parse(&text).expect("fio's own form");
        result
            .fact(Some(0), "jobs")
            .map(|fact| fact.value.to_string())
    };
    assert_eq!(jobs("a").as_deref(), Some("3"));
    assert_eq!(jobs("b"), None);
}

/// fio 3.33 with a job file of `[global] group_reporting`, `[a]` and `[b]`, shortened: the options
/// are those of `[b]`, without its name.
#[test]
fn several_jobs_of_a_file_in_one_report_do_not_contradict_the_options_of_the_last() {
    let told = |options: &str, level: &str, directions: &str| {
        let text = format!(
            r#"{{ "fio version": "fio-3.33", "jobs": [ {{ "jobname": "a", "groupid": 0, "error": 0,
            "job options": {{ {options} }}, "usr_cpu": 2, "sys_cpu": 12,
            "iodepth_level": {{ "{level}": 96.2 }}, {directions} }} ] }}"#
        );
        let result = parse(&text).expect("JSON");
        let contradictions = crate::fio::consistency::contradictions(&result);
        assert_eq!(contradictions, [""; 0]);
        assert_eq!(result.parts[0].cpu_percent, None);
        let title = result.tool.title(&result);
        (title.title, title.class)
    };
    let both = r#""read": { "io_bytes": 25165824, "total_ios": 6144, "runtime": 15 },
        "write": { "io_bytes": 8388608, "total_ios": 128, "runtime": 3 }"#;
    let of_two_sizes = r#""read": { "io_bytes": 25165824, "total_ios": 4224, "runtime": 66 }"#;
    let of_two_depths = r#""read": { "io_bytes": 25165824, "total_ios": 6144, "runtime": 66 }"#;
    let read = |depth: &str| format!(r#""rw": "randread", "bs": "4k", "iodepth": "{depth}""#);
    let cases = [
        (
            r#""rw": "write", "bs": "64k""#,
            "1",
            both,
            "reads and writes, queue depth 1 or more",
            "mixed",
        ),
        (
            &read("16"),
            "16",
            of_two_sizes,
            "read, queue depth 16 or more",
            "read",
        ),
        (
            &read("1"),
            "32",
            of_two_depths,
            "read 4 KiB, queue depth 32 or more",
            "read",
        ),
    ];
    for (options, level, directions, title, class) in cases {
        let expected = (title.to_owned(), class.to_owned());
        assert_eq!(told(options, level, directions), expected);
    }
}

/// Without `group_reporting`, as fio 3.33 lists four clones, shortened.
#[test]
fn clones_that_are_listed_begin_where_their_numbers_say() {
    use raidlab_results::fact::{FIO_STREAMS_ON_ONE_REGION, JOB_WORKING_SET_BYTES};
    let told = |listed: usize, step: &str| {
        let job = format!(
            r#"{{ "jobname": "sr", "groupid": 0, "error": 0, "job options": {{ "rw": "read",
            "filename": "tf", "size": "16M", "numjobs": "4"{step} }},
            "read": {{ "io_bytes": 4096, "total_ios": 1, "runtime": 2000 }} }}"#
        );
        let jobs = vec![job; listed].join(",");
        let text = format!(r#"{{ "fio version": "fio-3.33", "jobs": [ {jobs} ] }}"#);
        let result = parse(&text).expect("JSON");
        let facts = crate::Facts::of(&result).all;
        [FIO_STREAMS_ON_ONE_REGION, JOB_WORKING_SET_BYTES].map(|name| {
            let found = facts.iter().find(|fact| fact.name == name);
            found.and_then(|fact| fact.value.parse::<u64>().ok())
        })
    };
    let step = r#", "offset_increment": "16M""#;
    let all = Some(64 << 20);
    assert_eq!(told(4, ""), [Some(4), Some(16 << 20)]);
    assert_eq!(told(4, step), [Some(1), all]);
    // With `group_reporting`, and two jobs of one name.
    assert_eq!(told(1, step), [Some(1), all]);
    assert_eq!(told(8, step), [Some(2), all]);
}

/// Levels of one job make 100 %, those of two jobs do not.
#[test]
fn levels_are_those_of_the_first_job() {
    let job = |name: &str, depth: &str| {
        format!(
            r#"{{ "jobname": "{name}", "groupid": 0, "error": 0, "iodepth_level": {{ "{depth}": 100 }},
            "read": {{ "io_bytes": 4096, "total_ios": 1, "runtime": 2000 }} }}"#
        )
    };
    let jobs = [job("a", "1"), job("b", "2")].join(",");
    let text = format!(r#"{{ "fio version": "fio-3.33", "jobs": [ {jobs} ] }}"#);
    let facts = crate::Facts::of(&parse(&text).expect("JSON")).all;
    let told = |level| {
        let name = raidlab_results::fact::fio_depth_level(level);
        facts.iter().any(|fact| fact.name == name)
    };
    assert_eq!([told("1"), told("2")], [true, false]);
}

/// fio 3.33 with `--size=8m --bs=4k` behind `--kb_base=1000`, whose blocks have 4000 bytes.
#[test]
fn sizes_in_powers_of_1000_are_no_contradiction() {
    let text = r#"{ "fio version": "fio-3.33", "jobs": [ { "jobname": "a", "groupid": 0, "error": 0,
        "job options": { "name": "a", "kb_base": "1000", "rw": "randread", "bs": "4k" },
        "read": { "io_bytes": 8000000, "total_ios": 2000, "runtime": 54 } } ] }"#;
    let result = parse(text).expect("JSON");
    let contradictions = crate::fio::consistency::contradictions(&result);
    assert_eq!(contradictions, [""; 0]);
}
