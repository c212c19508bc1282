//! Shards, plans and stores on machines and in folders that are not those where they were begun.

use crate::lab::{Lab, Ran};
use crate::shards::{edit, lab, make, shard};
use rusqlite::Connection;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

/// Another process has begun the store since the merge looked for it: its files stay.
#[test]
fn a_merge_that_finds_its_store_locked_removes_nothing() {
    let (lab, ..) = lab();
    make(&lab, 2, "s");
    let lock = std::fs::File::create(lab.path("new.db.lock")).expect("a file");
    lock.try_lock().expect("it is nobody's");
    // SQLite keeps what it is about to change here.
    lab.write("new.db-journal", "of the other process");
    let error = lab.fails(1, &["merge", "s", "--store", "new.db"]);
    assert!(error.contains("goes on"), "{error}");
    let error = lab.fails(4, &["merge", "s", "--store", "nowhere/new.db"]);
    assert!(error.contains("there is no folder nowhere"), "{error}");
}

/// Schedulers and shells number tasks with zeros in front, and a shard in the working directory is
/// begun without `--store`.
#[test]
fn the_command_that_makes_a_missing_shard_makes_that_one() {
    let (lab, ..) = lab();
    lab.ok(&["run", "plan.json", "--shard", "00/02"]);
    let error = lab.fails(3, &["merge", "shard-0-of-2.db", "--store", "new.db"]);
    let command = "raidlab run plan.json --shard 1/2 --store shard-1-of-2.db";
    assert!(error.contains(&format!("`{command}` makes it")), "{error}");
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    lab.ok(&words);
    lab.ok(&["merge", ".", "--store", "new.db"]);
}

