//! One JSON object per measurement and line.

use crate::rows::role_text;
use crate::text::visible_json;
use crate::{DiskBand, ExportError, Latency, Measurement, MemberUse, PublishedFigure};
use serde::Serialize;
use std::io::Write;

/// The line's keys in their order: who, what, how fast, against what; then
/// the rest. `serde` writes fields as declared, so the order is stable.
#[derive(Serialize)]
struct Line<'a> {
    bench: &'a str,
    subject: &'a str,
    job: &'a str,
    op: &'static str,
    iops: Option<f64>,
    bytes_per_second: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    published: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    published_error_percent: Option<f64>,
    role: &'static str,
    fit: &'a str,
    suite: &'a str,
    sequence: u32,
    job_title: &'a str,
    class: &'a str,
    block_size_bytes: u64,
    queue_depth: u32,
    streams: u32,
    total_ios: u64,
    total_bytes: u64,
    started_ns: u64,
    runtime_ns: u64,
    latency: &'a Latency,
    array_state_start: &'a str,
    array_state_end: &'a str,
    sync_percent_start: Option<f64>,
    sync_percent_end: Option<f64>,
    tag_overflows: Option<u64>,
    leaped_percent: f64,
    members: &'a [MemberUse],
    published_figures: &'a [PublishedFigure],
    #[serde(skip_serializing_if = "str::is_empty")]
    host: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    filesystem: &'a str,
    #[serde(skip_serializing_if = "is_first")]
    repetition: u32,
    #[serde(skip_serializing_if = "str::is_empty")]
    tool: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    part: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_percent: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    disk_band: Option<DiskBand>,
    #[serde(skip_serializing_if = "is_zero")]
    runtime_band_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    kept_percent: Option<f64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
const fn is_zero(band: &u64) -> bool {
    *band == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
const fn is_first(repetition: &u32) -> bool {
    *repetition == 0
}

/// A measurement as one JSON object without a line end.
///
/// A rate that nobody told is `null`. `published` is the iops of the figure to compare with and stands only
/// where there is one, with `published_error_percent`, ours against it.
///
/// # Errors
/// None for measurements that a store accepts.
pub fn to_json_line(m: &Measurement) -> Result<String, ExportError> {
    let line = Line {
        bench: &m.bench,
        subject: &m.subject,
        job: &m.job,
        op: m.op.name(),
        iops: super::told(m, m.iops),
        bytes_per_second: super::told(m, m.bytes_per_second),
        published: super::published_iops(m),
        published_error_percent: super::published_error_percent(m),
        role: role_text(m.role),
        fit: &m.fit,
        suite: &m.suite,
        sequence: m.sequence,
        job_title: &m.job_title,
        class: &m.class,
        block_size_bytes: m.block_size_bytes,
        queue_depth: m.queue_depth,
        streams: m.streams,
        total_ios: m.total_ios,
        total_bytes: m.total_bytes,
        started_ns: m.started_ns,
        runtime_ns: m.runtime_ns,
        latency: &m.latency,
        array_state_start: &m.array_state_start,
        array_state_end: &m.array_state_end,
        sync_percent_start: m.sync_percent_start,
        sync_percent_end: m.sync_percent_end,
        tag_overflows: m.tag_overflows,
        leaped_percent: m.leaped_percent,
        members: &m.members,
        published_figures: &m.published,
        host: &m.host,
        filesystem: &m.filesystem,
        repetition: m.repetition,
        tool: &m.tool,
        part: &m.part,
        cpu_percent: m.cpu_percent,
        disk_band: m.disk_band,
        runtime_band_ns: m.runtime_band_ns,
        kept_percent: m.kept_percent,
    };
    Ok(visible_json(&serde_json::to_string(&line)?).into_owned())
}

/// Writes every measurement as a line of JSON.
///
/// # Errors
/// The destination does not take the bytes.
pub fn write(mut out: impl Write, measurements: &[Measurement]) -> Result<(), ExportError> {
    for measurement in measurements {
        writeln!(out, "{}", to_json_line(measurement)?)?;
    }
    out.flush()?;
    Ok(())
}
