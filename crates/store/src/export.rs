//! Measurements as files that other programs read. Every column and key that
//! has a unit ends in it.

mod csv;
mod jsonl;

pub use csv::{write_measurements as write_csv, write_members as write_members_csv};
pub use jsonl::{to_json_line, write as write_json_lines};

use crate::Measurement;

/// Ours against the first published figure, percent of the published: by operations, or by
/// bytes where only those are known on both sides; `None` where nothing can be compared.
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

/// A rate of a measurement that is known. Of one that nobody told, 0 in the store, it is `None`.
fn told(m: &Measurement, rate: f64) -> Option<f64> {
    (rate > 0.0 || m.did_nothing()).then_some(rate)
}

/// Operations per second of the first published figure; `None` where it tells bytes alone.
fn published_iops(m: &Measurement) -> Option<f64> {
    let iops = m.published.first()?.iops;
    (iops > 0.0).then_some(iops)
}
