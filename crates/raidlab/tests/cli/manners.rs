//! What every command does alike: help with examples, exit codes, errors that
//! name file, line, field and remedy, and nothing half-written.

use crate::lab::{Lab, Ran, SUITE};
use raidlab_store::Store;
use std::io::pipe;
use std::process::Stdio;

const COMMANDS: [&str; 21] = [
    "run",
    "report",
    "suites",
    "subjects",
    "disks",
    "fit",
    "ablations",
    "completions",
    "create",
    "assemble",
    "serve",
    "detail",
    "manage",
    "watch",
    "wait",
    "stop",
    "examine",
    "simulate",
    "merge",
    "status",
    "zero-superblock",
];

#[test]
fn every_command_teaches() {
    let lab = Lab::new();
    for command in COMMANDS {
        let help = lab.ok(&[command, "--help"]);
        let example = format!("Examples:\n  raidlab {command}");
        let taught = help.contains(&example) || help.contains("source <(raidlab");
        assert!(taught, "{help}");
    }
    let help = lab.ok("--help");
    assert!(help.contains("Exit codes:"));
    for command in COMMANDS {
        assert!(help.contains(&format!("  {command} ")), "{command}: {help}");
    }
}

#[test]
fn wrong_arguments_exit_with_2() {
    let lab = Lab::new();
    for command in COMMANDS {
        let message = lab.fails(2, &[command, "--no-such-option"]);
        assert!(message.contains("--no-such-option"), "{message}");
    }
    for arguments in [
        "run mirror-2015 --threads 0",
        "run mirror-2015 --without gravity",
        "run mirror-2015 --seed -1",
        "run mirror-2015 --no-report --report x.html",
        "report --list --csv x.csv",
        "fit --seconds 0",
        "suites --toml",
    ] {
        lab.fails(2, arguments);
    }
}

#[test]
fn names_that_are_not_built_in_exit_with_2_and_list_what_is() {
    let lab = Lab::new();
    for (arguments, named, known) in [
        ("run mirror-2014", "mirror-2014", "mirror-2015"),
        ("run mirror-2015 --subject mdd", "mdd", "`md`"),
        ("run mirror-2015 --disk st4000", "st4000", "st4000dm004"),
        ("run mirror-2015 --fit loose", "loose", "strict, joint, all"),
        ("suites mirror", "mirror", "mirror-2015"),
        ("subjects mdd", "mdd", "`md`"),
        ("disks st4000", "st4000", "st4000dm004"),
        ("disks wd4000fyyz --set loose", "loose", "strict"),
        ("fit st4000", "st4000", "st4000dm004"),
        ("fit --set loose --check", "loose", "strict"),
        ("ablations --suite mirror", "mirror", "mirror-2015"),
        ("ablations --jobs 99", "99", "29"),
    ] {
        let message = lab.fails(2, arguments);
        assert!(
            message.contains(named) && message.contains(known),
            "{message}"
        );
    }
}

#[test]
fn arguments_that_contradict_each_other_exit_with_2() {
    let lab = Lab::new();
    let twice = lab.fails(2, "run mirror-2015 --subject md --subject md");
    assert!(twice.contains("named twice"), "{twice}");
    let message = lab.fails(1, "run mirror-2015 --on kernel");
    assert!(
        message.contains("no kernel has been built") && message.contains("raidlab kernel build"),
        "{message}"
    );
    let nowhere = "run quick --on host --machine x";
    let message = lab.fails(2, nowhere);
    assert!(message.contains("no disks are named"), "{message}");
}

#[test]
fn files_that_are_missing_exit_with_3_and_are_named() {
    let lab = Lab::new();
    for arguments in [
        "run ./none.toml",
        "run ./none.fio",
        "run mirror-2015 --disk ./none.toml",
        "run mirror-2015 --subject ./none.toml",
        "report --store none.db",
        "report --list --store none.db",
        "suites ./none.toml",
        "suites ./none.toml --toml",
        "subjects ./none.toml",
        "disks ./none.toml",
        "fit ./none.toml",
        "fit --facts ./none.toml",
        "ablations --suite ./none.toml",
        "ablations --subject ./none.toml",
    ] {
        let message = lab.fails(3, arguments);
        assert!(message.contains("none."), "{message}");
    }
}

