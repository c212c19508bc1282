use super::lab::{Lab, random, row};
use super::{Pair, pair};
use raidlab_store::Operation::{Read, Seek, Write};
use raidlab_store::Severity::{Note, Warning};
use raidlab_store::fact::{claim, claim_part};
use raidlab_store::{Measurement, Operation, fact};

pub(super) fn pairs() -> Vec<Pair> {
    [units(), percents(), comparisons()]
        .into_iter()
        .flatten()
        .collect()
}

fn on(subject: &str, measurement: Measurement) -> Measurement {
    Measurement {
        subject: subject.to_owned(),
        ..measurement
    }
}

/// What was printed of a row.
fn printed(lab: Lab, row: usize, what: &str, value: &str, unit: &str) -> Lab {
    let name = claim(lab.rows[row].op, "", what);
    lab.cell_fact(row, &name, value, unit)
}

fn seeks(per_second: f64) -> Measurement {
    Measurement {
        iops: per_second,
        bytes_per_second: 0.0,
        total_ios: 0,
        total_bytes: 0,
        block_size_bytes: 0,
        ..row(Seek)
    }
}

fn units() -> Vec<Pair> {
    // 51.40 MB/s are 49.02 MiB/s.
    let written = |subject, bytes_per_second| {
        on(
            subject,
            Measurement {
                bytes_per_second,
                ..row(Write)
            },
        )
    };
    let rates = || Lab::of([written("gmirror", 51.402e6), written("md", 23.853e6)]);
    let value = |first: &str| {
        let lab = printed(rates(), 0, claim_part::VALUE, first, "MB/s");
        printed(lab, 1, claim_part::VALUE, "23.85", "MB/s")
    };
    // 51402 KB/s are 50197 KiB/s.
    let binary = |first: &str| {
        let lab = printed(rates(), 0, claim_part::VALUE, first, "KiB/s");
        printed(lab, 1, claim_part::VALUE, "23294", "KiB/s")
    };
    let by_dd = |rate: &str| {
        let name = fact::DD_PRINTED_BYTES_PER_SECOND;
        rates()
            .cell_fact(0, name, rate, "")
            .cell_fact(1, name, "23900000", "")
    };
    // A true rate is not kept.
    let one_by_dd = |rate: &str| {
        let lab = rates().fact(fact::DD_RECORDS_OUT_WHOLE, "1024");
        lab.cell_fact(0, fact::DD_PRINTED_BYTES_PER_SECOND, rate, "")
    };
    let alike = |unit: &str| printed(rates(), 0, claim_part::VALUE, "49.02", unit);
    let unit = |unit: &str| printed(Lab::of([seeks(148.5)]), 0, claim_part::VALUE, "148.5", unit);
    let winner = |freebsd: &str, linux: &str| {
        let lab = Lab::of([on("gmirror", seeks(165.1)), on("md", seeks(148.5))]);
        let lab = printed(lab, 0, claim_part::WINNER, freebsd, "");
        printed(lab, 1, claim_part::WINNER, linux, "")
    };
    // A winner whose figure nobody told is not the slowest.
    let untold = {
        let both = [on("gmirror", seeks(165.1)), on("md", seeks(148.5))];
        let lab = Lab::of(both.into_iter().chain([on("zfs", seeks(0.0))]));
        printed(lab, 2, claim_part::WINNER, "true", "")
    };
    let other = |value: &str| {
        printed(
            Lab::of([random(Read, 168.0)]),
            0,
            claim_part::VALUE,
            value,
            "1/s",
        )
    };
    vec![
        pair("T19", Warning, value("49.02"), value("51.40")),
        pair("T19", Warning, by_dd("49020000"), by_dd("51400000")),
        pair("T19", Warning, one_by_dd("49020000"), one_by_dd("51400000")),
        pair("T19", Note, alike("MB/s"), alike("MiB/s")),
        pair("T19", Warning, binary("51402"), binary("50197")),
        pair("T30", Warning, unit("s"), unit("1/s")),
        pair(
            "T30",
            Warning,
            winner("false", "true"),
            winner("true", "false"),
        ),
        pair("T30", Warning, winner("false", "true"), untold),
        pair("T31", Warning, other("172"), other("167")),
        pair("T31", Warning, by_dd("106000000"), by_dd("51400000")),
    ]
}

