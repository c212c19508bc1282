//! The specification of an array, as in a subject's file.
//!
//! The `[build]` table holds one table, named for the system, with its
//! settings:
//!
//! ```toml
//! [build.md]
//! level = "raid5"
//! chunk = "512k"
//! ```
//!
//! The system is the table's name, not a field in it: only then can a reader of TOML refuse an
//! unknown field, or an invalid value, at its own line rather than at the table's.

use super::ArraySystem;
use raidlab_units::{Bytes, parse_bytes};
use serde::de::{Deserialize, Deserializer, Error};
use std::ops::{Deref, DerefMut};

include!(concat!(env!("OUT_DIR"), "/systems.rs"));

impl ArraySpec {
    /// A minimal array of each system, in the order of names: these are looked for where a run may
    /// have left something.
    #[must_use]
    pub fn one_of_each() -> Vec<Self> {
        // A test reads each of them.
        let kinds = LEAST.iter();
        kinds
            .filter_map(|(name, text)| {
                serde_json::from_str(&format!("{{\"{name}\": {text}}}")).ok()
            })
            .collect()
    }
}

impl Deref for ArraySpec {
    type Target = dyn ArraySystem;

    fn deref(&self) -> &Self::Target {
        self.system()
    }
}

impl DerefMut for ArraySpec {
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.system_mut()
    }
}

/// Reads a size as text (`512k`).
///
/// # Errors
/// When the text is no size.
pub(crate) fn size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
    at_most(deserializer, LARGEST_SIZE)
}

/// The largest size accepted, 512 PiB: more than any array of disks holds.
const LARGEST_SIZE: Bytes = Bytes(1 << 59);

/// The largest chunk accepted, 1 GiB.
const LARGEST_CHUNK: Bytes = Bytes(1 << 30);

fn at_most<'de, D: Deserializer<'de>>(deserializer: D, most: Bytes) -> Result<Bytes, D::Error> {
    let text = String::deserialize(deserializer)?;
    match parse_bytes(&text).map_err(D::Error::custom)? {
        size if size > most => Err(D::Error::custom(format!("`{text}` is more than {most}"))),
        size => Ok(size),
    }
}

/// Reads a chunk, or any other part of a stripe.
///
/// # Errors
/// When the text is no size, or more than 1 GiB.
pub(crate) fn chunk<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
    at_most(deserializer, LARGEST_CHUNK)
}

/// Reads a chunk in a field that may be left out.
///
/// # Errors
/// When the text is no size, or more than 1 GiB.
pub(crate) fn optional_chunk<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Bytes>, D::Error> {
    chunk(deserializer).map(Some)
}

/// Reads a size in a field that may be left out.
///
/// # Errors
/// When the text is no size.
pub(crate) fn optional_size<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Bytes>, D::Error> {
    size(deserializer).map(Some)
}

#[cfg(test)]
mod tests;
