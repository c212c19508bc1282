//! The numbers and structures exchanged with the kernel's driver, from
//! `include/uapi/linux/ublk_cmd.h` of Linux 6.12. Integers are in the machine's own order.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The most requests of one queue at a time (`UBLK_MAX_QUEUE_DEPTH`).
pub(super) const MAXIMUM_DEPTH: u16 = 4096;

/// The state of a device without a block device: not started yet, or its server
/// is gone (`UBLK_S_DEV_DEAD`).
pub(super) const STATE_DEAD: u16 = 0;

/// The number that asks for any free one.
pub(super) const ANY_NUMBER: u32 = u32::MAX;

/// The queue number of a control command that is for no queue.
const NO_QUEUE: u16 = u16::MAX;

/// Features of a device, and of the driver.
pub(super) mod flag {
    /// The commands' numbers are encoded as ioctl(2)'s. Since Linux 6.4.
    pub(in super::super) const IOCTL_ENCODING: u64 = 1 << 6;
    /// The server copies payloads by pread(2) and pwrite(2). Since Linux 6.5.
    pub(in super::super) const USER_COPY: u64 = 1 << 7;
}

/// Commands to the control device and to a queue.
pub(super) mod command {
    /// Encodes `_IOR('u', number, 32 bytes)`.
    const fn read(number: u32) -> u32 {
        2 << 30 | 32 << 16 | (b'u' as u32) << 8 | number
    }

    /// Encodes `_IOWR('u', number, size)`.
    const fn both(number: u32, size: u32) -> u32 {
        3 << 30 | size << 16 | (b'u' as u32) << 8 | number
    }

    pub(in super::super) const DEVICE_INFORMATION: u32 = read(0x02);
    pub(in super::super) const ADD_DEVICE: u32 = both(0x04, 32);
    pub(in super::super) const DELETE_DEVICE: u32 = both(0x05, 32);
    pub(in super::super) const START_DEVICE: u32 = both(0x06, 32);
    pub(in super::super) const STOP_DEVICE: u32 = both(0x07, 32);
    pub(in super::super) const SET_PARAMETERS: u32 = both(0x08, 32);
    pub(in super::super) const FEATURES: u32 = read(0x13);
    /// Command to a queue: waits for a request under a tag.
    pub(in super::super) const FETCH: u32 = both(0x20, 16);
    /// Command to a queue: answers the tag's request, and waits for its next one.
    pub(in super::super) const ANSWER_AND_FETCH: u32 = both(0x21, 16);
}

/// The arguments of a control command, `struct ublksrv_ctrl_cmd`.
#[derive(Debug, Clone, Copy, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct ControlCommand {
    pub device: u32,
    queue: u16,
    /// The number of bytes at `address`.
    pub length: u16,
    pub address: u64,
    /// The server's process, in the command that starts a device.
    pub data: u64,
    path_length: u16,
    padding: u16,
    reserved: u32,
}

impl ControlCommand {
    /// A command to a device without further arguments.
    pub(super) fn to(device: u32) -> Self {
        Self {
            device,
            queue: NO_QUEUE,
            length: 0,
            address: 0,
            data: 0,
            path_length: 0,
            padding: 0,
            reserved: 0,
        }
    }

    /// Returns the bytes in the form of a ring's entry.
    pub(super) fn in_entry(&self) -> [u8; 80] {
        let mut bytes = [0; 80];
        bytes[..size_of::<Self>()].copy_from_slice(self.as_bytes());
        bytes
    }
}

/// The properties of a device, `struct ublksrv_ctrl_dev_info`.
#[derive(Debug, Clone, Copy, Default, IntoBytes, FromBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(super) struct DeviceInformation {
    pub queues: u16,
    pub depth: u16,
    pub state: u16,
    pub padding: u16,
    pub maximum_request_bytes: u32,
    pub device: u32,
    /// The server's process; -1 for none.
    pub process: i32,
    pub padding2: u32,
    pub flags: u64,
    /// The server's own field, which the driver keeps.
    pub mark: u64,
    pub owner_user: u32,
    pub owner_group: u32,
    pub reserved: [u64; 2],
}

/// Attributes of a block device, in `struct ublk_params`.
pub(super) mod attribute {
    pub(in super::super) const READ_ONLY: u32 = 1 << 0;
    pub(in super::super) const ROTATIONAL: u32 = 1 << 1;
    pub(in super::super) const VOLATILE_CACHE: u32 = 1 << 2;
    pub(in super::super) const FORCE_UNIT_ACCESS: u32 = 1 << 3;
}

/// Flags that tell which parts of `struct ublk_params` are filled in.
pub(super) mod part {
    pub(in super::super) const BASIC: u32 = 1 << 0;
    pub(in super::super) const DISCARD: u32 = 1 << 1;
}

