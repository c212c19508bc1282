//! Matrices: one step or subject that stands for many, one for each combination of some values.
//!
//! `matrix = { bs = ["4k", "1m"], iodepth = [1, 8] }` makes four jobs of a
//! step, in the order in which the table is written, its last key changing
//! fastest. `{bs}` and `{iodepth}` are replaced wherever the step has text.

use crate::document::{Document, FileError};
use crate::placeholder;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use toml::Spanned;

/// A matrix as written.
pub(super) type RawMatrix = BTreeMap<Spanned<String>, Spanned<Vec<Value>>>;

/// A value, which is inserted into the text as it is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "expected a list of texts or of whole numbers")]
pub(super) enum Value {
    Text(String),
    Number(i64),
}

impl fmt::Display for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => formatter.write_str(text),
            Self::Number(number) => write!(formatter, "{number}"),
        }
    }
}

/// The largest number of entries that a matrix may make.
const MOST: usize = 10_000;

/// The values of a matrix's keys for one job or subject; empty without a matrix.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Combination(Vec<(String, Value)>);

impl Combination {
    /// The keys with their values.
    pub(super) fn values(&self) -> impl Iterator<Item = (&str, String)> {
        let values = self.0.iter();
        values.map(|(key, value)| (key.as_str(), value.to_string()))
    }

    /// The text with every key in braces replaced.
    pub(super) fn apply(&self, text: &str) -> String {
        let replace = |text: String, (key, value): (&str, String)| {
            text.replace(&format!("{{{key}}}"), &value)
        };
        self.values().fold(text.to_owned(), replace)
    }

    /// A setting with the keys replaced in all its texts; a text that is only a key in braces
    /// becomes that key's value, a number where the matrix has a number.
    pub(super) fn apply_to(&self, setting: &toml::Value) -> toml::Value {
        match setting {
            toml::Value::String(text) => {
                let whole = |(key, _): &&(String, Value)| *text == format!("{{{key}}}");
                match self.0.iter().find(whole) {
                    Some((_, Value::Number(number))) => toml::Value::Integer(*number),
                    _ => toml::Value::String(self.apply(text)),
                }
            }
            toml::Value::Array(items) => {
                toml::Value::Array(items.iter().map(|item| self.apply_to(item)).collect())
            }
            toml::Value::Table(table) => {
                let fields = table.iter();
                let applied = fields.map(|(name, value)| (name.clone(), self.apply_to(value)));
                toml::Value::Table(applied.collect())
            }
            other => other.clone(),
        }
    }
}

/// All combinations in order; without a matrix a single empty one.
///
/// # Errors
/// When a key is no name, is a placeholder's name or has no values, or when
/// there are too many combinations.
pub(super) fn combinations(
    document: &Document,
    matrix: Option<&Spanned<RawMatrix>>,
) -> Result<Vec<Combination>, FileError> {
    let mut all = vec![Combination::default()];
    let Some(matrix) = matrix else {
        return Ok(all);
    };
    let mut rows: Vec<(&Spanned<String>, &Spanned<Vec<Value>>)> = matrix.get_ref().iter().collect();
    rows.sort_by_key(|(key, _)| key.span().start);
    if rows.is_empty() {
        let remedy = "name what changes from job to job: matrix = { bs = [\"4k\", \"1m\"] }";
        return Err(document.invalid(matrix.span(), "the matrix is empty", remedy));
    }
    for (key, values) in rows {
        check_key(document, key)?;
        let values = (values.get_ref(), values.span());
        if values.0.is_empty() {
            let what = format!("there is no value for `{}`", key.get_ref());
            return Err(document.invalid(values.1, what, "write at least one"));
        }
        if all.len() * values.0.len() > MOST {
            let what = format!("the matrix makes more than {MOST} combinations");
            return Err(document.invalid(matrix.span(), what, "leave values out"));
        }
        let longer = |combination: &Combination, value: &Value| {
            let mut combination = combination.clone();
            combination.0.push((key.get_ref().clone(), value.clone()));
            combination
        };
        all = all
            .iter()
            .flat_map(|combination| values.0.iter().map(move |value| longer(combination, value)))
            .collect();
    }
    Ok(all)
}

fn check_key(document: &Document, key: &Spanned<String>) -> Result<(), FileError> {
    let name = key.get_ref().as_str();
    let letter = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
    let is_name = name.bytes().next().is_some_and(letter)
        && name
            .bytes()
            .all(|byte| letter(byte) || byte.is_ascii_digit());
    if !is_name {
        let what = format!("`{name}` is no name for a key of a matrix");
        let remedy = "use small letters, digits and `_`";
        return Err(document.invalid(key.span(), what, remedy));
    }
    if placeholder::NAMES.contains(&name) {
        let what = format!("`{{{name}}}` has a meaning of its own");
        return Err(document.invalid(key.span(), what, "call the key something else"));
    }
    Ok(())
}
