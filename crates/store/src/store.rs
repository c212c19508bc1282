//! A store: one `SQLite` file with runs and everything that belongs to them.

mod merging;
mod parquet;
mod recorded;
mod seal;
mod write;

use crate::origin::{Origin, RunId};
use crate::read::{read, read_measurement, read_note, read_run};
use crate::schema::{self, failure};
use crate::{Measurement, Run, Setting, StoreError, output};
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use merging::Merging;
pub use parquet::{ParquetError, Taken};

/// The name that stands for the run that the store took last: begun, merged or imported.
pub const LATEST: &str = "latest";

/// The class of notes in which the audit says what it could judge.
pub const AUDIT_NOTE_CLASS: &str = "audit";

/// The SQL condition for the notes of a run as a whole that merging takes over. The audit's notes
/// are made again for the merged run.
const OF_THE_WHOLE: &str = "experiment IS NULL AND class <> 'audit'";

/// A statement about a run: the accuracy of a class of jobs, an ablation, a
/// remark.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct AccuracyNote {
    /// The class of measurements that it is about (`random-read`); any other word makes it a remark
    /// on the whole run.
    pub class: String,
    /// A heading for people: `Random reads`.
    pub title: String,
    /// The statement: what was fitted on what, in words.
    pub statement: String,
    /// The declared accuracy, percent of the value, either way; `None` where none is declared. The
    /// first note that names the class, the subject and the job counts.
    pub declared_percent: Option<f64>,
    /// The subjects that it is about; empty for all.
    pub subjects: Vec<String>,
    /// The names of the jobs that it is about; empty for all.
    pub jobs: Vec<String>,
}

/// A run with the columns of a list of runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunSummary {
    /// The run's number, for the other calls.
    #[serde(skip)]
    pub id: RunId,
    /// The run itself.
    pub run: Run,
    /// The number of rows measured so far.
    pub measurements: u64,
    /// The subjects measured so far, in order of appearance.
    pub subjects: Vec<String>,
}

/// An open store. Several processes may read while one writes.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    path: PathBuf,
}

/// A fixed view of a store; see [`Store::snapshot`].
#[derive(Debug)]
pub struct Snapshot<'a> {
    _reading: Option<Transaction<'a>>,
}

impl Store {
    fn opened(
        path: &Path,
        open: impl FnOnce(&Path) -> Result<Connection, StoreError>,
    ) -> Result<Self, StoreError> {
        Ok(Self {
            connection: open(path)?,
            path: path.to_owned(),
        })
    }

