use super::lab::{Lab, member, row};
use super::{Pair, pair};
use raidlab_store::Operation::{Read, Write};
use raidlab_store::Severity::{Note, Warning};
use raidlab_store::fact::disk_property as property;
use raidlab_store::{Latency, Measurement, MemberUse, fact};

pub(super) fn pairs() -> Vec<Pair> {
    [sectors(), places(), machine()]
        .into_iter()
        .flatten()
        .collect()
}

/// Writes to an array of two NVMe drives on a bench.
pub(super) fn flash_array(bench: &str) -> Lab {
    let ran = Lab::of([Measurement {
        bench: bench.to_owned(),
        ..row(Write)
    }]);
    ["nvme0n1", "nvme1n1"]
        .into_iter()
        .enumerate()
        .fold(ran, |lab, (slot, device)| {
            lab.fact(&fact::member_device(slot), device)
                .fact(&fact::disk(device, property::ROTATIONAL), "false")
        })
}

/// Random writes to an array of two NVMe drives of a megabyte that began in a state, of which so many
/// bytes each came to a drive, behind a job of sequential writes with so many.
pub(super) fn began(state: &str, before: u64, bytes: u64) -> Lab {
    let mut lab = flash_array("model");
    let ordered = &mut lab.rows[0];
    ordered.members = vec![member(0, before); 2];
    let random = Measurement {
        class: "random-write".to_owned(),
        sequence: ordered.sequence + 1,
        members: vec![member(0, bytes); 2],
        ..ordered.clone()
    };
    lab.rows.push(random);
    ["nvme0n1", "nvme1n1"].into_iter().fold(lab, |lab, device| {
        lab.fact(&fact::disk(device, property::STATE), state)
            .fact(&fact::disk(device, property::SIZE_BYTES), "1000000")
    })
}

/// A mirror of partitions of disks of a model, beginning at a sector.
fn partitions(model: &str, start: Option<&str>) -> Lab {
    let mut lab = Lab::of([row(Write)]);
    for (slot, device) in ["sdb", "sdc"].into_iter().enumerate() {
        let partition = format!("{device}1");
        lab = lab
            .fact(&fact::member_device(slot), &partition)
            .fact(&fact::disk(device, property::MODEL), model)
            .fact(&fact::disk(device, property::PHYSICAL_SECTOR_BYTES), "512");
        if let Some(start) = start {
            lab = lab.fact(&fact::disk(&partition, property::START_SECTOR), start);
        }
    }
    lab
}

fn sectors() -> Vec<Pair> {
    let ashift = |value: &str| {
        partitions("WDC WD15EARS-00Z5B1", Some("2048"))
            .fact(fact::ARRAY_SYSTEM, "zfs")
            .fact("setting.ashift.found", value)
    };
    let model = |model: &str| partitions(model, None);
    let slowest = |max_ns: u64| {
        Lab::mirror([Measurement {
            latency: Latency {
                max_ns,
                ..Latency::default()
            },
            ..row(Write)
        }])
    };
    let falling = |last: f64| {
        let rates: Vec<f64> = (0..60).map(|i| if i < 20 { 180e6 } else { last }).collect();
        Lab::mirror([row(Write)]).sampled(fact::series::WRITE_BYTES_PER_SECOND, &rates)
    };
    vec![
        pair(
            "H1",
            Warning,
            partitions("WDC WD15EARS-00Z5B1", Some("63")),
            partitions("WDC WD15EARS-00Z5B1", Some("2048")),
        ),
        pair(
            "H1",
            Warning,
            model("WDC WD15EARS-00Z5B1"),
            model("WDC WD4000FYYZ-01UL1B2"),
        ),
        pair("H2", Warning, ashift("9"), ashift("12")),
        pair(
            "H3",
            Warning,
            model("ST4000DM004-2CV104"),
            model("WDC WD4000FYYZ-01UL1B2"),
        ),
        pair(
            "H3",
            Warning,
            slowest(437_000_000_000),
            slowest(900_000_000),
        ),
        pair("H3", Warning, falling(20e6), falling(150e6)),
    ]
}

/// Single disks and an array of both, with their rates.
fn alone_and_together(first: &str, second: &str, array: f64) -> Lab {
    let rows = [("first", 44e6), ("second", 40.56e6), ("array", array)];
    let lab = Lab::of(rows.map(|(subject, rate)| Measurement {
        subject: subject.to_owned(),
        bytes_per_second: rate,
        ..row(Read)
    }));
    lab.subject_fact("first", &fact::member_device(0), first)
        .subject_fact("second", &fact::member_device(0), second)
        .subject_fact("array", &fact::member_device(0), first)
        .subject_fact("array", &fact::member_device(1), second)
        .subject_fact("array", fact::ARRAY_LEVEL, "raid0")
}

