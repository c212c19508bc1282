//! Clean files that somebody has edited: what a dishonest or careless hand leaves behind.

use super::{CLEAN, imported, judged};
use crate::{ImportOptions, import_file};
use raidlab_store::{Operation, Severity};
use raidlab_units::columns;

/// What was put into a clean file: the rule that finds it, the file, and in words; below it the
/// edits, `from => to`, and the facts beside the file, `name=value`.
const PLANTS: &str = r#"
T34  fio-01.json  a limit of requests
    "bs":"4k" => "bs":"4k","rate_iops":"1260,1260"
T34  fio-12.json  a limit of bytes
    "bs":"64k" => "bs":"64k","rate":"80m"
T34  fio-01.json  a time to think
    "bs":"4k" => "bs":"4k","thinktime":"600"
T31  fio-02.json  a higher rate
    "bw_bytes":123966763,"bw":121061 => "bw_bytes":371900289,"bw":363183
T31  fio-02.json  a higher rate of requests
    "iops":30265.323118 => "iops":90795.969354
T35  fio-02.json  more bytes at a higher rate
    "bw_bytes":123966763,"bw":121061 => "bw_bytes":371900289,"bw":363183
    "io_bytes":744296448 => "io_bytes":2232889344
T35  fio-02.json  more requests at a higher rate
    "iops":30265.323118 => "iops":90795.969354
    "total_ios":181713 => "total_ios":545139
T36  fio-02.json  three times of everything
    "bw_bytes":123966763,"bw":121061 => "bw_bytes":371900289,"bw":363183
    "io_bytes":744296448 => "io_bytes":2232889344
    "iops":30265.323118 => "iops":90795.969354
    "total_ios":181713 => "total_ios":545139
T36  fio-02.json  a shorter time
    "runtime":6004,"total => "runtime":2001,"total
T35  fio-02.json  other blocks
    "bs":"4k" => "bs":"16k"
T31  fio-19.txt  a higher rate in text
    BW=73.7MiB/s => BW=173.7MiB/s
T31  fio-19.txt  a higher rate of requests in text
    IOPS=18.9k => IOPS=38.9k
