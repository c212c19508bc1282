//! What files of others show by themselves: options that fio repeats, latencies, counts
//! of commands.

use super::lab::{Lab, member, random, row};
use super::{Pair, pair};
use raidlab_store::Operation::{self, Read, Write};
use raidlab_store::Severity::{Fatal, Note, Warning};
use raidlab_store::{Latency, Measurement, MemberUse, fact};

/// A job with the options that fio repeats of it.
fn job(measured: Measurement, options: &[(&str, &str)]) -> Lab {
    let lab = Lab::of([measured]).fact(&fact::fio_option("bs"), "4k");
    options.iter().fold(lab, |lab, (name, value)| {
        lab.fact(&fact::fio_option(name), value)
    })
}

fn quick(op: Operation, median_ns: u64, options: &[(&str, &str)]) -> Lab {
    let latency = Latency {
        p50_ns: median_ns,
        max_ns: 1_000_000,
        ..Latency::default()
    };
    let measured = Measurement {
        latency,
        ..random(op, 100_000.0)
    };
    job(measured, options)
}

/// Random reads of which the disks saw so many.
fn seen(read_ios: u64) -> Lab {
    let counted = MemberUse {
        read_ios,
        ..MemberUse::default()
    };
    job(
        Measurement {
            members: vec![counted],
            ..random(Read, 170.0)
        },
        &[("direct", "1")],
    )
}

/// Reads of a mirror of which one member was also written.
fn beside_writes(write_ios: u64) -> Lab {
    let used = MemberUse {
        write_ios,
        ..member(4096 * 5000, 0)
    };
    let mut lab = job(
        Measurement {
            members: vec![member(4096 * 5000, 0), used],
            ..random(Read, 170.0)
        },
        &[("direct", "1")],
    );
    for one in &mut lab.rows[0].members {
        (one.read_bytes, one.write_bytes) = (0, 0);
    }
    lab
}

fn lasted(seconds: f64) -> Lab {
    Lab::of([Measurement {
        runtime_ns: (seconds * 1e9) as u64,
        ..row(Read)
    }])
}

/// Two random jobs with the same options, but for this one.
fn twice(name: &str, second: &str) -> Lab {
    let later = Measurement {
        sequence: 1,
        ..random(Read, 172.0)
    };
    let lab = Lab::of([random(Read, 170.0), later])
        .fact(&fact::fio_option("bs"), "4k")
        .fact(&fact::fio_option("direct"), "1")
        .cell_fact(0, &fact::fio_option(name), "1", "");
    lab.cell_fact(1, &fact::fio_option(name), second, "")
}

pub(super) fn pairs() -> Vec<Pair> {
    let buffered = [("direct", "0")];
    let direct = [("direct", "1")];
    let small =
        |set: &str| job(random(Read, 170.0), &buffered).fact(fact::JOB_WORKING_SET_BYTES, set);
    let zeros = |option: &str| job(row(Write), &direct).fact(fact::JOB_DATA_PATTERN, option);
    let libaio = |direct: &str| {
        job(
            row(Read),
            &[
                ("direct", direct),
                ("iodepth", "32"),
                ("ioengine", "libaio"),
            ],
        )
    };
    let on = |path: &str| job(row(Read), &[("filename", path)]);
    let typed = |kind: &str| job(row(Read), &[]).fact(fact::FILESYSTEM_TYPE, kind);
    let based = |base: &str| {
        job(row(Read), &[("kb_base", base)]).fact("fio.printed.read.bytes_per_second", "100000000")
    };
    let printed = |rate: &str| Lab::of([row(Read)]).fact("fio.printed.read.bytes_per_second", rate);
    let idle = |bytes: &str| Lab::of([row(Read)]).fact(fact::IDLE_WRITTEN_BYTES, bytes);
    vec![
        pair("C1", Warning, small("268435456"), {
            small("268435456").fact(fact::MEMORY_TOTAL_BYTES, "67108864")
        }),
        pair(
            "C1",
            Warning,
            job(row(Write), &buffered).fact(fact::JOB_WORKING_SET_BYTES, "268435456"),
            job(row(Write), &[("direct", "0"), ("end_fsync", "1")])
                .fact(fact::JOB_WORKING_SET_BYTES, "268435456"),
        ),
        pair("C2", Fatal, seen(12), seen(10_100)),
        pair(
            "C8",
            Warning,
            zeros("zero"),
            zeros("zero")
                .fact(fact::FILESYSTEM_TYPE, "ext4")
                .fact(fact::COMPRESSION, "off"),
        ),
        pair("C13", Fatal, on("/dev/shm/x"), on("/mnt/x")),
        pair("C13", Fatal, typed("tmpfs"), typed("xfs")),
        pair(
            "C14",
            Fatal,
            quick(Read, 900, &[]),
            quick(Read, 60_000, &[]),
        ),
        pair(
            "C14",
            Fatal,
            quick(Write, 900, &direct),
            quick(Write, 11_000, &direct),
        ),
        pair("T2", Warning, libaio("0"), libaio("1")),
        pair("T4", Note, twice("iodepth", "1"), twice("iodepth", "4")),
        pair(
            "T4",
            Note,
            twice("random_distribution", "1"),
            twice("random_distribution", "zipf:1.2"),
        ),
        pair("T19", Warning, based("1000"), based("1024")),
        pair("T19", Note, printed("95367432"), printed("100000000")),
        pair("T29", Warning, beside_writes(9_000), beside_writes(40)),
        pair("T29", Warning, idle("9000000"), idle("4096")),
        pair("T32", Warning, lasted(2.0), lasted(60.0)),
        pair(
            "T33",
            Warning,
            job(row(Write), &buffered),
            job(row(Write), &[("direct", "0"), ("fsync", "1")]),
        ),
    ]
}

/// A write that ZFS answers from memory, whatever `direct` says, is a figure of its own.
#[test]
fn direct_writes_that_zfs_keeps_in_memory_are_no_device_s() {
    let quick = |version: &str| {
        quick(Write, 900, &[("direct", "1")])
            .fact(fact::ARRAY_SYSTEM, "zfs")
            .fact(&fact::version("zfs"), version)
            .audit()
    };
    let is_struck = |version: &str| quick(version).findings.iter().any(|one| one.rule == "C14");
    assert!(!is_struck("2.1.11"));
    assert!(is_struck("2.3.2"));
}

/// Before 3.36 fio counts what disks did in commands alone.
#[test]
fn reads_that_the_disk_did_not_see_came_from_memory() {
    let severities = |read_ios: u64| {
        let mut lab = job(random(Read, 170.0), &[("direct", "0")])
            .fact(fact::JOB_WORKING_SET_BYTES, "268435456")
            .fact(fact::MEMORY_TOTAL_BYTES, "17179869184");
        lab.rows[0].members = vec![MemberUse {
            read_ios,
            ..MemberUse::default()
        }];
        let found = lab.audit().findings.into_iter();
        let of_rule = found.filter(|one| one.rule == "C1");
        of_rule.map(|one| one.severity).collect::<Vec<_>>()
    };
    assert_eq!(severities(12), [Fatal]);
    assert_eq!(severities(10_100), [Warning]);
}
