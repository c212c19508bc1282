//! A member of a JSON document with its path from the root, for errors.

use crate::error::{ParseError, shorten};
use serde_json::{Map, Value};

/// A JSON object of a document.
#[derive(Debug, Clone)]
pub(super) struct Node<'json> {
    members: &'json Map<String, Value>,
    path: String,
    /// The line on which the document begins, from 1.
    line: usize,
}

impl<'json> Node<'json> {
    pub(super) fn root(value: &'json Value, line: usize) -> Result<Self, ParseError> {
        Self::of(value, String::new(), line)
    }

    fn of(value: &'json Value, path: String, line: usize) -> Result<Self, ParseError> {
        match value {
            Value::Object(members) => Ok(Self {
                members,
                path,
                line,
            }),
            _ => Err(wrong(value, path, line, "an object")),
        }
    }

    fn path(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }

    /// A member that exists and is not null.
    fn get(&self, key: &str) -> Option<&'json Value> {
        self.members.get(key).filter(|value| !value.is_null())
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.members.contains_key(key)
    }

    /// The names of all members, sorted, so that no feature of the JSON crate
    /// changes the order of anything.
    pub(super) fn keys(&self) -> Vec<&'json str> {
        let mut keys: Vec<&str> = self.members.keys().map(String::as_str).collect();
        keys.sort_unstable();
        keys
    }

    pub(super) fn scalar(&self, key: &str) -> Option<&'json Value> {
        self.get(key)
            .filter(|value| value.is_number() || value.is_string())
    }

    pub(super) fn object(&self, key: &str) -> Result<Option<Self>, ParseError> {
        self.get(key)
            .map(|value| Self::of(value, self.path(key), self.line))
            .transpose()
    }

    pub(super) fn objects(&self, key: &str) -> Result<Vec<Self>, ParseError> {
        let Some(value) = self.get(key) else {
            return Ok(Vec::new());
        };
        let Value::Array(values) = value else {
            return Err(wrong(value, self.path(key), self.line, "an array"));
        };
        values
            .iter()
            .enumerate()
            .map(|(index, value)| {
                Self::of(value, format!("{}[{index}]", self.path(key)), self.line)
            })
            .collect()
    }

    /// Reads a member in the form that it should have.
    fn read<T>(
        &self,
        key: &str,
        expected: &'static str,
        of: impl FnOnce(&'json Value) -> Option<T>,
    ) -> Result<Option<T>, ParseError> {
        let wrong = |value| wrong(value, self.path(key), self.line, expected);
        let read = |value| of(value).ok_or_else(|| wrong(value));
        self.get(key).map(read).transpose()
    }

    pub(super) fn number(&self, key: &str) -> Result<Option<f64>, ParseError> {
        let finite = |number: &f64| number.is_finite();
        self.read(key, "a number", |value| value.as_f64().filter(finite))
    }

    pub(super) fn count(&self, key: &str) -> Result<Option<u64>, ParseError> {
        self.read(key, "a whole number", |value| {
            let rounded = || value.as_f64().and_then(crate::number::whole);
            value.as_u64().or_else(rounded)
        })
    }

    pub(super) fn text(&self, key: &str) -> Result<Option<&'json str>, ParseError> {
        self.read(key, "a text", Value::as_str)
    }
}

fn wrong(value: &Value, path: String, line: usize, expected: &'static str) -> ParseError {
    ParseError::Member {
        line,
        path: if path.is_empty() {
            String::from("(root)")
        } else {
            path
        },
        expected,
        found: shorten(&value.to_string()),
    }
}
