//! The physical bound: what a subject's members can do at most, by arithmetic.
//!
//! The rate of an array is bounded by the sum over its disks of what each can
//! do in sequence, and by every channel that several of them share. A disk's
//! own rate is taken where it was measured or declared, else a ceiling that no
//! disk of its kind exceeds. Bounds are generous: a bound that cries wolf is
//! worse than none.

use crate::case::Case;
use crate::devices::{Member, has_auxiliary, level, members};
use raidlab_store::{Measurement, fact};
use std::collections::BTreeMap;

/// No disk with one actuator delivers more from its outer tracks (Seagate Exos
/// X20 data sheet: 285 MB/s; Western Digital HC570: 291 MB/s), bytes/s.
const ROTATING_CEILING: f64 = 300e6;
/// SATA's third generation, 6 Gbit/s with 8b/10b coding, bytes/s.
const SATA_CEILING: f64 = 600e6;
/// PCI Express 5.0 with four lanes, bytes/s.
const NVME_CEILING: f64 = 16e9;
/// Twice 10 Gbit/s of USB 3.2 with 128b/132b coding; SAS-4's 22.5 Gbit/s are less, bytes/s.
const USB_CEILING: f64 = 2.5e9;
/// The factor by which a rate must be above the bound: rounding, zones, warm-up.
pub(crate) const TOLERANCE: f64 = 1.1;
/// The small random I/Os per second that no rotating disk exceeds, however deep its queue and small
/// the region: 7200 rpm drives reach 200 to 300 with full queues.
pub(crate) const ROTATING_IOPS_CEILING: f64 = 600.0;

/// The most that the members can do.
pub(crate) struct Bound {
    /// The highest rate, bytes per second.
    pub(crate) bytes_per_second: f64,
    /// The source of that rate, in words.
    pub(crate) reason: String,
}

/// The bound of a row's subject; `None` where a member's rate has no bound.
pub(crate) fn bound(case: &Case<'_>, row: &Measurement) -> Option<Bound> {
    let members = members(case, row);
    let mut disks: BTreeMap<String, (f64, &Member)> = BTreeMap::new();
    for (slot, member) in members.iter().enumerate() {
        let disk = match member.disk(case, row) {
            "" => format!("slot {slot}"),
            disk => disk.to_owned(),
        };
        disks.insert(disk, (ceiling(member)?, member));
    }
    if disks.is_empty() {
        return None;
    }
    let data = data_share(case, row, disks.len());
    let mut channels: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    let mut total = 0.0;
    for (rate, member) in disks.values() {
        match (&member.channel, member.channel_bytes_per_second) {
            (Some(channel), Some(limit)) => {
                let sums = channels.entry(channel).or_insert((0.0, limit));
                sums.0 += rate;
            }
            _ => total += rate,
        }
    }
    total += channels
        .values()
        .map(|(sum, limit)| sum.min(*limit))
        .sum::<f64>();
    let limited: Vec<&str> = channels
        .iter()
        .filter(|(_, (sum, limit))| limit < sum)
        .map(|(channel, _)| *channel)
        .collect();
    let mut reason = format!(
        "{} disks do at most {} together",
        disks.len(),
        megabytes(total)
    );
    if disks.len() == 1 {
        reason = format!("the disk does at most {}", megabytes(total));
    }
    if !limited.is_empty() {
        reason += &format!(", limited by {}", limited.join(", "));
    }
    if data < 1.0 {
        reason += &format!(", of which {:.0} % are data", data * 100.0);
    }
    Some(Bound {
        bytes_per_second: total * data,
        reason,
    })
}

/// The share of the bytes written to so many disks that is data and not a copy or parity: an
/// upper bound where nothing tells how the array is made up. A cache or a log takes bytes before
/// the members do.
pub(crate) fn data_share(case: &Case<'_>, row: &Measurement, disks: usize) -> f64 {
    if !row.op.only_writes() || has_auxiliary(case, row) {
        return 1.0;
    }
    if let Some(written) = case.number(row, fact::ARRAY_MEMBER_BYTES_PER_BYTE) {
        return 1.0 / written.max(1.0);
    }
    let parity = match level(case, row) {
        // Pools of several mirrors are called mirrors, too.
        "raid1" | "mirror" | "raid10" => return if disks > 1 { 0.5 } else { 1.0 },
        "raid3" | "raid4" | "raid5" | "raidz" | "raidz1" => 1.0,
        "raid6" | "raidz2" => 2.0,
        "raidz3" => 3.0,
        _ => return 1.0,
    };
    let disks = disks as f64;
    if disks > parity {
        (disks - parity) / disks
    } else {
        1.0
    }
}

fn ceiling(member: &Member) -> Option<f64> {
    if let Some(rate) = member.sequential_bytes_per_second {
        return (rate > 0.0).then_some(rate);
    }
    match (member.rotational?, member.transport.as_deref()) {
        (true, _) => Some(ROTATING_CEILING),
        (false, Some("sata")) => Some(SATA_CEILING),
        (false, Some("nvme")) => Some(NVME_CEILING),
        (false, Some("usb" | "sas")) => Some(USB_CEILING),
        (false, _) => None,
    }
}

/// The small random I/Os per second that the members can do; `None` unless all of them rotate.
pub(crate) fn random_iops(case: &Case<'_>, row: &Measurement) -> Option<f64> {
    let members = members(case, row);
    let rotating = members.iter().all(|member| member.rotational == Some(true));
    (!members.is_empty() && rotating).then_some(members.len() as f64 * ROTATING_IOPS_CEILING)
}

/// Formats a rate for people, in decimal units.
pub(crate) fn megabytes(bytes_per_second: f64) -> String {
    format!("{:.1} MB/s", bytes_per_second / 1e6)
}
