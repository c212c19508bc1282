//! The examples of the pages on files in docs/reference are read as a user's files are, and
//! what pages say of the repository is there.
//!
//! An example is a name in bold and back quotes on a line of its own, then a
//! block of TOML. The examples of disks and facts belong to other rooms and
//! are only written beside the others.

use raidlab_lab::claims::Claims;
use raidlab_lab::{Published, Subject, Suite};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The pages, as one text.
fn pages() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    let names = [
        "files",
        "suites",
        "subjects",
        "disks",
        "figures",
        "fio-job-files",
    ];
    let read = |name| std::fs::read_to_string(folder.join(format!("{name}.md"))).expect(name);
    names.map(read).concat()
}

/// Names and texts of the examples, in the document's order.
fn examples() -> Vec<(String, String)> {
    let document = pages();
    let mut found = Vec::new();
    let mut lines = document.lines();
    while let Some(line) = lines.next() {
        let name = line
            .strip_prefix("**`")
            .and_then(|rest| rest.strip_suffix("`**"));
        let Some(name) = name else { continue };
        let body = lines
            .by_ref()
            .skip_while(|line| !line.starts_with("```"))
            .skip(1);
        let text: String = body
            .take_while(|line| !line.starts_with("```"))
            .flat_map(|line| [line, "\n"])
            .collect();
        found.push((name.to_owned(), text));
    }
    found
}

/// A folder with all examples.
fn written() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, text) in examples() {
        std::fs::write(folder.path().join(name), text).expect("written");
    }
    folder
}

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).display().to_string()
}

#[test]
fn every_suite_subject_and_figure_of_the_documentation_can_be_read() {
    let folder = written();
    let mut kinds = [0; 4];
    for (name, text) in examples() {
        let path = path(folder.path(), &name);
        let has = |start: &str| text.lines().any(|line| line.starts_with(start));
        if has("[[step]]") {
            Suite::load(&path).expect(&name);
            kinds[0] += 1;
        } else if has("kind = ") {
            Subject::load(&path).expect(&name);
            kinds[1] += 1;
        } else if has("[[figures]]") {
            Published::load(&path).expect(&name);
            kinds[2] += 1;
        } else if has("[[claim]]") {
            Claims::load(&path).expect(&name);
            kinds[3] += 1;
        }
    }
    assert_eq!(kinds, [3, 4, 1, 1], "suites, subjects, figures, claims");
}

/// The error that a suite's example gives once `from` is `to`.
fn error(name: &str, from: &str, to: &str) -> String {
    let folder = written();
    let path = path(folder.path(), name);
    let text = std::fs::read_to_string(&path).expect("an example");
    assert!(text.contains(from), "{from}");
    std::fs::write(&path, text.replacen(from, to, 1)).expect("written");
    let error = if text.contains("[[step]]") {
        Suite::load(&path).err().map(|error| error.to_string())
    } else {
        Subject::load(&path).err().map(|error| error.to_string())
    };
    let error = error.expect("a mistake");
    error.replace(&folder.path().display().to_string(), ".")
}

#[test]
fn mistakes_give_the_errors_that_the_documentation_shows() {
    let document = pages();
    for error in [
        error("suite.toml", "member = 1", "member = 2"),
        error("suite.toml", "--iodepth", "--iodpeth"),
        error(
            "real.toml",
            "track = \"randwrite-4k\"",
            "track = \"randwrite-8k\"",
        ),
        error("real.toml", "{capacity*3/4}", "{size}"),
        error("patient.toml", "\"least-pending\"", "\"least-pendng\""),
        error(
            "patient.toml",
            "depth = 2\n",
            "depth = 2\nbitmap = \"none\"\n",
        ),
    ] {
        assert!(document.contains(&format!("error: {error}\n")), "{error}");
    }
}

/// Files of the repository that a page names in back quotes, such as `crates/sim/src/leap.rs`.
#[test]
fn files_that_pages_name_are_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut seen = 0;
    for part in ["docs/reference", "docs/guide", "docs/design"] {
        for page in std::fs::read_dir(root.join(part)).expect("pages") {
            let page = page.expect("a page").path();
            let text = std::fs::read_to_string(&page).expect("a page");
            for quoted in text.split('`').filter(|quoted| !quoted.contains('\n')) {
                let name = quoted.split(' ').next().unwrap_or_default();
                let folder = name.split('/').next().unwrap_or_default();
                if name.contains('/') && ["crates", "checks", "data"].contains(&folder) {
                    assert!(root.join(name).exists(), "{}: {name}", page.display());
                    seen += 1;
                }
            }
        }
    }
    assert!(seen > 50, "{seen} files are named");
}

/// Whom the crates know: the names behind `raidlab-` below `[dependencies]` of each.
fn known_by_manifests(root: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let rooms = std::fs::read_dir(root.join("crates")).expect("the crates");
    let of = |room: std::fs::DirEntry| {
        let text = std::fs::read_to_string(room.path().join("Cargo.toml")).expect("a manifest");
        let mut counts = false;
        let mut known = BTreeSet::new();
        for line in text.lines() {
            if line.starts_with('[') {
                counts = line.ends_with("dependencies]") && !line.contains("dev-");
            } else if let Some(rest) = line.strip_prefix("raidlab-").filter(|_| counts) {
                known.insert(
                    rest.split([' ', '.', '='])
                        .next()
                        .unwrap_or_default()
                        .to_owned(),
                );
            }
        }
        (room.file_name().to_string_lossy().into_owned(), known)
    };
    rooms.map(|room| of(room.expect("a crate"))).collect()
}

#[test]
fn the_architecture_page_says_who_knows_whom() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/design/architecture.md")).expect("the page");
    let (_, table) = page.split_once("```text\nunits").expect("the table");
    let (table, _) = table.split_once("```").expect("its end");
    let mut told: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut room = "units".to_owned();
    for (place, line) in table.lines().enumerate() {
        let mut words = line.split_whitespace();
        if place > 0 && !line.starts_with(' ') {
            room = words.next().unwrap_or_default().to_owned();
        }
        let known = told.entry(room.clone()).or_default();
        known.extend(words.filter(|word| *word != "-").map(str::to_owned));
    }
    assert_eq!(told, known_by_manifests(&root));
}
