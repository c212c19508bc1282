//! `raidlab run --shard` and `raidlab merge`: whatever the number of shards, the order of
//! their files and however often they are killed, what is put together is the run that
//! was never cut.

use crate::interrupt::{long_suite, signal};
use crate::lab::{Lab, Ran, SUITE};
use crate::resume::{contents, difference, kill, moment, stores};
use raidlab_store::Store;
use rusqlite::Connection;
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

/// A folder with the suite that is cut, of six experiments, and its plan; with the rows
/// and the store's contents of the run that was never cut.
pub fn lab() -> (Lab, String, Vec<String>) {
    let lab = Lab::new();
    let subjects = r#"subjects = ["md", "gflash", "gmirror", "zfs"]"#;
    let fewer = r#"subjects = ["md", "gflash", "gmirror"]"#;
    lab.write("cut.toml", &SUITE.replace(subjects, fewer));
    lab.ok("run ./cut.toml --plan-only plan.json");
    let rows = lab.ok("run plan.json --no-report --json");
    let whole = contents(&lab.path("raidlab.db"));
    (lab, rows, whole)
}

/// The words that make a shard.
pub fn shard<'a>(which: &'a str, store: &'a str) -> [&'a str; 6] {
    ["run", "plan.json", "--shard", which, "--store", store]
}

/// Makes all shards of so many, in a folder of their own.
pub fn make(lab: &Lab, count: usize, folder: &str) {
    std::fs::create_dir(lab.path(folder)).expect("a new folder");
    for index in 0..count {
        lab.ok(&shard(&format!("{index}/{count}"), folder));
    }
}

#[test]
fn shards_put_together_are_the_run_that_was_never_cut() {
    let (lab, rows, whole) = lab();
    // 16: most parts have nothing to do, and their numbers have two digits.
    for count in [2, 3, 7, 16] {
        let folder = format!("of-{count}");
        make(&lab, count, &folder);
        let store = format!("of-{count}.db");
        let mut words = vec!["merge", "--store", &store, "--json"];
        let mut files: Vec<String> = std::fs::read_dir(lab.path(&folder))
            .expect("a folder")
            .map(|entry| entry.expect("an entry").path().display().to_string())
            .collect();
        assert_eq!(files.len(), count, "one file each, and nothing beside it");
        // By their names, or the last first.
        if count == 3 {
            files.sort();
            words.extend(files.iter().rev().map(String::as_str));
        } else {
            words.extend(["plan.json", &folder]);
        }
        assert_eq!(lab.ok(&words), rows, "{count} shards");
        let is = contents(&lab.path(&store));
        assert!(is == whole, "{count} shards: {}", difference(&is, &whole));
        let again = lab.ok(&["report", "--store", &store, "--json-lines", "-"]);
        assert_eq!(again, lab.ok("report --json-lines -"));
    }
    // The shard's own file shows what it has.
    let first = lab.ok("report --store of-3/shard-0-of-3.db --list");
    assert!(first.contains("short"), "{first}");
    // Beside other runs of a store it stands as one of them.
    lab.ok("merge of-2");
    let runs = lab.ok("report --list");
    assert_eq!(runs.matches("-short").count(), 2, "{runs}");
}

