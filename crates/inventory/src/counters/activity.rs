//! The activity of a machine between two snapshots.
//!
//! A counter that has become smaller has either wrapped or begun anew. Linux keeps the times in
//! milliseconds in 32 bits on every machine, and all others in 32 bits on 32-bit machines
//! (Documentation/admin-guide/iostats.rst); a device that was taken away and put back counts from
//! zero. So times wrap at 2^32; a count is taken to have wrapped only if it was in the last
//! quarter below 2^32 and is in the first quarter now; otherwise the device is new, and its counts
//! are the differences.

use super::{CpuTicks, DeviceCounters, Snapshot};
use crate::{DiskKind, Inventory, Use};
use raidlab_units::{Bytes, BytesPerSecond, Nanos};
use std::collections::{BTreeMap, BTreeSet};

/// The activity of a device in an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeviceActivity {
    /// The differences of all counters; `in_flight` is the value at the end.
    pub done: DeviceCounters,
    /// The interval in milliseconds.
    pub interval_ms: u64,
}

impl DeviceActivity {
    /// The number of reads per second.
    #[must_use]
    pub fn reads_per_second(&self) -> f64 {
        self.per_second(self.done.reads)
    }

    /// The number of writes per second.
    #[must_use]
    pub fn writes_per_second(&self) -> f64 {
        self.per_second(self.done.writes)
    }

    /// The rate of reads, in bytes.
    #[must_use]
    pub fn read_rate(&self) -> BytesPerSecond {
        self.rate(self.done.read_bytes)
    }

    /// The rate of writes, in bytes.
    #[must_use]
    pub fn write_rate(&self) -> BytesPerSecond {
        self.rate(self.done.write_bytes)
    }

    /// The share of the interval with a command in flight, 0 to 1.
    #[must_use]
    pub fn busy(&self) -> f64 {
        (self.per_second(self.done.busy_ms) / 1000.0).min(1.0)
    }

    fn per_second(&self, count: u64) -> f64 {
        if self.interval_ms == 0 {
            return 0.0;
        }
        count as f64 * 1000.0 / self.interval_ms as f64
    }

    fn rate(&self, bytes: u64) -> BytesPerSecond {
        let time = Nanos(self.interval_ms.saturating_mul(1_000_000));
        BytesPerSecond::mean(Bytes(bytes), time)
    }
}

/// The activity of a machine in an interval.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Activity {
    /// The activity of each device by kernel name; only for devices in both snapshots or in
    /// the later one.
    pub devices: BTreeMap<String, DeviceActivity>,
    /// Processor ticks in the interval.
    pub cpu: Option<CpuTicks>,
}

impl Activity {
    /// The activity from one snapshot to a later one.
    #[must_use]
    pub fn between(before: &Snapshot, after: &Snapshot) -> Self {
        let interval_ms = after.at_ms.saturating_sub(before.at_ms);
        let devices = after.devices.iter().map(|(name, now)| {
            let then = before.devices.get(name);
            let done = then.map_or(*now, |then| device(then, now));
            (name.clone(), DeviceActivity { done, interval_ms })
        });
        Self {
            devices: devices.collect(),
            cpu: before
                .cpu
                .zip(after.cpu)
                .map(|(then, now)| cpu(&then, &now)),
        }
    }

    /// The share of the processors' time that the hypervisor took for others.
    #[must_use]
    pub fn steal(&self) -> Option<f64> {
        self.share(|cpu| cpu.steal)
    }

    fn share(&self, part: impl Fn(&CpuTicks) -> u64) -> Option<f64> {
        let cpu = self.cpu?;
        let total = [cpu.user, cpu.system, cpu.idle, cpu.iowait, cpu.steal];
        let total: u64 = total.into_iter().fold(0, u64::saturating_add);
        (total > 0).then(|| part(&cpu) as f64 / total as f64)
    }
}

const WRAP: u64 = 1 << 32;

/// The difference of a counter that wraps at 2^32 if it wraps at all.
fn passed(then: u64, now: u64) -> u64 {
    if now >= then {
        now - then
    } else {
        now.wrapping_add(WRAP).wrapping_sub(then) % WRAP
    }
}

