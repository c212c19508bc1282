//! Errors of the store, each with the file's name and a remedy.

use crate::output::Found;
use crate::text::visible_path;
use std::path::PathBuf;

/// Why a store could not be opened, written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The file cannot be opened or created.
    #[error("cannot open the store {path}: {why}", path = visible_path(.path))]
    Unwritable {
        /// The store's file.
        path: PathBuf,
        /// The reason, and what to do.
        why: String,
    },
    /// There is no such file, and the caller wanted to read it.
    #[error(
        "there is no store at {path}: run a suite first, or name the file that holds the runs",
        path = visible_path(.path)
    )]
    Missing {
        /// The file looked for.
        path: PathBuf,
    },
    /// The path is not that of a regular file.
    #[error("{} is {found}; it was left as it is: name another file", visible_path(.path))]
    NotAFile {
        /// The path at which a store was to be.
        path: PathBuf,
        /// The thing that stands at that path.
        found: Found,
    },
    /// The file's bytes are not an `SQLite` database.
    #[error(
        "{path} is not a store (not an SQLite file); it was left as it is: name another file",
        path = visible_path(.path)
    )]
    NotADatabase {
        /// The store's file, as it was named.
        path: PathBuf,
    },
    /// An `SQLite` database of another program.
    #[error(
        "{path} is an SQLite database of another program (application id {application_id:#010x}); \
         it was left as it is: name another file",
        path = visible_path(.path)
    )]
    Foreign {
        /// The store's file, as it was named.
        path: PathBuf,
        /// The id in its header; 0 where its writer did not set one.
        application_id: i32,
    },
    /// A store whose tables are those of another version of raidlab.
    #[error(
        "the store {path} has schema version {found}, this raidlab reads and writes version \
         {supported}; it was left as it is: use the raidlab that wrote it to export its runs, \
         or name another file",
        path = visible_path(.path)
    )]
    OtherVersion {
        /// The store's file, as it was named.
        path: PathBuf,
        /// The version in its header.
        found: i32,
        /// The version of this build.
        supported: i32,
    },
    /// The database is damaged.
    #[error(
        "the store {path} is damaged ({detail}); it was left as it is: copy it, recover what can \
         be read with `sqlite3 FILE .recover`, and name another file meanwhile",
        path = visible_path(.path)
    )]
    Corrupt {
        /// The store's file, as it was named.
        path: PathBuf,
        /// The first thing that the check found.
        detail: String,
    },
    /// Another process has held the write lock for longer than the store waits.
    #[error(
        "the store {path} is being written by another process: wait for it or name another file",
        path = visible_path(.path)
    )]
    Busy {
        /// The store's file, as it was named.
        path: PathBuf,
    },
    /// The disk with the store has no free space.
    #[error(
        "no space left for the store {path}: what was complete in it is kept",
        path = visible_path(.path)
    )]
    Full {
        /// The store's file, as it was named.
        path: PathBuf,
    },
    /// A run of this name is already there.
    #[error("the store already has a run named {name}: choose another name or delete that run")]
    RunExists {
        /// The name that is taken.
        name: String,
    },
    /// The store has no runs at all.
    #[error("the store {path} holds no runs", path = visible_path(.path))]
    NoRuns {
        /// The path of the store.
        path: PathBuf,
    },
    /// No run has this name.
    #[error("the store {path} has no run named {name}{near}", path = visible_path(.path))]
    NoSuchRun {
        /// The name asked for.
        name: String,
        /// The similar names that may be meant, in words.
        near: String,
        /// The store's file, as it was named.
        path: PathBuf,
    },
    /// The run already has the same job, operation, subject and fit.
    #[error("the run already has a row for {cell}: a run holds each cell once")]
    CellExists {
        /// The cell's job, operation, subject and fit, in words.
        cell: String,
    },
    /// A number is out of the range of the file format.
    #[error("{field} is {value}: the store holds finite numbers, and integers below 2^63")]
    NotStorable {
        /// The column of the value, with the row where there is one.
        field: String,
        /// The value that cannot be stored.
        value: String,
    },
    /// The file cannot be given its name.
    #[error("cannot rename {from} to {to}", from = visible_path(.from), to = visible_path(.to))]
    Move {
        /// The store's file.
        from: PathBuf,
        /// The name that it was to get.
        to: PathBuf,
        /// The error of the operating system.
        #[source]
        source: std::io::Error,
    },
    /// Any other failure of the database.
    #[error("failed to {action} in the store {path}", path = visible_path(.path))]
    Query {
        /// The operation that failed, in words.
        action: &'static str,
        /// The store's file, as it was named.
        path: PathBuf,
        /// The error of `SQLite`.
        #[source]
        source: rusqlite::Error,
    },
}

/// Why an export could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The destination does not take the bytes.
    #[error("cannot write the export")]
    Write(#[from] std::io::Error),
    /// A row cannot be written as comma-separated values.
    #[error("cannot write a row of the export")]
    Csv(#[from] csv::Error),
    /// A row cannot be written as JSON.
    #[error("cannot write a line of the export")]
    Json(#[from] serde_json::Error),
}