#[test]
fn shards_killed_at_any_moment_and_started_again_give_the_same() {
    let (lab, rows, whole) = lab();
    let folder = stores();
    let begun = Instant::now();
    make(&lab, 2, "never-killed");
    let length = begun.elapsed() / 2;
    let mut kills = 0;
    for index in 0..2 {
        let which = format!("{index}/2");
        let file = folder.path().join(format!("shard-{index}-of-2.db"));
        let name = file.display().to_string();
        let part = folder.path().join(format!("shard-{index}-of-2.db.part"));
        for number in 0..6 {
            let mut command = lab.command(&shard(&which, &name));
            let silent = command.stdout(Stdio::null()).stderr(Stdio::null());
            let child = silent.spawn().expect("it starts");
            kills += u32::from(kill(child, &part, moment(6 * index + number, length)));
        }
        lab.ok(&shard(&which, &name));
        assert!(!part.exists());
        // Whole already: nothing is done again, and what a kill just before the end left goes.
        let bytes = std::fs::read(&file).expect("it is there");
        let lock = part.with_extension("part.lock");
        std::fs::write(&lock, "process 1").expect("it can be written");
        let ran = lab.run(&shard(&which, &name));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert!(!lock.exists());
        assert!(ran.stderr.contains("is whole already"), "{}", ran.stderr);
        assert!(std::fs::read(&file).expect("it is there") == bytes);
    }
    assert!(kills > 0, "kills come too late");
    let folder = folder.path().display().to_string();
    let merged = lab.ok(&["merge", &folder, "--store", "merged.db", "--json"]);
    assert_eq!(merged, rows);
    let is = contents(&lab.path("merged.db"));
    assert!(is == whole, "{}", difference(&is, &whole));
}

/// Makes a shard's file what another machine would have written.
pub fn edit(path: &Path, sql: &str) {
    let store = Connection::open(path).expect("a store");
    store.execute_batch(sql).expect("it can be written");
    drop(store);
    let mut store = Store::open(path).expect("a store");
    let run = store.runs().expect("its run")[0].id;
    store.seal(run).expect("it can be written");
    store.move_to(path).expect("it is one file");
}

