//! Arrays planned here, held to the ones that the real mdadm made of members of
//! the same size, and to rules of their own: nothing overlaps, the log has room.

mod missing;

use crate::support::recorded;
use proptest::prelude::*;
use raidlab_geometry::{Layout, Level};
use raidlab_metadata::create::{
    BitmapChoice, CreateError, CreatePlan, CreateSpec, InitialSync, LEAST_LOG_AREA, LogReserve,
    MemberSize, default_log_reserve, plan,
};
use raidlab_metadata::{
    BadBlockLog, Features, ReadAt, Role, Superblock, Uuid, Version, erase, read_member,
    versions_present,
};
use raidlab_units::{Bytes, Sectors};
use std::ops::Range;

const UUID: Uuid = Uuid([
    0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0xfe, 0xdc, 0xba, 0x98, 0x76, 0x54, 0x32, 0x10,
]);

fn spec(version: Version, level: Level, raid_disks: usize) -> CreateSpec {
    CreateSpec {
        version,
        level,
        layout: None,
        chunk: None,
        raid_disks,
        array_uuid: UUID,
        host: "lab".to_owned(),
        name: "x".to_owned(),
        created: 1,
        size: None,
        data_offset: None,
        bitmap: BitmapChoice::None,
        initial: InitialSync::AssumeClean,
        log: LogReserve::None,
        bad_block_log: true,
    }
}

fn member(size: Bytes) -> MemberSize {
    MemberSize {
        size,
        device_uuid: Uuid([9; 16]),
        flags: raidlab_metadata::DeviceFlags(0),
        found: Vec::new(),
    }
}

/// Members of these sizes in MiB; 0: missing.
fn members(mebibytes: &[u64]) -> Vec<Option<MemberSize>> {
    let sizes = mebibytes.iter();
    sizes
        .map(|size| (*size > 0).then(|| member(Bytes(size << 20))))
        .collect()
}

/// What creation decides, the same before and after the kernel's first writes.
fn decided(mut superblock: Superblock) -> Superblock {
    superblock.created = 0;
    superblock.updated = 0;
    superblock.events = 0;
    superblock.device_uuid = Uuid([0; 16]);
    superblock.device_flags.0 = 0;
    superblock.resync_offset = Sectors(0);
    superblock.recovery_offset = Sectors(0);
    superblock.features.0 &= !Features::RECOVERY_OFFSET;
    superblock
}

/// A planned array against a recorded one.
fn agree(array: &str, mut spec: CreateSpec, members: &[Option<MemberSize>]) -> CreatePlan {
    array.clone_into(&mut spec.name);
    let planned = plan(&spec, members).expect("a plan");
    let mut recorded: Vec<_> = recorded()
        .into_iter()
        .filter(|member| {
            member
                .name
                .rsplit_once('.')
                .is_some_and(|(name, _)| name == array)
        })
        .collect();
    assert_eq!(recorded.len(), planned.members.len(), "{array}");
    for (member, ours) in recorded.iter_mut().zip(&planned.members) {
        let size = member.size;
        let theirs = read_member(member, size).expect("a member");
        let mut theirs_decided = decided(theirs.superblock);
        let mut ours_decided = decided(ours.superblock.clone());
        // The kernel gives roles to spares that it takes, and takes failed
        // members'.
        theirs_decided.roles = Vec::new();
        let roles = std::mem::take(&mut ours_decided.roles);
        assert_eq!(roles.len(), 128, "{}", member.name);
        assert_eq!(ours_decided, theirs_decided, "{}", member.name);
        // The kernel replaces the size by the array's own.
        let of = |bitmap: &Option<raidlab_metadata::Bitmap>| {
            let bitmap = bitmap.as_ref();
            bitmap.map(|bitmap| (bitmap.chunks(), bitmap.superblock.chunk))
        };
        assert_eq!(of(&planned.bitmap), of(&theirs.bitmap), "{}", member.name);
    }
    planned
}

const VERSIONS: [(Version, &str); 3] = [
    (Version::V1_0, "10"),
    (Version::V1_1, "11"),
    (Version::V1_2, "12"),
];

