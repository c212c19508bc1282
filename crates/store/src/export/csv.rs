//! Comma-separated values with a header line: one file of measurements, one
//! of what their members did. Rows of the two meet on host, subject, file
//! system, fit, sequence, repetition, part and op.

use crate::rows::role_text;
use crate::{ExportError, Measurement};
use serde::Serialize;
use std::io::Write;

#[derive(Serialize)]
struct MeasurementRow<'a> {
    bench: &'a str,
    suite: &'a str,
    host: &'a str,
    subject: &'a str,
    filesystem: &'a str,
    fit: &'a str,
    sequence: u32,
    repetition: u32,
    tool: &'a str,
    part: &'a str,
    job: &'a str,
    job_title: &'a str,
    class: &'a str,
    op: &'static str,
    block_size_bytes: u64,
    queue_depth: u32,
    streams: u32,
    total_ios: u64,
    total_bytes: u64,
    started_ns: u64,
    runtime_ns: u64,
    iops: f64,
    bytes_per_second: f64,
    cpu_percent: Option<f64>,
    latency_mean_ns: f64,
    latency_p50_ns: u64,
    latency_p90_ns: u64,
    latency_p99_ns: u64,
    latency_p999_ns: u64,
    latency_max_ns: u64,
    array_state_start: &'a str,
    array_state_end: &'a str,
    sync_percent_start: Option<f64>,
    sync_percent_end: Option<f64>,
    tag_overflows_count: u64,
    leaped_percent: f64,
    role: &'static str,
    published_source: Option<&'a str>,
    published_iops: Option<f64>,
    published_bytes_per_second: Option<f64>,
    published_reliability: Option<&'a str>,
    published_error_percent: Option<f64>,
}

#[derive(Serialize)]
struct MemberRow<'a> {
    host: &'a str,
    subject: &'a str,
    filesystem: &'a str,
    fit: &'a str,
    sequence: u32,
    repetition: u32,
    part: &'a str,
    job: &'a str,
    op: &'static str,
    member: &'a str,
    model: &'a str,
    read_ios: u64,
    read_bytes: u64,
    read_ticks_ns: u64,
    write_ios: u64,
    write_bytes: u64,
    write_ticks_ns: u64,
    busy_ns: u64,
    sync_bytes: u64,
}

/// Writes one row per measurement, with the first published figure beside it.
///
/// # Errors
/// The destination does not take the bytes.
pub fn write_measurements(
    out: impl Write,
    measurements: &[Measurement],
) -> Result<(), ExportError> {
    let mut writer = csv::Writer::from_writer(out);
    for m in measurements {
        let published = m.published.first();
        writer.serialize(MeasurementRow {
            bench: &m.bench,
            suite: &m.suite,
            host: &m.host,
            subject: &m.subject,
            filesystem: &m.filesystem,
            fit: &m.fit,
            sequence: m.sequence,
            repetition: m.repetition,
            tool: &m.tool,
            part: &m.part,
            job: &m.job,
            job_title: &m.job_title,
            class: &m.class,
            op: m.op.name(),
            block_size_bytes: m.block_size_bytes,
            queue_depth: m.queue_depth,
            streams: m.streams,
            total_ios: m.total_ios,
            total_bytes: m.total_bytes,
            started_ns: m.started_ns,
            runtime_ns: m.runtime_ns,
            iops: m.iops,
            bytes_per_second: m.bytes_per_second,
            cpu_percent: m.cpu_percent,
            latency_mean_ns: m.latency.mean_ns,
            latency_p50_ns: m.latency.p50_ns,
            latency_p90_ns: m.latency.p90_ns,
            latency_p99_ns: m.latency.p99_ns,
            latency_p999_ns: m.latency.p999_ns,
            latency_max_ns: m.latency.max_ns,
            array_state_start: &m.array_state_start,
            array_state_end: &m.array_state_end,
            sync_percent_start: m.sync_percent_start,
            sync_percent_end: m.sync_percent_end,
            tag_overflows_count: m.tag_overflows,
            leaped_percent: m.leaped_percent,
            role: role_text(m.role),
            published_source: published.map(|figure| figure.source.as_str()),
            published_iops: published.map(|figure| figure.iops),
            published_bytes_per_second: published.and_then(|figure| figure.bytes_per_second),
            published_reliability: published.map(|figure| figure.reliability.as_str()),
            published_error_percent: super::published_error_percent(m),
        })?;
    }
    writer.flush()?;
    Ok(())
}

/// Writes one row per measurement and member.
///
/// # Errors
/// The destination does not take the bytes.
pub fn write_members(out: impl Write, measurements: &[Measurement]) -> Result<(), ExportError> {
    let mut writer = csv::Writer::from_writer(out);
    for m in measurements {
        for member in &m.members {
            writer.serialize(MemberRow {
                host: &m.host,
                subject: &m.subject,
                filesystem: &m.filesystem,
                fit: &m.fit,
                sequence: m.sequence,
                repetition: m.repetition,
                part: &m.part,
                job: &m.job,
                op: m.op.name(),
                member: &member.member,
                model: &member.model,
                read_ios: member.read_ios,
                read_bytes: member.read_bytes,
                read_ticks_ns: member.read_ticks_ns,
                write_ios: member.write_ios,
                write_bytes: member.write_bytes,
                write_ticks_ns: member.write_ticks_ns,
                busy_ns: member.busy_ns,
                sync_bytes: member.sync_bytes,
            })?;
        }
    }
    writer.flush()?;
    Ok(())
}
