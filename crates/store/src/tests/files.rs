//! Files that are not a store of ours keep their bytes and get a clear error.

use super::{cell, measurement, run};
use crate::schema::SCHEMA_VERSION;
use crate::{KeptPlan, LATEST, Measurement, Operation, Store, StoreError};
use rusqlite::Connection;
use std::fs;
use std::path::{Path, PathBuf};

fn stored(folder: &Path) -> PathBuf {
    let path = folder.join("a.raidlab.db");
    let mut store = Store::open(&path).unwrap();
    let id = store.begin_run(&run("a")).unwrap();
    for sequence in 0..40 {
        store.add_cell(id, &cell(measurement(sequence))).unwrap();
    }
    path
}

/// Opens a file that must be refused, and checks that it was not touched.
fn refusal(path: &Path) -> StoreError {
    let before = fs::read(path).unwrap();
    let error = Store::open(path).unwrap_err();
    assert_eq!(fs::read(path).unwrap(), before, "{error}");
    assert!(error.to_string().contains(path.to_str().unwrap()));
    error
}

#[test]
fn a_store_is_one_file_once_closed_and_opens_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = stored(folder.path());
    let names: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["a.raidlab.db"]);
    let store = Store::open_existing(&path).unwrap();
    let summary = store.run_by_name(LATEST).unwrap();
    assert_eq!(store.measurements(summary.id).unwrap().len(), 40);
}

#[test]
fn an_empty_file_becomes_a_store() {
    let file = tempfile::NamedTempFile::new().unwrap();
    assert!(Store::open(file.path()).unwrap().runs().unwrap().is_empty());
}

#[test]
fn a_missing_file_is_not_created_by_a_reader() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none.db");
    assert!(matches!(
        Store::open_existing(&path),
        Err(StoreError::Missing { .. })
    ));
    assert!(!path.exists());
}

#[test]
fn the_reference_has_this_version() {
    let page = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/reference/command-line.md"
    );
    let page = std::fs::read_to_string(page).expect("the page");
    let says = format!("Its tables are of version {SCHEMA_VERSION} (");
    assert!(page.contains(&says), "{says}");
}

#[test]
fn a_store_of_another_version_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = stored(folder.path());
    Connection::open(&path)
        .unwrap()
        .pragma_update(None, "user_version", 7)
        .unwrap();
    assert!(matches!(
        refusal(&path),
        StoreError::OtherVersion {
            found: 7,
            supported: SCHEMA_VERSION,
            ..
        }
    ));
}

#[test]
fn a_database_of_another_program_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mail.db");
    let other = Connection::open(&path).unwrap();
    other
        .execute_batch("CREATE TABLE mail (body TEXT)")
        .unwrap();
    drop(other);
    assert!(matches!(refusal(&path), StoreError::Foreign { .. }));
}

#[test]
fn a_file_that_is_no_database_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.txt");
    fs::write(&path, "job,iops\n".repeat(200)).unwrap();
    assert!(matches!(refusal(&path), StoreError::NotADatabase { .. }));
}

#[test]
fn a_damaged_store_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = stored(folder.path());
    let mut bytes = fs::read(&path).unwrap();
    // The header page stays: a store whose tables are damaged.
    for byte in bytes.iter_mut().skip(3 * 4096).step_by(97) {
        *byte ^= 0xff;
    }
    fs::write(&path, bytes).unwrap();
    assert!(matches!(refusal(&path), StoreError::Corrupt { .. }));
}

#[test]
fn a_truncated_store_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = stored(folder.path());
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    assert!(matches!(refusal(&path), StoreError::Corrupt { .. }));
}

#[test]
fn a_path_that_cannot_be_written_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let in_a_file = folder.path().join("file");
    fs::write(&in_a_file, "").unwrap();
    for path in [
        folder.path().join("no-such-folder/a.db"),
        in_a_file.join("a.db"),
    ] {
        let error = Store::open(&path).unwrap_err();
        assert!(matches!(error, StoreError::Unwritable { .. }), "{error:?}");
        assert!(error.to_string().contains(path.to_str().unwrap()));
    }
}

