//! Tables of superblocks, and what they make.

mod logs;
mod members;
mod sizes;
mod syncs;

use super::{AssembleOptions, Assembly, Candidate, LeftOut, NeededSync, Part, Stale, Update};
use crate::admission::Admission;
use crate::persistent::error::{AssembleError, LogFault};
use crate::persistent::log_superblock::{LogBlock, LogSays, LogSuperblock, Numbers, checksum};
use crate::persistent::{EngineOptions, PersistentArray, Settings};
use crate::policy::ReadPolicyKind;
use crate::request::Outputs;
use raidlab_geometry::{Layout, Level, Slot, SlotSet};
use raidlab_metadata::{
    Bitmap, BitmapSuperblock, DeviceFlags, Features, MemberMetadata, Reshape, Role, Superblock,
    Uuid, Version,
};
use raidlab_units::{Bytes, Nanos, Sectors, Span};

const ARRAY: Uuid = Uuid([7; 16]);
const MEMBER: Sectors = Sectors(8192);
const DATA: Sectors = Sectors(2048);
const USED: Sectors = Sectors(4096);

/// Member `number` of an array in which each number has the slot of its own.
fn candidate(level: Level, count: u16, number: u16, events: u64) -> Candidate {
    let mut roles: Vec<Role> = (0..count).map(Role::Slot).collect();
    roles.resize(16, Role::Spare);
    let name = ["a", "b", "c", "d", "e", "f"][usize::from(number)];
    Candidate {
        name: name.to_owned(),
        size: MEMBER,
        rotational: true,
        log: None,
        metadata: MemberMetadata {
            superblock: Superblock {
                version: Version::V1_2,
                features: Features(0),
                array_uuid: ARRAY,
                name: "host:0".to_owned(),
                created: 1,
                level: level.md_number(),
                layout: Layout::default_of(level).to_md(level),
                used_size: USED,
                chunk: if level == Level::Raid1 {
                    Sectors(0)
                } else {
                    Sectors(128)
                },
                raid_disks: count.into(),
                bitmap_offset: 8,
                reshape: Reshape::default(),
                data_offset: DATA,
                data_size: Sectors(MEMBER.0 - DATA.0),
                super_offset: Sectors(8),
                recovery_offset: Sectors(0),
                device_number: number.into(),
                corrected_read_errors: 0,
                device_uuid: Uuid([u8::try_from(number).unwrap(); 16]),
                device_flags: DeviceFlags(0),
                bad_block_log: None,
                updated: 2,
                events,
                resync_offset: Superblock::IN_SYNC,
                roles,
            },
            checksum: raidlab_metadata::Checksum::default(),
            legacy: None,
            bitmap: None,
            bitmap_error: None,
            bad_blocks: Vec::new(),
            log_area: Sectors(0)..Sectors(0),
        },
    }
}

fn set(level: Level, events: &[u64]) -> Vec<Candidate> {
    let count = u16::try_from(events.len()).unwrap();
    (0..)
        .zip(events)
        .map(|(number, events)| candidate(level, count, number, *events))
        .collect()
}

fn superblock(candidate: &mut Candidate) -> &mut Superblock {
    &mut candidate.metadata.superblock
}

fn roles(candidate: &mut Candidate, roles: &[Role]) {
    superblock(candidate).roles[..roles.len()].copy_from_slice(roles);
}

fn decide(candidates: &[Candidate]) -> Result<Assembly, AssembleError> {
    decide_with(candidates, |_| ())
}

fn decide_with(
    candidates: &[Candidate],
    change: impl FnOnce(&mut AssembleOptions),
) -> Result<Assembly, AssembleError> {
    let mut options = AssembleOptions::default();
    change(&mut options);
    Assembly::decide(candidates.to_vec(), &options)
}

fn parts(assembly: &Assembly) -> Vec<(&str, Part)> {
    assembly
        .members
        .iter()
        .map(|member| (member.candidate.name.as_str(), member.part.clone()))
        .collect()
}

fn bitmap(candidate: &mut Candidate, events: u64, cleared: u64, chunks: &[u64]) {
    let mut superblock_of = BitmapSuperblock::new(ARRAY, USED, Bytes(64 * 512));
    superblock_of.events = events;
    superblock_of.events_cleared = cleared;
    let mut bitmap = Bitmap::new(superblock_of, false).unwrap();
    chunks.iter().for_each(|chunk| {
        bitmap.set(*chunk);
    });
    candidate.metadata.bitmap = Some(bitmap);
    superblock(candidate).features.0 |= Features::BITMAP;
}

fn log(candidate: &mut Candidate, session: u64) {
    log_with(candidate, session, |_| ());
}

fn log_with(candidate: &mut Candidate, session: u64, change: impl FnOnce(&mut LogBlock)) {
    let own = &candidate.metadata.superblock;
    let mut block = LogBlock {
        array_uuid: own.array_uuid,
        device_uuid: own.device_uuid,
        says: LogSays {
            session,
            in_sync_below: Superblock::IN_SYNC,
            first_resync: false,
        },
        checksums: [1, checksum(own).unwrap()],
        ring: Span::between(Sectors(64), DATA),
        sequence: 0,
        absent: Numbers::default(),
    };
    change(&mut block);
    candidate.log = Some(block.into());
}

/// A mirror of two that has just been started.
pub(in crate::persistent) fn started_mirror() -> PersistentArray {
    let assembly = decide(&set(Level::Raid1, &[4, 4])).unwrap();
    let options = EngineOptions::new(ReadPolicyKind::LEAST_PENDING);
    let settings = Settings::new(Nanos::ZERO, 0);
    let out = &mut Outputs::default();
    PersistentArray::start(assembly, &options, settings, Nanos::ZERO, out).unwrap()
}

const FAULTY: Role = Role::Faulty;
