//! A TOML file being read: every complaint names file, line, field and remedy.
//!
//! serde says what is wrong and at which byte; the field's path is found by
//! walking the parsed document to the deepest value that holds that byte.
//! Fields that people look for in the wrong place are listed by each reader and
//! refused with the right one, so that nobody takes them for a typing error.

mod values;

use raidlab_systems::RefusedWord;
use raidlab_units::line_of;
use serde::de::DeserializeOwned;
use std::ops::Range;
use toml::de::{DeTable, DeValue};

pub(crate) use values::check_name;
pub use values::check_values;

/// The version of the files' schema that this raidlab reads.
pub const SCHEMA: u32 = 1;

/// What is wrong with a file, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {}{problem}", field_prefix(.field))]
pub struct FileError {
    /// The file as it was named, or `md.toml (built in)`.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Path of the field, `step[3].member`; empty at the file's top.
    pub field: String,
    /// What is wrong there.
    pub problem: Problem,
}

impl FileError {
    /// The field and what is wrong with it.
    pub(crate) fn in_short(&self) -> String {
        format!("{}{}", field_prefix(&self.field), self.problem)
    }
}

/// `field: `, or nothing where there is no field.
fn field_prefix(field: &str) -> String {
    if field.is_empty() {
        String::new()
    } else {
        format!("{field}: ")
    }
}

/// What is wrong with a field; its text ends with what would be right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// Not TOML, or a value of the wrong type.
    #[error("{0}")]
    Syntax(String),
    /// No field has this name.
    #[error("there is no field `{name}`; {}", suggestion(.name, .known))]
    UnknownField {
        /// The name as given.
        name: String,
        /// The names that exist here.
        known: Vec<String>,
    },
    /// fio's options cannot be read.
    #[error("{0}")]
    Fio(String),
    /// A value that must be one of a set is not.
    #[error("{what} `{name}` is not known; {}", suggestion(.name, .known))]
    UnknownName {
        /// What the value names: `subject`, `read policy`.
        what: &'static str,
        /// The value as given.
        name: String,
        /// The values that exist.
        known: Vec<String>,
    },
    /// A field that has its place elsewhere, or another form.
    #[error("`{field}` does not belong here; {remedy}")]
    Elsewhere {
        /// The field that has no place there.
        field: String,
        /// Where or how to say it.
        remedy: String,
    },
    /// A field that must be there is not.
    #[error("the field `{field}` is missing; {remedy}")]
    Missing {
        /// The absent field.
        field: String,
        /// What to write.
        remedy: String,
    },
    /// Readable, but it makes no sense.
    #[error("{what}; {remedy}")]
    Invalid {
        /// What is wrong.
        what: String,
        /// What would be right.
        remedy: String,
    },
}

/// `did you mean ...?` where one name is near, else the whole list.
fn suggestion(name: &str, known: &[String]) -> String {
    let near = known
        .iter()
        .map(|candidate| (strsim::damerau_levenshtein(name, candidate), candidate))
        .min();
    match near {
        Some((distance, candidate)) if distance <= 1 + candidate.len() / 4 => {
            format!("did you mean `{candidate}`?")
        }
        None => "none is known here".to_owned(),
        _ => format!("known here: {}", known.join(", ")),
    }
}

/// A field that has its place elsewhere: its name, and where to say it.
pub(crate) type Reserved = (&'static str, &'static str);

/// A file's name and text.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    /// The file as errors should name it.
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
            let problem = classify(error.message(), reserved);
            let absent = matches!(problem, Problem::Missing { .. });
            let mut error = self.error(span, problem);
            if absent {
                // The place of what is not there is the whole table.
                error.field = String::new();
            }
            error
        })
    }

    /// An error at a place of the file.
    pub fn error(&self, span: Range<usize>, problem: Problem) -> FileError {
        FileError {
            file: self.file.clone(),
            line: self.line(span.start),
            field: field_at(&self.text, span.start),
            problem,
        }
    }

    /// A place of the file in the form in which errors begin: `own.toml:6: disks[2]`.
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

    /// An error about a word that a program must not be told, at the word if it stands
    /// below `start` as it is.
    pub fn refused(&self, start: usize, refused: &RefusedWord) -> FileError {
        let quoted = format!("\"{}\"", refused.word);
        let rest = self.text.get(start..).unwrap_or_default();
        // A key need not be in quotes.
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

/// serde's words for the mistakes that have a remedy, in ours.
fn classify(message: &str, reserved: &[Reserved]) -> Problem {
    let mut quoted = message.split('`').skip(1).step_by(2).map(str::to_owned);
    if message.starts_with("missing field") {
        return Problem::Missing {
            field: quoted.next().unwrap_or_default(),
            remedy: "every such table needs it".to_owned(),
        };
    }
    let field = message.starts_with("unknown field");
    if !field && !message.starts_with("unknown variant") {
        return Problem::Syntax(message.trim().replace('\n', ", "));
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

/// Appends the path below a table; true when something in it holds `offset`.
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

/// Appends the path below a value; true when the value holds `offset`.
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
