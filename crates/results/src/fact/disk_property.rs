//! Properties of a device, for [`disk`](super::disk).

/// The model, as the disk's maker calls it.
pub const MODEL: &str = "model";
/// The maker's serial number.
pub const SERIAL: &str = "serial";
/// The revision of the disk's firmware.
pub const FIRMWARE: &str = "firmware";
/// The size of the device, bytes.
pub const SIZE_BYTES: &str = "size_bytes";
/// The size of an addressed sector, bytes.
pub const LOGICAL_SECTOR_BYTES: &str = "logical_sector_bytes";
/// The size of a stored sector, as the drive reports it, bytes; some lie.
pub const PHYSICAL_SECTOR_BYTES: &str = "physical_sector_bytes";
/// The start of a partition, in 512-byte sectors of its disk.
pub const START_SECTOR: &str = "start_sector";
/// The number of bytes by which the start misses the boundary of a physical sector.
pub const ALIGNMENT_OFFSET: &str = "alignment_offset";
/// `true` where the disk rotates.
pub const ROTATIONAL: &str = "rotational";
/// The transport: `sata`, `sas`, `nvme`, `usb`, `virtio`, `pata`.
pub const TRANSPORT: &str = "transport";
/// The link's negotiated rate, bits per second.
pub const LINK_SPEED: &str = "link_speed";
/// The write cache: `write back` or `write through`.
pub const WRITE_CACHE: &str = "write_cache";
/// `false` for a modelled disk whose numbers nobody fitted to measurements of such a disk.
pub const FITTED: &str = "fitted";
/// The state of a modelled solid-state disk before the first job: `fresh`, `filled` or `steady`.
pub const STATE: &str = "state";
/// The I/O scheduler in force.
pub const SCHEDULER: &str = "scheduler";
/// The read latency for which the kernel throttles writes (`wbt_lat_usec` of Linux), microseconds;
/// 0 for never.
pub const WRITE_THROTTLING_MICROSECONDS: &str = "write_throttling_microseconds";
/// Read-ahead of the block layer, bytes.
pub const READ_AHEAD_BYTES: &str = "read_ahead_bytes";
/// A channel that several disks share: a cable, a slow card, a hub. Written only where sharing can
/// limit them: `ide0`, `pci 0000:02:01.0`, `usb1-4`.
pub const CHANNEL: &str = "channel";
/// The USB hub or port to which the disk is attached.
pub const CHANNEL_USB: &str = "channel.usb";
/// The channel's limit, bytes per second.
pub const CHANNEL_BYTES_PER_SECOND: &str = "channel_bytes_per_second";
/// The disk's highest sequential rate, as measured or declared by its maker, bytes per second.
pub const SEQUENTIAL_BYTES_PER_SECOND: &str = "sequential_bytes_per_second";
/// The whole disk that a partition is a part of: `sdb`.
pub const PARENT: &str = "parent";
/// The file behind a loop device.
pub const BACKING_FILE: &str = "backing_file";
/// Old signatures found on the device before it was built into an array.
pub const STALE_SIGNATURES: &str = "stale_signatures";
/// The disk's temperature, degrees Celsius.
pub const TEMPERATURE_CELSIUS: &str = "temperature_celsius";
/// SMART: sectors remapped.
pub const REALLOCATED_SECTORS: &str = "smart.reallocated_sectors";
/// SMART: sectors that could not be read and wait to be remapped.
pub const PENDING_SECTORS: &str = "smart.pending_sectors";
/// SMART: sectors that self-tests could not read.
pub const UNCORRECTABLE_SECTORS: &str = "smart.uncorrectable_sectors";
/// SMART: transfers with a wrong checksum, the sign of a bad cable.
pub const CHECKSUM_ERRORS: &str = "smart.checksum_errors";
/// NVMe: errors of the medium.
pub const MEDIA_ERRORS: &str = "smart.media_errors";

/// All properties of disks that the vocabulary has.
pub(super) const ALL: &[&str] = &[
    MODEL,
    SERIAL,
    FIRMWARE,
    SIZE_BYTES,
    LOGICAL_SECTOR_BYTES,
    PHYSICAL_SECTOR_BYTES,
    START_SECTOR,
    ALIGNMENT_OFFSET,
    ROTATIONAL,
    TRANSPORT,
    LINK_SPEED,
    WRITE_CACHE,
    FITTED,
    STATE,
    SCHEDULER,
    WRITE_THROTTLING_MICROSECONDS,
    READ_AHEAD_BYTES,
    CHANNEL,
    CHANNEL_USB,
    CHANNEL_BYTES_PER_SECOND,
    SEQUENTIAL_BYTES_PER_SECOND,
    PARENT,
    BACKING_FILE,
    STALE_SIGNATURES,
    TEMPERATURE_CELSIUS,
    REALLOCATED_SECTORS,
    PENDING_SECTORS,
    UNCORRECTABLE_SECTORS,
    CHECKSUM_ERRORS,
    MEDIA_ERRORS,
];
