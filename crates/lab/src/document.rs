//! Reading of TOML files: every error names file, line, field and remedy.
//!
//! serde reports the error and its byte; the field's path is found by walking the parsed
//! document to the deepest value that holds that byte. Fields that people expect in the wrong
//! place are listed by each reader and refused with the right place, so that they are not taken
//! for typing errors.

mod values;

use raidlab_systems::RefusedWord;
use raidlab_units::{line_of, plain_words, suggestion};
use serde::de::DeserializeOwned;
use std::ops::Range;
use toml::de::{DeTable, DeValue};

pub(crate) use values::{check_case, check_name};

/// The version of the files' schema that this raidlab reads.
pub const SCHEMA: u32 = 1;

/// An error in a file, and its place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {}{problem}", field_prefix(.field))]
pub struct FileError {
    /// The file as it was named, or `md.toml (built in)`.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The path of the field, `step[3].member`; empty at the file's top.
    pub field: String,
    /// The problem at that place.
    pub problem: Problem,
}

impl FileError {
    /// The field and the problem, in words.
    pub(crate) fn in_short(&self) -> String {
        format!("{}{}", field_prefix(&self.field), self.problem)
    }
}

/// The text `field: `, empty where there is no field.
fn field_prefix(field: &str) -> String {
    if field.is_empty() {
        String::new()
    } else {
        format!("{field}: ")
    }
}

/// A problem with a field; its text ends with the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The text is not TOML, or a value has the wrong type.
    #[error("{0}")]
    Syntax(String),
    /// No field has this name.
    #[error("there is no field `{name}`; {}", suggestion(.name, .known))]
    UnknownField {
        /// The name as given.
        name: String,
        /// The names that are allowed there.
        known: Vec<String>,
    },
    /// fio's options cannot be read.
    #[error("{0}")]
    Fio(String),
    /// A value that must be one of a set is not.
    #[error("{what} `{name}` is not known; {}", suggestion(.name, .known))]
    UnknownName {
        /// The kind of name: `subject`, `read policy`.
        what: &'static str,
        /// The value as given.
        name: String,
        /// The allowed values.
        known: Vec<String>,
    },
    /// The field belongs to another place, or has another form.
    #[error("`{field}` does not belong here; {remedy}")]
    Elsewhere {
        /// The field that has no place there.
        field: String,
        /// The remedy: where or how to write it.
        remedy: String,
    },
    /// A required field is missing.
    #[error("the field `{field}` is missing; {remedy}")]
    Missing {
        /// The missing field.
        field: String,
        /// The remedy: the field to write, in words.
        remedy: String,
    },
    /// The value is readable, but makes no sense.
    #[error("{what}; {remedy}")]
    Invalid {
        /// The error in words.
        what: String,
        /// The remedy in words.
        remedy: String,
    },
}

/// A field that belongs to another place: its name, and where to write it.
pub(crate) type Reserved = (&'static str, &'static str);

/// A file's name and text, being read.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    /// The file's name in errors.
    pub file: String,
    /// The whole text of the file.
    pub text: String,
}

impl Document {
    /// Reads the text as a `T`.
    ///
    /// # Errors
    /// With line, field and remedy when the text is not TOML or not a `T`.
    pub fn decode<T: DeserializeOwned>(&self, reserved: &[Reserved]) -> Result<T, FileError> {
        self.check_values()?;
        toml::from_str(&self.text).map_err(|error| {
            let span = error.span().unwrap_or(0..0);
            let place = self.text.get(span.clone()).unwrap_or_default();
            let problem = classify(error.message(), place, reserved);
            let absent = matches!(problem, Problem::Missing { .. });
            let mut error = self.error(span, problem);
            if absent {
                // The place of a missing field is the whole table.
                error.field = String::new();
            }
            error
        })
    }

    /// The error of a problem at a place of the file.
    pub fn error(&self, span: Range<usize>, problem: Problem) -> FileError {
        FileError {
            file: self.file.clone(),
            line: self.line(span.start),
            field: field_at(&self.text, span.start),
            problem,
        }
    }

    /// A place of the file as errors name it: `own.toml:6: disks[2]`.
    pub fn place(&self, span: Range<usize>) -> String {
        let (line, field) = (self.line(span.start), field_at(&self.text, span.start));
        format!("{}:{line}: {field}", self.file)
    }

