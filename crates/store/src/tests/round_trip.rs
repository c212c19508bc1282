//! What goes in comes out, whatever it is.

use super::{cell, measurement, run};
use crate::{
    AccuracyNote, DiskBand, LATEST, Latency, Measurement, MemberUse, Operation, PublishedFigure,
    Records, Role, Setting, Store, StoreError,
};
use proptest::prelude::*;

const COUNTER_MAX: u64 = i64::MAX as u64;

fn finite() -> impl Strategy<Value = f64> {
    any::<f64>().prop_filter("finite", |value| value.is_finite())
}

prop_compose! {
    fn latencies()(
        mean_ns in finite(),
        percentiles in prop::array::uniform5(0..=COUNTER_MAX),
        histogram in prop::collection::vec(any::<u8>(), 0..64),
    ) -> Latency {
        let [p50_ns, p90_ns, p99_ns, p999_ns, max_ns] = percentiles;
        Latency { mean_ns, p50_ns, p90_ns, p99_ns, p999_ns, max_ns, histogram }
    }
}

prop_compose! {
    fn members()(
        member in any::<String>(),
        model in any::<String>(),
        reads in prop::array::uniform3(0..=COUNTER_MAX),
        writes in prop::array::uniform3(0..=COUNTER_MAX),
        busy_ns in 0..=COUNTER_MAX,
        sync_bytes in prop::option::of(0..=COUNTER_MAX),
    ) -> MemberUse {
        let [read_ios, read_bytes, read_ticks_ns] = reads;
        let [write_ios, write_bytes, write_ticks_ns] = writes;
        MemberUse {
            member, model, read_ios, read_bytes, read_ticks_ns, write_ios, write_bytes,
            write_ticks_ns, busy_ns, sync_bytes,
        }
    }
}

prop_compose! {
    fn figures()(
        texts in prop::array::uniform3(any::<String>()),
        iops in finite(),
        bytes_per_second in prop::option::of(finite()),
        sync_percent in prop::option::of(finite()),
    ) -> PublishedFigure {
        let [source, reliability, note] = texts;
        PublishedFigure { source, iops, bytes_per_second, reliability, sync_percent, note }
    }
}

prop_compose! {
    pub(super) fn measurements(sequence: u32)(
        texts in prop::array::uniform9(any::<String>()),
        op in prop::sample::select(Operation::ALL.to_vec()),
        role in prop::sample::select(vec![Role::Measured, Role::Predicted, Role::Fitted]),
        counters in prop::array::uniform5(0..=COUNTER_MAX),
        depths in any::<(u32, u32)>(),
        rates in prop::array::uniform3(finite()),
        sync in (prop::option::of(finite()), prop::option::of(finite())),
        latency in latencies(),
        members in prop::collection::vec(members(), 0..4),
        published in prop::collection::vec(figures(), 0..3),
    ) -> Measurement {
        let [bench, suite, subject, fit, job, job_title, class, start, end] = texts;
        Measurement {
            bench, suite, host: job.clone(), subject, filesystem: start.clone(), fit, sequence,
            repetition: depths.1, tool: end.clone(), part: class.clone(), started_ns: counters[4],
            cpu_percent: sync.0, job, job_title, class, op,
            block_size_bytes: counters[0],
            queue_depth: depths.0,
            streams: depths.1,
            total_ios: counters[1],
            total_bytes: counters[2],
            runtime_ns: counters[3],
            runtime_band_ns: counters[2],
            kept_percent: sync.1,
            iops: rates[0],
            bytes_per_second: rates[1],
            latency,
            array_state_start: start,
            array_state_end: end,
            sync_percent_start: sync.0,
            sync_percent_end: sync.1,
            tag_overflows: (counters[4] % 3 > 0).then_some(counters[4]),
            leaped_percent: rates[2],
            role,
            disk_band: sync.1.map(|low| DiskBand { low, high: rates[0], ratio: rates[1] }),
            members,
            published,
        }
    }
}

proptest! {
    #[test]
    fn a_measurement_comes_out_as_it_went_in(
        first in measurements(0),
        second in measurements(1),
    ) {
        let mut store = Store::open_in_memory().unwrap();
        let id = store.begin_run(&run("a")).unwrap();
        store.add_cell(id, &cell(second.clone())).unwrap();
        store.add_cell(id, &cell(first.clone())).unwrap();
        prop_assert_eq!(store.measurements(id).unwrap(), vec![first, second]);
    }
}

