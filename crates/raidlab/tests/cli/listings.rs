//! What `suites`, `subjects`, `disks`, `report` and `fit` show.

use crate::lab::{JOB_ROWS, Lab, ROWS};
use serde_json::Value;

#[test]
fn help_of_run() {
    insta::assert_snapshot!(Lab::new().ok("run --help"));
}

#[test]
fn help() {
    insta::assert_snapshot!(Lab::new().ok("--help"));
}

#[test]
fn lists() {
    let lab = Lab::new();
    for (folder, but) in [
        ("suites", ""),
        ("subjects", "hosts"),
        ("disks", ""),
        ("processors", ""),
    ] {
        let shown = lab.ok(&[folder]);
        let names = shown
            .lines()
            .skip(2)
            .filter_map(|line| line.split(' ').nth(1));
        let files = raidlab_data::entries(folder).iter().map(|entry| entry.name);
        let files = files.filter(|name| *name != but);
        assert!(names.eq(files), "{shown}");
    }
    let first = |folder: &str, name: &str| {
        let shown = lab.ok(&[folder]);
        let mut lines = shown.lines();
        let heading = lines.next().unwrap_or_default().to_owned();
        let row = lines.find(|line| line.starts_with(&format!(" {name} ")));
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        format!("{} | {}", words(&heading), words(row.unwrap_or_default()))
    };
    insta::assert_snapshot!(first("suites", "md-levels"), @"suite jobs title | md-levels 13 md at every level: RAID 0, 1, 5, 6, 10");
    insta::assert_snapshot!(first("subjects", "md"), @"subject kind host title | md mirror linux-3.16 md, Linux 3.16");
    insta::assert_snapshot!(first("processors", "nas"), @"processor cores speed title | nas 2 0.3 A small NAS box: two cores of 1.6 GHz");
    insta::assert_snapshot!(first("disks", "wd4000fyyz"), @"disk model sets fitted title | wd4000fyyz WDC WD4000FYYZ-01UL1B2 strict, joint yes Western Digital Re 4 TB (7200 rpm, 64 MB cache)");
}

#[test]
fn a_name_shows_everything_with_its_source() {
    let lab = Lab::new();
    let suite = lab.ok("suites mirror-2015");
    assert!(suite.contains("step  21   remove member 1"), "{suite}");
    let subject = lab.ok("subjects md");
    for expected in ["read_policy", "read_balance", "turnaround", "linux-3.16"] {
        assert!(subject.contains(expected), "{expected}: {subject}");
    }
    let disk = lab.ok("disks wd4000fyyz --set joint");
    for expected in ["set joint (shown below)", "rate_curve", "source"] {
        assert!(disk.contains(expected), "{expected}: {disk}");
    }
}

#[test]
fn files_that_are_printed_are_good_starts() {
    let lab = Lab::new();
    let suite = lab.ok("suites mirror-2015 --toml");
    lab.write("own-suite.toml", &suite);
    assert_eq!(lab.ok("suites ./own-suite.toml --toml"), suite);
    let subject = lab.ok("subjects zfs --toml");
    lab.write("own-subject.toml", &subject);
    let disk = lab.ok("disks wd4000fyyz --toml");
    lab.write("own-disk.toml", &disk);
    let processor = lab.ok("processors nas --toml");
    lab.write("own-processor.toml", &processor);
    let shown = lab.ok("processors ./own-processor.toml");
    assert!(shown.contains("clone_ns"), "{shown}");
    let measured = lab.ok("processors nas --calibrate mine.toml");
    for name in ["xor_bytes_per_second", "sha256_bytes_per_second"] {
        assert!(measured.contains(name), "{measured}");
    }
    let shown = lab.ok("processors ./mine.toml");
    // What is taken over is as a core of speed 1 would have it: 200 ns at 0.3.
    let clone = shown.lines().find(|line| line.contains(" clone_ns "));
    assert!(clone.is_some_and(|line| line.contains("666.6")), "{shown}");
    let plan = lab
        .ok("run ./own-suite.toml --subject ./own-subject.toml --disk ./own-disk.toml --dry-run");
    assert!(
        plan.contains("on ./own-disk.toml, ./own-disk.toml"),
        "{plan}"
    );
}

