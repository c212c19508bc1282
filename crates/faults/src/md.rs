//! Whole arrays: superblocks, bitmaps and logs on the simulated disks, as a
//! driver makes, assembles and runs them.
//!
//! Nothing is remembered outside the disks. What a driver does by itself,
//! reading metadata and replaying the log, happens here between two events;
//! the power may be cut in the middle of the replay.

use crate::core::{Added, Assembled, Core, HowToAssemble, Maker, Order, Refusal};
use crate::disk::Disk;
use crate::options::Options;
use crate::pages::SECTOR;
use crate::reader::Reader;
use raidlab_array::{
    ArrayStatus, AssembleError, AssembleOptions, Assembly, Candidate, CommandId, EngineOptions,
    LogSuperblock, MemberError, MemberState, NewDevice, Outputs, Part, PersistentArray, Request,
    Settings, Slot, StepId, StepResult, SyncAction,
};
use raidlab_geometry::Level;
use raidlab_metadata::create::{
    BitmapChoice, CreateSpec, InitialSync, LogReserve, MemberSize, plan,
};
use raidlab_metadata::{DeviceFlags, ReadAt, Uuid, Version, read_member};
use raidlab_units::{Bytes, Nanos, SECTOR_BYTES, Sectors};
use std::io;
use std::sync::OnceLock;

/// 2026-01-01, at virtual time 0.
const UNIX_BASE: u64 = 1_767_225_600_000_000_000;

/// Where the data begin if the log is to be short: behind 4 KiB each of
/// superblock, bitmap and bad-block log, and some 150 KiB for the log.
const SHORT_LOG_OFFSET: Sectors = Sectors(344);

/// Arrays with md's metadata.
#[derive(Debug, Clone, Copy, Default)]
pub struct Md;

/// A disk as the metadata reader sees it.
pub(crate) struct Readable<'a>(pub(crate) &'a Disk);

impl ReadAt for Readable<'_> {
    fn read_at(&mut self, offset: Bytes, bytes: &mut [u8]) -> io::Result<()> {
        let first = offset.0 / SECTOR_BYTES;
        let end = (offset.0 + bytes.len() as u64).div_ceil(SECTOR_BYTES);
        if end > self.0.sectors() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut sectors = vec![0; (end - first) as usize * SECTOR];
        let read = self.0.read(first, &mut sectors);
        read.map_err(io::Error::other)?;
        let skip = (offset.0 % SECTOR_BYTES) as usize;
        bytes.copy_from_slice(&sectors[skip..skip + bytes.len()]);
        Ok(())
    }
}

/// A UUID that only this disk has.
fn uuid(number: usize) -> Uuid {
    let mut bytes = [0x5a; 16];
    bytes[..8].copy_from_slice(&(number as u64 + 1).to_le_bytes());
    Uuid(bytes)
}

