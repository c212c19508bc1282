//! The pool's leaps give the slow path's numbers.

use crate::rebuild_time::run_suite_without;
use raidlab_store::{Measurement, Operation};

/// Random writes, then 64 GiB in a row.
const STREAM: &str = r#"
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

/// A member is put back, and a resilver begins.
const PUT_BACK: &str = r#"
[[step]]
event = "remove"
member = 1

[[step]]
event = "insert"
member = 1
"#;

/// What the cache keeps, and a resilver copies in a short time.
const CACHED: &str = r#"
[[step]]
job = "1"
title = "sequential write 1 MiB"
class = "sequential-write"
fio = "--rw=write --bs=1m --size=8g --direct=1"
"#;

/// The reads of what the cache keeps, behind the resilver.
const READ_AGAIN: &str = r#"
[[step]]
wait = "1h"

[[step]]
job = "2"
title = "random read 16 KiB"
class = "random-read"
fio = "--rw=randread --bs=16k --iodepth=4 --size=1g --time_based --runtime=5 --direct=1 --norandommap"
"#;

/// Blocks at random places, for a resilver.
const SCATTERED: &str = r#"
[[step]]
job = "2"
title = "random write 8 KiB"
class = "random-write"
fio = "--rw=randwrite --bs=8k --iodepth=8 --size=2t --number_ios=200000 --norandommap --direct=1"
"#;

/// The end of the resilver.
const RESILVERED: &str = r#"
[[step]]
wait = "sync-done"
at_most = "96h"
"#;

/// The rows of a ZFS mirror on which these steps are done.
fn rows_of(steps: &[&str], without: &[&str]) -> Vec<Measurement> {
    let steps = steps.concat();
    let text = format!(
        r#"schema = 1
name = "leaps"
title = "leaps"
description = "a mirror of ZFS"
source = "this test"
disks = ["wd4000fyyz", "wd4000fyyz"]
subjects = ["zfs"]
{steps}"#
    );
    run_suite_without(&text, without).rows
}

/// The rate of job 2 of these steps, and the percentage of it that was leaped over.
fn run(steps: &[&str], without: &[&str]) -> (f64, f64) {
    let rows = rows_of(steps, without);
    let row = rows.iter().rfind(|row| row.job == "2").expect("two jobs");
    (row.iops, row.leaped_percent)
}

/// One sample of ten seconds decided how long the rest took: 1288 s instead of 1180.
#[test]
fn a_resilver_of_scattered_blocks_takes_as_long_as_simulated() {
    let [leapt, slow] = [&[][..], &["leaps"]].map(|without| {
        let rows = rows_of(&[SCATTERED, PUT_BACK, RESILVERED], without);
        let recovery = rows.iter().find(|row| row.op == Operation::Recovery);
        recovery.expect("a recovery").runtime_ns as f64
    });
    assert!((leapt / slow - 1.0).abs() < 0.03, "{leapt} and {slow}");
}

#[test]
fn a_leaped_write_is_as_fast_as_a_simulated_one() {
    let (slow, none) = run(&[STREAM], &["leaps"]);
    let (fast, leaped) = run(&[STREAM], &[]);
    assert!(none == 0.0 && leaped > 30.0, "{none} {leaped}");
    assert!((fast / slow - 1.0).abs() < 0.02, "{fast} against {slow}");
}

/// A leap over some seconds of a resilver dropped the whole cache: the reads behind it were 170 times
/// as slow as behind a simulated one.
#[test]
fn a_leap_over_a_short_resilver_leaves_the_cache() {
    let steps = [CACHED, PUT_BACK, READ_AGAIN];
    let (slow, _) = run(&steps, &["leaps"]);
    let (fast, _) = run(&steps, &[]);
    assert!((fast / slow - 1.0).abs() < 0.05, "{fast} against {slow}");
}