#[test]
fn runs_are_listed_shown_exported_and_deleted() {
    let lab = Lab::new();
    let arguments = "run ./short.toml --json --no-report --fit strict";
    let printed = lab.ok(arguments);
    let list = lab.ok("report --list");
    let name = list
        .lines()
        .nth(2)
        .and_then(|line| line.split_whitespace().next());
    let name = name.expect("a run").to_owned();
    assert!(name.ends_with("Z-short"), "{name}");
    assert!(lab.ok(&["report", &name]).contains("A short one"));

    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let exported = lab.ok("report --json-lines -");
    assert_eq!(sorted(&exported), sorted(&printed));
    let csv = lab.ok("report --csv -");
    assert_eq!(csv.lines().count(), 1 + 4 * ROWS);
    lab.ok("report --members-csv members.csv --html page.html");
    let members = std::fs::read_to_string(lab.path("members.csv")).expect("written");
    assert_eq!(members.lines().count(), 1 + 4 * JOB_ROWS * 2);
    let page = std::fs::read_to_string(lab.path("page.html")).expect("written");
    assert!(page.contains("</html>"));

    let deleted = lab.ok(&["report", "--delete", &name]);
    assert!(deleted.contains(&name), "{deleted}");
    let message = lab.fails(3, &["report", &name]);
    assert!(
        message.contains("holds no runs") && message.contains("raidlab run"),
        "{message}"
    );
    lab.fails(3, "report --list");
}

#[test]
fn a_check_compares_every_fact() {
    let lab = Lab::new();
    let text = lab.ok("fit --check --seconds 2");
    assert!(
        text.contains("read-8g-qd32") && text.contains("average-seek"),
        "{text}"
    );
    let line = lab.ok("fit --check --seconds 2 --json --set joint");
    let value: Value = serde_json::from_str(&line).expect("a JSON object");
    assert_eq!(value["set"], "joint");
    assert!(value["facts"].as_array().expect("facts").len() > 5);
    assert_eq!(value.get("fit"), None);
}

#[test]
fn a_fit_prints_parameters_for_the_preset_and_is_repeatable() {
    let lab = Lab::new();
    // One parameter and one fact, so that it takes a moment only.
    lab.write(
        "facts.toml",
        r#"schema = 1
disk = "wd4000fyyz"

[[free]]
parameter = "overhead_idle_ms"
start = 0.3
range = [0.05, 0.9]

[[fact]]
id = "read"
title = "random read"
fio = ["--rw=randread --bs=4k --filesize=8g"]
turnaround_us = 59
op = "read"
ios = 9000
runtime_ms = 60000
sets = ["strict"]
source = "made up"
"#,
    );
    let arguments = "fit --facts facts.toml --seconds 2 --json";
    let first = lab.ok(arguments);
    assert_eq!(first, lab.ok(arguments));
    let value: Value = serde_json::from_str(&first).expect("a JSON object");
    let found = &value["fit"]["parameters"]["overhead_idle_ms"];
    let found = found.as_f64().expect("a number");
    assert!((0.05..=0.9).contains(&found), "{found}");
    let text = lab.ok("fit --facts facts.toml --seconds 2");
    let line = text
        .lines()
        .find(|line| line.starts_with("overhead_idle_ms = { value = "));
    let line = line.expect("a line for the preset");
    // Without it the preset would count as one that nobody fitted.
    assert!(line.contains(r#"basis = "fitted""#), "{line}");
}

#[test]
fn ablations_compare_with_the_full_model() {
    let lab = Lab::new();
    let arguments = "ablations rpo margin --suite ./short.toml --jobs 3";
    let text = lab.ok(arguments);
    for expected in [
        "(nothing)",
        "rpo",
        "margin",
        "job 3: random read during the rebuild",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let lines = lab.ok(&format!("{arguments} --json"));
    let cells: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("a JSON object"))
        .collect();
    assert_eq!(cells.len(), 3);
    assert_eq!(cells[0]["without"], Value::Null);
    assert_eq!(cells[0]["change_percent"], 0.0);
    assert_eq!(cells[1]["without"], "rpo");
    assert!(cells[1]["change_percent"].as_f64().expect("a number") < -10.0);
}

#[test]
fn shells_complete() {
    let lab = Lab::new();
    for shell in ["bash", "zsh", "fish"] {
        assert!(
            lab.ok(&["completions", shell]).contains("ablations"),
            "{shell}"
        );
    }
}
