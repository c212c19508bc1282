//! Whatever bytes are read: no panic, no allocation beyond a bound, and what is
//! accepted comes back as it was.

use proptest::collection::vec;
use proptest::prelude::*;
use raidlab_metadata::detail::{DetailOptions, brief, examine, examine_bitmap, utc};
use raidlab_metadata::{
    BadBlockEntry, BadBlockLog, Bitmap, BitmapSuperblock, DeviceFlags, Features, Legacy,
    ProbeError, ReadAt, Reshape, Role, Superblock, Uuid, Version, examine_member, place_of,
    read_member, superblock_checksum, versions_present,
};
use raidlab_units::{Bytes, Sectors};
use std::collections::BTreeSet;
use std::io;

/// A large device of which only some sectors are not zero.
struct Sparse {
    size: Bytes,
    parts: Vec<(u64, Vec<u8>)>,
    /// The most bytes that one read asked for.
    largest: usize,
}

impl ReadAt for Sparse {
    fn read_at(&mut self, offset: Bytes, bytes: &mut [u8]) -> io::Result<()> {
        let end = offset.0.checked_add(bytes.len() as u64);
        if end.is_none_or(|end| end > self.size.0) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.largest = self.largest.max(bytes.len());
        for (index, byte) in bytes.iter_mut().enumerate() {
            let at = offset.0 + index as u64;
            let part = self
                .parts
                .iter()
                .find(|(start, part)| (*start..start + part.len() as u64).contains(&at));
            *byte = part.map_or(0, |(start, part)| {
                usize::try_from(at - start).map_or(0, |index| part[index])
            });
        }
        Ok(())
    }
}

/// A device with a sector that cannot be read.
struct Unreadable {
    device: Sparse,
    sector: u64,
}

impl ReadAt for Unreadable {
    fn read_at(&mut self, offset: Bytes, bytes: &mut [u8]) -> io::Result<()> {
        let place = self.sector * 512;
        if (offset.0..offset.0 + bytes.len() as u64).contains(&place) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        self.device.read_at(offset, bytes)
    }
}

/// Everything that can be done with a member: none of it may panic.
fn exercise(device: &mut Sparse) {
    let size = device.size;
    let present = versions_present(device, size);
    let options = DetailOptions {
        device: "x",
        size,
        host: "lab",
        time: utc,
    };
    match read_member(device, size) {
        Ok(member) => {
            let text = examine(&member, &options);
            assert!(text.len() < 64 << 10, "{} bytes of text", text.len());
            let _ = brief(&[("x", &member)], true);
            if let Some(bitmap) = &member.bitmap {
                let _ = examine_bitmap(bitmap, "x");
                assert!(bitmap.encode().len() <= 17 << 20);
            }
            let log = member.log_area;
            assert!(log.end.0 <= size.0 / 512 && log.start <= log.end);
            let data = member.superblock.data_area();
            assert!(log.end <= data.start || log.start >= data.end);
            if member.superblock.version != Version::V0_90 {
                let _ = member.superblock.encode();
            }
        }
        Err(ProbeError::None) => assert_eq!(present, []),
        Err(_) => {
            if let Ok((member, fault)) = examine_member(device, size) {
                assert!(fault.is_some());
                let text = examine(&member, &options);
                assert!(text.len() < 64 << 10, "{} bytes of text", text.len());
            }
        }
    }
    assert!(
        device.largest <= 17 << 20,
        "a read of {} bytes",
        device.largest
    );
}