#[test]
fn plans_are_those_of_mdadm() {
    for (version, short) in VERSIONS {
        let mut mirror = spec(version, Level::Raid1, 2);
        mirror.bitmap = BitmapChoice::Internal(None);
        agree(&format!("raid1-{short}"), mirror, &members(&[96; 2]));

        let mut five = spec(version, Level::Raid5, 3);
        five.chunk = Some(Sectors(128));
        five.initial = InitialSync::SpareRebuild;
        let planned = agree(&format!("raid5-{short}"), five, &members(&[96; 4]));
        let roles = &planned.members[0].superblock.roles[..5];
        assert_eq!(roles[..2], [Role::Slot(0), Role::Slot(1)]);
        assert_eq!(roles[2..], [Role::Spare; 3]);
        let numbers = planned
            .members
            .iter()
            .map(|member| member.superblock.device_number);
        assert_eq!(numbers.collect::<Vec<_>>(), [0, 1, 4, 3]);

        let mut six = spec(version, Level::Raid6, 4);
        six.chunk = Some(Sectors(64));
        six.bitmap = BitmapChoice::Internal(Some(Bytes(64 << 10)));
        agree(&format!("raid6-{short}"), six, &members(&[96; 4]));

        let mut ten = spec(version, Level::Raid10, 4);
        ten.layout = Some(Layout::parse(Level::Raid10, "o2").expect("o2"));
        ten.chunk = Some(Sectors(256));
        ten.bitmap = BitmapChoice::Internal(None);
        agree(&format!("raid10-{short}"), ten, &members(&[96, 96, 0, 96]));

        let mut stripes = spec(version, Level::Raid0, 2);
        stripes.chunk = Some(Sectors(128));
        agree(&format!("raid0-{short}"), stripes, &members(&[96; 2]));
    }
    agree(
        "linear",
        spec(Version::V1_2, Level::Linear, 2),
        &members(&[96; 2]),
    );
    agree(
        "raid4",
        spec(Version::V1_2, Level::Raid4, 3),
        &members(&[96; 3]),
    );
    let mut far = spec(Version::V1_2, Level::Raid10, 3);
    far.layout = Some(Layout::parse(Level::Raid10, "f2").expect("f2"));
    agree("raid10-far", far, &members(&[96; 3]));
    let mut mixed = spec(Version::V1_2, Level::Raid0, 2);
    mixed.chunk = Some(Sectors(128));
    let planned = agree("mixed", mixed, &members(&[96, 30]));
    assert!(
        planned.members[1]
            .superblock
            .features
            .has(Features::RAID0_LAYOUT)
    );
}

/// Worked out by hand from mdadm's rule: 24 sectors, the bitmap's space and
/// headroom, in whole MiB.
#[test]
fn data_begin_where_mdadm_has_them() {
    for (mebibytes, level, sectors) in [
        (4_000_000_000_000 >> 20, Level::Raid1, 264_192),
        (1 << 20, Level::Raid5, 264_192),
        (100 << 10, Level::Raid1, 133_120),
        (100 << 10, Level::Raid5, 133_120),
        (1 << 10, Level::Raid1, 4096),
        (500, Level::Raid1, 2048),
        (1 << 10, Level::Raid5, 4096),
    ] {
        let planned =
            plan(&spec(Version::V1_2, level, 3), &members(&[mebibytes; 3])).expect("a plan");
        let offset = planned.members[0].superblock.data_offset;
        assert_eq!(offset, Sectors(sectors), "{mebibytes} MiB, {level}");
    }
}