#[test]
fn a_store_of_version_1_is_brought_up_to_date() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("old.db");
    let old = Connection::open(&path).unwrap();
    old.execute_batch(include_str!("version_1.sql")).unwrap();
    old.execute_batch(
        "PRAGMA application_id = 1919705442; PRAGMA user_version = 1;
         INSERT INTO run VALUES (1, 'a', '2026-11-20T00:00:00Z', NULL, 'model', 'mirror-2015',
             'Mirrors', '2', '0.1.0', 'raidlab run mirror-2015');
         INSERT INTO measurement VALUES (7, 1, 'model', 'mirror-2015', 'md', 'strict', 8, '9',
             'random read', 'random-read', 'read', 4096, 4, 1, 100, 409600, 1000000000, 100.0,
             409600.0, 1.5, 1, 2, 3, 4, 5, x'', '[UU]', '[UU]', NULL, NULL, 0, 0.0, 'predicted');
         INSERT INTO member_use VALUES (7, 0, '0', 'wd4000fyyz', 1, 2, 3, 4, 5, 6, 7, 8);
         INSERT INTO published_figure VALUES (7, 0, 'log', 199.0, NULL, 'exact', NULL, '');",
    )
    .unwrap();
    drop(old);
    let mut store = Store::open_existing(&path).unwrap();
    let id = store.run_by_name("a").unwrap().id;
    let rows = store.measurements(id).unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0].job.as_str(), rows[0].total_ios), ("9", 100));
    assert_eq!(rows[0].members[0].sync_bytes, Some(8));
    assert_eq!(rows[0].tag_overflows, Some(0));
    assert_eq!(rows[0].published[0].source, "log");
    assert_eq!((rows[0].host.as_str(), rows[0].repetition), ("", 0));
    // The tables refer to each other as in a new store.
    store.add_cell(id, &cell(measurement(1))).unwrap();
    store.delete_run(id).unwrap();
    drop(store);
    let left: i64 = Connection::open(&path)
        .unwrap()
        .query_row("SELECT count(*) FROM member_use", [], |row| row.get(0))
        .unwrap();
    assert_eq!(left, 0);
}

#[test]
fn a_store_of_version_2_is_brought_up_to_date() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("old.db");
    let old = Connection::open(&path).unwrap();
    old.execute_batch(include_str!("version_2.sql")).unwrap();
    old.execute_batch(
        "PRAGMA application_id = 1919705442; PRAGMA user_version = 2;
         INSERT INTO run VALUES (1, 'a', '2026-11-20T00:00:00Z', NULL, 'model', 'mirror-2015',
             'Mirrors', '2', '0.1.0', 'raidlab run mirror-2015', '[\"run\"]', '9f2a');
         INSERT INTO setting VALUES (1, 1, 'subject md', 'chunk', '64k', 'mdadm');
         INSERT INTO cell VALUES (1, '', 'md', '', 'strict', 8, 0);
         INSERT INTO scope VALUES (1, 1, 'store1', '', '', NULL, NULL);
         INSERT INTO observation VALUES (1, 1, 'memory', '16', 'GiB', '');
         INSERT INTO note VALUES (1, 1, 'remark', 'A remark', 'It stays.', NULL, '[]', '[]');",
    )
    .unwrap();
    drop(old);
    let mut store = Store::open_existing(&path).unwrap();
    let id = store.run_by_name("a").unwrap().id;
    assert_eq!(store.settings(id).unwrap().len(), 1);
    assert_eq!(store.observations(id).unwrap().len(), 1);
    assert_eq!(store.finished_cells(id).unwrap().len(), 1);
    assert!(store.ended_experiments(id).unwrap().is_empty());
    assert_eq!(store.plan(id).unwrap(), None);
    store
        .add_cell(id.experiment(0), &cell(measurement(1)))
        .unwrap();
    // Of its cells nobody knows whose they are: a run that goes on begins anew.
    store.forget_unfinished(id).unwrap();
    assert!(store.finished_cells(id).unwrap().is_empty());
    assert!(store.measurements(id).unwrap().is_empty());
    assert_eq!(store.notes(id).unwrap().len(), 1);
}