    /// Opens the store in the file `path`, creating it if there is none.
    ///
    /// # Errors
    /// The file cannot be written, is not a store, is one of another schema
    /// version, or is damaged. None of these changes the file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::opened(path.as_ref(), schema::open)
    }

    /// Opens the store in the file `path`, which must exist. A file without write permission can
    /// still be read.
    ///
    /// # Errors
    /// As [`Store::open`], and where there is no such file.
    pub fn open_existing(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let path = path.as_ref();
        if !path.exists() {
            let path = path.to_owned();
            return Err(StoreError::Missing { path });
        }
        Self::open(path).or_else(|error| Self::open_anyway(path, error))
    }

    /// Opens a store of which `SQLite` says that it cannot be written to.
    fn open_anyway(path: &Path, error: StoreError) -> Result<Self, StoreError> {
        match error {
            StoreError::Unwritable { .. } if path.is_file() => Self::open_unwritable(path),
            error => Err(error),
        }
    }

    /// Opens the store in the file `path`, which cannot be written to.
    pub(crate) fn open_unwritable(path: &Path) -> Result<Self, StoreError> {
        Self::opened(path, schema::open_unwritable)
    }

    /// Opens the store in the file `path` read-only, without changing the file.
    ///
    /// # Errors
    /// As [`Store::open_existing`], and where the store is of an older version.
    pub fn open_to_read(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let path = path.as_ref();
        let opened = Self::opened(path, schema::open_to_read);
        // `SQLite` makes files beside a store that was once open for writing, also to read it.
        opened.or_else(|error| Self::open_anyway(path, error))
    }

    /// Closes the store and renames its file, once all of it is on the disk: under the new name it
    /// exists as a whole, or not at all. An earlier file of that name is replaced.
    ///
    /// # Errors
    /// Another process has the store open, or the disk does not take it.
    pub fn move_to(self, path: &Path) -> Result<(), StoreError> {
        let Self {
            connection,
            path: from,
        } = self;
        let fail = |error| failure("close", &from, error);
        // The store becomes one file, without a journal beside it.
        connection
            .pragma_update_and_check(None, "journal_mode", "delete", |_| Ok(()))
            .map_err(fail)?;
        connection.close().map_err(|(_, error)| fail(error))?;
        output::rename(&from, path).map_err(|source| StoreError::Move {
            from: from.clone(),
            to: path.to_owned(),
            source,
        })
    }

    /// Checks that [`Store::open`] finds at `path` a file that may be or become a store,
    /// and touches nothing.
    ///
    /// # Errors
    /// There is a file of another kind, or no file but a folder, a pipe, a device.
    pub fn check_place(path: impl AsRef<Path>) -> Result<(), StoreError> {
        schema::check_place(path.as_ref())
    }

    /// Opens a store in memory, which is gone when dropped.
    ///
    /// # Errors
    /// No memory.
    pub fn open_in_memory() -> Result<Self, StoreError> {
        Ok(Self {
            connection: schema::open_in_memory()?,
            path: PathBuf::from(":memory:"),
        })
    }

    /// The path of the store's file; `:memory:` for a store without one.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes a snapshot of the store: until it is dropped, answers do not show what other processes
    /// write meanwhile. An earlier snapshot that is still held stays in force.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn snapshot(&self) -> Result<Snapshot<'_>, StoreError> {
        if !self.connection.is_autocommit() {
            return Ok(Snapshot { _reading: None });
        }
        let fail = |error| failure("read", &self.path, error);
        let reading = self.connection.unchecked_transaction().map_err(fail)?;
        // SQLite begins its snapshot with the first query.
        let first = "SELECT count(*) FROM sqlite_schema";
        let asked = reading.query_row(first, [], |_| Ok(()));
        asked.map_err(fail)?;
        Ok(Snapshot {
            _reading: Some(reading),
        })
    }

    /// All runs, the one that the store took last first.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn runs(&self) -> Result<Vec<RunSummary>, StoreError> {
        self.collect(
            "list runs",
            "SELECT * FROM run ORDER BY run_id DESC",
            [],
            read_run,
        )?
        .into_iter()
        .map(|(id, run)| self.summary(id, run))
        .collect()
    }

    /// Finds the run of this name; `latest` is the one that the store took last.
    ///
    /// # Errors
    /// There is no such run, or the file cannot be read.
    pub fn run_by_name(&self, name: &str) -> Result<RunSummary, StoreError> {
        let found = self
            .connection
            .query_row(
                "SELECT * FROM run WHERE name = ?1 OR ?1 = ?2
                 ORDER BY name = ?1 DESC, run_id DESC LIMIT 1",
                params![name, LATEST],
                read_run,
            )
            .optional()
            .map_err(|error| failure("look for a run", &self.path, error))?;
        match found {
            Some((id, run)) => self.summary(id, run),
            None => Err(self.no_such_run(name)),
        }
    }

    /// The error for an unknown name: it lists the runs that have the words in their names, as
    /// users do not remember names to the second.
    fn no_such_run(&self, name: &str) -> StoreError {
        let path = self.path.clone();
        let runs = match self.runs() {
            Ok(runs) if runs.is_empty() => return StoreError::NoRuns { path },
            Ok(runs) => runs,
            Err(error) => return error,
        };
        let names = runs.into_iter().map(|run| run.run.name);
        let with: Vec<String> = names.filter(|known| known.contains(name)).take(8).collect();
        let near = match with.as_slice() {
            [] => String::new(),
            with => format!("; with it in their names: {}", with.join(", ")),
        };
        StoreError::NoSuchRun {
            name: name.to_owned(),
            near,
            path,
        }
    }

    /// A run's measurements in the suite's order; within a job experiment by
    /// experiment, in the order in which they were added.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn measurements(&self, run: RunId) -> Result<Vec<Measurement>, StoreError> {
        self.measurements_of(run.into())
    }

    /// The measurements of one experiment, or of the whole run.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn measurements_of(&self, origin: Origin) -> Result<Vec<Measurement>, StoreError> {
        const ACTION: &str = "read measurements";
        let which = params![origin.run.0, origin.experiment];
        let keyed = |row: &Row<'_>| row.get::<_, i64>("measurement_id");
        let main = self.collect(
            ACTION,
            "SELECT * FROM measurement WHERE run_id = ?1 AND experiment IS ifnull(?2, experiment)
             ORDER BY sequence, experiment, measurement_id",
            which,
            |row| Ok((keyed(row)?, read_measurement(row)?)),
        )?;
        let mut members = grouped(self.collect(
            ACTION,
            "SELECT member_use.* FROM member_use JOIN measurement USING (measurement_id)
             WHERE run_id = ?1 AND experiment IS ifnull(?2, experiment)
             ORDER BY measurement_id, slot",
            which,
            |row| Ok((keyed(row)?, read(row)?)),
        )?);
        let mut published = grouped(self.collect(
            ACTION,
            "SELECT published_figure.* FROM published_figure JOIN measurement USING (measurement_id)
             WHERE run_id = ?1 AND experiment IS ifnull(?2, experiment)
             ORDER BY measurement_id, position",
            which,
            |row| Ok((keyed(row)?, read(row)?)),
        )?);
        Ok(main
            .into_iter()
            .map(|(id, mut measurement)| {
                measurement.members = members.remove(&id).unwrap_or_default();
                measurement.published = published.remove(&id).unwrap_or_default();
                measurement
            })
            .collect())
    }

    /// A run's settings, experiment by experiment, in the order in which they were
    /// added.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn settings(&self, run: RunId) -> Result<Vec<Setting>, StoreError> {
        self.settings_before(run, u32::MAX)
    }

    /// The settings of the experiments before this one, by their positions.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn settings_before(&self, run: RunId, experiment: u32) -> Result<Vec<Setting>, StoreError> {
        self.collect(
            "read settings",
            "SELECT * FROM setting WHERE run_id = ? AND ifnull(experiment < ?, TRUE)
             ORDER BY experiment, setting_id",
            params![run.0, experiment],
            read,
        )
    }

    /// A run's notes in the order in which they were added.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn notes(&self, run: RunId) -> Result<Vec<AccuracyNote>, StoreError> {
        self.notes_where(run, "TRUE")
    }

    /// The notes on the run as a whole, and not on one of its experiments, without the audit's.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn notes_of_the_whole(&self, run: RunId) -> Result<Vec<AccuracyNote>, StoreError> {
        self.notes_where(run, OF_THE_WHOLE)
    }

    fn notes_where(&self, run: RunId, which: &str) -> Result<Vec<AccuracyNote>, StoreError> {
        let sql = format!("SELECT * FROM note WHERE run_id = ? AND {which} ORDER BY note_id");
        self.collect("read notes", &sql, [run.0], read_note)
    }

    fn summary(&self, id: RunId, run: Run) -> Result<RunSummary, StoreError> {
        let counts = self.collect(
            "count a run's rows",
            "SELECT subject, count(*) FROM measurement WHERE run_id = ?
             GROUP BY subject ORDER BY min(experiment), min(measurement_id)",
            [id.0],
            |row| Ok((row.get::<_, String>(0)?, row.get::<_, u32>(1)?)),
        )?;
        Ok(RunSummary {
            id,
            run,
            measurements: counts.iter().map(|(_, rows)| u64::from(*rows)).sum(),
            subjects: counts.into_iter().map(|(subject, _)| subject).collect(),
        })
    }

    fn collect<T>(
        &self,
        action: &'static str,
        sql: &str,
        values: impl rusqlite::Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        let fail = |error| failure(action, &self.path, error);
        let mut statement = self.connection.prepare_cached(sql).map_err(fail)?;
        let found = statement.query_map(values, read).map_err(fail)?;
        found.collect::<rusqlite::Result<_>>().map_err(fail)
    }
}

fn grouped<T>(rows: Vec<(i64, T)>) -> BTreeMap<i64, Vec<T>> {
    let mut groups: BTreeMap<i64, Vec<T>> = BTreeMap::new();
    for (key, row) in rows {
        groups.entry(key).or_default().push(row);
    }
    groups
}

fn names_to_json(names: &[String]) -> String {
    serde_json::Value::from(names).to_string()
}
