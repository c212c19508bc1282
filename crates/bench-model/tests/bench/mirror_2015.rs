//! The promise of the documentation: the comparison of 2015, predicted.
//!
//! Suite `mirror-2015` on the strict parameter set, seed 2, against the issued
//! requests and run times of the original logs.

use crate::rows;
use raidlab_bench_model::{Ablation, presets};
use raidlab_lab::{Choices, Published, Subject, Suite};
use raidlab_store::{Measurement, Operation, published_error_percent};
use std::path::Path;
use std::sync::OnceLock;

fn run(suite: &Suite, subject: &str, without: &[&str]) -> Vec<Measurement> {
    let subject: Subject = suite.subject(subject).expect("a built-in subject");
    let choices = Choices {
        fits: vec!["strict".to_owned()],
        seed: 2,
        without: without.iter().map(ToString::to_string).collect(),
        ..Choices::default()
    };
    let experiments = suite.experiments(&[subject], &choices);
    assert_eq!(experiments.len(), 1);
    rows::of(&experiments[0]).expect("runs")
}

/// The block mirrors; ZFS has promises of its own.
const SUBJECTS: [&str; 3] = ["md", "gmirror", "gflash"];

/// The suite on one of [`SUBJECTS`] or on ZFS, with the published figures; run
/// once for all tests.
fn measured(subject: &str) -> &'static [Measurement] {
    static RUNS: OnceLock<Vec<Vec<Measurement>>> = OnceLock::new();
    let runs = RUNS.get_or_init(|| {
        let suite = Suite::load("mirror-2015").expect("built in");
        let published = Published::load("mirror-2015").expect("built in");
        let attached = |subject| {
            let mut rows = run(&suite, subject, &[]);
            for row in &mut rows {
                published.attach(row);
                let first = row.published.first().expect("every cell has a figure");
                assert_eq!(first.source, "log", "{subject}, job {}", row.job);
            }
            rows
        };
        SUBJECTS.into_iter().chain(["zfs"]).map(attached).collect()
    });
    let index = SUBJECTS.iter().position(|&name| name == subject);
    &runs[index.unwrap_or(SUBJECTS.len())]
}

/// The rows of the jobs from `first` to `last`.
fn jobs(subject: &str, first: u32, last: u32) -> Vec<&'static Measurement> {
    let rows: Vec<_> = measured(subject)
        .iter()
        .filter(|row| (first..=last).contains(&row.job.parse().expect("jobs are numbers")))
        .collect();
    assert!(rows.len() > (last - first) as usize, "a row for each job");
    rows
}

fn error(row: &Measurement) -> f64 {
    published_error_percent(row).expect("every cell has a figure")
}

/// All errors of the jobs are within `percent` of the log.
#[track_caller]
fn assert_within(subject: &str, first: u32, last: u32, percent: f64) {
    for row in jobs(subject, first, last) {
        let error = error(row);
        assert!(
            error.abs() <= percent,
            "{subject}, job {} {:?}: {error:+.2} %, more than {percent} %",
            row.job,
            row.op
        );
    }
}

/// Iops of a job's reads.
fn iops(subject: &str, job: u32) -> f64 {
    let rows = jobs(subject, job, job);
    let row = rows.iter().find(|row| row.op == Operation::Read);
    row.expect("a job that reads").iops
}

/// Calibrated: the rate curve was taken from these very jobs, so that they
/// must fit: one sequential stream to each third of the disk, one from it.
#[test]
fn one_sequential_stream_fits() {
    for subject in SUBJECTS {
        assert_within(subject, 2, 4, 2.1);
        assert_within(subject, 17, 17, 2.1);
    }
}

/// Predicted from single-disk writes over 8 GiB.
#[test]
fn random_writes_are_predicted() {
    for subject in SUBJECTS {
        assert_within(subject, 1, 1, 4.0);
        assert_within(subject, 5, 5, 4.0);
    }
}

/// Predicted from single-disk reads, job 6 on md aside. The policy of gflash,
/// which is closed, was chosen by looking at its results and fits less well.
#[test]
fn random_reads_are_predicted_at_every_queue_depth() {
    for (subject, mean_limit, worst) in [
        ("md", 4.0, 8.0),
        ("gmirror", 4.0, 8.0),
        ("gflash", 5.6, 9.0),
    ] {
        assert_within(subject, 6, 15, worst);
        let errors: Vec<f64> = jobs(subject, 6, 15).into_iter().map(error).collect();
        assert_eq!(errors.len(), 10);
        let mean = errors.iter().map(|error| error.abs()).sum::<f64>() / 10.0;
        assert!(mean <= mean_limit, "{subject}: {mean:.2} % on average");
    }
}

/// The choice of a subject is safer than any figure: the disk's error is
/// common to all. With one request nothing but the policy counts; with two,
/// md and gflash are level at twice a disk.
#[test]
fn the_order_of_the_implementations_is_right_at_every_queue_depth() {
    const SLACK: f64 = 0.98;
    for job in 6..=15 {
        let [md, gmirror, gflash] = SUBJECTS.map(|subject| iops(subject, job));
        assert!(gflash > md * SLACK, "job {job}: {gflash:.1} and {md:.1}");
        assert!(md > gmirror * SLACK, "job {job}: {md:.1} and {gmirror:.1}");
    }
}

/// Two reads to one write at depth 32: predicted from the same load on one
/// disk over 8 GiB.
#[test]
fn the_mixed_load_is_predicted() {
    for subject in SUBJECTS {
        assert_eq!(jobs(subject, 16, 16).len(), 2, "reads and writes");
        assert_within(subject, 16, 16, 9.0);
    }
}

