//! Ctrl-C and SIGTERM: complete rows stay, and the user learns which.

use crate::lab::{Lab, Ran};
use raidlab_store::Store;
use std::fmt::Write;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

/// A suite of so many jobs, each of some tens of milliseconds or more.
pub fn long_suite(jobs: usize) -> String {
    let mut text = r#"schema = 1
name = "long"
title = "A long one"
description = "For tests."
source = "here"
disks = ["wd4000fyyz", "wd4000fyyz"]
subjects = ["md"]
"#
    .to_owned();
    for job in 0..jobs {
        let _ = write!(
            text,
            r#"
[[step]]
job = "{job}"
title = "sequential write"
class = "sequential-write"
fio = "--rw=write --bs=128k --iodepth=1 --size=16g --direct=1"
"#
        );
    }
    text
}

pub fn signal(child: &Child, name: &str) {
    let script = format!("kill -{name} {}", child.id());
    let status = Command::new("sh").args(["-c", &script]).status();
    assert!(status.expect("a shell").success());
}

fn start(lab: &Lab) -> Child {
    lab.command("run ./long.toml --json --fit strict --without leaps")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts")
}

/// Waits for the first row, signals, and gives the number of rows printed with
/// what the program said.
fn interrupted_after_a_row(lab: &Lab, name: &str) -> (usize, Ran) {
    let mut child = start(lab);
    let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
    let mut rows = String::new();
    stdout.read_line(&mut rows).expect("a row");
    // A closed terminal's shell sends the signal once more, right behind the kernel.
    let twice = format!("HUP {0}; kill -HUP", child.id());
    signal(&child, if name == "HUP" { &twice } else { name });
    stdout.read_to_string(&mut rows).expect("rows");
    let ran = Ran::new(child.wait_with_output().expect("it ends"));
    (rows.lines().count(), ran)
}

#[test]
fn an_interrupted_run_keeps_complete_rows_and_says_which() {
    for name in ["INT", "TERM", "HUP"] {
        let lab = Lab::new();
        lab.write("long.toml", &long_suite(500));
        let (rows, ran) = interrupted_after_a_row(&lab, name);
        assert_eq!(ran.code, 130, "{}", ran.stderr);
        assert!((1..500).contains(&rows), "{rows}");
        let store = Store::open_existing(lab.path("raidlab.db")).expect("consistent");
        let run = store.run_by_name("latest").expect("a run");
        assert_eq!(run.measurements, rows as u64);
        assert_eq!(run.run.finished, None);
        let kept = format!("{rows} of 500 rows are kept");
        assert!(ran.stderr.contains(&kept), "{}", ran.stderr);
        let command = format!("raidlab report {}", run.run.name);
        assert!(ran.stderr.contains(&command), "{}", ran.stderr);
        assert!(!lab.path("raidlab-report.html").exists());
        let again = lab.ok(&["report", &run.run.name, "--json-lines", "-"]);
        assert_eq!(again.lines().count(), rows);
    }
}

#[test]
fn a_long_step_ends_at_once_and_leaves_no_row() {
    let lab = Lab::new();
    // A job of many minutes without leaps.
    lab.write("long.toml", &long_suite(1).replace("16g", "3t"));
    let mut child = start(&lab);
    let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
    // The store is there before the first step, the listener before the store
    // has a run; signal as soon as a run stands in it.
    while Store::open_existing(lab.path("raidlab.db"))
        .and_then(|store| store.run_by_name("latest"))
        .is_err()
    {
        assert!(child.try_wait().expect("a child").is_none(), "it runs");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    signal(&child, "INT");
    let mut said = String::new();
    stderr.read_line(&mut said).expect("a line");
    assert!(said.contains("once more to stop at once"), "{said}");
    let ran = Ran::new(child.wait_with_output().expect("it ends"));
    assert_eq!(ran.code, 130);
    let store = Store::open_existing(lab.path("raidlab.db")).expect("consistent");
    let runs = store.runs().expect("readable");
    assert!(runs.iter().all(|run| run.measurements == 0));
}

#[test]
fn a_second_run_on_a_store_is_told_who_goes_on_and_a_dead_one_holds_nothing() {
    let lab = Lab::new();
    lab.write("long.toml", &long_suite(500));
    let mut child = start(&lab);
    let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
    stdout.read_line(&mut String::new()).expect("a row");
    let short = "run ./short.toml --subject md --no-report";
    // The first one goes on writing into the store meanwhile.
    let second = lab.run(short);
    assert_eq!(second.code, 1, "{}", second.stderr);
    let message = second.stderr;
    let holder = format!("(process {}, since ", child.id());
    for words in [
        "./long.toml",
        &holder,
        "goes on",
        "raidlab.db.lock",
        "--store",
    ] {
        assert!(message.contains(words), "no {words} in {message}");
    }
    // Nor can it be taken from under the first one.
    let deleted = lab.run("report --delete latest");
    assert_eq!(deleted.code, 1, "{}", deleted.stderr);
    assert!(deleted.stderr.contains(&holder), "{}", deleted.stderr);
    // Another store is another matter.
    lab.ok(&format!("{short} --store other.db"));
    signal(&child, "KILL");
    child.wait().expect("it ends");
    lab.ok("report --delete latest");
    lab.ok(short);
    let locks = lab
        .files()
        .into_iter()
        .filter(|name| name.ends_with(".lock"));
    assert_eq!(locks.count(), 0);
}
