//! `raidlab resume`: a run that was killed, at any moment and as often as one likes,
//! ends with the rows and records of one that was never killed.
//!
//! `checks/resume` kills 500 times; `RAIDLAB_RESUME_KILLS` says how often.

use crate::lab::{Lab, SUITE};
use raidlab_store::{RunId, Store, StoreError};
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How many kills where nothing is said.
const KILLS: u32 = 20;

/// How a run of the tests is begun.
const RUN: &str = "run ./killed.toml --no-report --threads 2";

/// How it goes on.
const RESUME: &str = "resume --no-report";

/// When a process is killed.
#[derive(Debug, Clone, Copy)]
pub enum Moment {
    /// So long after its start.
    After(Duration),
    /// As soon as the store's journal has grown so often: then a transaction is on its
    /// way to the disk.
    InTransaction(u32),
}

/// A folder with the suite that is killed, of four experiments.
fn lab() -> Lab {
    let lab = Lab::new();
    let subjects = r#"subjects = ["md", "gflash", "gmirror", "zfs"]"#;
    let fewer = r#"subjects = ["md", "gmirror"]"#;
    lab.write("killed.toml", &SUITE.replace(subjects, fewer));
    lab
}

/// A folder for stores, in memory where there is one: of the time of these runs, waiting
/// for a disk would be the most.
pub fn stores() -> TempDir {
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() {
        TempDir::new_in(memory)
    } else {
        TempDir::new()
    };
    folder.expect("a folder")
}

/// All that a store has of a run, but for its name and its times.
pub fn contents(path: &Path) -> Vec<String> {
    let read = |store: &Store, id: RunId| -> Result<Vec<String>, StoreError> {
        let mut all = Vec::new();
        let mut add = |kind: &str, lines: Vec<String>| {
            all.extend(lines.into_iter().map(|line| format!("{kind} {line}")));
        };
        fn lines<T: std::fmt::Debug>(all: Vec<T>) -> Vec<String> {
            all.iter().map(|one| format!("{one:?}")).collect()
        }
        add("row", lines(store.measurements(id)?));
        add("setting", lines(store.settings(id)?));
        add("note", lines(store.notes(id)?));
        add("cell", lines(store.finished_cells(id)?));
        add("ended", lines(store.ended_experiments(id)?));
        add("fact", lines(store.observations(id)?));
        add("command", lines(store.commands(id)?));
        add("event", lines(store.events(id)?));
        add("series", lines(store.series(id)?));
        add("finding", lines(store.findings(id)?));
        Ok(all)
    };
    let store = Store::open_existing(path).expect("a store");
    let runs = store.runs().expect("readable");
    assert_eq!(runs.len(), 1, "one run");
    assert!(runs[0].run.finished.is_some(), "it has come to its end");
    read(&store, runs[0].id).expect("readable")
}

/// How long the store's journal is; 0 where there is none.
fn journal(store: &Path) -> u64 {
    let mut name = store.as_os_str().to_owned();
    name.push("-wal");
    PathBuf::from(name).metadata().map_or(0, |file| file.len())
}

/// Kills a process at a moment; whether it was still there.
pub fn kill(mut child: Child, store: &Path, moment: Moment) -> bool {
    let begun = Instant::now();
    let (mut seen, mut grown) = (0, 0);
    let over = loop {
        if child.try_wait().expect("a child").is_some() {
            break true;
        }
        let due = match moment {
            Moment::After(time) => begun.elapsed() >= time,
            Moment::InTransaction(count) => {
                let length = journal(store);
                if length != seen {
                    (seen, grown) = (length, grown + 1);
                }
                grown >= count
            }
        };
        if due {
            break false;
        }
        match moment {
            Moment::After(_) => thread::sleep(Duration::from_micros(500)),
            Moment::InTransaction(_) => thread::yield_now(),
        }
    };
    // SIGKILL: it gets no chance to tidy up.
    child.kill().expect("a child");
    child.wait().expect("a child");
    !over
}

/// Whether there is a run to go on with.
fn unfinished(store: &Path) -> bool {
    let found = Store::open_existing(store).and_then(|store| store.runs());
    found.is_ok_and(|runs| runs.iter().any(|run| run.run.finished.is_none()))
}

