//! A run as a folder of Parquet files, for DuckDB, Polars, pyarrow and their like, and
//! back into a store.
//!
//! There is a file for each table of the store, with the table's own columns as
//! `schema.sql` names them. Numbers by which rows refer to each other mean something in one
//! store only, so in their place stand the run's name, the number of the measurement within
//! the run, and what is in a record's scope. Types are those that every reader has: signed
//! integers of 64 bits, doubles, strings, bytes, and instants in microseconds. Rows stand
//! experiment by experiment, as they were added, in groups of a fixed size, so the same
//! rows are the same bytes, in whatever order experiments ended.
//!
//! `histograms` repeats what is in the measurements' `latency_histogram`, for readers who
//! cannot decode that; it is not read back.

mod read;
mod write;

use super::seal::digest_of_value;
use crate::output::OutputError;
use crate::schema::failure;
use crate::text::visible_path;
use crate::{SCHEMA_VERSION, StoreError};
use raidlab_units::PathError;
use rusqlite::Connection;
use rusqlite::types::{Value, ValueRef};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// How the files say who wrote them.
const CREATED_BY: &str = concat!("raidlab version ", env!("CARGO_PKG_VERSION"));
/// Keys of what a file says of itself: the version of the tables, the run's name, its
/// seed, the version of raidlab that ran it and the SHA-256 of its plan.
const KEYS: [&str; 5] = [
    "raidlab.schema_version",
    "raidlab.run",
    "raidlab.seed",
    "raidlab.version",
    "raidlab.plan_sha256",
];
/// Key of the digest of a file's rows, FNV-1a of 64 bits in hexadecimal digits. Parquet's own
/// sums of pages are not written by everybody, and checked by few.
const DIGEST: &str = "raidlab.fnv1a";
/// The file with the run itself, by which a folder is known.
const RUN: &str = "run";

/// Why a run cannot be written as Parquet, or not read back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ParquetError {
    /// The store that is exported or filled fails.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file cannot be written.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// The folder cannot be made.
    #[error(transparent)]
    Folder(PathError),
    /// A file cannot be opened.
    #[error(transparent)]
    Open(#[from] PathError),
    /// A file cannot be encoded or decoded.
    #[error("{} as Parquet", visible_path(.path))]
    Format {
        /// The file whose bytes are wrong, or could not be made.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: parquet::errors::ParquetError,
    },
    /// A file is no table of a run, or not of this one.
    #[error("{}: {why}", visible_path(.path))]
    Refused {
        /// The file that is not taken.
        path: PathBuf,
        /// Why it is not taken.
        why: String,
    },
}

/// What became of a run that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Taken {
    /// It is in the store now, under this name.
    As(String),
    /// The same run was in the store already, under this name.
    Known(String),
}

/// What rows of a table belong to, by which they are found again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Parent {
    /// Rows belong to the run alone.
    Run,
    /// The run; and others belong to them, by their number within it.
    Numbered,
    /// A measurement, by its number within the run.
    Measurement,
    /// Some of the run's cells.
    Scope,
    /// A series of samples.
    Series,
}

/// A table of the store that is written.
struct Table {
    /// The file's name, without its ending.
    file: &'static str,
    table: &'static str,
    parent: Parent,
    order: &'static str,
}

/// All of them, each behind those that it refers to.
static TABLES: LazyLock<Vec<Table>> = LazyLock::new(|| {
    let text = include_str!("parquet/tables.txt");
    raidlab_units::table(text, |[file, table, parent, order]| {
        let parent = match parent {
            "Run" => Parent::Run,
            "Numbered" => Parent::Numbered,
            "Measurement" => Parent::Measurement,
            "Scope" => Parent::Scope,
            "Series" => Parent::Series,
            _ => return None,
        };
        Some(Table {
            file,
            table,
            parent,
            order,
        })
    })
});

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Integer,
    Real,
    Text,
    Bytes,
    /// Microseconds since 1970 in UTC; the store has it as RFC 3339, in whole seconds.
    Instant,
}

