//! The pool's leaps give the slow path's numbers.

use crate::rows;
use raidlab_lab::{Choices, Suite};

const SUITE: &str = r#"
schema = 1
name = "leaps"
title = "leaps"
description = "random writes, then 64 GiB in a row"
source = "this test"
disks = ["wd4000fyyz", "wd4000fyyz"]
subjects = ["zfs"]

[[step]]
job = "1"
title = "random write 4 KiB"
class = "random-write"
fio = "--rw=randwrite --bs=4k --iodepth=1 --filesize=3t --runtime=10 --direct=1 --gtod_reduce=1"

[[step]]
job = "2"
title = "sequential write 128 KiB"
class = "sequential-write"
fio = "--rw=write --bs=128k --iodepth=1 --size=64g --offset=64g --direct=1 --gtod_reduce=1"
"#;

/// The last job's rate and the percentage of it that was leaped over.
fn run(without: &[&str]) -> (f64, f64) {
    let path = concat!(env!("CARGO_TARGET_TMPDIR"), "/zfs-leaps.toml");
    std::fs::write(path, SUITE).expect("a file");
    let suite = Suite::load(path).expect("a suite");
    let choices = Choices {
        fits: vec!["strict".to_owned()],
        seed: 1,
        without: without.iter().map(ToString::to_string).collect(),
        ..Choices::default()
    };
    let subject = suite.subject("zfs").expect("built in");
    let experiments = suite.experiments(&[subject], &choices);
    let rows = rows::of(&experiments[0]).expect("runs");
    let row = rows.last().expect("two jobs");
    (row.iops, row.leaped_percent)
}

#[test]
fn a_leaped_write_is_as_fast_as_a_simulated_one() {
    let (slow, none) = run(&["leaps"]);
    let (fast, leaped) = run(&[]);
    assert!(none == 0.0 && leaped > 30.0, "{none} {leaped}");
    assert!((fast / slow - 1.0).abs() < 0.02, "{fast} against {slow}");
}
