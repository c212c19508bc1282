//! What may be replaced, what may not, and how.

use super::{Format, Found, OutputError, OutputFile, check, check_distinct, look, write};
use crate::{
    ExportError, Measurement, Store, StoreError, write_csv, write_json_lines, write_members_csv,
};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const PAGE: &str = "<!doctype html>\n<meta name=\"generator\" content=\"raidlab\">\n";

type Export = fn(&mut Vec<u8>, &[Measurement]) -> Result<(), ExportError>;

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

fn refusal(path: &Path, format: Format) -> String {
    let refused = write(path, format, b"new").expect_err("it is not ours");
    assert_eq!(
        refused.to_string(),
        check(path, format).expect_err("nor before").to_string()
    );
    assert!(
        refused.to_string().contains(&*path.to_string_lossy()),
        "{refused}"
    );
    refused.to_string()
}

#[test]
fn a_file_of_ours_is_replaced_whole_and_nothing_else_is_left() {
    let folder = folder();
    let path = folder.path().join("report.html");
    super::check_writable(&path, Format::Page).expect("writable");
    assert!(!path.exists(), "a check leaves nothing");
    write(&path, Format::Page, PAGE.as_bytes()).expect("written");
    let newer = format!("{PAGE}newer");
    write(&path, Format::Page, newer.as_bytes()).expect("replaced");
    assert_eq!(fs::read_to_string(&path).expect("there"), newer);
    let mut part = OutputFile::begin(&path, Format::Page).expect("begun");
    part.write_all(b"half").expect("room");
    drop(part);
    assert_eq!(fs::read_to_string(&path).expect("there"), newer);
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
}

/// The part's name, which nobody has ever heard of, was in both errors.
#[test]
fn errors_name_what_was_asked_for_and_no_part_of_it() {
    let folder = folder();
    let path = folder.path().join("none/report.html");
    let refused = super::check_writable(&path, Format::Page).expect_err("no folder");
    let said = raidlab_units::in_one_line(&refused);
    assert!(
        said.contains("there is no folder") && said.ends_with("/none; make it first"),
        "{said}"
    );
    assert!(!said.contains(".part"), "{said}");
    #[cfg(target_os = "linux")]
    {
        let full = fs::OpenOptions::new().write(true).open("/dev/full");
        let part = tempfile::TempPath::try_from_path(folder.path().join("x.part"));
        let mut file = OutputFile {
            path: folder.path().join("report.html"),
            format: Format::Page,
            part: tempfile::NamedTempFile::from_parts(
                full.expect("it opens"),
                part.expect("a path"),
            ),
        };
        let said = file.write(b"page").expect_err("full").to_string();
        assert!(said.contains("space") && !said.contains(".part"), "{said}");
    }
}

#[test]
fn every_export_is_known_again() {
    let rows = [crate::tests::measurement(1), crate::tests::measurement(2)];
    let exports: [(Format, Export); 3] = [
        (Format::Rows, |out, rows| write_csv(out, rows)),
        (Format::MemberRows, |out, rows| write_members_csv(out, rows)),
        (Format::JsonLines, |out, rows| write_json_lines(out, rows)),
    ];
    let folder = folder();
    for (format, export) in exports {
        let mut bytes = Vec::new();
        export(&mut bytes, &rows).expect("written");
        let path = folder.path().join(format!("{format:?}"));
        for _ in 0..2 {
            write(&path, format, &bytes).expect("free, then ours");
        }
        assert_eq!(look(&path).expect("seen"), Found::Ours(format));
        let other = refusal(&path, Format::Page);
        assert!(
            other.contains("that raidlab wrote; it was left as it is"),
            "{other}"
        );
    }
}

#[test]
fn what_is_not_ours_stays_and_is_named() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("letter.html"), "<!doctype html>\n<p>Dear reader").expect("written");
    fs::write(at("jobs.fio"), "[a]\nrw=read\n").expect("written");
    drop(Store::open(at("raidlab.db")).expect("a new store"));
    let other = rusqlite::Connection::open(at("other.db")).expect("a database");
    other
        .execute_batch("CREATE TABLE t (x); PRAGMA application_id = 7;")
        .expect("written");
    drop(other);
    for (name, words) in [
        ("letter.html", "a file that raidlab did not write"),
        ("jobs.fio", "a file that raidlab did not write"),
        ("raidlab.db", "a store of raidlab's runs"),
        (
            "other.db",
            "an SQLite database of another program (application id 0x00000007)",
        ),
        (".", "a folder"),
    ] {
        let before = fs::read(at(name)).ok();
        assert!(refusal(&at(name), Format::Page).contains(words), "{name}");
        assert_eq!(fs::read(at(name)).ok(), before, "{name}");
    }
}