fn places() -> Vec<Pair> {
    let sum = |array: f64| alone_and_together("hda3", "hdc5", array);
    let devices = |second: &str| alone_and_together("hdc5", second, 80e6);
    let begins = |start: &str| {
        devices("hda1")
            .fact(&fact::disk("hdc", property::SIZE_BYTES), "160000000000")
            .fact(&fact::disk("hdc5", property::START_SECTOR), "63")
            .fact(&fact::disk("hda1", property::START_SECTOR), start)
    };
    // Two arrays of the same two parts of a disk, which begin far apart.
    let subjects = ["md", "gmirror"].map(|subject| Measurement {
        subject: subject.to_owned(),
        ..row(Read)
    });
    let both = Lab::of(subjects)
        .fact(&fact::member_device(0), "hdc5")
        .fact(&fact::member_device(1), "hdc6")
        .fact(&fact::disk("hdc", property::SIZE_BYTES), "160000000000")
        .fact(&fact::disk("hdc5", property::START_SECTOR), "63")
        .fact(&fact::disk("hdc6", property::START_SECTOR), "200000000");
    let channel = |second: &str| {
        devices("hdb1")
            .fact(&fact::disk("hdc", property::CHANNEL), "ide1")
            .fact(&fact::disk("hdb", property::CHANNEL), second)
    };
    let models = |second: &str| {
        devices("hdb1")
            .fact(&fact::disk("hdc", property::MODEL), "SAMSUNG SP1614N")
            .fact(&fact::disk("hdb", property::MODEL), second)
    };
    vec![
        pair("H4", Warning, sum(30.77e6), sum(80e6)),
        pair("H4", Warning, devices("hdc6"), devices("hda1")),
        pair("H4", Note, channel("ide1"), channel("ide0")),
        pair("B2", Note, sum(88e6), sum(84e6)),
        pair("B2", Warning, sum(120e6), sum(80e6)),
        pair("H5", Note, devices("hdc6"), devices("hda1")),
        pair("H5", Note, begins("200000000"), begins("63")),
        pair("H5", Note, devices("hdc6"), both),
        pair("H6", Note, models("ST340015A"), models("SAMSUNG SP1614N")),
    ]
}

fn machine() -> Vec<Pair> {
    let processor = |percent: f64| {
        Lab::of([Measurement {
            cpu_percent: Some(percent),
            ..row(Read)
        }])
    };
    let clones = |count: &str| processor(221.0).fact(fact::FIO_JOBS, count);
    let interrupted = |percent: &str| processor(71.0).fact(fact::CPU_INTERRUPT_PERCENT, percent);
    let governor = |name: &str| Lab::of([row(Read)]).fact(fact::CPU_GOVERNOR, name);
    let flash = |last: f64| {
        let rates: Vec<f64> = (0..60).map(|i| if i < 20 { 500e6 } else { last }).collect();
        Lab::of([row(Write)])
            .fact(&fact::member_device(0), "sda")
            .fact(&fact::disk("sda", property::ROTATIONAL), "false")
            .sampled(fact::series::WRITE_BYTES_PER_SECOND, &rates)
    };
    let pending = |count: &str| {
        Lab::mirror([row(Read)]).fact(&fact::disk("sdb", property::PENDING_SECTORS), count)
    };
    let of_partitions = |count: &str| {
        let name = fact::disk("sdb", property::PENDING_SECTORS);
        partitions("WDC WD4000FYYZ-01UL1B2", Some("2048")).fact(&name, count)
    };
    let hot = |degrees: &str| {
        Lab::of([row(Read)])
            .fact(&fact::member_device(0), "nvme0n1p1")
            .fact(&fact::disk("nvme0n1", property::ROTATIONAL), "false")
            .fact(
                &fact::disk("nvme0n1", property::TEMPERATURE_CELSIUS),
                degrees,
            )
    };
    let slow = |ticks: u64| {
        let used = |ticks| MemberUse {
            read_ticks_ns: ticks,
            ..member(4_096_000, 0)
        };
        Lab::of([Measurement {
            class: "random-read".to_owned(),
            members: vec![used(10_000_000_000), used(ticks)],
            ..row(Read)
        }])
    };
    let first = |ns: &str| Lab::of([row(Read)]).fact(fact::FIRST_IO_NS, ns);
    let scheduler = |second: &str| {
        Lab::mirror([row(Read)])
            .fact(&fact::disk("sdb", property::SCHEDULER), "mq-deadline")
            .fact(&fact::disk("sdc", property::SCHEDULER), second)
    };
    let throttling = |second: &str| {
        let name = property::WRITE_THROTTLING_MICROSECONDS;
        Lab::mirror([row(Read)])
            .fact(&fact::disk("sdb", name), "75000")
            .fact(&fact::disk("sdc", name), second)
    };
    let charged = |bench: &str| flash_array(bench).fact(fact::CPU_PRESET, "desktop-2015");
    vec![
        pair("H7", Warning, processor(99.0), processor(20.0)),
        pair("H7", Warning, clones("2"), clones("8")),
        pair("H7", Warning, interrupted("25"), interrupted("5")),
        pair("H7", Note, governor("powersave"), governor("performance")),
        pair("H8", Warning, flash(60e6), flash(480e6)),
        pair("H8", Note, hot("80"), hot("50")),
        pair("H9", Warning, pending("8"), pending("0")),
        pair("H9", Warning, of_partitions("8"), of_partitions("0")),
        pair("H9", Warning, slow(30_000_000_000), slow(11_000_000_000)),
        pair("H10", Warning, first("8000000000"), first("12000000")),
        pair("H11", Warning, scheduler("bfq"), scheduler("mq-deadline")),
        pair("H11", Warning, throttling("0"), throttling("75000")),
        pair("H12", Warning, flash_array("model"), charged("model")),
        pair("H12", Warning, flash_array("kernel"), charged("kernel")),
        pair(
            "H13",
            Warning,
            began("filled", 0, 500_000),
            began("steady", 0, 500_000),
        ),
        pair(
            "H13",
            Warning,
            began("fresh", 1_400_000, 500_000),
            began("fresh", 1_600_000, 500_000),
        ),
    ]
}
