use super::lab::{Lab, random, row};
use super::{Pair, pair};
use raidlab_store::Operation::{Read, Write};
use raidlab_store::Severity::{Fatal, Note, Warning};
use raidlab_store::{Latency, Measurement, fact};

pub(super) fn pairs() -> Vec<Pair> {
    [options(), run(), errors()].into_iter().flatten().collect()
}

fn option(lab: Lab, name: &str, value: &str) -> Lab {
    lab.fact(&fact::fio_option(name), value)
}

/// A job of 32 threads that should run a minute.
fn timed(total_ios: u64, seconds: f64) -> Lab {
    let timed = Measurement {
        total_ios,
        runtime_ns: (seconds * 1e9) as u64,
        ..random(Read, 48.0)
    };
    Lab::mirror([timed])
        .fact(fact::JOB_ASKED_RUNTIME_NS, "60000000000")
        .fact(fact::FIO_JOBS, "32")
}

fn options() -> Vec<Pair> {
    let searches = || option(timed(4036, 20.0), "latency_target", "20ms");
    let depth = |alone: &str| {
        Lab::of([row(Read)])
            .cell_fact(0, "option.iodepth.asked", "32", "")
            .fact(&fact::fio_depth_level("1"), alone)
    };
    // The first of several jobs asks for depth 1, and the last for 32.
    let of_several = || option(depth("100.0"), "iodepth", "1");
    let engine = |name: &str| {
        option(
            option(Lab::of([row(Read)]), "iodepth", "8"),
            "ioengine",
            name,
        )
    };
    let threads = |clones: &str| {
        let deep = |subject: &str| Measurement {
            subject: subject.to_owned(),
            queue_depth: 32,
            ..row(Read)
        };
        Lab::of([deep("md"), deep("gmirror")])
            .fact(&fact::fio_depth_level("1"), "0.1")
            .subject_fact("md", fact::FIO_JOBS, "1")
            .subject_fact("gmirror", fact::FIO_JOBS, clones)
    };
    let maps = |generator: &str| {
        let lab = timed(4096, 60.0)
            .fact(fact::MEMORY_TOTAL_BYTES, "17179869184")
            .fact(fact::JOB_WORKING_SET_BYTES, "3298534883328");
        option(lab, "random_generator", generator)
    };
    let in_folder = |lab: Lab| option(lab, "directory", "/mnt");
    let seeds = |repeat: &str| {
        let again = Measurement {
            repetition: 1,
            ..random(Read, 170.0)
        };
        option(Lab::of([random(Read, 170.0), again]), "randrepeat", repeat)
    };
    let seeded = |tool: &str| {
        let first = Measurement {
            tool: tool.to_owned(),
            ..random(Read, 170.0)
        };
        let again = Measurement {
            repetition: 1,
            ..first.clone()
        };
        option(Lab::of([first, again]), "randseed", "11")
    };
    let volume = |file: &str| {
        let lab = Lab::of([row(Read)]).fact(fact::ARRAY_SYSTEM, "zfs");
        let lab = option(lab.fact(&fact::version("zfs"), "2.3.1"), "direct", "1");
        option(lab, "filename", file)
    };
    let zfs = |version: &str| {
        let lab = Lab::of([row(Read)]).fact(fact::ARRAY_SYSTEM, "zfs");
        option(lab.fact(&fact::version("zfs"), version), "direct", "1")
    };
    let refused = |words: &str| {
        let mut lab = Lab::of([row(Read)]).command("fio --direct=1 --name=a", 1, "");
        lab.commands[0].stderr = words.to_owned();
        lab
    };
    vec![
        // 4032 + 2 x 32 = 64 x 64; four more I/Os are no multiple.
        pair("T1", Warning, timed(4032, 88.0), timed(4036, 88.0)),
        pair("T1", Warning, timed(4032, 88.0), timed(4032, 60.4)),
        pair(
            "T1",
            Warning,
            option(timed(4036, 88.0), "gtod_reduce", "1"),
            timed(4036, 60.4),
        ),
        pair("T2", Fatal, depth("100.0"), depth("0.1")),
        pair("T2", Fatal, depth("100.0"), of_several()),
        pair(
            "T2",
            Fatal,
            depth("100.0"),
            option(depth("100.0"), "rate", "3m"),
        ),
        pair("T2", Fatal, engine("psync"), engine("libaio")),
        pair("T2", Note, threads("32"), threads("1")),
        pair("T3", Warning, maps("tausworthe"), maps("lfsr")),
        pair(
            "T3",
            Warning,
            maps("tausworthe"),
            in_folder(maps("tausworthe")),
        ),
        pair("T4", Note, seeds("1"), seeds("0")),
        pair("T4", Note, seeded("fio 3.33"), seeded("fio 3.35")),
        pair("T6", Note, timed(4036, 20.0), timed(4036, 60.0)),
        pair(
            "T6",
            Note,
            timed(4036, 20.0),
            option(timed(4036, 20.0), "steadystate", "iops:5%"),
        ),
        pair(
            "T6",
            Note,
            option(searches(), "latency_run", "1"),
            searches(),
        ),
        pair(
            "T6",
            Warning,
            option(timed(4036, 20.0), "time_based", "1"),
            timed(4036, 60.0),
        ),
        pair("T7", Note, zfs("2.2.4"), zfs("zfs-2.3.1-1")),
        pair("T7", Note, volume("/dev/zvol/t/v"), volume("/t/file")),
        pair(
            "T8",
            Fatal,
            refused("fio: looks like your file system does not support direct=1/buffered=0"),
            refused(""),
        ),
    ]
}

