//! Insertion of records as table rows.

use crate::origin::Origin;
use crate::rows::{integer, is_unique_violation, real};
use crate::schema::{execute, failure};
use crate::{
    Cell, CommandRecord, EventRecord, Finding, Observation, Operation, Records, RunId, Scope,
    Series, Setting, StoreError,
};
use rusqlite::{Transaction, params};
use std::path::Path;

/// Inserts records; points of a series that exists already are appended to it.
pub(crate) fn insert(
    transaction: &Transaction<'_>,
    path: &Path,
    origin: Origin,
    records: &Records,
) -> Result<(), StoreError> {
    let inserter = Inserter {
        transaction,
        path,
        origin,
    };
    inserter.settings(&records.settings)?;
    inserter.observations(&records.observations)?;
    inserter.commands(&records.commands)?;
    inserter.events(&records.events)?;
    inserter.series(&records.series)
}

/// Records that a cell is finished.
pub(crate) fn insert_cell(
    transaction: &Transaction<'_>,
    path: &Path,
    origin: Origin,
    cell: &Cell,
) -> Result<(), StoreError> {
    let inserted = transaction.execute(
        "INSERT INTO cell (run_id, host, subject, filesystem, fit, sequence, repetition, experiment)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        params![
            origin.run.0,
            cell.host,
            cell.subject,
            cell.filesystem,
            cell.fit,
            cell.sequence,
            cell.repetition,
            origin.experiment
        ],
    );
    match inserted {
        Ok(_) => Ok(()),
        Err(error) if is_unique_violation(&error) => Err(StoreError::CellExists {
            cell: format!(
                "sequence {}, repetition {}, subject {}",
                cell.sequence, cell.repetition, cell.subject
            ),
        }),
        Err(error) => Err(failure("finish a cell", path, error)),
    }
}

/// Replaces a run's findings.
pub(crate) fn replace_findings(
    transaction: &Transaction<'_>,
    path: &Path,
    run: RunId,
    findings: &[Finding],
) -> Result<(), StoreError> {
    const ACTION: &str = "keep the findings";
    let old = "DELETE FROM finding WHERE scope_id IN (SELECT scope_id FROM scope WHERE run_id = ?)";
    execute(transaction, path, ACTION, old, [run.0])?;
    let inserter = Inserter {
        transaction,
        path,
        origin: run.into(),
    };
    for finding in findings {
        let scope_id = inserter.scope(&finding.scope)?;
        let sql = "INSERT INTO finding (scope_id, rule, title, severity, op, part, evidence,
                   effect, remedy) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";
        let values = params![
            scope_id,
            finding.rule,
            finding.title,
            finding.severity.name(),
            finding.op.map(Operation::name),
            finding.part,
            finding.evidence,
            finding.effect,
            finding.remedy,
        ];
        execute(transaction, path, ACTION, sql, values)?;
    }
    Ok(())
}

/// Inserts records of a run's cells.
pub(crate) struct Inserter<'a> {
    pub(crate) transaction: &'a Transaction<'a>,
    pub(crate) path: &'a Path,
    pub(crate) origin: Origin,
}

impl Inserter<'_> {
    /// The number of a scope; a new scope is inserted.
    pub(crate) fn scope(&self, scope: &Scope) -> Result<i64, StoreError> {
        let values = params![
            self.origin.run.0,
            scope.host,
            scope.subject,
            scope.filesystem,
            scope.sequence,
            scope.repetition,
            self.origin.experiment
        ];
        let known = "SELECT scope_id FROM scope WHERE run_id = ?1 AND host = ?2 AND subject = ?3
             AND filesystem = ?4 AND ifnull(sequence, -1) = ifnull(?5, -1)
             AND ifnull(repetition, -1) = ifnull(?6, -1)
             AND ifnull(experiment, -1) = ifnull(?7, -1)";
        self.transaction
            .prepare_cached(
                "INSERT OR IGNORE INTO scope (run_id, host, subject, filesystem, sequence,
                 repetition, experiment) VALUES (?, ?, ?, ?, ?, ?, ?)",
            )
            .and_then(|mut statement| statement.execute(values))
            .and_then(|_| self.transaction.prepare_cached(known))
            .and_then(|mut statement| statement.query_row(values, |row| row.get(0)))
            .map_err(|error| failure("add a scope", self.path, error))
    }

    fn execute(&self, sql: &str, values: impl rusqlite::Params) -> Result<(), StoreError> {
        execute(self.transaction, self.path, "add a record", sql, values).map(drop)
    }

    fn settings(&self, settings: &[Setting]) -> Result<(), StoreError> {
        for s in settings {
            self.execute(
                "INSERT INTO setting (run_id, scope, name, value, source, experiment)
                 VALUES (?, ?, ?, ?, ?, ?)",
                params![
                    self.origin.run.0,
                    s.scope,
                    s.name,
                    s.value,
                    s.source,
                    self.origin.experiment
                ],
            )?;
        }
        Ok(())
    }

    fn observations(&self, observations: &[Observation]) -> Result<(), StoreError> {
        for o in observations {
            let scope_id = self.scope(&o.scope)?;
            self.execute(
                "INSERT INTO observation (scope_id, name, value, unit, source)
                 VALUES (?, ?, ?, ?, ?)",
                params![scope_id, o.name, o.value, o.unit, o.source],
            )?;
        }
        Ok(())
    }

    fn commands(&self, commands: &[CommandRecord]) -> Result<(), StoreError> {
        for c in commands {
            let scope_id = self.scope(&c.scope)?;
            self.execute(
                "INSERT INTO command (scope_id, at_ns, command, exit_code, took_ns, stdout, stderr)
                 VALUES (?, ?, ?, ?, ?, ?, ?)",
                params![
                    scope_id,
                    integer("command.at_ns", c.at_ns)?,
                    c.command,
                    c.code,
                    integer("command.took_ns", c.took_ns)?,
                    c.stdout,
                    c.stderr
                ],
            )?;
        }
        Ok(())
    }

    fn events(&self, events: &[EventRecord]) -> Result<(), StoreError> {
        for e in events {
            let scope_id = self.scope(&e.scope)?;
            self.execute(
                "INSERT INTO event (scope_id, at_ns, kind, member, text) VALUES (?, ?, ?, ?, ?)",
                params![
                    scope_id,
                    integer("event.at_ns", e.at_ns)?,
                    e.kind,
                    e.member,
                    e.text
                ],
            )?;
        }
        Ok(())
    }

    /// The number of a series; a new series is inserted.
    pub(crate) fn series_id(
        &self,
        scope_id: i64,
        name: &str,
        unit: &str,
    ) -> Result<i64, StoreError> {
        self.execute(
            "INSERT OR IGNORE INTO series (scope_id, name, unit) VALUES (?, ?, ?)",
            params![scope_id, name, unit],
        )?;
        self.transaction
            .query_row(
                "SELECT series_id FROM series WHERE scope_id = ? AND name = ?",
                params![scope_id, name],
                |row| row.get(0),
            )
            .map_err(|error| failure("add samples", self.path, error))
    }

    fn series(&self, all: &[Series]) -> Result<(), StoreError> {
        for series in all {
            let scope_id = self.scope(&series.scope)?;
            let series_id = self.series_id(scope_id, &series.name, &series.unit)?;
            for (at_ns, value) in &series.points {
                self.execute(
                    "INSERT OR REPLACE INTO sample (series_id, at_ns, value) VALUES (?, ?, ?)",
                    params![
                        series_id,
                        integer("sample.at_ns", *at_ns)?,
                        real("sample.value", *value)?
                    ],
                )?;
            }
        }
        Ok(())
    }
}
