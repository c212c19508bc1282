//! Clean files that somebody has edited: what a dishonest or careless hand leaves behind.

use super::{imported, judged};
use crate::{ImportOptions, import_file};
use raidlab_store::{Operation, Severity};

const JSON: &str = include_str!("clean/fio-02.json");
const TEXT: &str = include_str!("clean/fio-19.txt");
const TERSE: &str = include_str!("clean/fio-18.terse");
const ONE_BY_ONE: &str = include_str!("clean/fio-01.json");
const STREAM: &str = include_str!("clean/fio-12.json");
const WRITES: &str = include_str!("clean/fio-07.json");
const DD: &str = include_str!("clean/dd-05.txt");

/// What was put into a clean file, with the facts beside it, and the rule that finds it.
type Plant = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static [&'static str],
    &'static str,
);

const RATE: (&str, &str) = (
    r#""bw_bytes":123966763,"bw":121061"#,
    r#""bw_bytes":371900289,"bw":363183"#,
);
const BYTES: (&str, &str) = (r#""io_bytes":744296448"#, r#""io_bytes":2232889344"#);
const IOPS: (&str, &str) = (r#""iops":30265.323118"#, r#""iops":90795.969354"#);
const COUNT: (&str, &str) = (r#""total_ios":181713"#, r#""total_ios":545139"#);

const PLANTS: &[Plant] = &[
    (
        "a limit of requests",
        ONE_BY_ONE,
        &[(r#""bs":"4k""#, r#""bs":"4k","rate_iops":"1260,1260""#)],
        &[],
        "T34",
    ),
    (
        "a limit of bytes",
        STREAM,
        &[(r#""bs":"64k""#, r#""bs":"64k","rate":"80m""#)],
        &[],
        "T34",
    ),
    (
        "a time to think",
        ONE_BY_ONE,
        &[(r#""bs":"4k""#, r#""bs":"4k","thinktime":"600""#)],
        &[],
        "T34",
    ),
    ("a higher rate", JSON, &[RATE], &[], "T31"),
    ("a higher rate of requests", JSON, &[IOPS], &[], "T31"),
    (
        "more bytes at a higher rate",
        JSON,
        &[RATE, BYTES],
        &[],
        "T35",
    ),
    (
        "more requests at a higher rate",
        JSON,
        &[IOPS, COUNT],
        &[],
        "T35",
    ),
    (
        "three times of everything",
        JSON,
        &[RATE, BYTES, IOPS, COUNT],
        &[],
        "T36",
    ),
    (
        "a shorter time",
        JSON,
        &[(r#""runtime":6004,"total"#, r#""runtime":2001,"total"#)],
        &[],
        "T36",
    ),
    (
        "other blocks",
        JSON,
        &[(r#""bs":"4k""#, r#""bs":"16k""#)],
        &[],
        "T35",
    ),
    (
        "a higher rate in text",
        TEXT,
        &[("BW=73.7MiB/s", "BW=173.7MiB/s")],
        &[],
        "T31",
    ),
    (
        "a higher rate of requests in text",
        TEXT,
        &[("IOPS=18.9k", "IOPS=38.9k")],
        &[],
        "T31",
    ),
    (
        "a higher rate and more bytes in text",
        TEXT,
        &[("BW=73.7MiB/s", "BW=147MiB/s"), ("(442MiB/", "(884MiB/")],
        &[],
        "T35",
    ),
    (
        "a sum that is none",
        TEXT,
        &[("io=442MiB", "io=884MiB")],
        &[],
        "T35",
    ),
    (
        "another unit in text",
        TEXT,
        &[("BW=73.7MiB/s", "BW=77.2MiB/s")],
        &[],
        "T19",
    ),
    (
        "a higher rate in terse output",
        TERSE,
        &[(";75427;", ";175427;")],
        &[],
        "T31",
    ),
    (
        "latencies of more than the depth",
        JSON,
        &[
            (r#""mean":1052143.597827"#, r#""mean":4052143.597827"#),
            (r#""mean":1056685.458261"#, r#""mean":4056685.458261"#),
        ],
        &[],
        "T36",
    ),
    (
        "latencies of less than half of it",
        JSON,
        &[
            (r#""mean":1052143.597827"#, r#""mean":252143.597827"#),
            (r#""mean":1056685.458261"#, r#""mean":256685.458261"#),
        ],
        &[],
        "T36",
    ),
    (
        "one latency that is too good",
        JSON,
        &[(r#""mean":1056685.458261"#, r#""mean":756685.458261"#)],
        &[],
        "T35",
    ),
    (
        "a percentile below the median",
        JSON,
        &[(r#""99.000000":8290304"#, r#""99.000000":190304"#)],
        &[],
        "T35",
    ),
    (
        "a longest latency below the mean",
        JSON,
        &[(r#""max":45867972"#, r#""max":867972"#)],
        &[],
        "T35",
    ),
    (
        "reads of a job that writes",
        JSON,
        &[(r#""rw":"randread""#, r#""rw":"randwrite""#)],
        &[],
        "T35",
    ),
    (
        "another day",
        JSON,
        &[(r#""timestamp":1795442285"#, r#""timestamp":1792442285"#)],
        &[],
        "T35",
    ),
    (
        "clones of one stream",
        STREAM,
        &[(r#""bs":"64k""#, r#""bs":"64k","numjobs":"4""#)],
        &[],
        "T37",
    ),
    (
        "counters of another disk",
        JSON,
        &[(r#""filename":"f1""#, r#""filename":"/dev/sdb""#)],
        &[],
        "T38",
    ),
    (
        "records of dd",
        DD,
        &[
            ("68719476736 bytes", "137438953472 bytes"),
            ("167 MB/s", "333 MB/s"),
        ],
        &[],
        "T35",
    ),
    (
        "disks that turn too fast",
        JSON,
        &[],
        &["member.0.device=sdb", "disk.sdb.model=WD4000FYYZ"],
        "B1",
    ),
    (
        "writes above the bus",
        WRITES,
        &[],
        &[
            "member.0.device=sdb",
            "disk.sdb.rotational=no",
            "disk.sdb.transport=sata",
        ],
        "B1",
    ),
    (
        "parity that cost nothing",
        WRITES,
        &[],
        &[
            "level=raid5",
            "member.0.device=sdb",
            "member.1.device=sdc",
            "member.2.device=sdd",
            "disk.sdb.sequential_bytes_per_second=450000000",
            "disk.sdc.sequential_bytes_per_second=450000000",
            "disk.sdd.sequential_bytes_per_second=450000000",
        ],
        "B1",
    ),
];

/// Edits that leave a file as true as it was, and a rule that would be wrong to find one.
const SOUND: &[Plant] = &[
    (
        "reads of a quarter of a second",
        include_str!("rare/verified.json"),
        &[],
        &[],
        "C2",
    ),
    (
        "reads of a trace",
        include_str!("rare/traced.json"),
        &[(r#""runtime":3015"#, r#""runtime":6015"#)],
        &[],
        "C2",
    ),
    (
        "a limit that is far off",
        ONE_BY_ONE,
        &[(r#""bs":"4k""#, r#""bs":"4k","rate_iops":"5000""#)],
        &[],
        "T34",
    ),
    (
        "a limit of writes",
        ONE_BY_ONE,
        &[(r#""bs":"4k""#, r#""bs":"4k","rate_iops":",1260""#)],
        &[],
        "T34",
    ),
    (
        "a thought now and then",
        ONE_BY_ONE,
        &[(
            r#""bs":"4k""#,
            r#""bs":"4k","thinktime":"600","thinktime_blocks":"100""#,
        )],
        &[],
        "T34",
    ),
    (
        "blocks of many sizes",
        JSON,
        &[(r#""bs":"4k""#, r#""bssplit":"4k/50:16k/50""#)],
        &[],
        "T35",
    ),
    (
        "a trace",
        JSON,
        &[
            (r#""bs":"4k""#, r#""read_iolog":"trace""#),
            (r#""rw":"randread""#, r#""rw":"write""#),
        ],
        &[],
        "T35",
    ),
    (
        "a job that verifies",
        JSON,
        &[(
            r#""rw":"randread""#,
            r#""rw":"randwrite","verify":"crc32c""#,
        )],
        &[],
        "T35",
    ),
    (
        "bytes rounded to a digit",
        TEXT,
        &[("(442MiB/", "(0.4GiB/"), ("io=442MiB", "io=0.4GiB")],
        &[],
        "T35",
    ),
    (
        "clones apart",
        STREAM,
        &[(
            r#""bs":"64k""#,
            r#""bs":"64k","numjobs":"4","offset_increment":"256m""#,
        )],
        &[],
        "T37",
    ),
    (
        "clones with files of their own",
        STREAM,
        &[(r#""filename":"f1""#, r#""directory":"/mnt","numjobs":"4""#)],
        &[],
        "T37",
    ),
    (
        "clones that seek",
        JSON,
        &[(r#""bs":"4k""#, r#""bs":"4k","numjobs":"4""#)],
        &[],
        "T37",
    ),
    (
        "a part of the disk",
        JSON,
        &[(r#""filename":"f1""#, r#""filename":"/dev/vda3""#)],
        &[],
        "T38",
    ),
    (
        "a disk by its serial number",
        JSON,
        &[(
            r#""filename":"f1""#,
            r#""filename":"/dev/disk/by-id/ata-1""#,
        )],
        &[],
        "T38",
    ),
    (
        "a mirror of two",
        WRITES,
        &[],
        &[
            "level=raid1",
            "member.0.device=sdb",
            "member.1.device=sdc",
            "disk.sdb.sequential_bytes_per_second=1300000000",
            "disk.sdc.sequential_bytes_per_second=1300000000",
        ],
        "B1",
    ),
];

fn edited(plant: &Plant) -> String {
    let (name, text, edits, ..) = plant;
    edits.iter().fold((*text).to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{name}: `{from}` is not in the file");
        text.replacen(from, to, 1)
    })
}

fn rules(plant: &Plant) -> Vec<String> {
    let (name, _, _, facts, _) = plant;
    let findings = judged(imported(name, &edited(plant), facts)).findings;
    let serious = findings
        .into_iter()
        .filter(|finding| finding.severity > Severity::Note || finding.rule == "T19");
    serious.map(|finding| finding.rule).collect()
}

#[test]
fn edited_files_are_known() {
    let missed = PLANTS
        .iter()
        .filter(|plant| !rules(plant).iter().any(|rule| rule == plant.4));
    let missed: Vec<_> = missed.map(|plant| (plant.0, rules(plant))).collect();
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn honest_files_are_not_called_edited() {
    let wrong = SOUND
        .iter()
        .filter(|plant| rules(plant).iter().any(|rule| rule == plant.4));
    let wrong: Vec<_> = wrong.map(|plant| plant.0).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn what_is_printed_of_writes_is_no_rate_of_reads() {
    let mixed = include_str!("clean/fio-08.json");
    let printed = r#""bw_bytes":24307342,"bw":23737"#;
    assert!(mixed.contains(printed));
    let edited = mixed.replace(printed, r#""bw_bytes":94307342,"bw":92096"#);
    let findings = judged(imported("mixed.json", &edited, &[])).findings;
    let found = findings.iter().filter(|finding| finding.rule == "T31");
    let operations: Vec<_> = found.map(|finding| finding.op).collect();
    assert_eq!(operations, [Some(Operation::Write)]);
}

/// One file under two names, as somebody passes it who has measured once.
#[test]
fn a_result_that_is_there_twice_is_a_copy() {
    let import = |name, text| {
        let options = ImportOptions {
            subject: Some("array".to_owned()),
            ..ImportOptions::default()
        };
        import_file(name, text, &options).expect("fio's own output")
    };
    let copies = |second| {
        let all = import("first.json", JSON).join(import("second.json", second));
        let findings = judged(all).findings.into_iter();
        findings.filter(|finding| finding.rule == "R2").count()
    };
    assert_eq!(copies(JSON), 1);
    assert_eq!(copies(&JSON.replace("181713", "181722")), 0);
}
