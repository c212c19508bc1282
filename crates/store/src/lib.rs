//! Measurements on disk: one `SQLite` file, exports to CSV, JSON Lines and
//! Parquet, and the files that outputs of any kind go to.
//!
//! A run is begun, gets settings, notes and measurements, and is finished. Each cell (a job on a
//! subject, with all its rows and records) is one transaction, so a run that is interrupted or
//! killed leaves complete cells. [`Store::ended_experiments`] and [`Store::finished_cells`] say
//! where to resume; any number of readers may read meanwhile. Users may read the file with any
//! `SQLite` client: tables and columns are described in `schema.sql`, and every column with a unit
//! ends in it.

mod columns;
mod error;
mod export;
mod input;
mod measurement;
mod origin;
pub mod output;
mod read;
mod record;
mod records;
mod rows;
mod schema;
mod shard;
mod store;
pub mod text;

#[cfg(test)]
mod tests;

pub use error::{ExportError, StoreError};
pub use export::{
    published_error_percent, to_json_line, write_csv, write_json_lines, write_members_csv,
};
pub use input::read_bytes;
pub use measurement::{
    DiskBand, KeptPlan, Latency, MAIN_FIT, MAKING, Measurement, MemberUse, Metric, PublishedFigure,
    Role, Run, Setting, shown,
};
pub use origin::{Origin, RunId};
pub use raidlab_results::{Fact, Operation, UnknownOperation, fact};
pub use record::{
    Cell, CellResult, CommandRecord, EventRecord, Finding, Observation, Records, Scope, Series,
    Severity,
};
pub use schema::SCHEMA_VERSION;
pub use shard::{Shard, ShardError};
pub use store::{
    AUDIT_NOTE_CLASS, AccuracyNote, LATEST, Merging, ParquetError, RunSummary, Snapshot, Store,
    Taken,
};
