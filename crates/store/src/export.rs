//! Measurements as files that other programs read. Every column and key that
//! has a unit ends in it.

mod csv;
mod jsonl;

pub use csv::{write_measurements as write_csv, write_members as write_members_csv};
pub use jsonl::{to_json_line, write as write_json_lines};

use crate::{Latency, Measurement, PublishedFigure};
use serde::Serialize;

/// The deviation of the measurement from the first published figure, percent of the published:
/// by operations, or by bytes where only those are known on both sides; `None` where nothing
/// can be compared.
#[must_use]
pub fn published_error_percent(m: &Measurement) -> Option<f64> {
    let figure = m.published.first()?;
    let bytes = figure.bytes_per_second.unwrap_or(0.0);
    let (own, published) = match m.iops > 0.0 || m.bytes_per_second <= 0.0 {
        true if figure.iops > 0.0 => (m.iops, figure.iops),
        _ if bytes > 0.0 && m.bytes_per_second > 0.0 => (m.bytes_per_second, bytes),
        _ => return None,
    };
    Some(100.0 * (own - published) / published)
}

/// A rate of a measurement; `None` where the tool did not report it, which is 0 in the store.
fn told(m: &Measurement, rate: f64) -> Option<f64> {
    (rate > 0.0 || m.did_nothing()).then_some(rate)
}

/// Latencies as exports write them: those that were not reported, 0 in the store, are `None`.
#[derive(Serialize)]
struct ToldLatency {
    mean_ns: Option<f64>,
    p50_ns: Option<u64>,
    p90_ns: Option<u64>,
    p99_ns: Option<u64>,
    p999_ns: Option<u64>,
    max_ns: Option<u64>,
}

impl From<&Latency> for ToldLatency {
    fn from(latency: &Latency) -> Self {
        let told = |ns: u64| (ns > 0).then_some(ns);
        Self {
            mean_ns: (latency.mean_ns > 0.0).then_some(latency.mean_ns),
            p50_ns: told(latency.p50_ns),
            p90_ns: told(latency.p90_ns),
            p99_ns: told(latency.p99_ns),
            p999_ns: told(latency.p999_ns),
            max_ns: told(latency.max_ns),
        }
    }
}

/// A published figure as JSON lines write it: operations that it does not tell are `None`, which
/// the store has as 0.
#[derive(Serialize)]
struct ToldFigure<'a> {
    source: &'a str,
    iops: Option<f64>,
    bytes_per_second: Option<f64>,
    reliability: &'a str,
    sync_percent: Option<f64>,
    note: &'a str,
}

impl<'a> From<&'a PublishedFigure> for ToldFigure<'a> {
    fn from(figure: &'a PublishedFigure) -> Self {
        Self {
            source: &figure.source,
            iops: (figure.iops > 0.0).then_some(figure.iops),
            bytes_per_second: figure.bytes_per_second,
            reliability: &figure.reliability,
            sync_percent: figure.sync_percent,
            note: &figure.note,
        }
    }
}

/// Operations per second of the first published figure; `None` where it has bytes only.
fn published_iops(m: &Measurement) -> Option<f64> {
    ToldFigure::from(m.published.first()?).iops
}