    /// [`Problem::Invalid`] at a place of the file.
    pub fn invalid(
        &self,
        span: Range<usize>,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) -> FileError {
        let (what, remedy) = (what.into(), remedy.into());
        self.error(span, Problem::Invalid { what, remedy })
    }

    /// [`Problem::Missing`] at a place of the file.
    pub fn missing(&self, span: Range<usize>, field: &str, remedy: &str) -> FileError {
        let (field, remedy) = (field.to_owned(), remedy.to_owned());
        self.error(span, Problem::Missing { field, remedy })
    }

    /// [`Problem::UnknownName`] at a place of the file.
    pub fn unknown<K: Into<String>>(
        &self,
        span: Range<usize>,
        what: &'static str,
        name: &str,
        known: impl IntoIterator<Item = K>,
    ) -> FileError {
        let known = known.into_iter().map(Into::into).collect();
        let name = name.to_owned();
        self.error(span, Problem::UnknownName { what, name, known })
    }

    /// The error of a word that must not be given to a program, at the place of the word if it is
    /// found literally after `start`.
    pub fn refused(&self, start: usize, refused: &RefusedWord) -> FileError {
        let quoted = format!("\"{}\"", refused.word);
        let rest = self.text.get(start..).unwrap_or_default();
        // Keys may be without quotes.
        let found = rest.find(&quoted).or_else(|| rest.find(&refused.word));
        let start = start + found.unwrap_or(0);
        let remedy = "leave it out; what only shapes the array or file system stays";
        self.invalid(start..start + 1, refused.to_string(), remedy)
    }

    /// The line of a byte, from 1.
    pub fn line(&self, byte: usize) -> usize {
        line_of(&self.text, byte)
    }
}

/// Turns serde's messages into our problems, for the mistakes that have a remedy.
fn classify(message: &str, place: &str, reserved: &[Reserved]) -> Problem {
    let mut quoted = message.split('`').skip(1).step_by(2).map(str::to_owned);
    if message.starts_with("missing field") {
        return Problem::Missing {
            field: quoted.next().unwrap_or_default(),
            remedy: "every such table needs it".to_owned(),
        };
    }
    let field = message.starts_with("unknown field");
    if !field && !message.starts_with("unknown variant") {
        return Problem::Syntax(plain_words(message, place));
    }
    let name = quoted.next().unwrap_or_default();
    let known = quoted.collect();
    if let Some((field, remedy)) = reserved.iter().find(|(field, _)| *field == name) {
        return Problem::Elsewhere {
            field: (*field).to_owned(),
            remedy: (*remedy).to_owned(),
        };
    }
    if field {
        Problem::UnknownField { name, known }
    } else {
        Problem::UnknownName {
            what: "the value",
            name,
            known,
        }
    }
}

/// The path of the deepest value that holds the byte at `offset`.
fn field_at(text: &str, offset: usize) -> String {
    let mut path = String::new();
    if let Ok(table) = DeTable::parse(text) {
        walk_table(table.get_ref(), offset, &mut path);
    }
    path
}

/// Appends the path below a table; returns true when an entry of it holds `offset`.
fn walk_table(table: &DeTable<'_>, offset: usize, path: &mut String) -> bool {
    for (key, value) in table {
        let length = path.len();
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(key.get_ref());
        if key.span().contains(&offset) || walk_value(value, offset, path) {
            return true;
        }
        path.truncate(length);
    }
    false
}

/// Appends the path below a value; returns true when the value holds `offset`.
fn walk_value(value: &toml::Spanned<DeValue<'_>>, offset: usize, path: &mut String) -> bool {
    match value.get_ref() {
        // A table's own span is its header; its entries lie anywhere below.
        DeValue::Table(table) => walk_table(table, offset, path) || value.span().contains(&offset),
        DeValue::Array(items) => {
            let length = path.len();
            for (index, item) in items.iter().enumerate() {
                path.push_str(&format!("[{}]", index + 1));
                if walk_value(item, offset, path) {
                    return true;
                }
                path.truncate(length);
            }
            value.span().contains(&offset)
        }
        _ => value.span().contains(&offset),
    }
}
