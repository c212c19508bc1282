//! Latencies in fio's JSON.

use super::json_node::Node;
use crate::error::ParseError;
use crate::result::{LatencyKind, Part, ReportedLatency};

/// Adds the latencies of a direction to its part.
pub(super) fn read_latencies(direction: &Node<'_>, part: &mut Part) -> Result<(), ParseError> {
    for (key, kind) in [
        ("slat", LatencyKind::Submission),
        ("clat", LatencyKind::Completion),
        ("lat", LatencyKind::Total),
    ] {
        let nanoseconds = format!("{key}_ns");
        let (node, factor) = match direction.object(&nanoseconds)? {
            Some(node) => (Some(node), 1),
            None => (direction.object(key)?, 1000),
        };
        if let Some(node) = node {
            part.latencies.extend(read_latency(&node, kind, factor)?);
        }
    }
    Ok(())
}

/// Reads a latency in units of `factor` nanoseconds; `None` where nothing was timed.
fn read_latency(
    node: &Node<'_>,
    kind: LatencyKind,
    factor: u64,
) -> Result<Option<ReportedLatency>, ParseError> {
    let mut latency = ReportedLatency::new(kind);
    let scaled = |number: Option<u64>| number.map(|number| number.saturating_mul(factor));
    latency.samples = node.count("N")?;
    latency.min_ns = scaled(node.count("min")?);
    latency.max_ns = scaled(node.count("max")?);
    latency.mean_ns = node.number("mean")?.map(|mean| mean * factor as f64);
    latency.deviation_ns = node.number("stddev")?.map(|spread| spread * factor as f64);
    if latency.samples == Some(0) || latency.max_ns.unwrap_or(0) == 0 {
        return Ok(None);
    }
    if let Some(percentiles) = node.object("percentile")? {
        for key in percentiles.keys() {
            // Unused entries are printed as percentile 0.
            if let Some(percent) = crate::number::finite(key).filter(|&percent| percent > 0.0)
                && let Some(time) = scaled(percentiles.count(key)?)
            {
                latency.percentiles.push((percent, time));
            }
        }
        latency
            .percentiles
            .sort_by(|(one, _), (other, _)| one.total_cmp(other));
    }
    if let Some(bins) = node.object("bins")? {
        // Up to fio 2.19 the keys are numbers of buckets, and the shape of the
        // histogram stands among them by name; from 2.20 on they are times.
        let are_buckets = bins.has("FIO_IO_U_PLAT_BITS");
        for key in bins.keys() {
            let Ok(number) = key.parse::<u64>() else {
                continue;
            };
            let time = if are_buckets {
                bucket_microseconds(number)
            } else {
                Some(number)
            };
            let time = time.map(|time| time.saturating_mul(factor));
            if let (Some(time), Some(count)) = (time, bins.count(key)?.filter(|&count| count > 0)) {
                latency.bins.push((time, count));
            }
        }
        latency.bins.sort_unstable();
    }
    Ok(Some(latency))
}

/// The middle of bucket `index` of fio 2's histogram (`plat_idx_to_val` of its
/// stat.c with `FIO_IO_U_PLAT_BITS` 6): exact up to 127, then 64 buckets for
/// every doubling.
fn bucket_microseconds(index: u64) -> Option<u64> {
    const BITS: u64 = 6;
    const PER_DOUBLING: u64 = 1 << BITS;
    if index < 2 * PER_DOUBLING {
        return Some(index);
    }
    let error_bits = (index >> BITS) - 1;
    if error_bits + BITS > 62 {
        return None;
    }
    let base = 1_u64 << (error_bits + BITS);
    let width = 1_u64 << error_bits;
    Some(base + (index % PER_DOUBLING) * width + width / 2)
}

#[cfg(test)]
mod tests {
    use super::bucket_microseconds;

    #[test]
    fn buckets_follow_the_doublings() {
        // From the comment at FIO_IO_U_PLAT_BITS in fio's stat.h: bucket 128
        // holds 128 and 129, bucket 192 holds 256 to 259.
        let cases = [
            (0, Some(0)),
            (127, Some(127)),
            (128, Some(129)),
            (192, Some(258)),
        ];
        for (index, middle) in cases {
            assert_eq!(bucket_microseconds(index), middle, "{index}");
        }
        assert_eq!(bucket_microseconds(u64::MAX), None);
    }
}