impl Maker for Md {
    fn create(&self, options: &Options, disks: &mut [Disk]) -> Result<Reader, String> {
        let spec = spec(options);
        let member = |(number, disk): (usize, &Disk)| {
            Some(MemberSize {
                size: Sectors(disk.sectors()).to_bytes(),
                device_uuid: uuid(number),
                flags: DeviceFlags::default(),
                found: Vec::new(),
            })
        };
        let members: Vec<Option<MemberSize>> = disks.iter().enumerate().map(member).collect();
        let plan = plan(&spec, &members).map_err(|error| error.to_string())?;
        let mut areas = Vec::new();
        for member in &plan.members {
            for write in &member.writes {
                let start = write.offset.0 / SECTOR_BYTES;
                disks[member.index].write(start, write.bytes.as_slice().into(), false);
            }
            let superblock = &member.superblock;
            let size = match options.level {
                Level::Linear | Level::Raid0 => superblock.data_size,
                _ => superblock.used_size,
            };
            areas.push((superblock.data_offset.0, size.0));
        }
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

    fn assemble(
        &self,
        options: &Options,
        disks: &mut [Disk],
        present: &[usize],
        how: HowToAssemble,
    ) -> Result<Assembled, Refusal> {
        let candidates = present
            .iter()
            .filter_map(|disk| candidate(*disk, &disks[*disk]));
        let assemble = AssembleOptions {
            force: how.force,
            run_degraded: true,
            stale: how.stale,
            ..AssembleOptions::default()
        };
        let mut assembly =
            Assembly::decide(candidates.collect(), &assemble).map_err(|error| refusal(&error))?;
        replay(&mut assembly, disks, how)?;
        let number = |name: &str| name.parse::<usize>().ok();
        let mut handles: Vec<Option<usize>> = vec![None; options.members];
        for (handle, name) in assembly.handles() {
            if handles.len() <= handle.index() {
                handles.resize(handle.index() + 1, None);
            }
            handles[handle.index()] = number(name);
        }
        let current = assembly
            .members
            .iter()
            .filter(|it| matches!(it.part, Part::InSync(_)));
        let in_service = current
            .filter_map(|member| number(&member.candidate.name))
            .collect();
        let forced = assembly.forced.iter().filter_map(|name| number(name));
        let forced = forced.collect();
        let session = if options.log { how.session } else { 0 };
        let core = MdCore {
            members: options.members,
            settings: Settings {
                safe_mode_delay: Nanos::from_millis(options.safe_mode_ms),
                ..Settings::new(Nanos(UNIX_BASE), session)
            },
            engine: options.engine(),
            assembly: Some(assembly),
            array: None,
        };
        Ok(Assembled {
            core: Box::new(core),
            handles,
            in_service,
            forced,
        })
    }
}

fn spec(options: &Options) -> CreateSpec {
    let bitmap_chunk = options.bitmap_chunk.map(|chunk| Sectors(chunk).to_bytes());
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
        // Metadata in front of the data leave what little there is to the log.
        data_offset: (options.log && options.short_log && options.version != Version::V1_0)
            .then_some(SHORT_LOG_OFFSET),
        bitmap: match bitmap_chunk {
            None => BitmapChoice::None,
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

/// What a disk is to an array that is being assembled.
fn candidate(number: usize, disk: &Disk) -> Option<Candidate> {
    let size = Sectors(disk.sectors());
    let metadata = read_member(&mut Readable(disk), size.to_bytes()).ok()?;
    let log = LogSuperblock::read(&metadata, |start, bytes| disk.read(start.0, bytes).is_ok());
    Some(Candidate {
        name: number.to_string(),
        size,
        metadata,
        log,
        rotational: true,
    })
}

fn refusal(error: &AssembleError) -> Refusal {
    match error {
        AssembleError::DirtyDegraded { .. } => Refusal::WriteHole(error.to_string()),
        AssembleError::NotEnough { .. } | AssembleError::NeedsRun { .. } => Refusal::NotEnough,
        AssembleError::SplitBrain { .. } => Refusal::SplitBrain,
        other => Refusal::Other(other.to_string()),
    }
}

fn replay(assembly: &mut Assembly, disks: &mut [Disk], how: HowToAssemble) -> Result<(), Refusal> {
    let Some(needed) = &assembly.replay else {
        return Ok(());
    };
    let other = |error: &dyn std::fmt::Display| Refusal::Other(error.to_string());
    let disk_of = |assembly: &Assembly, member: usize| {
        let name = &assembly.members[member].candidate.name;
        name.parse::<usize>().map_err(|error| other(&error))
    };
    let mut rings = Vec::new();
    let mut numbers = Vec::new();
    for log in &needed.logs {
        let sectors = log.ring.end.0 - log.ring.start.0;
        let mut bytes = vec![0; sectors as usize * SECTOR];
        let number = disk_of(assembly, log.member)?;
        let read = disks[number].read(log.ring.start.0, &mut bytes);
        read.map_err(|error| other(&error))?;
        rings.push(bytes);
        numbers.push(number);
    }
    let replay = assembly.replay(&rings).map_err(|error| other(&error))?;
    let mut count = 0;
    for step in [replay.absences, replay.writes] {
        for write in step {
            if how.cut_replay_after == Some(count) {
                return Err(Refusal::PowerCut);
            }
            count += 1;
            let number = disk_of(assembly, write.member)?;
            disks[number].write(write.start.0, write.bytes.into(), false);
        }
        for number in &numbers {
            let mark = disks[*number].flush_mark();
            disks[*number].flush(mark);
        }
    }
    assembly.replayed();
    Ok(())
}

/// A running array.
struct MdCore {
    members: usize,
    settings: Settings,
    engine: EngineOptions,
    /// Until it starts.
    assembly: Option<Assembly>,
    array: Option<PersistentArray>,
}

impl MdCore {
    /// The array, if it has started.
    fn with<T>(&mut self, action: impl FnOnce(&mut PersistentArray) -> T) -> Option<T> {
        self.array.as_mut().map(action)
    }
}

/// A verb's result in words.
fn told<E: std::error::Error>(result: Option<Result<(), E>>) -> Result<(), String> {
    let Some(result) = result else {
        return Err("the array has not started".to_owned());
    };
    result.map_err(|error| {
        let source = error
            .source()
            .map_or_else(String::new, |source| format!(": {source}"));
        format!("{error}{source}")
    })
}

impl Core for MdCore {
    fn start(&mut self, now: Nanos, out: &mut Outputs) -> Result<(), String> {
        let Some(assembly) = self.assembly.take() else {
            return Ok(());
        };
        let started = PersistentArray::start(assembly, &self.engine, self.settings, now, out);
        let array = started.map_err(|error| {
            let source = std::error::Error::source(&error);
            format!(
                "{error}: {}",
                source.map_or_else(String::new, ToString::to_string)
            )
        })?;
        self.array = Some(array);
        Ok(())
    }

    fn submit(&mut self, now: Nanos, request: Request, out: &mut Outputs) {
        self.with(|array| array.submit(now, request, out));
    }

    fn complete(
        &mut self,
        now: Nanos,
        command: CommandId,
        result: Result<(), MemberError>,
        out: &mut Outputs,
    ) {
        self.with(|array| array.complete(now, command, result, out));
    }

    fn computed(&mut self, now: Nanos, step: StepId, result: StepResult, out: &mut Outputs) {
        self.with(|array| array.computed(now, step, result, out));
    }

    fn tick(&mut self, now: Nanos, out: &mut Outputs) {
        self.with(|array| array.tick(now, out));
    }

    fn next_tick(&self) -> Option<Nanos> {
        self.array.as_ref()?.next_tick()
    }

    fn states(&self) -> Vec<MemberState> {
        let states = self.array.as_ref().map(PersistentArray::member_states);
        states.unwrap_or_else(|| vec![MemberState::Missing; self.members])
    }

    fn served(&self) -> Vec<Option<usize>> {
        let array = self.array.as_ref();
        let served = array.map(PersistentArray::served).unwrap_or_default();
        served
            .iter()
            .map(|handle| handle.map(Slot::index))
            .collect()
    }

    fn status(&self) -> Option<ArrayStatus> {
        self.array.as_ref().map(PersistentArray::status)
    }

    fn keeps_log(&self) -> bool {
        let array = self.array.as_ref();
        array.is_some_and(|array| array.status().log > Sectors::ZERO)
    }

    fn is_syncing(&self) -> bool {
        let Some(array) = &self.array else {
            return false;
        };
        // A resync of parity waits for the members that are missing.
        let vacant =
            |state: &MemberState| matches!(state, MemberState::Faulty | MemberState::Missing);
        let waits = array.member_states().iter().any(vacant) && array.status().sync.is_none();
        array.is_syncing() && !waits
    }

    fn is_idle(&self) -> bool {
        self.array.as_ref().is_none_or(PersistentArray::is_idle)
    }

    fn fail(&mut self, now: Nanos, handle: Slot, out: &mut Outputs) -> Result<(), String> {
        told(self.with(|array| array.fail(now, handle, out)))
    }

    fn remove(&mut self, now: Nanos, handle: Slot, out: &mut Outputs) -> Result<(), String> {
        told(self.with(|array| array.remove(now, handle, out)))
    }

    fn re_add(
        &mut self,
        now: Nanos,
        handle: Slot,
        (number, disk): (usize, &Disk),
        out: &mut Outputs,
    ) -> Option<Result<(), String>> {
        let former = candidate(number, disk)?;
        Some(told(
            self.with(|array| array.re_add(now, handle, former, out)),
        ))
    }

    fn add(
        &mut self,
        now: Nanos,
        handle: Slot,
        (number, disk): (usize, &Disk),
        out: &mut Outputs,
    ) -> Result<Added, String> {
        if let Some(Ok(())) = self.re_add(now, handle, (number, disk), out) {
            return Ok(Added::Again);
        }
        let new = NewDevice {
            name: number.to_string(),
            size: Sectors(disk.sectors()),
            rotational: true,
            write_mostly: false,
            uuid: uuid(number),
        };
        told(self.with(|array| array.add(now, handle, new, out))).map(|()| Added::New)
    }

    fn start_sync(
        &mut self,
        now: Nanos,
        action: SyncAction,
        out: &mut Outputs,
    ) -> Result<(), String> {
        told(self.with(|array| match action {
            SyncAction::Check => array.check(now, out),
            SyncAction::Resync | SyncAction::FirstResync | SyncAction::Repair => {
                array.repair(now, out)
            }
        }))
    }

    fn order(&mut self, now: Nanos, order: Order, out: &mut Outputs) -> Result<(), String> {
        told(self.with(|array| match order {
            Order::Replace(handle) => array.replace(now, handle, None, out),
            Order::ReadOnly => array.read_only(now, out),
            Order::ReadWrite => array.read_write(now, out),
            Order::Idle => {
                array.stop_sync(now, out);
                Ok(())
            }
            Order::Speed(minimum, maximum) => {
                array.set_sync_speed(minimum, maximum);
                Ok(())
            }
        }))
    }

    fn stop(&mut self, now: Nanos, out: &mut Outputs) {
        self.with(|array| array.stop(now, out));
    }

    fn is_stopped(&self) -> bool {
        self.array.as_ref().is_none_or(PersistentArray::is_stopped)
    }
}
