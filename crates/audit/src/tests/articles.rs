//! The faults of four published comparisons, out of their own figures.
//!
//! 2015: four mirrors; geomflash/geomflash on GitHub, commit 53edd63,
//! test_raid1. 2010: mdadm against gmirror. 2008: arrays of unequal disks.
//! 2021: ZFS mirrors on FreeBSD under bonnie++.

use super::lab::{HOST, Lab, random, row, subject_scope};
use raidlab_store::Operation::{Read, Seek, Write, WriteCharacter};
use raidlab_store::fact::{claim, claim_part, disk, disk_property as property};
use raidlab_store::{
    CommandRecord, Latency, Measurement, MemberUse, Operation, Scope, Severity, fact,
};
use std::collections::BTreeSet;

fn on(subject: &str, sequence: u32, measured: Measurement) -> Measurement {
    Measurement {
        subject: subject.to_owned(),
        sequence,
        job: (sequence + 1).to_string(),
        bench: "import".to_owned(),
        array_state_start: String::new(),
        array_state_end: String::new(),
        cpu_percent: None,
        ..measured
    }
}

/// A rate with nothing else, as tables give it.
fn rate(tool: &str, op: Operation, bytes_per_second: f64) -> Measurement {
    Measurement {
        tool: tool.to_owned(),
        bytes_per_second,
        iops: 0.0,
        total_ios: 0,
        total_bytes: 0,
        block_size_bytes: 0,
        runtime_ns: 0,
        ..row(op)
    }
}

/// Rules that raise more than a note on a subject, or on all.
fn alarms(lab: &Lab, subject: &str) -> BTreeSet<String> {
    let findings = lab.audit().findings.into_iter();
    findings
        .filter(|found| found.severity > Severity::Note)
        .filter(|found| found.scope.subject.is_empty() || found.scope.subject == subject)
        .map(|found| found.rule)
        .collect()
}

fn set(rules: &[&str]) -> BTreeSet<String> {
    rules.iter().map(|rule| (*rule).to_owned()).collect()
}

fn member_of(lab: Lab, subject: &str, slot: usize, device: &str) -> Lab {
    lab.subject_fact(subject, &fact::member_device(slot), device)
}

fn command(mut lab: Lab, subject: &str, line: &str) -> Lab {
    lab.commands.push(CommandRecord {
        scope: subject_scope(subject),
        at_ns: 0,
        command: line.to_owned(),
        code: Some(0),
        took_ns: 0,
        stdout: String::new(),
        stderr: String::new(),
    });
    lab
}

/// Four rows of the 2015 logs: I/Os and milliseconds as fio printed them.
fn of_2015() -> Lab {
    let counted = |ios: u64, milliseconds: u64| Measurement {
        total_ios: ios,
        total_bytes: ios * 4096,
        runtime_ns: milliseconds * 1_000_000,
        iops: ios as f64 * 1000.0 / milliseconds as f64,
        bytes_per_second: ios as f64 * 4_096_000.0 / milliseconds as f64,
        tool: "fio 2.1".to_owned(),
        ..random(Read, 1.0)
    };
    // fio 2.1 counts the members' commands, not their bytes.
    let reads = |read_ios| MemberUse {
        read_ios,
        ..MemberUse::default()
    };
    let balance = Measurement {
        streams: 2,
        members: vec![reads(65_528), reads(8)],
        ..row(Read)
    };
    let rows = [
        on("zfs", 23, counted(4032, 88_005)),
        on("gflash", 24, counted(21_504, 64_486)),
        on("md", 14, counted(18_686, 60_139)),
        on("md", 17, balance),
    ];
    let mut lab = Lab::of(rows);
    for (index, clones) in ["32", "32", "1"].into_iter().enumerate() {
        lab = lab.cell_fact(index, fact::FIO_JOBS, clones, "").cell_fact(
            index,
            fact::JOB_ASKED_RUNTIME_NS,
            "60000000000",
            "ns",
        );
    }
    lab.subject_fact("md", fact::ARRAY_LEVEL, "raid1")
        .subject_fact("zfs", "setting.primarycache.asked", "metadata")
        .subject_fact("zfs", "setting.primarycache.found", "all")
}

