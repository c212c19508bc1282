//! A new device: the facts that are needed to add it, and the layout of its superblock and the
//! areas beside it.
//!
//! They lie as on the members in service. With superblocks of version 1.0, at the end of each
//! device, that means behind the data of a device of any size: bitmap and bad-block log at the same
//! distance from the superblock, and a write log at the same sectors as on the others.

use super::PersistentArray;
use super::assembly::{AssembledMember, Candidate, Part};
use super::device::{Device, Place};
use super::error::VerbError;
use crate::mutation::{self, Mutation};
use raidlab_metadata::{DeviceFlags, MemberMetadata, Uuid, Version};
use raidlab_units::Sectors;

/// A device that has not been part of the array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDevice {
    /// The device's path, for messages.
    pub name: String,
    /// Sectors of the whole device.
    pub size: Sectors,
    /// Whether the device is a mechanical disk.
    pub rotational: bool,
    /// Whether reads go to it only where no other member can serve.
    pub write_mostly: bool,
    /// A random number that names the device, as the driver drew it.
    pub uuid: Uuid,
}

/// The sectors of a device from its superblock of version 1.0 on, without rounding.
const END_SECTORS: u64 = 16;

impl PersistentArray {
    /// Returns a spare whose superblock has the same place as those of the other members.
    pub(super) fn prepare(&self, new: NewDevice) -> Result<Device, VerbError> {
        let template = self
            .devices
            .values()
            .find(|device| matches!(device.place, Place::InSync(_)));
        let template = template.ok_or(VerbError::NoRedundancy)?;
        let mut own = template.own.clone();
        let number = self.free_number().ok_or(VerbError::NoDeviceNumber)?;
        let too_small = VerbError::TooSmall {
            size: new.size.0,
            needed: self.needed_beside(template),
        };
        match own.version {
            Version::V1_0 => {
                own.super_offset = raidlab_metadata::place_of(Version::V1_0, new.size)
                    .ok_or_else(|| too_small.clone())?;
                let room = own.data_room(new.size);
                own.data_size = match self.ring {
                    // It keeps a write log behind its data at the place of the other members'.
                    Some(_) => room.min(own.data_size),
                    // The room that they keep free in front of the superblock stays
                    // free where possible.
                    None => Sectors(room.0.saturating_sub(self.free_in_front()))
                        .max(self.array.used_size)
                        .min(room),
                }
            }
            _ => own.data_size = own.data_room(new.size),
        }
        if own.data_size < self.array.used_size {
            return Err(too_small);
        }
        own.device_number = number;
        own.device_uuid = new.uuid;
        own.device_flags = DeviceFlags(match new.write_mostly {
            true => DeviceFlags::WRITE_MOSTLY,
            false => 0,
        });
        own.corrected_read_errors = 0;
        let bitmap = self.intent.as_ref().map(|intent| *intent.superblock());
        let log_area = own.log_area(bitmap.as_ref());
        let candidate = Candidate {
            name: new.name,
            size: new.size,
            metadata: MemberMetadata {
                superblock: own,
                checksum: raidlab_metadata::Checksum::default(),
                legacy: None,
                bitmap: None,
                bitmap_error: None,
                bad_blocks: Vec::new(),
                log_area,
            },
            log: None,
            rotational: new.rotational,
        };
        let mut device = Device::new(AssembledMember {
            candidate,
            part: Part::Spare,
        });
        // An old log of bad blocks must not be taken for this device's.
        device.bad_blocks_changed = device.own.bad_block_log.is_some();
        Ok(device)
    }

    /// Returns the least sectors of a device with room for what the array uses, at the places where
    /// this member has it.
    fn needed_beside(&self, member: &Device) -> u64 {
        let own = &member.own;
        let data_end = own.data_offset.0.saturating_add(self.array.used_size.0);
        let behind = match own.version {
            Version::V1_0 => {
                let room_end = own.data_offset + own.data_room(member.size);
                own.super_offset.0.saturating_sub(room_end.0) + END_SECTORS
            }
            _ => 0,
        };
        data_end.saturating_add(behind)
    }

    /// Returns the sectors between the data and the areas in front of a superblock of version 1.0,
    /// on the member that has the least.
    fn free_in_front(&self) -> u64 {
        let in_service = |device: &&Device| matches!(device.place, Place::InSync(_));
        let devices = self.devices.values().filter(in_service);
        let free = devices.map(|it| {
            it.own
                .data_room(it.size)
                .0
                .saturating_sub(it.own.data_size.0)
        });
        free.min().unwrap_or(0)
    }

    /// Returns the lowest free device number, preferably one that was never used: a number that is
    /// used again could be taken for its former owner.
    fn free_number(&self) -> Option<u32> {
        let taken = |number: &u32| {
            let mut devices = self.devices.values();
            devices.any(|device| device.own.device_number == *number)
        };
        let numbers = 0..u32::try_from(self.array.roles.len()).unwrap_or(u32::MAX);
        let mut free = numbers.clone().filter(|number| !taken(number));
        free.find(|number| !self.gone.contains(number) || mutation::is(Mutation::NumberReused))
            .or_else(|| numbers.clone().find(|number| !taken(number)))
    }
}