#[test]
fn what_a_level_cannot_bear_is_refused() {
    let refused =
        |spec: &CreateSpec, sizes: &[u64]| plan(spec, &members(sizes)).expect_err("refused");
    let five = spec(Version::V1_2, Level::Raid5, 3);
    assert!(matches!(
        refused(&five, &[96, 0, 0]),
        CreateError::TooManyMissing { missing: 2, .. }
    ));
    assert!(matches!(
        refused(&five, &[96, 96]),
        CreateError::TooFewMembers { .. }
    ));
    assert!(matches!(
        refused(&five, &[96, 96, 96, 0]),
        CreateError::MissingSpare(3)
    ));
    assert!(matches!(
        refused(&five, &[96, 96, 2]),
        CreateError::TooSmall { index: 2, .. }
    ));
    assert!(matches!(
        refused(&five, &[96, 96, 0, 0]),
        CreateError::MissingSpare(_)
    ));
    let two = spec(Version::V1_2, Level::Raid6, 3);
    assert!(matches!(refused(&two, &[96; 3]), CreateError::Shape(_)));
    let zero = spec(Version::V1_2, Level::Raid0, 2);
    assert!(matches!(
        refused(&zero, &[96, 0]),
        CreateError::NoRedundancy(_)
    ));
    assert!(matches!(
        refused(&zero, &[96; 3]),
        CreateError::NoRedundancy(_)
    ));
    let old = spec(Version::V0_90, Level::Raid1, 2);
    assert!(matches!(
        refused(&old, &[96; 2]),
        CreateError::Superblock(_)
    ));
    let mut chunk = spec(Version::V1_2, Level::Raid1, 2);
    chunk.chunk = Some(Sectors(128));
    assert!(matches!(
        refused(&chunk, &[96; 2]),
        CreateError::Chunk { .. }
    ));
    let mut name = spec(Version::V1_2, Level::Raid1, 2);
    name.name = "n".repeat(31);
    assert!(plan(&name, &members(&[96; 2])).is_ok());
    name.name.push('n');
    assert!(matches!(refused(&name, &[96; 2]), CreateError::Name(_)));
    let mut size = spec(Version::V1_2, Level::Raid1, 2);
    size.size = Some(Sectors(96 << 11));
    assert!(matches!(
        refused(&size, &[96; 2]),
        CreateError::SmallerThanSize { .. }
    ));
    let mut offset = spec(Version::V1_2, Level::Raid1, 2);
    offset.data_offset = Some(Sectors(16));
    assert!(matches!(
        refused(&offset, &[96; 2]),
        CreateError::DataOffset { .. }
    ));
    let mut bitmap = spec(Version::V1_2, Level::Raid1, 2);
    bitmap.bitmap = BitmapChoice::Internal(Some(Bytes(4096)));
    let error = refused(&bitmap, &[4096; 2]);
    let CreateError::BitmapChunkRoom { chunk, fits } = error else {
        panic!("{error}");
    };
    assert_eq!(chunk, Bytes(4096));
    let mut planned = |chunk: Bytes| {
        bitmap.bitmap = BitmapChoice::Internal(Some(chunk));
        plan(&bitmap, &members(&[4096; 2])).is_ok()
    };
    assert_eq!([Bytes(fits.0 / 2), fits].map(&mut planned), [false, true]);
    for chunk in [512, 3 << 10, 4 << 30].map(Bytes) {
        for choice in [BitmapChoice::Internal, BitmapChoice::External] {
            bitmap.bitmap = choice(Some(chunk));
            let error = refused(&bitmap, &[96; 2]);
            assert!(matches!(error, CreateError::BitmapChunk(told) if told == chunk));
        }
    }
}

/// The records of the write log have one place on all members, wherever their superblocks are.
#[test]
fn members_of_different_sizes_have_room_for_the_log_in_common() {
    for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
        let mut spec = spec(version, Level::Raid5, 3);
        spec.log = LogReserve::Automatic;
        let planned = plan(&spec, &members(&[100, 96, 130])).expect("an array");
        let areas = planned.members.iter().map(|member| &member.log_area);
        let start = areas
            .clone()
            .map(|area| area.start.0)
            .max()
            .expect("members");
        let end = areas.map(|area| area.end.0).min().expect("members");
        let wanted = default_log_reserve(Sectors(96 << 11)).0;
        assert!(start + wanted <= end, "{version:?}: {start}..{end}");
    }
}

