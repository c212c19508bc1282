//! Comma-separated values with a header line: one file of measurements, one
//! of what their members did. Rows of the two meet on host, subject, file
//! system, fit, sequence, repetition, part and op.

use crate::rows::role_text;
use crate::text::visible;
use crate::{ExportError, Measurement, MemberUse};
use serde_json::Value;
use std::io::Write;

/// A line's cells, each below the name of its column.
type Row = Vec<(&'static str, Value)>;

/// What begins a formula, in both widths.
const FORMULA: [char; 8] = [
    '=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}',
];

/// A cell with text of others. A spreadsheet takes a cell that begins with one of
/// [`FORMULA`] for a formula and works it out; behind an apostrophe it is text. Where
/// semicolons part cells, one begins behind each.
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

/// Writes one row per measurement, with the first published figure beside it. A rate that
/// nobody told is an empty cell.
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

/// Writes rows below the names of their columns, which stand there also where there is no row.
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
    let published = m.published.first();
    let bytes = published.and_then(|figure| figure.bytes_per_second);
    let [source, reliability] = [
        published.map(|figure| text(&figure.source)),
        published.map(|figure| text(&figure.reliability)),
    ];
    let [experiment, within, op] = place_of(m);
    let mut row = vec![("bench", text(&m.bench)), ("suite", text(&m.suite))];
    row.extend(experiment);
    row.push(("tool", text(&m.tool)));
    row.extend(within);
    row.push(("job_title", text(&m.job_title)));
    row.push(("class", text(&m.class)));
    row.extend(op);
    row.extend([
        ("block_size_bytes", m.block_size_bytes.into()),
        ("queue_depth", m.queue_depth.into()),
        ("streams", m.streams.into()),
        ("total_ios", m.total_ios.into()),
        ("total_bytes", m.total_bytes.into()),
        ("started_ns", m.started_ns.into()),
        ("runtime_ns", m.runtime_ns.into()),
        ("iops", super::told(m, m.iops).into()),
        (
            "bytes_per_second",
            super::told(m, m.bytes_per_second).into(),
        ),
        ("cpu_percent", m.cpu_percent.into()),
        ("latency_mean_ns", m.latency.mean_ns.into()),
        ("latency_p50_ns", m.latency.p50_ns.into()),
        ("latency_p90_ns", m.latency.p90_ns.into()),
        ("latency_p99_ns", m.latency.p99_ns.into()),
        ("latency_p999_ns", m.latency.p999_ns.into()),
        ("latency_max_ns", m.latency.max_ns.into()),
        ("array_state_start", text(&m.array_state_start)),
        ("array_state_end", text(&m.array_state_end)),
        ("sync_percent_start", m.sync_percent_start.into()),
        ("sync_percent_end", m.sync_percent_end.into()),
        ("tag_overflows_count", m.tag_overflows.into()),
        ("leaped_percent", m.leaped_percent.into()),
        ("role", role_text(m.role).into()),
        ("published_source", source.into()),
        ("published_iops", super::published_iops(m).into()),
        ("published_bytes_per_second", bytes.into()),
        ("published_reliability", reliability.into()),
        (
            "published_error_percent",
            super::published_error_percent(m).into(),
        ),
        ("disk_band_low", m.disk_band.map(|band| band.low).into()),
        ("disk_band_high", m.disk_band.map(|band| band.high).into()),
        ("disk_band_ratio", m.disk_band.map(|band| band.ratio).into()),
        ("runtime_band_ns", m.runtime_band_ns.into()),
        ("kept_percent", m.kept_percent.into()),
    ]);
    row
}

/// The cells on which rows of the two files meet: those of the experiment, of what was measured
/// in it, and the direction.
fn place_of(m: &Measurement) -> [Row; 3] {
    let experiment = vec![
        ("host", text(&m.host)),
        ("subject", text(&m.subject)),
        ("filesystem", text(&m.filesystem)),
        ("fit", text(&m.fit)),
        ("sequence", m.sequence.into()),
        ("repetition", m.repetition.into()),
    ];
    let within = vec![("part", text(&m.part)), ("job", text(&m.job))];
    [experiment, within, vec![("op", m.op.name().into())]]
}

/// What a member did as a row.
fn member_row_of(m: &Measurement, member: &MemberUse) -> Row {
    let mut row = place_of(m).concat();
    row.extend([
        ("member", text(&member.member)),
        ("model", text(&member.model)),
        ("read_ios", member.read_ios.into()),
        ("read_bytes", member.read_bytes.into()),
        ("read_ticks_ns", member.read_ticks_ns.into()),
        ("write_ios", member.write_ios.into()),
        ("write_bytes", member.write_bytes.into()),
        ("write_ticks_ns", member.write_ticks_ns.into()),
        ("busy_ns", member.busy_ns.into()),
        ("sync_bytes", member.sync_bytes.into()),
    ]);
    row
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
