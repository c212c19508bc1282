//! What looks at an array give, sequence by sequence.

use super::{ArrayLook, Background, SyncLook, kept};
use crate::experiment::{Choices, Experiment};
use crate::suite::Suite;
use raidlab_store::{Measurement, Metric, Operation, Role};
use raidlab_units::{Bytes, Nanos};
use std::path::Path;

const MEMBER: Bytes = Bytes(100_000_000);

fn experiment() -> Experiment {
    let suite = Suite::load("md-levels").expect("built in");
    let mut all = suite.experiments(&suite.subjects, &Choices::default());
    all.swap_remove(1)
}

fn look(seconds: f64, letters: &str, sync: Option<(Operation, f64)>) -> ArrayLook {
    ArrayLook {
        at: Nanos::from_secs_f64(seconds),
        is_exact: true,
        letters: letters.to_owned(),
        sync: sync.map(|(op, percent)| SyncLook {
            op,
            percent: Some(percent),
            member: Some(MEMBER),
        }),
        leaped: Nanos::ZERO,
    }
}

fn rows_of(looks: impl IntoIterator<Item = ArrayLook>) -> Vec<Measurement> {
    let mut background = Background::default();
    looks.into_iter().for_each(|look| background.look(look));
    background.rows(&experiment(), "model")
}

/// Row by row: operation and number, begin, time and band in seconds, megabytes of a
/// member, percent at the end, `>` where it went on.
fn told(looks: impl IntoIterator<Item = ArrayLook>) -> Vec<String> {
    let words = |row: &Measurement| {
        let [from, took, band] =
            [row.started_ns, row.runtime_ns, row.runtime_band_ns].map(|time| time as f64 / 1e9);
        let open = if row.is_unfinished() { ">" } else { "" };
        let percent = row
            .sync_percent_end
            .map(|percent| format!(" {percent:.0} %"));
        format!(
            "{}{} at {from} s: {open}{took} s ± {band} s, {} MB{}, {} to {}",
            row.op,
            row.part,
            row.total_bytes / 1_000_000,
            percent.unwrap_or_default(),
            row.array_state_start,
            row.array_state_end,
        )
    };
    rows_of(looks).iter().map(words).collect()
}

use Operation::{Check, Recovery, Resync};

/// A bitmap lets most of a member be passed over: the rate was that of the places passed, 19 GB a
/// second of a disk with 0.17.
#[test]
fn a_recovery_by_a_bitmap_has_its_time_and_no_rate() {
    let recovery = |kind: &str, subject: &str| {
        let text = format!(
            "schema = 1\nname = \"x\"\ntitle = \"x\"\ndescription = \"\"\nsource = \"this test\"\n\
             disks = [\"wd4000fyyz\", \"wd4000fyyz\"]\nsubjects = [\"{subject}\"]\n\
             [[step]]\nevent = \"remove\"\nmember = 1\n[[step]]\nevent = \"{kind}\"\nmember = 1\n\
             [[step]]\njob = \"1\"\ntitle = \"x\"\nclass = \"x\"\nfio = \"--rw=read --size=1m\"\n"
        );
        let suite = Suite::parse("x.toml", &text, Path::new("")).expect("a suite");
        let experiment = suite
            .experiments(&suite.subjects, &Choices::default())
            .remove(0);
        let mut background = Background::default();
        background.look(look(10.0, "[U_]", Some((Recovery, 0.0))));
        background.look(look(20.0, "[UU]", None));
        let rows = background.rows(&experiment, "model");
        let row = rows
            .into_iter()
            .find(|row| row.op == Recovery)
            .expect("a row");
        (row.runtime_ns / 1_000_000_000, row.total_bytes)
    };
    assert_eq!(recovery("re-add", "md-raid1-clean-bitmap"), (10, 0));
    assert_eq!(recovery("insert", "md-raid1-clean-bitmap"), (10, MEMBER.0));
    assert_eq!(recovery("re-add", "gmirror"), (10, MEMBER.0));
}

