//! Measurements as files that other programs read. Every column and key that
//! has a unit ends in it.

mod csv;
mod jsonl;

pub use csv::{write_measurements as write_csv, write_members as write_members_csv};
pub use jsonl::{to_json_line, write as write_json_lines};

use crate::Measurement;

/// Ours against the iops of the first published figure, percent of the
/// published; `None` where there is no figure, or it is zero.
#[must_use]
pub fn published_error_percent(m: &Measurement) -> Option<f64> {
    let published = m.published.first()?.iops;
    (published > 0.0).then(|| 100.0 * (m.iops - published) / published)
}
