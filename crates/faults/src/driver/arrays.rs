//! Whole arrays: superblocks, bitmaps and logs on the simulated disks, as the driver makes
//! and assembles them.

use super::shelf::Shelf;
use crate::options::Options;
use crate::reader::Reader;
use raidlab_array::{
    AssembleError, AssembleOptions, Assembly, EXTERNAL_BITMAP, Part, Settings, Slot, Stale, Update,
};
use raidlab_geometry::Level;
use raidlab_metadata::create::{
    BitmapChoice, CreateSpec, InitialSync, LogReserve, MemberSize, Write, plan,
};
use raidlab_metadata::{Bitmap, BitmapSuperblock, DeviceFlags, Uuid, Version};
use raidlab_serve::array::{self, FilesError, read_bitmap, read_candidate};
use raidlab_serve::member::Member;
use raidlab_units::{Bytes, Nanos, Sectors, in_one_line};
use std::sync::OnceLock;

/// The reason why an array was not assembled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// A dirty, degraded array with parity and without a complete log: in the core's words.
    WriteHole(String),
    /// Too few members are current for the level.
    NotEnough,
    /// Disks of both sides of a split array are present.
    SplitBrain,
    /// The array cannot grow in its present state.
    CannotGrow,
    /// The power was cut during replay.
    PowerCut,
    /// Another reason, in the driver's words.
    Other(String),
}

/// The options with which an array is assembled.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct HowToAssemble {
    /// Whether the disks present are used even where data may be lost.
    pub(crate) force: bool,
    /// A number, not 0, that no other run of the array has.
    pub(crate) session: u64,
    /// The treatment of members that are out of date.
    pub(crate) stale: Stale,
    /// Whether nothing may be written, not even the replay of the write log.
    pub(crate) read_only: bool,
    /// Whether the array is to use all that its members have from now on.
    pub(crate) grows: bool,
    /// The disk with the bitmap's file, if it is present.
    pub(crate) bitmap: Option<usize>,
}

/// An array that was assembled, and has not started.
pub(crate) struct Ready {
    pub(crate) assembly: Assembly,
    pub(crate) settings: Settings,
    /// Each device of the array, by its handle.
    pub(crate) files: Vec<(Slot, Member)>,
    /// The disk that each handle names: first one for each slot, then spares.
    pub(crate) handles: Vec<Option<usize>>,
    /// The disks with current content, by their numbers.
    pub(crate) in_service: Vec<usize>,
    /// The disks in service that are out of date, and were taken by force.
    pub(crate) forced: Vec<usize>,
}

/// The time since 1970 at virtual time 0, in nanoseconds: 2026-01-01.
const UNIX_BASE: u64 = 1_767_225_600_000_000_000;

/// The data offset if the log is to be short: behind 4 KiB each of superblock, bitmap and bad-block
/// log, and some 150 KiB for the log.
const SHORT_LOG_OFFSET: Sectors = Sectors(344);

/// Returns a UUID that only this disk has.
pub(crate) fn device_uuid(number: usize) -> Uuid {
    let mut bytes = [0x5a; 16];
    bytes[..8].copy_from_slice(&(number as u64 + 1).to_le_bytes());
    Uuid(bytes)
}

/// Formats the first disks of the shelf, one for each slot.
///
/// # Errors
/// The reason why they form no array.
pub(crate) fn create(options: &Options, shelf: &Shelf) -> Result<Reader, String> {
    let members: Vec<Member> = (0..options.members)
        .map(|disk| shelf.member(disk))
        .collect();
    let size = |(number, disk): (usize, &Member)| {
        Some(MemberSize {
            size: disk.size().to_bytes(),
            device_uuid: device_uuid(number),
            flags: write_mostly(options, number),
            found: Vec::new(),
        })
    };
    let sizes: Vec<Option<MemberSize>> = members.iter().enumerate().map(size).collect();
    let plan = plan(&spec(options), &sizes).map_err(|error| error.to_string())?;
    if let Some(bitmap) = &plan.external_bitmap {
        let bytes = of_chunk(options, bitmap).encode();
        let offset = Bytes(0);
        let file = shelf.member(options.members);
        array::write_all(&file, &[Write { offset, bytes }]).map_err(|error| in_one_line(&error))?;
    }
    array::create(&plan, &members).map_err(|error| in_one_line(&error))?;
    let areas = plan.members.iter().map(|member| {
        let superblock = &member.superblock;
        let size = match options.level {
            Level::Linear | Level::Raid0 => superblock.data_size,
            _ => superblock.used_size,
        };
        (superblock.data_offset.0, size.0)
    });
    let areas: Vec<(u64, u64)> = areas.collect();
    Ok(Reader {
        level: options.level,
        layout: options.layout,
        chunk: options.chunk,
        used: areas.first().map_or(0, |(_, size)| *size),
        areas,
        size: plan.array_size.0,
        rows: OnceLock::new(),
    })
}

/// Returns the flags of a slot's member: whether it is write-mostly.
pub(crate) const fn write_mostly(options: &Options, slot: usize) -> DeviceFlags {
    DeviceFlags(match options.seldom.write_mostly >> (slot % 64) & 1 {
        1 => DeviceFlags::WRITE_MOSTLY,
        _ => 0,
    })
}

