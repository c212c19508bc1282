//! What to type instead: remedies for names that lead nowhere, and for paths of something else.

use raidlab_lab::catalogue;
use raidlab_store::output::{Format, Found, look};
use raidlab_store::text::visible_path;
use std::path::{Path, PathBuf};

/// The remedy where a subject cannot be loaded.
pub const SUBJECTS: &str =
    "`raidlab subjects` lists the subjects; `raidlab subjects md --toml` prints a complete one";

/// The remedy where claims cannot be loaded.
pub const CLAIMS: &str = "docs/reference/figures.md says what such a file has";

/// The remedy for a name that is not known, or a path that leads nowhere.
///
/// A name with a `/` in it, or ending in `.toml`, is a path; people forget that.
pub(super) fn instead(name: &str, listing: &str) -> String {
    if Path::new(name).is_dir() {
        return format!("`{name}` is a folder here; {}", in_folder(Path::new(name)));
    }
    let near = [
        (
            Path::new(name).exists() && !name.is_empty(),
            format!("./{name}"),
        ),
        (
            Path::new(&format!("{name}.toml")).exists(),
            format!("./{name}.toml"),
        ),
        (
            Path::new(&format!("{name}.fio")).exists(),
            format!("./{name}.fio"),
        ),
    ];
    let mut near = near.into_iter().filter(|(there, _)| *there);
    let elsewhere = || of_another_kind(name).or_else(|| one_by_one(name));
    match (near.next(), elsewhere()) {
        (Some((_, path)), _) => format!("`{path}` is the file of that name here"),
        (None, Some(help)) => help,
        (None, None) => format!(
            "{listing}; a file is named by its path: ./{}",
            file_of(name)
        ),
    }
}

/// The remedy for the name of something built in that is of another kind.
fn of_another_kind(name: &str) -> Option<String> {
    let kinds = [
        ("suites", "a suite", "`raidlab run"),
        ("subjects", "a subject", "`raidlab run SUITE --subject"),
        ("disks", "a disk preset", "`raidlab run SUITE --disk"),
        (
            "processors",
            "a processor",
            "`raidlab run SUITE --processor",
        ),
    ];
    let mut kinds = kinds.into_iter();
    let (_, kind, command) = kinds.find(|(folder, ..)| {
        let mut names = raidlab_data::entries(folder).iter();
        names.any(|entry| entry.name == name && name != "hosts")
    })?;
    Some(format!("`{name}` is {kind}: {command} {name}`"))
}

/// The remedy for several names in one.
fn one_by_one(name: &str) -> Option<String> {
    let (first, _) = name.split_once(',')?;
    let words = format!("a list has no commas: `{first}` alone, and the option again for the next");
    Some(words)
}

/// The file name that an entry of this name would have.
fn file_of(name: &str) -> String {
    match name {
        "" => "NAME.toml".to_owned(),
        name if name.contains('.') => name.to_owned(),
        name => format!("{name}.toml"),
    }
}

/// The command that lists things of a kind.
pub(crate) fn listing(what: &str) -> &'static str {
    match what {
        "suite" => "`raidlab suites` lists the suites",
        "subject" => "`raidlab subjects` lists the subjects",
        "host" => "`raidlab subjects --hosts` lists the hosts",
        "disk preset" => "`raidlab disks` lists the presets",
        "processor" => "`raidlab processors` lists the processors",
        _ => CLAIMS,
    }
}

/// The remedy where a file of this kind is wrong that another file names.
pub(super) const fn help_with(kind: catalogue::Kind) -> Option<&'static str> {
    match kind {
        catalogue::Kind::Subject => Some(SUBJECTS),
        catalogue::Kind::Published => Some("docs/reference/figures.md tells what such a file has"),
        catalogue::Kind::Suite | catalogue::Kind::Claims => None,
    }
}

/// The remedy for a folder where a file belongs: files of users that are in it.
fn in_folder(folder: &Path) -> String {
    const NAMED: usize = 3;
    let entries = folder.read_dir().into_iter().flatten().flatten();
    let files = entries
        .map(|entry| entry.path())
        .filter(|path| path.is_file());
    let is_text = |path: &PathBuf| {
        let ending = path.extension().unwrap_or_default();
        ["toml", "fio", "json"].iter().any(|known| ending == *known)
    };
    let mut files: Vec<String> = files
        .filter(is_text)
        .map(|path| visible_path(&path))
        .collect();
    files.sort_unstable();
    match files.as_slice() {
        [] => "name a file; none in the folder ends in .toml, .fio or .json".to_owned(),
        files => format!(
            "name a file in it: {}{}",
            files[..files.len().min(NAMED)].join(", "),
            if files.len() > NAMED { ", ..." } else { "" }
        ),
    }
}

/// The remedy for a path that cannot be a describing file of this machine.
pub(super) fn instead_of_path(path: &Path) -> Option<String> {
    let text = path.to_str()?;
    if path.is_dir() {
        return Some(in_folder(path));
    }
    if text.contains("://") {
        return Some("files are read from this machine: download it first".to_owned());
    }
    None
}

/// The remedy for a real disk in the place of the file of a modelled one.
pub(super) fn instead_of_disk(path: &Path) -> Option<String> {
    let text = path.to_str().filter(|text| text.starts_with("/dev/"))?;
    let words =
        format!("for a real disk: `--on host --disk {text}`; modelled ones: `raidlab disks`");
    Some(words)
}

/// The remedy where a store is named in the place of one of its runs.
pub(super) fn store_in_place_of_run(run: &str) -> Option<String> {
    let is_store = matches!(look(Path::new(run)), Ok(Found::Ours(Format::Store)));
    is_store.then(|| format!("`{run}` is a store: `--store {run}` takes its runs"))
}
