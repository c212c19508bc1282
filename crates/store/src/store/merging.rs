//! Shards of a run put together.
//!
//! Row by row from one file into the other, and everything in one transaction: the run
//! stands in the store when all of it does, and memory holds one row, however many
//! shards there are and however long they are. Numbers that other rows refer to are
//! raised by those that the store has already. A run says each setting once, with the
//! first experiment that has it, so of a setting that several shards have the first is
//! kept.

use super::write::begin_as;
use super::{AccuracyNote, RunId, Store};
use crate::rows::is_unique_violation;
use crate::schema::failure;
use crate::text::visible_path;
use crate::{KeptPlan, Run, StoreError};
use rusqlite::types::Value;
use rusqlite::{Connection, Transaction, TransactionBehavior, params_from_iter};
use std::path::PathBuf;

/// What is taken over of experiments that have come to their end: tables, each behind
/// those that it refers to, with those by which it is known whose its rows are. What the
/// audit found is not among them: it judges a run as a whole.
pub(super) const TABLES: [(&str, &str); 13] = [
    ("ended", ""),
    ("cell", ""),
    ("setting", ""),
    ("note", ""),
    ("measurement", ""),
    ("member_use", "JOIN measurement USING (measurement_id)"),
    (
        "published_figure",
        "JOIN measurement USING (measurement_id)",
    ),
    ("scope", ""),
    ("observation", "JOIN scope USING (scope_id)"),
    ("command", "JOIN scope USING (scope_id)"),
    ("event", "JOIN scope USING (scope_id)"),
    ("series", "JOIN scope USING (scope_id)"),
    (
        "sample",
        "JOIN series USING (series_id) JOIN scope USING (scope_id)",
    ),
];

/// Columns that are raised, with the table that has them as its rows' own number.
const RAISED: [(&str, &str); 3] = [
    ("measurement_id", "measurement"),
    ("scope_id", "scope"),
    ("series_id", "series"),
];

/// Rows' own numbers that nothing refers to: those of the store are other ones.
const OWN: [&str; 5] = [
    "setting_id",
    "note_id",
    "observation_id",
    "command_id",
    "event_id",
];

/// A run that is being put together. Dropped before it is finished, it leaves nothing.
#[derive(Debug)]
pub struct Merging<'a> {
    transaction: Transaction<'a>,
    path: PathBuf,
    run: RunId,
}

impl Store {
    /// Begins a run that is put together of shards, under its name or the next that is
    /// free.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn merge(
        &mut self,
        run: &mut Run,
        plan: &KeptPlan,
        notes: &[AccuracyNote],
    ) -> Result<Merging<'_>, StoreError> {
        let path = self.path.clone();
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(|error| failure("begin a run", &path, error))?;
        let run = begin_as(&transaction, &path, run, Some(plan), notes)?;
        Ok(Merging {
            transaction,
            path,
            run,
        })
    }

    /// Of a setting that several experiments of a run have told, leaves the first.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn keep_first_settings(&mut self, run: RunId) -> Result<(), StoreError> {
        keep_first_settings(&self.connection, run)
            .map(drop)
            .map_err(|error| failure("keep settings", &self.path, error))
    }
}

impl Merging<'_> {
    /// Takes over what experiments of a run of another store gave that have come to
    /// their end.
    ///
    /// # Errors
    /// The run has one of these experiments already, or a file cannot be read or
    /// written.
    pub fn add(&mut self, shard: &Store, from: RunId) -> Result<(), StoreError> {
        let mut raised = Vec::new();
        for (column, table) in RAISED {
            let sql = format!("SELECT ifnull(max({column}), 0) FROM {table}");
            let most: i64 = self
                .transaction
                .query_row(&sql, [], |row| row.get(0))
                .map_err(|error| failure("number the rows", &self.path, error))?;
            raised.push((column, most));
        }
        (TABLES.iter())
            .try_for_each(|(table, joins)| self.copy(shard, from, (table, joins), &raised))
    }

    /// The rows of one table.
    fn copy(
        &self,
        shard: &Store,
        from: RunId,
        (table, joins): (&str, &str),
        raised: &[(&str, i64)],
    ) -> Result<(), StoreError> {
        let unreadable = |error| failure("read a shard", &shard.path, error);
        let unwritable = |error: rusqlite::Error| match is_unique_violation(&error) {
            true => StoreError::CellExists {
                cell: format!("an experiment of {}", visible_path(&shard.path)),
            },
            false => failure("add a shard", &self.path, error),
        };
        let select = rows_of(table, joins);
        let mut select = shard.connection.prepare(&select).map_err(unreadable)?;
        let names: Vec<String> = (select.column_names()).map(str::to_owned).collect();
        let taken: Vec<usize> = (0..names.len())
            .filter(|&index| !OWN.contains(&names[index].as_str()))
            .collect();
        let columns: Vec<&str> = taken.iter().map(|&index| names[index].as_str()).collect();
        let insert = format!(
            "INSERT INTO {table} ({}) VALUES ({})",
            columns.join(", "),
            vec!["?"; columns.len()].join(", ")
        );
        let mut insert = (self.transaction.prepare_cached(&insert)).map_err(unwritable)?;
        let mut rows = select.query([from.0]).map_err(unreadable)?;
        while let Some(row) = rows.next().map_err(unreadable)? {
            let values = taken.iter().map(|&index| {
                let value: Value = row.get(index)?;
                let by = raised.iter().find(|(name, _)| *name == names[index]);
                Ok(match (names[index].as_str(), value, by) {
                    ("run_id", ..) => Value::Integer(self.run.0),
                    (_, Value::Integer(number), Some((_, by))) => Value::Integer(number + by),
                    (_, value, _) => value,
                })
            });
            let values: Vec<Value> = values
                .collect::<rusqlite::Result<_>>()
                .map_err(unreadable)?;
            insert
                .execute(params_from_iter(values))
                .map_err(unwritable)?;
        }
        Ok(())
    }

    /// Writes the run down, all of it at once.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(self) -> Result<RunId, StoreError> {
        let fail = |error| failure("put shards together", &self.path, error);
        keep_first_settings(&self.transaction, self.run).map_err(fail)?;
        let run = self.run;
        self.transaction.commit().map_err(fail)?;
        Ok(run)
    }
}

/// What reads of a table what is taken over.
pub(super) fn rows_of(table: &str, joins: &str) -> String {
    // Rows that get other numbers keep their order.
    let own = format!("{table}_id");
    let order = match OWN.contains(&own.as_str()) {
        true => format!("ORDER BY {own}"),
        false => String::new(),
    };
    format!(
        "SELECT {table}.* FROM {table} {joins} WHERE run_id = ?1
         AND experiment IN (SELECT experiment FROM ended WHERE run_id = ?1) {order}"
    )
}

/// Of a setting that several experiments of a run have told, leaves the first: the row
/// with the least experiment is the one that gives its number.
fn keep_first_settings(connection: &Connection, run: RunId) -> rusqlite::Result<usize> {
    connection.execute(
        "DELETE FROM setting WHERE run_id = ?1 AND setting_id NOT IN
         (SELECT setting_id FROM (SELECT setting_id, min(experiment) FROM setting
          WHERE run_id = ?1 GROUP BY scope, name, value, source))",
        [run.0],
    )
}
