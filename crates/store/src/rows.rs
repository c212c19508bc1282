//! Insertion of measurements as table rows.

use crate::columns::{Column, Columns, of_measurement, of_member, of_published};
use crate::origin::Origin;
use crate::schema::failure;
use crate::{Measurement, StoreError};
use rusqlite::types::Value;
use rusqlite::{Transaction, params_from_iter};
use std::path::Path;

/// Converts an unsigned number: `SQLite`'s integers are signed, and a counter above 2^63 is an
/// error, not a negative number.
pub(crate) fn integer(field: &'static str, value: u64) -> Result<i64, StoreError> {
    i64::try_from(value).map_err(|_| StoreError::NotStorable {
        field: field.to_owned(),
        value: value.to_string(),
    })
}

/// Checks that a number is finite: `SQLite` would store not-a-number as NULL, and JSON
/// cannot hold infinity.
pub(crate) fn real(field: &'static str, value: f64) -> Result<f64, StoreError> {
    if value.is_finite() {
        Ok(value)
    } else {
        Err(StoreError::NotStorable {
            field: field.to_owned(),
            value: value.to_string(),
        })
    }
}

/// Inserts a measurement with its members and published figures.
pub(crate) fn insert(
    transaction: &Transaction<'_>,
    path: &Path,
    origin: Origin,
    m: &Measurement,
) -> Result<(), StoreError> {
    let add = |action, table, columns: Columns<'_>, own: Vec<(&'static str, Value)>| {
        let values = columns.into_iter().map(|(name, column)| {
            let value = value(name, column).map_err(|error| named(error, table, m))?;
            Ok((name, value))
        });
        let values = own.into_iter().map(Ok).chain(values);
        let (names, values): (Vec<&str>, Vec<Value>) = values
            .collect::<Result<Vec<_>, StoreError>>()?
            .into_iter()
            .unzip();
        let sql = format!(
            "INSERT INTO {table} ({}) VALUES ({})",
            names.join(", "),
            vec!["?"; names.len()].join(", ")
        );
        let statement = transaction.prepare_cached(&sql);
        let added = statement.and_then(|mut one| one.insert(params_from_iter(values)));
        added.map_err(|error| match is_unique_violation(&error) {
            true => StoreError::CellExists { cell: cell_name(m) },
            false => failure(action, path, error),
        })
    };
    let own = vec![
        ("run_id", origin.run.0.into()),
        ("experiment", origin.experiment.into()),
        ("latency_histogram", m.latency.histogram.clone().into()),
    ];
    let id = add("add a measurement", "measurement", of_measurement(m), own)?;
    let below = |place, at: i64| vec![("measurement_id", id.into()), (place, at.into())];
    for (slot, member) in (0..).zip(&m.members) {
        let own = below("slot", slot);
        add(
            "add a member's counters",
            "member_use",
            of_member(member),
            own,
        )?;
    }
    for (position, figure) in (0..).zip(&m.published) {
        let own = below("position", position);
        add(
            "add a published figure",
            "published_figure",
            of_published(figure),
            own,
        )?;
    }
    Ok(())
}

/// The value of a column as the store holds it.
fn value(name: &'static str, column: Column<'_>) -> Result<Value, StoreError> {
    Ok(match column {
        Column::Text(text) => text.to_owned().into(),
        Column::Count(number) => number.map(|one| integer(name, one)).transpose()?.into(),
        Column::Real(number) => number.map(|one| real(name, one)).transpose()?.into(),
    })
}

/// Adds to the error which row its number belongs to.
fn named(error: StoreError, table: &str, m: &Measurement) -> StoreError {
    let StoreError::NotStorable { field, value } = error else {
        return error;
    };
    let of = if table == "published_figure" {
        "published_figure."
    } else {
        ""
    };
    let field = format!("{of}{field} of {}", cell_name(m));
    StoreError::NotStorable { field, value }
}

/// Whether a row was refused because its key is taken.
pub(crate) fn is_unique_violation(error: &rusqlite::Error) -> bool {
    matches!(
        error,
        rusqlite::Error::SqliteFailure(failure, _)
            if [
                rusqlite::ffi::SQLITE_CONSTRAINT_UNIQUE,
                rusqlite::ffi::SQLITE_CONSTRAINT_PRIMARYKEY,
            ]
            .contains(&failure.extended_code)
    )
}

fn cell_name(m: &Measurement) -> String {
    let fit = if m.fit.is_empty() {
        String::new()
    } else {
        format!(", fit {}", m.fit)
    };
    let rest: String = [&m.part, &m.filesystem, &m.host]
        .into_iter()
        .filter(|part| !part.is_empty())
        .map(|part| format!(", {part}"))
        .collect();
    format!(
        "job {} (sequence {}, repetition {}) {}, subject {}{fit}{rest}",
        m.job, m.sequence, m.repetition, m.op, m.subject
    )
}
