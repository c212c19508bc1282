//! Records beside the rows: what goes in comes out, and belongs to its cells.

use super::{cell, measurement, run};
use crate::{
    CommandRecord, EventRecord, Finding, KeptPlan, Observation, Operation, Records, Scope, Series,
    Setting, Severity, Store, StoreError,
};

fn scope(sequence: Option<u32>) -> Scope {
    Scope {
        host: "store1".to_owned(),
        subject: "md".to_owned(),
        sequence,
        ..Scope::default()
    }
}

pub(super) fn records() -> Records {
    Records {
        settings: Vec::new(),
        observations: vec![
            Observation {
                scope: Scope::host("store1"),
                name: "memory.total_bytes".to_owned(),
                value: "16777216000".to_owned(),
                unit: "bytes".to_owned(),
                source: "/proc/meminfo".to_owned(),
            },
            Observation {
                scope: scope(Some(3)),
                name: "fio.iodepth_level.1".to_owned(),
                value: "100".to_owned(),
                unit: "percent".to_owned(),
                source: String::new(),
            },
        ],
        commands: vec![CommandRecord {
            scope: scope(Some(3)),
            at_ns: 5,
            command: "fio --rw=read".to_owned(),
            code: None,
            took_ns: 60_000_000_000,
            stdout: "{}".to_owned(),
            stderr: "killed\n".to_owned(),
        }],
        events: vec![EventRecord {
            scope: scope(None),
            at_ns: 7,
            kind: "remove".to_owned(),
            member: Some(1),
            text: "member 1 is taken out".to_owned(),
        }],
        series: vec![series(&[(0, 0.0), (1_000_000_000, 15.5)])],
    }
}

pub(super) fn series(points: &[(u64, f64)]) -> Series {
    Series {
        scope: scope(None),
        name: "sync.percent".to_owned(),
        unit: "percent".to_owned(),
        points: points.to_vec(),
    }
}

#[test]
fn records_come_out_as_they_went_in() {
    let mut store = Store::open_in_memory().unwrap();
    let id = store.begin_run(&run("a")).unwrap();
    store.add_records(id, &records()).unwrap();
    assert_eq!(store.observations(id).unwrap(), records().observations);
    assert_eq!(store.commands(id).unwrap(), records().commands);
    assert_eq!(store.events(id).unwrap(), records().events);
    assert_eq!(store.series(id).unwrap(), records().series);
}

#[test]
fn a_series_grows() {
    let mut store = Store::open_in_memory().unwrap();
    let id = store.begin_run(&run("a")).unwrap();
    for points in [&[(0, 1.0), (1, 2.0)][..], &[(2, 3.0)][..]] {
        let records = Records {
            series: vec![series(points)],
            ..Records::default()
        };
        store.add_records(id, &records).unwrap();
    }
    let whole = series(&[(0, 1.0), (1, 2.0), (2, 3.0)]);
    assert_eq!(store.series(id).unwrap(), [whole]);
}

#[test]
fn a_cell_is_finished_with_all_its_rows_and_records_or_not_at_all() {
    let mut store = Store::open_in_memory().unwrap();
    let id = store.begin_run(&run("a")).unwrap();
    let mut bad = cell(measurement(1));
    bad.records = records();
    bad.records.series[0].points[1].1 = f64::INFINITY;
    assert!(matches!(
        store.add_cell(id, &bad),
        Err(StoreError::NotStorable { field, .. }) if field == "sample.value"
    ));
    assert!(store.measurements(id).unwrap().is_empty());
    assert!(store.observations(id).unwrap().is_empty());
    assert!(store.finished_cells(id).unwrap().is_empty());

    let good = cell(measurement(1));
    store.add_cell(id, &good).unwrap();
    assert_eq!(store.finished_cells(id).unwrap(), [good.cell]);
}

#[test]
fn a_cell_without_rows_is_finished_once() {
    let mut store = Store::open_in_memory().unwrap();
    let id = store.begin_run(&run("a")).unwrap();
    let mut fill = cell(measurement(0));
    fill.rows.clear();
    store.add_cell(id, &fill).unwrap();
    assert!(matches!(
        store.add_cell(id, &fill),
        Err(StoreError::CellExists { .. })
    ));
}