/// A shard that has the experiments of others cannot be merged with them.
#[test]
fn a_shard_is_not_resumed_as_if_it_were_the_whole_run() {
    let (lab, ..) = lab();
    lab.ok(&shard("0/2", "begun.db"));
    let store = Connection::open(lab.path("begun.db")).expect("a store");
    let unfinished = "UPDATE run SET finished_utc = NULL";
    store.execute_batch(unfinished).expect("it can be written");
    drop(store);
    let ran = lab.run(&["resume", "--no-report", "--store", "begun.db"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    for told in [
        "is only shard 0/2 of a run",
        "`raidlab run plan.json --shard 0/2 --store begun.db`",
    ] {
        assert!(ran.stderr.contains(told), "{}", ran.stderr);
    }
}

/// An older raidlab resumed shards as if they were whole runs.
#[test]
fn a_shard_with_the_experiments_of_another_is_at_fault_and_not_the_store() {
    let (lab, ..) = lab();
    lab.ok(&shard("0/2", "0.db"));
    std::fs::copy(lab.path("0.db"), lab.path("1.db")).expect("a copy");
    edit(&lab.path("1.db"), "UPDATE plan SET shard = 1");
    let ran = lab.run(&["merge", "0.db", "1.db", "--store", "new.db"]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    let told = ["an experiment of 1.db", "help: move it away"];
    assert!(
        told.iter().all(|told| ran.stderr.contains(told)),
        "{}",
        ran.stderr
    );
    assert!(!lab.path("new.db").exists());
}

/// A shard may have been begun on two machines, of which one was lost.
#[test]
fn of_two_begun_files_of_a_shard_that_with_more_experiments_is_taken() {
    let (lab, ..) = lab();
    lab.ok(&shard("0/2", "more.db"));
    std::fs::copy(lab.path("more.db"), lab.path("less.db")).expect("a copy");
    for (name, ended) in [("more.db", 3), ("less.db", 1)] {
        let store = Connection::open(lab.path(name)).expect("a store");
        let sql = format!(
            "UPDATE run SET finished_utc = NULL;
             DELETE FROM ended WHERE experiment NOT IN
             (SELECT experiment FROM ended ORDER BY experiment LIMIT {ended})"
        );
        store.execute_batch(&sql).expect("it can be written");
    }
    for files in [["more.db", "less.db"], ["less.db", "more.db"]] {
        let merge = ["--partial", "--store", "new.db", "--json"];
        let rows = lab.ok(&[&["merge"], &files[..], &merge].concat());
        let alone = lab.ok(&[&["merge", "more.db"], &merge[..]].concat());
        assert_eq!(rows, alone, "{files:?}");
    }
}

#[test]
fn a_plan_may_have_any_name() {
    let (lab, ..) = lab();
    make(&lab, 2, "s");
    let name = OsStr::from_bytes(b"a\xff.json");
    std::fs::rename(lab.path("plan.json"), lab.path(".").join(name)).expect("renamed");
    let run = |words: &[&OsStr]| {
        let ran = lab.command("").args(words).output().expect("it starts");
        assert!(
            ran.status.success(),
            "{}",
            String::from_utf8_lossy(&ran.stderr)
        );
        String::from_utf8(ran.stdout).expect("text")
    };
    let words = |line: &str| -> Vec<OsString> { line.split(' ').map(OsString::from).collect() };
    let with_name = |line: &str| {
        let words = words(line);
        let words: Vec<&OsStr> = (words.iter())
            .map(|word| {
                if word == "PLAN" {
                    name
                } else {
                    word.as_os_str()
                }
            })
            .collect();
        run(&words)
    };
    with_name("merge PLAN s --store new.db");
    let said = with_name("submit slurm PLAN --shards 2 --folder s");
    assert!(said.contains(r"`raidlab merge $'a\xff.json' s"), "{said}");
}

/// Nobody looks for the store of another run.
#[test]
fn what_helps_names_the_store_that_was_named() {
    let (lab, ..) = lab();
    lab.ok(&["run", "plan.json", "--no-report", "--store", "a b.db"]);
    lab.ok(&["run", "./jobs.fio", "--fit", "strict", "--no-report"]);
    let store = ["--store", "a b.db"];
    for (words, code, told) in [
        (
            &["report", "nosuch"][..],
            3,
            "`raidlab report --list --store 'a b.db'` lists",
        ),
        (
            &["explain", "latest", "9"][..],
            2,
            "-short --store 'a b.db'` shows",
        ),
        (&["resume"][..], 2, "-short --store 'a b.db'` shows it"),
        (
            &["compare", "latest", "latest", "--other-store", "raidlab.db"][..],
            3,
            "`raidlab report --list --store 'a b.db'` and `raidlab report --list` list",
        ),
        (
            &["compare", "latest", "latest", "--other-store", "none.db"][..],
            3,
            "`--other-store FILE` names another store",
        ),
    ] {
        let error = lab.fails(code, &[words, &store[..]].concat());
        assert!(error.contains(told), "{error}");
    }
}

/// Files that are not where the run was planned are not gone. Whatever has such a file's name, a pipe
/// for example, is left alone.
#[test]
fn a_run_is_explained_in_another_folder() {
    let (lab, ..) = lab();
    let other = lab.path("other");
    std::fs::create_dir(&other).expect("a new folder");
    let explain = || {
        let words = ["explain", "latest", "1", "--subject", "md", "--store"];
        let mut command = lab.command(&[&words[..], &["../raidlab.db"]].concat());
        let ran = Ran::new(command.current_dir(&other).output().expect("it starts"));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ran.stderr
    };
    let told = "./cut.toml is not here: the run's own copy of it is used\n";
    assert_eq!(explain(), told);
    let pipe = Command::new("mkfifo").arg(other.join("cut.toml")).status();
    assert!(pipe.expect("a program").success());
    assert_eq!(explain(), told);
}

/// An option that another one makes idle is refused.
#[test]
fn what_does_nothing_for_these_machines_is_refused() {
    let lab = Lab::new();
    let host = ["run", "quick", "--on", "host", "--dry-run"];
    for words in [
        &["--machine-file", "m.toml", "--disk", "/dev/sda"][..],
        &["--machine-file", "m.toml", "--elevate", "sudo"],
        &["--elevate", "sudo"],
        &["--disk", "/dev/sda", "--trial-size", "64m"],
        &["--disk", "/dev/sda", "--trial-folder", "."],
    ] {
        let error = lab.fails(2, &[&host[..], words].concat());
        let idle = words[words.len() - 2];
        assert!(error.contains(idle), "{error}");
    }
}
