//! Which subjects a suite compares, on which of its disks and with which file
//! systems.
//!
//! An entry of `subjects` is a subject's name or path, or a table around it
//! that gives it a name of its own, some of the suite's disks, members that
//! are taken out before the first step, and file systems of its own.

use super::reader::named_at;
use crate::catalogue::{self, LoadError};
use crate::document::{Document, FileError};
use crate::files::Files;
use crate::subject::{Subject, SubjectKind};
use raidlab_systems::FileSystemSpec;
use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, MapDeserializer};
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use std::fmt;
use std::path::Path;
use toml::Spanned;

/// An entry of `subjects` as written.
pub(super) enum RawSelection {
    Plain(String),
    Table(RawTable),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawTable {
    subject: Spanned<String>,
    name: Option<String>,
    title: Option<String>,
    members: Option<Spanned<Vec<Spanned<u16>>>>,
    #[serde(default)]
    removed: Vec<Spanned<u16>>,
    filesystems: Option<Spanned<Vec<Spanned<RawFileSystem>>>>,
}

/// An entry of `filesystems`; `None` is the raw array.
pub(super) struct RawFileSystem(Option<FileSystemSpec>);

/// Reads by hand what could be an untagged enum: those forget where in the
/// table a mistake is.
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
                let table = RawTable::deserialize(MapAccessDeserializer::new(map))?;
                Ok(RawSelection::Table(table))
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
/// When there is none, or one comes twice.
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
/// When a subject cannot be loaded, comes twice, or asks for members that are
/// not there.
pub(super) fn read_subjects(
    files: &Files,
    document: &Document,
    entries: &Spanned<Vec<Spanned<RawSelection>>>,
    folder: &Path,
    disks: usize,
) -> Result<Vec<Subject>, LoadError> {
    if entries.get_ref().is_empty() {
        let remedy = "name at least one subject";
        let error = document.invalid(entries.span(), "nothing is measured", remedy);
        return Err(error.into());
    }
    let mut subjects: Vec<Subject> = Vec::new();
    for entry in entries.get_ref() {
        let (name, span) = match entry.get_ref() {
            RawSelection::Plain(name) => (name, entry.span()),
            RawSelection::Table(table) => (table.subject.get_ref(), table.subject.span()),
        };
        let loaded = Subject::load_from(files, &catalogue::resolve(name, folder));
        let mut subject = loaded.map_err(|error| named_at(document, span, error))?;
        if let RawSelection::Table(table) = entry.get_ref() {
            select(document, table, &mut subject, disks)?;
        }
        if subjects.iter().any(|known| known.name == subject.name) {
            let what = format!("subject `{}` is named twice", subject.name);
            let remedy = "name each subject once, or give one a `name` of its own";
            return Err(document.invalid(entry.span(), what, remedy).into());
        }
        subjects.push(subject);
    }
    Ok(subjects)
}

/// Gives a subject what its entry says of it.
fn select(
    document: &Document,
    table: &RawTable,
    subject: &mut Subject,
    disks: usize,
) -> Result<(), FileError> {
    if let Some(name) = &table.name {
        subject.name.clone_from(name);
    }
    if let Some(title) = table.title.as_ref().or(table.name.as_ref()) {
        subject.title.clone_from(title);
    }
    let single = subject.kind == SubjectKind::Disk;
    if let Some(entries) = &table.members {
        let members = distinct(document, entries.get_ref(), disks, "`disks` names")?;
        if members.is_empty() || single && members.len() > 1 {
            let what = if single {
                "this subject is a single disk"
            } else {
                "no members"
            };
            let remedy = "write the disks' positions in `disks`, from 0";
            return Err(document.invalid(entries.span(), what, remedy));
        }
        subject.members = Some(members);
    }
    let members = subject.member_count(disks);
    subject.removed = distinct(document, &table.removed, members, "the subject has")?;
    if let Some(last) = table.removed.last()
        && subject.removed.len() == members
    {
        let what = "this leaves the array without a member";
        return Err(document.invalid(last.span(), what, "leave one in"));
    }
    subject.filesystems = read_filesystems(document, table.filesystems.as_ref())?;
    Ok(())
}

/// Positions below `count`, each once.
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
