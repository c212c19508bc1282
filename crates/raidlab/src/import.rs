//! The command `raidlab import`: it makes a run of results of others.

use crate::failure::{Failure, Kind};
use crate::{audit, output, report};
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use raidlab_audit::Audit;
use raidlab_import::{
    Given, ImportError, ImportOptions, Imported, check_once, figures, file_stem, how_to_give,
    import_figures, import_file, read_facts, short_facts,
};
use raidlab_lab::FileKind;
use raidlab_lab::catalogue::read_file;
use raidlab_report::RunData;
use raidlab_runs::new_run;
use raidlab_runs::notes::{STORE, remark};
use raidlab_store::output::{Format, Found, look};
use raidlab_store::text::{visible_bytes, visible_path};
use raidlab_store::{Store, StoreError, Taken};
use raidlab_units::{check_unpacked, nearest};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Arguments of `raidlab import`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Files, names of figures that come with raidlab, or folders of runs in Parquet.
    #[arg(value_name = "FILE|NAME|FOLDER", required_unless_present_any = ["list", "list_facts"])]
    files: Vec<PathBuf>,

    /// The name of the subject, if the files do not say it.
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    subject: Option<String>,

    /// The name of the suite, if the files do not say it.
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    suite: Option<String>,

    /// The machine on which it was measured.
    #[arg(long, value_name = "NAME")]
    host: Option<String>,

    /// The file system on which it was measured.
    #[arg(long, value_name = "NAME")]
    filesystem: Option<String>,

    /// A fact that the files do not say, such as ram=16GiB; may be repeated.
    #[arg(long = "fact", value_name = "NAME=VALUE", value_parser = Given::parse)]
    fact: Vec<Given>,

    /// A TOML file of facts, such as ram = "16GiB"; a table has the facts of one subject.
    #[arg(long, value_name = "FILE")]
    facts: Option<PathBuf>,

    /// List the facts that can be given by a short name.
    #[arg(long, exclusive = true)]
    list_facts: bool,

    /// The file that keeps the runs; made if it is not there.
    #[arg(long, value_name = "FILE", default_value = STORE)]
    store: PathBuf,

    /// List the figures that come with raidlab.
    #[arg(long, exclusive = true)]
    list: bool,
}

/// The reason why a file could not be imported.
#[derive(Debug, thiserror::Error)]
#[error("cannot import {name}")]
struct CannotImport<E: std::error::Error + 'static> {
    name: String,
    #[source]
    source: E,
}

/// Reads others' results as a run, and keeps it.
///
/// # Errors
/// When a file is missing or not understood, or the store cannot be written.
pub fn command(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.list {
        let mut text = String::new();
        for name in figures() {
            let _ = writeln!(text, "{name}");
        }
        return output::print(&text);
    }
    if arguments.list_facts {
        let rows = short_facts().map(|(fact, meaning)| vec![fact, meaning.to_owned()]);
        return output::print(&output::table(&["fact", "what it is"], &[], rows.collect()));
    }
    let folders = (arguments.files.iter()).filter(|name| Store::is_parquet_folder(name));
    match folders.count() {
        0 => {}
        all if all == arguments.files.len() => return take_over(arguments),
        _ => {
            let words = "folders of runs and files of others do not become one run";
            return Err(Failure::words(Kind::Usage, words).help("import them one after the other"));
        }
    }
    refuse_twice(&arguments.files)?;
    let facts = given(arguments)?;
    let mut whole: Option<Imported> = None;
    for path in &arguments.files {
        let file = name_among(path, &arguments.files).filter(|_| arguments.subject.is_none());
        let mut one = read(path, file.clone(), arguments)?;
        let note = file.and_then(|name| namesakes_in_words(path, &name, &one));
        one.notes.extend(note);
        whole = Some(match whole {
            None => one,
            Some(before) => before.join(one),
        });
    }
    let Some(mut imported) = whole else {
        return Err(Failure::words(Kind::Usage, "no files are named"));
    };
    let host = arguments.host.as_deref().unwrap_or_default();
    imported.take(&facts, host).map_err(Failure::input)?;
    let mut store = Store::open(&arguments.store)?;
    let name = keep(&mut store, &imported)?;
    let audit = audit::renew(&mut store, &name)?;
    let data = RunData::load(&store, &name)?;
    output::print(&report::text(&data))?;
    output::print(&wanted(&audit))?;
    output::print(&format!(
        "\nstore   {}\nrun     {name}\n",
        visible_path(&arguments.store)
    ))
}

