//! How far a figure is from the published one.

use raidlab_store::{Measurement, published_error_percent};

/// Ours against the first published figure, percent of the published: by
/// operations, or by bytes where only those are known on both sides.
pub(crate) fn error_percent(m: &Measurement) -> Option<f64> {
    let by_bytes = || {
        let published = m.published.first()?.bytes_per_second?;
        let known = published > 0.0 && m.bytes_per_second > 0.0;
        known.then(|| 100.0 * (m.bytes_per_second - published) / published)
    };
    published_error_percent(m).or_else(by_bytes)
}
