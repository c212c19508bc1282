//! One JSON object per measurement and line.

use crate::columns::role_text;
use crate::text::visible_json;
use crate::{ExportError, Measurement};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use std::io::Write;

/// A line with its keys in order: subject, job, rates, published figure; then the rest, and at the
/// end the keys that most measurements lack.
struct Line<'a>(&'a Measurement);

impl Serialize for Line<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let m = self.0;
        let mut line = serializer.serialize_map(None)?;
        line.serialize_entry("bench", &m.bench)?;
        line.serialize_entry("subject", &m.subject)?;
        line.serialize_entry("job", &m.job)?;
        line.serialize_entry("op", &m.op.name())?;
        line.serialize_entry("iops", &super::told(m, m.iops))?;
        line.serialize_entry("bytes_per_second", &super::told(m, m.bytes_per_second))?;
        let error = super::published_error_percent(m);
        where_known(&mut line, "published", super::published_iops(m))?;
        where_known(&mut line, "published_error_percent", error)?;
        line.serialize_entry("role", &role_text(m.role))?;
        line.serialize_entry("fit", &m.fit)?;
        line.serialize_entry("suite", &m.suite)?;
        line.serialize_entry("sequence", &m.sequence)?;
        line.serialize_entry("job_title", &m.job_title)?;
        line.serialize_entry("class", &m.class)?;
        line.serialize_entry("block_size_bytes", &m.block_size_bytes)?;
        line.serialize_entry("queue_depth", &m.queue_depth)?;
        line.serialize_entry("streams", &m.streams)?;
        line.serialize_entry("total_ios", &m.total_ios)?;
        line.serialize_entry("total_bytes", &m.total_bytes)?;
        line.serialize_entry("started_ns", &m.started_ns)?;
        line.serialize_entry("runtime_ns", &m.runtime_ns)?;
        line.serialize_entry("latency", &super::ToldLatency::from(&m.latency))?;
        line.serialize_entry("array_state_start", &m.array_state_start)?;
        line.serialize_entry("array_state_end", &m.array_state_end)?;
        line.serialize_entry("sync_percent_start", &m.sync_percent_start)?;
        line.serialize_entry("sync_percent_end", &m.sync_percent_end)?;
        line.serialize_entry("tag_overflows", &m.tag_overflows)?;
        line.serialize_entry("leaped_percent", &m.leaped_percent)?;
        line.serialize_entry("members", &m.members)?;
        let figures: Vec<_> = m.published.iter().map(super::ToldFigure::from).collect();
        line.serialize_entry("published_figures", &figures)?;
        where_known(&mut line, "host", text(&m.host))?;
        where_known(&mut line, "filesystem", text(&m.filesystem))?;
        where_known(
            &mut line,
            "repetition",
            (m.repetition > 0).then_some(m.repetition),
        )?;
        where_known(&mut line, "tool", text(&m.tool))?;
        where_known(&mut line, "part", text(&m.part))?;
        where_known(&mut line, "cpu_percent", m.cpu_percent)?;
        where_known(&mut line, "disk_band", m.disk_band)?;
        let band = (m.runtime_band_ns > 0).then_some(m.runtime_band_ns);
        where_known(&mut line, "runtime_band_ns", band)?;
        where_known(&mut line, "kept_percent", m.kept_percent)?;
        line.end()
    }
}

/// Writes a field, if it has a value.
fn where_known<M: SerializeMap>(
    line: &mut M,
    name: &str,
    value: Option<impl Serialize>,
) -> Result<(), M::Error> {
    value.map_or(Ok(()), |value| line.serialize_entry(name, &value))
}

fn text(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

/// A measurement as one JSON object without a line end.
///
/// A rate or a latency that was not reported is `null`. `published` is the iops of the figure to
/// compare with, and is there only if there is one, with `published_error_percent`, the
/// deviation from it.
///
/// # Errors
/// None for measurements that a store accepts.
pub fn to_json_line(m: &Measurement) -> Result<String, ExportError> {
    Ok(visible_json(&serde_json::to_string(&Line(m))?).into_owned())
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
