//! Comma-separated values with a header line: one file of measurements, one
//! of what their members did. Rows of the two meet on host, subject, file
//! system, fit, sequence, repetition, part and op.

use crate::rows::role_text;
use crate::text::visible;
use crate::{ExportError, Measurement, MemberUse};
use serde::{Serialize, Serializer};
use std::io::Write;

/// A cell with text of others. A spreadsheet takes a cell that begins with one of
/// [`FORMULA`] for a formula and works it out; behind an apostrophe it is text. Where
/// semicolons part cells, one begins behind each.
#[derive(Clone, Copy)]
struct Text<'a>(&'a str);

/// What begins a formula, in both widths.
const FORMULA: [char; 8] = [
    '=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}',
];

impl Serialize for Text<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&neutral(self.0))
    }
}

fn neutral(text: &str) -> String {
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
    cell
}

#[derive(Serialize)]
struct MeasurementRow<'a> {
    bench: Text<'a>,
    suite: Text<'a>,
    host: Text<'a>,
    subject: Text<'a>,
    filesystem: Text<'a>,
    fit: Text<'a>,
    sequence: u32,
    repetition: u32,
    tool: Text<'a>,
    part: Text<'a>,
    job: Text<'a>,
    job_title: Text<'a>,
    class: Text<'a>,
    op: &'static str,
    block_size_bytes: u64,
    queue_depth: u32,
    streams: u32,
    total_ios: u64,
    total_bytes: u64,
    started_ns: u64,
    runtime_ns: u64,
    iops: Option<f64>,
    bytes_per_second: Option<f64>,
    cpu_percent: Option<f64>,
    latency_mean_ns: f64,
    latency_p50_ns: u64,
    latency_p90_ns: u64,
    latency_p99_ns: u64,
    latency_p999_ns: u64,
    latency_max_ns: u64,
    array_state_start: Text<'a>,
    array_state_end: Text<'a>,
    sync_percent_start: Option<f64>,
    sync_percent_end: Option<f64>,
    tag_overflows_count: Option<u64>,
    leaped_percent: f64,
    role: &'static str,
    published_source: Option<Text<'a>>,
    published_iops: Option<f64>,
    published_bytes_per_second: Option<f64>,
    published_reliability: Option<Text<'a>>,
    published_error_percent: Option<f64>,
    disk_band_low: Option<f64>,
    disk_band_high: Option<f64>,
    disk_band_ratio: Option<f64>,
    runtime_band_ns: u64,
    kept_percent: Option<f64>,
}

#[derive(Serialize)]
struct MemberRow<'a> {
    host: Text<'a>,
    subject: Text<'a>,
    filesystem: Text<'a>,
    fit: Text<'a>,
    sequence: u32,
    repetition: u32,
    part: Text<'a>,
    job: Text<'a>,
    op: &'static str,
    member: Text<'a>,
    model: Text<'a>,
    read_ios: u64,
    read_bytes: u64,
    read_ticks_ns: u64,
    write_ios: u64,
    write_bytes: u64,
    write_ticks_ns: u64,
    busy_ns: u64,
    sync_bytes: Option<u64>,
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
    let blank = Measurement::blank("");
    write(out, measurements.iter().map(row_of), row_of(&blank))
}

/// Writes one row per measurement and member.
///
/// # Errors
/// The destination does not take the bytes.
pub fn write_members(out: impl Write, measurements: &[Measurement]) -> Result<(), ExportError> {
    let (blank, member) = (Measurement::blank(""), MemberUse::default());
    let all = measurements.iter();
    let rows = all.flat_map(|m| m.members.iter().map(move |one| member_row_of(m, one)));
    write(out, rows, member_row_of(&blank, &member))
}

/// Writes rows below their head, which stands there also where there is none of them:
/// that of `blank`.
fn write<T: Serialize>(
    mut out: impl Write,
    rows: impl Iterator<Item = T>,
    blank: T,
) -> Result<(), ExportError> {
    let mut head = csv::Writer::from_writer(Vec::new());
    head.serialize(blank)?;
    head.flush()?;
    let lines = head.get_ref().split_inclusive(|byte| *byte == b'\n');
    for line in lines.take(1) {
        out.write_all(line)?;
    }
    let mut writer = csv::WriterBuilder::new()
        .has_headers(false)
        .from_writer(out);
    for row in rows {
        writer.serialize(row)?;
    }
    writer.flush()?;
    Ok(())
}

/// A measurement as a row.
fn row_of(m: &Measurement) -> MeasurementRow<'_> {
    let published = m.published.first();
    MeasurementRow {
        bench: Text(&m.bench),
        suite: Text(&m.suite),
        host: Text(&m.host),
        subject: Text(&m.subject),
        filesystem: Text(&m.filesystem),
        fit: Text(&m.fit),
        sequence: m.sequence,
        repetition: m.repetition,
        tool: Text(&m.tool),
        part: Text(&m.part),
        job: Text(&m.job),
        job_title: Text(&m.job_title),
        class: Text(&m.class),
        op: m.op.name(),
        block_size_bytes: m.block_size_bytes,
        queue_depth: m.queue_depth,
        streams: m.streams,
        total_ios: m.total_ios,
        total_bytes: m.total_bytes,
        started_ns: m.started_ns,
        runtime_ns: m.runtime_ns,
        iops: super::told(m, m.iops),
        bytes_per_second: super::told(m, m.bytes_per_second),
        cpu_percent: m.cpu_percent,
        latency_mean_ns: m.latency.mean_ns,
        latency_p50_ns: m.latency.p50_ns,
        latency_p90_ns: m.latency.p90_ns,
        latency_p99_ns: m.latency.p99_ns,
        latency_p999_ns: m.latency.p999_ns,
        latency_max_ns: m.latency.max_ns,
        array_state_start: Text(&m.array_state_start),
        array_state_end: Text(&m.array_state_end),
        sync_percent_start: m.sync_percent_start,
        sync_percent_end: m.sync_percent_end,
        tag_overflows_count: m.tag_overflows,
        leaped_percent: m.leaped_percent,
        role: role_text(m.role),
        published_source: published.map(|figure| Text(&figure.source)),
        published_iops: super::published_iops(m),
        published_bytes_per_second: published.and_then(|figure| figure.bytes_per_second),
        published_reliability: published.map(|figure| Text(&figure.reliability)),
        published_error_percent: super::published_error_percent(m),
        disk_band_low: m.disk_band.map(|band| band.low),
        disk_band_high: m.disk_band.map(|band| band.high),
        disk_band_ratio: m.disk_band.map(|band| band.ratio),
        runtime_band_ns: m.runtime_band_ns,
        kept_percent: m.kept_percent,
    }
}

/// What a member did as a row.
fn member_row_of<'a>(m: &'a Measurement, member: &'a MemberUse) -> MemberRow<'a> {
    MemberRow {
        host: Text(&m.host),
        subject: Text(&m.subject),
        filesystem: Text(&m.filesystem),
        fit: Text(&m.fit),
        sequence: m.sequence,
        repetition: m.repetition,
        part: Text(&m.part),
        job: Text(&m.job),
        op: m.op.name(),
        member: Text(&member.member),
        model: Text(&member.model),
        read_ios: member.read_ios,
        read_bytes: member.read_bytes,
        read_ticks_ns: member.read_ticks_ns,
        write_ios: member.write_ios,
        write_bytes: member.write_bytes,
        write_ticks_ns: member.write_ticks_ns,
        busy_ns: member.busy_ns,
        sync_bytes: member.sync_bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::neutral;

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
            assert_eq!(neutral(text), expected);
        }
    }
}
