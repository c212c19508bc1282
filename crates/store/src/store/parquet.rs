//! A run as a folder of Parquet files, for DuckDB, Polars, pyarrow and the like, and read back
//! into a store.
//!
//! There is a file for each table of the store, with the table's own columns as `schema.sql`
//! names them. Numbers by which rows refer to each other are valid in one store only, so the
//! files have the run's name, the number of the measurement within the run, and the parts of a
//! record's scope instead. Types are those that every reader supports: signed integers of 64
//! bits, doubles, strings, bytes, and instants in microseconds. Rows are in the order of
//! experiments, as they were added, in groups of a fixed size, so the same rows are the same
//! bytes, in whatever order experiments ended.
//!
//! A rate or a latency that was not reported is 0 in the store. In the files it is NULL, so that
//! means and minima of a column leave it out.
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

/// The writer's name in the files.
const CREATED_BY: &str = concat!("raidlab version ", env!("CARGO_PKG_VERSION"));
/// The keys of a file's metadata: the version of the tables, the run's name, its seed, the version
/// of raidlab that ran it and the SHA-256 of its plan.
const KEYS: [&str; 5] = [
    "raidlab.schema_version",
    "raidlab.run",
    "raidlab.seed",
    "raidlab.version",
    "raidlab.plan_sha256",
];
/// The key of the digest of a file's rows, FNV-1a of 64 bits in hexadecimal digits. Parquet's own
/// sums of pages are not written by every writer, and checked by few readers.
const DIGEST: &str = "raidlab.fnv1a";
/// The file of the run itself, by which a folder is recognized.
const RUN: &str = "run";

/// The reason why a run cannot be written as Parquet, or not read back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ParquetError {
    /// The store that is exported or filled failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file cannot be written.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// The folder cannot be created.
    #[error(transparent)]
    Folder(PathError),
    /// A file cannot be opened.
    #[error(transparent)]
    Open(#[from] PathError),
    /// The bytes of a file cannot be encoded or decoded.
    #[error("cannot read or write {} as Parquet", visible_path(.path))]
    Format {
        /// The file whose bytes are wrong, or could not be encoded.
        path: PathBuf,
        /// The error of the Parquet library.
        #[source]
        source: parquet::errors::ParquetError,
    },
    /// The file is no table of a run, or not of this run.
    #[error("{}: {why}", visible_path(.path))]
    Refused {
        /// The file that is refused.
        path: PathBuf,
        /// The reason for refusing it.
        why: String,
    },
}

/// The result of reading a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Taken {
    /// The run is in the store now, under this name.
    As(String),
    /// The same run was in the store already, under this name.
    Known(String),
}

/// The parent that the rows of a table belong to, and are identified by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Parent {
    /// The rows belong to the run alone.
    Run,
    /// The rows belong to the run, and rows of other tables refer to them by their
    /// number within it.
    Numbered,
    /// The rows belong to a measurement, by its number within the run.
    Measurement,
    /// The rows belong to some of the run's cells.
    Scope,
    /// The rows belong to a series of samples.
    Series,
}

/// A table of the store that is written to a file.
struct Table {
    /// The file's name, without its ending.
    file: &'static str,
    table: &'static str,
    parent: Parent,
    order: &'static str,
}

/// All tables, each after those that it refers to.
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

/// The type of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Integer,
    Real,
    Text,
    Bytes,
    /// Microseconds since 1970 in UTC; in the store it is RFC 3339, in whole seconds.
    Instant,
}

/// The rates of measurements, which the store holds as 0 where they were not reported.
const RATES: [&str; 2] = ["iops", "bytes_per_second"];
/// The latencies of measurements, which the store holds as 0 where they were not reported.
const LATENCIES: [&str; 6] = [
    "latency_mean_ns",
    "latency_p50_ns",
    "latency_p90_ns",
    "latency_p99_ns",
    "latency_p999_ns",
    "latency_max_ns",
];

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

    /// The column in the syntax of Parquet's message types.
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

    /// Whether a column has 0 in the store, and NULL in the file, where nothing was reported.
    fn may_be_unreported(&self, column: &str) -> bool {
        match self.table {
            "measurement" => RATES.contains(&column) || LATENCIES.contains(&column),
            // A published figure may tell bytes alone.
            "published_figure" => column == "iops",
            _ => false,
        }
    }

    /// The columns before the table's own.
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

    /// The table's own columns, in the order of a new store: in a migrated store they are
    /// in another order.
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
                // The run's name has the same column name as in all other files.
                let name = match (self.file, name.as_str()) {
                    (RUN, "name") => "run".to_owned(),
                    _ => name,
                };
                let unreported = self.may_be_unreported(&name);
                Ok(Column {
                    required: row.get(2)? && !unreported,
                    name,
                    kind,
                })
            })
            .map_err(fail)?;
        let columns: rusqlite::Result<Vec<Column>> = columns.collect();
        let mut columns = columns.map_err(fail)?;
        columns.retain(|column| !column.name.ends_with("_id"));
        Ok(columns)
    }
}

/// Continues a digest with a row.
fn digest_of_row(digest: u64, row: &[Value]) -> u64 {
    let values = row.iter().map(ValueRef::from);
    values.fold(digest, digest_of_value)
}

/// The path of a table's file.
fn path(folder: &Path, file: &str) -> PathBuf {
    folder.join(format!("{file}.parquet"))
}

/// The version of the tables, as the files have it.
fn version() -> String {
    SCHEMA_VERSION.to_string()
}
