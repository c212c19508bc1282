//! Files of a room that import each other, in a circle: none can be read, tested or moved
//! without the others. A file and the ones in its own folder are one thing told in parts,
//! and so no circle; nor is what a room's `lib.rs` collects.
//!
//! An import is a path that begins with `crate`, `super` or `self`, or with a module that
//! the file declares, in a `use` or in the code; tests do not count. What such a path leads
//! to is the deepest file on it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// A file by its place in the room: `suite/step.rs` is `["suite", "step"]`.
type Module = Vec<String>;
/// Which files each file imports.
type Imports = BTreeMap<Module, BTreeSet<Module>>;

#[test]
fn no_files_import_each_other_in_a_circle() {
    let rooms = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (mut seen, mut found) = (0, Vec::new());
    for room in fs::read_dir(rooms).expect("the rooms") {
        let room = room.expect("a room").path();
        let name = room.file_name().expect("a name").to_string_lossy();
        let mut files = BTreeMap::new();
        read(&room.join("src"), &mut Vec::new(), &mut files);
        seen += files.len();
        let circles = circles(&imports(&files)).into_iter();
        found.extend(circles.map(|circle| format!("{name}: {}", circle.join(", "))));
    }
    assert!(seen > 500, "{seen} files");
    assert!(
        found.is_empty(),
        "{} circles\n{}",
        found.len(),
        found.join("\n")
    );
}

#[test]
fn a_circle_is_found_however_it_is_written() {
    let file = |name: &str, text: &str| {
        let place = name.split('/').map(str::to_owned).collect::<Module>();
        (place, text.to_owned())
    };
    let files = BTreeMap::from([
        file("one", "use crate::two::{self, Two, deep::{A, B}};"),
        file(
            "two",
            "mod deep;\npub fn two() -> super::three::Three { three() }",
        ),
        file("two/deep", "use super::Two; // its own folder"),
        file(
            "three",
            "#[cfg(test)]\nmod tests {\n use crate::four::Four;\n}",
        ),
        file(
            "four",
            "use {\n    crate::one::One,\n    crate::three::Three,\n};",
        ),
    ]);
    assert_eq!(circles(&imports(&files)), Vec::<Vec<String>>::new());
    let mut with = files;
    with.extend([file("three", "use crate::one::One;")]);
    let found = circles(&imports(&with));
    assert_eq!(found, [["one", "three", "two"]]);
}

/// Every file below a folder, but for tests.
fn read(folder: &Path, place: &mut Module, files: &mut BTreeMap<Module, String>) {
    for entry in fs::read_dir(folder).expect("sources") {
        let path = entry.expect("a source").path();
        let stem = path.file_stem().expect("a name").to_string_lossy();
        if stem == "tests" {
            continue;
        }
        place.push(stem.into_owned());
        if path.is_dir() {
            read(&path, place, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("a source is text");
            let own = ["mod", "lib", "main"].contains(&place[place.len() - 1].as_str());
            files.insert(place[..place.len() - usize::from(own)].to_vec(), text);
        }
        place.pop();
    }
}

fn imports(files: &BTreeMap<Module, String>) -> Imports {
    let each = files.iter().map(|(from, text)| {
        let mut to = BTreeSet::new();
        let code = code(text);
        for path in paths(&code) {
            let Some(mut target) = absolute(&path, from, &code) else {
                continue;
            };
            while !files.contains_key(&target) && target.pop().is_some() {}
            let related = target.starts_with(from) || from.starts_with(&target);
            if !related {
                to.insert(target);
            }
        }
        (from.clone(), to)
    });
    each.collect()
}

/// A file without comments and without its tests.
fn code(text: &str) -> String {
    let lines = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default());
    let mut code: Vec<&str> = Vec::new();
    for line in lines {
        let of_tests = code
            .last()
            .is_some_and(|last| last.trim() == "#[cfg(test)]");
        if of_tests && line.contains("mod ") && line.ends_with('{') {
            break;
        }
        if !(of_tests && line.trim_start().starts_with("use ")) {
            code.push(line);
        }
    }
    code.join("\n")
}

/// Every path in the code: those of `use` one by one, and those that begin with `crate` or
/// `super` elsewhere.
fn paths(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = String::new();
    for statement in code.split_inclusive([';', '{', '}']) {
        rest.push_str(statement);
        let Some(start) = rest.find("use ").filter(|start| is_word(&rest, *start)) else {
            others(&rest, &mut found);
            rest.clear();
            continue;
        };
        if rest.ends_with(';') {
            let tree: String = rest[start + 4..rest.len() - 1].split_whitespace().collect();
            expand("", &tree, &mut found);
            others(&rest[..start], &mut found);
            rest.clear();
        }
    }
    found
}

fn is_word(text: &str, start: usize) -> bool {
    let before = text[..start].chars().next_back();
    before.is_none_or(|letter| letter.is_whitespace() || ")}".contains(letter))
}

fn others(text: &str, found: &mut Vec<String>) {
    let letter = |letter: char| letter.is_alphanumeric() || "_:".contains(letter);
    let words = text.split(|one| !letter(one));
    let paths = words.filter(|word| word.starts_with("crate::") || word.starts_with("super::"));
    found.extend(paths.map(str::to_owned));
}

/// `a::{b, c::{d, e}}` as `a::b`, `a::c::d`, `a::c::e`; blanks are gone already.
fn expand(before: &str, tree: &str, found: &mut Vec<String>) {
    let Some((head, inner)) = tree.split_once('{') else {
        found.push(format!("{before}{tree}"));
        return;
    };
    let before = format!("{before}{head}");
    let inner = inner.strip_suffix('}').unwrap_or(inner);
    let (mut depth, mut start) = (0_i32, 0);
    for (index, letter) in inner.char_indices().chain([(inner.len(), ',')]) {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                if start < index {
                    expand(&before, &inner[start..index], found);
                }
                start = index + 1;
            }
            _ => {}
        }
    }
}

/// A path from the room's root; `None` for what is another room's.
fn absolute(path: &str, from: &Module, code: &str) -> Option<Module> {
    let mut words = path.split("::").filter(|word| !word.is_empty()).peekable();
    let mut place = from.clone();
    match *words.peek()? {
        "crate" => place.clear(),
        "self" | "super" => {}
        other if code.contains(&format!("mod {other};")) => {}
        _ => return None,
    }
    for word in words {
        match word {
            "super" => {
                place.pop();
            }
            "crate" | "self" | "*" => {}
            word => place.push(word.to_owned()),
        }
    }
    Some(place)
}

/// The circles: files that lead to each other, each circle once, by name.
fn circles(imports: &Imports) -> Vec<Vec<String>> {
    let reach = |from: &Module| {
        let mut seen = BTreeSet::new();
        let mut next: Vec<&Module> = vec![from];
        while let Some(file) = next.pop() {
            for to in imports.get(file).into_iter().flatten() {
                if seen.insert(to) {
                    next.push(to);
                }
            }
        }
        seen
    };
    let reached: BTreeMap<&Module, _> = imports.keys().map(|file| (file, reach(file))).collect();
    let mut found = BTreeSet::new();
    for (file, to) in &reached {
        if to.contains(file) {
            let both = to
                .iter()
                .filter(|other| reached.get(*other).is_some_and(|back| back.contains(file)));
            found.insert(both.map(|module| module.join("/")).collect::<Vec<_>>());
        }
    }
    found.into_iter().collect()
}
