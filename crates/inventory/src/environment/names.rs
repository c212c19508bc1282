//! The names of all facts: the one table that rules and documents read.

/// What is known of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// The name; `<device>` stands for a kernel name such as `sdb`.
    pub name: &'static str,
    /// The value's unit; empty for text and counts.
    pub unit: &'static str,
    /// What a fact of this name says, in words.
    pub meaning: &'static str,
    /// Whether a run may not be carried on once it has changed.
    pub stable: bool,
}

const fn stable(name: &'static str, unit: &'static str, meaning: &'static str) -> Known {
    Known {
        name,
        unit,
        meaning,
        stable: true,
    }
}

const fn passing(name: &'static str, unit: &'static str, meaning: &'static str) -> Known {
    Known {
        name,
        unit,
        meaning,
        stable: false,
    }
}

/// All names, in the order in which facts are told.
pub const NAMES: &[Known] = &[
    stable("os.kernel", "", "`Linux` or `FreeBSD`"),
    stable(
        "os.release",
        "",
        "the kernel's release, as `uname -r` prints it",
    ),
    stable("os.name", "", "the distribution, or `FreeBSD`"),
    stable("os.version", "", "the distribution's version"),
    passing("host.name", "", "the machine's own name"),
    stable(
        "machine.virtualisation",
        "",
        "`none`, or what it runs in: `kvm`, `docker`, `xen`",
    ),
    stable(
        "machine.vendor",
        "",
        "maker of the machine, from its firmware",
    ),
    stable("machine.product", "", "product, from its firmware"),
    stable(
        "kernel.command_line",
        "",
        "options given to the kernel at boot",
    ),
    stable("kernel.clock_source", "", "what the kernel tells time by"),
    stable("cpu.model", "", "the first processor's model"),
    stable("cpu.count", "", "logical processors on line"),
    stable(
        "cpu.governor",
        "",
        "frequency governors in force, all different ones",
    ),
    passing(
        "cpu.frequency_hz",
        "Hz",
        "the first processor's frequency now",
    ),
    stable(
        "cpu.frequency_max_hz",
        "Hz",
        "the first processor's highest frequency",
    ),
    passing(
        "cpu.thermal_throttle_count",
        "",
        "times since boot that heat slowed a core down",
    ),
    passing(
        "cpu.steal_since_boot_percent",
        "%",
        "time since boot that a machine below took away",
    ),
    stable(
        "memory.total_bytes",
        "bytes",
        "memory that the kernel manages",
    ),
    passing("memory.free_bytes", "bytes", "unused memory"),
    passing(
        "memory.cached_bytes",
        "bytes",
        "files in the page cache, shared memory excluded",
    ),
    passing("memory.dirty_bytes", "bytes", "pages not yet written"),
    stable("memory.swap_total_bytes", "bytes", "swap space"),
    passing("memory.swap_used_bytes", "bytes", "swap in use"),
    stable(
        "memory.arc_max_bytes",
        "bytes",
        "limit of the ZFS cache as set; 0: the module's own",
    ),
    passing("memory.arc_bytes", "bytes", "size of the ZFS cache"),
    stable(
        "tunable.vm.dirty_ratio",
        "%",
        "memory that may be dirty before writers wait",
    ),
    stable(
        "tunable.vm.dirty_background_ratio",
        "%",
        "memory that may be dirty before it is written",
    ),
    stable(
        "tunable.vm.dirty_bytes",
        "bytes",
        "the same as bytes; 0: the ratio holds",
    ),
    stable(
        "tunable.vm.dirty_background_bytes",
        "bytes",
        "the same as bytes; 0: the ratio holds",
    ),
    stable(
        "tunable.vm.dirty_expire_centisecs",
        "1/100 s",
        "age at which dirty pages are written",
    ),
    stable(
        "tunable.vm.dirty_writeback_centisecs",
        "1/100 s",
        "how often dirty pages are looked for",
    ),
    stable(
        "tunable.vm.swappiness",
        "",
        "inclination to swap rather than to drop caches",
    ),
    stable(
        "tunable.md.sync_speed_min",
        "KiB/s",
        "rate that an md resync is granted for each disk",
    ),
    stable(
        "tunable.md.sync_speed_max",
        "KiB/s",
        "rate that an md resync is held to for each disk",
    ),
    stable(
        "tunable.zfs.min_ashift",
        "",
        "FreeBSD: smallest ashift of new vdevs",
    ),
    stable(
        "tunable.geom.mirror.sync_requests",
        "",
        "FreeBSD: requests of a gmirror resync under way",
    ),
    passing("load.one_minute", "", "load average over one minute"),
    passing(
        "pressure.cpu_percent",
        "%",
        "time of the last 10 s in which a task waited for a processor",
    ),
    passing(
        "pressure.io_percent",
        "%",
        "time of the last 10 s in which a task waited for I/O",
    ),
    passing(
        "pressure.memory_percent",
        "%",
        "time of the last 10 s in which a task waited for memory",
    ),
    stable(
        "disk.<device>.kind",
        "",
        "`disk`, `partition` or `loop device`",
    ),
    stable("disk.<device>.model", "", "maker's model"),
    stable("disk.<device>.serial", "", "maker's serial number"),
    stable("disk.<device>.firmware", "", "firmware revision"),
    stable("disk.<device>.size_bytes", "bytes", "size"),
    stable(
        "disk.<device>.logical_sector_bytes",
        "bytes",
        "sector as addressed",
    ),
    stable(
        "disk.<device>.physical_sector_bytes",
        "bytes",
        "sector as stored",
    ),
    stable(
        "disk.<device>.rotational",
        "",
        "`true` or `false`: whether it says that it turns",
    ),
    stable(
        "disk.<device>.transport",
        "",
        "`sata`, `sas`, `nvme`, `usb`, `virtio`",
    ),
    stable("disk.<device>.scheduler", "", "I/O scheduler in force"),
    stable(
        "disk.<device>.queue_depth",
        "",
        "commands that the drive takes at once",
    ),
    stable(
        "disk.<device>.request_queue",
        "",
        "requests that the kernel holds for it",
    ),
    stable(
        "disk.<device>.read_ahead_bytes",
        "bytes",
        "read-ahead of the block layer",
    ),
    stable(
        "disk.<device>.write_cache",
        "",
        "`write back` or `write through`",
    ),
    stable(
        "disk.<device>.start_sector",
        "sectors",
        "where a partition begins, in 512-byte sectors",
    ),
    stable(
        "disk.<device>.alignment_offset",
        "bytes",
        "bytes by which its start misses a physical sector",
    ),
    passing(
        "disk.<device>.link_speed",
        "bits/s",
        "negotiated rate of its link",
    ),
    stable(
        "disk.<device>.smr",
        "",
        "who says that it hides shingled tracks; absent: unknown",
    ),
    stable(
        "disk.<device>.zoned",
        "",
        "`none`, `host-aware`, `host-managed`",
    ),
    stable(
        "disk.<device>.backing_file",
        "",
        "the file behind a loop device",
    ),
    passing("disk.<device>.temperature_celsius", "°C", "temperature"),
    passing(
        "disk.<device>.smart.passed",
        "",
        "`true` or `false`: the drive's own judgement",
    ),
    passing(
        "disk.<device>.smart.power_on_hours",
        "h",
        "hours in operation",
    ),
    passing(
        "disk.<device>.smart.reallocated_sectors",
        "",
        "sectors replaced by spares",
    ),
    passing(
        "disk.<device>.smart.pending_sectors",
        "",
        "sectors that could not be read lately",
    ),
    passing(
        "disk.<device>.smart.uncorrectable_sectors",
        "",
        "sectors that self-tests could not read",
    ),
    passing(
        "disk.<device>.smart.checksum_errors",
        "",
        "transfers with a wrong checksum: a bad cable",
    ),
    passing(
        "disk.<device>.smart.media_errors",
        "",
        "NVMe: errors of the medium",
    ),
    passing(
        "disk.<device>.smart.used_percent",
        "%",
        "NVMe: promised writes used up",
    ),
    passing(
        "disk.<device>.channel.pci",
        "",
        "PCI function that it hangs on",
    ),
    passing(
        "disk.<device>.channel.host",
        "",
        "host adapter that it hangs on",
    ),
    passing(
        "disk.<device>.channel.usb",
        "",
        "USB hub or port that it hangs on",
    ),
];

/// The entry for a fact's name; a device's own name stands where the entry has
/// `<device>`.
#[must_use]
pub fn known(name: &str) -> Option<&'static Known> {
    NAMES
        .iter()
        .find(|known| match known.name.strip_prefix("disk.<device>.") {
            Some(field) => name
                .strip_prefix("disk.")
                .and_then(|rest| rest.strip_suffix(field))
                .and_then(|rest| rest.strip_suffix('.'))
                .is_some_and(|device| !device.is_empty() && !device.contains('.')),
            None => known.name == name,
        })
}