/// mdadm: RAID 4 and 5 with a member missing are clean; RAID 6 gives up a second
/// member for the sake of one that is missing.
#[test]
fn missing_members_decide_what_has_to_be_synchronised() {
    let state = |level, sizes: &[u64], initial| {
        let mut spec = spec(Version::V1_2, level, 4);
        spec.initial = initial;
        let planned = plan(&spec, &members(sizes)).expect("a plan");
        let roles = planned.members[0].superblock.roles[..6].to_vec();
        let clean = planned.members[0].superblock.resync_offset == Superblock::IN_SYNC;
        let active = roles
            .iter()
            .filter(|role| matches!(role, Role::Slot(_)))
            .count();
        (clean, active)
    };
    let resync = InitialSync::Resync;
    assert_eq!(state(Level::Raid5, &[96; 4], resync), (false, 4));
    assert_eq!(
        state(Level::Raid5, &[96; 4], InitialSync::AssumeClean),
        (true, 4)
    );
    assert_eq!(
        state(Level::Raid5, &[96; 4], InitialSync::SpareRebuild),
        (true, 3)
    );
    assert_eq!(state(Level::Raid5, &[96, 96, 0, 96], resync), (true, 3));
    assert_eq!(state(Level::Raid6, &[96; 4], resync), (false, 4));
    assert_eq!(state(Level::Raid6, &[96, 0, 96, 96], resync), (true, 2));
    assert_eq!(state(Level::Raid6, &[96, 96, 96, 0], resync), (true, 2));
    assert_eq!(state(Level::Raid6, &[96, 0, 0, 96], resync), (true, 2));
    assert_eq!(state(Level::Raid1, &[96, 0, 96, 96], resync), (false, 3));
}

#[test]
fn names_are_those_of_mdadm() {
    let name = raidlab_metadata::full_name;
    assert_eq!(name("lab", "data"), "lab:data");
    assert_eq!(name("", "data"), "data");
    assert_eq!(name("lab", "other:data"), "other:data");
    assert_eq!(
        name("a-host-with-a-name", "that-is-long"),
        "a-host-with-a-name:that-is-long"
    );
    assert_eq!(name("a-host-with-a-name!", "that-is-long"), "that-is-long");
    assert_eq!(name("", &"ä".repeat(20)), "ä".repeat(15));
}

/// A member as bytes.
struct Memory(Vec<u8>);

impl ReadAt for Memory {
    fn read_at(&mut self, offset: Bytes, bytes: &mut [u8]) -> std::io::Result<()> {
        self.0.as_slice().read_at(offset, bytes)
    }
}

#[test]
fn old_superblocks_are_erased_first() {
    let size = Bytes(16 << 20);
    let mut memory = Memory(vec![0; 16 << 20]);
    let write = |memory: &mut Memory, writes: &[raidlab_metadata::create::Write]| {
        for write in writes {
            let start = usize::try_from(write.offset.0).expect("small");
            memory.0[start..start + write.bytes.len()].copy_from_slice(&write.bytes);
        }
    };
    for version in [Version::V1_0, Version::V1_1] {
        let old = plan(&spec(version, Level::Raid1, 1), &[Some(member(size))]).expect("a plan");
        write(&mut memory, &old.members[0].writes);
    }
    let found = versions_present(&mut memory, size);
    assert_eq!(found, [Version::V1_1, Version::V1_0]);
    let mut one = member(size);
    one.found = found;
    let planned = plan(&spec(Version::V1_2, Level::Raid1, 1), &[Some(one)]).expect("a plan");
    write(&mut memory, &planned.members[0].writes);
    assert_eq!(versions_present(&mut memory, size), [Version::V1_2]);
    let read = read_member(&mut memory, size).expect("a member");
    assert_eq!(read.superblock, planned.members[0].superblock);
    write(&mut memory, &erase(&[Version::V1_2], size));
    assert_eq!(versions_present(&mut memory, size), []);
}

fn level() -> impl Strategy<Value = Level> {
    prop_oneof![
        Just(Level::Linear),
        Just(Level::Raid0),
        Just(Level::Raid1),
        Just(Level::Raid4),
        Just(Level::Raid5),
        Just(Level::Raid6),
        Just(Level::Raid10),
    ]
}

