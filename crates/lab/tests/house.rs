//! Rules of the house that no lint knows.

use std::fs;
use std::path::{Path, PathBuf};

/// Calls that end in a panic where a path, an argument or a tool's output is no UTF-8.
/// Blanks and line ends between them do not matter.
const PANICS: [&str; 9] = [
    ".to_str().unwrap()",
    ".to_str().expect(",
    ".into_string().unwrap()",
    ".into_string().expect(",
    "from_utf8(&output.stdout).unwrap()",
    "from_utf8(output.stdout).unwrap()",
    "from_utf8(output.stdout).expect(",
    "env::args()",
    "env::vars()",
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// What is not a test: tests have files of their own, or stand at a file's end.
fn without_tests(path: &Path, text: &str) -> String {
    let names = path
        .components()
        .map(|part| part.as_os_str().to_string_lossy());
    if names
        .into_iter()
        .any(|name| name == "tests" || name.ends_with("tests.rs"))
    {
        return String::new();
    }
    let end = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
    let lines = text[..end].lines().map(str::trim_start);
    lines.filter(|line| !line.starts_with("//")).collect()
}

#[test]
fn nothing_panics_at_bytes_that_are_no_utf_8() {
    let rooms = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut seen = 0;
    for room in fs::read_dir(rooms).expect("the rooms") {
        let source = room.expect("a room").path().join("src");
        let mut files = Vec::new();
        sources(&source, &mut files);
        for path in files {
            let text = fs::read_to_string(&path).expect("a source");
            let code = without_tests(&path, &text);
            seen += usize::from(!code.is_empty());
            for call in PANICS {
                assert!(!code.contains(call), "{}: {call}", path.display());
            }
        }
    }
    assert!(seen > 300, "{seen} files");
}