/// A resilver whose total was counted before the last blocks were written counts to 100 percent and
/// goes on: its row looked like that of one that had ended.
#[test]
fn what_goes_on_at_100_percent_is_unfinished() {
    let rows = rows_of([
        look(0.0, "[U_]", Some((Recovery, 0.0))),
        look(30.0, "[U_]", Some((Recovery, 100.0))),
    ]);
    let recovery = rows.iter().find(|row| row.op == Recovery).expect("one");
    assert!(recovery.is_unfinished(), "{:?}", recovery.sync_percent_end);
}

#[test]
fn a_rebuild_has_its_time_its_rate_and_the_time_degraded() {
    let looks = [
        look(0.0, "[UU]", None),
        look(10.0, "[U_]", None),
        look(20.0, "[U_]", Some((Recovery, 0.0))),
        look(40.0, "[U_]", Some((Recovery, 40.0))),
        look(70.0, "[UU]", None),
        look(90.0, "[UU]", None),
    ];
    insta::assert_snapshot!(told(looks.clone()).join("\n"), @r"
    degraded at 10 s: 60 s ± 0 s, 0 MB, [U_] to [UU]
    recovery at 20 s: 50 s ± 0 s, 100 MB 100 %, [U_] to [UU]
    ");
    let rows = rows_of(looks);
    let recovery = rows.iter().find(|row| row.op == Recovery).expect("one");
    assert_eq!(recovery.value_of(Metric::BytesPerSecond), 2_000_000.0);
    assert_eq!(
        (recovery.metric(), recovery.value()),
        (Metric::Seconds, 50.0)
    );
    assert_eq!(recovery.sequence, experiment().background_sequence);
    assert_eq!(recovery.role, Role::Measured, "no fit was chosen here");
    assert!(!recovery.is_unfinished());
}

#[test]
fn between_looks_a_second_apart_the_time_has_a_band() {
    let every_second = |at: f64, letters, sync| ArrayLook {
        is_exact: false,
        ..look(at, letters, sync)
    };
    insta::assert_snapshot!(told([
        every_second(1.0, "[UU]", None),
        every_second(2.0, "[UU]", None),
        every_second(3.0, "[U_]", None),
        every_second(4.0, "[U_]", Some((Recovery, 7.0))),
        every_second(5.0, "[U_]", Some((Recovery, 50.0))),
        // Nobody looked for a while.
        every_second(8.0, "[UU]", None),
    ]).join("\n"), @r"
    degraded at 2.5 s: 4 s ± 2 s, 0 MB, [U_] to [UU]
    recovery at 3.5 s: 3 s ± 2 s, 100 MB 100 %, [U_] to [UU]
    ");
}

#[test]
fn a_rebuild_that_nobody_saw_took_less_than_the_time_between_two_looks() {
    let glance = |at: f64, letters| ArrayLook {
        is_exact: false,
        ..look(at, letters, None)
    };
    insta::assert_snapshot!(
        told([glance(1.0, "[UU]"), glance(2.0, "[U_]"), glance(3.0, "[UU]")]).join("\n"), @r"
    degraded at 1.5 s: 1 s ± 1 s, 0 MB, [U_] to [UU]
    recovery at 2.5 s: 0.5 s ± 0.5 s, 0 MB 100 %, [UU] to [UU]
    ");
}

#[test]
fn what_goes_on_at_the_end_took_at_least_so_long() {
    insta::assert_snapshot!(told([
        look(0.0, "[UUU]", None),
        look(5.0, "[U_U]", None),
        look(6.0, "[U_U]", Some((Recovery, 0.0))),
        look(30.0, "[U_U]", Some((Recovery, 12.0))),
    ]).join("\n"), @r"
    degraded at 5 s: >25 s ± 0 s, 0 MB, [U_U] to [U_U]
    recovery at 6 s: >24 s ± 0 s, 12 MB 12 %, [U_U] to [U_U]
    ");
}

#[test]
fn what_stops_short_and_goes_on_where_it_was_is_one() {
    // A RAID 6: the second member goes in the middle of the first one's recovery.
    insta::assert_snapshot!(told([
        look(0.0, "[UUUU]", None),
        look(1.0, "[UUU_]", None),
        look(2.0, "[UUU_]", Some((Recovery, 0.0))),
        look(12.0, "[UUU_]", Some((Recovery, 40.0))),
        look(13.0, "[UU__]", None),
        look(15.0, "[UU__]", Some((Recovery, 40.0))),
        look(30.0, "[UU_U]", None),
        look(40.0, "[UU_U]", Some((Recovery, 0.0))),
        look(60.0, "[UUUU]", None),
    ]).join("\n"), @r"
    degraded at 1 s: 59 s ± 0 s, 0 MB, [UUU_] to [UUUU]
    recovery at 2 s: 28 s ± 0 s, 100 MB 100 %, [UUU_] to [UU_U]
    recovery2 at 40 s: 20 s ± 0 s, 100 MB 100 %, [UU_U] to [UUUU]
    ");
}

#[test]
fn one_that_begins_anew_is_another() {
    insta::assert_snapshot!(told([
        look(1.0, "[U_]", Some((Recovery, 0.0))),
        look(9.0, "[U_]", Some((Recovery, 40.0))),
        look(10.0, "[U_]", None),
        look(20.0, "[U_]", Some((Recovery, 0.0))),
        look(45.0, "[UU]", None),
    ]).join("\n"), @r"
    recovery at 1 s: >9 s ± 0 s, 40 MB 40 %, [U_] to [U_]
    degraded at 1 s: 44 s ± 0 s, 0 MB, [U_] to [UU]
    recovery2 at 20 s: 25 s ± 0 s, 100 MB 100 %, [U_] to [UU]
    ");
}

#[test]
fn members_filled_one_after_the_other_have_a_row_each() {
    // The second recovery begins within the second in which the first one ends.
    let glance = |at: f64, letters, percent: f64| ArrayLook {
        is_exact: false,
        ..look(at, letters, Some((Recovery, percent)))
    };
    insta::assert_snapshot!(told([
        glance(1.0, "[U__]", 2.0),
        glance(30.0, "[U__]", 98.0),
        glance(31.0, "[UU_]", 1.0),
        glance(60.0, "[UU_]", 97.0),
        ArrayLook { is_exact: false, ..look(61.0, "[UUU]", None) },
    ]).join("\n"), @r"
    recovery at 0.5 s: 30 s ± 1 s, 100 MB 100 %, [U__] to [UU_]
    degraded at 0.5 s: 60 s ± 1 s, 0 MB, [U__] to [UUU]
    recovery2 at 30.5 s: 30 s ± 1 s, 100 MB 100 %, [UU_] to [UUU]
    ");
}

/// md makes a RAID 5 by filling its last member. That is not to be compared with the rebuild of
/// another array.
#[test]
fn what_makes_a_raid_5_is_no_rebuild() {
    let text = "schema = 1\nname = \"x\"\nbegin = \"as-created\"\n\
                disks = [\"wd4000fyyz\", \"wd4000fyyz\", \"wd4000fyyz\"]\n\
                subjects = [\"md-raid5\"]\n\
                [[step]]\nwait = \"sync-done\"\nat_most = \"9h\"\n\
                [[step]]\nevent = \"remove\"\nmember = 1\n\
                [[step]]\nevent = \"insert\"\nmember = 1\n\
                [[step]]\njob = \"1\"\nfio = \"--rw=read --size=1m\"\n";
    let suite = Suite::parse("x.toml", text, Path::new("")).expect("a suite");
    let experiment = suite
        .experiments(&suite.subjects, &Choices::default())
        .remove(0);
    let mut background = Background::default();
    for one in [
        look(0.0, "[UU_]", Some((Recovery, 0.0))),
        look(60.0, "[UUU]", None),
        look(70.0, "[U_U]", None),
        look(80.0, "[U_U]", Some((Recovery, 0.0))),
        look(200.0, "[UUU]", None),
    ] {
        background.look(one);
    }
    let rows = background.rows(&experiment, "model");
    let told = rows.iter().map(|row| {
        let seconds = row.runtime_ns / 1_000_000_000;
        format!("{} {}: {seconds} s", row.op, row.part)
    });
    assert_eq!(
        told.collect::<Vec<_>>(),
        [
            "recovery first: 60 s",
            "degraded first: 60 s",
            "degraded : 130 s",
            "recovery : 120 s",
        ]
    );
}

#[test]
fn a_check_after_a_recovery_is_none() {
    insta::assert_snapshot!(told([
        look(0.0, "[U_]", Some((Recovery, 0.0))),
        look(10.0, "[UU]", Some((Check, 0.0))),
        look(30.0, "[UU]", None),
    ]).join("\n"), @r"
    recovery at 0 s: 10 s ± 0 s, 100 MB 100 %, [U_] to [UU]
    degraded at 0 s: 10 s ± 0 s, 0 MB, [U_] to [UU]
    check at 10 s: 20 s ± 0 s, 100 MB 100 %, [UU] to [UU]
    ");
}

#[test]
fn a_first_resync_that_loses_a_member_did_not_end() {
    insta::assert_snapshot!(told([
        look(0.0, "[UUU]", Some((Resync, 0.0))),
        look(8.0, "[UUU]", Some((Resync, 25.0))),
        look(9.0, "[UU_]", None),
        look(20.0, "[UU_]", None),
    ]).join("\n"), @r"
    resync at 0 s: >9 s ± 0 s, 25 MB 25 %, [UUU] to [UU_]
    degraded at 9 s: >11 s ± 0 s, 0 MB, [UU_] to [UU_]
    ");
}

/// What is under way when the member is lost comes to its end first.
#[test]
fn a_resync_that_ends_right_after_a_loss_has_stopped_short() {
    let looks = [
        look(0.0, "[UUUU]", Some((Resync, 0.0))),
        look(3.0, "[U_UU]", Some((Resync, 2.0))),
        look(3.02, "[U_UU]", None),
        look(3.04, "[U_UU]", Some((Resync, 0.0))),
        look(53.0, "[U_UU]", None),
    ];
    insta::assert_snapshot!(told(looks).join("\n"), @r"
    resync at 0 s: >3.02 s ± 0 s, 2 MB 2 %, [UUUU] to [U_UU]
    degraded at 3 s: >50 s ± 0 s, 0 MB, [U_UU] to [U_UU]
    resync2 at 3.04 s: 49.96 s ± 0 s, 100 MB 100 %, [U_UU] to [U_UU]
    ");
}

#[test]
fn degraded_from_the_beginning_and_never_whole_again() {
    insta::assert_snapshot!(
        told([look(0.0, "[_U]", None), look(60.0, "[_U]", None)]).join("\n"), @"degraded at 0 s: >60 s ± 0 s, 0 MB, [_U] to [_U]");
    assert!(told([look(0.0, "[UU]", None), look(60.0, "[UU]", None)]).is_empty());
    assert!(told([]).is_empty());
}

#[test]
fn a_look_that_comes_late_says_nothing() {
    let looks = [
        look(5.0, "[UU]", None),
        look(4.0, "[U_]", None),
        look(6.0, "[UU]", None),
    ];
    assert!(rows_of(looks).is_empty());
}

#[test]
fn the_time_line_has_begin_and_end() {
    let mut background = Background::default();
    let looks = [
        look(0.0, "[U_]", Some((Recovery, 0.0))),
        look(2.0, "[U_]", Some((Recovery, 10.0))),
        look(3.0, "[U_]", None),
        look(4.0, "[U_]", Some((Recovery, 10.0))),
        look(9.0, "[UU]", None),
    ];
    looks.into_iter().for_each(|look| background.look(look));
    let events = background.drain_events(&experiment());
    let words: Vec<String> = events
        .iter()
        .map(|event| {
            format!(
                "{} {}: {}",
                event.at_ns / 1_000_000_000,
                event.kind,
                event.text
            )
        })
        .collect();
    assert_eq!(
        words,
        [
            "0 sync-start: recovery began",
            "3 sync-end: recovery stopped short",
            "4 sync-start: recovery goes on",
            "9 sync-end: recovery ended",
        ]
    );
    assert!(background.drain_events(&experiment()).is_empty());
}

const LIKES: &str = r#"
schema = 1
name = "likes"
title = "The same with and without a rebuild"
description = "Four jobs."
source = "our own"
disks = ["wd4000fyyz", "wd4000fyyz"]
subjects = ["md"]

[[step]]
job = "whole"
title = "reads"
class = "random-read"
fio = "--rw=randread --bs=4k --iodepth=4 --time_based --runtime=10 --randseed=1"

[[step]]
job = "deep"
title = "reads"
class = "random-read"
fio = "--rw=randread --bs=4k --iodepth=32 --time_based --runtime=10 --randseed=1"

[[step]]
event = "remove"
member = 1

[[step]]
job = "degraded"
title = "reads"
class = "random-read"
fio = "--rw=randread --bs=4k --iodepth=4 --time_based --runtime=10 --randseed=2"

[[step]]
event = "insert"
member = 1

[[step]]
job = "rebuilding"
title = "reads"
class = "random-read"
fio = "--rw=randread --bs=4k --iodepth=4 --time_based --runtime=60 --randseed=3"
"#;

#[test]
fn what_a_job_keeps_is_told_against_its_like() {
    let suite = Suite::parse("likes.toml", LIKES, Path::new("")).expect("a suite");
    let mut all = suite.experiments(&suite.subjects, &Choices::default());
    let experiment = all.swap_remove(0);
    let states = [
        (1000.0, "[UU]", None),
        (4000.0, "[UU]", None),
        (600.0, "[U_]", None),
        (250.0, "[U_]", Some(3.0)),
    ];
    let mut rows: Vec<Measurement> = experiment
        .jobs()
        .zip(states)
        .map(|(job, (iops, letters, percent))| {
            let mut row = job.row(&experiment, "model", Operation::Read);
            (row.iops, row.total_ios) = (iops, 1);
            row.bytes_per_second = iops * 4096.0;
            row.array_state_start = letters.to_owned();
            [row.sync_percent_start, row.sync_percent_end] = [percent; 2];
            row
        })
        .collect();
    let words = |rows: &[Measurement]| {
        let found = kept(&experiment, "model", rows);
        let words = found.iter().map(|row| {
            format!(
                "{} {}: {} % ({})",
                row.op,
                row.part,
                row.value(),
                row.job_title
            )
        });
        words.collect::<Vec<_>>()
    };
    // Against the whole array, not the deeper queue and not the degraded one.
    assert_eq!(
        words(&rows),
        ["kept rebuilding read: 25 % (job rebuilding, against job whole without a sync)"]
    );
    // What nobody timed is not all of the rate lost.
    let timed = rows[3].iops;
    (rows[3].iops, rows[3].bytes_per_second) = (0.0, 0.0);
    assert_eq!(words(&rows), [""; 0]);
    (rows[3].iops, rows[3].bytes_per_second) = (timed, timed * 4096.0);
    rows.remove(0);
    assert_eq!(
        words(&rows),
        [
            "kept rebuilding read: 41.666666666666664 % (job rebuilding, against job degraded \
          without a sync)"
        ]
    );
    // A job beside a check of the whole array is not held against a degraded array.
    let degraded = std::mem::replace(&mut rows[2].array_state_start, "[UU]".to_owned());
    assert_eq!(words(&rows), [""; 0]);
    rows[2].array_state_start = degraded;
    // What ran beside the sync's end only in part says nothing of it.
    rows[2].sync_percent_end = None;
    assert!(words(&rows).is_empty());
}
