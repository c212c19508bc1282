//! The commands of the guide (`docs/guide`) are run, page by page, and must print what the
//! pages say.
//!
//! A page is done from top to bottom in a folder of its own. A name in bold and back quotes
//! on a line of its own is a file, which the next block fills. A block that begins with
//! ```` ```sh ```` is run; none of its commands may fail. A block ```` ```text ```` behind it
//! is what it prints, in part: its lines must be there in this order, each as it is or, where
//! it ends in ` …`, at least so far; `...` stands for what is left out, and checks nothing.
//!
//! A word behind `sh` marks what not every machine can run, or not in time; `RAIDLAB_GUIDE`
//! names the marks that are run all the same, as `checks/guide` does. `RAIDLAB_WRITE_DOCS=1`
//! writes the outputs anew: a line is replaced by the first one that differs in its figures
//! alone, or begins with it.

#![cfg(target_os = "linux")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What a block may be marked with, as `docs/guide/README.md` explains it.
const MARKS: [&str; 5] = ["slow", "kernel", "root", "duckdb", "elsewhere"];

/// How much of a line a page shows where it is written anew.
const WIDTH: usize = 130;

/// The folder of the guide.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide")
}

/// Where a page is being done; a server that it leaves behind ends with it.
struct Room(tempfile::TempDir);

impl Room {
    /// Runs commands as a reader's shell would, and returns what they print. Fails where
    /// one of them does.
    fn run(&self, commands: &str) -> Result<String, String> {
        let program = Path::new(env!("CARGO_BIN_EXE_raidlab"));
        let path = std::env::var("PATH").unwrap_or_default();
        let folder = program.parent().expect("it lies in a folder").display();
        let done = Command::new("bash")
            .args(["-euo", "pipefail", "-c", &format!("exec 2>&1\n{commands}")])
            .current_dir(self.0.path())
            .env("PATH", format!("{folder}:{path}:/usr/sbin:/sbin"))
            .env("XDG_RUNTIME_DIR", self.0.path())
            .stdin(Stdio::null())
            .output()
            .expect("bash runs");
        // Spaces at which no line is broken are spaces to who reads or writes a page.
        let said = String::from_utf8_lossy(&done.stdout).replace(['\u{a0}', '\u{202f}'], " ");
        if done.status.success() {
            Ok(said)
        } else {
            Err(said)
        }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let stop = "for socket in raidlab/*.sock; do\n\
            [[ $socket == *.nbd.sock ]] || raidlab stop \"$socket\" || true\ndone";
        self.run(&format!("shopt -s nullglob\n{stop}")).ok();
    }
}

/// A line without its figures: digits are all alike, and so is how much room they take.
fn shape(line: &str) -> String {
    let mut shape = String::new();
    for sign in line.chars() {
        let sign = match sign {
            '0'..='9' => '0',
            ' ' | '─' => ' ',
            other => other,
        };
        if !(matches!(sign, '0' | ' ') && shape.ends_with(sign)) {
            shape.push(sign);
        }
    }
    shape.trim_end().to_owned()
}

/// Whether a page may print `line` for what was said.
fn agrees(line: &str, said: &str) -> bool {
    line.strip_suffix(" …").map_or_else(
        || line.trim_end() == said.trim_end(),
        |begin| said.starts_with(begin),
    )
}

/// The lines of a page's `wanted`, which must be among those of `said` in this order; with
/// `anew` the figures are those of `said`.
fn compared(wanted: &[&str], said: &str, anew: bool) -> Result<Vec<String>, String> {
    let mut lines = said.lines();
    let mut found = Vec::new();
    for line in wanted {
        if line.trim().is_empty() || *line == "..." {
            found.push((*line).to_owned());
            continue;
        }
        let like = shape(line.trim_end_matches(" …"));
        let exact = lines.clone().any(|said| agrees(line, said));
        let hit = lines
            .find(|said| agrees(line, said) || (anew && !exact && shape(said).starts_with(&like)));
        let hit = hit.ok_or_else(|| format!("this is not printed: {line}"))?;
        found.push(if agrees(line, hit) {
            (*line).to_owned()
        } else if hit.chars().count() > WIDTH {
            let begin: String = hit.chars().take(WIDTH).collect();
            format!("{} …", begin.trim_end())
        } else {
            hit.trim_end().to_owned()
        });
    }
    Ok(found)
}

/// A block of a page: the words behind the back quotes, and its lines.
fn block<'a>(first: &'a str, lines: &mut std::str::Lines<'a>) -> (Vec<&'a str>, Vec<&'a str>) {
    let words = first.trim_start_matches('`').split(' ').collect();
    (words, lines.take_while(|line| *line != "```").collect())
}