fn run() -> Vec<Pair> {
    let series = |value: fn(u32) -> f64| {
        let rates: Vec<f64> = (0..60).map(value).collect();
        let lab = Lab::of([row(Read)]).sampled(fact::series::READ_BYTES_PER_SECOND, &rates);
        option(lab, "direct", "1")
    };
    let noise = |i: u32| f64::from(i * 7919 % 13) * 1e5;
    let wave: fn(u32) -> f64 = |i| {
        1e8 - if i.is_multiple_of(5) {
            5e7
        } else {
            f64::from(i * 7919 % 13)
        }
    };
    let even: fn(u32) -> f64 = |i| 1e8 + f64::from(i * 7919 % 13) * 1e5;
    assert!(noise(1) > 0.0, "the series are not constant");
    let monitored = |value| series(value).fact(fact::MONITOR_PERIOD_NS, "5000000000");
    let group = |longest: &str| {
        Lab::of([row(Read)])
            .fact(fact::FIO_SHORTEST_RUNTIME_NS, "60000000000")
            .fact(fact::FIO_LONGEST_RUNTIME_NS, longest)
    };
    let parts = |second_ns: u64| {
        let part = |part: &str, runtime_ns| Measurement {
            part: part.to_owned(),
            runtime_ns,
            ..row(Read)
        };
        Lab::of([part("a", 60_000_000_000), part("b", second_ns)])
    };
    let rewritten = |second: f64| {
        let again = Measurement {
            repetition: 1,
            bytes_per_second: second,
            ..row(Write)
        };
        Lab::of([row(Write), again])
    };
    let longest = |max_ns: u64| {
        Lab::of([Measurement {
            latency: Latency {
                p999_ns: 80_000_000,
                max_ns,
                ..Latency::default()
            },
            ..row(Read)
        }])
    };
    vec![
        pair(
            "T5",
            Note,
            series(|i| if i < 8 { 3e8 } else { 1e8 + f64::from(i) }),
            series(even),
        ),
        pair("T9", Warning, rewritten(1.8e8), rewritten(1.05e8)),
        pair(
            "T10",
            Warning,
            series(|i| if i == 30 { 0.0 } else { 1e8 }),
            series(even),
        ),
        pair("T10", Note, longest(5_000_000_000), longest(300_000_000)),
        pair("T11", Warning, group("88000000000"), group("60500000000")),
        pair("T25", Note, parts(30_000_000_000), parts(60_100_000_000)),
        pair("T27", Warning, monitored(wave), monitored(even)),
    ]
}

fn errors() -> Vec<Pair> {
    let count = |name: &str, value: &str| Lab::of([row(Read)]).fact(name, value);
    let command = |line: &str, code: i32| Lab::of([row(Read)]).command(line, code, "");
    vec![
        pair(
            "T28",
            Fatal,
            count(fact::FIO_ERROR, "5"),
            count(fact::FIO_ERROR, "0"),
        ),
        pair(
            "T28",
            Fatal,
            count(
                fact::DD_ERROR,
                "error reading '/dev/sdb': Input/output error",
            ),
            count("dd.records_in.whole", "3"),
        ),
        pair(
            "T28",
            Warning,
            count(fact::FIO_SHORT_IOS, "3"),
            count(fact::FIO_SHORT_IOS, "0"),
        ),
        pair(
            "T28",
            Fatal,
            command("fio --name=a", 1),
            command("fio --name=a", 0),
        ),
        pair(
            "T28",
            Warning,
            command("zfs set sync=disabled t", 1),
            command("umount /mnt", 32),
        ),
        pair(
            "T29",
            Warning,
            count(fact::CPU_STEAL_PERCENT, "4.0"),
            count(fact::CPU_STEAL_PERCENT, "0.1"),
        ),
        pair(
            "T29",
            Warning,
            count(fact::FOREIGN_BYTES, "600000000"),
            count(fact::FOREIGN_BYTES, "4096"),
        ),
    ]
}