fn overlap(left: &Range<Sectors>, right: &Range<Sectors>) -> bool {
    left.start < right.end && right.start < left.end
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// Superblock, bitmap, bad-block log, raidlab's log and data lie apart and
    /// inside the member; the log has the room that was asked for.
    #[test]
    fn nothing_overlaps(
        level in level(),
        version in prop_oneof![Just(Version::V1_0), Just(Version::V1_1), Just(Version::V1_2)],
        sizes in proptest::collection::vec(8_000_u64..(1 << 34), 4..8),
        shrink in 0_u32..20,
        log in prop_oneof![
            Just(LogReserve::Automatic),
            Just(LogReserve::None),
            Just(LogReserve::TooLittle),
            (0..4096_u64).prop_map(|sectors| LogReserve::AtLeast(Sectors(sectors))),
        ],
        bitmap in prop_oneof![
            Just(BitmapChoice::None),
            Just(BitmapChoice::Automatic),
            Just(BitmapChoice::Internal(None)),
            Just(BitmapChoice::Internal(Some(Bytes(1 << 20)))),
        ],
        chunk in prop_oneof![Just(None), (3..10_u32).prop_map(|shift| Some(Sectors(1 << shift)))],
        offset in prop_oneof![4 => Just(None), 1 => (0..1000_u64).prop_map(|eight| Some(Sectors(eight * 8)))],
    ) {
        let bare = matches!(level, Level::Linear | Level::Raid0);
        let mut spec = spec(version, level, 4);
        spec.log = log;
        spec.bitmap = if bare { BitmapChoice::None } else { bitmap };
        spec.chunk = chunk.filter(|_| level != Level::Raid1);
        spec.data_offset = offset;
        let sizes = if bare { &sizes[..4] } else { &sizes[..] };
        let sizes: Vec<Sectors> = sizes.iter().map(|size| Sectors((size >> shrink).max(4_000))).collect();
        let members: Vec<_> = sizes.iter().map(|size| Some(member(size.to_bytes()))).collect();
        let Ok(planned) = plan(&spec, &members) else {
            return Ok(());
        };
        prop_assert!(planned.array_size > Sectors::ZERO);
        let least = sizes.iter().copied().min().expect("members");
        for (planned_member, size) in planned.members.iter().zip(&sizes) {
            let superblock = &planned_member.superblock;
            let bytes = superblock.encode().expect("a superblock");
            let decoded = Superblock::decode(&bytes, version, *size);
            prop_assert_eq!(decoded.as_ref(), Ok(superblock));
            let mut areas = vec![
                ("superblock", superblock.superblock_area()),
                ("data", superblock.data_area()),
                ("log", planned_member.log_area.clone()),
            ];
            if let Some(area) = superblock.bad_block_area() {
                areas.push(("bad blocks", area));
            }
            if let Some(bitmap) = &planned.bitmap {
                let room = superblock.bitmap_room(*size).expect("a bitmap");
                let length = bitmap.page_count() as u64 * 8;
                prop_assert!(room.end.0 - room.start.0 >= length);
                areas.push(("bitmap", room.start..Sectors(room.start.0 + length)));
            }
            for (index, (name, area)) in areas.iter().enumerate() {
                prop_assert!(area.end <= *size, "{} {:?} beyond {:?}", name, area, size);
                for (other_name, other) in &areas[..index] {
                    prop_assert!(!overlap(area, other), "{} {:?}, {} {:?}", name, area, other_name, other);
                }
            }
            let log_sectors = planned_member.log_area.end.0 - planned_member.log_area.start.0;
            let wanted = match log {
                LogReserve::AtLeast(wanted) => wanted,
                LogReserve::Automatic if level.parity_count() > 0 && offset.is_none() => default_log_reserve(least),
                _ => Sectors::ZERO,
            };
            prop_assert!(log != LogReserve::TooLittle || offset.is_some() || log_sectors < LEAST_LOG_AREA.0);
            prop_assert!(log_sectors >= wanted.0, "{} of {:?}", log_sectors, wanted);
            if !bare {
                prop_assert!(superblock.used_size <= superblock.data_size);
            }
        }
    }
}

#[test]
fn the_bad_block_log_can_be_left_out() {
    let mut spec = spec(Version::V1_2, Level::Raid1, 2);
    let log = |spec: &CreateSpec| {
        plan(spec, &members(&[96; 2])).expect("a plan").members[0]
            .superblock
            .bad_block_log
    };
    assert_eq!(log(&spec), Some(BadBlockLog::new(16)));
    spec.bad_block_log = false;
    assert_eq!(log(&spec), None);
}
