//! How long a rebuild takes on the model, against what the disk's rates alone allow.

use raidlab_bench_model::{ModelBench, presets};
use raidlab_lab::{Before, Choices, Finish, RunOptions, Sink, Suite, run_suite};
use raidlab_store::{CellResult, EventRecord, Measurement, Metric, Operation, Records};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::Path;
use std::sync::atomic::AtomicBool;

const SUITE: &str = r#"
schema = 1
name = "rebuild"
title = "How long a rebuild takes"
description = "A member is taken out and put back."
source = "this test"
disks = ["wd4000fyyz", "wd4000fyyz", "wd4000fyyz", "wd4000fyyz"]
subjects = [
    { subject = "md-raid1-clean", members = [0, 1] },
    "md-raid5-clean", "md-raid6-clean", "md-raid10-clean",
]

[[step]]
wait = "7s"

[[step]]
event = "remove"
member = 1

[[step]]
wait = "90s"

[[step]]
event = "insert"
member = 1
"#;

const TO_ITS_END: &str = r#"
[[step]]
wait = "sync-done"
at_most = "24h"
"#;

#[derive(Default)]
pub(crate) struct Kept {
    pub(crate) rows: Vec<Measurement>,
    events: Vec<EventRecord>,
}

impl Sink for Kept {
    type Error = Infallible;

    fn record(&mut self, _: usize, records: Records) -> Result<(), Infallible> {
        self.events.extend(records.events);
        Ok(())
    }

    fn cell(&mut self, _: usize, result: CellResult) -> Result<(), Infallible> {
        self.rows.extend(result.rows);
        Ok(())
    }
}

/// What a suite of these steps gives.
fn run(steps: &str) -> Kept {
    run_suite_without(&format!("{SUITE}{steps}"), &[])
}

/// What a suite gives without these parts of the model.
pub(crate) fn run_suite_without(text: &str, without: &[&str]) -> Kept {
    let suite = Suite::parse("rebuild.toml", text, Path::new("")).expect("a suite");
    let choices = Choices {
        fits: vec!["strict".to_owned()],
        seed: 1,
        without: without.iter().map(ToString::to_string).collect(),
        ..Choices::default()
    };
    let experiments = suite.experiments(&suite.subjects, &choices);
    let options = RunOptions {
        threads: 2,
        cancel: &AtomicBool::new(false),
        published: None,
        before: &Before::default(),
    };
    let mut kept = Kept::default();
    let end = run_suite(&ModelBench::default(), &experiments, options, &mut kept);
    let end = end.expect("it runs");
    assert!(end.failures.is_empty(), "{:?}", end.failures);
    assert_eq!(end.finish, Finish::Complete);
    kept
}

/// Seconds that a disk needs to be written from the first to the last byte, by the
/// rates that its preset has along it.
// 2^53 bytes are enough.
fn seconds_of_the_platters() -> f64 {
    const PIECES: u32 = 1000;
    let preset = presets::load("wd4000fyyz").expect("built in");
    let numbers = preset.parameters("strict").expect("there");
    let capacity = numbers.capacity.to_bytes().0 as f64;
    let ends = numbers.rate_curve.iter().skip(1);
    let parts = numbers.rate_curve.iter().zip(ends).map(|(from, to)| {
        let piece = (to.place - from.place) * capacity / f64::from(PIECES);
        let rate = |number: u32| {
            let along = (f64::from(number) + 0.5) / f64::from(PIECES);
            from.bytes_per_second + (to.bytes_per_second - from.bytes_per_second) * along
        };
        (0..PIECES).map(|number| piece / rate(number)).sum::<f64>()
    });
    parts.sum()
}

#[test]
fn a_rebuild_takes_what_the_disks_rates_allow() {
    let theory = seconds_of_the_platters();
    assert!((7.0..9.0).contains(&(theory / 3600.0)), "{theory} s");
    let kept = run(TO_ITS_END);
    let mut by_subject: BTreeMap<&str, Vec<&Measurement>> = BTreeMap::new();
    for row in &kept.rows {
        by_subject.entry(&row.subject).or_default().push(row);
    }
    assert_eq!(by_subject.len(), 4);
    for (subject, rows) in by_subject {
        let [degraded, recovery] = rows.as_slice() else {
            panic!("{subject}: {rows:?}");
        };
        assert_eq!(recovery.op, Operation::Recovery);
        let took = recovery.value();
        assert!(
            (took / theory - 1.0).abs() < 0.03,
            "{subject}: {took} and {theory} s"
        );
        // Sectors for md's own take a little of a member.
        let rate = recovery.value_of(Metric::BytesPerSecond);
        assert!(
            (rate * took / 4.0e12 - 1.0).abs() < 0.01,
            "{subject}: {rate} B/s"
        );
        assert!(!recovery.is_unfinished() && recovery.leaped_percent > 90.0);
        assert_eq!(recovery.runtime_band_ns, 0, "the model knows its moments");
        assert_eq!(degraded.op, Operation::Degraded);
        let waited = degraded.value() - took;
        assert!(
            (waited - 90.0).abs() < 0.5,
            "{subject}: {waited} s without a member"
        );
        assert_eq!(degraded.started_ns, 7_000_000_000);
    }
    let kinds: Vec<&str> = kept
        .events
        .iter()
        .map(|event| event.kind.as_str())
        .collect();
    assert_eq!(
        kinds,
        ["remove", "insert", "sync-start", "sync-end"].repeat(4)
    );
}