/// A column of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Column {
    name: String,
    kind: Kind,
    required: bool,
}

impl Column {
    fn new(name: &str, kind: Kind, required: bool) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            required,
        }
    }

    /// The column as Parquet's message types write it.
    fn in_words(&self) -> String {
        let repetition = if self.required {
            "required"
        } else {
            "optional"
        };
        let (kind, logical) = match self.kind {
            Kind::Integer => ("int64", ""),
            Kind::Real => ("double", ""),
            Kind::Text => ("byte_array", " (string)"),
            Kind::Bytes => ("byte_array", ""),
            Kind::Instant => ("int64", " (timestamp(micros,true))"),
        };
        format!("{repetition} {kind} {}{logical};", self.name)
    }
}

/// The message type of a file with these columns.
fn message(file: &str, columns: &[Column]) -> String {
    let columns: Vec<String> = columns.iter().map(Column::in_words).collect();
    format!("message {file} {{ {} }}", columns.join(" "))
}

impl Table {
    fn path(&self, folder: &Path) -> PathBuf {
        path(folder, self.file)
    }

    /// What stands before the table's own columns.
    fn leading(&self) -> Vec<Column> {
        let mut columns = match self.file {
            RUN => Vec::new(),
            _ => vec![Column::new("run", Kind::Text, true)],
        };
        match self.parent {
            Parent::Run => {}
            Parent::Numbered | Parent::Measurement => {
                columns.push(Column::new("measurement", Kind::Integer, true));
            }
            Parent::Scope | Parent::Series => {
                columns.push(Column::new("experiment", Kind::Integer, false));
                for name in ["host", "subject", "filesystem"] {
                    columns.push(Column::new(name, Kind::Text, true));
                }
                for name in ["sequence", "repetition"] {
                    columns.push(Column::new(name, Kind::Integer, false));
                }
            }
        }
        if self.parent == Parent::Series {
            columns.push(Column::new("name", Kind::Text, true));
            columns.push(Column::new("unit", Kind::Text, true));
        }
        columns
    }

    /// The table's own columns, as a new store has them: in one of an older version that
    /// was brought up to date they stand in another order.
    fn own(&self, new: &Connection) -> Result<Vec<Column>, StoreError> {
        let fail = |error| failure("look at the tables", Path::new(":memory:"), error);
        let mut statement = new
            .prepare("SELECT name, type, \"notnull\" OR pk FROM pragma_table_info(?)")
            .map_err(fail)?;
        let columns = statement
            .query_map([self.table], |row| {
                let (name, kind): (String, String) = (row.get(0)?, row.get(1)?);
                let kind = match kind.as_str() {
                    _ if name.ends_with("_utc") => Kind::Instant,
                    "INTEGER" => Kind::Integer,
                    "REAL" => Kind::Real,
                    "BLOB" => Kind::Bytes,
                    _ => Kind::Text,
                };
                // A run's name is called as in all other files.
                let name = match (self.file, name.as_str()) {
                    (RUN, "name") => "run".to_owned(),
                    _ => name,
                };
                Ok(Column {
                    name,
                    kind,
                    required: row.get(2)?,
                })
            })
            .map_err(fail)?;
        let columns: rusqlite::Result<Vec<Column>> = columns.collect();
        let mut columns = columns.map_err(fail)?;
        columns.retain(|column| !column.name.ends_with("_id"));
        Ok(columns)
    }
}

/// The digest of what `digest` is that of, followed by a row.
fn digest_of_row(digest: u64, row: &[Value]) -> u64 {
    let values = row.iter().map(ValueRef::from);
    values.fold(digest, digest_of_value)
}

/// Where a table of this name lies.
fn path(folder: &Path, file: &str) -> PathBuf {
    folder.join(format!("{file}.parquet"))
}

/// The version of the tables, as files say it.
fn version() -> String {
    SCHEMA_VERSION.to_string()
}
