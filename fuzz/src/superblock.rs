//! Any bytes at a superblock's place are read as a member's metadata, or
//! refused; and what is read lies on the member and comes back as it was.
//!
//! The first byte chooses the version and whether checksum, magic number and
//! place are made right, so that the rules behind them are reached.

use raidlab_metadata::detail::{DetailOptions, examine, examine_bitmap, utc};
use raidlab_metadata::{
    ReadAt, Superblock, Version, examine_member, place_of, superblock_checksum, versions_present,
};
use raidlab_units::{Bytes, Sectors};
use std::io;

const SIZE: Bytes = Bytes(64 << 20);

/// A device that is zeros but for one part.
struct Device<'a> {
    at: u64,
    part: &'a [u8],
}

impl ReadAt for Device<'_> {
    fn read_at(&mut self, offset: Bytes, bytes: &mut [u8]) -> io::Result<()> {
        let end = offset.0.saturating_add(bytes.len() as u64);
        if end > SIZE.0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.fill(0);
        let [first, last] = [
            self.at.max(offset.0),
            (self.at + self.part.len() as u64).min(end),
        ];
        if first < last {
            let index = |from: u64, to: u64| (from - to) as usize;
            bytes[index(first, offset.0)..index(last, offset.0)]
                .copy_from_slice(&self.part[index(first, self.at)..index(last, self.at)]);
        }
        Ok(())
    }
}

fn repair(bytes: &mut [u8], place: Sectors) {
    bytes[..8].copy_from_slice(&[0xfc, 0x4e, 0x2b, 0xa9, 1, 0, 0, 0]);
    bytes[12..16].fill(0);
    bytes[144..152].copy_from_slice(&place.0.to_le_bytes());
    bytes[222..256].fill(0);
    bytes[221] &= 3;
    if let Some(sum) = superblock_checksum(bytes) {
        bytes[216..220].copy_from_slice(&sum.to_le_bytes());
    }
}

/// Reads these bytes.
pub fn run(input: &[u8]) {
    let Some((choice, bytes)) = input.split_first() else {
        return;
    };
    let version = Version::PROBED[usize::from(choice & 3)];
    let Some(place) = place_of(version, SIZE.to_sectors()) else {
        return;
    };
    let mut bytes = bytes.to_vec();
    if choice & 4 != 0 && version != Version::V0_90 && bytes.len() >= 256 {
        repair(&mut bytes, place);
    }
    let mut device = Device {
        at: place.to_bytes().0,
        part: &bytes,
    };
    let _ = versions_present(&mut device, SIZE);
    let options = DetailOptions {
        device: "member",
        size: SIZE,
        host: "host",
        time: utc,
    };
    let Ok((member, fault)) = examine_member(&mut device, SIZE) else {
        return;
    };
    assert!(examine(&member, &options).len() < 64 << 10);
    if fault.is_some() {
        return;
    }
    let size = SIZE.to_sectors();
    assert!(member.log_area.end <= size);
    if let Some(bitmap) = &member.bitmap {
        assert!(examine_bitmap(bitmap, "member").len() < 4096);
    }
    if member.superblock.version != Version::V0_90 {
        let encoded = member.superblock.encode().expect("it was read");
        let again = Superblock::decode(&encoded, member.superblock.version, size);
        assert_eq!(again.as_ref(), Ok(&member.superblock));
    }
}
