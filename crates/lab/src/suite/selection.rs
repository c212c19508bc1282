//! The selection of a suite's subjects, with their disks and file systems.
//!
//! An entry of `subjects` is a subject's name or path, or a table around it with another name, some
//! of the suite's disks, members that are removed before the first step, other build settings, and
//! other file systems. With a matrix it stands for many ([`super::grid`]).

use super::grid::Grid;
use super::matrix::{Combination, RawMatrix, combinations};
use super::named::named_at;
use super::step::Context;
use crate::catalogue::{self, Kind, LoadError};
use crate::document::{Document, FileError, check_case, check_name};
use crate::settings::time;
use crate::subject::{SCHEDULERS, Subject, SubjectKind};
use raidlab_store::Setting;
use raidlab_systems::FileSystemSpec;
use raidlab_units::Nanos;
use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, MapDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::fmt;
use toml::Spanned;

/// An entry of `subjects` as written.
pub(super) enum RawSelection {
    Plain(String),
    Table(Box<RawTable>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawTable {
    subject: Spanned<String>,
    name: Option<Spanned<String>>,
    title: Option<String>,
    members: Option<Spanned<RawMembers>>,
    #[serde(default)]
    removed: Vec<Spanned<u16>>,
    scheduler: Option<Spanned<String>>,
    write_throttling: Option<Spanned<String>>,
    build: Option<Spanned<toml::Table>>,
    matrix: Option<Spanned<RawMatrix>>,
    draw: Option<Spanned<u32>>,
    filesystems: Option<Spanned<Vec<Spanned<RawFileSystem>>>>,
}

/// A subject's members among the suite's disks, as written.
pub(super) enum RawMembers {
    /// The disks at these positions of the suite's list, in this order.
    Listed(Vec<Spanned<u16>>),
    /// The first disks, so many: a key of the matrix in braces, or a number.
    First(String),
}

/// An entry of `filesystems`; `None` is the raw array.
pub(super) struct RawFileSystem(Option<FileSystemSpec>);

/// Written by hand in place of an untagged enum, which loses the place of an error in the table.
impl<'de> Deserialize<'de> for RawSelection {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = RawSelection;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a subject's name, or a table with `subject`")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(RawSelection::Plain(text.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                let table = Box::<RawTable>::deserialize(MapAccessDeserializer::new(map))?;
                Ok(RawSelection::Table(table))
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

impl<'de> Deserialize<'de> for RawMembers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = RawMembers;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a list of disks, or how many of the first ones")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(RawMembers::First(text.to_owned()))
            }

            fn visit_i64<E: Error>(self, count: i64) -> Result<Self::Value, E> {
                Ok(RawMembers::First(count.to_string()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(RawMembers::Listed)
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

impl<'de> Deserialize<'de> for RawFileSystem {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = RawFileSystem;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a file system's type, or a table with `type`")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                if text == "none" {
                    return Ok(RawFileSystem(None));
                }
                let fields = MapDeserializer::new([("type", text)].into_iter());
                FileSystemSpec::deserialize(fields).map(|spec| RawFileSystem(Some(spec)))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                let spec = FileSystemSpec::deserialize(MapAccessDeserializer::new(map))?;
                Ok(RawFileSystem(Some(spec)))
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

/// The file systems in their order, each once.
///
/// # Errors
/// When there is none, or one is listed twice.
pub(super) fn read_filesystems(
    document: &Document,
    entries: Option<&Spanned<Vec<Spanned<RawFileSystem>>>>,
) -> Result<Option<Vec<Option<FileSystemSpec>>>, FileError> {
    let Some(entries) = entries else {
        return Ok(None);
    };
    if entries.get_ref().is_empty() {
        let remedy = "name one, or \"none\" for the raw array";
        return Err(document.invalid(entries.span(), "nothing is measured", remedy));
    }
    let label = |spec: &Option<FileSystemSpec>| {
        let spec = spec.as_ref();
        spec.map_or_else(|| "none".to_owned(), FileSystemSpec::label)
    };
    let mut specs: Vec<Option<FileSystemSpec>> = Vec::new();
    for entry in entries.get_ref() {
        let spec = &entry.get_ref().0;
        if specs.iter().any(|known| label(known) == label(spec)) {
            let what = format!("file system `{}` is named twice", label(spec));
            let remedy = "give each its own `name`";
            return Err(document.invalid(entry.span(), what, remedy));
        }
        let known: Vec<String> = specs.iter().map(label).collect();
        let known = known.iter().map(|known| (&**known, String::new()));
        document.hold(entry.span(), check_case("file system", &label(spec), known))?;
        if let Some(Err(refused)) = spec.as_ref().map(FileSystemSpec::check_words) {
            return Err(document.refused(entry.span().start, &refused));
        }
        specs.push(spec.clone());
    }
    Ok(Some(specs))
}

/// Loads the subjects; each has a name of its own.
///
/// # Errors
/// When a subject cannot be loaded, is listed twice, or names members that do not exist.
pub(super) fn read_subjects(
    context: Context<'_>,
    entries: &Spanned<Vec<Spanned<RawSelection>>>,
    disks: usize,
    grid: &mut Grid<'_>,
) -> Result<Vec<Subject>, LoadError> {
    let document = context.document;
    if entries.get_ref().is_empty() {
        let remedy = "name at least one subject";
        let error = document.invalid(entries.span(), "nothing is measured", remedy);
        return Err(error.into());
    }
    let mut subjects: Vec<Subject> = Vec::new();
    for entry in entries.get_ref() {
        let (matrix, draw, name) = match entry.get_ref() {
            RawSelection::Plain(name) => (None, None, name),
            RawSelection::Table(table) => (
                table.matrix.as_ref(),
                table.draw.as_ref(),
                table.name.as_ref().unwrap_or(&table.subject).get_ref(),
            ),
        };
        let all = combinations(document, matrix)?;
        for combination in grid.take_combinations(name, all, matrix, draw)? {
            let subject = read_subject(context, entry, disks, &combination)?;
            if subjects.iter().any(|known| known.name == subject.name) {
                let what = format!("subject `{}` is named twice", subject.name);
                let remedy = match matrix {
                    None => "name each subject once, or give one a `name` of its own",
                    Some(_) => "put every key of the matrix into `name`, in braces",
                };
                return Err(document.invalid(entry.span(), what, remedy).into());
            }
            let known = subjects.iter().map(|known| (&*known.name, String::new()));
            document.hold(entry.span(), check_case("subject", &subject.name, known))?;
            grid.add(&subject.name, &combination);
            subjects.push(subject);
        }
    }
    Ok(subjects)
}

/// Loads the subject of an entry with the entry's settings.
fn read_subject(
    context: Context<'_>,
    entry: &Spanned<RawSelection>,
    disks: usize,
    combination: &Combination,
) -> Result<Subject, LoadError> {
    let Context {
        files,
        document,
        folder,
        suite,
    } = context;
    let (name, span) = match entry.get_ref() {
        RawSelection::Plain(name) => (name, entry.span()),
        RawSelection::Table(table) => (table.subject.get_ref(), table.subject.span()),
    };
    let path = catalogue::resolve(&combination.apply(name), folder);
    let RawSelection::Table(table) = entry.get_ref() else {
        let loaded = Subject::load_from(files, &path);
        return loaded.map_err(|error| named_at(document, span, Kind::Subject, error));
    };
    let loaded = match &table.build {
        None => Subject::load_from(files, &path),
        Some(build) => {
            let settings = build.get_ref().iter();
            let settings =
                settings.map(|(name, value)| (name.clone(), combination.apply_to(value)));
            let loaded = Subject::load_built(files, &path, settings.collect(), suite);
            match loaded {
                Err(LoadError::File(error)) => {
                    let what = format!("`{}` cannot be built so: {}", name, error.in_short());
                    let remedy = "these settings take the place of its own [build]";
                    return Err(document.invalid(build.span(), what, remedy).into());
                }
                loaded => loaded,
            }
        }
    };
    let mut subject = loaded.map_err(|error| named_at(document, span, Kind::Subject, error))?;
    select(document, table, &mut subject, disks, combination)?;
    set_queues(context, table, &mut subject, combination)?;
    Ok(subject)
}

/// Applies an entry's settings to a subject.
fn select(
    document: &Document,
    table: &RawTable,
    subject: &mut Subject,
    disks: usize,
    combination: &Combination,
) -> Result<(), FileError> {
    if let Some(name) = &table.name {
        subject.name = combination.apply(name.get_ref());
        document.hold(name.span(), check_name(&subject.name))?;
    }
    let name = table.name.as_ref().map(Spanned::get_ref);
    if let Some(title) = table.title.as_ref().or(name) {
        subject.title = combination.apply(title);
    }
    let single = subject.kind == SubjectKind::Disk;
    if let Some(entry) = &table.members {
        let members = match entry.get_ref() {
            RawMembers::Listed(entries) => distinct(document, entries, disks, "`disks` names")?,
            RawMembers::First(count) => first(document, entry, &combination.apply(count), disks)?,
        };
        if members.is_empty() || single && members.len() > 1 {
            let what = if single {
                "this subject is a single disk"
            } else {
                "no members"
            };
            let remedy = "write the disks' positions in `disks`, from 0";
            return Err(document.invalid(entry.span(), what, remedy));
        }
        subject.members = Some(members);
    }
    subject.filesystems = read_filesystems(document, table.filesystems.as_ref())?;
    let members = subject.member_count(disks);
    subject.removed = distinct(document, &table.removed, members, "the subject has")?;
    if let Some(last) = table.removed.last() {
        let gone = subject.removed.len();
        let (what, remedy) = if let Some(what) = subject.cannot_miss(gone, members) {
            (what, "leave one in")
        } else if subject.can_lose_a_member() {
            return Ok(());
        } else {
            let what = "nothing can be taken out of this subject";
            (what.to_owned(), "leave `removed` out")
        };
        return Err(document.invalid(last.span(), what, remedy));
    }
    Ok(())
}

/// Applies an entry's queue settings to a subject's members.
fn set_queues(
    context: Context<'_>,
    table: &RawTable,
    subject: &mut Subject,
    combination: &Combination,
) -> Result<(), FileError> {
    let document = context.document;
    let written = |entry: &Option<Spanned<String>>| {
        let entry = entry.as_ref()?;
        Some((combination.apply(entry.get_ref()), entry.span()))
    };
    let (scope, source) = (
        format!("subject {}", subject.name),
        format!("suite {}", context.suite),
    );
    let setting = |name: &str, value: &str| Setting::new(&scope, name, value, &source);
    let mut settings = Vec::new();
    if let Some((name, place)) = written(&table.scheduler) {
        if !SCHEDULERS.contains(&name.as_str()) {
            return Err(document.unknown(place, "scheduler", &name, SCHEDULERS));
        }
        settings.push(setting("scheduler", &name));
        subject.scheduler = Some(name);
    }
    if let Some((latency, place)) = written(&table.write_throttling) {
        subject.write_throttling = Some(match latency.as_str() {
            "off" => Nanos::ZERO,
            text => microseconds(text).map_err(|what| {
                document.invalid(place, what, "write a time, as `75ms`, or `off`")
            })?,
        });
        settings.push(setting("write_throttling", &latency));
    }
    subject.settings.extend(settings);
    Ok(())
}

/// Reads a time that the kernel's tunable can hold. The unit is required: the tunable is in
/// microseconds, but elsewhere a time without a unit is in seconds.
fn microseconds(text: &str) -> Result<Nanos, String> {
    if text.ends_with(|letter: char| letter.is_ascii_digit()) {
        return Err(format!("`{text}` has no unit"));
    }
    let time = time(text)?;
    match time.0 % 1_000 {
        0 => Ok(time),
        _ => Err(format!("`{text}` is no whole number of microseconds")),
    }
}

/// The positions of the first disks, so many.
fn first(
    document: &Document,
    entry: &Spanned<RawMembers>,
    count: &str,
    disks: usize,
) -> Result<Vec<u16>, FileError> {
    let known = count.parse::<u16>().ok();
    let known = known.filter(|&count| usize::from(count) <= disks);
    known.map(|count| (0..count).collect()).ok_or_else(|| {
        let what = format!("`{count}` is no number of the suite's disks");
        let remedy = format!("`disks` names {disks}: write 1 to {disks}, or a list of them");
        document.invalid(entry.span(), what, remedy)
    })
}

/// Checks that positions are below `count` and listed once.
fn distinct(
    document: &Document,
    entries: &[Spanned<u16>],
    count: usize,
    whose: &str,
) -> Result<Vec<u16>, FileError> {
    let mut positions = Vec::new();
    for entry in entries {
        let position = *entry.get_ref();
        if usize::from(position) >= count {
            let what = format!("there is no disk {position}");
            let remedy = format!("{whose} {count} disks: 0 to {}", count - 1);
            return Err(document.invalid(entry.span(), what, remedy));
        }
        if positions.contains(&position) {
            let what = format!("disk {position} is named twice");
            return Err(document.invalid(entry.span(), what, "name each disk once"));
        }
        positions.push(position);
    }
    Ok(positions)
}
