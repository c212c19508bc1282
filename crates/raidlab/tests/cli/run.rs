//! `raidlab run`: what it gives, and that it gives the same every time.

use crate::lab::{Lab, ROWS, SUITE};
use raidlab_store::Store;
use serde_json::Value;

fn rows(stdout: &str) -> Vec<Value> {
    let lines = stdout.lines();
    lines
        .map(|line| serde_json::from_str(line).expect("a JSON object"))
        .collect()
}

#[test]
fn the_same_seed_gives_the_same_bytes_at_any_number_of_threads() {
    let lab = Lab::new();
    let run = |threads: &str, seed: &str| {
        lab.ok(&[
            "run",
            "./short.toml",
            "--json",
            "--no-report",
            "--threads",
            threads,
            "--seed",
            seed,
        ])
    };
    let one = run("1", "7");
    assert_eq!(rows(&one).len(), 4 * 2 * ROWS, "4 subjects, 2 fits");
    assert_eq!(one, run("2", "7"));
    assert_eq!(one, run("8", "7"));
    assert_ne!(one, run("2", "8"));
}

/// The rows' input/output operations per second, of each repetition.
fn rates(rows: &[Value]) -> Vec<Vec<f64>> {
    let mut repetitions: Vec<Vec<f64>> = Vec::new();
    for row in rows {
        let repetition = row["repetition"].as_u64().unwrap_or(0);
        let repetition = usize::try_from(repetition).expect("a small number");
        repetitions.resize(repetitions.len().max(repetition + 1), Vec::new());
        // What an array does in the background has none.
        repetitions[repetition].extend(row["iops"].as_f64());
    }
    repetitions
}

#[test]
fn what_a_run_leaves_out_is_said_and_nothing_else() {
    let lab = Lab::new();
    let run = |suite: &str, more: &str| {
        lab.ok(&format!(
            "run {suite} --subject md --quick --no-report {more}"
        ))
    };
    let sets = "Only the first parameter set of the disks was used.";
    let cache = "2 of 3 jobs say no `direct=1`.";
    let whole = run("./short.toml", "");
    assert!(
        whole.contains(sets) && !whole.contains("page cache"),
        "{whole}"
    );
    let one = run("./short.toml", "--fit strict");
    assert!(!one.contains(sets), "{one}");
    let buffered = SUITE.replacen("--direct=1", "--direct=0", 1);
    let buffered = buffered.replacen("--runtime=1 --direct=1", "--runtime=1", 1);
    lab.write("buffered.toml", &buffered);
    let said = run("./buffered.toml", "");
    assert!(said.contains(cache), "{said}");
}

#[test]
fn a_repetition_finds_the_disks_at_other_angles() {
    let lab = Lab::new();
    let text = std::fs::read_to_string(lab.path("short.toml")).expect("it is there");
    let text = text.replacen("schema = 1", "schema = 1\nrepetitions = 2", 1);
    lab.write("twice.toml", &text);
    let run = |suite: &str| {
        let words = format!("run {suite} --json --no-report --subject md --fit strict");
        rates(&rows(&lab.ok(&words)))
    };
    let (once, twice) = (run("./short.toml"), run("./twice.toml"));
    assert_eq!((once.len(), twice.len()), (1, 2));
    assert_eq!(once[0], twice[0], "the first one is that of the seed");
    assert_ne!(twice[0], twice[1]);
}

#[test]
fn subjects_are_modelled_on_the_host_that_is_asked_for() {
    let lab = Lab::new();
    let hosts = lab.ok("subjects --hosts");
    assert!(hosts.contains("kernel-bench"), "{hosts}");
    lab.write(
        "slow.toml",
        "schema = 1\n[[host]]\nname = \"slow\"\ntitle = \"A slow one\"\nturnaround = \"100ms\"\n\
         tags = 31\nmaximum_request = \"512k\"\nqueue = \"libaio\"\nmemory = \"16g\"\n",
    );
    let run = |more: &str| {
        let words = "run ./short.toml --json --no-report --subject md";
        lab.run(&format!("{words} {more}"))
    };
    let total = |stdout: &str| -> f64 { rates(&rows(stdout)).concat().iter().sum() };
    let own = total(&run("").stdout);
    let slow = run("--model-host ./slow.toml");
    assert_eq!(slow.code, 0, "{}", slow.stderr);
    assert!(total(&slow.stdout) < own * 0.5, "{}", slow.stdout);
    let same = total(&run("--model-host linux-3.16").stdout);
    assert!((same - own).abs() < f64::EPSILON * own, "{same} {own}");
    let unknown = run("--model-host plan9");
    assert_eq!(unknown.code, 2, "{}", unknown.stderr);
    assert!(unknown.stderr.contains("linux-3.16"), "{}", unknown.stderr);
    let real = run("--model-host linux-3.16 --on host");
    assert_eq!(real.code, 2, "{}", real.stderr);
    assert!(real.stderr.contains("--on model"), "{}", real.stderr);
}

