//! Outputs replace what raidlab wrote itself, and nothing else: whatever else has the
//! name is named and left, before anything runs.

use crate::lab::{Lab, Ran};
use std::fs;
use std::process::Command;

/// A run of a blink.
const RUN: &str = "run ./jobs.fio --fit strict";

fn run(more: &str) -> String {
    format!("{RUN} {more}")
}

/// A lab with a run in `raidlab.db` and its page in `raidlab-report.html`.
fn with_a_run() -> Lab {
    let lab = Lab::new();
    lab.ok(RUN);
    lab
}

#[test]
fn a_run_replaces_only_its_own() {
    let lab = with_a_run();
    lab.write("letter.html", "<!doctype html>\n<p>Dear reader");
    fs::create_dir(lab.path("folder")).expect("made");
    for (code, arguments, words) in [
        (
            4,
            "--report letter.html",
            "letter.html is a file that raidlab did not write",
        ),
        (
            4,
            "--report jobs.fio",
            "jobs.fio is a file that raidlab did not write",
        ),
        (4, "--report folder", "folder is a folder"),
        (
            4,
            "--store new.db --report raidlab.db",
            "raidlab.db is a store of raidlab's runs",
        ),
        (
            2,
            "--report raidlab.db",
            "--report and --store both go to raidlab.db",
        ),
        (
            2,
            "--report ./x --store x",
            "--report and --store both go to x",
        ),
        (
            2,
            "--report raidlab.db-wal",
            "--report and --store both go to",
        ),
        (3, "--store letter.html", "letter.html is not a store"),
        (
            3,
            "--store raidlab-report.html --no-report",
            "raidlab-report.html is not a store",
        ),
        (3, "--store jobs.fio", "jobs.fio is not a store"),
        (3, "--store folder", "folder is a folder"),
        (3, "--store /dev/null", "/dev/null is a character device"),
        (4, "--report /dev/null", "/dev/null is a character device"),
        (
            4,
            "--disk-commands jobs.fio",
            "jobs.fio is a file that raidlab did not write",
        ),
    ] {
        for dry in ["", "--dry-run"] {
            let message = lab.fails(code, &format!("{RUN} {arguments} {dry}"));
            assert!(message.contains(words), "{words}: {message}");
            assert!(message.contains("help: "), "{message}");
        }
    }
    // Its own files again.
    lab.ok(&run("--report raidlab-report.html --disk-commands folder"));
    lab.ok(&run("--report raidlab-report.html --disk-commands folder"));
}

#[cfg(unix)]
#[test]
fn links_and_pipes_are_not_followed_to_what_is_not_ours() {
    use std::os::unix::fs::symlink;
    let lab = with_a_run();
    // A lab's own files are read after each failure, which a pipe would hang.
    let elsewhere = tempfile::tempdir().expect("a folder");
    let at = |name: &str| elsewhere.path().join(name).display().to_string();
    let made = Command::new("mkfifo").arg(at("pipe")).status();
    assert!(made.expect("it starts").success());
    fs::write(at("letter"), "Dear reader").expect("written");
    symlink(at("letter"), at("link")).expect("linked");
    symlink(at("none"), at("dangling")).expect("linked");
    symlink(lab.path("raidlab-report.html"), at("page")).expect("linked");
    for (name, words) in [
        ("pipe", "is a pipe"),
        ("link", "is a file that raidlab did not write"),
        ("dangling", "none, which is not there"),
    ] {
        for arguments in [
            format!("{RUN} --report {}", at(name)),
            format!("report --html {}", at(name)),
            format!("report --csv {}", at(name)),
        ] {
            let message = lab.fails(4, &arguments);
            assert!(message.contains(words), "{words}: {message}");
        }
        if name != "link" {
            let message = lab.fails(3, &format!("{RUN} --no-report --store {}", at(name)));
            assert!(message.contains(words), "{words}: {message}");
        }
    }
    assert!(!elsewhere.path().join("none").exists());
    assert_eq!(fs::read(at("letter")).expect("there"), b"Dear reader");
    lab.ok(&["report", "--html", &at("page")]);
    assert!(elsewhere.path().join("page").is_symlink());
}

