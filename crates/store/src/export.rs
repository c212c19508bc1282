//! Measurements as files that other programs read. Every column and key that
//! has a unit ends in it.

mod csv;
mod jsonl;

pub use csv::{write_measurements as write_csv, write_members as write_members_csv};
pub use jsonl::{to_json_line, write as write_json_lines};

use crate::Measurement;

/// Ours against the iops of the first published figure, percent of the
/// published; `None` where there is no figure, or it is zero, or the tool tells bytes alone.
#[must_use]
pub fn published_error_percent(m: &Measurement) -> Option<f64> {
    let published = m.published.first()?.iops;
    let known = published > 0.0 && (m.iops > 0.0 || m.bytes_per_second <= 0.0);
    known.then(|| 100.0 * (m.iops - published) / published)
}