#[test]
fn findings_are_replaced_and_cover_what_they_say() {
    let finding = Finding {
        rule: "C12".to_owned(),
        title: "setting not applied".to_owned(),
        severity: Severity::Fatal,
        scope: Scope::of(&measurement(3)),
        op: Some(Operation::Read),
        part: String::new(),
        evidence: "primarycache: asked metadata, found all".to_owned(),
        effect: "reads come out of memory".to_owned(),
        remedy: "name the data set".to_owned(),
    };
    let mut store = Store::open_in_memory().unwrap();
    let id = store.begin_run(&run("a")).unwrap();
    let other = store.begin_run(&run("b")).unwrap();
    store
        .set_findings(other, std::slice::from_ref(&finding), None)
        .unwrap();
    for _ in 0..2 {
        store
            .set_findings(id, std::slice::from_ref(&finding), None)
            .unwrap();
        assert_eq!(store.findings(id).unwrap(), std::slice::from_ref(&finding));
    }
    store.set_findings(id, &[], None).unwrap();
    assert!(store.findings(id).unwrap().is_empty());
    assert_eq!(store.findings(other).unwrap().len(), 1);

    assert!(finding.covers(&measurement(3)));
    assert!(!finding.covers(&measurement(4)));
    let mut write = measurement(3);
    write.op = Operation::Write;
    assert!(!finding.covers(&write));
    assert!(Scope::default().covers(&measurement(9)));
    assert!(!Scope::host("store2").covers(&measurement(9)));
}

#[test]
fn what_did_not_end_is_forgotten_and_the_rest_is_read_in_the_plans_order() {
    let mut store = Store::open_in_memory().unwrap();
    let other = store.begin_run(&run("b")).unwrap();
    store
        .add_cell(other.experiment(1), &cell(measurement(0)))
        .unwrap();
    let note = |statement: &str| crate::AccuracyNote {
        class: "remark".to_owned(),
        statement: statement.to_owned(),
        ..crate::AccuracyNote::default()
    };
    let id = store
        .begin_run_with(&run("a"), None, &[note("of the run")])
        .unwrap();
    // The last experiment ends first, the middle one never.
    for position in [2, 1, 0] {
        let mut row = measurement(0);
        row.subject = format!("subject {position}");
        let mut result = cell(row);
        result.records = records();
        result.records.settings = vec![setting(&format!("of {position}"))];
        store.add_cell(id.experiment(position), &result).unwrap();
        let failed = [note("it failed")];
        if position == 1 {
            store.add_notes(id.experiment(position), &failed).unwrap();
        } else {
            store.end_experiment(id, position).unwrap();
        }
    }
    assert_eq!(store.ended_experiments(id).unwrap(), [0, 2]);
    let subjects = |store: &Store| -> Vec<String> {
        let rows = store.measurements(id).unwrap().into_iter();
        rows.map(|row| row.subject).collect()
    };
    assert_eq!(subjects(&store), ["subject 0", "subject 1", "subject 2"]);
    store.forget_unfinished(id).unwrap();
    assert_eq!(subjects(&store), ["subject 0", "subject 2"]);
    let settings: Vec<String> = store
        .settings(id)
        .unwrap()
        .into_iter()
        .map(|setting| setting.name)
        .collect();
    assert_eq!(settings, ["of 0", "of 2"]);
    let twice = [records().observations, records().observations].concat();
    assert_eq!(store.observations(id).unwrap(), twice);
    assert_eq!(store.events(id).unwrap().len(), 2 * records().events.len());
    assert_eq!(store.notes(id).unwrap(), [note("of the run")]);
    assert_eq!(store.measurements(other).unwrap().len(), 1);
}

fn setting(name: &str) -> Setting {
    Setting {
        scope: "subject md".to_owned(),
        name: name.to_owned(),
        value: "1".to_owned(),
        source: String::new(),
    }
}

#[test]
fn merged_records_stand_in_the_order_in_which_they_were_added() {
    let mut given = records();
    let (facts, commands) = (given.observations.remove(1), given.commands.remove(0));
    for sequence in [Some(3), None, Some(1)] {
        let scope = scope(sequence);
        given.observations.push(Observation {
            scope: scope.clone(),
            ..facts.clone()
        });
        given.commands.push(CommandRecord {
            scope: scope.clone(),
            ..commands.clone()
        });
        given.events.push(EventRecord {
            scope,
            ..given.events[0].clone()
        });
    }
    let mut shard = Store::open_in_memory().unwrap();
    let id = shard.begin_run(&run("a")).unwrap();
    shard.add_records(id.experiment(0), &given).unwrap();
    shard.end_experiment(id, 0).unwrap();

    let plan = KeptPlan {
        program: String::new(),
        json: String::new(),
        shard: None,
    };
    let mut store = Store::open_in_memory().unwrap();
    let mut merging = store.merge(&mut run("b"), &plan, &[]).unwrap();
    merging.add(&shard, id).unwrap();
    let merged = merging.finish().unwrap();
    assert_eq!(store.observations(merged).unwrap(), given.observations);
    assert_eq!(store.commands(merged).unwrap(), given.commands);
    assert_eq!(store.events(merged).unwrap(), given.events);
}
