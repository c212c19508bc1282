//! Recorded members with one thing changed: what is wrong is named.

use crate::support::{Recorded, recorded};
use raidlab_metadata::{
    Fault, FieldError, Legacy, MemberMetadata, ProbeError, ReadAt, Staleness, Superblock,
    SuperblockError, Uuid, Version, detail, examine_member, place_of, read_member,
    superblock_checksum,
};
use raidlab_units::{Bytes, Sectors};
use std::io;

/// A recorded member with other bytes in some places.
struct Changed {
    member: Recorded,
    changes: Vec<(u64, Vec<u8>)>,
}

impl ReadAt for Changed {
    fn read_at(&mut self, offset: Bytes, bytes: &mut [u8]) -> io::Result<()> {
        self.member.read_at(offset, bytes)?;
        for (at, change) in &self.changes {
            for (index, byte) in change.iter().enumerate() {
                let place = (at + index as u64).checked_sub(offset.0);
                let place = place.and_then(|place| usize::try_from(place).ok());
                if let Some(target) = place.and_then(|place| bytes.get_mut(place)) {
                    *target = *byte;
                }
            }
        }
        Ok(())
    }
}

fn member(name: &str) -> Recorded {
    let mut members = recorded().into_iter();
    members
        .find(|member| member.name == name)
        .expect("a recording")
}

/// The first 4 KiB of a member's superblock.
fn superblock_bytes(name: &str, version: Version) -> (Vec<u8>, Sectors, Sectors) {
    let mut member = member(name);
    let size = member.size.to_sectors();
    let place = place_of(version, size).expect("a place");
    let mut bytes = vec![0; 4096];
    member
        .read_at(place.to_bytes(), &mut bytes)
        .expect("recorded");
    (bytes, place, size)
}

fn fault(offset: usize, change: &[u8]) -> FieldError {
    let (mut bytes, _, size) = superblock_bytes("raid5-12.0", Version::V1_2);
    bytes[offset..offset + change.len()].copy_from_slice(change);
    if offset != 216 {
        let sum = superblock_checksum(&bytes).unwrap_or_default();
        bytes[216..220].copy_from_slice(&sum.to_le_bytes());
    }
    match Superblock::decode(&bytes, Version::V1_2, size) {
        Err(SuperblockError::Field(error)) => error,
        other => panic!("byte {offset}: {other:?}"),
    }
}

#[test]
fn every_check_names_its_field() {
    let unknown = Fault::UnknownBits(1 << 20);
    let cases: [(usize, &[u8], &str, Fault); 14] = [
        (0, &[0], "magic", Fault::Expected(0xa92b_4efc)),
        (4, &[2], "major_version", Fault::Expected(1)),
        (10, &[0x10], "feature_map", unknown),
        (8, &[1, 4], "feature_map", Fault::ExclusiveBits(1025)),
        (9, &[16], "level", Fault::Expected(0)),
        (12, &[1], "pad0", Fault::NotZero),
        (84, &[1], "size", Fault::AtMost(194_560)),
        (128, &[8, 0], "data_offset", Fault::AtLeast(9)),
        (136, &[9, 0, 0, 0], "data_size", Fault::AtLeast(10)),
        (136, &[0, 0xf0, 2, 1], "data_size", Fault::NoRoom(194_560)),
        (144, &[16], "super_offset", Fault::Expected(8)),
        (207, &[0x80], "events", Fault::AtMost(u64::MAX >> 1)),
        (220, &[0x81, 7], "max_dev", Fault::AtMost(1920)),
        (230, &[1], "pad3", Fault::NotZero),
    ];
    for (offset, change, field, wanted) in cases {
        let error = fault(offset, change);
        assert_eq!((error.field, error.fault), (field, wanted), "byte {offset}");
    }
    let error = fault(216, &[1, 2, 3, 4]);
    assert_eq!((error.field, error.value), ("sb_csum", 0x0403_0201));
    assert_eq!(fault(230, &[1]).offset, 230);
    let text = fault(144, &[16]).to_string();
    assert_eq!(text, "super_offset (at byte 144) is 0x10, not 0x8");
}

fn read(name: &str, changes: Vec<(u64, Vec<u8>)>) -> Result<MemberMetadata, ProbeError> {
    let member = member(name);
    let size = member.size;
    read_member(&mut Changed { member, changes }, size)
}

#[test]
fn a_broken_superblock_is_no_missing_one() {
    let broken = read("raid1-12.0", vec![(4096 + 200, vec![9])]);
    assert!(
        matches!(
            broken,
            Err(ProbeError::Superblock {
                version: Version::V1_2,
                sector: 8,
                ..
            })
        ),
        "{broken:?}"
    );
    let gone = read("raid1-12.0", vec![(4096, vec![0])]);
    assert!(matches!(gone, Err(ProbeError::None)), "{gone:?}");
}

