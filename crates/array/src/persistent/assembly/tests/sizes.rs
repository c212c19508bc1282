//! What members have room for, and growth to that.

use super::*;
use crate::persistent::error::VerbError;
use crate::persistent::{Device, NewDevice};
use raidlab_metadata::{BadBlockEntry, BadBlockLog};

/// A mirror whose superblocks are at the end, with bitmaps and logs of bad blocks in front of
/// them, as mdadm makes it with an offset: `data_size` has the offset in it.
fn mirror_with_superblocks_at_the_end() -> Vec<Candidate> {
    let mut found = set(Level::Raid1, &[4, 4]);
    for candidate in &mut found {
        bitmap(candidate, 4, 4, &[]);
        let superblock = superblock(candidate);
        superblock.version = Version::V1_0;
        superblock.super_offset = Sectors(MEMBER.0 - 16);
        superblock.data_size = Sectors(MEMBER.0 - 32);
        superblock.bitmap_offset = -16;
        superblock.bad_block_log = Some(BadBlockLog::new(-8));
    }
    found
}

fn new(sectors: u64) -> NewDevice {
    NewDevice {
        name: "new".to_owned(),
        size: Sectors(sectors),
        rotational: false,
        write_mostly: false,
        uuid: Uuid([9; 16]),
    }
}

fn grown(found: &[Candidate]) -> Assembly {
    decide_with(found, |options| options.update = Some(Update::Size)).unwrap()
}

#[test]
fn growth_ends_before_what_lies_behind_the_data() {
    let mut found = mirror_with_superblocks_at_the_end();
    assert_eq!(grown(&found).size, Sectors(MEMBER.0 - 32 - DATA.0));
    for candidate in &mut found {
        superblock(candidate).features.0 &= !Features::BITMAP;
        candidate.metadata.bitmap = None;
    }
    assert_eq!(grown(&found).size, Sectors(MEMBER.0 - 24 - DATA.0));
    // What the data leave free for a write log stays free.
    superblock(&mut found[0]).data_size = Sectors(USED.0 + 800);
    let assembly = grown(&found);
    assert_eq!(assembly.size, Sectors(USED.0 + 800));
    assert!(assembly.has_grown() && !decide(&found).unwrap().has_grown());
}

/// The log of a spare that is older than a growth would begin in the array's data.
#[test]
fn an_older_spare_has_its_write_log_behind_what_is_used_now() {
    let mut found = set(Level::Raid5, &[4, 4, 4, 4]);
    for candidate in &mut found {
        roles(candidate, &[0, 1, 2].map(Role::Slot));
        superblock(candidate).roles[3] = Role::Spare;
        let superblock = superblock(candidate);
        superblock.raid_disks = 3;
        superblock.version = Version::V1_0;
        superblock.super_offset = Sectors(MEMBER.0 - 16);
        superblock.data_size = Sectors(USED.0 + 1024);
    }
    superblock(&mut found[3]).data_size = Sectors(USED.0 + 512);
    let assembly = grown(&found);
    assert_eq!(assembly.array.used_size, Sectors(USED.0 + 1024));
    let spare = &assembly.members[3];
    assert_eq!(spare.part, Part::Spare);
    let data_end = DATA + assembly.array.used_size;
    assert_eq!(spare.candidate.metadata.log_area.start, data_end);
}

/// Of a bad-block log's entries only those in the new part go, where nobody has written.
#[test]
fn bad_blocks_of_the_new_part_are_forgotten() {
    let mut found = set(Level::Raid5, &[4, 4, 4]);
    let span = |start, end| Span::new(DATA.0 + start, DATA.0 + end);
    let room = MEMBER.0 - DATA.0;
    let noted = [(8, 16), (USED.0 - 8, USED.0 + 8), (room - 8, room + 8)];
    let entries = noted.map(|(start, end)| BadBlockEntry::from(span(start, end)));
    found[1].metadata.bad_blocks = entries.to_vec();
    let named = |assembly: &Assembly| {
        let entries = assembly.members[1].candidate.metadata.bad_blocks.iter();
        entries.map(BadBlockEntry::span).collect::<Vec<_>>()
    };
    assert_eq!(named(&decide(&found).unwrap()).len(), 3);
    let kept = [(8, 16), (USED.0 - 8, USED.0), (room, room + 8)];
    let kept = kept.map(|(start, end)| span(start, end));
    assert_eq!(named(&grown(&found)), kept);
}

