//! One disk at depths below and beyond its tags: the model has the times that Linux's own
//! queue has on the kernel bench.
//!
//! The kernel's figures are those of Linux 6.12.117, whose guest has mq-deadline on this
//! disk:
//!
//! ```text
//! raidlab run crates/bench-model/tests/disk-depths.toml --fit strict --on kernel --member-size whole
//! ```
//!
//! Jobs of 20 s scatter by some 2 %, as offsets are fio's there and raidlab's own here.

use crate::rows;
use raidlab_lab::{Choices, Files, Suite, catalogue};
use raidlab_store::{Measurement, Operation};

/// Job, I/Os a second and mean latency in milliseconds.
const KERNEL: [(&str, Operation, f64, f64); 10] = [
    ("read-1", Operation::Read, 80.41, 12.42),
    ("read-8", Operation::Read, 121.03, 66.05),
    ("read-32", Operation::Read, 167.35, 191.12),
    ("read-48", Operation::Read, 168.24, 285.19),
    ("read-64", Operation::Read, 177.06, 361.32),
    ("read-128", Operation::Read, 176.38, 716.90),
    ("read-256", Operation::Read, 176.36, 1417.28),
    ("write-32", Operation::Write, 172.72, 185.19),
    ("write-64", Operation::Write, 179.12, 357.15),
    ("write-256", Operation::Write, 179.24, 1402.47),
];

#[test]
fn one_disk_is_as_on_the_kernel_bench_beyond_its_tags_too() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/disk-depths.toml");
    let rows = on_the_kernel_benchs_host(&Suite::load(file).expect("a suite"), "strict");
    for (job, operation, rate, milliseconds) in KERNEL {
        let row = rows
            .iter()
            .find(|row| row.job == job && row.op == operation)
            .expect(job);
        let iops = row.iops / rate;
        assert!(
            (iops - 1.0).abs() < 0.025,
            "{job}: {iops} of the kernel's rate"
        );
        let mean = row.latency.mean_ns / 1e6 / milliseconds;
        assert!(
            (mean - 1.0).abs() < 0.035,
            "{job}: {mean} of the kernel's latency"
        );
    }
}

/// Reads as on the kernel bench (`raidlab run crates/bench-model/tests/schedulers.toml --fit strict
/// --on kernel --member-size whole`), whose guest has flash and so a clock that costs 50 ns to
/// read, and the writes of this suite. The drive is protected against the loss of power and
/// declares no cache, so its flushes go nowhere.
#[test]
fn flash_is_as_on_the_kernel_bench() {
    let job = |iops: &str, words: &str| {
        format!(
            r#"
[[step]]
job = "{iops}"
title = "one drive"
class = "flash"
fio = "{words} --filesize=3g --time_based --runtime=400ms --direct=1 --randseed=3 --norandommap"
"#
        )
    };
    let jobs = [
        job("8243", "--rw=randread --bs=4k"),
        job("96948", "--rw=randread --bs=4k --iodepth=32"),
        job("15426", "--rw=randwrite --bs=16k"),
        job("15157", "--rw=randwrite --bs=16k --fsync=1"),
    ];
    let text = format!(
        r#"schema = 1
name = "flash"
title = "Flash"
description = "A drive of flash alone."
source = "this test"
disks = ["pm883"]

[[subjects]]
subject = "disk"
name = "flash"
{}"#,
        jobs.concat()
    );
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("flash.toml");
    std::fs::write(&path, text).expect("a file");
    let suite = Suite::load(&path.to_string_lossy()).expect("a suite");
    for row in on_the_kernel_benchs_host(&suite, "rated") {
        let kernel: f64 = row.job.parse().expect("a rate");
        let ratio = row.iops / kernel;
        assert!((ratio - 1.0).abs() < 0.02, "{ratio} of {kernel}");
    }
}

/// What a suite's first subject does on the machine that the kernel bench has.
fn on_the_kernel_benchs_host(suite: &Suite, fit: &str) -> Vec<Measurement> {
    let mut subjects = suite.subjects.clone();
    let host = catalogue::host(&Files::default(), "kernel-bench").expect("a built-in host");
    for subject in &mut subjects {
        subject.move_to(&host);
    }
    let choices = Choices {
        fits: vec![fit.to_owned()],
        seed: 1,
        ..Choices::default()
    };
    let experiment = suite.experiments(&subjects, &choices).remove(0);
    rows::of(&experiment).expect("it runs")
}
