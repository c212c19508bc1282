//! A wait that is leapt over ends as the simulated one does.

use crate::rows;
use raidlab_bench_model::ModelBench;
use raidlab_lab::{Bench, Choices, Experiment, Finish, Observer, Progress, Suite};
use raidlab_store::{CellResult, Records};
use raidlab_units::Nanos;
use std::path::Path;

/// A disk of so many GB with the whole rate curve of a large one: a rebuild of 6 GB takes three
/// quarters of a minute.
pub fn small_disk(gigabytes: u32) -> String {
    let large = include_str!("../../../../data/disks/wd4000fyyz.toml");
    let capacity = large
        .lines()
        .find(|line| line.starts_with("capacity_sectors"))
        .expect("a capacity");
    let name = large
        .lines()
        .find(|line| line.starts_with("name"))
        .expect("a name");
    let sectors = gigabytes * 2_000_000;
    let small = format!("capacity_sectors = {{ value = {sectors}, source = \"this test\" }}");
    large
        .replace(capacity, &small)
        .replace(name, "name = \"small\"")
}

const READ: &str = "--rw=randread --bs=4k --iodepth=1 --size=8m --direct=1";

/// A subject that waits so while member 1 is rebuilt, and then has this job.
fn experiment(
    folder: &Path,
    (subject, members): (&str, usize),
    (gigabytes, wait): (u32, &str),
    job: &str,
    without: &[&str],
) -> Experiment {
    let disk = folder.join("small.toml");
    std::fs::write(&disk, small_disk(gigabytes)).expect("a file");
    let disks = vec![format!("{:?}", disk.to_string_lossy()); members].join(", ");
    let text = format!(
        r#"schema = 1
name = "waits"
title = "waits"
description = "a rebuild without load, and then a job"
source = "this test"
disks = [{disks}]
subjects = ["{subject}"]

[[step]]
event = "remove"
member = 1

[[step]]
event = "insert"
member = 1

[[step]]
{wait}

[[step]]
job = "after"
title = "what is asked of it then"
class = "random"
fio = "{job}"
"#
    );
    let path = folder.join("waits.toml");
    std::fs::write(&path, text).expect("a file");
    let suite = Suite::load(&path.to_string_lossy()).expect("a suite");
    let choices = Choices {
        fits: vec!["strict".to_owned()],
        seed: 1,
        without: without.iter().map(ToString::to_string).collect(),
        ..Choices::default()
    };
    suite.experiments(&suite.subjects, &choices).remove(0)
}

/// How far the rebuild of disks of so many GB is after a wait: with leaps and without.
fn assert_as_far_as_simulated(subject: (&str, usize), wait: (u32, &str)) {
    let folder = tempfile::tempdir().expect("a folder");
    let [leapt, slow] = [&[][..], &["leaps"]].map(|without| {
        let experiment = experiment(folder.path(), subject, wait, READ, without);
        let rows = rows::of(&experiment).expect("runs");
        rows[0].sync_percent_start.expect("it goes on")
    });
    assert!((20.0..80.0).contains(&slow), "{slow} %");
    assert!((leapt / slow - 1.0).abs() <= 0.01, "{leapt} and {slow} %");
}

#[test]
fn a_mirror_is_as_far_as_simulated() {
    assert_as_far_as_simulated(("md-raid1-clean", 2), (6, "wait = \"20s\""));
}

/// Its stripe cache grows as it syncs, and its pace with it: a leap over the first
/// seconds' pace was a third too short.
#[test]
fn a_raid5_is_as_far_as_simulated() {
    assert_as_far_as_simulated(("md-raid5-clean", 4), (10, "wait = \"50s\""));
}

/// With a bitmap the sync comes to rest every five seconds. A large cache takes half a second to
/// fill again, in which the position stands. A leap believed that a limit held it back, and it
/// went on at the pace of a second without a rest.
#[test]
fn a_raid5_with_a_bitmap_and_a_large_cache_is_as_far_as_simulated() {
    let folder = tempfile::tempdir().expect("a folder");
    let large = folder.path().join("large.toml");
    let layout = "layout = \"left-symmetric\"\n";
    let whole = include_str!("../../../../data/subjects/md-raid5.toml");
    let text = whole.replace(layout, &format!("{layout}stripe_cache_size = 32768\n"));
    std::fs::write(&large, text).expect("a file");
    assert_as_far_as_simulated((&large.to_string_lossy(), 4), (15, "wait = \"80s\""));
}

#[test]
fn a_raid6_is_as_far_as_simulated() {
    assert_as_far_as_simulated(("md-raid6-clean", 4), (10, "wait = \"50s\""));
}

#[test]
fn a_raid10_is_as_far_as_simulated() {
    assert_as_far_as_simulated(("md-raid10-clean", 4), (6, "wait = \"20s\""));
}

/// What was written to once counts as written to until the bitmap's daemon has passed twice, and
/// needs no page of the bitmap until then. A leap went over all passes but one.
#[test]
fn bits_of_a_bitmap_age_while_a_wait_is_leapt_over() {
    const WRITES: &str = "--rw=randwrite --bs=4k --iodepth=1 --time_based --runtime=5 --direct=1 \
        --norandommap";
    let folder = tempfile::tempdir().expect("a folder");
    let [leapt, slow] = [&[][..], &["leaps"]].map(|without| {
        let subject = ("md-raid1-clean-bitmap", 2);
        let wait = (200, "wait = \"40s\"");
        let experiment = experiment(folder.path(), subject, wait, WRITES, without);
        rows::of(&experiment).expect("runs")[0].iops
    });
    assert!(
        (leapt / slow - 1.0).abs() <= 0.05,
        "{leapt} and {slow} a second"
    );
}

