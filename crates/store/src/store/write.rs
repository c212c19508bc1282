//! Writing into a store: a run's beginning, its results, its end.

use super::{AccuracyNote, Origin, RunId, Store, names_to_json};
use crate::schema::{execute, failure};
use crate::{
    CellResult, Finding, KeptPlan, Operation, Records, Run, Shard, StoreError, records, rows,
};
use rusqlite::{Params, Transaction, TransactionBehavior, params};
use std::path::Path;

/// The SQL condition for rows of unfinished experiments.
const NOT_ENDED: &str = "experiment IS NOT NULL
    AND experiment NOT IN (SELECT experiment FROM ended WHERE run_id = ?1)";

impl Store {
    /// Records that a run has started.
    ///
    /// # Errors
    /// As [`Store::begin_run_with`].
    pub fn begin_run(&mut self, run: &Run) -> Result<RunId, StoreError> {
        self.begin_run_with(run, None, &[])
    }

    /// Records that a run has started, with its plan and its notes, all or nothing: a run that is
    /// killed in its first moment has both.
    ///
    /// # Errors
    /// A run of this name is there already, or the file cannot be written.
    pub fn begin_run_with(
        &mut self,
        run: &Run,
        plan: Option<&KeptPlan>,
        notes: &[AccuracyNote],
    ) -> Result<RunId, StoreError> {
        self.in_transaction("begin a run", |transaction, path| {
            begin(transaction, path, run, plan, notes)
        })
    }

