//! Shared parts of the readers of data files: sizes and times as people write them, and every field
//! of a table as a setting with its source.

use crate::document::{Document, FileError, Problem, SCHEMA};
use raidlab_store::Setting;
use raidlab_units::{Bytes, LONGEST_TIME, Nanos, parse_bytes, parse_duration};
use serde::de::{Deserialize, Deserializer, Error as _};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The largest size accepted, 512 PiB: more than any array of disks holds.
pub(crate) const LARGEST_SIZE: Bytes = Bytes(1 << 59);

/// Reads a time.
///
/// # Errors
/// The error in words.
pub(crate) fn time(text: &str) -> Result<Nanos, String> {
    let time = parse_duration(text).map_err(|error| error.to_string())?;
    if time > LONGEST_TIME {
        return Err(format!("`{text}` is more than 366 days, the longest time"));
    }
    Ok(time)
}

/// A size written as text: `"128k"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size(pub Bytes);

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let size = parse_bytes(&text).map_err(D::Error::custom)?;
        if size > LARGEST_SIZE {
            let words = format!("`{text}` is more than {LARGEST_SIZE}, the largest size");
            return Err(D::Error::custom(words));
        }
        Ok(Self(size))
    }
}

/// A time written as text: `"59us"`, `"1h"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Time(pub Nanos);

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        time(&text).map(Self).map_err(D::Error::custom)
    }
}

/// Refuses a file of another schema.
///
/// # Errors
/// When `schema` is not [`SCHEMA`].
pub(crate) fn check_schema(document: &Document, schema: &Spanned<u32>) -> Result<(), FileError> {
    if *schema.get_ref() == SCHEMA {
        return Ok(());
    }
    Err(document.invalid(
        schema.span(),
        format!("this file has schema {}", schema.get_ref()),
        format!("this raidlab reads schema {SCHEMA}"),
    ))
}

/// Fields that only describe a table.
const DESCRIPTIVE: [&str; 5] = ["schema", "name", "title", "description", "sources"];

/// Collects every field of the table at `path` (the `index`-th of an array of tables there, or the
/// file's root for an empty path) as a setting, with its source out of the table's own `[sources]`,
/// in the file's order of names.
///
/// # Errors
/// When a source is given for a field that the table does not have.
pub(crate) fn collect(
    document: &Document,
    path: &[&str],
    index: Option<usize>,
    scope: &str,
) -> Result<Vec<Setting>, FileError> {
    let parsed = DeTable::parse(&document.text)
        .map_err(|error| document.error(0..0, Problem::Syntax(error.message().to_owned())))?;
    let mut table = parsed.get_ref();
    for name in path {
        let value = table.get(*name).map(Spanned::get_ref);
        table = match (value, index) {
            (Some(DeValue::Array(items)), Some(index)) => {
                match items.get(index).map(Spanned::get_ref) {
                    Some(DeValue::Table(item)) => item,
                    _ => return Ok(Vec::new()),
                }
            }
            (Some(DeValue::Table(inner)), _) => inner,
            _ => return Ok(Vec::new()),
        };
    }
    let mut settings = Vec::new();
    flatten(table, "", scope, &mut settings);
    if let Some(DeValue::Table(sources)) = table.get("sources").map(Spanned::get_ref) {
        for (key, source) in sources {
            let name = key.get_ref().as_ref();
            let Some(setting) = settings.iter_mut().find(|setting| setting.name == name) else {
                let known = settings.into_iter().map(|setting| setting.name);
                return Err(document.unknown(key.span(), "the setting", name, known));
            };
            let Some(words) = source.get_ref().as_str() else {
                let what = "a source is a text";
                return Err(document.invalid(source.span(), what, "write where it is from"));
            };
            words.clone_into(&mut setting.source);
        }
    }
    Ok(settings)
}

/// Appends the fields below `table`, nested names joined by dots.
fn flatten(table: &DeTable<'_>, prefix: &str, scope: &str, settings: &mut Vec<Setting>) {
    for (key, value) in table {
        let key = key.get_ref().as_ref();
        if prefix.is_empty() && DESCRIPTIVE.contains(&key) {
            continue;
        }
        let name = format!("{prefix}{key}");
        if let DeValue::Table(inner) = value.get_ref() {
            flatten(inner, &format!("{name}."), scope, settings);
        } else {
            settings.push(Setting::new(scope, name, print(value.get_ref()), ""));
        }
    }
}

/// A value as it is written in the file, strings without their quotes.
fn print(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) => number.as_str().to_owned(),
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Boolean(flag) => flag.to_string(),
        DeValue::Datetime(time) => time.to_string(),
        DeValue::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| print(item.get_ref())).collect();
            items.join(", ")
        }
        DeValue::Table(_) => String::new(),
    }
}