/// A sound superblock of a version, on a device of this size.
fn superblock(version: Version, size: Sectors) -> impl Strategy<Value = Superblock> {
    let place = place_of(version, size).expect("a place");
    let fields = (
        any::<([u8; 16], [u8; 16], u64, u64, u64, u64)>(),
        "[ -~]{0,32}",
        prop_oneof![
            Just(-1),
            Just(0),
            Just(1),
            Just(4),
            Just(5),
            Just(6),
            Just(10),
            any::<i32>()
        ],
        any::<(u32, u32, u32, i32, u64, i32, u32, u32, i32)>(),
        0..4096_u32,
        vec(0..=u16::MAX, 0..200),
        any::<(u32, u8, i32, u16, u8)>(),
        0..size.0,
    );
    fields.prop_map(
        move |(identity, name, level, shape, features, roles, own, used)| {
            let (array, device, created, updated, events, resync) = identity;
            let (layout, chunk, disks, new_level, position, delta, new_layout, new_chunk, offset) =
                shape;
            let (number, flags, log_offset, log_size, log_shift) = own;
            let at_end = version == Version::V1_0;
            let data_offset = if at_end { 0 } else { 64 + used % 4096 };
            let data_size = if at_end {
                place.0
            } else {
                size.0 - data_offset
            };
            let exclusive = Features::PPL | Features::MULTIPLE_PPLS | Features::RAID0_LAYOUT;
            let features = features & !exclusive & !Features::BAD_BLOCKS;
            let log = BadBlockLog {
                offset: log_offset,
                size: log_size,
                shift: log_shift,
            };
            Superblock {
                version,
                features: Features(features),
                array_uuid: Uuid(array),
                name,
                created,
                level,
                layout,
                used_size: Sectors(used.min(data_size)),
                chunk: Sectors(chunk.into()),
                raid_disks: disks,
                bitmap_offset: offset.wrapping_mul(3),
                reshape: Reshape {
                    new_level,
                    position,
                    delta_disks: delta,
                    new_layout,
                    new_chunk,
                    new_offset: offset,
                },
                data_offset: Sectors(data_offset),
                data_size: Sectors(data_size),
                super_offset: place,
                recovery_offset: Sectors(updated),
                device_number: number % 256,
                corrected_read_errors: number,
                device_uuid: Uuid(device),
                device_flags: DeviceFlags(flags),
                bad_block_log: (log_offset != 0 && log_size != 0).then_some(log),
                updated,
                events: events >> 1,
                resync_offset: Sectors(resync),
                roles: roles
                    .into_iter()
                    .map(|word| match word {
                        0xffff => Role::Spare,
                        0xfffe => Role::Faulty,
                        0xfffd => Role::Journal,
                        slot => Role::Slot(slot),
                    })
                    .collect(),
            }
        },
    )
}

const SIZE: Sectors = Sectors(1 << 30);

fn version() -> impl Strategy<Value = Version> {
    prop_oneof![
        Just(Version::V1_0),
        Just(Version::V1_1),
        Just(Version::V1_2)
    ]
}

