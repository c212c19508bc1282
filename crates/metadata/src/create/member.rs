//! One member's superblock and the bytes written to it.

use super::space::{Space, bitmap_room};
use super::{CreateError, CreateSpec, InitialSync, MemberSize, PlannedMember, Write};
use crate::bitmap::Bitmap;
use crate::erase;
use crate::name::full_name;
use crate::superblock::{BadBlockLog, Features, Reshape, Role, Superblock, Version, place_of};
use raidlab_geometry::{Layout, Level};
use raidlab_units::{Bytes, Sectors};

/// Sectors from a superblock at the start to its bitmap.
const BITMAP_AT: u64 = 8;
/// Sectors of a bad-block log.
const LOG_SECTORS: u64 = 8;

/// The facts that all members have in common.
pub(super) struct Draft<'a> {
    pub(super) spec: &'a CreateSpec,
    pub(super) layout: Layout,
    pub(super) chunk: Sectors,
    pub(super) space: &'a Space,
    pub(super) bitmap: Option<&'a Bitmap>,
    pub(super) members: &'a [Option<MemberSize>],
}

impl Draft<'_> {
    /// Returns the plans of all members that are not missing.
    pub(super) fn members(&self) -> Result<Vec<PlannedMember>, CreateError> {
        let there = self.members.iter().enumerate();
        there
            .filter_map(|(index, member)| member.as_ref().map(|member| (index, member)))
            .map(|(index, member)| self.member(index, member))
            .collect()
    }

    /// Returns the slot whose member is made a spare, to be rebuilt: the last one of RAID 4 and 5
    /// if asked for; of RAID 6 with one member missing the last one that is present, because two
    /// kinds of parity cannot be compared with one less.
    fn rebuilt(&self) -> Option<usize> {
        let slots = &self.members[..self.spec.raid_disks];
        let missing: Vec<usize> = (0..slots.len())
            .filter(|slot| slots[*slot].is_none())
            .collect();
        let last = slots.len() - 1;
        match (self.spec.level, self.spec.initial, missing.as_slice()) {
            (_, InitialSync::AssumeClean, _) => None,
            (Level::Raid4 | Level::Raid5, InitialSync::SpareRebuild, []) => Some(last),
            (Level::Raid6, _, [missing]) => Some(last - usize::from(*missing == last)),
            _ => None,
        }
    }

    /// Returns a member's number: its index among the members given, or the one after them all if
    /// it is made a spare.
    fn number(&self, index: usize) -> usize {
        if self.rebuilt() == Some(index) {
            self.members.len()
        } else {
            index
        }
    }

    /// Returns the roles, as many as fill the superblock's last sector (`init_super1`).
    fn roles(&self) -> Vec<Role> {
        let spares = self.members.len() - self.spec.raid_disks;
        let spares = spares + usize::from(self.rebuilt().is_some());
        let bytes = 256 + 2 * (self.spec.raid_disks + spares);
        let mut roles = vec![Role::Spare; (bytes.next_multiple_of(512) - 256) / 2];
        let slots = &self.members[..self.spec.raid_disks];
        for (slot, (role, member)) in roles.iter_mut().zip(slots).enumerate() {
            if member.is_some() && self.rebuilt() != Some(slot) {
                *role = u16::try_from(slot).map_or(Role::Spare, Role::Slot);
            }
        }
        roles
    }

    fn is_clean(&self) -> bool {
        let slots = &self.members[..self.spec.raid_disks];
        let missing = slots.iter().filter(|member| member.is_none()).count();
        match self.spec.level {
            _ if self.spec.initial == InitialSync::AssumeClean => true,
            Level::Linear | Level::Raid0 => true,
            Level::Raid4 | Level::Raid5 => missing > 0 || self.rebuilt().is_some(),
            Level::Raid6 => missing > 1 || self.rebuilt().is_some(),
            Level::Raid1 | Level::Raid10 => false,
        }
    }

    /// Whether the layout of a RAID 0 has to be recorded: mdadm asks whether the
    /// members' sizes differ in units that are smaller than chunks.
    fn needs_zone_layout(&self) -> bool {
        if self.spec.level != Level::Raid0 || self.layout == Layout::None {
            return false;
        }
        let offset = self.spec.data_offset.unwrap_or_default().0;
        let mut units = self.members.iter().flatten().map(|member| {
            let size = member.size.0.saturating_sub(offset);
            size / self.chunk.0.max(1)
        });
        let first = units.next();
        units.any(|other| Some(other) != first)
    }

    fn features(&self) -> Features {
        let mut features = 0;
        if self.bitmap.is_some() {
            features |= Features::BITMAP;
        }
        if self.needs_zone_layout() {
            features |= Features::RAID0_LAYOUT;
        }
        Features(features)
    }

    /// Returns the sectors that the bitmap takes, or that are left for one.
    fn bitmap_sectors(&self) -> u64 {
        match self.bitmap {
            Some(bitmap) => bitmap.page_count() as u64 * 8,
            None => bitmap_room(self.spec, self.space.used_size).0,
        }
    }

    /// Returns the sectors from the superblock to the bitmap: behind the superblock,
    /// or before it and before the bad-block log, with room for one more bit than
    /// there are (`add_internal_bitmap1`).
    fn bitmap_offset(&self) -> i32 {
        let Some(bitmap) = self.bitmap else {
            return 0;
        };
        if self.spec.version != Version::V1_0 {
            return 8;
        }
        let superblock = &bitmap.superblock;
        let bits = superblock.sync_size.0 / (superblock.chunk.0 / 512).max(1) + 1;
        let pages = (bits.div_ceil(8) + 256).div_ceil(4096);
        i32::try_from(pages * 8 + LOG_SECTORS).map_or(0, |sectors| -sectors)
    }

    /// Returns the data size and the bad-block log (`write_init_super1`).
    fn sizes(&self, size: Sectors, super_offset: u64) -> (Sectors, Option<BadBlockLog>) {
        let data_offset = self.space.data_offset.0;
        if self.spec.version == Version::V1_0 {
            let held = data_offset + self.space.used_size.0;
            let wanted = self.bitmap_sectors() + LOG_SECTORS;
            let left = wanted.min(super_offset.saturating_sub(held));
            let taken = data_offset + left + self.space.reserve.0;
            let data_size = self
                .common_end(super_offset)
                .saturating_sub(taken)
                .max(self.space.used_size.0);
            let log = (left >= LOG_SECTORS).then(|| BadBlockLog::new(-8));
            return (Sectors(data_size), log);
        }
        let behind = BITMAP_AT + self.bitmap_sectors();
        let offset = if data_offset >= super_offset + behind + LOG_SECTORS {
            Some(behind)
        } else if data_offset >= super_offset + 16 {
            Some(data_offset - LOG_SECTORS - super_offset)
        } else {
            None
        };
        let offset = offset.and_then(|offset| i32::try_from(offset).ok());
        let data_size = size.0.saturating_sub(data_offset);
        (Sectors(data_size), offset.map(BadBlockLog::new))
    }

    /// Returns the sector where the data end on all members alike, if the write log follows
    /// them: its records have the same place on every member. Otherwise they end at the
    /// superblock of version 1.0.
    fn common_end(&self, super_offset: u64) -> u64 {
        let sizes = self.members.iter().flatten().map(|member| member.size);
        let places = sizes.filter_map(|size| place_of(Version::V1_0, size.to_sectors()));
        let least = places.map(|place| place.0).min();
        match self.space.reserve {
            Sectors::ZERO => super_offset,
            _ => least.map_or(super_offset, |least| least.min(super_offset)),
        }
    }

    fn superblock(&self, index: usize, member: &MemberSize) -> Result<Superblock, CreateError> {
        let spec = self.spec;
        let size = member.size.to_sectors();
        let too_small = CreateError::TooSmall {
            index,
            size: member.size,
        };
        let super_offset = place_of(spec.version, size).ok_or(too_small)?;
        let (data_size, log) = self.sizes(size, super_offset.0);
        let in_sync = if self.is_clean() {
            Superblock::IN_SYNC
        } else {
            Sectors::ZERO
        };
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Ok(Superblock {
            version: spec.version,
            features: self.features(),
            array_uuid: spec.array_uuid,
            name: full_name(&spec.host, &spec.name),
            created: spec.created,
            level: spec.level.md_number(),
            layout: self.layout.to_md(spec.level),
            used_size: self.space.used_size,
            chunk: self.chunk,
            raid_disks: count(spec.raid_disks),
            bitmap_offset: self.bitmap_offset(),
            reshape: Reshape::default(),
            data_offset: self.space.data_offset,
            data_size,
            super_offset,
            recovery_offset: Sectors::ZERO,
            device_number: count(self.number(index)),
            corrected_read_errors: 0,
            device_uuid: member.device_uuid,
            device_flags: member.flags,
            bad_block_log: log.filter(|_| spec.bad_block_log),
            updated: spec.created,
            events: 0,
            resync_offset: in_sync,
            roles: self.roles(),
        })
    }

    fn member(&self, index: usize, member: &MemberSize) -> Result<PlannedMember, CreateError> {
        let superblock = self.superblock(index, member)?;
        let log_area = superblock.log_area(self.bitmap.map(|bitmap| &bitmap.superblock));
        let size = member.size.to_sectors();
        let mut writes: Vec<Write> = member
            .found
            .iter()
            .filter_map(|version| erase::write(*version, size))
            .collect();
        if log_area.start < log_area.end {
            // Remains of an earlier array's log must not be taken for this array's log.
            writes.push(Write {
                offset: log_area.start.to_bytes(),
                bytes: vec![0; 4096],
            });
        }
        if let Some(bitmap) = self.bitmap {
            let place = superblock.super_offset.0;
            let place = place.saturating_add_signed(i64::from(superblock.bitmap_offset));
            writes.push(Write {
                offset: Sectors(place).to_bytes(),
                bytes: bitmap.encode(),
            });
        }
        writes.push(Write {
            offset: Bytes(superblock.super_offset.to_bytes().0),
            bytes: superblock.encode()?,
        });
        Ok(PlannedMember {
            index,
            superblock,
            log_area,
            writes,
        })
    }
}