/// Begins a run, or goes on with it, in a store of this name.
fn start(lab: &Lab, words: &str, store: &str) -> Child {
    lab.command(&format!("{words} --store {store}"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts")
}

/// Moments that fill the time evenly, whatever their number: every second one by time,
/// up to `length`, the others by transactions.
pub fn moment(number: u32, length: Duration) -> Moment {
    let part = (f64::from(number) * 0.618_033_988_749_895).fract();
    if number.is_multiple_of(2) {
        Moment::After(length.mul_f64(part))
    } else {
        // Beginning, cells, ends of experiments, and the end: some thirty.
        Moment::InTransaction(1 + number / 2 % 34)
    }
}

#[test]
fn a_run_killed_at_any_moment_ends_as_one_that_was_never_killed() {
    let wanted = std::env::var("RAIDLAB_RESUME_KILLS")
        .map_or(KILLS, |text| text.parse().expect("a number of kills"));
    let (lab, folder) = (lab(), stores());
    let path = |name: &str| folder.path().join(name).display().to_string();
    let begun = Instant::now();
    let whole = path("whole.db");
    lab.ok(&format!("{RUN} --store {whole}"));
    let length = begun.elapsed();
    let rows = lab.ok(&format!("report --store {whole} --json-lines -"));
    let whole = contents(Path::new(&whole));
    let (mut kills, mut runs, mut number) = (0, 0, 0);
    while kills < wanted {
        runs += 1;
        assert!(runs < 20 * wanted + 20, "kills come too late");
        let name = path(&format!("killed-{runs}.db"));
        let store = Path::new(&name);
        // Every third run is killed twice.
        let times = if runs % 3 == 0 { 2 } else { 1 };
        let mut said = Vec::new();
        for _ in 0..times {
            let words = if unfinished(store) { RESUME } else { RUN };
            let moment = moment(number, length);
            number += 1;
            if kill(start(&lab, words, &name), store, moment) {
                kills += 1;
                said.push(moment);
            }
            if !unfinished(store) {
                break;
            }
        }
        go_to_the_end(&lab, &name);
        let is = contents(store);
        assert!(is == whole, "{said:?}: {}", difference(&is, &whole));
        let again = lab.ok(&format!("report --store {name} --json-lines -"));
        assert_eq!(again, rows, "{said:?}");
        std::fs::remove_file(store).expect("a store");
    }
    println!("{kills} kills in {runs} runs of {length:?}: each ended as one never killed");
}

/// Goes on with a run that was killed, if it has begun and not ended.
fn go_to_the_end(lab: &Lab, store: &str) {
    let path = Path::new(store);
    let runs = Store::open_existing(path).and_then(|store| store.runs());
    if unfinished(path) {
        lab.ok(&format!("{RESUME} --store {store}"));
    } else if runs.map_or(true, |runs| runs.is_empty()) {
        // Killed before it had begun: there is nothing to go on with.
        let ran = lab.run(&format!("{RESUME} --store {store}"));
        assert_eq!(ran.code, 3, "{}", ran.stderr);
        lab.ok(&format!("{RUN} --store {store}"));
    }
}

/// The first line in which two stores differ.
pub fn difference(is: &[String], should: &[String]) -> String {
    let place = is.iter().zip(should).position(|(is, should)| is != should);
    let place = place.unwrap_or(is.len().min(should.len()));
    let line = |all: &[String]| {
        all.get(place)
            .cloned()
            .unwrap_or_else(|| "nothing".to_owned())
    };
    format!(
        "{} lines, {} wanted; first {}\nis not {}",
        is.len(),
        should.len(),
        line(is),
        line(should)
    )
}

/// A suite whose subject, disk and job are files of their own.
pub fn of_files(lab: &Lab) {
    let built_in = |kind: &str, name: &str| lab.ok(&[kind, name, "--toml"]);
    let subject = built_in("subjects", "md").replace("name = \"md\"", "name = \"mine\"");
    lab.write("subject.toml", &subject);
    lab.write("disk.toml", &built_in("disks", "wd4000fyyz"));
    lab.write(
        "job.fio",
        "[a]\nrw=randread\nbs=4k\nsize=1g\nruntime=1\ntime_based=1\n",
    );
    lab.write(
        "own.toml",
        r#"schema = 1
name = "own"
title = "My own"
description = "For tests."
source = "here"
disks = ["./disk.toml", "./disk.toml"]
subjects = ["./subject.toml", "gmirror"]

[[step]]
job = "1"
title = "random read"
class = "random-read"
fio_file = "job.fio"

[[step]]
job = "2"
title = "random write"
class = "random-write"
fio = "--rw=randwrite --bs=4k --size=1g --runtime=1 --direct=1"
"#,
    );
}

/// Takes a run back to where only its first experiment had ended, and a cell of the next
/// was measured.
pub fn cut(store: &Path) {
    let store = Connection::open(store).expect("a store");
    store
        .execute_batch(
            "PRAGMA foreign_keys = on;
             UPDATE run SET finished_utc = NULL;
             DELETE FROM ended WHERE experiment > 0;
             DELETE FROM cell WHERE experiment > 1 OR experiment = 1 AND sequence > 0;
             DELETE FROM measurement WHERE experiment > 1 OR experiment = 1 AND sequence > 0;",
        )
        .expect("it can be written");
}

#[test]
fn what_a_run_was_planned_with_decides_and_the_difference_is_said() {
    let lab = Lab::new();
    of_files(&lab);
    let rows = lab.ok("run ./own.toml --no-report --json");
    assert_eq!(rows.lines().count(), 2 * 2 * 2, "{rows}");
    let store = lab.path("raidlab.db");
    let whole = contents(&store);
    cut(&store);
    // Everything changes, or goes.
    let suite = std::fs::read_to_string(lab.path("own.toml")).expect("it is there");
    lab.write("own.toml", &suite.replace("bs=4k", "bs=64k"));
    lab.write("disk.toml", "schema = 1\n");
    std::fs::remove_file(lab.path("subject.toml")).expect("it is there");
    std::fs::remove_file(lab.path("job.fio")).expect("it is there");
    let ran = lab.run("resume --no-report --json");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for said in [
        "own.toml is another one now",
        "disk.toml is another one now",
    ] {
        assert!(ran.stderr.contains(said), "{}", ran.stderr);
    }
    for said in ["subject.toml is not here", "job.fio is not here"] {
        assert!(ran.stderr.contains(said), "{}", ran.stderr);
    }
    assert!(!ran.stderr.contains("built in"), "{}", ran.stderr);
    assert_eq!(ran.stdout, rows, "all rows, also those measured before");
    let is = contents(&store);
    assert!(is == whole, "{}", difference(&is, &whole));
    // It has come to its end.
    let error = lab.fails(2, "resume");
    assert!(error.contains("has come to its end"), "{error}");
}

#[test]
fn another_program_goes_on_and_says_so_or_is_refused_by_name() {
    let lab = Lab::new();
    lab.ok("run ./short.toml --no-report");
    let store = lab.path("raidlab.db");
    let edit = |sql: &str| {
        let store = Connection::open(&store).expect("a store");
        store.execute_batch(sql).expect("it can be written");
    };
    cut(&store);
    edit("UPDATE plan SET program = 'another'");
    for _ in 0..2 {
        let ran = lab.run(RESUME);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert!(ran.stderr.contains("another build"), "{}", ran.stderr);
        cut(&store);
    }
    let notes = Connection::open(&store).and_then(|store| {
        let sql = "SELECT count(*) FROM note WHERE title = 'Another build'";
        store.query_row(sql, [], |row| row.get::<_, i64>(0))
    });
    assert_eq!(notes.expect("readable"), 1, "said once");
    // A raidlab that makes other experiments of the plan.
    edit("UPDATE plan SET json = replace(json, '\"sha256\":\"', '\"sha256\":\"0')");
    let error = lab.run(RESUME);
    assert_eq!(error.code, 3, "{}", error.stderr);
    assert!(
        error
            .stderr
            .contains("`md, strict` has other steps or settings"),
        "{}",
        error.stderr
    );
    edit("UPDATE plan SET json = replace(json, '{\"schema\":1', '{\"schema\":9')");
    let error = lab.run(RESUME);
    assert_eq!(error.code, 3, "{}", error.stderr);
    assert!(error.stderr.contains("schema 9"), "{}", error.stderr);
    edit("DELETE FROM plan");
    let error = lab.run(RESUME);
    assert_eq!(error.code, 3, "{}", error.stderr);
    assert!(error.stderr.contains("older raidlab"), "{}", error.stderr);
    assert!(
        error.stderr.contains("raidlab run ./short.toml"),
        "{}",
        error.stderr
    );
}