#[test]
fn a_broken_suite_is_named_with_line_field_and_remedy() {
    let lab = Lab::new();
    for (from, to, expected) in [
        (
            "title = \"A short one\"",
            "titel = \"A short one\"",
            &["broken.toml:3: titel: ", "did you mean `title`?"][..],
        ),
        (
            "member = 1",
            "member = 2",
            &["broken.toml:23: step[3].member: "],
        ),
        (
            "--rw=randread --bs=4k --iodepth=4",
            "--rw=randread --bs=4q",
            &["broken.toml:13: step[1].fio: ", "4q"],
        ),
        (
            "\"gflash\"",
            "\"gflsh\"",
            &["broken.toml:7: subjects[2]: ", "did you mean `gflash`?"],
        ),
        (
            "schema = 1",
            "schema = 9",
            &["broken.toml:1: schema: ", "reads schema 1"],
        ),
        ("\"1s\"", "\"1s", &["broken.toml:26"]),
    ] {
        assert!(SUITE.contains(from), "{from}");
        lab.write("broken.toml", &SUITE.replacen(from, to, 1));
        for command in ["run ./broken.toml", "suites ./broken.toml"] {
            let message = lab.fails(3, command);
            for part in expected {
                assert!(message.contains(part), "{part}: {message}");
            }
        }
    }
}