/// Random reads at depth 32, hour by hour of the rebuild.
#[test]
fn reads_during_the_rebuild_are_predicted() {
    assert_within("md", 21, 29, 5.0);
    assert_within("gmirror", 21, 29, 5.0);
    assert_within("gflash", 21, 29, 9.0);
}

/// The shapes: gmirror reads from one disk to the end, whatever is rebuilt;
/// md reads what is rebuilt, and gains most where each disk has its half.
#[test]
fn the_rebuild_is_flat_on_gmirror_and_has_a_hump_on_md() {
    let flat: Vec<f64> = (21..=29).map(|job| iops("gmirror", job)).collect();
    let [least, most] =
        [f64::min, f64::max].map(|choose| flat.iter().copied().reduce(choose).expect("nine jobs"));
    assert!(most / least < 1.08, "{least:.1} to {most:.1}");
    let [start, hump, end] = [22, 25, 29].map(|job| iops("md", job));
    assert!(hump > end && end > start, "{start:.1} {hump:.1} {end:.1}");
}

/// md's collapse on a near and a far stream: predicted untuned, but locked to
/// whole revolutions, so that a millisecond of seek is worth a quarter.
#[test]
fn the_collapse_of_md_is_predicted() {
    assert_within("md", 18, 19, 25.0);
    // A twentieth of one stream, in bytes.
    let rate = |job| jobs("md", job, job)[0].bytes_per_second;
    assert!(rate(18) * 15.0 < rate(17), "{} of {}", rate(18), rate(17));
}

/// Jobs 19 and 20 are the two cells that the stream policy was fitted on.
#[test]
fn streams_fit_on_gflash() {
    assert_within("gflash", 18, 20, 10.0);
}

/// The model has no elevator, because nothing ever waits for one.
#[test]
fn no_drive_queue_overflows_under_random_reads() {
    for subject in SUBJECTS {
        for row in jobs(subject, 6, 15) {
            assert_eq!(row.tag_overflows, Some(0), "{subject}, job {}", row.job);
        }
    }
}

/// What a leap skips it adds in full.
#[test]
fn without_leaps_is_the_same_within_two_thousandths() {
    const SUITE: &str = r#"
schema = 1
name = "sequential"
title = "Sequential"
description = "A write and a read, long enough to be leaped over."
source = "a test"
disks = ["wd4000fyyz", "wd4000fyyz"]
subjects = ["md"]

[[step]]
job = "write"
title = "sequential write"
class = "sequential-write"
fio = "--rw=write --bs=128k --size=16g --offset=1t --direct=1"

[[step]]
job = "read"
title = "sequential read"
class = "sequential-read"
fio = "--rw=read --bs=128k --size=12g --offset=2t --direct=1"
"#;
    let suite = Suite::parse("sequential.toml", SUITE, Path::new("")).expect("valid");
    for subject in SUBJECTS {
        let [leaped, slow] = [&[][..], &["leaps"]].map(|without| run(&suite, subject, without));
        assert_eq!((leaped.len(), slow.len()), (2, 2));
        for (leaped, slow) in leaped.iter().zip(&slow) {
            assert!(leaped.leaped_percent > 50.0 && slow.leaped_percent == 0.0);
            assert_eq!(leaped.total_bytes, slow.total_bytes);
            let ratio = leaped.iops / slow.iops;
            assert!((0.998..=1.002).contains(&ratio), "{subject}: {ratio}");
        }
    }
}

/// Every ablation that is listed can be asked for.
#[test]
fn every_ablation_has_a_name_that_reads_back() {
    for (name, what) in Ablation::all() {
        assert!(
            name.parse::<Ablation>().is_ok() && !what.is_empty(),
            "{name}"
        );
    }
    let error = "elevator".parse::<Ablation>().expect_err("there is none");
    assert!(error.to_string().contains("leaps"), "{error}");
}

/// The sets that the promise is about are in the preset, the default first.
#[test]
fn the_preset_has_both_sets() {
    let preset = presets::load("wd4000fyyz").expect("built in");
    assert_eq!(preset.set_names(), ["strict", "joint"]);
}

/// Iops of a job's reads or writes, whichever it has first.
fn rate(subject: &str, job: u32) -> f64 {
    jobs(subject, job, job)[0].iops
}

/// ZFS: random reads within 30 % (25 % but for job 9); random writes are
/// sequential on an empty pool and read before they write on a full one.
#[test]
fn zfs_keeps_its_random_rates() {
    assert_within("zfs", 6, 8, 25.0);
    assert_within("zfs", 9, 9, 30.0);
    assert_within("zfs", 10, 15, 25.0);
    assert!(rate("zfs", 1) > 20.0 * rate("zfs", 5));
}

/// ZFS loses about a quarter of a block mirror's sequential rate: in the logs
/// 23.6, 26.2 and 26.0 % in jobs 2 to 4 and 25.3 % in job 17, within 6 points.
#[test]
fn zfs_loses_a_quarter_of_a_stream() {
    for (job, measured) in [(2, 23.6), (3, 26.2), (4, 26.0), (17, 25.3)] {
        let loss = (1.0 - rate("zfs", job) / rate("md", job)) * 100.0;
        assert!((loss - measured).abs() < 6.0, "job {job}: {loss:.1} %");
    }
}

/// Under the old resilver reads fall once and stay low: the new member serves
/// none before the end.
#[test]
fn zfs_reads_fall_under_a_resilver() {
    let first = iops("zfs", 21);
    for job in 22..=29 {
        assert!(iops("zfs", job) < first * 0.8, "job {job}");
        assert!(iops("zfs", job) < iops("zfs", 22) * 1.02, "job {job}");
    }
    assert_within("zfs", 21, 29, 25.0);
}