#[cfg(unix)]
#[test]
fn links_pipes_devices_and_sockets_stay_what_they_are() {
    use std::os::unix::fs::symlink;
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("letter"), "Dear reader").expect("written");
    symlink(at("letter"), at("link")).expect("linked");
    symlink(at("none"), at("dangling")).expect("linked");
    let made = std::process::Command::new("mkfifo")
        .arg(at("pipe"))
        .status();
    assert!(made.expect("it starts").success());
    let _socket = std::os::unix::net::UnixListener::bind(at("socket")).expect("bound");
    for (path, words) in [
        (at("link"), "a file that raidlab did not write"),
        (at("dangling"), "none, which is not there"),
        (at("pipe"), "a pipe"),
        (at("socket"), "a socket"),
        (PathBuf::from("/dev/null"), "a character device"),
        (PathBuf::from("/dev/full"), "a character device"),
    ] {
        assert!(
            refusal(&path, Format::Page).contains(words),
            "{}",
            path.display()
        );
        if !path.ends_with("link") {
            let refused = Store::open(&path).expect_err("no store");
            assert!(matches!(refused, StoreError::NotAFile { .. }), "{refused}");
        }
    }
    assert!(!at("none").exists());
    assert_eq!(fs::read(at("letter")).expect("there"), b"Dear reader");
    // A link to a report is another name of it, and stays one.
    fs::write(at("report"), PAGE).expect("written");
    symlink(at("report"), at("latest")).expect("linked");
    write(&at("latest"), Format::Page, b"new").expect("ours");
    assert!(at("latest").is_symlink());
    assert_eq!(fs::read(at("report")).expect("there"), b"new");
}

#[cfg(unix)]
#[test]
fn permissions_stay() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder();
    let path = folder.path().join("report.html");
    for mode in [0o600, 0o644, 0o660] {
        fs::write(&path, PAGE).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("changed");
        write(&path, Format::Page, PAGE.as_bytes()).expect("ours");
        let kept = fs::metadata(&path).expect("there").permissions().mode();
        assert_eq!(kept & 0o7777, mode);
    }
}

#[test]
fn one_file_is_one_output() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("a"), PAGE).expect("written");
    fs::hard_link(at("a"), at("b")).expect("linked");
    for (first, second) in [
        ("a", "a"),
        ("a", "b"),
        ("new", "./new"),
        ("new", "../{}/new"),
        ("raidlab.db", "raidlab.db-wal"),
        ("raidlab.db-shm", "raidlab.db"),
    ] {
        let own = folder.path().file_name().expect("a name").to_string_lossy();
        let second = at(&second.replace("{}", &own));
        let outputs = [("--store", at(first)), ("--html", second)];
        let outputs = outputs
            .each_ref()
            .map(|(option, path)| (*option, path.as_path()));
        let error = check_distinct(&outputs).expect_err("one file");
        assert!(matches!(error, OutputError::Twice { .. }), "{error}");
        assert!(
            error
                .to_string()
                .starts_with("--store and --html both go to "),
            "{error}"
        );
    }
    check_distinct(&[("--store", &at("c")), ("--html", &at("a"))]).expect("two files");
}

#[test]
fn no_name_is_sqlites_memory() {
    let folder = folder();
    let path = folder.path().join(":memory:");
    drop(Store::open(&path).expect("a name like any other"));
    assert_eq!(look(&path).expect("seen"), Found::Ours(Format::Store));
    assert!(Store::open("").is_err());
}

#[test]
fn a_table_of_another_version_of_raidlab_is_replaced_too() {
    let folder = folder();
    let path = folder.path().join("run.parquet");
    fs::write(&path, b"PAR1 rows raidlab version 0.0.1 PAR1").expect("written");
    assert_eq!(look(&path).expect("seen"), Found::Ours(Format::Parquet));
    check(&path, Format::Parquet).expect("ours");
}