/// A processor works for each request of the samples, and the hours between them are leapt over.
#[test]
fn a_rebuild_is_leapt_over_also_where_computing_takes_time() {
    let text = format!("{SUITE}{TO_ITS_END}")
        .replace("disks = ", "processor = \"desktop-2015\"\ndisks = ")
        .replace("\"md-raid6-clean\", \"md-raid10-clean\",", "");
    let rows = run_suite_without(&text, &[]).rows;
    let theory = seconds_of_the_platters();
    let recoveries: Vec<_> = rows
        .iter()
        .filter(|row| row.op == Operation::Recovery)
        .collect();
    assert_eq!(recoveries.len(), 2);
    for recovery in recoveries {
        let took = recovery.value();
        let subject = &recovery.subject;
        assert!(
            (took / theory - 1.0).abs() < 0.03,
            "{subject}: {took} and {theory} s"
        );
        assert!(recovery.leaped_percent > 90.0, "{subject}");
    }
}

#[test]
fn one_that_the_run_does_not_see_the_end_of_has_a_row_all_the_same() {
    let kept = run("[[step]]\nwait = \"1h\"\n");
    assert_eq!(kept.rows.len(), 8);
    for row in kept.rows.iter().filter(|row| row.op == Operation::Recovery) {
        assert!(row.is_unfinished());
        let percent = row.sync_percent_end.expect("it is known how far it is");
        assert!(
            (10.0..20.0).contains(&percent),
            "{}: {percent} %",
            row.subject
        );
        assert!((row.value() - 3600.0).abs() < 1.0, "{} s", row.value());
        assert!(row.value_of(Metric::BytesPerSecond) > 140e6);
    }
}

/// A third of the chunks was written in no order while a member was away. A part of the time in which
/// they are copied is leapt over, and it is as long as where nothing is: most of it, but where a
/// stripe cache has to grow first.
#[test]
fn what_a_member_missed_is_copied_in_as_long_as_simulated() {
    const SUBJECTS: [&str; 2] = [
        r#"{ subject = "md-raid1-clean-bitmap", members = [0, 1], build = { bitmap_chunk = "16m" } }"#,
        r#"{ subject = "md-raid5-clean-bitmap", build = { bitmap_chunk = "16m" } }"#,
    ];
    let subjects = format!("subjects = [{}]\n", SUBJECTS.join(", "));
    let begin = SUITE.find("subjects = [").expect("a line");
    let end = SUITE.find("[[step]]").expect("a step");
    let steps = SUITE[end..].replace("insert", "re-add").replace(
        "wait = \"90s\"",
        "job = \"away\"\ntitle = \"away\"\nclass = \"away\"\nqueue = \"fio\"\nfio = \"--ioengine=libaio \
         --direct=1 --rw=randwrite --bs=4k --iodepth=32 --filesize=200g --number_ios=5000\"",
    );
    let text = format!("{}{subjects}{steps}{TO_ITS_END}", &SUITE[..begin]);
    let [leapt, slow] = [&[][..], &["leaps"]].map(|without| {
        let rows = run_suite_without(&text, without).rows;
        let recoveries = rows.into_iter().filter(|row| row.op == Operation::Recovery);
        recoveries.collect::<Vec<_>>()
    });
    assert_eq!(slow.len(), SUBJECTS.len());
    for (leapt, slow) in leapt.iter().zip(&slow) {
        assert_eq!(leapt.subject, slow.subject);
        assert!(leapt.leaped_percent > 20.0, "{leapt:?}");
        let error = leapt.value() / slow.value() - 1.0;
        assert!(error.abs() < 0.01, "{}: {error}", leapt.subject);
    }
}