#[test]
fn a_store_of_version_3_is_brought_up_to_date() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("old.db");
    let mut store = Store::open(&path).unwrap();
    let id = store.begin_run(&run("a")).unwrap();
    store.add_cell(id, &cell(measurement(0))).unwrap();
    drop(store);
    // What version 4 added.
    let old = Connection::open(&path).unwrap();
    old.execute_batch(
        "ALTER TABLE measurement DROP COLUMN disk_band_low;
         ALTER TABLE measurement DROP COLUMN disk_band_high;
         ALTER TABLE measurement DROP COLUMN disk_band_ratio;
         ALTER TABLE measurement DROP COLUMN runtime_band_ns;
         ALTER TABLE measurement DROP COLUMN kept_percent;
         ALTER TABLE plan DROP COLUMN shard;
         ALTER TABLE plan DROP COLUMN shards;
         PRAGMA user_version = 3;",
    )
    .unwrap();
    drop(old);
    let mut store = Store::open_existing(&path).unwrap();
    assert_eq!(store.measurements(id).unwrap(), [measurement(0)]);
    let rebuild = Measurement {
        op: Operation::Recovery,
        runtime_band_ns: 500_000_000,
        kept_percent: Some(50.0),
        ..measurement(1)
    };
    store.add_cell(id, &cell(rebuild.clone())).unwrap();
    assert_eq!(store.measurements(id).unwrap()[1], rebuild);
}

/// Version 4 had 0 where nobody had counted.
#[test]
fn a_store_of_version_4_is_brought_up_to_date() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("old.db");
    let mut store = Store::open(&path).unwrap();
    let id = store.begin_run(&run("a")).unwrap();
    let row = |sequence, bench: &str, percent| Measurement {
        bench: bench.to_owned(),
        sync_percent_end: percent,
        ..measurement(sequence)
    };
    let rows = [
        row(0, "model", Some(3.0)),
        row(1, "kernel", Some(3.0)),
        row(2, "host", None),
        row(3, "import", None),
    ];
    for row in rows {
        store.add_cell(id, &cell(row)).unwrap();
    }
    drop(store);
    let old = Connection::open(&path).unwrap();
    old.execute_batch(
        "UPDATE measurement SET tag_overflows_count = 0;
         UPDATE member_use SET sync_bytes = 0;
         ALTER TABLE plan DROP COLUMN shard;
         ALTER TABLE plan DROP COLUMN shards;
         PRAGMA user_version = 4;",
    )
    .unwrap();
    drop(old);
    let store = Store::open_existing(&path).unwrap();
    let rows = store.measurements(id).unwrap();
    let overflows: Vec<_> = rows.iter().map(|row| row.tag_overflows).collect();
    assert_eq!(overflows, [Some(0), None, None, None]);
    let synced: Vec<_> = rows.iter().map(|row| row.members[0].sync_bytes).collect();
    assert_eq!(synced, [Some(0), None, Some(0), None]);
}