#[test]
fn json_rows_say_at_least_what_was_promised() {
    let lab = Lab::new();
    let ran = lab.run("run ./short.toml --json --subject gmirror");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let rows = rows(&ran.stdout);
    assert_eq!(rows.len(), 2 * ROWS);
    let (background, rows): (Vec<_>, Vec<_>) =
        rows.iter().partition(|row| row["job"] == "background");
    let operations: Vec<_> = background.iter().map(|row| &row["op"]).collect();
    assert_eq!(operations, ["degraded", "recovery"].repeat(2));
    for row in &background {
        assert!(row["runtime_ns"].as_f64().expect("a number") > 0.0);
    }
    for row in &rows {
        assert_eq!(row["bench"], "model");
        assert_eq!(row["subject"], "gmirror");
        assert!(row["job"].is_string());
        assert!(row["op"] == "read" || row["op"] == "write");
        assert!(row["iops"].as_f64().expect("a number") > 0.0);
        assert!(row["bytes_per_second"].as_f64().expect("a number") > 0.0);
    }
    let resync = rows.last().expect("a row");
    assert!(resync["sync_percent_start"].as_f64().expect("a number") > 0.0);
    let said = ran.stderr;
    assert!(
        said.contains("raidlab.db") && said.contains("raidlab-report.html"),
        "{said}"
    );
}

