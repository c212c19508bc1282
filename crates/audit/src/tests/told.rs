//! What a job was told, and figures that cannot be true together.

use super::lab::{Lab, random, row};
use super::{Pair, pair};
use raidlab_store::Operation::{Read, Write};
use raidlab_store::Severity::{Fatal, Note, Warning};
use raidlab_store::fact::{self, disk, disk_property as property, rate_of};
use raidlab_store::{Latency, Measurement};

pub(super) fn pairs() -> Vec<Pair> {
    [limits(), depths(), figures(), copies(), bounds()]
        .into_iter()
        .flatten()
        .collect()
}

/// A job of which fio repeats the options.
fn job(measured: Measurement) -> Lab {
    Lab::of([measured])
        .fact(&fact::fio_option("bs"), "4k")
        .fact(&fact::fio_option("direct"), "1")
}

fn limits() -> Vec<Pair> {
    let limited = |limit: &str| {
        job(random(Read, 299.8)).fact(&fact::fio_limit(Read, rate_of::REQUESTS), limit)
    };
    let rate = |limit: &str| job(row(Write)).fact(&fact::fio_limit(Write, rate_of::BYTES), limit);
    let open = |lab: Lab| lab.fact(&fact::fio_option("rate_process"), "poisson");
    let thinking = |percent: &str| job(row(Read)).fact(fact::FIO_THINKING_PERCENT, percent);
    vec![
        pair("T34", Warning, limited("300"), limited("2000")),
        pair("T34", Warning, rate("100000000"), rate("157286400")),
        pair("T34", Note, open(limited("300")), open(limited("400"))),
        pair("T34", Warning, thinking("92.1"), thinking("0.4")),
        pair("T34", Warning, limited("300"), job(random(Read, 299.8))),
    ]
}

fn depths() -> Vec<Pair> {
    let longest = |max_ns: u64| Measurement {
        latency: Latency {
            max_ns,
            ..Latency::default()
        },
        ..random(Read, 4000.0)
    };
    let depth = |measured: Measurement, had: &str, asked: &str| {
        job(measured)
            .fact(fact::FIO_IN_FLIGHT, had)
            .fact(fact::FIO_ASKED_IN_FLIGHT, asked)
    };
    let plain = |had, asked| depth(longest(9_000_000), had, asked);
    let told = |lab: Lab, name: &str, value: &str| lab.fact(&fact::fio_option(name), value);
    let slow = plain("0.3", "1");
    let alone = plain("1.0", "32").fact(&fact::fio_depth_level("1"), "100");
    vec![
        pair("T36", Fatal, plain("9.31", "8"), plain("7.99", "8")),
        // What is under way when a ramp ends may take longer than the job.
        pair(
            "T36",
            Fatal,
            plain("12.0", "8"),
            depth(longest(40_000_000_000), "12.0", "8"),
        ),
        pair("T36", Warning, slow.clone(), plain("0.98", "1")),
        pair("T36", Warning, plain("2.0", "32"), alone),
        pair(
            "T36",
            Warning,
            slow.clone(),
            told(slow.clone(), "fdatasync", "1"),
        ),
        pair(
            "T36",
            Warning,
            slow.clone(),
            told(slow.clone(), "rate_iops", "300"),
        ),
        pair(
            "T36",
            Warning,
            slow.clone(),
            depth(longest(9_000_000), "0.3", "1").fact(fact::FIO_JOBS, "4"),
        ),
        pair("T36", Warning, slow, {
            let buffered = Lab::of([longest(9_000_000)]).fact(&fact::fio_option("direct"), "0");
            buffered
                .fact(fact::FIO_IN_FLIGHT, "0.3")
                .fact(fact::FIO_ASKED_IN_FLIGHT, "1")
        }),
    ]
}

