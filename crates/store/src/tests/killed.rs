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