/// Takes over runs that were written as Parquet.
fn take_over(arguments: &Arguments) -> Result<(), Failure> {
    let told = [
        ("--subject", arguments.subject.is_some()),
        ("--suite", arguments.suite.is_some()),
        ("--host", arguments.host.is_some()),
        ("--filesystem", arguments.filesystem.is_some()),
        ("--fact", !arguments.fact.is_empty()),
        ("--facts", arguments.facts.is_some()),
    ];
    if let Some((option, _)) = told.into_iter().find(|(_, given)| *given) {
        let words =
            format!("{option} says what files do not tell; runs in Parquet tell everything");
        return Err(Failure::words(Kind::Usage, words).help("leave it out"));
    }
    let is_new = !arguments.store.exists();
    let taken = take_folders(arguments);
    let is_empty = || Store::open_to_read(&arguments.store)?.runs();
    if taken.is_err() && is_new && is_empty().is_ok_and(|runs| runs.is_empty()) {
        // The error says more than that this fails.
        std::fs::remove_file(&arguments.store).ok();
    }
    taken
}

/// Takes over each folder into the store.
fn take_folders(arguments: &Arguments) -> Result<(), Failure> {
    let mut store = Store::open(&arguments.store)?;
    for folder in &arguments.files {
        let line = match store.read_parquet(folder)? {
            Taken::As(name) => format!("run     {name}\n"),
            Taken::Known(name) => format!("run     {name} was there already\n"),
        };
        output::print(&line)?;
    }
    output::print(&format!("store   {}\n", visible_path(&arguments.store)))
}

/// The remedy where a file of facts is wrong.
const FACTS: &str = "`raidlab import --list-facts` lists the facts; a file of them has lines such \
                     as `ram = \"16GiB\"`, and facts of one subject below [NAME]";

/// The facts of the command line and of the file of facts.
fn given(arguments: &Arguments) -> Result<Vec<Given>, Failure> {
    let mut facts = arguments.fact.clone();
    if let Some(path) = &arguments.facts {
        let text = read_file(path).map_err(|error| Failure::from(error).or_help(FACTS))?;
        let own = read_facts(&visible_path(path), &text);
        facts.extend(own.map_err(|error| Failure::input(error).help(FACTS))?);
    }
    check_once(&facts).map_err(|error| {
        Failure::usage(error)
            .help("leave one out; facts of one subject stand below [NAME] in a file")
    })?;
    Ok(facts)
}

/// Refuses a file that is named twice, as its results would count as repetitions of each other.
fn refuse_twice(files: &[PathBuf]) -> Result<(), Failure> {
    let mut known = BTreeSet::new();
    let is_known = |path: &&PathBuf| !known.insert(path.canonicalize().unwrap_or((*path).clone()));
    let Some(twice) = files.iter().find(is_known) else {
        return Ok(());
    };
    let words = format!("{} is named twice", visible_path(twice));
    Err(Failure::words(Kind::Usage, words).help("name each file once"))
}

/// Lists the rules that could not be judged, by the facts that they want; those that can be given
/// by a short name come first.
fn wanted(audit: &Audit) -> String {
    let mut by_fact: BTreeMap<(bool, String), Vec<&str>> = BTreeMap::new();
    for unjudged in &audit.coverage.unjudged {
        if !unjudged.missing.is_empty() {
            let short = how_to_give(&unjudged.missing);
            let key = match short {
                Some(short) => (false, format!("--fact {short}")),
                None => (true, unjudged.missing.clone()),
            };
            by_fact.entry(key).or_default().push(unjudged.rule);
        }
    }
    if by_fact.is_empty() {
        return String::new();
    }
    let mut text = "\nRules that could not be judged, by what would decide them:\n".to_owned();
    for ((_, fact), rules) in by_fact {
        let _ = writeln!(text, "  {fact}: {}", rules.join(", "));
    }
    text
}

/// The name by which a file is called among the files of one import: with its folders, where
/// another file of this name is in another folder.
fn name_among(path: &Path, files: &[PathBuf]) -> Option<String> {
    let stem = |path: &Path| file_stem(&visible_path(path));
    let namesakes = files.iter().filter(|other| stem(other) == stem(path));
    let folders: BTreeSet<&Path> = namesakes.filter_map(|other| other.parent()).collect();
    let own = path.parent().filter(|_| folders.len() > 1)?;
    let is_shared = |begin: &&Path| folders.iter().all(|other| other.starts_with(begin));
    let shared = own.ancestors().find(is_shared)?;
    let folders = own.strip_prefix(shared).ok()?.iter();
    let folders = folders.map(|folder| visible_path(folder.as_ref()));
    let words: Vec<String> = folders.chain([stem(path)]).collect();
    Some(words.join("-"))
}

