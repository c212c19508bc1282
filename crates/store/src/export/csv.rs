//! Comma-separated values with a header line: one file of measurements, one of their members'
//! work. Rows of the two are joined by host, subject, file system, fit, sequence, repetition,
//! part and op.

use crate::columns::{Column, of_measurement, of_member};
use crate::text::visible;
use crate::{ExportError, Measurement, MemberUse};
use raidlab_units::lists;
use serde_json::Value;
use std::io::Write;

/// The cells of a line, each with the name of its column.
type Row = Vec<(&'static str, Value)>;

/// The characters that begin a formula, in both widths.
const FORMULA: [char; 8] = [
    '=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}',
];

/// A cell with foreign text. A spreadsheet evaluates a cell that begins with one of
/// [`FORMULA`] as a formula; behind an apostrophe it is text. Where semicolons separate cells,
/// one begins behind each.
fn text(text: &str) -> Value {
    let shown = visible(text);
    let mut cell = String::with_capacity(shown.len() + 1);
    let mut begins = true;
    for letter in shown.chars() {
        if begins && FORMULA.contains(&letter) {
            cell.push('\'');
        }
        begins = letter == ';' || begins && (letter.is_whitespace() || letter == '"');
        cell.push(letter);
    }
    cell.into()
}

/// Writes one row per measurement, with the first published figure beside it. A rate or a latency
/// that was not reported is an empty cell.
///
/// # Errors
/// The destination does not take the bytes.
pub fn write_measurements(
    out: impl Write,
    measurements: &[Measurement],
) -> Result<(), ExportError> {
    let head = row_of(&Measurement::blank(""));
    write(out, &head, measurements.iter().map(row_of))
}

/// Writes one row per measurement and member.
///
/// # Errors
/// The destination does not take the bytes.
pub fn write_members(out: impl Write, measurements: &[Measurement]) -> Result<(), ExportError> {
    let head = member_row_of(&Measurement::blank(""), &MemberUse::default());
    let all = measurements.iter();
    let rows = all.flat_map(|m| m.members.iter().map(move |one| member_row_of(m, one)));
    write(out, &head, rows)
}

/// Writes rows below the names of their columns, which are written even without rows.
fn write(out: impl Write, head: &Row, rows: impl Iterator<Item = Row>) -> Result<(), ExportError> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(head.iter().map(|(name, _)| name))?;
    for row in rows {
        let cells: Vec<Value> = row.into_iter().map(|(_, cell)| cell).collect();
        writer.serialize(cells)?;
    }
    writer.flush()?;
    Ok(())
}

/// A measurement as a row.
fn row_of(m: &Measurement) -> Row {
    let latency = super::ToldLatency::from(&m.latency);
    let mut row = Row::new();
    for (name, column) in of_measurement(m) {
        let cell = match name {
            "iops" => super::told(m, m.iops).into(),
            "bytes_per_second" => super::told(m, m.bytes_per_second).into(),
            "latency_mean_ns" => latency.mean_ns.into(),
            "latency_p50_ns" => latency.p50_ns.into(),
            "latency_p90_ns" => latency.p90_ns.into(),
            "latency_p99_ns" => latency.p99_ns.into(),
            "latency_p999_ns" => latency.p999_ns.into(),
            "latency_max_ns" => latency.max_ns.into(),
            _ => cell(column),
        };
        row.push((name, cell));
        if name == "role" {
            row.extend(published(m));
        }
    }
    row
}

/// The cells of the nearest published figure, and of the row's deviation from it.
fn published(m: &Measurement) -> Row {
    let figure = m.published.first();
    let source = figure.map(|figure| text(&figure.source));
    let bytes = figure.and_then(|figure| figure.bytes_per_second);
    let reliability = figure.map(|figure| text(&figure.reliability));
    let error = super::published_error_percent(m);
    vec![
        ("published_source", source.into()),
        ("published_iops", super::published_iops(m).into()),
        ("published_bytes_per_second", bytes.into()),
        ("published_reliability", reliability.into()),
        ("published_error_percent", error.into()),
    ]
}

/// The columns by which rows of the two files are joined: those of the experiment, of what was
/// measured in it, and of the direction.
const PLACE: &str = "host subject filesystem fit sequence repetition part job op";

/// The use of a member as a row.
fn member_row_of(m: &Measurement, member: &MemberUse) -> Row {
    let place = of_measurement(m)
        .into_iter()
        .filter(|(name, _)| lists(PLACE, name));
    let row = place.chain(of_member(member));
    row.map(|(name, column)| (name, cell(column))).collect()
}

fn cell(column: Column<'_>) -> Value {
    match column {
        Column::Text(words) => text(words),
        Column::Count(number) => number.into(),
        Column::Real(number) => number.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::text as cell;

    #[test]
    fn no_cell_is_a_formula() {
        for (text, expected) in [
            ("md-raid5", "md-raid5"),
            ("a=b", "a=b"),
            ("=1+1", "'=1+1"),
            ("-2+3", "'-2+3"),
            ("+1", "'+1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("  =1", "  '=1"),
            ("\t=1", "\\t=1"),
            ("a;=1;-2", "a;'=1;'-2"),
            ("\u{ff1d}1", "'\u{ff1d}1"),
            ("a\u{1b}[2J", "a\\u{1b}[2J"),
        ] {
            assert_eq!(cell(text), expected);
        }
    }
}