fn figures() -> Vec<Pair> {
    let taken = |p50_ns, p99_ns, mean_ns| {
        job(Measurement {
            latency: Latency {
                mean_ns,
                p50_ns,
                p99_ns,
                max_ns: 120_000_000,
                ..Latency::default()
            },
            ..random(Read, 170.0)
        })
    };
    let sound = || taken(5_000_000, 15_000_000, 6e6);
    let dd = |whole: &str, bytes: u64| {
        Lab::of([Measurement {
            tool: "dd".to_owned(),
            total_bytes: bytes,
            latency: Latency {
                mean_ns: 1e6,
                p50_ns: 1_000_000,
                max_ns: 2_000_000,
                ..Latency::default()
            },
            ..row(Write)
        }])
        .fact(fact::DD_RECORDS_OUT_WHOLE, whole)
        .fact(fact::DD_RECORDS_IN_PARTIAL, "0")
        .fact(fact::DD_RECORDS_OUT_PARTIAL, "0")
    };
    let counted = |lab: Lab| {
        lab.fact(&fact::dd_operand("count"), "1024")
            .fact(fact::JOB_ASKED_SIZE_BYTES, "1073741824")
    };
    let printed = |what: &str, value: &str| {
        job(random(Read, 170.0)).fact(&fact::fio_printed(Read, what), value)
    };
    vec![
        pair("T35", Fatal, taken(5_000_000, 3_000_000, 6e6), sound()),
        pair("T35", Fatal, taken(5_000_000, 15_000_000, 2e8), sound()),
        pair(
            "T35",
            Fatal,
            sound().fact(fact::CONTRADICTION, "1 is 2"),
            sound(),
        ),
        pair(
            "T35",
            Fatal,
            dd("1024", 1_073_741_825),
            dd("1024", 1_073_741_824),
        ),
        pair(
            "T35",
            Fatal,
            counted(dd("1024", 2_147_483_648)),
            counted(dd("1024", 1_073_741_824)),
        ),
        pair(
            "T31",
            Warning,
            printed(rate_of::REQUESTS, "340"),
            printed(rate_of::BYTES, "696320"),
        ),
        pair(
            "T31",
            Warning,
            printed(rate_of::BYTES, "900000"),
            printed(rate_of::BYTES, "680000"),
        ),
    ]
}

fn copies() -> Vec<Pair> {
    let taken = |mean_ns, bench: &str, repetition| Measurement {
        bench: bench.to_owned(),
        repetition,
        runtime_ns: 60_002_000_000,
        total_ios: 10_234,
        latency: Latency {
            mean_ns,
            ..Latency::default()
        },
        ..random(Read, 170.5)
    };
    let two =
        |bench: &str, second| Lab::of([taken(5_862_417.25, bench, 0), taken(second, bench, 1)]);
    let same = || two("import", 5_862_417.25);
    let streams = |count: &str| job(row(Read)).fact(fact::FIO_STREAMS_ON_ONE_REGION, count);
    let counted = |file: &str, disks: &str| {
        job(row(Read))
            .fact(&fact::fio_option("filename"), file)
            .fact(fact::FIO_DISKS, disks)
    };
    vec![
        pair("R2", Warning, same(), two("import", 5_862_417.5)),
        pair("T37", Warning, streams("4"), streams("1")),
        pair(
            "T38",
            Warning,
            counted("/dev/sdb", "sdc"),
            counted("/dev/sdb1", "sdb"),
        ),
        pair(
            "T38",
            Warning,
            counted("/dev/nvme0n1p2", "nvme1n1"),
            counted("/dev/md127", "md127 sdb sdc"),
        ),
    ]
}

/// Writes in sequence, and reads by chance, of arrays of six disks that do 100 MB/s each.
fn bounds() -> Vec<Pair> {
    let six = |measured: Measurement, level: &str| {
        let mut lab = Lab::of([measured]).fact(fact::ARRAY_LEVEL, level);
        for slot in 0..6_usize {
            let device = format!("sd{}", char::from(b'b' + slot as u8));
            lab = lab
                .fact(&fact::member_device(slot), &device)
                .fact(&disk(&device, property::ROTATIONAL), "true")
                .fact(
                    &disk(&device, property::SEQUENTIAL_BYTES_PER_SECOND),
                    "100000000",
                );
        }
        lab
    };
    let wrote = |bytes_per_second| Measurement {
        bytes_per_second,
        ..row(Write)
    };
    let read = |bytes_per_second| Measurement {
        bytes_per_second,
        ..row(Read)
    };
    let logged = |lab: Lab| lab.fact(fact::ARRAY_AUXILIARY, "log");
    vec![
        pair(
            "B1",
            Fatal,
            six(wrote(580e6), "raid5"),
            six(wrote(540e6), "raid5"),
        ),
        pair(
            "B1",
            Fatal,
            six(wrote(480e6), "raid6"),
            six(read(580e6), "raid6"),
        ),
        pair(
            "B1",
            Fatal,
            six(wrote(340e6), "raid10"),
            six(wrote(340e6), "raid5"),
        ),
        pair(
            "B1",
            Fatal,
            six(wrote(580e6), "raid5"),
            logged(six(wrote(580e6), "raid5")),
        ),
        pair(
            "B1",
            Fatal,
            six(random(Read, 4100.0), ""),
            six(random(Read, 3400.0), ""),
        ),
        // A stream in blocks of 4 KiB beside the random reads is in the same row.
        pair(
            "B1",
            Fatal,
            six(random(Read, 4100.0), ""),
            six(random(Read, 4100.0), "").fact(fact::FIO_STREAMS_ON_ONE_REGION, "1"),
        ),
        pair(
            "B1",
            Fatal,
            six(random(Read, 4100.0), ""),
            six(random(Read, 4100.0), "").fact(&fact::fio_option("rw"), "randread:64"),
        ),
    ]
}