    /// Records that a run has started, under its name or, where that is taken, the name with a
    /// number; [`Run::name`] is then changed.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn begin_run_as(
        &mut self,
        run: &mut Run,
        plan: Option<&KeptPlan>,
        notes: &[AccuracyNote],
    ) -> Result<RunId, StoreError> {
        self.in_transaction("begin a run", |transaction, path| {
            begin_as(transaction, path, run, plan, notes)
        })
    }

    /// Stores a complete run, all of it or nothing, under its name or the next free one;
    /// [`Run::name`] is then changed.
    ///
    /// # Errors
    /// A cell is there twice, a number is not finite or above 2^63, or the
    /// file cannot be written.
    pub fn keep_run(
        &mut self,
        run: &mut Run,
        notes: &[AccuracyNote],
        records: &Records,
        cells: &[CellResult],
    ) -> Result<RunId, StoreError> {
        self.in_transaction("keep a run", |transaction, path| {
            let id = begin_as(transaction, path, run, None, notes)?;
            records::insert(transaction, path, id.into(), records)?;
            for result in cells {
                insert_cell(transaction, path, id.into(), result)?;
            }
            Ok(id)
        })
    }

    /// Adds records that belong to no single cell, all or nothing.
    ///
    /// # Errors
    /// A number is not finite or above 2^63, or the file cannot be written.
    pub fn add_records(
        &mut self,
        origin: impl Into<Origin>,
        records: &Records,
    ) -> Result<(), StoreError> {
        let origin = origin.into();
        self.in_transaction("add records", |transaction, path| {
            records::insert(transaction, path, origin, records)
        })
    }

    /// Adds notes on the run, all or nothing.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add_notes(
        &mut self,
        origin: impl Into<Origin>,
        notes: &[AccuracyNote],
    ) -> Result<(), StoreError> {
        let origin = origin.into();
        self.in_transaction("add notes", |transaction, path| {
            insert_notes(transaction, path, origin, notes)
        })
    }

    /// Adds a finished cell, its rows with members and published figures and
    /// its records, in one transaction: a run that is killed leaves complete
    /// cells only.
    ///
    /// # Errors
    /// The run already has this cell or one of its rows (sequence, operation,
    /// part, subject, file system, host, fit, repetition), a number is not
    /// finite or above 2^63, or the file cannot be written.
    pub fn add_cell(
        &mut self,
        origin: impl Into<Origin>,
        result: &CellResult,
    ) -> Result<(), StoreError> {
        let origin = origin.into();
        self.in_transaction("add a cell", |transaction, path| {
            insert_cell(transaction, path, origin, result)
        })
    }

    /// Records that an experiment of the run's plan is finished, after all its results.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn end_experiment(&mut self, run: RunId, position: u32) -> Result<(), StoreError> {
        let sql = "INSERT OR IGNORE INTO ended (run_id, experiment) VALUES (?, ?)";
        self.execute("end an experiment", sql, params![run.0, position])
            .map(drop)
    }

    /// Deletes the notes on unfinished experiments, and the rows of their arrays' background work:
    /// they are tried again.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn forget_failures(&mut self, run: RunId) -> Result<(), StoreError> {
        let operations = Operation::ALL.iter().filter(|op| op.is_background());
        let names: Vec<String> = operations.map(|op| format!("'{op}'")).collect();
        let background = format!("op IN ({})", names.join(", "));
        let rows = format!("{NOT_ENDED} AND {background}");
        let cells = format!(
            "{NOT_ENDED} AND EXISTS (SELECT 1 FROM measurement WHERE run_id = ?1 AND {background}
             AND measurement.experiment = cell.experiment AND measurement.sequence = cell.sequence)"
        );
        self.forget(
            run,
            &[
                ("note", NOT_ENDED),
                ("cell", &cells),
                ("measurement", &rows),
            ],
        )
    }

    /// Deletes all results of unfinished experiments: where experiments repeat exactly, a resumed
    /// run is then like one that was never interrupted. Records of the run as a whole stay, except
    /// the rows of a store of an older version, whose experiments are not known.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn forget_unfinished(&mut self, run: RunId) -> Result<(), StoreError> {
        let mut all = vec![("note", NOT_ENDED)];
        for table in ["measurement", "cell", "setting", "scope"] {
            all.extend([(table, NOT_ENDED), (table, "experiment IS NULL")]);
        }
        self.forget(run, &all)
    }

    /// Deletes rows of a run, all or nothing.
    fn forget(&mut self, run: RunId, rows: &[(&str, &str)]) -> Result<(), StoreError> {
        const ACTION: &str = "forget what was not finished";
        self.in_transaction(ACTION, |transaction, path| {
            for (table, which) in rows {
                let sql = format!("DELETE FROM {table} WHERE run_id = ?1 AND {which}");
                execute(transaction, path, ACTION, &sql, [run.0])?;
            }
            Ok(())
        })
    }

    /// Replaces the audit's findings of a run, and the note of this class that says how much
    /// it could judge.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn set_findings(
        &mut self,
        run: RunId,
        findings: &[Finding],
        note: Option<&AccuracyNote>,
    ) -> Result<(), StoreError> {
        const ACTION: &str = "keep the findings";
        self.in_transaction(ACTION, |transaction, path| {
            records::replace_findings(transaction, path, run, findings)?;
            let Some(note) = note else { return Ok(()) };
            let old = "DELETE FROM note WHERE run_id = ? AND class = ?";
            execute(transaction, path, ACTION, old, params![run.0, note.class])?;
            insert_notes(transaction, path, run.into(), std::slice::from_ref(note))
        })
    }

    /// Records when a run ended, RFC 3339 in UTC.
    ///
    /// # Errors
    /// The run has been deleted, or the file cannot be written.
    pub fn finish_run(&mut self, run: RunId, finished: &str) -> Result<(), StoreError> {
        let sql = "UPDATE run SET finished_utc = ? WHERE run_id = ?";
        let changed = self.execute("finish a run", sql, params![finished, run.0])?;
        self.expect_one(run, changed)
    }

    /// Deletes a run with everything that belongs to it.
    ///
    /// # Errors
    /// The run has been deleted already, or the file cannot be written.
    pub fn delete_run(&mut self, run: RunId) -> Result<(), StoreError> {
        let sql = "DELETE FROM run WHERE run_id = ?";
        let changed = self.execute("delete a run", sql, [run.0])?;
        self.expect_one(run, changed)
    }

    fn execute(
        &self,
        action: &'static str,
        sql: &str,
        values: impl Params,
    ) -> Result<usize, StoreError> {
        execute(&self.connection, &self.path, action, sql, values)
    }

    fn expect_one(&self, run: RunId, changed: usize) -> Result<(), StoreError> {
        if changed == 1 {
            return Ok(());
        }
        Err(StoreError::NoSuchRun {
            name: format!("number {}", run.0),
            near: String::new(),
            path: self.path.clone(),
        })
    }

    fn in_transaction<T>(
        &mut self,
        action: &'static str,
        work: impl FnOnce(&Transaction<'_>, &Path) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        // An immediate transaction, since SQLite does not wait for a lock that is taken later.
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(|error| failure(action, &self.path, error))?;
        let done = work(&transaction, &self.path)?;
        transaction
            .commit()
            .map_err(|error| failure(action, &self.path, error))?;
        Ok(done)
    }
}