/// The beginning of `struct ublk_params`, up to the fields about zones. Shifts are binary
/// logarithms of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct Parameters {
    /// The number of bytes of the structure that are filled in.
    pub length: u32,
    pub parts: u32,
    pub attributes: u32,
    pub logical_block_shift: u8,
    pub physical_block_shift: u8,
    pub optimal_request_shift: u8,
    pub minimum_request_shift: u8,
    pub maximum_sectors: u32,
    pub chunk_sectors: u32,
    pub device_sectors: u64,
    pub virtual_boundary_mask: u64,
    pub discard_alignment: u32,
    pub discard_granularity: u32,
    pub maximum_discard_sectors: u32,
    pub maximum_zeroes_sectors: u32,
    pub maximum_discard_segments: u16,
    pub reserved: u16,
    pub padding: u32,
}

impl Parameters {
    /// The structure's bytes without the padding at the end.
    pub(super) const LENGTH: u32 = 60;
}

/// The operations of requests (`UBLK_IO_OP_*`).
pub(super) mod operation {
    pub(in super::super) const READ: u32 = 0;
    pub(in super::super) const WRITE: u32 = 1;
    pub(in super::super) const FLUSH: u32 = 2;
    pub(in super::super) const DISCARD: u32 = 3;
    pub(in super::super) const WRITE_ZEROES: u32 = 5;
    /// The bits of an operation's word that hold one of these numbers.
    pub(in super::super) const MASK: u32 = 0xff;
    /// A flag in the other bits: durable before it is answered.
    pub(in super::super) const FORCE_UNIT_ACCESS: u32 = 1 << 13;
    /// A flag in the other bits: zeroes stay allocated.
    pub(in super::super) const NO_UNMAP: u32 = 1 << 15;
}

/// A request in shared memory, `struct ublksrv_io_desc`.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(super) struct Descriptor {
    pub operation_and_flags: u32,
    pub sectors: u32,
    pub start_sector: u64,
    pub address: u64,
}

/// The arguments of a command to a queue, `struct ublksrv_io_cmd`.
#[derive(Debug, Clone, Copy, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct QueueCommand {
    pub queue: u16,
    pub tag: u16,
    /// The bytes that were done, or a negative errno.
    pub result: i32,
    /// Always 0: payloads are copied by pread(2) and pwrite(2).
    address: u64,
}

impl QueueCommand {
    /// The command for a tag of the device's first queue.
    pub(super) fn of(tag: u16, result: i32) -> Self {
        Self {
            queue: 0,
            tag,
            result,
            address: 0,
        }
    }

    /// Returns the bytes in the form of a ring's entry.
    pub(super) fn in_entry(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes.copy_from_slice(self.as_bytes());
        bytes
    }
}

/// Returns the offset of a tag's payload in the character device, for the first queue.
pub(super) fn payload_offset(tag: u16) -> u64 {
    const FIRST: u64 = 0x8000_0000;
    const TAG_SHIFT: u32 = 25;
    FIRST + (u64::from(tag) << TAG_SHIFT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    // The values are those that a C compiler gives for the header of Linux 6.12.
    #[test]
    fn structures_are_as_long_as_the_kernels() {
        assert_eq!(size_of::<ControlCommand>(), 32);
        assert_eq!(size_of::<DeviceInformation>(), 64);
        assert_eq!(size_of::<Descriptor>(), 24);
        assert_eq!(size_of::<QueueCommand>(), 16);
        assert_eq!(offset_of!(DeviceInformation, mark), 32);
        assert_eq!(offset_of!(Parameters, device_sectors), 24);
        assert_eq!(offset_of!(Parameters, padding), Parameters::LENGTH as usize);
    }

    #[test]
    fn commands_are_numbered_as_the_kernel_does() {
        assert_eq!(command::DEVICE_INFORMATION, 0x8020_7502);
        assert_eq!(command::ADD_DEVICE, 0xc020_7504);
        assert_eq!(command::FEATURES, 0x8020_7513);
        assert_eq!(command::FETCH, 0xc010_7520);
        assert_eq!(command::ANSWER_AND_FETCH, 0xc010_7521);
    }

    #[test]
    fn payloads_of_tags_do_not_meet() {
        assert_eq!(payload_offset(0), 0x8000_0000);
        assert_eq!(payload_offset(1) - payload_offset(0), 32 << 20);
    }

    #[test]
    fn a_control_command_names_no_queue() {
        let bytes = ControlCommand::to(7).in_entry();
        assert_eq!(bytes[..8], [7, 0, 0, 0, 0xff, 0xff, 0, 0]);
        assert!(bytes[8..].iter().all(|&byte| byte == 0));
    }
}