/// Does a page from top to bottom.
fn page(name: &str) {
    let path = folder().join(name);
    let text = fs::read_to_string(&path).expect("the page");
    let anew = std::env::var_os("RAIDLAB_WRITE_DOCS").is_some();
    let wanted = std::env::var("RAIDLAB_GUIDE").unwrap_or_default();
    let room = Room(tempfile::tempdir().expect("a temporary folder"));
    let mut written = String::new();
    let (mut file, mut said, mut ran) = (None, None, 0);
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        writeln!(written, "{line}").expect("memory");
        if let Some(name) = line
            .strip_prefix("**`")
            .and_then(|it| it.strip_suffix("`**"))
        {
            file = Some(name);
        }
        if !line.starts_with("```") {
            continue;
        }
        let (words, body) = block(line, &mut lines);
        let mut body: Vec<String> = body.into_iter().map(str::to_owned).collect();
        let whole = body.join("\n") + "\n";
        match (file.take(), words[0]) {
            (Some(name), _) => {
                fs::write(room.0.path().join(name), whole).expect("a file of the page");
            }
            (None, "sh") => {
                let marks = &words[1..];
                let known = marks.iter().all(|mark| MARKS.contains(mark));
                assert!(known, "{name}: nobody knows what `{line}` means");
                let run = marks
                    .iter()
                    .all(|mark| wanted.split(' ').any(|it| it == *mark));
                said = run.then(|| {
                    ran += 1;
                    room.run(&whole).unwrap_or_else(|said| {
                        panic!("{name}: a command fails:\n{whole}--\n{said}")
                    })
                });
            }
            (None, "text") => {
                if let Some(said) = &said {
                    let lines: Vec<&str> = body.iter().map(String::as_str).collect();
                    body = compared(&lines, said, anew)
                        .unwrap_or_else(|why| panic!("{name}: {why}\n--\n{said}"));
                }
            }
            (None, other) => panic!("{name}: a block of {other} is neither file nor command"),
        }
        for line in body {
            writeln!(written, "{line}").expect("memory");
        }
        written.push_str("```\n");
    }
    if anew {
        fs::write(&path, written).expect("the page can be written");
    }
    let may_be_none = text.contains("```sh kernel") || text.contains("```sh root");
    assert!(
        ran > 0 || may_be_none || !text.contains("```sh"),
        "{name}: nothing was run"
    );
}

macro_rules! pages {
    ($($test:ident: $page:literal,)*) => {
        $(#[test]
        fn $test() {
            page($page);
        })*

        /// The pages that a test runs.
        const PAGES: &[&str] = &[$($page),*];
    };
}

pages! {
    believe_a_number: "believe-a-number.md",
    extend: "extend.md",
    first_comparison: "first-comparison.md",
    import: "import.md",
    many_machines: "many-machines.md",
    my_disks: "my-disks.md",
    parquet: "parquet.md",
    real_kernel: "real-kernel.md",
    real_machine: "real-machine.md",
    rebuild: "rebuild.md",
    serve_an_array: "serve-an-array.md",
    which_layout: "which-layout.md",
    why_is_my_nvme_array_slow: "why-is-my-nvme-array-slow.md",
    write_a_disk: "write-a-disk.md",
    write_a_subject: "write-a-subject.md",
    write_a_suite: "write-a-suite.md",
}

#[test]
fn every_page_is_run_and_listed() {
    let index = fs::read_to_string(folder().join("README.md")).expect("the index");
    let mut found: Vec<String> = fs::read_dir(folder())
        .expect("the guide")
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .filter(|name| name != "README.md")
        .collect();
    found.sort();
    assert_eq!(found, PAGES);
    for name in &found {
        assert!(
            index.contains(&format!("]({name})")),
            "the index lacks {name}"
        );
    }
    for mark in MARKS {
        assert!(
            index.contains(&format!("`{mark}`")),
            "the index does not explain `{mark}`"
        );
    }
}

#[test]
fn a_page_that_is_wrong_is_found() {
    let said = "a 12 s\nb\nlong line of words\n";
    assert!(compared(&["a 12 s", "...", "long line …"], said, false).is_ok());
    assert!(compared(&["a 13 s"], said, false).is_err());
    assert!(compared(&["b", "a 12 s"], said, false).is_err());
    let anew = compared(&["a  7 s", "b"], said, true).expect("only figures differ");
    assert_eq!(anew, ["a 12 s", "b"]);
    let room = Room(tempfile::tempdir().expect("a temporary folder"));
    assert!(room.run("raidlab nonsense").is_err());
    assert!(room.run("false\ntrue").is_err());
}