#[test]
fn people_get_tables_a_page_and_a_store() {
    let lab = Lab::new();
    let text = lab.ok("run ./short.toml --subject md --subject zfs");
    for expected in [
        "A short one",
        "Results",
        "During a sync",
        "md",
        "zfs",
        "raidlab-report.html",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let page = std::fs::read_to_string(lab.path("raidlab-report.html")).expect("a page");
    assert!(page.contains("</html>"));
    let store = Store::open_existing(lab.path("raidlab.db")).expect("a store");
    let run = store.run_by_name("latest").expect("a run");
    assert_eq!(run.measurements, 2 * 2 * ROWS as u64);
    assert!(run.run.finished.is_some());
    let command = "raidlab run ./short.toml --subject md --subject zfs";
    assert_eq!(run.run.command_line, command);
    let settings = store.settings(run.id).expect("settings");
    assert!(
        settings
            .iter()
            .any(|setting| setting.scope == "disk wd4000fyyz joint")
    );
    let mut unique = settings.clone();
    unique.sort();
    unique.dedup();
    assert_eq!(unique.len(), settings.len(), "each setting once");
}

#[test]
fn the_comparison_of_2015_brings_its_figures_and_what_was_fitted() {
    let lab = Lab::new();
    let text = lab.ok("run mirror-2015 --subject md --quick --no-report");
    assert!(
        text.contains("Published, ours, and the error of ours"),
        "{text}"
    );
    let store = Store::open_existing(lab.path("raidlab.db")).expect("a store");
    let run = store.run_by_name("latest").expect("a run");
    assert_eq!(
        run.measurements,
        30 + 2,
        "29 jobs, one of them mixed, one fit; the rebuild and the time without a member"
    );
    let notes = store.notes(run.id).expect("notes");
    assert!(
        notes
            .iter()
            .any(|note| note.class == "random-read" && note.declared_percent.is_some())
    );
    assert!(notes.iter().any(|note| note.title == "A first look"));
    drop(store);
    assert_eq!(lab.files(), ["jobs.fio", "raidlab.db", "short.toml"]);
}

/// A subject that can lose no member does nothing of a suite that begins with taking one out:
/// its column is missing, and the run says why.
#[test]
fn a_subject_without_a_job_is_told() {
    let lab = Lab::new();
    let four = r#""md", "gflash", "gmirror", "zfs""#;
    let suite = SUITE.replace(four, r#""md", "md-raid0""#);
    let (head, steps) = suite.split_at(suite.find("[[step]]").expect("a step"));
    let taken_out = steps.split("[[step]]").skip(3);
    let taken_out: String = taken_out.map(|step| format!("[[step]]{step}")).collect();
    lab.write("out.toml", &format!("{head}{taken_out}"));
    let ran = lab.run("run ./out.toml --quick --no-report");
    let words = "md-raid0: all jobs of the suite";
    let told = format!("left out: {words}");
    assert!(ran.stderr.contains(&told), "{}", ran.stderr);
    assert!(ran.stdout.contains(words), "{}", ran.stdout);
    assert!(!ran.stderr.contains("left out: md:"), "{}", ran.stderr);

    // By itself it would measure nothing.
    let error = lab.fails(1, "run ./out.toml --subject md-raid0 --no-report");
    assert!(error.contains("nothing of suite"), "{error}");
    assert!(error.contains(words), "{error}");

    // Nor are those that it lacks passed over where it does the first ones.
    lab.write("short.toml", &suite);
    let ran = lab.run("run ./short.toml --quick --no-report");
    let words = "md-raid0: the suite's last";
    assert!(ran.stderr.contains(words), "{}", ran.stderr);
    assert!(ran.stdout.contains(words), "{}", ran.stdout);
}

/// An option that only another bench looks at is refused, though its value may be the usual one.
#[test]
fn options_of_other_benches_are_refused() {
    let lab = Lab::new();
    let model = [
        ("--kernel", "6.12"),
        ("--memory", "1g"),
        ("--patience", "60"),
        ("--storage-memory", "1g"),
        ("--storage-folder", "/var/tmp"),
        ("--allow-target", "nbd://example.invalid/x"),
        ("--trial-size", "64m"),
    ];
    let host = [
        ("--threads", "1"),
        ("--seed", "7"),
        ("--disk-commands", "commands"),
        ("--patience", "60"),
    ];
    for (bench, options) in [("model", &model[..]), ("host", &host[..])] {
        for (option, value) in options {
            let words = format!("run quick --dry-run --on {bench} {option} {value}");
            let error = lab.fails(2, &words);
            let expected = format!("`{option}` does nothing on the {bench} bench");
            assert!(error.contains(&expected), "{error}");
        }
    }
}

/// A subject that only real systems build is not just unknown to the model.
#[test]
fn what_builds_a_subject_without_a_model_is_told() {
    let lab = Lab::new();
    let error = lab.fails(3, "run ./short.toml --subject zfs-raidz1");
    assert!(error.contains("`--on kernel`"), "{error}");
}

#[test]
fn a_job_file_runs_on_a_mirror() {
    let lab = Lab::new();
    let lines = lab.ok("run ./jobs.fio --json --fit strict");
    let rows = rows(&lines);
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0]["subject"], "md");
    assert_eq!(rows[0]["queue_depth"], 8);
    assert_eq!(rows[0]["members"].as_array().expect("members").len(), 2);
    assert_eq!(rows[1]["op"], "write");
}

#[test]
fn runs_of_the_same_second_get_names_of_their_own() {
    let lab = Lab::new();
    for _ in 0..3 {
        lab.ok("run ./jobs.fio --json --no-report --fit strict");
    }
    let store = Store::open_existing(lab.path("raidlab.db")).expect("a store");
    assert_eq!(store.runs().expect("runs").len(), 3);
}