#[test]
fn the_comparison_of_2015() {
    let lab = of_2015();
    assert_eq!(alarms(&lab, "zfs"), set(&["C12", "T1"]));
    assert_eq!(alarms(&lab, "gflash"), set(&["T1"]));
    assert_eq!(alarms(&lab, "md"), set(&[]));
    let notes: Vec<String> = lab
        .audit()
        .findings
        .into_iter()
        .map(|found| found.rule)
        .collect();
    assert!(notes.contains(&"A12".to_owned()), "{notes:?}");
}

fn disks_of_2010(mut lab: Lab) -> Lab {
    for (subject, slot, device) in [
        ("md", 0, "sdb1"),
        ("md", 1, "sdc1"),
        ("gmirror", 0, "ad6"),
        ("gmirror", 1, "ad10"),
    ] {
        lab = member_of(lab, subject, slot, device).fact(
            &disk(device.trim_end_matches('1'), property::MODEL),
            "WDC WD15EARS",
        );
    }
    lab.fact(&disk("ad10", property::MODEL), "WDC WD15EARS")
        .fact(fact::MEMORY_TOTAL_BYTES, "1342177280")
}

fn of_2010() -> Lab {
    let copied = |bytes: u64, seconds: f64, op| Measurement {
        total_bytes: bytes,
        runtime_ns: (seconds * 1e9) as u64,
        bytes_per_second: bytes as f64 / seconds,
        ..rate("dd", op, 0.0)
    };
    let seeks = |per_second: f64, version: &str| Measurement {
        iops: per_second,
        ..rate(&format!("bonnie++ {version}"), Seek, 0.0)
    };
    let characters = |rate_kib: f64, version: &str| {
        rate(
            &format!("bonnie++ {version}"),
            WriteCharacter,
            rate_kib * 1024.0,
        )
    };
    let gib = 1_073_741_824;
    let mut lab = Lab::of([
        on("gmirror", 0, copied(gib, 20.888, Write)),
        on("md", 0, copied(gib, 45.0159, Write)),
        on("gmirror", 1, copied(gib, 2.988, Read)),
        on("md", 1, copied(gib, 1.36295, Read)),
        on("md", 2, copied(0, 7.5694e-5, Read)),
        on("gmirror", 3, seeks(165.1, "1.96")),
        on("md", 3, seeks(148.5, "1.03")),
        on("gmirror", 4, characters(169.0, "1.96")),
        on("md", 4, characters(22_183.0, "1.03")),
    ]);
    for (index, subject) in [(0, "ufs"), (1, "ext3")] {
        let name = if subject == "ufs" { "gmirror" } else { "md" };
        lab = lab.subject_fact(name, fact::FILESYSTEM_TYPE, subject);
        lab = lab.cell_fact(index, fact::JOB_WORKING_SET_BYTES, "1073741824", "bytes");
        lab = lab.cell_fact(
            index + 2,
            fact::JOB_WORKING_SET_BYTES,
            "1073741824",
            "bytes",
        );
    }
    let value = |op| claim(op, "", claim_part::VALUE);
    let lab = lab
        .cell_fact(0, &value(Write), "49.02", "MB/s")
        .cell_fact(1, &value(Write), "23.9", "MB/s")
        .cell_fact(5, &value(Seek), "165.1", "s")
        .cell_fact(6, &value(Seek), "148.5", "s")
        .cell_fact(6, &claim(Seek, "", claim_part::WINNER), "true", "");
    let mdadm = "mdadm --create /dev/md0 --level=1 --raid-devices=2 /dev/sdb1 /dev/sdc1";
    let lab = command(disks_of_2010(lab), "md", mdadm);
    let lab = command(lab, "gmirror", "gmirror label -v gm0 /dev/ad6 /dev/ad10");
    command(lab, "md", "dd of=testfile if=/dev/null bs=1g count=100")
}

#[test]
fn mdadm_against_gmirror() {
    let lab = of_2010();
    let both = ["C1", "T13", "T24", "T30", "T32"];
    let freebsd: Vec<&str> = both.into_iter().chain(["T19"]).collect();
    assert_eq!(alarms(&lab, "gmirror"), set(&freebsd));
    let linux: Vec<&str> = both.into_iter().chain(["A1", "B1", "H1", "T17"]).collect();
    assert_eq!(alarms(&lab, "md"), set(&linux));
}

