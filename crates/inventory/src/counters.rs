//! The counters of a machine, read once a second while a job runs.
//!
//! [`Counters`] knows which files (Linux) or commands (FreeBSD) to watch, and turns a frame of
//! them into a [`Snapshot`]. Two snapshots make an [`Activity`]: the work of each device
//! between them. All sources are maintained by the kernel anyway, and reading them wakes no
//! disk, unlike `mdadm --detail`.

mod activity;
mod freebsd;
mod linux;

pub use activity::{Activity, DeviceActivity, Foreign};

use crate::{InventoryError, System, text};
use raidlab_shell::{Frame, Target, Watched};
use std::collections::BTreeMap;

/// The kernel's counters of a device since it appeared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeviceCounters {
    /// The number of completed reads.
    pub reads: u64,
    /// The number of bytes read.
    pub read_bytes: u64,
    /// The total time of all reads, milliseconds.
    pub read_ms: u64,
    /// The number of completed writes.
    pub writes: u64,
    /// The number of bytes written.
    pub write_bytes: u64,
    /// The total time of all writes, milliseconds.
    pub write_ms: u64,
    /// The number of commands in flight at this moment.
    pub in_flight: u64,
    /// The time with a command in flight, milliseconds.
    pub busy_ms: u64,
}

/// The memory's state, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemoryState {
    /// The memory that the kernel manages, bytes.
    pub total_bytes: u64,
    /// The memory that is unused, bytes.
    pub free_bytes: u64,
    /// The pages of block devices in the cache, bytes.
    pub buffers_bytes: u64,
    /// The pages of files in the cache, bytes, without those of shared memory (tmpfs), which no
    /// drop of caches can free.
    pub cached_bytes: u64,
    /// The pages of the cache that programs have mapped or locked, bytes, which no drop
    /// of caches frees.
    pub pinned_bytes: u64,
    /// The data written by programs, and not yet on its way to a disk, bytes.
    pub dirty_bytes: u64,
    /// The data on its way to a disk, bytes.
    pub writeback_bytes: u64,
    /// The size of the ZFS cache, bytes, where the module is loaded.
    pub arc_bytes: Option<u64>,
}

/// The processors' time since boot, in the kernel's ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CpuTicks {
    /// The time of programs, including niced ones.
    pub user: u64,
    /// The time of the kernel, including interrupts.
    pub system: u64,
    /// The time in which the processors were idle.
    pub idle: u64,
    /// The idle time during which a disk worked.
    pub iowait: u64,
    /// The time taken by the hypervisor for others.
    pub steal: u64,
}

/// All counters at one moment; those that the machine does not have are absent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Snapshot {
    /// The time since the watch began, milliseconds.
    pub at_ms: u64,
    /// The counters of each device, by its kernel name without `/dev/`.
    pub devices: BTreeMap<String, DeviceCounters>,
    /// The memory's state.
    pub memory: Option<MemoryState>,
    /// The processors' time.
    pub cpu: Option<CpuTicks>,
    /// The temperatures in thousandths of a degree Celsius, by kernel name of the disk.
    pub temperatures_millicelsius: BTreeMap<String, i64>,
}

/// The contents of a frame's source.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Source {
    DiskStats,
    MemInfo,
    Stat,
    ArcStats,
    Temperature(String),
    Iostat,
    Sysctl,
}

/// The sources of a machine, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counters {
    sources: Vec<(Source, Watched)>,
}

