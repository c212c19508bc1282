//! Files that a stranger might send, one mistake in each. They are refused before
//! anything is planned, on every bench, by name, line and field; the same file with its
//! sting taken out is read without complaint.
//!
//! The line with the sting ends in `# sting: FIELD`, and `instead: LINE` is what it would
//! be without. Where nothing stands instead, the line is left out. Files for fio have a
//! test of their own.

use crate::lab::Lab;
use std::fs;
use std::path::Path;

/// A file with its sting.
struct Strange {
    name: String,
    text: String,
    line: usize,
    /// The last part of the field's path.
    field: String,
    /// The text without the sting.
    clean: String,
}

fn files(kind: &str) -> Vec<Strange> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/hostile")
        .join(kind);
    let entries = fs::read_dir(folder).expect("the folder is there");
    let mut all: Vec<Strange> = entries
        .map(|entry| strange(&entry.expect("an entry").path()))
        .collect();
    all.sort_by(|one, other| one.name.cmp(&other.name));
    all
}

fn strange(path: &Path) -> Strange {
    let text = fs::read_to_string(path).expect("a text");
    let name = path
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    let (index, line) = (text.lines().enumerate())
        .find(|(_, line)| line.contains(" # sting: "))
        .expect("a file with a sting");
    let (_, mark) = line.split_once(" # sting: ").expect("found above");
    let (field, instead) = mark.split_once(" instead: ").unwrap_or((mark, ""));
    let clean = text.replace(line, instead);
    let field = field.rsplit('.').next().unwrap_or_default();
    Strange {
        line: index + 1,
        field: field.to_owned(),
        clean,
        name,
        text,
    }
}

const BENCHES: [&str; 3] = ["--on model", "--on kernel", "--on host"];

/// A command refuses the file by name, line and field, and reads it without its sting.
/// `words`: the command, in which `FILE` is the file's path.
fn check(lab: &Lab, file: &Strange, words: &str, reads: &str) {
    let path = format!("./{}", file.name);
    let run = |words: &str| lab.run(&words.replace("FILE", &path));
    lab.write(&file.name, &file.text);
    let ran = run(words);
    let place = format!("{}:{}: ", file.name, file.line);
    assert_ne!(ran.code, 0, "{} is taken by {words:?}", file.name);
    assert!(
        !ran.stderr.contains("panicked"),
        "{}: {}",
        file.name,
        ran.stderr
    );
    assert!(
        ran.stderr.contains(&place) && ran.stderr.contains(&file.field),
        "{} by {words:?}: {}",
        file.name,
        ran.stderr
    );
    lab.write(&file.name, &file.clean);
    let ran = run(reads);
    let blamed = ran.stderr.contains(&format!("{}:", file.name));
    assert!(!blamed, "{} without its sting: {}", file.name, ran.stderr);
    // Others may be missing: a store, a machine.
    let planned = ran.code == 0
        || !["suites", "subjects", "disks"]
            .iter()
            .any(|list| reads.starts_with(list));
    assert!(planned, "{} without its sting: {}", file.name, ran.stderr);
}

fn check_all(kind: &str, fewest: usize, words: &str, reads: &str) {
    let lab = Lab::new();
    let files = files(kind);
    assert!(files.len() >= fewest, "{} files of {kind}", files.len());
    for file in &files {
        check(&lab, file, words, reads);
    }
}

#[test]
fn suites_are_refused_on_every_bench() {
    for bench in BENCHES {
        let words = format!("run FILE --dry-run {bench}");
        check_all("suites", 60, &words, "suites FILE");
    }
}

#[test]
fn subjects_are_refused_on_every_bench() {
    for bench in BENCHES {
        let words = format!("run quick --dry-run --subject FILE {bench}");
        check_all("subjects", 15, &words, "subjects FILE");
    }
}

#[test]
fn disks_are_refused() {
    let words = "run quick --dry-run --subject md --disk FILE";
    check_all("disks", 9, words, "disks FILE");
}

#[test]
fn claims_are_refused() {
    let words = "claims FILE";
    check_all("claims", 4, words, words);
}

#[test]
fn machines_are_refused() {
    let words = "run quick --dry-run --on host --machine-file FILE";
    check_all("machines", 4, words, "subjects");
}

#[test]
fn published_figures_are_refused_on_every_bench() {
    let lab = Lab::new();
    let files = files("published");
    assert!(files.len() >= 5);
    for file in &files {
        let suite = include_str!("../hostile/suites/name-empty.toml");
        let named = format!("name = \"own\"\npublished = \"./{}\"", file.name);
        let suite: String = suite.replace("name = \"\"", &named);
        lab.write("own.toml", &suite);
        for bench in BENCHES {
            let words = format!("run ./own.toml --dry-run {bench}");
            check(&lab, file, &words, "suites ./own.toml");
        }
    }
}

#[test]
fn a_target_of_a_file_is_only_taken_where_the_user_names_it() {
    let lab = Lab::new();
    lab.write(
        "export.toml",
        "schema = 1\nname = \"export\"\ntitle = \"t\"\ndescription = \"d\"\nkind = \"system\"\n\
         [build.nbd]\nuri = \"nbd://example.invalid/x\"\nsize = \"1g\"\nthrough = \"direct\"\n",
    );
    let own = "run quick --dry-run --on host --subject ./export.toml";
    let trial = "--trial-size 64m";
    let ran = lab.run(&format!("{own} {trial}"));
    assert_ne!(ran.code, 0, "{}", ran.stdout);
    assert!(
        ran.stderr
            .contains("--allow-target nbd://example.invalid/x"),
        "{}",
        ran.stderr
    );
    let allowed = "--allow-target nbd://example.invalid/x";
    let ran = lab.run(&format!("{own} {trial} {allowed}"));
    assert!(!ran.stderr.contains("--allow-target"), "{}", ran.stderr);
}
