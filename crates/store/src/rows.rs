//! Measurements to table rows.

use crate::origin::Origin;
use crate::schema::{execute, failure};
use crate::{Measurement, MemberUse, PublishedFigure, Role, StoreError};
use rusqlite::{Transaction, params};
use std::path::Path;

/// The text of a role in tables and exports.
pub(crate) fn role_text(role: Role) -> &'static str {
    match role {
        Role::Measured => "measured",
        Role::Predicted => "predicted",
        Role::Fitted => "fitted",
    }
}

/// `SQLite`'s integers are signed; a counter above 2^63 is an error, not a
/// negative number.
pub(crate) fn integer(field: &'static str, value: u64) -> Result<i64, StoreError> {
    i64::try_from(value).map_err(|_| StoreError::NotStorable {
        field: field.to_owned(),
        value: value.to_string(),
    })
}

/// The same of a number that is not always known.
fn maybe_integer(field: &'static str, value: Option<u64>) -> Result<Option<i64>, StoreError> {
    value.map(|value| integer(field, value)).transpose()
}

/// `SQLite` would store not-a-number as NULL, and JSON cannot hold infinity.
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

fn maybe_real(field: &'static str, value: Option<f64>) -> Result<Option<f64>, StoreError> {
    value.map(|value| real(field, value)).transpose()
}

/// Inserts a measurement with its members and published figures.
pub(crate) fn insert(
    transaction: &Transaction<'_>,
    path: &Path,
    origin: Origin,
    m: &Measurement,
) -> Result<(), StoreError> {
    let insert = || {
        let measurement_id = insert_measurement(transaction, path, origin, m)?;
        insert_members(transaction, path, measurement_id, &m.members)?;
        insert_published(transaction, path, measurement_id, &m.published)
    };
    insert().map_err(|error| match error {
        StoreError::NotStorable { field, value } => StoreError::NotStorable {
            field: format!("{field} of {}", cell_name(m)),
            value,
        },
        other => other,
    })
}

fn insert_measurement(
    transaction: &Transaction<'_>,
    path: &Path,
    origin: Origin,
    m: &Measurement,
) -> Result<i64, StoreError> {
    let mut statement = transaction
        .prepare_cached(include_str!("insert_measurement.sql"))
        .map_err(|error| failure("add a measurement", path, error))?;
    let values = params![
        origin.run.0,
        m.bench,
        m.suite,
        m.host,
        m.subject,
        m.filesystem,
        m.fit,
        m.sequence,
        m.job,
        m.job_title,
        m.repetition,
        m.tool,
        m.part,
        m.class,
        m.op.name(),
        integer("block_size_bytes", m.block_size_bytes)?,
        m.queue_depth,
        m.streams,
        integer("total_ios", m.total_ios)?,
        integer("total_bytes", m.total_bytes)?,
        integer("started_ns", m.started_ns)?,
        integer("runtime_ns", m.runtime_ns)?,
        real("iops", m.iops)?,
        real("bytes_per_second", m.bytes_per_second)?,
        maybe_real("cpu_percent", m.cpu_percent)?,
        real("latency_mean_ns", m.latency.mean_ns)?,
        integer("latency_p50_ns", m.latency.p50_ns)?,
        integer("latency_p90_ns", m.latency.p90_ns)?,
        integer("latency_p99_ns", m.latency.p99_ns)?,
        integer("latency_p999_ns", m.latency.p999_ns)?,
        integer("latency_max_ns", m.latency.max_ns)?,
        m.latency.histogram,
        m.array_state_start,
        m.array_state_end,
        maybe_real("sync_percent_start", m.sync_percent_start)?,
        maybe_real("sync_percent_end", m.sync_percent_end)?,
        maybe_integer("tag_overflows_count", m.tag_overflows)?,
        real("leaped_percent", m.leaped_percent)?,
        role_text(m.role),
        origin.experiment,
        maybe_real("disk_band_low", m.disk_band.map(|band| band.low))?,
        maybe_real("disk_band_high", m.disk_band.map(|band| band.high))?,
        maybe_real("disk_band_ratio", m.disk_band.map(|band| band.ratio))?,
        integer("runtime_band_ns", m.runtime_band_ns)?,
        maybe_real("kept_percent", m.kept_percent)?,
    ];
    statement.insert(values).map_err(|error| {
        if is_unique_violation(&error) {
            StoreError::CellExists { cell: cell_name(m) }
        } else {
            failure("add a measurement", path, error)
        }
    })
}

fn insert_members(
    transaction: &Transaction<'_>,
    path: &Path,
    measurement_id: i64,
    members: &[MemberUse],
) -> Result<(), StoreError> {
    let sql = "INSERT INTO member_use (measurement_id, slot, member, model, read_ios, read_bytes,
               read_ticks_ns, write_ios, write_bytes, write_ticks_ns, busy_ns, sync_bytes)
               VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    for (slot, member) in (0_i64..).zip(members) {
        let values = params![
            measurement_id,
            slot,
            member.member,
            member.model,
            integer("read_ios", member.read_ios)?,
            integer("read_bytes", member.read_bytes)?,
            integer("read_ticks_ns", member.read_ticks_ns)?,
            integer("write_ios", member.write_ios)?,
            integer("write_bytes", member.write_bytes)?,
            integer("write_ticks_ns", member.write_ticks_ns)?,
            integer("busy_ns", member.busy_ns)?,
            maybe_integer("sync_bytes", member.sync_bytes)?,
        ];
        execute(transaction, path, "add a member's counters", sql, values)?;
    }
    Ok(())
}

fn insert_published(
    transaction: &Transaction<'_>,
    path: &Path,
    measurement_id: i64,
    figures: &[PublishedFigure],
) -> Result<(), StoreError> {
    let sql = "INSERT INTO published_figure (measurement_id, position, source, iops,
               bytes_per_second, reliability, sync_percent, note)
               VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
    for (position, figure) in (0_i64..).zip(figures) {
        let values = params![
            measurement_id,
            position,
            figure.source,
            real("published_figure.iops", figure.iops)?,
            maybe_real("published_figure.bytes_per_second", figure.bytes_per_second)?,
            figure.reliability,
            maybe_real("published_figure.sync_percent", figure.sync_percent)?,
            figure.note,
        ];
        execute(transaction, path, "add a published figure", sql, values)?;
    }
    Ok(())
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