impl Counters {
    /// Finds the counters of a machine.
    ///
    /// # Errors
    /// When the machine cannot be queried.
    pub fn of(target: &dyn Target, system: System) -> Result<Self, InventoryError> {
        let sources = match system {
            System::Linux => {
                let file = |path: &str| Watched::File(path.to_owned());
                let mut sources = vec![
                    (Source::DiskStats, file("/proc/diskstats")),
                    (Source::MemInfo, file("/proc/meminfo")),
                    (Source::Stat, file("/proc/stat")),
                ];
                if text::optional(target, linux::ARCSTATS)?.is_some() {
                    sources.push((Source::ArcStats, file(linux::ARCSTATS)));
                }
                for (name, path) in linux::thermometers(target)? {
                    sources.push((Source::Temperature(name), Watched::File(path)));
                }
                sources
            }
            System::FreeBsd => vec![
                (Source::Iostat, Watched::Command(freebsd::iostat())),
                (Source::Sysctl, Watched::Command(freebsd::sysctl())),
            ],
        };
        Ok(Self { sources })
    }

    /// The sources for [`Target::watch`].
    #[must_use]
    pub fn sources(&self) -> Vec<Watched> {
        self.sources
            .iter()
            .map(|(_, watched)| watched.clone())
            .collect()
    }

    /// Parses a frame of the watch; sources that could not be read are absent from the result, as
    /// are lines of an unknown form.
    #[must_use]
    pub fn parse(&self, frame: &Frame) -> Snapshot {
        let mut snapshot = Snapshot {
            at_ms: frame.at.as_millis().try_into().unwrap_or(u64::MAX),
            ..Snapshot::default()
        };
        let mut arc_bytes = None;
        for ((source, _), contents) in self.sources.iter().zip(&frame.contents) {
            let Some(text) = contents else { continue };
            match source {
                Source::DiskStats => snapshot.devices = linux::diskstats(text),
                Source::MemInfo => snapshot.memory = linux::meminfo(text),
                Source::Stat => snapshot.cpu = linux::stat(text),
                Source::ArcStats => arc_bytes = linux::arc_size(text),
                Source::Temperature(name) => {
                    if let Ok(degrees) = text.trim().parse() {
                        snapshot
                            .temperatures_millicelsius
                            .insert(name.clone(), degrees);
                    }
                }
                Source::Iostat => snapshot.devices = freebsd::devices(text),
                Source::Sysctl => (snapshot.memory, snapshot.cpu) = freebsd::state(text),
            }
        }
        if let (Some(memory), Some(bytes)) = (&mut snapshot.memory, arc_bytes) {
            memory.arc_bytes = Some(bytes);
        }
        snapshot
    }
}

/// Reads the present state of the memory.
///
/// # Errors
/// When the machine cannot be queried or does not report its memory.
pub fn memory_state(target: &dyn Target, system: System) -> Result<MemoryState, InventoryError> {
    let (text, origin) = match system {
        System::Linux => (target.read("/proc/meminfo")?, "/proc/meminfo".to_owned()),
        System::FreeBsd => {
            let command = freebsd::sysctl();
            (target.run(&command)?.stdout, command.to_string())
        }
    };
    let state = match system {
        System::Linux => linux::meminfo(&text),
        System::FreeBsd => freebsd::state(&text).0,
    };
    let mut state = state.ok_or_else(|| InventoryError::Format {
        machine: target.name().to_owned(),
        origin,
        problem: "no line tells the size of the memory".to_owned(),
    })?;
    if system == System::Linux {
        state.arc_bytes = text::optional(target, linux::ARCSTATS)?
            .as_deref()
            .and_then(linux::arc_size);
    }
    Ok(state)
}

/// Reads the present counters of all devices.
///
/// # Errors
/// When the machine cannot be queried.
pub(crate) fn devices_now(
    target: &dyn Target,
    system: System,
) -> Result<BTreeMap<String, DeviceCounters>, InventoryError> {
    Ok(match system {
        System::Linux => linux::diskstats(&target.read("/proc/diskstats")?),
        System::FreeBsd => freebsd::devices(&target.run(&freebsd::iostat())?.stdout),
    })
}

pub(crate) use linux::{stat as cpu_ticks, thermometers};

#[cfg(test)]
pub(crate) use freebsd::sysctl as freebsd_memory_command;

#[cfg(test)]
mod tests;