#[test]
fn a_dry_run_says_what_it_would_do_and_does_nothing() {
    let lab = Lab::new();
    let before = lab.files();
    let text = lab.ok("run ./short.toml --dry-run");
    for expected in [
        "gflash",
        "remove member 1",
        "seed",
        "strict, joint",
        "32 rows",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert_eq!(lab.files(), before);
}

#[test]
fn features_that_are_left_out_change_the_figures_and_are_remarked() {
    let lab = Lab::new();
    let run = |extra: &str| {
        let words = "run ./short.toml --json --no-report --fit strict --subject md";
        lab.ok(&format!("{words} {extra}"))
    };
    let (with, without) = (run(""), run("--without rpo"));
    let iops = |text: &str| rows(text)[3]["iops"].as_f64().expect("a number");
    assert!(
        iops(&without) < 0.9 * iops(&with),
        "the drive sorts 32 reads"
    );
    let text = lab.ok("report");
    let store = Store::open_existing(lab.path("raidlab.db")).expect("a store");
    let run = store.run_by_name("latest").expect("a run");
    let notes = store.notes(run.id).expect("notes");
    assert!(notes[0].statement.contains("rpo"), "{text}");
}

/// One line for each command of each member, in the order in which they ended, and as
/// many reads of a member as its rows count.
#[test]
fn the_disks_commands_can_be_had() {
    let lab = Lab::new();
    let run = |on: &str| {
        lab.run(&[
            "run",
            "./short.toml",
            "--on",
            on,
            "--subject",
            "gmirror",
            "--fit",
            "strict",
            "--without",
            "leaps",
            "--no-report",
            "--disk-commands",
            "commands",
        ])
    };
    let ran = run("model");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let text =
        std::fs::read_to_string(lab.path("commands/gmirror.strict.1.csv")).expect("it was written");
    let mut lines = text.lines();
    let head = "arrived_ns,completed_ns,disk,operation,first_sector,sectors,succeeded";
    assert_eq!(lines.next(), Some(head));
    let commands: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    let ended = |command: &Vec<&str>| command[1].parse::<u64>().expect("nanoseconds");
    assert!(commands.is_sorted_by_key(ended));
    for disk in ["0", "1"] {
        let read = |command: &&Vec<&str>| command[2] == disk && command[3] == "read";
        assert!(commands.iter().filter(read).count() > 100, "disk {disk}");
    }
    let refused = run("host");
    assert_eq!(refused.code, 2, "{}", refused.stderr);
}

/// A suite whose first job only prepares, on a part of each disk.
const PREPARES: &str = r#"schema = 1
name = "prepares"
title = "prepares"
description = "A job that prepares, and one that is measured."
source = "this test"
disks = [
    { disk = "wd4000fyyz", start = "1t", size = "10g" },
    { disk = "wd4000fyyz", start = "1t", size = "10g" },
]
subjects = ["md"]
published = "./figures.toml"

[[step]]
job = "fill"
title = "fill 8 MiB"
class = "fill"
prepares = true
fio = "--rw=write --bs=1m --size=8m --direct=1"

[[step]]
job = "read"
title = "random read 4 KiB"
class = "random-read"
fio = "--rw=randread --bs=4k --filesize=8m --time_based --runtime=1 --direct=1"
"#;

const FIGURES: &str = r#"schema = 1
name = "figures"
title = "Figures"
source = "this test"
disks = ["wd4000fyyz", "wd4000fyyz"]

[[class]]
id = "random-read"
title = "Reads"
jobs = ["read"]
fitted_on = "nothing"
better = "more"
accuracy = [{ percent = 5.0 }]

[[figures]]
subject = "md"
cell = [{ job = "read", op = "read", article = 100 }]
"#;

fn prepares() -> Lab {
    let lab = Lab::new();
    lab.write("prepares.toml", PREPARES);
    lab.write("figures.toml", FIGURES);
    lab
}

#[test]
fn what_only_prepares_has_no_row() {
    let lab = prepares();
    let suite = "run ./prepares.toml --fit strict";
    let planned = lab.ok(&format!("{suite} --dry-run"));
    assert!(planned.contains("1 experiment with the parameter set strict; 1 row; nothing"));
    let found = rows(&lab.ok(&format!("{suite} --json --no-report")));
    let jobs: Vec<&Value> = found.iter().map(|row| &row["job"]).collect();
    assert_eq!(jobs, ["read"]);
    // Who asks for it is answered all the same.
    let explained = lab.ok("explain latest fill --json");
    assert!(explained.contains("\"job\":\"fill\""), "{explained}");
}

/// Another part of the same disk is another disk, to figures.
#[test]
fn figures_are_of_a_part_of_a_disk() {
    let lab = prepares();
    let published = |disk: &str| {
        let words = "run ./prepares.toml --fit strict --json --no-report";
        let found = rows(&lab.ok(&format!("{words} {disk}")));
        found[0]["published_figures"].as_array().map_or(0, Vec::len)
    };
    assert_eq!(published(""), 1);
    assert_eq!(published("--disk wd4000fyyz"), 0);
}

#[test]
fn more_repetitions_than_anybody_waits_for_are_refused() {
    let lab = prepares();
    let words = "run ./prepares.toml --repetitions 4000000000";
    let error = lab.fails(2, words);
    assert!(error.contains("at most 1000"), "{error}");
}