/// The checksum as a reader would make it who knows only the rule: all words,
/// the field itself as 0, in 64 bits.
fn slow_checksum(bytes: &[u8], roles: usize) -> u32 {
    let mut bytes = bytes[..256 + 2 * roles].to_vec();
    bytes[216..220].fill(0);
    let mut sum = 0_u64;
    while bytes.len() >= 4 {
        let rest = bytes.split_off(4);
        sum += u64::from(u32::from_le_bytes(bytes.try_into().expect("4 bytes")));
        bytes = rest;
    }
    if bytes.len() == 2 {
        sum += u64::from(u16::from_le_bytes(bytes.try_into().expect("2 bytes")));
    }
    ((sum & 0xffff_ffff) as u32).wrapping_add((sum >> 32) as u32)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn superblocks_come_back((version, superblock) in version().prop_flat_map(|version| {
        (Just(version), superblock(version, SIZE))
    })) {
        let bytes = superblock.encode().expect("a superblock");
        prop_assert_eq!(bytes.len() % 512, 0);
        let sum = slow_checksum(&bytes, superblock.roles.len());
        prop_assert_eq!(superblock_checksum(&bytes), Some(sum));
        prop_assert_eq!(&bytes[216..220], &sum.to_le_bytes());
        let decoded = Superblock::decode(&bytes, version, SIZE);
        prop_assert_eq!(decoded.as_ref(), Ok(&superblock));
    }

    #[test]
    fn one_changed_byte_is_found(
        (version, superblock) in version().prop_flat_map(|version| (Just(version), superblock(version, SIZE))),
        at in any::<prop::sample::Index>(),
        change in 1..=255_u8,
    ) {
        let mut bytes = superblock.encode().expect("a superblock");
        let at = at.index(256 + 2 * superblock.roles.len());
        bytes[at] ^= change;
        prop_assert!(Superblock::decode(&bytes, version, SIZE).is_err(), "byte {}", at);
    }

    #[test]
    fn sound_superblocks_of_any_kind_are_bounded(
        (version, superblock) in version().prop_flat_map(|version| (Just(version), superblock(version, SIZE))),
        bitmap in (any::<(u64, u64)>(), 9..32_u32, -2000..2000_i32),
        bad_blocks in any::<bool>(),
    ) {
        let (mut superblock, ((events, size), shift, offset)) = (superblock, bitmap);
        superblock.features.0 |= Features::BITMAP;
        superblock.bitmap_offset = offset;
        if bad_blocks && let Some(log) = &mut superblock.bad_block_log {
            log.size = log.size % 8 + 1;
            superblock.features.0 |= Features::BAD_BLOCKS;
        }
        let mut header = BitmapSuperblock::new(superblock.array_uuid, Sectors(size), Bytes(1 << shift));
        header.events = events;
        let place = superblock.super_offset.0.saturating_add_signed(offset.into());
        let mut device = Sparse {
            size: SIZE.to_bytes(),
            parts: vec![
                (superblock.super_offset.to_bytes().0, superblock.encode().expect("a superblock")),
                (place * 512, header.encode().to_vec()),
            ],
            largest: 0,
        };
        let _ = version;
        exercise(&mut device);
    }

    /// A superblock that calls a log of no sectors not empty (found by a fuzz target) is
    /// read without it, and what is written again is read as the same.
    #[test]
    fn a_log_of_no_sectors_is_none(
        (version, superblock) in version().prop_flat_map(|version| (Just(version), superblock(version, SIZE))),
        offset in prop_oneof![-64..-8_i32, 8..64_i32],
    ) {
        let mut superblock = superblock;
        superblock.features.0 |= Features::BAD_BLOCKS;
        superblock.bad_block_log = Some(BadBlockLog { offset, size: 8, shift: 0 });
        let mut bytes = superblock.encode().expect("a superblock");
        bytes[186..188].fill(0);
        let sum = superblock_checksum(&bytes).expect("a whole superblock");
        bytes[216..220].copy_from_slice(&sum.to_le_bytes());
        let read = Superblock::decode(&bytes, version, SIZE).expect("the kernel takes it");
        prop_assert_eq!(read.bad_block_log, None);
        prop_assert!(!read.features.has(Features::BAD_BLOCKS));
        let again = read.encode().expect("it was read");
        prop_assert_eq!(Superblock::decode(&again, version, SIZE), Ok(read));
    }

    /// Whatever cannot be read, another version's place does not hide the
    /// superblock, and an unreadable bitmap is one that cannot be used.
    #[test]
    fn an_unreadable_sector_hides_only_what_lies_there(
        (version, superblock) in version().prop_flat_map(|version| (Just(version), superblock(version, SIZE))),
        sector in prop_oneof![0..80_u64, SIZE.0 - 160..SIZE.0],
    ) {
        let mut superblock = superblock;
        superblock.features.0 &= !(Features::BITMAP | Features::BAD_BLOCKS);
        let own = superblock.super_offset.0;
        let bytes = superblock.encode().expect("a superblock");
        let whole = Sparse {
            size: SIZE.to_bytes(),
            parts: vec![(own * 512, bytes)],
            largest: 0,
        };
        let mut device = Unreadable { device: whole, sector };
        let found = read_member(&mut device, SIZE.to_bytes());
        let _ = version;
        match (own..own + 8).contains(&sector) {
            true => {
                let is_unreadable = matches!(found, Err(ProbeError::Read { .. }));
                prop_assert!(is_unreadable);
            }
            false => prop_assert_eq!(found.expect("it can be read").superblock, superblock),
        }
    }

    #[test]
    fn any_bytes_are_bounded(
        head in vec(any::<u8>(), 4096..16384),
        tail in vec(any::<u8>(), 4096..4097),
        magic in any::<[bool; 3]>(),
    ) {
        let size = Bytes(1 << 20);
        let [first, second, last] = magic;
        let mut head = head;
        for (at, place) in [(first, 0), (second, 4096)] {
            if at && head.len() >= place + 512 {
                head[place..place + 8].copy_from_slice(&[0xfc, 0x4e, 0x2b, 0xa9, 1, 0, 0, 0]);
                head[place + 144..place + 152].copy_from_slice(&(place as u64 / 512).to_le_bytes());
                // Mostly a sound checksum, few roles.
                head[place + 220..place + 224].copy_from_slice(&8_u32.to_le_bytes());
                let sum = slow_checksum(&head[place..], 8);
                head[place + 216..place + 220].copy_from_slice(&sum.to_le_bytes());
            }
        }
        let place = place_of(Version::V0_90, size.to_sectors()).expect("a place").to_bytes().0;
        let mut tail = tail;
        if last {
            tail[..8].copy_from_slice(&[0xfc, 0x4e, 0x2b, 0xa9, 0, 0, 0, 0]);
            let _ = Legacy::decode(&tail, size.to_sectors());
        }
        exercise(&mut Sparse { size, parts: vec![(0, head), (place, tail)], largest: 0 });
    }

    #[test]
    fn bitmap_bytes_are_bounded(mut bytes in vec(any::<u8>(), 0..6000), sound in any::<bool>(), shift in 9..32_u32) {
        if sound && bytes.len() >= 256 {
            let uuid = Uuid([7; 16]);
            let size = u64::from_le_bytes(bytes[40..48].try_into().expect("8 bytes")) >> (shift % 64);
            let header = BitmapSuperblock::new(uuid, Sectors(size), Bytes(1 << shift));
            bytes[..256].copy_from_slice(&header.encode());
        }
        if let Ok(bitmap) = Bitmap::decode(&bytes) {
            prop_assert!(bitmap.superblock.bytes() <= bytes.len() as u64);
            let encoded = bitmap.encode();
            let length = bytes.len().min(encoded.len());
            prop_assert!(encoded[256..length] == bytes[256..length]);
            prop_assert_eq!(Bitmap::decode(&encoded), Ok(bitmap));
        }
    }

    /// Against a set of chunk numbers.
    #[test]
    fn bits_are_a_set(size in 1..40_000_u64, shift in 12..20_u32, changes in vec((any::<bool>(), 0..6000_u64, 0..40_u64), 0..200)) {
        let header = BitmapSuperblock::new(Uuid([1; 16]), Sectors(size), Bytes(1 << shift));
        let mut bitmap = Bitmap::new(header, false).expect("small");
        let chunk = 1 << (shift - 9);
        let chunks = size.div_ceil(chunk);
        let mut set = BTreeSet::new();
        for (alone, number, count) in changes {
            if alone {
                prop_assert_eq!(bitmap.set(number), number < chunks && set.insert(number));
                continue;
            }
            let every_third = |number: u64| number.is_multiple_of(3);
            bitmap.assign(number..number + count, every_third);
            for number in (number..number + count).filter(|number| *number < chunks) {
                if every_third(number) { set.insert(number) } else { set.remove(&number) };
            }
        }
        prop_assert_eq!(bitmap.count_set(), set.len() as u64);
        let sectors: BTreeSet<u64> = bitmap.set_spans().flat_map(|span| span.start.0..span.end.0).collect();
        let expected: BTreeSet<u64> = set.iter().flat_map(|number| number * chunk..((number + 1) * chunk).min(size)).collect();
        prop_assert!(sectors == expected);
        let bytes = bitmap.encode();
        for number in 0..chunks {
            let byte = 256 + usize::try_from(number / 8).expect("small");
            prop_assert_eq!(bytes[byte] >> (number % 8) & 1 == 1, set.contains(&number));
            let page = bitmap.page(bitmap.page_of(number));
            prop_assert_eq!(page[byte % 4096] >> (number % 8) & 1 == 1, set.contains(&number));
        }
        prop_assert_eq!(&Bitmap::decode(&bytes).expect("a bitmap"), &bitmap);
    }

    /// A set bit counts if its whole chunk does not end before `below`.
    #[test]
    fn only_chunks_that_reach_beyond_are_needed(size in 1..4000_u64, below in prop_oneof![0..5000_u64, Just(u64::MAX)], bits in vec(0..600_u64, 0..60)) {
        let header = BitmapSuperblock::new(Uuid([1; 16]), Sectors(size), Bytes(4096));
        let mut bitmap = Bitmap::new(header, false).expect("small");
        for bit in bits {
            bitmap.set(bit);
        }
        let needed: BTreeSet<u64> = bitmap.needed_spans(Sectors(below)).flat_map(|span| span.start.0..span.end.0).collect();
        let expected: BTreeSet<u64> = (0..size).filter(|sector| {
            let chunk = sector / 8;
            bitmap.test(chunk) && (chunk + 1) * 8 >= below
        }).collect();
        prop_assert!(needed == expected);
    }

    /// Against a set of sectors.
    #[test]
    fn bad_blocks_come_back(ranges in vec((0..40_000_u64, 1..2000_u64), 0..12), shift in 0..4_u8) {
        let log = BadBlockLog { offset: 16, size: 8, shift };
        let entries: Vec<BadBlockEntry> = ranges.iter().map(|(start, count)| BadBlockEntry { start: Sectors(*start), count: Sectors(*count) }).collect();
        let bytes = log.encode(&entries).expect("room");
        prop_assert_eq!(bytes.len(), 4096);
        let unit = 1 << shift;
        let found: BTreeSet<u64> = log.decode(&bytes).expect("sound").iter().flat_map(|entry| entry.start.0..entry.start.0 + entry.count.0).collect();
        let wanted: BTreeSet<u64> = ranges.iter().flat_map(|(start, count)| start / unit * unit..(start + count).div_ceil(unit) * unit).collect();
        prop_assert!(found == wanted);
    }

    #[test]
    fn any_bad_block_log_is_bounded(
        bytes in vec(prop_oneof![2 => any::<u8>(), 1 => Just(0xff)], 0..200),
        size in 0..20_u16,
        shift in 0..70_u8,
    ) {
        let log = BadBlockLog { offset: 8, size, shift };
        if let Ok(entries) = log.decode(&bytes) {
            prop_assert!(entries.len() <= log.capacity());
            if let Ok(encoded) = log.encode(&entries) {
                let again = log.decode(&encoded).expect("it was encoded");
                prop_assert_eq!(log.encode(&again), Ok(encoded));
            }
        }
    }
}

/// Found by fuzzing: two entries at the end of what 54 bits name touched, and
/// their parts began beyond it.
#[test]
fn no_entry_begins_beyond_what_a_log_can_name() {
    let log = BadBlockLog {
        offset: 8,
        size: 1,
        shift: 0,
    };
    let word = |start: u64, count: u64| (start << 10 | count).to_le_bytes();
    let last = (1 << 54) - 1;
    assert!(log.decode(&word(last, 1)).is_ok());
    assert!(log.decode(&word(last, 2)).is_err());
    let range = |start, count| BadBlockEntry {
        start: Sectors(start),
        count: Sectors(count),
    };
    assert!(log.encode(&[range(last, 1)]).is_ok());
    assert!(log.encode(&[range(last, 1), range(last + 1, 1)]).is_err());
}
