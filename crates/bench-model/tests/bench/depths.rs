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
    let suite = Suite::load(file).expect("a suite");
    // The kernels of the other hosts have the same queue before a SATA disk.
    for host in ["kernel-bench", "linux-6.12-2g", "linux-6.9", "linux-5.10"] {
        let rows = on_host(host, &suite, "strict");
        for (job, operation, rate, milliseconds) in KERNEL {
            let row = rows
                .iter()
                .find(|row| row.job == job && row.op == operation)
                .expect(job);
            let iops = row.iops / rate;
            assert!(
                (iops - 1.0).abs() < 0.025,
                "{host}, {job}: {iops} of the kernel's rate"
            );
            let mean = row.latency.mean_ns / 1e6 / milliseconds;
            assert!(
                (mean - 1.0).abs() < 0.035,
                "{host}, {job}: {mean} of the kernel's latency"
            );
        }
    }
}

/// Reads as on the kernel bench (`raidlab run crates/bench-model/tests/schedulers.toml --fit strict
/// --on kernel --member-size whole`), whose guest has flash and so a clock that costs 50 ns to
/// read, and the writes of this suite.
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
    for row in on_host("kernel-bench", &suite, "rated") {
        let kernel: f64 = row.job.parse().expect("a rate");
        let ratio = row.iops / kernel;
        assert!((ratio - 1.0).abs() < 0.02, "{ratio} of {kernel}");
    }
}

/// A mirror reads from its NVMe drive alone where the SATA disk is write-mostly, so it reads as fast
/// as that drive: the host has another queue before each of them.
#[test]
fn an_nvme_drive_beside_a_sata_disk_has_its_own_queue() {
    let text = r#"schema = 1
name = "beside"
title = "NVMe beside SATA"
description = "Reads of a mirror whose SATA disk is write-mostly, and of its NVMe drive."
source = "this test"
disks = ["cm7r", "870evo"]
subjects = [
    { subject = "disk", name = "alone" },
    { subject = "md-raid1-clean", name = "mirror", build = { write_mostly = [1] } },
]

[[step]]
job = "reads"
title = "random read 4 KiB, 16 jobs of queue depth 32"
class = "random-read"
queue = "fio"
fio = "--rw=randread --bs=4k --ioengine=libaio --iodepth=32 --numjobs=16 --filesize=80g --time_based --runtime=10ms --direct=1 --norandommap --group_reporting"
"#;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("beside.toml");
    std::fs::write(&path, text).expect("a file");
    let suite = Suite::load(&path.to_string_lossy()).expect("a suite");
    let choices = Choices {
        fits: vec!["rated".to_owned()],
        seed: 1,
        ..Choices::default()
    };
    let all = suite.experiments(&suite.subjects, &choices);
    let rate = |one| rows::of(one).expect("it runs")[0].iops;
    let rates: Vec<f64> = all.iter().map(rate).collect();
    assert!(rates[1] > 0.95 * rates[0], "{rates:?}");
}

/// The rebuild's reads come ahead of the writes without end. Behind one sweep over the disk a write
/// had no answer for ten minutes, which ended the run.
#[test]
fn writers_beside_a_rebuild_of_btrfs_get_their_turn() {
    let text = r#"schema = 1
name = "beside"
title = "Writers beside a rebuild"
description = "Four writers while a member of a btrfs RAID 1 is replaced."
source = "this test"
disks = ["wd4000fyyz", "wd4000fyyz"]
subjects = ["btrfs-pid"]

[[step]]
event = "remove"
member = 1

[[step]]
event = "insert"
member = 1

[[step]]
job = "beside"
title = "sequential writes of 64 KiB by four processes"
class = "sequential-write"
fio = "--rw=write --bs=64k --iodepth=4 --numjobs=4 --filesize=2t --time_based --runtime=10 --direct=1"
"#;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("beside.toml");
    std::fs::write(&path, text).expect("a file");
    let suite = Suite::load(&path.to_string_lossy()).expect("a suite");
    // mq-deadline lets a write wait for five seconds at most before it begins a batch.
    for row in on_host("linux-6.9", &suite, "strict") {
        let longest = row.latency.max_ns as f64 / 1e9;
        assert!(longest < 10.0, "a write waited for {longest} s");
    }
}

/// What a suite's first subject does on a built-in host.
fn on_host(host: &str, suite: &Suite, fit: &str) -> Vec<Measurement> {
    let mut subjects = suite.subjects.clone();
    let host = catalogue::host(&Files::default(), host).expect("a built-in host");
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