/// Writes the subject of a RAID 10 whose syncs may copy 40,000 KiB a second, and returns its path.
fn limited(folder: &Path) -> String {
    let path = folder.join("limited.toml");
    let whole = include_str!("../../../../data/subjects/md-raid10-clean.toml");
    let text = whole.replace("[build.md]\n", "[build.md]\nsync_speed_max = \"40000k\"\n");
    std::fs::write(&path, text).expect("a file");
    path.to_string_lossy().into_owned()
}

/// Above md's `speed_limit_max` a sync sleeps for half a second at a time. A second of it is a
/// burst, or nothing: a leap over such a second was up to five times as long as md's.
#[test]
fn a_rebuild_that_is_held_back_takes_the_time_that_its_limit_gives() {
    let folder = tempfile::tempdir().expect("a folder");
    let limited = limited(folder.path());
    let [leapt, slow] = [&[][..], &["leaps"]].map(|without| {
        let wait = (40, "wait = \"15m\"");
        let experiment = experiment(folder.path(), (&limited, 4), wait, READ, without);
        let rows = rows::of(&experiment).expect("runs");
        rows[0].sync_percent_start.expect("it goes on")
    });
    assert!((leapt / slow - 1.0).abs() <= 0.01, "{leapt} and {slow} %");
    let limit = 900.0 * 40_000.0 * 1024.0 / 40e9 * 100.0;
    assert!((slow / limit - 1.0).abs() <= 0.03, "{slow} % of {limit}");
}

/// md looks back half a minute. Behind a job that has slowed it, a sync goes at full speed for a
/// while, which was taken for its pace: it ended in half the time that its limit gives.
#[test]
fn a_rebuild_that_a_job_has_slowed_is_held_back_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let limited = limited(folder.path());
    let load = "job = \"before\"\ntitle = \"a load\"\nclass = \"random\"\nfio = \"--rw=randread \
                --bs=4k --iodepth=8 --time_based --runtime=30 --direct=1\"\n\n[[step]]\n\
                wait = \"10m\"";
    let [leapt, slow] = [&[][..], &["leaps"]].map(|without| {
        let experiment = experiment(folder.path(), (&limited, 4), (40, load), READ, without);
        let rows = rows::of(&experiment).expect("runs");
        let after = rows.iter().find(|row| row.job == "after").expect("a row");
        after.sync_percent_start.expect("it goes on")
    });
    assert!((leapt / slow - 1.0).abs() <= 0.05, "{leapt} and {slow} %");
}

/// At an even pace of 400 KiB/s blocks of 128 KiB are a third of a second apart: a second has three
/// of them or four, and a leap by such a second was up to 60 % off.
#[test]
fn a_rebuild_at_a_slow_even_pace_is_as_far_as_simulated() {
    let folder = tempfile::tempdir().expect("a folder");
    let limited = folder.path().join("limited.toml");
    let whole = include_str!("../../../../data/subjects/gflash.toml");
    let text = whole.replace("maximum = \"119000k\"", "maximum = \"400k\"");
    std::fs::write(&limited, text).expect("a file");
    let limited = limited.to_string_lossy();
    let [leapt, slow] = [&[][..], &["leaps"]].map(|without| {
        let wait = (6, "wait = \"2h\"");
        let experiment = experiment(folder.path(), (&limited, 2), wait, READ, without);
        let rows = rows::of(&experiment).expect("runs");
        rows[0].sync_percent_start.expect("it goes on")
    });
    assert!((leapt / slow - 1.0).abs() <= 0.01, "{leapt} and {slow} %");
    let limit = 7200.0 * 400.0 * 1024.0 / 6e9 * 100.0;
    assert!((slow / limit - 1.0).abs() <= 0.03, "{slow} % of {limit}");
}

/// Ends the run as soon as it is told of a time within the wait.
#[derive(Default)]
struct Impatient {
    last: Progress,
}

/// The wait is the suite's third step.
const WAIT: usize = 2;

impl Observer for Impatient {
    fn progress(&mut self, progress: Progress) {
        self.last = progress;
    }
    fn record(&mut self, _: Records) {}
    fn cell(&mut self, _: CellResult) {}
    fn cancelled(&self) -> bool {
        self.last.step == WAIT && self.last.clock > Nanos::SECOND
    }
}

/// Simulated to its end the wait would take minutes.
#[test]
fn whoever_interrupts_a_wait_is_heard_in_it() {
    let folder = tempfile::tempdir().expect("a folder");
    for wait in ["wait = \"40s\"", "wait = \"sync-done\"\nat_most = \"1h\""] {
        let subject = ("md-raid6-clean", 4);
        let experiment = experiment(folder.path(), subject, (6, wait), READ, &["leaps"]);
        let mut impatient = Impatient::default();
        let finish = ModelBench::default().run(&experiment, &mut impatient);
        assert_eq!(finish.expect("runs"), Finish::Cancelled);
        let clock = impatient.last.clock;
        assert!(clock < Nanos::from_secs(5), "{clock}");
    }
}