#[test]
fn what_does_not_belong_together_is_refused_by_name() {
    let (lab, ..) = lab();
    make(&lab, 2, "s");
    let copy = |from: &str, to: &str| {
        std::fs::copy(lab.path(from), lab.path(to)).expect("copied");
    };
    let (zero, one) = ("s/shard-0-of-2.db", "s/shard-1-of-2.db");
    let refused = |files: &[&str], words: &[&str]| {
        let error = lab.fails(3, &[&["merge", "--store", "new.db"], files].concat());
        for word in words {
            assert!(error.contains(word), "no {word} in {error}");
        }
    };
    // A gap, with the command that makes what is missing.
    let command = "`raidlab run plan.json --shard 1/2 --store s/shard-1-of-2.db`";
    refused(
        &["plan.json", zero],
        &["of 2 shards there is no whole file of 1/2", command],
    );
    let beside = "--shard 1/2 --store s/shard-1-of-2.db`";
    refused(&[zero], &["whole file of 1/2", beside]);
    for (name, words) in [
        ("a b.db", &["--store", "a b.db"][..]),
        ("c d.db", &["--store=c d.db"][..]),
    ] {
        lab.ok(&[&["run", "plan.json", "--shard", "0/2"], words].concat());
        refused(&[name], &["--store", "shard-1-of-2.db`"]);
    }
    // A shard that the run went into would be none any more.
    let into = lab.fails(2, &["merge", zero, one, "--store", one]);
    assert!(into.contains("a shard and --store both go to"), "{into}");
    // A double with the same bytes is none; with other bytes it is refused.
    copy(one, "double.db");
    lab.ok(&[
        "merge",
        zero,
        one,
        "double.db",
        "--store",
        "double-merged.db",
    ]);
    edit(
        &lab.path("double.db"),
        "UPDATE measurement SET total_ios = total_ios + 1",
    );
    let both = [one, "double.db", "both shard 1/2", "differ in their rows"];
    refused(&[zero, one, "double.db"], &both);
    // Another plan, another version, another kernel, another cut.
    lab.ok("run ./cut.toml --seed 7 --shard 1/2 --store plan.db");
    refused(&[zero, "plan.db"], &["plan.db is of another plan", zero]);
    lab.ok("run ./cut.toml --seed 7 --plan-only other.json");
    refused(
        &["other.json", zero, one],
        &["another plan than other.json"],
    );
    copy(one, "version.db");
    edit(
        &lab.path("version.db"),
        "UPDATE run SET raidlab_version = '0.0.9'",
    );
    refused(&[zero, "version.db"], &["version.db is of raidlab 0.0.9"]);
    for (name, kernel) in [("k0.db", "6.12.1"), ("k1.db", "6.12.2")] {
        copy(if name == "k0.db" { zero } else { one }, name);
        let fact = format!(
            "INSERT INTO observation (scope_id, name, value, unit, source)
             SELECT min(scope_id), 'guest.kernel', '{kernel}', '', '' FROM scope"
        );
        edit(&lab.path(name), &fact);
    }
    refused(
        &["k0.db", "k1.db"],
        &["k1.db has guest.kernel `6.12.2`", "k0.db has `6.12.1`"],
    );
    // Unlike processors are told, and kept with the run.
    for (name, kind) in [("p0.db", "x86-64-v3, A"), ("p1.db", "x86-64-v4, B")] {
        copy(if name == "p0.db" { zero } else { one }, name);
        let fact = format!(
            "INSERT INTO observation (scope_id, name, value, unit, source)
             SELECT min(scope_id), 'guest.processor', '{kind}', '', '' FROM scope"
        );
        edit(&lab.path(name), &fact);
    }
    lab.ok("merge p0.db p1.db --store unlike.db");
    let report = lab.ok("report --store unlike.db");
    assert!(
        report.contains("elsewhere: x86-64-v3, A; x86-64-v4, B."),
        "{report}"
    );
    lab.ok(&shard("1/3", "third.db"));
    refused(&[zero, "third.db"], &["third.db is shard 1/3", "shard 0/2"]);
    // No shards: a store, another file, nothing, a folder without any.
    refused(&[zero, "raidlab.db"], &["raidlab.db is not a shard"]);
    refused(&[zero, "cut.toml"], &["cut.toml is not a store"]);
    refused(&[zero, "nosuch.db"], &["nosuch.db"]);
    std::fs::create_dir(lab.path("empty")).expect("a new folder");
    refused(&["empty"], &["no shard in empty"]);
    // A broken file.
    let mut bytes = std::fs::read(lab.path(one)).expect("it is there");
    bytes.truncate(bytes.len() / 2);
    std::fs::write(lab.path("broken.db"), bytes).expect("written");
    refused(
        &[zero, "broken.db"],
        &["broken.db is damaged", "move it away"],
    );
    std::fs::write(lab.path("broken.db"), "").expect("written");
    refused(&[zero, "broken.db"], &["broken.db is not a shard"]);
    // What has the name of a shard is not written over.
    let error = lab.fails(3, &shard("0/2", "third.db"));
    assert!(
        error.contains("third.db is there, and is not shard 0/2"),
        "{error}"
    );
    for (which, why) in [("2/2", "the last of 2 is 1/2"), ("1", "0/8 is the first")] {
        let error = lab.fails(2, &shard(which, "s"));
        assert!(error.contains(why), "{error}");
    }
}

/// Where `PATH` leads nowhere the kernel bench lacks the programs that its guests need. A
/// part that boots no guest does not look for them.
#[test]
fn a_part_of_the_kernel_bench_without_experiments_needs_no_programs() {
    let (lab, _, _) = lab();
    let kernel = lab.path("cache/raidlab/kernels/6.12");
    std::fs::create_dir_all(&kernel).expect("made");
    let about = r#"{"name": "6.12", "release": "6.12.1", "source": "a test", "zfs": null,
        "shared_memory": true, "seccomp": false}"#;
    std::fs::write(kernel.join("kernel.json"), about).expect("written");
    std::fs::write(kernel.join("linux"), "no program").expect("written");
    let on_kernel = [
        "--on",
        "kernel",
        "--subject",
        "md",
        "--member-size",
        "whole",
    ];
    let plan = ["run", "./cut.toml", "--plan-only", "plan.json"];
    lab.ok(&[&plan[..], &on_kernel].concat());
    let without_programs = |words: &[&str]| {
        let output = lab.command(words).env("PATH", "").output();
        Ran::new(output.expect("it starts"))
    };
    let ran = without_programs(&shard("0/2", "0.db"));
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("not installed: "), "{}", ran.stderr);
    let ran = without_programs(&shard("1/2", "1.db"));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(lab.path("1.db").exists());
}