/// An old kernel has put the bitmap 1 KiB behind the superblock, and 3 KiB later the bad blocks.
#[test]
fn a_bitmap_grows_no_further_than_to_what_lies_behind_it() {
    let mut found = set(Level::Raid1, &[4, 4]);
    for candidate in &mut found {
        candidate.size = Sectors(DATA.0 + 200_000);
        superblock(candidate).features.0 |= Features::BITMAP;
        superblock(candidate).bitmap_offset = 2;
        superblock(candidate).bad_block_log = Some(BadBlockLog::new(8));
        let mut head = BitmapSuperblock::new(ARRAY, USED, Bytes(4096));
        head.events = 4;
        candidate.metadata.bitmap = Some(Bitmap::new(head, false).unwrap());
    }
    let bitmap = grown(&found).bitmap.unwrap().superblock;
    assert_eq!(bitmap.chunk, Bytes(8192));
    assert!(bitmap.bytes() <= 3072);
}

#[test]
fn a_member_whose_superblock_is_where_others_have_data_is_too_small() {
    let mut found = mirror_with_superblocks_at_the_end();
    superblock(&mut found[0]).used_size = Sectors(MEMBER.0 - 32 - DATA.0);
    superblock(&mut found[0]).events = 6;
    superblock(&mut found[1]).super_offset = Sectors(MEMBER.0 - 24);
    let assembly = decide_with(&found, |options| options.run_degraded = true).unwrap();
    let too_small = LeftOut::TooSmall {
        size: MEMBER.0 - 40,
        needed: MEMBER.0 - 32,
    };
    assert_eq!(assembly.left_out[0].1, too_small);
}

#[test]
fn a_new_device_has_room_for_the_data_and_for_what_lies_behind_them() {
    let assembly = decide(&mirror_with_superblocks_at_the_end()).unwrap();
    let options = EngineOptions::new(ReadPolicyKind::LEAST_PENDING);
    let settings = Settings::new(Nanos::ZERO, 0);
    let out = &mut Outputs::default();
    let started = PersistentArray::start(assembly, &options, settings, Nanos::ZERO, out);
    let mut array = started.unwrap();
    let mut add = |sectors| array.add(Nanos::ZERO, Slot(9), new(sectors), out);
    // The data, the bitmap, and the superblock with what its rounding may cost.
    let needed = DATA.0 + USED.0 + 16 + 16;
    let size = needed - 1;
    assert_eq!(add(size), Err(VerbError::TooSmall { size, needed }));
    assert_eq!(add(needed), Ok(()));
}

/// With superblocks at the end the write log lies before them, at one place on all members.
#[test]
fn a_larger_device_has_the_write_log_where_the_others_have_it() {
    let mut found = set(Level::Raid5, &[4, 4, 4]);
    for candidate in &mut found {
        let superblock = superblock(candidate);
        superblock.version = Version::V1_0;
        superblock.super_offset = Sectors(MEMBER.0 - 16);
        superblock.data_size = Sectors(USED.0 + 1024);
        candidate.metadata.log_area = superblock.log_area(None);
    }
    let assembly = decide(&found).unwrap();
    let options = EngineOptions::new(ReadPolicyKind::LEAST_PENDING);
    let settings = Settings::new(Nanos::ZERO, 1);
    let out = &mut Outputs::default();
    let started = PersistentArray::start(assembly, &options, settings, Nanos::ZERO, out);
    let mut array = started.unwrap();
    assert!(array.status().log > Sectors::ZERO);
    assert_eq!(
        array.add(Nanos::ZERO, Slot(9), new(MEMBER.0 - 8), out),
        Err(VerbError::NoLogRoom)
    );
    assert_eq!(
        array.add(Nanos::ZERO, Slot(9), new(2 * MEMBER.0), out),
        Ok(())
    );
}

#[test]
fn a_bitmap_that_a_current_member_has_no_room_for_is_given_up_aloud() {
    let mut found = set(Level::Raid1, &[10, 9]);
    bitmap(&mut found[0], 10, 10, &[]);
    assert_eq!(decide(&found).unwrap().bitmap_does_not_fit, None);
    // It does not know of the bitmap, and its log of bad blocks lies there.
    superblock(&mut found[1]).bad_block_log = Some(BadBlockLog::new(8));
    let assembly = decide(&found).unwrap();
    assert_eq!(assembly.bitmap, None);
    assert_eq!(assembly.bitmap_does_not_fit.as_deref(), Some("b"));
}

#[test]
fn a_log_is_in_force_when_the_array_has_grown() {
    let mut found = set(Level::Raid5, &[10, 10, 10]);
    for candidate in &mut found {
        candidate.size = Sectors(2 * MEMBER.0);
        superblock(candidate).resync_offset = Sectors::ZERO;
        log(candidate, 7);
    }
    let assembly = grown(&found);
    assert!(assembly.has_grown() && assembly.replay.is_some());
    for member in assembly.members {
        assert!(Device::new(member).found_log.is_some());
    }
}
