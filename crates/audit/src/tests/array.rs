use super::lab::{Lab, member, random, row};
use super::{Pair, pair};
use raidlab_store::Operation::{Read, Write};
use raidlab_store::Severity::{Fatal, Note, Warning};
use raidlab_store::{Measurement, fact};

pub(super) fn pairs() -> Vec<Pair> {
    [state(), shape()].into_iter().flatten().collect()
}

const CREATE: &str = "mdadm --create /dev/md0 --level=1 --raid-devices=2 /dev/sdb1 /dev/sdc1";

fn state() -> Vec<Pair> {
    let copying = |kind: &str| Lab::of([row(Read)]).fact(fact::SYNC_ACTIVE_START, kind);
    let created =
        |options: &str| Lab::mirror([row(Read)]).command(&format!("{CREATE} {options}"), 0, "");
    let states = |state: &str| {
        Lab::of([Measurement {
            array_state_start: state.to_owned(),
            ..row(Read)
        }])
    };
    let put_back = |at_ns| {
        let mut lab = states("[U_]").command("mdadm /dev/md0 --add /dev/sdb1", 0, "");
        lab.commands[0].at_ns = at_ns;
        lab
    };
    let copied = |bytes: &str| {
        Lab::of([row(Read)])
            .fact(fact::SYNC_COPIED_BYTES, bytes)
            .fact(fact::SYNC_MEMBER_BYTES, "4000787030016")
    };
    let fresh = |iops: f64| Lab::mirror([random(Write, iops)]).fact(fact::ARRAY_SYSTEM, "zfs");
    let filled = |percent: &str| Lab::of([row(Read)]).fact(fact::FILL_PERCENT, percent);
    let balance = |first: u64, second: u64| {
        Lab::of([Measurement {
            streams: 2,
            members: vec![member(first * 4096, 0), member(second * 4096, 0)],
            ..row(Read)
        }])
        .fact(fact::ARRAY_LEVEL, "raid1")
    };
    vec![
        pair("A1", Fatal, copying("resync"), copying("none")),
        pair(
            "A1",
            Fatal,
            copying("recovery"),
            copying("recovery").event("insert", 0),
        ),
        pair(
            "A1",
            Fatal,
            copying("check"),
            of_class("resync", copying("check")),
        ),
        pair(
            "A1",
            Fatal,
            of_class("unresynced-reads", copying("resync")),
            of_class("resync-reads", copying("resync")),
        ),
        pair("A1", Warning, created(""), created("--assume-clean")),
        pair(
            "A1",
            Warning,
            created(""),
            created("").command("mdadm --wait /dev/md0", 0, ""),
        ),
        pair(
            "A1",
            Warning,
            created("").command("mdadm --wait-clean /dev/md0", 0, ""),
            created("").command("mdadm -W /dev/md0", 0, ""),
        ),
        pair(
            "A1",
            Warning,
            Lab::of([row(Read)]).command("lvcreate --type=raid6_zr -i 3 -L 1g vg", 0, ""),
            Lab::of([row(Read)]).command("lvcreate --type=striped -i 3 -L 1g vg", 0, ""),
        ),
        pair("A2", Fatal, states("[U_]"), states("[UU]")),
        pair(
            "A2",
            Fatal,
            states("[U_]").command(&format!("{CREATE} --failfast -f"), 0, ""),
            states("[U_]").command("mdadm /dev/md0 -f /dev/sdb1", 0, ""),
        ),
        pair(
            "A2",
            Fatal,
            states("[U_]"),
            states("[U_]").event("remove", 0),
        ),
        // A member that is put back behind the job tells nothing of it.
        pair("A2", Fatal, put_back(u64::MAX), put_back(0)),
        pair(
            "A3",
            Note,
            created_on_subject(""),
            created_on_subject("--bitmap=none"),
        ),
        pair("A4", Note, copied("3309000000000"), copied("4000787030016")),
        pair("A5", Warning, fresh(9608.0), fresh(38.0)),
        pair("A6", Note, filled("85"), filled("40")),
        pair("A12", Note, balance(65_528, 8), balance(32_768, 16_384)),
        pair(
            "A13",
            Warning,
            at_a_time("kernel", "check", 1),
            at_a_time("kernel", "check", 4),
        ),
        pair(
            "A13",
            Warning,
            at_a_time("model", "recovery", 1),
            at_a_time("model", "none", 1),
        ),
    ]
}

