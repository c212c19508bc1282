//! The user's own files that an experiment needs, for the guest: the suite, the
//! subjects, and what these name in turn, at their own paths.

use super::{DESCRIPTION, Description};
use raidlab_guest::{Archive, Node};
use raidlab_lab::catalogue::is_path;
use std::fs;
use std::path::{Path, PathBuf};

/// The files that a run names, its relative paths beginning at `folder`. What
/// cannot be read is left out: reading the suite has told, or will.
pub fn named(suite: &str, subjects: &[String], folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    for name in std::iter::once(suite).chain(subjects.iter().map(String::as_str)) {
        if name.contains('/') || is_path(name) {
            add(folder.join(name), &mut files);
        }
    }
    files
}

fn add(path: PathBuf, files: &mut Vec<(PathBuf, Vec<u8>)>) {
    if files.iter().any(|(known, _)| *known == path) {
        return;
    }
    let Ok(contents) = fs::read(&path) else {
        return;
    };
    let table: Option<toml::Table> = str::from_utf8(&contents)
        .ok()
        .and_then(|text| toml::from_str(text).ok());
    let folder = path.parent().unwrap_or(Path::new("/")).to_owned();
    files.push((path, contents));
    if let Some(table) = table {
        let mut words = Vec::new();
        for value in table.values() {
            words_of(value, &mut words);
        }
        for word in words.into_iter().filter(|word| is_path(word)) {
            add(folder.join(word), files);
        }
    }
}

fn words_of(value: &toml::Value, words: &mut Vec<String>) {
    match value {
        toml::Value::String(word) => words.push(word.clone()),
        toml::Value::Array(values) => values.iter().for_each(|value| words_of(value, words)),
        toml::Value::Table(table) => table.values().for_each(|value| words_of(value, words)),
        _ => {}
    }
}

/// The files, the folder to stand in, and what is to be run.
pub fn archive(files: &[(PathBuf, Vec<u8>)], folder: &Path, description: &Description) -> Archive {
    let mut archive = Archive::default();
    let file = |contents: Vec<u8>| Node::File {
        mode: 0o644,
        contents,
    };
    archive.insert(&folder.to_string_lossy(), Node::Folder);
    for (path, contents) in files {
        archive.insert(&path.to_string_lossy(), file(contents.clone()));
    }
    // Of plain words and numbers: they always have a form.
    let text = serde_json::to_vec(description).unwrap_or_default();
    archive.insert(DESCRIPTION, file(text));
    archive
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_suite_names_comes_along_and_names_of_built_in_ones_do_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::write(
            at("suite.toml"),
            "subjects = [\"md\", \"own/subject.toml\"]\ndisks = [\"wd4000fyyz\", \"gone.toml\"]\n\
             [[step]]\nfio = \"--rw=read --bs=4k\"\n",
        )
        .expect("written");
        fs::create_dir(at("own")).expect("made");
        fs::write(at("own/subject.toml"), "like = \"../suite.toml\"\n").expect("written");
        fs::write(at("other.toml"), "name = \"other\"\n").expect("written");
        let subjects = ["md-raid1".to_owned(), "./other.toml".to_owned()];
        let files = named("suite.toml", &subjects, folder.path());
        let mut names: Vec<String> = files
            .iter()
            .map(|(path, _)| {
                path.file_name()
                    .expect("a name")
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
        names.sort();
        names.dedup();
        assert_eq!(names, ["other.toml", "subject.toml", "suite.toml"]);
        assert!(named("quick", &[], folder.path()).is_empty());
    }
}