/// The remark on a file's name that became a subject's because of such a clash.
fn namesakes_in_words(path: &Path, name: &str, imported: &Imported) -> Option<String> {
    let mut rows = imported.cells.iter().flat_map(|cell| &cell.rows);
    rows.find(|row| row.subject == name)?;
    Some(format!(
        "{}: another file has this name, so its subject is `{name}`; with `--subject` such files \
         are repetitions of one subject",
        visible_path(path)
    ))
}

fn read(path: &Path, file: Option<String>, arguments: &Arguments) -> Result<Imported, Failure> {
    let name = &*visible_path(path);
    let options = ImportOptions {
        subject: arguments.subject.clone(),
        file,
        suite: arguments.suite.clone(),
        host: arguments.host.clone(),
        filesystem: arguments.filesystem.clone(),
    };
    let refused = |source| {
        let name = name.to_owned();
        Failure::new(Kind::Input, CannotImport { name, source })
    };
    let known = figures();
    if !path.exists() && known.contains(&name) {
        return import_figures(name, &options).map_err(refused);
    }
    let near = nearest(name, &known).filter(|_| !path.exists());
    let bytes = bytes_of(path).map_err(|source: io::Error| {
        let help = match source.kind() {
            io::ErrorKind::IsADirectory => {
                "name the files in it; there is no run in it that `raidlab report --parquet` wrote"
            }
            io::ErrorKind::FileTooLarge => "no output of a tool has more than 1 GiB",
            io::ErrorKind::InvalidData => "the output of a tool is read as the tool printed it",
            _ => "`raidlab import --list` lists the figures that come with raidlab",
        };
        let near = near.map(|near| format!("did you mean `{near}`? {help}"));
        let help = near.unwrap_or_else(|| help.to_owned());
        let name = name.to_owned();
        Failure::new(Kind::Input, CannotImport { name, source }).help(help)
    })?;
    let text = text(&bytes);
    import_file(name, &text, &options).map_err(|error| {
        let help = match look(path) {
            Ok(Found::Ours(Format::Store)) => {
                "it is a store: `raidlab report RUN --parquet FOLDER --store FILE` writes a run of \
                 it as can be imported"
            }
            _ => "`raidlab import --help` says what is read, and how to make it",
        };
        let kind = matches!(error, ImportError::Unknown { .. });
        let kind = FileKind::in_words(name, &text).filter(|_| kind);
        refused(error).help(kind.unwrap_or_else(|| help.to_owned()))
    })
}

/// Reads all of a file, which may be a pipe, if it is not absurdly large, as a disk's image is.
fn bytes_of(path: &Path) -> io::Result<Vec<u8>> {
    const MOST: u64 = 1 << 30;
    let file = File::open(path)?;
    if file.metadata()?.is_dir() {
        let words = "it is a folder, and not a file";
        return Err(io::Error::new(io::ErrorKind::IsADirectory, words));
    }
    let mut bytes = Vec::new();
    let length = match file.metadata()?.len() {
        length @ 0..=MOST => length.max(file.take(MOST + 1).read_to_end(&mut bytes)? as u64),
        length => length,
    };
    match length > MOST {
        true => Err(io::Error::from(io::ErrorKind::FileTooLarge)),
        false => check_unpacked(&bytes).map(|()| bytes),
    }
}

/// Decodes the output of a tool; bytes that are no UTF-8 are shown, so that no two names become
/// one. `>` of Windows' PowerShell writes UTF-16, with a mark before it.
fn text(bytes: &[u8]) -> Cow<'_, str> {
    let utf_16 = |rest: &[u8], unit: fn([u8; 2]) -> u16| {
        let units = rest.as_chunks().0.iter().map(|&pair| unit(pair));
        char::decode_utf16(units)
            .map(|letter| letter.unwrap_or(char::REPLACEMENT_CHARACTER))
            .collect::<String>()
            .into()
    };
    match bytes {
        [0xff, 0xfe, rest @ ..] => return utf_16(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => return utf_16(rest, u16::from_be_bytes),
        _ => {}
    }
    match str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => bytes
            .utf8_chunks()
            .fold(String::new(), |mut text, chunk| {
                text.push_str(chunk.valid());
                text.push_str(&visible_bytes(chunk.invalid()));
                text
            })
            .into(),
    }
}

/// Puts an import into the store as a finished run.
fn keep(store: &mut Store, imported: &Imported) -> Result<String, StoreError> {
    let head = &imported.run;
    let name = format!("import-{}", head.suite);
    let mut run = new_run(&name, &head.bench, &head.suite, &head.suite_title);
    run.finished = Some(run.started.clone());
    let mut notes = vec![remark("Source", head.source.clone())];
    notes.extend(
        imported
            .notes
            .iter()
            .map(|note| remark("Import", note.clone())),
    );
    store.keep_run(&mut run, &notes, &imported.records, &imported.cells)?;
    Ok(run.name)
}