/// What is only begun is there all the same: nobody looks for another folder.
#[test]
fn a_shard_that_is_only_begun_is_told() {
    let lab = Lab::new();
    std::fs::create_dir(lab.path("a b")).expect("a new folder");
    lab.write("a b/shard-1-of-2.db.part", "");
    for (words, told) in [
        (
            &["merge", "a b"][..],
            [
                "none of the shards in a b is whole: 1 shard is only begun",
                "`raidlab status 'a b'` says how far they are; `--partial` takes",
            ],
        ),
        (
            &["merge", "a b", "--partial"][..],
            ["1 shard is only begun", "there is no row in them yet"],
        ),
        (
            &["merge", "a b/shard-1-of-2.db"][..],
            [
                "shard-1-of-2.db is not there: the shard is only begun, in a b/shard-1-of-2.db.part",
                "start it again with its command",
            ],
        ),
        // The remedy is one also where this option was given already.
        (
            &["merge", "a b/shard-1-of-2.db", "--partial"][..],
            [
                "start it again with its command",
                "or name 'a b/shard-1-of-2.db.part' with `--partial`",
            ],
        ),
    ] {
        let error = lab.fails(3, words);
        let all = told.iter().all(|told| error.contains(told));
        assert!(all, "{words:?}: {error}");
    }
}

/// Its rows are not left out without a word.
#[test]
fn a_begun_shard_that_cannot_be_read_is_refused_by_name() {
    let (lab, ..) = lab();
    std::fs::create_dir(lab.path("s")).expect("a new folder");
    lab.ok(&shard("1/3", "s"));
    lab.write("s/shard-0-of-3.db.part", "no store");
    let merge = ["merge", "s", "--store", "part.db", "--partial"];
    let error = lab.fails(3, &merge);
    assert!(
        error.contains("s/shard-0-of-3.db.part is not a store"),
        "{error}"
    );
    assert!(!lab.path("part.db").exists());
}

