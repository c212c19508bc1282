//! Merging of the shards of a run.
//!
//! Rows are copied one by one, all in one transaction: the run is in the store as a whole or not at
//! all, and memory holds one row, however many and long the shards are. Row numbers that other rows
//! refer to are raised by those that the store has already. A run has each setting once, with the
//! first experiment that has it, so of a setting that several shards have the first is kept.

use super::write::begin_as;
use super::{AccuracyNote, RunId, Store};
use crate::rows::is_unique_violation;
use crate::schema::failure;
use crate::text::visible_path;
use crate::{KeptPlan, Run, StoreError};
use rusqlite::types::Value;
use rusqlite::{Connection, Transaction, TransactionBehavior, params_from_iter};
use std::path::PathBuf;

/// The tables that are copied for finished experiments, each after those that it refers to, with
/// the joins that lead to a row's run. The audit's findings are not among them: it judges a run
/// as a whole.
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

/// The columns whose numbers are raised, each with the table that has them as its rows' own number.
const RAISED: [(&str, &str); 3] = [
    ("measurement_id", "measurement"),
    ("scope_id", "scope"),
    ("series_id", "series"),
];

/// The columns of row numbers that nothing refers to: the store assigns new ones.
const OWN: [&str; 5] = [
    "setting_id",
    "note_id",
    "observation_id",
    "command_id",
    "event_id",
];

/// A run that is being merged. Dropped before it is finished, it leaves nothing.
#[derive(Debug)]
pub struct Merging<'a> {
    transaction: Transaction<'a>,
    path: PathBuf,
    run: RunId,
}

impl Store {
    /// Begins a run that is merged from shards, under its name or the next free one.
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

    /// Deletes repeated settings of a run's experiments, but for the first of each.
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
    /// Copies the results of the finished experiments of a run of another store.
    ///
    /// # Errors
    /// The run has one of these experiments already, or a file cannot be read or written.
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

    /// Copies the rows of one table.
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

    /// Commits the run, all of it at once.
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

/// The query for the rows of a table that are copied.
pub(super) fn rows_of(table: &str, joins: &str) -> String {
    // Rows that get new numbers keep their order.
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

/// Deletes repeated settings of a run's experiments, but for the first of each: the row of the
/// first experiment keeps its number.
fn keep_first_settings(connection: &Connection, run: RunId) -> rusqlite::Result<usize> {
    connection.execute(
        "DELETE FROM setting WHERE run_id = ?1 AND setting_id NOT IN
         (SELECT setting_id FROM (SELECT setting_id, min(experiment) FROM setting
          WHERE run_id = ?1 GROUP BY scope, name, value, source))",
        [run.0],
    )
}