fn percents() -> Vec<Pair> {
    let percent = |value: &str, base: &str, percent: &str| {
        let lab = Lab::of([random(Read, 99.0)]);
        let lab = printed(lab, 0, claim_part::VALUE, value, "1/s");
        let lab = printed(lab, 0, claim_part::BASE, base, "1/s");
        printed(lab, 0, claim_part::PERCENT, percent, "percent")
    };
    // The best of the job is the base where none is printed.
    let of_best = |percent: &str| {
        let lab = Lab::of([
            on("md", random(Read, 99.0)),
            on("gflash", random(Read, 1952.0)),
        ]);
        let lab = printed(lab, 0, claim_part::VALUE, "99", "1/s");
        let lab = printed(lab, 1, claim_part::VALUE, "1952", "1/s");
        printed(lab, 0, claim_part::PERCENT, percent, "percent")
    };
    let counted = |total_ios: u64| {
        Lab::of([Measurement {
            total_ios,
            ..random(Read, 5.0)
        }])
    };
    let cut = |value: &str| {
        let lab = Lab::of([random(Read, 175.5)]);
        printed(lab, 0, claim_part::VALUE, value, "KB/s")
    };
    let close = |percent: &str| {
        let lab = Lab::of([random(Read, 178.0)]);
        printed(lab, 0, claim_part::PERCENT, percent, "percent")
    };
    vec![
        pair(
            "T20",
            Warning,
            percent("99", "1952", "-99"),
            percent("99", "1952", "-95"),
        ),
        pair(
            "T20",
            Warning,
            percent("9608", "180", "5338"),
            percent("9608", "180", "5238"),
        ),
        pair("T20", Warning, of_best("-99"), of_best("-95")),
        pair(
            "T20",
            Note,
            percent("167", "343", "-52"),
            percent("167", "343", "-51"),
        ),
        pair("T21", Warning, counted(300), counted(12_000)),
        pair("T21", Note, cut("700"), cut("702")),
        pair("T22", Warning, close("-1"), close("-7")),
    ]
}

fn comparisons() -> Vec<Pair> {
    let tools = |second: &str| {
        let other = Measurement {
            tool: second.to_owned(),
            ..on("gmirror", row(Read))
        };
        Lab::of([row(Read), other])
    };
    let filesystems = |second: &str| {
        let ext3 = Measurement {
            filesystem: "ext3".to_owned(),
            ..row(Read)
        };
        let other = Measurement {
            filesystem: second.to_owned(),
            ..on("gmirror", row(Read))
        };
        Lab::of([ext3, other])
    };
    let flushed = |each: &str| {
        let of_fio = |subject: &str| Measurement {
            bench: "import".to_owned(),
            tool: "fio-3.33".to_owned(),
            ..on(subject, row(Operation::Write))
        };
        Lab::of([of_fio("md"), of_fio("gmirror")])
            .fact(&fact::fio_option("bs"), "4k")
            .subject_fact("gmirror", &fact::fio_option("fsync"), each)
    };
    let mixed = || Lab::of([random(Read, 158.0), random(Write, 77.0)]);
    let repeated = |values: [f64; 5]| {
        Lab::of(
            (0..)
                .zip(values)
                .map(|(repetition, bytes_per_second)| Measurement {
                    repetition,
                    bytes_per_second,
                    ..row(Operation::Read)
                }),
        )
    };
    vec![
        pair("T23", Note, tools("fio 2.1.9"), tools("fio 3.33")),
        pair("T24", Warning, filesystems("ufs"), filesystems("ext3")),
        pair("T39", Warning, flushed("1"), flushed("0")),
        pair(
            "T26",
            Note,
            printed(mixed(), 0, claim_part::PERCENT, "-12", "percent"),
            mixed(),
        ),
        pair(
            "R1",
            Note,
            repeated([1e8, 1.01e8, 0.99e8, 1e8, 0.5e8]),
            repeated([1e8, 1.01e8, 0.99e8, 1.005e8, 0.995e8]),
        ),
    ]
}