#[test]
fn a_part_says_that_it_is_one_and_the_rest_can_be_done() {
    let (lab, rows, whole) = lab();
    std::fs::create_dir(lab.path("s")).expect("a new folder");
    lab.ok(&shard("1/3", "s"));
    let merge = ["merge", "s", "--store", "part.db", "--partial"];
    let ran = lab.run(&merge);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("2 shards are missing"),
        "{}",
        ran.stderr
    );
    let missing = "4 of 6 experiments are missing; shards that were not whole: 0/3, 2/3";
    let store = ["--store", "part.db"];
    let text = lab.ok(&[&["report"], &store[..]].concat());
    assert!(
        text.contains("Only a part") && text.contains(missing),
        "{text}"
    );
    let list = lab.ok(&[&["report", "--list"], &store[..]].concat());
    assert!(list.contains("not to its end"), "{list}");
    let page = lab.ok(&[&["report", "--html", "-"], &store[..]].concat());
    assert!(page.contains("4 of 6 experiments are missing"));
    let markdown = lab.ok(&[&["report", "--markdown", "-"], &store[..]].concat());
    assert!(markdown.contains("The run was not finished"));
    for option in ["--csv", "--json-lines"] {
        let ran = lab.run(&[&["report", option, "-"], &store[..]].concat());
        assert!(ran.stderr.contains("not come to its end"), "{}", ran.stderr);
    }
    // How far the shards are, by their files alone.
    lab.write("s/shard-0-of-3.db.part", "being written elsewhere");
    lab.write("s/shard-2-of-3.db", "no store");
    let said = lab.ok("status s");
    for words in [
        "0/3  begun  last written",
        "2/3  broken  ",
        "is not a store",
    ] {
        assert!(said.contains(words), "no {words} in {said}");
    }
    assert!(
        said.ends_with("of 3 shards 1 are whole, 1 begun, 0 missing, 1 broken\n"),
        "{said}"
    );
    let said = lab.ok("status s --json");
    assert!(said.contains(r#""detail":"2 experiments, "#), "{said}");
    std::fs::remove_file(lab.path("s/shard-2-of-3.db")).expect("it is there");
    assert!(lab.ok("status s").contains("2/3  missing\n"));
    let resumed = lab.ok(&[&["resume", "--no-report", "--json"], &store[..]].concat());
    assert_eq!(resumed, rows);
    let is = contents(&lab.path("part.db"));
    assert!(is == whole, "{}", difference(&is, &whole));
}

#[test]
fn a_stopped_shard_says_that_it_is_to_be_started_again() {
    let lab = Lab::new();
    lab.write("long.toml", &long_suite(1).replace("16g", "3t"));
    let words = [
        "run",
        "./long.toml",
        "--fit",
        "strict",
        "--without",
        "leaps",
    ];
    let words = [&words[..], &["--shard", "0/1"]].concat();
    for name in ["TERM", "USR1"] {
        let mut command = lab.command(&words);
        let piped = command.stdout(Stdio::null()).stderr(Stdio::piped());
        let child = piped.spawn().expect("it starts");
        let lock = lab.path("shard-0-of-1.db.part.lock");
        // It listens before it begins.
        while !lock.exists() {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        signal(&child, name);
        let ran = Ran::new(child.wait_with_output().expect("it ends"));
        assert_eq!(ran.code, 75, "{}", ran.stderr);
        assert!(
            ran.stderr.contains("give it longer, and start it again"),
            "{}",
            ran.stderr
        );
    }
    let begun = Instant::now();
    let ran = lab.run(&[&words[..], &["--stop-after", "1s"]].concat());
    assert_eq!(ran.code, 75, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("--stop-after is over"),
        "{}",
        ran.stderr
    );
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
    assert!(!lab.path("shard-0-of-1.db").exists());
}

/// Whoever has a shard's file open keeps its maker from giving it its name.
#[test]
fn whoever_finds_a_shard_locked_does_not_open_it() {
    let lab = Lab::new();
    let lock = std::fs::File::create(lab.path("s.db.part.lock")).expect("a file");
    lock.try_lock().expect("it is nobody's");
    let words = ["run", "./short.toml", "--shard", "0/2", "--store", "s.db"];
    let error = lab.fails(1, &words);
    assert!(error.contains("goes on"), "{error}");
    assert!(!lab.path("s.db.part").exists());
}

/// What `--print` says is typed into a shell, also where Slurm has several clusters and its
/// `sbatch` prints the number of a job with the cluster behind it.
#[test]
fn what_would_be_submitted_can_be_typed() {
    let (lab, _, _) = lab();
    let words = ["submit", "slurm", "plan.json", "--shards", "2"];
    let printed = lab.ok(&[&words[..], &["--folder", "many", "--print"]].concat());
    lab.write(
        "sbatch",
        "#!/bin/sh\necho \"$*\" >>told\necho '12;cluster'\n",
    );
    let script = format!("chmod +x sbatch; PATH=.:$PATH\n{printed}");
    let ran = std::process::Command::new("sh")
        .args(["-c", &script])
        .current_dir(lab.path("."))
        .status();
    assert!(ran.expect("a shell").success(), "{printed}");
    let told = std::fs::read_to_string(lab.path("told")).expect("two commands");
    assert!(
        told.contains("--dependency=afterok:12 --parsable"),
        "{told}"
    );
    make(&lab, 2, "all of it");
    let folder = ["--folder", "all of it", "--store", "one run.db"];
    let said = lab.ok(&[&words[..], &folder].concat());
    let command = "`raidlab merge plan.json 'all of it' --store 'one run.db'`";
    assert!(said.contains(command), "{said}");
}