/// Returns the bitmap with the run's chunk: mdadm makes no chunks of less than 4 KiB, but a file
/// may have them.
fn of_chunk(options: &Options, bitmap: &Bitmap) -> Bitmap {
    let superblock = &bitmap.superblock;
    let (uuid, size) = (superblock.array_uuid, superblock.sync_size);
    let chunk = options.bitmap_chunk.map(|chunk| Sectors(chunk).to_bytes());
    let superblock = BitmapSuperblock::new(uuid, size, chunk.unwrap_or(superblock.chunk));
    Bitmap::new(superblock, true).unwrap_or_else(|_| bitmap.clone())
}

/// Assembles the array from the disks named by `present`, in that order. One without readable
/// metadata is left out, as an administrator has to do.
///
/// # Errors
/// The reason why the array was refused, as the driver returned it.
pub(crate) fn assemble(
    options: &Options,
    shelf: &Shelf,
    present: &[usize],
    how: HowToAssemble,
) -> Result<Ready, Refusal> {
    let members = present.iter().map(|disk| shelf.member(*disk));
    let members: Vec<Member> = members.filter(|it| read_candidate(it).is_ok()).collect();
    let assemble = AssembleOptions {
        force: how.force,
        run_degraded: true,
        stale: how.stale,
        read_only: how.read_only,
        update: how.grows.then_some(Update::Size),
        ..AssembleOptions::default()
    };
    // A bitmap's file that cannot be read is left out, too.
    let bitmap = how.bitmap.map(|disk| shelf.member(disk));
    let bitmap = bitmap.filter(|file| read_bitmap(file).is_ok());
    let assembled = array::assemble(&members, bitmap.as_ref(), &assemble);
    let assembled = assembled.map_err(|error| match &error {
        _ if shelf.is_cut() => Refusal::PowerCut,
        FilesError::Assemble(error) => refusal(error),
        _ => Refusal::Other(in_one_line(&error)),
    })?;
    let number = |name: &str| name.parse::<usize>().ok();
    let mut handles: Vec<Option<usize>> = vec![None; options.members];
    let of_members = |file: &&(Slot, Member)| file.0 != EXTERNAL_BITMAP;
    for (handle, member) in assembled.files.iter().filter(of_members) {
        if handles.len() <= handle.index() {
            handles.resize(handle.index() + 1, None);
        }
        handles[handle.index()] = member.path().to_str().and_then(number);
    }
    let assembly = assembled.assembly;
    let current = assembly
        .members
        .iter()
        .filter(|it| matches!(it.part, Part::InSync(_)));
    let session = if options.log { how.session } else { 0 };
    Ok(Ready {
        settings: Settings {
            safe_mode_delay: Nanos::from_millis(options.safe_mode_ms),
            ..Settings::new(Nanos(UNIX_BASE), session)
        },
        files: assembled.files,
        handles,
        in_service: current
            .filter_map(|member| number(&member.candidate.name))
            .collect(),
        forced: assembly
            .forced
            .iter()
            .filter_map(|name| number(name))
            .collect(),
        assembly,
    })
}

/// Returns the data offset, if it differs from that of `create`: metadata in front of the data
/// leave little room to a log that is to be short.
pub(crate) fn data_offset(options: &Options) -> Option<Sectors> {
    (options.log && options.short_log && options.version != Version::V1_0)
        .then_some(SHORT_LOG_OFFSET)
}

fn spec(options: &Options) -> CreateSpec {
    let seldom = &options.seldom;
    let bitmap_chunk = options
        .bitmap_chunk
        .map(|chunk| Sectors(chunk.max(8)).to_bytes());
    CreateSpec {
        version: options.version,
        level: options.level,
        layout: Some(options.layout),
        chunk: (options.level != Level::Raid1).then_some(Sectors(options.chunk)),
        raid_disks: options.members,
        array_uuid: Uuid([0xa5; 16]),
        host: String::new(),
        name: "simulated".to_owned(),
        created: UNIX_BASE / 1_000_000_000,
        size: match options.level {
            Level::Linear | Level::Raid0 => None,
            _ => Some(Sectors(options.used)),
        },
        data_offset: data_offset(options),
        bitmap: match bitmap_chunk {
            None => BitmapChoice::None,
            chunk if seldom.bitmap_in_file => BitmapChoice::External(chunk),
            chunk => BitmapChoice::Internal(chunk),
        },
        initial: match (options.assume_clean, options.spare_rebuild) {
            (true, _) => InitialSync::AssumeClean,
            (false, true) => InitialSync::SpareRebuild,
            (false, false) => InitialSync::Resync,
        },
        log: match options.log {
            true => LogReserve::Automatic,
            false => LogReserve::None,
        },
        bad_block_log: true,
    }
}

fn refusal(error: &AssembleError) -> Refusal {
    match error {
        AssembleError::DirtyDegraded { .. } => Refusal::WriteHole(error.to_string()),
        AssembleError::NotEnough { .. } | AssembleError::NeedsRun { .. } => Refusal::NotEnough,
        AssembleError::SplitBrain { .. } => Refusal::SplitBrain,
        AssembleError::CannotGrow(_) => Refusal::CannotGrow,
        other => Refusal::Other(other.to_string()),
    }
}
