//! Table rows read as records. Each column has the name of a record's field, or an alias of it, so
//! that no field is listed here.

use crate::{AccuracyNote, Measurement, Run, RunId};
use rusqlite::Row;
use rusqlite::types::{Type, ValueRef};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, from_value};

/// Reads a row as a record, with its scope if that was joined to the row.
pub(crate) fn read<T: DeserializeOwned>(row: &Row<'_>) -> rusqlite::Result<T> {
    let mut columns = columns(row)?;
    if columns.contains_key("scope_id") {
        columns.insert("scope".to_owned(), columns.clone().into());
    }
    record(columns)
}

/// Reads a row of the measurements; its members and published figures are in other tables.
pub(crate) fn read_measurement(row: &Row<'_>) -> rusqlite::Result<Measurement> {
    let mut columns = columns(row)?;
    let latency = part_of(&columns, "latency_");
    columns.insert("latency".to_owned(), latency.into());
    let band = part_of(&columns, "disk_band_");
    if !band.values().any(Value::is_null) {
        columns.insert("disk_band".to_owned(), band.into());
    }
    let mut measurement: Measurement = record(columns)?;
    measurement.latency.histogram = row.get("latency_histogram")?;
    Ok(measurement)
}

/// Reads a row of the samples: its time and its value.
pub(crate) fn read_point(row: &Row<'_>) -> rusqlite::Result<(u64, f64)> {
    let at: i64 = row.get("at_ns")?;
    let at = u64::try_from(at).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(0, at))?;
    Ok((at, row.get("value")?))
}

/// Reads a row of the runs. A seed is stored as text, as it may be larger than the file's integers.
pub(crate) fn read_run(row: &Row<'_>) -> rusqlite::Result<(RunId, Run)> {
    let run = with_json(row, &["seed"])?;
    Ok((RunId(row.get("run_id")?), run))
}

/// Reads a row of the notes, whose lists are stored as JSON.
pub(crate) fn read_note(row: &Row<'_>) -> rusqlite::Result<AccuracyNote> {
    with_json(row, &["subjects", "jobs"])
}

/// Reads a row as a record, where these columns hold JSON text.
fn with_json<T: DeserializeOwned>(row: &Row<'_>, names: &[&str]) -> rusqlite::Result<T> {
    let mut columns = columns(row)?;
    for name in names {
        let text: String = row.get(*name)?;
        let value = serde_json::from_str(&text).map_err(unreadable)?;
        columns.insert((*name).to_owned(), value);
    }
    record(columns)
}

/// The columns of a row; those of plain bytes are null.
fn columns(row: &Row<'_>) -> rusqlite::Result<Map<String, Value>> {
    let names = row.as_ref().column_names().enumerate();
    let columns = names.map(|(index, name)| {
        let value = match row.get_ref(index)? {
            ValueRef::Integer(number) => number.into(),
            ValueRef::Real(number) => number.into(),
            ValueRef::Text(_) => row.get::<_, String>(index)?.into(),
            ValueRef::Null | ValueRef::Blob(_) => Value::Null,
        };
        Ok((name.to_owned(), value))
    });
    columns.collect()
}

/// The columns whose names begin with `begin`, which is taken off.
fn part_of(columns: &Map<String, Value>, begin: &str) -> Map<String, Value> {
    let own = columns.iter().filter_map(|(name, value)| {
        let name = name.strip_prefix(begin)?;
        Some((name.to_owned(), value.clone()))
    });
    own.collect()
}

fn record<T: DeserializeOwned>(columns: Map<String, Value>) -> rusqlite::Result<T> {
    from_value(columns.into()).map_err(unreadable)
}

fn unreadable(error: serde_json::Error) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(0, Type::Null, Box::new(error))
}