#[test]
fn exports_replace_only_their_own_kind() {
    let lab = with_a_run();
    let options = [
        "--html",
        "--markdown",
        "--csv",
        "--members-csv",
        "--json-lines",
    ];
    for option in options {
        let name = option.trim_start_matches('-');
        for _ in 0..2 {
            lab.ok(&["report", option, name]);
        }
        let refused = |message: String| assert!(message.contains("was left as it is"), "{message}");
        refused(lab.fails(4, &["report", option, "jobs.fio"]));
        for other in options.iter().filter(|other| **other != option) {
            refused(lab.fails(4, &["report", other, name]));
        }
        let twice = lab.fails(2, &["report", option, "raidlab.db"]);
        assert!(twice.contains("both go to raidlab.db"), "{twice}");
    }
    lab.fails(2, "report --csv new --html ./new");
    lab.fails(2, "report --csv - --html -");
    lab.ok(&run("--no-report"));
    for (option, own) in [("--html", "html"), ("--markdown", "markdown")] {
        let message = lab.fails(4, &["compare", "latest", "latest", option, "jobs.fio"]);
        assert!(message.contains("did not write"), "{message}");
        lab.ok(&["compare", "latest", "latest", option, own]);
    }
    let unknown = lab.fails(2, "compare latest latest --within foo=3");
    assert!(unknown.contains("is of the class `foo`"), "{unknown}");
}

#[test]
fn a_stores_name_is_a_name() {
    let lab = Lab::new();
    lab.ok(&run("--no-report --store :memory:"));
    assert!(lab.path(":memory:").exists(), "{:?}", lab.files());
    lab.ok("report --store :memory:");
}

#[cfg(unix)]
#[test]
fn a_report_that_does_not_fit_leaves_the_old_one_and_the_rows() {
    let lab = Lab::new();
    lab.write("report.html", "");
    // Writes beyond 512 KiB fail: a page with its charts is larger, a store is not.
    let words = format!(
        "trap '' XFSZ; ulimit -f 512; exec {} run ./jobs.fio --fit strict --report report.html",
        env!("CARGO_BIN_EXE_raidlab")
    );
    let mut shell = Command::new("bash");
    shell.args(["-c", &words]).current_dir(lab.path("."));
    let ran = Ran::new(shell.output().expect("it starts"));
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("cannot write report.html"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr.contains("the rows are kept: `raidlab report "),
        "{}",
        ran.stderr
    );
    assert_eq!(fs::read(lab.path("report.html")).expect("there"), b"");
    assert!(
        !lab.files().iter().any(|name| name.ends_with(".part")),
        "{:?}",
        lab.files()
    );
    lab.ok("report");
}

#[cfg(target_os = "linux")]
#[test]
fn a_bitmaps_file_is_no_member_and_no_pipe() {
    let lab = Lab::new();
    for name in ["a.img", "b.img"] {
        let file = fs::File::create(lab.path(name)).expect("made");
        file.set_len(64 << 20).expect("sparse");
    }
    let create = "create --level 1 --raid-devices 2 --run --bitmap";
    for (code, bitmap, words) in [
        (2, "./a.img", "DEVICE and --bitmap both go to ./a.img"),
        (4, "/dev/null", "/dev/null is a character device"),
        (4, "./", "./ is a folder"),
    ] {
        let message = lab.fails(code, &format!("{create} {bitmap} a.img b.img"));
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn a_measured_processor_replaces_only_another() {
    let lab = Lab::new();
    lab.write("README.md", "# Notes\n");
    let refused = lab.run("processors nas --calibrate README.md");
    let words = "README.md is a file that raidlab did not write";
    assert!(refused.stderr.contains(words), "{}", refused.stderr);
    let kept = fs::read_to_string(lab.path("README.md")).expect("there");
    assert_eq!(kept, "# Notes\n");
    for _ in 0..2 {
        lab.ok("processors nas --calibrate own.toml");
        lab.ok("processors ./own.toml");
    }
}
