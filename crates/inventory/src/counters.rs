//! What a machine counts, read once a second while a job runs.
//!
//! [`Counters`] knows which files (Linux) or commands (FreeBSD) to watch, and
//! turns a frame of them into a [`Snapshot`]. Two snapshots make an
//! [`Activity`]: what happened on each device between them. All sources are
//! kept by the kernel anyway and reading them wakes no disk, unlike
//! `mdadm --detail`.

mod activity;
mod freebsd;
mod linux;

pub use activity::{Activity, DeviceActivity, Foreign};

use crate::{InventoryError, System, text};
use raidlab_shell::{Frame, Target, Watched};
use std::collections::BTreeMap;

/// What the kernel has counted for a device since it appeared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeviceCounters {
    /// How many reads were completed.
    pub reads: u64,
    /// How many bytes were read.
    pub read_bytes: u64,
    /// Milliseconds that all reads took together.
    pub read_ms: u64,
    /// How many writes were completed.
    pub writes: u64,
    /// How many bytes were written.
    pub write_bytes: u64,
    /// Milliseconds that all writes took together.
    pub write_ms: u64,
    /// Commands under way at this moment.
    pub in_flight: u64,
    /// Milliseconds with a command under way.
    pub busy_ms: u64,
}

/// The memory's state, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemoryState {
    /// The memory that the kernel manages, bytes.
    pub total_bytes: u64,
    /// The memory that nothing is kept in, bytes.
    pub free_bytes: u64,
    /// Block devices' pages in the cache.
    pub buffers_bytes: u64,
    /// Files' pages in the cache, those of shared memory (tmpfs) excluded: no
    /// drop of caches can free them.
    pub cached_bytes: u64,
    /// Pages of the cache that programs have mapped or locked: no drop of
    /// caches frees them.
    pub pinned_bytes: u64,
    /// Written by programs, not yet on its way to a disk.
    pub dirty_bytes: u64,
    /// On its way to a disk.
    pub writeback_bytes: u64,
    /// The ZFS cache, where the module is loaded.
    pub arc_bytes: Option<u64>,
}

/// The processors' time since boot, in the kernel's ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CpuTicks {
    /// Programs, niced ones included.
    pub user: u64,
    /// The kernel, interrupts included.
    pub system: u64,
    /// The processors had nothing to do.
    pub idle: u64,
    /// Nothing to do while a disk works.
    pub iowait: u64,
    /// Taken away by the machine below a virtual one.
    pub steal: u64,
}

/// All counters at one moment; what the machine does not count is absent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Snapshot {
    /// Milliseconds since the watch began.
    pub at_ms: u64,
    /// The counters of each device, by its kernel name without `/dev/`.
    pub devices: BTreeMap<String, DeviceCounters>,
    /// The memory's state.
    pub memory: Option<MemoryState>,
    /// The processors' time.
    pub cpu: Option<CpuTicks>,
    /// Thousandths of a degree Celsius, by kernel name of the disk.
    pub temperatures_millicelsius: BTreeMap<String, i64>,
}

/// What a source of a frame holds.
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
    /// The counters that a machine has.
    ///
    /// # Errors
    /// When the machine cannot be asked.
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

    /// What to give to [`Target::watch`].
    #[must_use]
    pub fn sources(&self) -> Vec<Watched> {
        self.sources
            .iter()
            .map(|(_, watched)| watched.clone())
            .collect()
    }

    /// A frame of the watch; sources that could not be read are absent from
    /// the result, as are lines of an unknown form.
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

/// The memory's state now.
///
/// # Errors
/// When the machine cannot be asked or says nothing of its memory.
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

/// The counters of all devices now.
///
/// # Errors
/// When the machine cannot be asked.
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