/// A job of that depth beside a sync of a RAID 10.
fn at_a_time(bench: &str, sync: &str, queue_depth: u32) -> Lab {
    let row = Measurement {
        bench: bench.to_owned(),
        queue_depth,
        ..random(Read, 60.0)
    };
    Lab::of([row])
        .fact(fact::ARRAY_SYSTEM, "md")
        .fact(fact::ARRAY_LEVEL, "raid10")
        .fact(fact::SYNC_ACTIVE_START, sync)
        .fact(fact::JOB_ALLOWS_SYNC, fact::TRUE)
}

fn of_class(class: &str, mut lab: Lab) -> Lab {
    lab.rows[0].class = class.to_owned();
    lab
}

fn created_on_subject(options: &str) -> Lab {
    Lab::of([row(Write)]).command(&format!("{CREATE} {options}"), 0, "")
}

fn shape() -> Vec<Pair> {
    let record = |bytes: &str| {
        Lab::mirror([random(Write, 38.0)])
            .fact(fact::ARRAY_SYSTEM, "zfs")
            .fact(fact::ARRAY_RECORD_BYTES, bytes)
    };
    let amplified = |read_bytes: u64| {
        let written = Measurement {
            members: vec![member(read_bytes, 1_000_000)],
            ..random(Write, 38.0)
        };
        Lab::of([written]).fact(
            fact::ARRAY_RECORD_BYTES,
            if read_bytes > 0 { "8192" } else { "4096" },
        )
    };
    let stripes = |write: Measurement| {
        Lab::of([write])
            .fact(fact::ARRAY_LEVEL, "raid5")
            .fact(fact::ARRAY_STRIPE_BYTES, "131072")
    };
    let lazy = |value: &str| Lab::of([row(Write)]).fact(fact::FILESYSTEM_LAZY, value);
    let made = |code: i32| Lab::of([row(Write)]).command("mkfs.ext4 -F /dev/md0", code, "");
    let option = |name: &str| {
        Lab::of([row(Write)]).command(&format!("mkfs.ext4 -E {name}=0 /dev/md0"), 0, "")
    };
    let told = |bytes: &str| {
        let mut lab = Lab::of([row(Write)]).fact(fact::ARRAY_LEVEL, "raid5");
        lab.rows[0].filesystem = "ext4".to_owned();
        lab.fact(fact::ARRAY_STRIPE_BYTES, "131072")
            .fact(fact::FILESYSTEM_STRIPE_BYTES, bytes)
    };
    let signatures = |found: &str| {
        let name = fact::disk("sdb", fact::disk_property::STALE_SIGNATURES);
        Lab::mirror([row(Read)]).fact(&name, found)
    };
    vec![
        pair("A7", Note, record("8192"), record("4096")),
        pair("A7", Warning, amplified(500_000), amplified(0)),
        pair(
            "A8",
            Note,
            stripes(random(Write, 100.0)),
            stripes(Measurement {
                class: "random-write".to_owned(),
                ..row(Write)
            }),
        ),
        pair("A9", Warning, lazy("true"), lazy("false")),
        pair("A9", Fatal, made(1), made(0)),
        pair(
            "A9",
            Warning,
            option("lazy_table_init"),
            option("lazy_itable_init"),
        ),
        pair("A10", Note, told("0"), told("131072")),
        pair(
            "A11",
            Warning,
            signatures("linux_raid_member"),
            signatures("none"),
        ),
    ]
}

/// The reads of a mixed job are no reads of its writes.
#[test]
fn reads_of_a_mixed_job_are_not_blamed_on_its_writes() {
    let half = |op| Measurement {
        members: vec![member(2_000_000, 1_000_000)],
        ..random(op, 38.0)
    };
    let judged = |rows: Vec<Measurement>| {
        let audit = Lab::of(rows).fact(fact::ARRAY_RECORD_BYTES, "8192").audit();
        let of_rule = audit.findings.into_iter().filter(|one| one.rule == "A7");
        of_rule.map(|one| one.severity).collect::<Vec<_>>()
    };
    assert_eq!(judged(vec![half(Write)]), [Warning]);
    assert_eq!(judged(vec![half(Read), half(Write)]), [Note]);
}