T35  fio-19.txt  a higher rate and more bytes in text
    BW=73.7MiB/s => BW=147MiB/s
    (442MiB/ => (884MiB/
T35  fio-19.txt  a sum that is none
    io=442MiB => io=884MiB
T19  fio-19.txt  another unit in text
    BW=73.7MiB/s => BW=77.2MiB/s
T31  fio-18.terse  a higher rate in terse output
    ;75427; => ;175427;
T36  fio-02.json  latencies of more than the depth
    "mean":1052143.597827 => "mean":4052143.597827
    "mean":1056685.458261 => "mean":4056685.458261
T36  fio-02.json  latencies of less than half of it
    "mean":1052143.597827 => "mean":252143.597827
    "mean":1056685.458261 => "mean":256685.458261
T35  fio-02.json  one latency that is too good
    "mean":1056685.458261 => "mean":756685.458261
T35  fio-02.json  a percentile below the median
    "99.000000":8290304 => "99.000000":190304
T35  fio-02.json  a longest latency below the mean
    "max":45867972 => "max":867972
T35  fio-02.json  reads of a job that writes
    "rw":"randread" => "rw":"randwrite"
T35  fio-02.json  another day
    "timestamp":1795442285 => "timestamp":1792442285
T37  fio-12.json  clones of one stream
    "bs":"64k" => "bs":"64k","numjobs":"4"
T38  fio-02.json  counters of another disk
    "filename":"f1" => "filename":"/dev/sdb"
T35  dd-05.txt  records of dd
    68719476736 bytes => 137438953472 bytes
    167 MB/s => 333 MB/s
B1   fio-02.json  disks that turn too fast
    member.0.device=sdb
    disk.sdb.model=WD4000FYYZ
B1   fio-07.json  writes above the bus
    member.0.device=sdb
    disk.sdb.rotational=no
    disk.sdb.transport=sata
B1   fio-07.json  parity that cost nothing
    level=raid5
    member.0.device=sdb
    member.1.device=sdc
    member.2.device=sdd
    disk.sdb.sequential_bytes_per_second=450000000
    disk.sdc.sequential_bytes_per_second=450000000
    disk.sdd.sequential_bytes_per_second=450000000
"#;

/// Edits that leave a file as true as it was, and a rule that would be wrong to find one.
const SOUND: &str = r#"
C2   verified.json  reads of a quarter of a second
C2   traced.json  reads of a trace
    "runtime":3015 => "runtime":6015
T34  fio-01.json  a limit that is far off
    "bs":"4k" => "bs":"4k","rate_iops":"5000"
T34  fio-01.json  a limit of writes
    "bs":"4k" => "bs":"4k","rate_iops":",1260"
T34  fio-01.json  a thought now and then
    "bs":"4k" => "bs":"4k","thinktime":"600","thinktime_blocks":"100"
T35  fio-02.json  blocks of many sizes
    "bs":"4k" => "bssplit":"4k/50:16k/50"
T35  fio-02.json  a trace
    "bs":"4k" => "read_iolog":"trace"
    "rw":"randread" => "rw":"write"
T35  fio-02.json  a job that verifies
    "rw":"randread" => "rw":"randwrite","verify":"crc32c"
T35  fio-19.txt  bytes rounded to a digit
    (442MiB/ => (0.4GiB/
    io=442MiB => io=0.4GiB
T37  fio-12.json  clones apart
    "bs":"64k" => "bs":"64k","numjobs":"4","offset_increment":"256m"
T37  fio-12.json  clones with files of their own
    "filename":"f1" => "directory":"/mnt","numjobs":"4"
T37  fio-02.json  clones that seek
    "bs":"4k" => "bs":"4k","numjobs":"4"
T38  fio-02.json  a part of the disk
    "filename":"f1" => "filename":"/dev/vda3"
T38  fio-02.json  a disk by its serial number
    "filename":"f1" => "filename":"/dev/disk/by-id/ata-1"
B1   fio-07.json  a mirror of two
    level=raid1
    member.0.device=sdb
    member.1.device=sdc
    disk.sdb.sequential_bytes_per_second=1300000000
    disk.sdc.sequential_bytes_per_second=1300000000
"#;

/// A file in which nothing is wrong.
fn clean(file: &str) -> &'static str {
    match file {
        "traced.json" => include_str!("rare/traced.json"),
        "verified.json" => include_str!("rare/verified.json"),
        _ => {
            let found = CLEAN.iter().find(|(name, _)| *name == file);
            found.expect(file).1
        }
    }
}

/// A file that was edited: its rule, the clean file, what was done in words; its text, and facts.
type Plant = ([&'static str; 3], String, Vec<&'static str>);

/// The plants of which `is_wrong` holds for the rule and for the rules that found something: what
/// was done, and these rules.
fn judge(
    plants: &'static str,
    is_wrong: impl Fn(&str, &[String]) -> bool,
) -> Vec<(&'static str, Vec<String>)> {
    let judged = |([rule, _, name], text, facts): Plant| {
        let findings = judged(imported(name, &text, &facts)).findings;
        let serious = findings
            .into_iter()
            .filter(|finding| finding.severity > Severity::Note || finding.rule == "T19");
        let rules: Vec<String> = serious.map(|finding| finding.rule).collect();
        is_wrong(rule, &rules).then_some((name, rules))
    };
    read(plants).into_iter().filter_map(judged).collect()
}

fn read(text: &'static str) -> Vec<Plant> {
    let mut plants: Vec<Plant> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        if let Some(part) = line.strip_prefix("    ") {
            let ([_, _, name], text, facts) = plants.last_mut().expect("a plant");
            if let Some((from, to)) = part.split_once(" => ") {
                assert!(text.contains(from), "{name}: `{from}` is not in the file");
                *text = text.replacen(from, to, 1);
            } else {
                facts.push(part);
            }
        } else {
            let head: Vec<&str> = columns(line).collect();
            let head: [&str; 3] = head.try_into().expect("a rule, a file and words");
            plants.push((head, clean(head[1]).to_owned(), Vec::new()));
        }
    }
    plants
}

#[test]
fn edited_files_are_known() {
    let missed = judge(PLANTS, |rule, found| !found.iter().any(|one| one == rule));
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn honest_files_are_not_called_edited() {
    let wrong = judge(SOUND, |rule, found| found.iter().any(|one| one == rule));
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
    let first = clean("fio-02.json");
    let copies = |second| {
        let all = import("first.json", first).join(import("second.json", second));
        let findings = judged(all).findings.into_iter();
        findings.filter(|finding| finding.rule == "R2").count()
    };
    assert_eq!(copies(first), 1);
    assert_eq!(copies(&first.replace("181713", "181722")), 0);
}
