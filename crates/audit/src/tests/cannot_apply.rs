//! Evidence at which a rule looks like its own fault and is not: the array is of a
//! kind that cannot have it, or is unlike by design. Each beside evidence that has
//! the fault, so that the rule is not merely blind.

use super::hardware::{began, flash_array};
use super::lab::{Lab, member, random, row};
use raidlab_store::Operation::{Read, Write};
use raidlab_store::fact::{self, claim_part, disk, disk_property as property};
use raidlab_store::{Measurement, MemberUse};

/// A rule, evidence that it must find something in, and evidence that it must not.
type Case = (&'static str, Lab, Lab);

fn created(level: &str) -> Lab {
    let words = format!("mdadm --create /dev/md0 --level={level} --run /dev/sdb /dev/sdc");
    Lab::mirror([row(Write)]).command(&words, 0, "")
}

/// Random reads of two members of which the second takes three times as long.
fn slow(second_model: &str) -> Lab {
    let used = |model: &str, ticks| MemberUse {
        model: model.to_owned(),
        read_ticks_ns: ticks,
        ..member(4_096_000, 0)
    };
    Lab::mirror([Measurement {
        class: "random-read".to_owned(),
        members: vec![
            used("WD4000FYYZ", 10_000_000_000),
            used(second_model, 30_000_000_000),
        ],
        ..row(Read)
    }])
}

fn two(name: &str, first: &str, second: &str) -> Lab {
    Lab::mirror([random(Write, 100.0)])
        .fact(&disk("sdb", name), first)
        .fact(&disk("sdc", name), second)
}

/// Reads of two members of which only one answered.
fn one_sided() -> Lab {
    Lab::of([Measurement {
        queue_depth: 4,
        members: vec![member(65_528 * 4096, 0), member(8 * 4096, 0)],
        ..row(Read)
    }])
}

fn bcache(lab: Lab) -> Lab {
    lab.fact(fact::ARRAY_SYSTEM, "bcache")
}

/// An array beside the same job on each of its members alone.
fn beside_its_members(array: Measurement, alone: &Measurement) -> Lab {
    let on = |subject: &str| Measurement {
        subject: subject.to_owned(),
        ..alone.clone()
    };
    let mut lab = Lab::mirror([array, on("one"), on("other")]);
    lab.observations
        .retain(|one| !one.name.starts_with("member."));
    for (subject, members) in [
        ("md", &["sdb", "sdc"][..]),
        ("one", &["sdb"]),
        ("other", &["sdc"]),
    ] {
        for (slot, device) in members.iter().enumerate() {
            lab = lab.subject_fact(subject, &fact::member_device(slot), device);
        }
    }
    lab
}

fn faster(class: &str) -> Lab {
    let array = Measurement {
        bytes_per_second: 250e6,
        class: class.to_owned(),
        ..row(Read)
    };
    beside_its_members(array, &row(Read))
}

fn slower(state: &str) -> Lab {
    let array = Measurement {
        bytes_per_second: 50e6,
        array_state_start: state.to_owned(),
        ..row(Read)
    };
    beside_its_members(array, &row(Read))
}

/// The same on a file system too, where the members are slower.
fn on_two_filesystems(raw: f64) -> Lab {
    let rows = |filesystem: &str, array: f64, alone: f64| {
        let row = |bytes_per_second| Measurement {
            filesystem: filesystem.to_owned(),
            bytes_per_second,
            ..row(Read)
        };
        beside_its_members(row(array), &row(alone))
    };
    let mut lab = rows("", raw, 1e8);
    lab.rows.extend(rows("ext4", 110e6, 60e6).rows);
    lab
}

fn unwritten(raw: bool) -> Lab {
    let filesystem = if raw { "" } else { "ext4" };
    Lab::mirror([Measurement {
        filesystem: filesystem.to_owned(),
        ..row(Read)
    }])
    .fact(fact::WRITTEN_PERCENT, "0")
}

fn stripes(filesystem: &str) -> Lab {
    Lab::of([Measurement {
        filesystem: filesystem.to_owned(),
        ..row(Write)
    }])
    .fact(fact::ARRAY_LEVEL, "raid5")
    .fact(fact::ARRAY_STRIPE_BYTES, "131072")
    .fact(fact::FILESYSTEM_STRIPE_BYTES, "0")
}

fn idle_writes() -> Lab {
    Lab::of([Measurement {
        filesystem: "ext4".to_owned(),
        ..row(Read)
    }])
    .fact(fact::IDLE_WRITTEN_BYTES, "20000000")
}

/// Two subjects, of one of which the type of the file system is told.
fn filesystem(kind: &str) -> Lab {
    let other = Measurement {
        subject: "zfs".to_owned(),
        ..row(Read)
    };
    Lab::of([row(Read), other]).subject_fact("md", fact::FILESYSTEM_TYPE, kind)
}

/// 100 MB/s beside 95000 kB/s, with the change that was printed of it.
fn printed_in_two_units(percent: &str) -> Lab {
    let lab = filesystem("none");
    let name = |what| fact::claim(Read, "", what);
    lab.cell_fact(0, &name(claim_part::VALUE), "100", "MB/s")
        .cell_fact(1, &name(claim_part::VALUE), "95000", "kB/s")
        .cell_fact(1, &name(claim_part::PERCENT), percent, "")
}

/// Partitions that begin at a whole sector of the disk, as the kernel counts.
fn aligned(offset: &str) -> Lab {
    Lab::mirror([row(Write)])
        .fact(&disk("sdb", property::PHYSICAL_SECTOR_BYTES), "4096")
        .fact(&disk("sdb", property::START_SECTOR), "2048")
        .fact(&disk("sdb", property::ALIGNMENT_OFFSET), offset)
}

/// A pool's blocks; 0 is how `zpool get` says that nobody chose.
fn ashift(exponent: &str) -> Lab {
    Lab::mirror([row(Write)])
        .fact(fact::ARRAY_SYSTEM, "zfs")
        .fact(&disk("sdb", property::PHYSICAL_SECTOR_BYTES), "4096")
        .fact(&fact::setting("ashift", fact::outcome::FOUND), exponent)
}

/// Two SSDs, the second of which has so many degrees.
fn flash(degrees: &str) -> Lab {
    two(property::ROTATIONAL, "false", "false")
        .fact(&disk("sdb", property::TEMPERATURE_CELSIUS), "40")
        .fact(&disk("sdc", property::TEMPERATURE_CELSIUS), degrees)
}

/// The same with the array on a machine whose disks have the same names.
fn elsewhere(mut lab: Lab) -> Lab {
    let mut moved = lab.observations.clone();
    moved.retain(|one| one.scope.subject == "md");
    for one in &mut moved {
        "another".clone_into(&mut one.scope.host);
    }
    lab.observations.extend(moved);
    "another".clone_into(&mut lab.rows[0].host);
    lab
}

fn dd(operands: &str) -> Lab {
    Lab::of([Measurement {
        tool: "dd".to_owned(),
        ..row(Write)
    }])
    .command(&format!("dd of=/mnt/f bs=1M {operands}"), 0, "")
}

/// Four processes, each of which spends so much of its time in the kernel.
fn in_the_kernel(percent: &str) -> Lab {
    Lab::of([Measurement {
        streams: 4,
        ..row(Read)
    }])
    .fact(fact::FIO_SYSTEM_CPU_PERCENT, percent)
}

/// Random writes through the page cache that took 2 microseconds.
fn quick_writes(sync: &str) -> Lab {
    let mut quick = random(Write, 100.0);
    quick.latency.p50_ns = 2_000;
    Lab::of([quick])
        .fact(&fact::fio_option("direct"), "0")
        .fact(&fact::fio_option("sync"), sync)
}

fn cases() -> Vec<Case> {
    let scheduler = || two(property::SCHEDULER, "mq-deadline", "none");
    let caches = || two(property::WRITE_CACHE, "write back", "write through");
    let links = || two(property::LINK_SPEED, "6000000000", "3000000000");
    let models = || two(property::MODEL, "WD4000FYYZ", "Samsung SSD 870");
    let default = |level: &str| {
        Lab::of([row(Write)])
            .fact(fact::ARRAY_SYSTEM, "md")
            .fact(fact::ARRAY_LEVEL, level)
            .fact(fact::ARRAY_BITMAP, "default")
    };
    let auxiliary = |lab: Lab, role: &str| lab.fact(&fact::member_role(1), role);
    vec![
        ("A3", created("5"), created("0")),
        ("A3", created("raid10"), created("linear")),
        ("A3", default("raid6"), default("raid0")),
        ("A10", stripes("ext4"), stripes("btrfs")),
        ("A9", idle_writes(), bcache(idle_writes())),
        ("T24", filesystem("ext4"), filesystem("none")),
        (
            "T20",
            printed_in_two_units("-20"),
            printed_in_two_units("-5"),
        ),
        ("H1", aligned("3584"), aligned("0")),
        ("H2", ashift("9"), ashift("0")),
        ("H8", flash("80"), flash("50")),
        ("H4", slower("[UU]"), elsewhere(slower("[UU]"))),
        (
            "B2",
            faster("sequential-read"),
            elsewhere(faster("sequential-read")),
        ),
        ("T18", dd("count=9"), dd("conv=fsync")),
        ("T18", dd("iflag=direct"), dd("oflag=direct")),
        ("H7", in_the_kernel("85"), in_the_kernel("60")),
        ("C14", quick_writes("1"), quick_writes("0")),
        (
            "C14",
            quick_writes("1"),
            quick_writes("1").fact(&fact::fio_option("fsync"), "1"),
        ),
        (
            "A12",
            one_sided().fact(fact::ARRAY_LEVEL, "raid1"),
            one_sided(),
        ),
        (
            "A12",
            one_sided().fact(fact::ARRAY_LEVEL, "mirror"),
            bcache(one_sided()).fact(fact::ARRAY_LEVEL, "single"),
        ),
        (
            "A12",
            one_sided().fact(fact::ARRAY_LEVEL, "raid1"),
            auxiliary(
                one_sided()
                    .fact(fact::ARRAY_LEVEL, "raid1")
                    .fact(&fact::member_device(0), "sdb")
                    .fact(&fact::member_device(1), "sdc"),
                "write-mostly",
            ),
        ),
        ("B2", on_two_filesystems(250e6), on_two_filesystems(190e6)),
        ("B2", faster("sequential-read"), faster("random-read")),
        (
            "B2",
            faster("sequential-read"),
            bcache(faster("sequential-read")),
        ),
        ("C7", unwritten(false), unwritten(true)),
        ("C10", caches(), auxiliary(caches(), "journal")),
        ("C10", caches(), bcache(caches())),
        ("H4", slower("[UU]"), slower("[U_]")),
        ("H6", models(), bcache(models())),
        ("H6", models(), auxiliary(models(), "log")),
        ("H9", slow("WD4000FYYZ"), slow("Samsung SSD 870")),
        ("H9", slow("WD4000FYYZ"), bcache(slow("WD4000FYYZ"))),
        ("H9", links(), auxiliary(links(), "cache")),
        ("H11", scheduler(), bcache(scheduler())),
        ("H12", flash_array("model"), flash_array("host")),
        (
            "H13",
            began("fresh", 0, 4096),
            began("fresh", 0, 4096).fact(fact::ARRAY_COPIES_ON_WRITE, "true"),
        ),
    ]
}

#[test]
fn rules_are_silent_where_they_cannot_apply() {
    let mut problems = Vec::new();
    for (number, (rule, faulty, unlike)) in cases().into_iter().enumerate() {
        let found = |lab: &Lab| {
            let findings = lab.audit().findings.into_iter();
            findings.filter(|f| f.rule == rule).collect::<Vec<_>>()
        };
        if found(&faulty).is_empty() {
            problems.push(format!("{rule} (case {number}) is blind"));
        }
        let wrong = found(&unlike).into_iter();
        problems.extend(wrong.map(|one| format!("{rule} (case {number}): {}", one.evidence)));
    }
    assert!(problems.is_empty(), "{problems:#?}");
}