/// The array that was made last counts.
#[test]
fn remains_of_an_older_array_do_not_count() {
    let (mut older, _, size) = superblock_bytes("raid1-10.0", Version::V1_0);
    let place = place_of(Version::V1_0, size).expect("a place").to_bytes().0;
    let remains = read("raid1-12.0", vec![(place, older.clone())]).expect("a member");
    assert_eq!(remains.superblock.version, Version::V1_2);
    older[64..72].copy_from_slice(&u64::from(u32::MAX).to_le_bytes());
    let sum = superblock_checksum(&older).expect("whole");
    older[216..220].copy_from_slice(&sum.to_le_bytes());
    let newer = read("raid1-12.0", vec![(place, older)]).expect("a member");
    assert_eq!(newer.superblock.version, Version::V1_0);
}

#[test]
fn a_broken_bitmap_leaves_the_member() {
    for (at, change) in [(0, 0), (4, 9), (52, 1), (56, 0), (68, 1)] {
        let found = read("raid1-12.0", vec![(8192 + at, vec![change])]).expect("a member");
        assert!(
            found.bitmap.is_none() && found.bitmap_error.is_some(),
            "byte {at}"
        );
        assert_eq!(found.log_area, Sectors(0)..Sectors(0), "of unknown length");
    }
}

#[test]
fn bitmaps_go_stale() {
    let found = read("raid1-12.0", Vec::new()).expect("a member");
    let mut bitmap = found.bitmap.expect("a bitmap").superblock;
    let superblock = found.superblock;
    let (uuid, events) = (superblock.array_uuid, superblock.events);
    assert_eq!(bitmap.staleness(uuid, events), None);
    let other = bitmap.staleness(Uuid([0; 16]), events);
    assert_eq!(other, Some(Staleness::OtherArray));
    let behind = bitmap.staleness(uuid, bitmap.events + 1);
    assert!(matches!(behind, Some(Staleness::Behind { .. })));
    bitmap.state |= 2;
    assert_eq!(bitmap.staleness(uuid, events), Some(Staleness::Marked));
}

/// Words of 32 bits the other way round; the halves of 64-bit numbers, too,
/// stand in the other order.
#[test]
fn old_superblocks_are_read_in_either_byte_order() {
    let (bytes, _, size) = superblock_bytes("raid6-090.0", Version::V0_90);
    let (little, rest) = Legacy::decode(&bytes, size).expect("sound");
    let mut swapped = bytes;
    swapped.chunks_mut(4).for_each(<[u8]>::reverse);
    for word in [39, 41, 44] {
        for byte in word * 4..word * 4 + 4 {
            swapped.swap(byte, byte + 4);
        }
    }
    let (big, other) = Legacy::decode(&swapped, size).expect("sound");
    assert_eq!(big, little);
    assert!(other.big_endian && !rest.big_endian);
    swapped[100] ^= 1;
    assert!(Legacy::decode(&swapped, size).is_err());
}

/// mdadm shows such members, and leaves it to the kernel to refuse them.
#[test]
fn what_is_not_sound_is_shown_with_its_fault() {
    let whole = member("raid5-12.0");
    let (bytes, place, size) = superblock_bytes("raid5-12.0", Version::V1_2);
    let own = superblock_checksum(&bytes).expect("a checksum");
    let at = |offset: u64| place.to_bytes().0 + offset;
    // Its name; a bad-block log that is said to have entries, and has one of no length.
    let name = vec![(at(32), vec![b'X'])];
    let mut noted = bytes.clone();
    noted[8] |= 8;
    let sum = superblock_checksum(&noted).expect("a checksum");
    noted[216..220].copy_from_slice(&sum.to_le_bytes());
    let log = whole_log(&bytes, place);
    let log = vec![(at(0), noted), (log, vec![0; 8])];
    let half = Bytes(size.to_bytes().0 / 2);
    for (changes, size, verdict, fault) in [
        (name, whole.size, "expected", "sb_csum"),
        (Vec::new(), half, "correct", "data_size"),
        (log, whole.size, "correct", "bad-block log"),
    ] {
        let mut changed = Changed {
            member: member("raid5-12.0"),
            changes,
        };
        let options = detail::DetailOptions {
            device: "x",
            size,
            host: "",
            time: detail::utc,
        };
        let (found, why) = examine_member(&mut changed, size).expect("it is shown");
        let why = raidlab_units::in_one_line(&why.expect("a fault"));
        assert!(why.contains(fault), "{why}");
        let text = detail::examine(&found, &options);
        assert!(text.contains("Raid Level : raid5"), "{text}");
        let line = text.lines().find(|line| line.contains("Checksum"));
        let line = line.expect("a checksum");
        assert!(line.contains(verdict), "{line}");
        if verdict == "expected" {
            assert!(line.contains(&format!("Checksum : {own:x} - ")), "{line}");
        }
        assert!(read_member(&mut changed, size).is_err(), "{fault}");
    }
}

/// The first byte of a member's bad-block log.
fn whole_log(superblock: &[u8], place: Sectors) -> u64 {
    let offset = [188, 189, 190, 191].map(|at| superblock[at]);
    let offset = i64::from(i32::from_le_bytes(offset));
    place.0.checked_add_signed(offset).expect("within") * 512
}