/// Whether a counter has wrapped rather than been reset.
fn wrapped(then: u64, now: u64) -> bool {
    now < WRAP / 4 && (WRAP / 4 * 3..WRAP).contains(&then)
}

/// The differences of a device's counters; all counts of a device that has been reset.
fn device(then: &DeviceCounters, now: &DeviceCounters) -> DeviceCounters {
    let anew = |then: u64, now: u64| now < then && !wrapped(then, now);
    if anew(then.reads, now.reads) || anew(then.writes, now.writes) {
        return *now;
    }
    // Bytes are sectors times 512, so they wrap at 512 times 2^32.
    let bytes = |then: u64, now: u64| {
        let sector = raidlab_units::SECTOR_BYTES;
        if now >= then {
            now - then
        } else {
            passed(then / sector, now / sector).saturating_mul(sector)
        }
    };
    DeviceCounters {
        reads: passed(then.reads, now.reads),
        read_bytes: bytes(then.read_bytes, now.read_bytes),
        read_ms: passed(then.read_ms, now.read_ms),
        writes: passed(then.writes, now.writes),
        write_bytes: bytes(then.write_bytes, now.write_bytes),
        write_ms: passed(then.write_ms, now.write_ms),
        in_flight: now.in_flight,
        busy_ms: passed(then.busy_ms, now.busy_ms),
    }
}

/// The differences of the processors' ticks. Idle and iowait ticks may step back a little when a
/// processor goes offline, which counts as 0.
fn cpu(then: &CpuTicks, now: &CpuTicks) -> CpuTicks {
    CpuTicks {
        user: now.user.saturating_sub(then.user),
        system: now.system.saturating_sub(then.system),
        idle: now.idle.saturating_sub(then.idle),
        iowait: now.iowait.saturating_sub(then.iowait),
        steal: now.steal.saturating_sub(then.steal),
    }
}

/// The disks that are not under measurement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Foreign {
    disks: BTreeSet<String>,
}

impl Foreign {
    /// The foreign disks while these devices are measured: every disk and loop device that is not
    /// below or above one of them, and does not hold the file behind one of them.
    #[must_use]
    pub fn of(inventory: &Inventory, own: &[String]) -> Self {
        let mut family: BTreeSet<String> = BTreeSet::new();
        for device in own {
            family.extend(inventory.below(device));
            family.extend(inventory.above(device));
            if let Some(file) = inventory
                .find(device)
                .and_then(|disk| disk.backing_file.as_ref())
            {
                family.extend(holding(inventory, file));
            }
        }
        let disks = inventory
            .disks
            .iter()
            .filter(|disk| matches!(disk.kind, DiskKind::Disk | DiskKind::Loop))
            .filter(|disk| !family.contains(&disk.device))
            .map(|disk| disk.device.trim_start_matches("/dev/").to_owned())
            .collect();
        Self { disks }
    }

    /// The bytes read and written on foreign disks.
    #[must_use]
    pub fn bytes(&self, activity: &Activity) -> u64 {
        let done = self
            .disks
            .iter()
            .filter_map(|name| activity.devices.get(name));
        done.map(|device| {
            let done = &device.done;
            done.read_bytes.saturating_add(done.write_bytes)
        })
        .fold(0, u64::saturating_add)
    }
}

/// The devices below the file system with a file.
fn holding(inventory: &Inventory, file: &str) -> Vec<String> {
    let holds = |at: &str| {
        let rest = file.strip_prefix(at.trim_end_matches('/'));
        rest.is_some_and(|rest| rest.starts_with('/'))
    };
    let mounts = inventory.uses.iter().filter_map(|used| match used {
        Use::Mounted { device, at, .. } if holds(at) => Some((at.len(), device)),
        _ => None,
    });
    let innermost = mounts.max_by_key(|(depth, _)| *depth);
    innermost
        .map(|(_, device)| inventory.below(device))
        .unwrap_or_default()
}
