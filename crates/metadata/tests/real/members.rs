//! Against members that the real kernel and the real mdadm wrote: what is read
//! comes back as the same bytes, and the texts are mdadm's.

use crate::support::{Recorded, recorded};
use raidlab_metadata::detail::{
    DetailOptions, brief, examine, examine_bad_blocks, examine_bitmap, utc,
};
use raidlab_metadata::{Features, MemberMetadata, ReadAt, Role, Uuid, Version, read_member};
use raidlab_units::Sectors;

/// Every member with its metadata.
fn members() -> Vec<(Recorded, MemberMetadata)> {
    let members = recorded().into_iter().map(|mut member| {
        let size = member.size;
        let found = read_member(&mut member, size);
        let found = found.unwrap_or_else(|error| panic!("{}: {error:?}", member.name));
        (member, found)
    });
    members.collect()
}

/// The bytes at a sector.
fn bytes_at(member: &mut Recorded, at: Sectors, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    member
        .read_at(at.to_bytes(), &mut bytes)
        .expect("recorded bytes");
    bytes
}

#[test]
fn superblocks_come_back_as_the_same_bytes() {
    let mut seen = 0;
    for (mut member, found) in members() {
        if found.superblock.version == Version::V0_90 {
            continue;
        }
        let encoded = found.superblock.encode().expect("a superblock");
        let on_disk = bytes_at(&mut member, found.superblock.super_offset, encoded.len());
        assert!(encoded == on_disk, "{}", member.name);
        seen += 1;
    }
    assert!(seen >= 60, "{seen} members of version 1");
}

/// 0.90 has no UUID of its own for a member; what stands for it must tell them
/// apart, or two of them are taken for copies of one.
#[test]
fn members_of_an_array_are_told_apart() {
    let mut seen: Vec<(String, Uuid)> = Vec::new();
    for (member, found) in members() {
        let superblock = &found.superblock;
        if superblock.version == Version::V0_90 {
            let array = member.name.split('.').next().unwrap_or_default();
            let identity = (array.to_owned(), superblock.device_uuid);
            assert!(!seen.contains(&identity), "{}", member.name);
            seen.push(identity);
        }
    }
    assert!(seen.len() >= 10, "{} members of 0.90", seen.len());
}

#[test]
fn bitmaps_come_back_as_the_same_bytes() {
    let mut seen = 0;
    for (mut member, found) in members() {
        assert_eq!(found.bitmap_error, None, "{}", member.name);
        let Some(bitmap) = &found.bitmap else {
            continue;
        };
        let superblock = &found.superblock;
        // The kernel does not keep a spare's bitmap current.
        let stale = bitmap
            .superblock
            .is_stale(superblock.array_uuid, superblock.events);
        assert!(
            !stale || superblock.role() == Role::Spare,
            "{}",
            member.name
        );
        if superblock.version != Version::V0_90 {
            let place = superblock
                .super_offset
                .0
                .wrapping_add_signed(superblock.bitmap_offset.into());
            let encoded = bitmap.encode();
            let on_disk = bytes_at(&mut member, Sectors(place), encoded.len());
            assert!(encoded == on_disk, "{}", member.name);
        }
        seen += 1;
    }
    assert!(seen >= 20, "{seen} bitmaps");
}

#[test]
fn bad_blocks_come_back_as_the_same_bytes() {
    let [mut seen, mut exact] = [0, 0];
    for (mut member, found) in members() {
        if !found.superblock.features.has(Features::BAD_BLOCKS) {
            assert_eq!(found.bad_blocks, [], "{}", member.name);
            continue;
        }
        let area = found.superblock.bad_block_area().expect("a log");
        let log = found.superblock.bad_block_log.expect("a log");
        let encoded = log.encode(&found.bad_blocks).expect("room");
        let on_disk = bytes_at(&mut member, area.start, encoded.len());
        // The kernel leaves the parts of a range that it split in any order.
        let sorted = |bytes: &[u8]| {
            let mut words: Vec<Vec<u8>> = bytes.chunks(8).map(<[u8]>::to_vec).collect();
            words.sort();
            words
        };
        assert!(sorted(&encoded) == sorted(&on_disk), "{}", member.name);
        exact += usize::from(encoded == on_disk);
        seen += 1;
    }
    assert_eq!((seen, exact), (2, 1), "logs with entries");
}

#[test]
fn texts_are_those_of_mdadm() {
    for (member, found) in members() {
        let options = DetailOptions {
            device: "MEMBER",
            size: member.size,
            host: "elsewhere",
            time: utc,
        };
        // mdadm adds the nodes that 0.90's numbers have on that machine.
        let wanted: String = member
            .text("examine")
            .lines()
            .map(|line| line.split_once("   /dev/").map_or(line, |(line, _)| line))
            .map(|line| line.split_once("   MEMBER").map_or(line, |(line, _)| line))
            .map(|line| format!("{line}\n"))
            .collect();
        assert_eq!(examine(&found, &options), wanted, "{}", member.name);
        assert_eq!(
            brief(&[("MEMBER", &found)], false),
            member.text("brief"),
            "{}",
            member.name
        );
        if let Some(bitmap) = &found.bitmap {
            let text = examine_bitmap(bitmap, "MEMBER");
            assert_eq!(text, member.text("bitmap"), "{}", member.name);
        }
        if found.superblock.version != Version::V0_90 {
            let text = examine_bad_blocks(&found, "MEMBER");
            assert_eq!(text, member.text("badblocks"), "{}", member.name);
        }
    }
}

/// Features seen in the recordings: a recording that went wrong shows here.
#[test]
fn the_recordings_hold_what_they_should() {
    let members = members();
    let of = |name: &str| {
        let found = members.iter().find(|(member, _)| member.name == name);
        &found.unwrap_or_else(|| panic!("no {name}")).1
    };
    let features = |name: &str| of(name).superblock.features.0;
    assert_eq!(features("recovering.2") & Features::RECOVERY_OFFSET, 2);
    assert_ne!(
        of("resyncing.0").superblock.resync_offset,
        raidlab_metadata::Superblock::IN_SYNC
    );
    assert_eq!(features("replacing.2") & Features::REPLACEMENT, 16);
    assert_eq!(features("reshaping.0") & Features::RESHAPE, 4);
    assert_eq!(features("mixed.0") & Features::RAID0_LAYOUT, 4096);
    assert_eq!(features("ppl.0") & Features::PPL, 1024);
    assert_eq!(features("journal.0") & Features::JOURNAL, 512);
    assert_eq!(of("journal.3").superblock.role(), Role::Journal);
    assert_eq!(of("raid5-12.2").superblock.role(), Role::Slot(2));
    assert_eq!(of("raid5-12.3").superblock.role(), Role::Spare);
    let dirty = of("raid6-12.0").bitmap.as_ref().expect("a bitmap");
    assert!(
        dirty.count_set() > 0,
        "writes to a degraded array leave bits"
    );
    assert!(dirty.count_set() < dirty.chunks());
    for version in ["090", "10", "11", "12"] {
        for level in ["raid1", "raid5", "raid6", "raid10"] {
            of(&format!("{level}-{version}.0"));
        }
    }
}