#[test]
fn a_run_comes_out_with_settings_and_notes() {
    let mut store = Store::open_in_memory().unwrap();
    let settings = vec![
        Setting {
            scope: "subject md".to_owned(),
            name: "sync_speed_min".to_owned(),
            value: "1000 KiB/s".to_owned(),
            source: "Linux 3.16 default".to_owned(),
        },
        Setting {
            scope: "host".to_owned(),
            name: "turnaround".to_owned(),
            value: "59 us".to_owned(),
            source: String::new(),
        },
    ];
    let notes = vec![AccuracyNote {
        class: "random-read".to_owned(),
        title: "Random reads".to_owned(),
        statement: "fitted on one disk".to_owned(),
        declared_percent: Some(8.0),
        subjects: vec!["md".to_owned(), "a \"quoted\" one".to_owned()],
        jobs: Vec::new(),
    }];
    let id = store.begin_run(&run("a")).unwrap();
    let records = Records {
        settings: settings.clone(),
        ..Records::default()
    };
    store.add_records(id, &records).unwrap();
    store.add_notes(id, &notes).unwrap();
    store.finish_run(id, "2026-11-21T02:11:00Z").unwrap();

    assert_eq!(store.settings(id).unwrap(), settings);
    assert_eq!(store.notes(id).unwrap(), notes);
    let summary = store.run_by_name("a").unwrap();
    assert_eq!(summary.run.seed, u64::MAX);
    assert_eq!(
        summary.run.finished.as_deref(),
        Some("2026-11-21T02:11:00Z")
    );
}

#[test]
fn runs_are_found_by_name_and_the_latest_first() {
    let mut store = Store::open_in_memory().unwrap();
    assert!(matches!(
        store.run_by_name(LATEST),
        Err(StoreError::NoRuns { .. })
    ));
    let a = store.begin_run(&run("a")).unwrap();
    let b = store.begin_run(&run("b")).unwrap();
    store.add_cell(a, &cell(measurement(0))).unwrap();
    let mut other = measurement(0);
    other.subject = "gflash".to_owned();
    store.add_cell(a, &cell(other)).unwrap();
    store.add_cell(a, &cell(measurement(1))).unwrap();

    assert_eq!(store.run_by_name(LATEST).unwrap().id, b);
    let runs = store.runs().unwrap();
    let names: Vec<_> = runs.iter().map(|r| r.run.name.as_str()).collect();
    assert_eq!(names, ["b", "a"]);
    assert_eq!(runs[1].measurements, 3);
    assert_eq!(runs[1].subjects, ["md", "gflash"]);
    assert!(matches!(
        store.begin_run(&run("a")),
        Err(StoreError::RunExists { name }) if name == "a"
    ));
}

#[test]
fn a_deleted_run_leaves_nothing_and_no_other_run_suffers() {
    let mut store = Store::open_in_memory().unwrap();
    let a = store.begin_run(&run("a")).unwrap();
    let b = store.begin_run(&run("b")).unwrap();
    for id in [a, b] {
        store.add_cell(id, &cell(measurement(0))).unwrap();
    }
    store.delete_run(a).unwrap();
    assert!(store.measurements(a).unwrap().is_empty());
    assert_eq!(store.measurements(b).unwrap(), [measurement(0)]);
    assert!(matches!(
        store.delete_run(a),
        Err(StoreError::NoSuchRun { .. })
    ));
}

#[test]
fn a_cell_is_held_once_and_a_refused_row_leaves_no_trace() {
    let mut store = Store::open_in_memory().unwrap();
    let id = store.begin_run(&run("a")).unwrap();
    store.add_cell(id, &cell(measurement(8))).unwrap();
    let error = store.add_cell(id, &cell(measurement(8))).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the run already has a row for job 9 (sequence 8, repetition 0) read, subject md, fit strict: \
         a run holds each cell once"
    );
    // The member rows come after the measurement's own: they must go together.
    let mut bad = measurement(9);
    bad.members[1].busy_ns = u64::MAX;
    let error = store.add_cell(id, &cell(bad)).unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with("busy_ns of job 10 (sequence 9, repetition 0) read, subject md"),
        "{text}"
    );
    let mut bad = measurement(9);
    bad.iops = f64::NAN;
    assert!(matches!(
        store.add_cell(id, &cell(bad)),
        Err(StoreError::NotStorable { field, .. }) if field.starts_with("iops of job 10 ")
    ));
    assert_eq!(store.measurements(id).unwrap(), [measurement(8)]);
}

#[test]
fn a_run_that_is_there_already_is_kept_as_a_whole_or_not_at_all() {
    let mut store = Store::open_in_memory().unwrap();
    let mut bad = measurement(9);
    bad.cpu_percent = Some(f64::NAN);
    let cells = [cell(measurement(8)), cell(bad)];
    let records = Records::default();
    let kept = store.keep_run(&mut run("a"), &[], &records, &cells);
    assert!(matches!(kept, Err(StoreError::NotStorable { .. })));
    assert!(store.runs().unwrap().is_empty());
    let kept = store.keep_run(&mut run("a"), &[], &records, &cells[..1]);
    assert_eq!(store.measurements(kept.unwrap()).unwrap(), [measurement(8)]);
}