/// Begins a run within a transaction, as [`Store::begin_run_as`] does in one of its own.
pub(super) fn begin_as(
    transaction: &Transaction<'_>,
    path: &Path,
    run: &mut Run,
    plan: Option<&KeptPlan>,
    notes: &[AccuracyNote],
) -> Result<RunId, StoreError> {
    let stem = run.name.clone();
    let mut number = 1;
    loop {
        match begin(transaction, path, run, plan, notes) {
            Err(StoreError::RunExists { .. }) if number < 1000 => {
                number += 1;
                run.name = format!("{stem}-{number}");
            }
            begun => return begun,
        }
    }
}

fn begin(
    transaction: &Transaction<'_>,
    path: &Path,
    run: &Run,
    plan: Option<&KeptPlan>,
    notes: &[AccuracyNote],
) -> Result<RunId, StoreError> {
    let id = insert_run(transaction, path, run)?;
    if let Some(plan) = plan {
        let shard = plan.shard.map(Shard::index);
        let shards = plan.shard.map(|shard| shard.count().get());
        let sql = "INSERT INTO plan (run_id, program, json, shard, shards) VALUES (?, ?, ?, ?, ?)";
        let values = params![id.0, plan.program, plan.json, shard, shards];
        execute(transaction, path, "keep the plan", sql, values)?;
    }
    insert_notes(transaction, path, id.into(), notes)?;
    Ok(id)
}

fn insert_cell(
    transaction: &Transaction<'_>,
    path: &Path,
    origin: Origin,
    result: &CellResult,
) -> Result<(), StoreError> {
    for row in &result.rows {
        rows::insert(transaction, path, origin, row)?;
    }
    records::insert(transaction, path, origin, &result.records)?;
    records::insert_cell(transaction, path, origin, &result.cell)
}

fn insert_run(transaction: &Transaction<'_>, path: &Path, run: &Run) -> Result<RunId, StoreError> {
    let inserted = transaction.execute(
        "INSERT INTO run (name, started_utc, finished_utc, bench, suite, suite_title, seed,
         raidlab_version, command_line, plan_hash)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        params![
            run.name,
            run.started,
            run.finished,
            run.bench,
            run.suite,
            run.suite_title,
            run.seed.to_string(),
            run.raidlab_version,
            run.command_line,
            run.plan_hash,
        ],
    );
    match inserted {
        Ok(_) => Ok(RunId(transaction.last_insert_rowid())),
        Err(error) if rows::is_unique_violation(&error) => Err(StoreError::RunExists {
            name: run.name.clone(),
        }),
        Err(error) => Err(failure("begin a run", path, error)),
    }
}

fn insert_notes(
    transaction: &Transaction<'_>,
    path: &Path,
    origin: Origin,
    notes: &[AccuracyNote],
) -> Result<(), StoreError> {
    let sql = "INSERT INTO note (run_id, experiment, class, title, statement, declared_percent,
               subjects, jobs) VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
    for n in notes {
        let values = params![
            origin.run.0,
            origin.experiment,
            n.class,
            n.title,
            n.statement,
            n.declared_percent,
            names_to_json(&n.subjects),
            names_to_json(&n.jobs),
        ];
        execute(transaction, path, "add notes", sql, values)?;
    }
    Ok(())
}