#[test]
fn jobs_that_do_not_fit_are_refused_before_anything_runs() {
    let lab = Lab::new();
    lab.write(
        "large.toml",
        &SUITE.replacen("--filesize=8g", "--filesize=8t", 1),
    );
    let message = lab.fails(3, "run ./large.toml");
    for part in ["subject `md` cannot run", "job `1`", "8 TiB"] {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn a_broken_job_file_is_named_with_line_and_option() {
    let lab = Lab::new();
    lab.write(
        "broken.fio",
        "[a]\nrw=randread\nbs=4k\nsize=1g\niodpeth=3\n",
    );
    let message = lab.fails(3, "run broken.fio");
    for part in ["broken.fio, line 5", "iodpeth", "did you mean `iodepth`?"] {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn a_broken_preset_is_named_with_line_and_field() {
    let lab = Lab::new();
    let good = lab.ok("disks wd4000fyyz --toml");
    lab.write("own.toml", &good);
    lab.ok("run ./jobs.fio --disk ./own.toml --dry-run");
    let line = 1 + good
        .lines()
        .take_while(|line| *line != "[parameters]")
        .count();
    let broken = good.replacen(
        "[parameters]",
        "[parameters]\nspeed = { value = 1, source = \"me\" }",
        1,
    );
    lab.write("own.toml", &broken);
    for arguments in [
        "run ./jobs.fio --disk ./own.toml",
        "disks ./own.toml",
        "fit ./own.toml --check",
    ] {
        let message = lab.fails(3, arguments);
        let place = format!("own.toml:{}: `speed`", line + 1);
        assert!(message.contains(&place), "{place}: {message}");
    }
}

#[test]
fn broken_facts_are_named_with_line() {
    let lab = Lab::new();
    lab.write(
        "facts.toml",
        "schema = 1\ndisk = \"x\"\nfree = []\nfact = 7\n",
    );
    let message = lab.fails(3, "fit --check --facts facts.toml");
    assert!(message.contains("facts.toml:4"), "{message}");
    let own = lab.ok("disks wd4000fyyz --toml");
    lab.write("own.toml", &own);
    let message = lab.fails(2, "fit ./own.toml --check");
    assert!(message.contains("--facts FILE"), "{message}");
}

#[test]
fn stores_that_are_not_ours_are_left_alone() {
    let lab = Lab::new();
    lab.write(
        "text.db",
        "This is no database, but it is long enough to look like a file that somebody needs.",
    );
    let message = lab.fails(3, "run ./jobs.fio --store text.db");
    assert!(message.contains("text.db is not a store"), "{message}");
    drop(Store::open(lab.path("old.db")).expect("a store"));
    let connection = rusqlite::Connection::open(lab.path("old.db")).expect("a database");
    connection
        .pragma_update(None, "user_version", 99)
        .expect("written");
    drop(connection);
    for arguments in [
        "run ./jobs.fio --store old.db",
        "report --store old.db",
        "report --list --store old.db",
        "report --delete latest --store old.db",
    ] {
        let message = lab.fails(3, arguments);
        for part in ["old.db", "version 99", "left as it is"] {
            assert!(
                message.contains(part)
                    || message.contains("left as it was")
                    || message.contains("was left"),
                "{part}: {message}"
            );
        }
    }
}

#[test]
fn output_that_cannot_be_written_exits_with_4_before_anything_runs() {
    let lab = Lab::new();
    for arguments in [
        "run ./short.toml --report none/report.html",
        "run ./short.toml --report .",
        "run ./short.toml --store none/raidlab.db --no-report",
    ] {
        let message = lab.fails(4, arguments);
        assert!(
            message.contains("none/") || message.contains(". is a folder"),
            "{message}"
        );
        assert!(message.contains("help: "), "{message}");
    }
    lab.ok("run ./jobs.fio --fit strict --no-report");
    for option in ["--html", "--csv", "--members-csv", "--json-lines"] {
        let message = lab.fails(4, &["report", option, "none/out"]);
        assert!(message.contains("none/out"), "{message}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error_and_leaves_the_rows() {
    let lab = Lab::new();
    let full = || {
        let file = std::fs::OpenOptions::new().write(true).open("/dev/full");
        Stdio::from(file.expect("Linux has it"))
    };
    for arguments in [
        "run ./jobs.fio --json --fit strict --no-report",
        "report --list",
        "suites",
    ] {
        let output = lab.command(arguments).stdout(full()).output();
        let ran = Ran::new(output.expect("it starts"));
        assert_eq!(ran.code, 4, "{arguments:?}: {}", ran.stderr);
        assert!(
            ran.stderr.contains("cannot write standard output"),
            "{}",
            ran.stderr
        );
    }
    let store = Store::open_existing(lab.path("raidlab.db")).expect("a store");
    let run = store.run_by_name("latest").expect("a run");
    assert_eq!(
        run.measurements, 1,
        "the row that could not be printed is kept"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_store_that_takes_no_more_tells_how_to_go_on() {
    let lab = Lab::new();
    lab.write("long.toml", &crate::interrupt::long_suite(60));
    let run = "run ./long.toml --fit strict --no-report";
    // No file may have more than 300 KiB.
    let mut limited = std::process::Command::new("sh");
    limited.args(["-c", "trap '' XFSZ; ulimit -f 600; exec \"$@\"", "sh"]);
    limited
        .arg(env!("CARGO_BIN_EXE_raidlab"))
        .args(run.split(' '));
    let output = limited.current_dir(lab.path("")).output();
    let ran = Ran::new(output.expect("it starts"));
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    let store = Store::open_existing(lab.path("raidlab.db")).expect("a store");
    let run = store.run_by_name("latest").expect("a run");
    assert!((1..60).contains(&run.measurements), "{}", run.measurements);
    let kept = format!("{} of 60 rows are kept", run.measurements);
    let again = format!("`raidlab resume {}` goes on", run.run.name);
    for words in [kept, again] {
        assert!(ran.stderr.contains(&words), "no {words} in {}", ran.stderr);
    }
    lab.ok("resume --no-report");
    let run = store.run_by_name("latest").expect("a run");
    assert_eq!(run.measurements, 60);
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let lab = Lab::new();
    for arguments in [
        "suites",
        "subjects md",
        "disks wd4000fyyz --toml",
        "completions bash",
        "run ./jobs.fio --json --fit strict",
    ] {
        let (reader, writer) = pipe().expect("a pipe");
        drop(reader);
        let output = lab.command(arguments).stdout(writer).output();
        let ran = Ran::new(output.expect("it starts"));
        assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.stderr);
        assert!(!ran.stderr.contains("error"), "{}", ran.stderr);
    }
    let store = Store::open_existing(lab.path("raidlab.db")).expect("a store");
    let run = store.run_by_name("latest").expect("a run");
    assert_eq!(run.measurements, 2, "the run went to its end");
}
