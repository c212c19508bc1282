//! Linux: `/proc/diskstats`, `/proc/meminfo`, `/proc/stat`, ZFS's `arcstats`
//! and the drives' thermometers.

use super::{CpuTicks, DeviceCounters, MemoryState};
use crate::{InventoryError, text};
use raidlab_shell::Target;
use raidlab_units::SECTOR_BYTES;
use std::collections::BTreeMap;

/// The file with the statistics of OpenZFS's cache.
pub(crate) const ARCSTATS: &str = "/proc/spl/kstat/zfs/arcstats";

/// Parses the devices of `/proc/diskstats` (Documentation/admin-guide/iostats.rst): major, minor,
/// name, then 11 fields, and later ones of discards and flushes. Sectors are of 512 bytes,
/// whatever the disk's.
pub(crate) fn diskstats(text: &str) -> BTreeMap<String, DeviceCounters> {
    text.lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            let name = words.nth(2)?.to_owned();
            let fields: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
            let field = |index: usize| fields.get(index).copied().unwrap_or(0);
            let bytes = |index: usize| field(index).saturating_mul(SECTOR_BYTES);
            (fields.len() >= 11).then(|| {
                let counters = DeviceCounters {
                    reads: field(0),
                    read_bytes: bytes(2),
                    read_ms: field(3),
                    writes: field(4),
                    write_bytes: bytes(6),
                    write_ms: field(7),
                    in_flight: field(8),
                    busy_ms: field(9),
                };
                (name, counters)
            })
        })
        .collect()
}

/// Parses `/proc/meminfo`; `None` without a total. `Cached` includes the pages of shared memory,
/// which are subtracted.
pub fn meminfo(text: &str) -> Option<MemoryState> {
    let fields: BTreeMap<&str, u64> = text
        .lines()
        .filter_map(|line| {
            let (name, rest) = line.split_once(':')?;
            let kibibytes: u64 = rest.split_whitespace().next()?.parse().ok()?;
            Some((name, kibibytes.saturating_mul(1024)))
        })
        .collect();
    let field = |name: &str| fields.get(name).copied().unwrap_or(0);
    Some(MemoryState {
        total_bytes: *fields.get("MemTotal")?,
        free_bytes: field("MemFree"),
        buffers_bytes: field("Buffers"),
        cached_bytes: field("Cached").saturating_sub(field("Shmem")),
        pinned_bytes: field("Mapped").saturating_add(field("Mlocked")),
        dirty_bytes: field("Dirty"),
        writeback_bytes: field("Writeback"),
        arc_bytes: None,
    })
}

/// Parses the first line of `/proc/stat` (proc_stat(5)): user, nice, system, idle, iowait,
/// irq, softirq, steal.
pub fn stat(text: &str) -> Option<CpuTicks> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let fields: Vec<u64> = line
        .split_whitespace()
        .map_while(|word| word.parse().ok())
        .collect();
    let [user, nice, system, idle, iowait, irq, softirq, rest @ ..] = fields.as_slice() else {
        return None;
    };
    Some(CpuTicks {
        user: user.saturating_add(*nice),
        system: system.saturating_add(*irq).saturating_add(*softirq),
        idle: *idle,
        iowait: *iowait,
        steal: rest.first().copied().unwrap_or(0),
    })
}

/// Parses the line `size 4 <bytes>` of `arcstats`.
pub(crate) fn arc_size(text: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        (words.next()? == "size").then(|| words.nth(1)?.parse().ok())?
    })
}

/// The files with disks' temperatures, by kernel name of the disk: those of
/// the `drivetemp` module for SCSI and ATA, and of the NVMe driver.
pub(crate) fn thermometers(target: &dyn Target) -> Result<Vec<(String, String)>, InventoryError> {
    let mut found = Vec::new();
    for monitor in target.list("/sys/class/hwmon")? {
        let folder = format!("/sys/class/hwmon/{monitor}");
        let input = format!("{folder}/temp1_input");
        match text::optional(target, &format!("{folder}/name"))?.as_deref() {
            Some("drivetemp") => {
                for name in target.list(&format!("{folder}/device/block"))? {
                    found.push((name, input.clone()));
                }
            }
            Some("nvme") => {
                for name in target.list(&format!("{folder}/device"))? {
                    // Name spaces (nvme0n1); with multipath they are listed
                    // as paths (nvme0c0n1), which have no block device.
                    let digits = name.strip_prefix("nvme").unwrap_or_default();
                    if digits.contains('n') && !digits.contains('c') {
                        found.push((name, input.clone()));
                    }
                }
            }
            _ => {}
        }
    }
    Ok(found)
}
