//! The use of each member of an array, by fio's disk statistics.

use raidlab_store::MemberUse;
use raidlab_tools::DiskUse;

/// The members in the order of their names: with an array all disks but the array, else every disk.
/// Bytes are known since fio 3.36.
pub(crate) fn members(
    disks: &[DiskUse],
    model: &dyn Fn(&str) -> String,
    runtime_ns: u64,
) -> Vec<MemberUse> {
    let is_array = disks.iter().any(|disk| disk.members.is_some());
    let mut members: Vec<&DiskUse> = disks
        .iter()
        .filter(|disk| !is_array || disk.members.is_none())
        .collect();
    members.sort_by(|one, two| one.name.cmp(&two.name));
    let member = |(slot, disk): (usize, &&DiskUse)| {
        let ticks = |ms: Option<u64>| ms.unwrap_or(0).saturating_mul(1_000_000);
        let bytes = |sectors: Option<u64>| sectors.unwrap_or(0).saturating_mul(512);
        let own = &disk.own;
        MemberUse {
            member: slot.to_string(),
            model: model(&disk.name),
            read_ios: own.read_ios.unwrap_or(0),
            read_bytes: bytes(own.read_sectors),
            read_ticks_ns: ticks(own.read_ticks_ms),
            write_ios: own.write_ios.unwrap_or(0),
            write_bytes: bytes(own.write_sectors),
            write_ticks_ns: ticks(own.write_ticks_ms),
            busy_ns: busy_ns(own.util_percent, runtime_ns),
            sync_bytes: None,
        }
    };
    members.iter().enumerate().map(member).collect()
}

// The share of a time, which fits into the type.
fn busy_ns(util_percent: Option<f64>, runtime_ns: u64) -> u64 {
    let share = util_percent.unwrap_or(0.0).clamp(0.0, 100.0) / 100.0;
    (share * runtime_ns as f64) as u64
}
