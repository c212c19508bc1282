//! A writer that is killed, and readers beside it.

use super::{cell, measurement, run};
use crate::{LATEST, Store};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Names the store for the child process; unset in an ordinary test run.
const STORE_VARIABLE: &str = "RAIDLAB_TEST_STORE";

#[test]
fn readers_see_complete_rows_while_a_writer_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let mut writer = Store::open(&path).unwrap();
    let id = writer.begin_run(&run("a")).unwrap();
    let reader = Store::open(&path).unwrap();
    for sequence in 0..10 {
        writer.add_cell(id, &cell(measurement(sequence))).unwrap();
        let seen = reader.measurements(id).unwrap();
        assert_eq!(seen.len(), sequence as usize + 1);
        assert_eq!(seen[sequence as usize], measurement(sequence));
    }
}

#[test]
fn a_dropped_writer_leaves_an_unfinished_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let mut writer = Store::open(&path).unwrap();
    let id = writer.begin_run(&run("a")).unwrap();
    writer.add_cell(id, &cell(measurement(0))).unwrap();
    drop(writer);
    let store = Store::open(&path).unwrap();
    let summary = store.run_by_name("a").unwrap();
    assert_eq!(summary.run.finished, None);
    assert_eq!(store.measurements(summary.id).unwrap(), [measurement(0)]);
}

/// Not a test of its own: the writer that `kill_9_leaves_complete_rows` starts
/// in a process and kills.
#[test]
fn child_writes_until_killed() {
    let Some(path) = std::env::var_os(STORE_VARIABLE) else {
        return;
    };
    let mut store = Store::open(PathBuf::from(path)).unwrap();
    let id = store.begin_run(&run("killed")).unwrap();
    for sequence in 0..u32::MAX {
        store.add_cell(id, &cell(measurement(sequence))).unwrap();
    }
}

#[test]
fn kill_9_leaves_complete_rows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "tests::killed::child_writes_until_killed"])
        .env(STORE_VARIABLE, &path)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    let rows = loop {
        assert!(Instant::now() < deadline, "the child wrote nothing");
        std::thread::sleep(Duration::from_millis(5));
        if !path.exists() {
            continue;
        }
        // On a crowded machine the child may hold it for long.
        let Ok(store) = Store::open(&path) else {
            continue;
        };
        let rows = store.run_by_name(LATEST).map_or(0, |s| s.measurements);
        if rows >= 5 {
            break rows;
        }
    };
    // SIGKILL on Unix: the child gets no chance to tidy up.
    child.kill().unwrap();
    child.wait().unwrap();

    let store = Store::open(&path).unwrap();
    let summary = store.run_by_name(LATEST).unwrap();
    assert_eq!(summary.run.finished, None);
    let seen = store.measurements(summary.id).unwrap();
    assert!(seen.len() as u64 >= rows);
    for (sequence, row) in (0..).zip(seen) {
        assert_eq!(row, measurement(sequence));
    }
}

/// While experiments of several threads end, rows come in before others that are there, and
/// move the numbers by which tables of an export refer to each other.
#[test]
fn an_export_of_a_run_that_goes_on_fits_together() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let mut writer = Store::open(&path).unwrap();
    let id = writer.begin_run(&run("a")).unwrap();
    let over = std::sync::atomic::AtomicBool::new(false);
    let relaxed = std::sync::atomic::Ordering::Relaxed;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for experiment in (0..5000).rev() {
                if over.load(relaxed) {
                    break;
                }
                let mut row = measurement(experiment);
                row.members.truncate(1);
                row.members[0].member = row.job.clone();
                let origin = id.experiment(experiment);
                writer.add_cell(origin, &cell(row)).unwrap();
            }
        });
        let reader = Store::open(&path).unwrap();
        for number in 0..5 {
            let tables = folder.path().join(number.to_string());
            let summary = reader.run_by_name(LATEST).unwrap();
            reader.write_parquet(&summary, &tables).unwrap();
            let mut read = Store::open_in_memory().unwrap();
            let taken = read.read_parquet(&tables);
            let id = read.run_by_name(LATEST).map(|run| run.id);
            let fit = |row: &crate::Measurement| row.members[0].member == row.job;
            let rows = id.map(|id| read.measurements(id).unwrap());
            over.store(taken.is_err() || number == 4, relaxed);
            taken.unwrap();
            assert!(rows.unwrap().iter().all(fit));
        }
    });
}

#[test]
fn what_is_held_does_not_change_and_is_not_held_twice() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let mut writer = Store::open(&path).unwrap();
    let id = writer.begin_run(&run("a")).unwrap();
    let reader = Store::open(&path).unwrap();
    let held = reader.snapshot().unwrap();
    drop(reader.snapshot().unwrap());
    writer.add_cell(id, &cell(measurement(0))).unwrap();
    assert_eq!(reader.measurements(id).unwrap(), []);
    drop(held);
    assert_eq!(reader.measurements(id).unwrap().len(), 1);
}
