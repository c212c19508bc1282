//! The disks, and the arrays that are made of them.

use super::{BITMAP_CHUNK, DATA_OFFSET, EXTERNAL, SECTOR, USED};
use raidlab_geometry::Level;
use raidlab_metadata::create::{
    BitmapChoice, CreateSpec, InitialSync, LogReserve, MemberSize, plan,
};
use raidlab_metadata::{Bitmap, BitmapSuperblock, MemberMetadata, Uuid, Version, read_member};
use raidlab_units::{Bytes, Sectors};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Default)]
pub struct Disk {
    pub durable: Vec<u8>,
    /// Completed writes that a power cut may lose: sector and bytes.
    pub cache: Vec<(u64, Vec<u8>)>,
    pub dead: bool,
    /// Sectors that cannot be read until they are written.
    pub unreadable: BTreeSet<u64>,
    /// Sectors that cannot be written.
    pub unwritable: BTreeSet<u64>,
    /// Reads that it has answered.
    pub reads: u64,
    /// Sectors of data that were written.
    pub data_written: u64,
}

impl Disk {
    pub fn new(sectors: u64) -> Self {
        Self {
            durable: vec![0xee; usize::try_from(sectors).unwrap() * SECTOR],
            ..Self::default()
        }
    }

    pub fn land(&mut self, start: u64, bytes: &[u8]) {
        let at = usize::try_from(start).unwrap() * SECTOR;
        self.durable[at..at + bytes.len()].copy_from_slice(bytes);
    }

    pub fn flush(&mut self) {
        for (start, bytes) in std::mem::take(&mut self.cache) {
            self.land(start, &bytes);
        }
    }

    pub fn read(&self, start: u64, bytes: &mut [u8]) {
        let at = usize::try_from(start).unwrap() * SECTOR;
        bytes.copy_from_slice(&self.durable[at..at + bytes.len()]);
        for (other, cached) in &self.cache {
            for (index, sector) in (*other..).zip(cached.chunks(SECTOR)) {
                if (start..start + (bytes.len() / SECTOR) as u64).contains(&index) {
                    let at = usize::try_from(index - start).unwrap() * SECTOR;
                    bytes[at..at + SECTOR].copy_from_slice(sector);
                }
            }
        }
    }

    pub fn metadata(&self) -> MemberMetadata {
        let size = Bytes(self.durable.len() as u64);
        read_member(&mut self.durable.as_slice(), size).unwrap()
    }
}

/// How an array is made.
#[derive(Debug, Clone, Copy)]
pub struct Make {
    pub level: Level,
    pub members: usize,
    pub spares: usize,
    pub bitmap: bool,
    /// The bitmap in a file of its own, which is the disk `EXTERNAL`.
    pub external: bool,
    pub log: bool,
    pub initial: InitialSync,
    /// Sectors of each member.
    pub used: u64,
}

impl Make {
    pub const fn new(level: Level, members: usize) -> Self {
        Self {
            level,
            members,
            spares: 0,
            bitmap: true,
            external: false,
            log: false,
            initial: InitialSync::AssumeClean,
            used: USED,
        }
    }

    pub fn disks(&self) -> BTreeMap<u16, Disk> {
        let spec = CreateSpec {
            version: Version::V1_2,
            level: self.level,
            layout: None,
            chunk: (self.level != Level::Raid1).then_some(Sectors(16)),
            raid_disks: self.members,
            array_uuid: Uuid([7; 16]),
            host: "host".to_owned(),
            name: "0".to_owned(),
            created: 1_000_000,
            size: Some(Sectors(self.used)),
            data_offset: Some(Sectors(DATA_OFFSET)),
            bitmap: match self.bitmap {
                true if self.external => BitmapChoice::External(Some(Bytes(BITMAP_CHUNK * 512))),
                true => BitmapChoice::Internal(Some(Bytes(BITMAP_CHUNK * 512))),
                false => BitmapChoice::None,
            },
            initial: self.initial,
            log: LogReserve::default(),
            bad_block_log: true,
        };
        let count = self.members + self.spares;
        let mut disks: Vec<Disk> = (0..count)
            .map(|_| Disk::new(DATA_OFFSET + self.used))
            .collect();
        for disk in &mut disks {
            let data = usize::try_from(DATA_OFFSET).unwrap() * SECTOR;
            disk.durable[data..].fill(0);
        }
        let sizes: Vec<_> = (0..count)
            .map(|number| {
                Some(MemberSize {
                    size: Bytes((DATA_OFFSET + self.used) * 512),
                    device_uuid: Uuid([u8::try_from(number).unwrap() + 1; 16]),
                    flags: raidlab_metadata::DeviceFlags(0),
                    found: Vec::new(),
                })
            })
            .collect();
        let plan = plan(&spec, &sizes).unwrap();
        for member in plan.members {
            for write in member.writes {
                disks[member.index].land(write.offset.0 / 512, &write.bytes);
            }
        }
        let mut disks: BTreeMap<u16, Disk> = (0..).zip(disks).collect();
        if let Some(mut bitmap) = plan.external_bitmap {
            bitmap.fill(false);
            let durable = bitmap.encode();
            let file = Disk {
                durable,
                ..Disk::default()
            };
            disks.insert(EXTERNAL, file);
        }
        if self.bitmap && self.initial == InitialSync::AssumeClean {
            clear_bitmaps(&mut disks);
        }
        disks
    }
}

/// mdadm sets all bits of a new bitmap; tests want to see which ones get set.
fn clear_bitmaps(disks: &mut BTreeMap<u16, Disk>) {
    for (_, disk) in disks.iter_mut().filter(|(handle, _)| **handle != EXTERNAL) {
        let metadata = disk.metadata();
        let Some(mut bitmap) = metadata.bitmap else {
            continue;
        };
        bitmap.fill(false);
        let superblock = &metadata.superblock;
        let start = superblock.super_offset.0 + u64::try_from(superblock.bitmap_offset).unwrap();
        disk.land(start, &bitmap.encode());
    }
}

/// Gives each member, or the file, a bitmap with a bit for each sector and none set.
pub fn with_fine_bitmaps(mut disks: BTreeMap<u16, Disk>) -> BTreeMap<u16, Disk> {
    let fine = |superblock: BitmapSuperblock| {
        let chunk = Bytes(512);
        let superblock = BitmapSuperblock {
            chunk,
            ..superblock
        };
        Bitmap::new(superblock, false).unwrap().encode()
    };
    for (handle, disk) in &mut disks {
        if *handle == EXTERNAL {
            disk.durable = fine(Bitmap::decode(&disk.durable).unwrap().superblock);
            continue;
        }
        let metadata = disk.metadata();
        let Some(bitmap) = metadata.bitmap else {
            continue;
        };
        // There is room for two pages in front of the data.
        let mut superblock = metadata.superblock;
        superblock.bitmap_offset = 64;
        disk.land(superblock.super_offset.0, &superblock.encode().unwrap());
        disk.land(superblock.super_offset.0 + 64, &fine(bitmap.superblock));
    }
    disks
}