#[test]
fn a_store_of_version_5_is_brought_up_to_date() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("old.db");
    let plan = KeptPlan {
        program: "9f".to_owned(),
        json: "{}".to_owned(),
        shard: None,
    };
    let mut store = Store::open(&path).unwrap();
    let old_run = store.begin_run_with(&run("a"), Some(&plan), &[]).unwrap();
    drop(store);
    let old = Connection::open(&path).unwrap();
    old.execute_batch(
        "ALTER TABLE plan DROP COLUMN shard; ALTER TABLE plan DROP COLUMN shards;
         PRAGMA user_version = 5;",
    )
    .unwrap();
    drop(old);
    // Who only reads changes nothing, and so cannot bring it up to date.
    let refused = Store::open_to_read(&path).unwrap_err();
    assert!(matches!(refused, StoreError::OtherVersion { found: 5, .. }));
    let mut store = Store::open_existing(&path).unwrap();
    assert_eq!(store.plan(old_run).unwrap(), Some(plan.clone()));
    let shard = KeptPlan {
        shard: Some("3/64".parse().unwrap()),
        ..plan
    };
    let new = store
        .begin_run_as(&mut run("a"), Some(&shard), &[])
        .unwrap();
    assert_eq!(store.plan(new).unwrap(), Some(shard));
    assert_eq!(store.run_by_name("a-2").unwrap().id, new);
}

#[test]
fn what_an_array_did_in_the_background_is_told_anew_by_a_run_that_goes_on() {
    let mut store = Store::open_in_memory().unwrap();
    let id = store.begin_run(&run("a")).unwrap();
    let recovery = |sequence| Measurement {
        op: Operation::Recovery,
        ..measurement(sequence)
    };
    for experiment in 0..2 {
        let origin = id.experiment(experiment);
        let row = |sequence| cell(measurement(10 * experiment + sequence));
        store.add_cell(origin, &row(0)).unwrap();
        let background = cell(recovery(10 * experiment + 1));
        store.add_cell(origin, &background).unwrap();
    }
    store.end_experiment(id, 0).unwrap();
    store.forget_failures(id).unwrap();
    let left: Vec<u32> = store
        .measurements(id)
        .unwrap()
        .iter()
        .map(|row| row.sequence)
        .collect();
    assert_eq!(left, [0, 1, 10]);
    let cells = store.finished_cells(id).unwrap();
    assert!(cells.iter().all(|cell| cell.sequence != 11), "{cells:?}");
    store
        .add_cell(id.experiment(1), &cell(recovery(11)))
        .unwrap();
}

#[test]
fn many_may_make_the_same_store_at_once() {
    for _ in 0..20 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new.db");
        std::thread::scope(|scope| {
            let openers: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| Store::open(&path).map(drop)))
                .collect();
            for opener in openers {
                opener.join().unwrap().unwrap();
            }
        });
    }
}

#[test]
fn a_store_that_may_not_be_written_to_is_read_and_nothing_is_made_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    // What means something in a URI means nothing in a name.
    let path = folder.path().join("a b?mode=rw#%41.db");
    let mut store = Store::open(&path).unwrap();
    let id = store.begin_run(&run("a")).unwrap();
    store.add_cell(id, &cell(measurement(1))).unwrap();
    drop(store);
    let mut store = Store::open_unwritable(&path).unwrap();
    assert_eq!(store.measurements(id).unwrap(), [measurement(1)]);
    let refused = store.delete_run(id).unwrap_err();
    assert!(
        matches!(refused, StoreError::Unwritable { .. }),
        "{refused}"
    );
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    drop(store);
    let old = Connection::open(&path).unwrap();
    old.execute_batch("PRAGMA user_version = 5;").unwrap();
    drop(old);
    let refused = Store::open_unwritable(&path).unwrap_err().to_string();
    assert!(refused.contains("brought up to date"), "{refused}");
}

/// A link to nowhere has the name of a file that `SQLite` makes beside a store to read it, as if none
/// could be made there. A shard that somebody has looked at is read all the same.
#[cfg(unix)]
#[test]
fn a_store_that_was_once_open_for_writing_is_read_where_nothing_can_be_made_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shard.db");
    let mut store = Store::open(&path).unwrap();
    let id = store.begin_run(&run("a")).unwrap();
    drop(store);
    std::os::unix::fs::symlink("nowhere", folder.path().join("shard.db-shm")).unwrap();
    let store = Store::open_to_read(&path).unwrap();
    assert_eq!(store.runs().unwrap()[0].id, id);
}