#[test]
fn arrays_of_unequal_disks() {
    let read =
        |subject, megabytes: f64| on(subject, 0, rate("bonnie++ 1.03", Read, megabytes * 1e6));
    let mut lab = Lab::of([
        read("a", 44.0),
        read("b", 40.56),
        read("c", 56.19),
        read("raid0 a+c", 103.78),
        read("raid0 a+b", 30.77),
        read("raid0 c+c", 28.55),
    ]);
    for (subject, devices) in [
        ("a", &["hda3"][..]),
        ("b", &["hdb1"]),
        ("c", &["hdc5"]),
        ("raid0 a+c", &["hda3", "hdc5"]),
        ("raid0 a+b", &["hda3", "hdb1"]),
        ("raid0 c+c", &["hdc5", "hdc6"]),
    ] {
        for (slot, device) in devices.iter().enumerate() {
            lab = member_of(lab, subject, slot, device);
        }
    }
    for (device, model) in [
        ("hda", "STM3160215A"),
        ("hdb", "ST340015A"),
        ("hdc", "SP1614N"),
    ] {
        lab = lab.fact(&disk(device, property::MODEL), model);
    }
    assert_eq!(
        alarms(&lab, "raid0 a+b"),
        set(&["H4"]),
        "two disks on one cable"
    );
    assert_eq!(
        alarms(&lab, "raid0 c+c"),
        set(&["H4"]),
        "two parts of one disk"
    );
    assert_eq!(alarms(&lab, "raid0 a+c"), set(&[]));
    let findings = lab.audit().findings;
    let of = |rule: &str| findings.iter().find(|found| found.rule == rule);
    let sum = of("B2").expect("103.78 is more than 44 and 56.19");
    assert_eq!(sum.scope.subject, "raid0 a+c");
    assert!(sum.evidence.contains("3.6 %"), "{}", sum.evidence);
    assert!(of("H6").is_some(), "the members are unequal");
}

#[test]
fn zfs_mirrors_on_freebsd() {
    let block_read = |subject, kibibytes: f64, cpu, max_ns| {
        let latency = Latency {
            max_ns,
            ..Latency::default()
        };
        on(
            subject,
            0,
            Measurement {
                cpu_percent: Some(cpu),
                latency,
                ..rate("bonnie++ 1.98", Read, kibibytes * 1024.0)
            },
        )
    };
    let mut lab = Lab::of([
        block_read("zfs-sec63", 2.7 * 1_048_576.0, 99.0, 391_000),
        block_read("zfs-mirror", 232.0 * 1024.0, 8.0, 175_000_000),
    ]);
    lab.rows[0].cpu_percent = Some(99.0);
    lab.rows[1].cpu_percent = Some(8.0);
    for subject in ["zfs-sec63", "zfs-mirror"] {
        let gpt = if subject == "zfs-mirror" { "p1" } else { "" };
        for (slot, device) in ["ada0", "ada1"].into_iter().enumerate() {
            lab = member_of(lab, subject, slot, &format!("{device}{gpt}"))
                .fact(&disk(device, property::MODEL), "ST4000DM004-2CV104");
        }
    }
    let lab = lab
        .fact(fact::MEMORY_TOTAL_BYTES, "34359738368")
        .fact(fact::JOB_WORKING_SET_BYTES, "68719476736")
        .fact(&disk("ada0p1", property::START_SECTOR), "2048")
        .fact(&disk("ada1p1", property::START_SECTOR), "2048");
    assert_eq!(alarms(&lab, "zfs-sec63"), set(&["B1", "C2", "H3", "H7"]));
    assert_eq!(
        alarms(&lab, "zfs-mirror"),
        set(&["H3"]),
        "only the disks are shingled"
    );
    let stalled = block_read("zfs-sec63", 1000.0, 1.0, 437_000_000_000);
    let scope = Scope::of(&stalled);
    let mut lab = lab;
    lab.rows = vec![stalled];
    let found = lab
        .audit()
        .findings
        .into_iter()
        .find(|found| found.scope == scope);
    assert_eq!(
        found.map(|found| found.evidence),
        Some("one I/O took 437 s".to_owned())
    );
    assert_eq!(scope.host, HOST);
}
