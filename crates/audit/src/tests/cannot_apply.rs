//! Evidence at which a rule looks like its own fault and is not: the array is of a
//! kind that cannot have it, or is unlike by design. Each beside evidence that has
//! the fault, so that the rule is not merely blind.

use super::lab::{Lab, member, random, row};
use raidlab_store::Operation::{Read, Write};
use raidlab_store::fact::{self, disk, disk_property as property};
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
    ]
}

#[test]
fn rules_are_silent_where_they_cannot_apply() {
    for (number, (rule, faulty, unlike)) in cases().into_iter().enumerate() {
        let found = |lab: &Lab| {
            let findings = lab.audit().findings.into_iter();
            findings.filter(|f| f.rule == rule).collect::<Vec<_>>()
        };
        assert!(
            !found(&faulty).is_empty(),
            "{rule} (case {number}) is blind"
        );
        let wrong = found(&unlike);
        assert!(wrong.is_empty(), "{rule} (case {number}): {wrong:?}");
    }
}
