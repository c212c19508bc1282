//! Member disks in memory with volatile caches, and a driver that does one
//! command at a time.

mod disks;
mod md;
#[path = "../../../payload/tests/payload/vectors.rs"]
mod vectors;
mod verbs;

pub use disks::{Disk, Make, with_fine_bitmaps};
pub use md::as_md;
pub use verbs::run_degraded;

use raidlab_array::{
    AssembleError, AssembleOptions, Assembly, BitmapFile, Candidate, EXTERNAL_BITMAP,
    EngineOptions, Event, FIRST_OUTER_ID, Finished, LogSuperblock, MemberCommand, MemberError,
    Operation, Outputs, PersistentArray, Purpose, Request, RequestId, Settings, Slot,
};
use raidlab_metadata::{Bitmap, Features, Role, Superblock};
use raidlab_random::Stream;
use raidlab_units::{Bytes, Nanos, Sectors};
use std::collections::{BTreeMap, VecDeque};
use vectors::Vectors;

pub const SECTOR: usize = 512;
pub const DATA_OFFSET: u64 = 640;
pub const USED: u64 = 256;
pub const BITMAP_CHUNK: u64 = 64;
pub const EXTERNAL: u16 = EXTERNAL_BITMAP.0;

pub fn candidates(disks: &BTreeMap<u16, Disk>) -> Vec<Candidate> {
    disks
        .iter()
        .filter(|(handle, disk)| !disk.dead && **handle != EXTERNAL)
        .map(|(handle, disk)| candidate(*handle, disk))
        .collect()
}

fn by_name(name: &str) -> u16 {
    name.parse().unwrap()
}

/// What the log wants written, both steps: disk, sector, bytes.
fn replay(assembly: &mut Assembly, disks: &BTreeMap<u16, Disk>) -> Vec<(u16, u64, Vec<u8>)> {
    let Some(replay) = &assembly.replay else {
        return Vec::new();
    };
    let name = |member: usize| by_name(&assembly.members[member].candidate.name);
    let rings = replay.logs.iter().map(|log| {
        let sectors = usize::try_from(log.ring.end.0 - log.ring.start.0).unwrap();
        let mut bytes = vec![0; sectors * SECTOR];
        disks[&name(log.member)].read(log.ring.start.0, &mut bytes);
        bytes
    });
    let rings: Vec<Vec<u8>> = rings.collect();
    let replay = assembly.replay(&rings).unwrap();
    let name = |member: usize| by_name(&assembly.members[member].candidate.name);
    let writes = replay.absences.into_iter().chain(replay.writes);
    writes
        .map(|write| (name(write.member), write.start.0, write.bytes))
        .collect()
}

/// The disks after a start that the power cut off while it replayed the log:
/// each sector has landed or not.
pub fn replayed_in_part(
    disks: &BTreeMap<u16, Disk>,
    random: &mut Stream,
) -> Option<BTreeMap<u16, Disk>> {
    let options = AssembleOptions {
        run_degraded: true,
        ..AssembleOptions::default()
    };
    let mut part = disks.clone();
    let mut assembly = Assembly::decide(candidates(disks), &options).ok()?;
    let writes = replay(&mut assembly, disks);
    if writes.is_empty() {
        return None;
    }
    for (name, start, bytes) in writes {
        for (sector, bytes) in (start..).zip(bytes.chunks(SECTOR)) {
            if random.below(2) == 0 {
                part.get_mut(&name).unwrap().land(sector, bytes);
            }
        }
    }
    Some(part)
}

pub fn candidate(handle: u16, disk: &Disk) -> Candidate {
    let metadata = disk.metadata();
    let log = LogSuperblock::read(&metadata, |start, bytes| {
        disk.read(start.0, bytes);
        true
    });
    Candidate {
        name: handle.to_string(),
        size: Sectors(disk.durable.len() as u64 / 512),
        metadata,
        log,
        rotational: false,
    }
}

pub struct World {
    pub array: PersistentArray,
    pub disks: BTreeMap<u16, Disk>,
    pub queue: VecDeque<MemberCommand>,
    pub now: Nanos,
    pub finished: Vec<Finished>,
    pub events: Vec<Event>,
    pub executed: usize,
    /// Checks before every foreground write that the metadata know of it.
    pub strict: bool,
    buffers: Vectors,
    next_request: u64,
    /// Answers of reads.
    pub read: BTreeMap<u64, Vec<u8>>,
}

impl World {
    /// Assembles and starts; disks go by the handles that the array gives them.
    pub fn assemble(
        disks: BTreeMap<u16, Disk>,
        log: bool,
        change: impl FnOnce(&mut AssembleOptions),
    ) -> Result<Self, AssembleError> {
        Self::assemble_with(disks, log, change, |_| ())
    }

    /// The same; syncs go block by block, and wait (see [`Self::sync_for`]).
    pub fn assemble_frozen(
        disks: BTreeMap<u16, Disk>,
        log: bool,
        change: impl FnOnce(&mut AssembleOptions),
    ) -> Result<Self, AssembleError> {
        let mut world = Self::assemble_with(disks, log, change, |engine| {
            engine.recovery.depth = 1;
            engine.recovery.block = Bytes(4096);
        })?;
        world.with(|array, _, _| array.freeze_sync());
        Ok(world)
    }

    /// Syncs go on for so many commands, whoever's they are, and wait again.
    pub fn sync_for(&mut self, commands: usize) {
        self.with(PersistentArray::thaw_sync);
        for _ in 0..commands {
            self.step(None);
        }
        self.with(|array, _, _| array.freeze_sync());
        while self.step(None) {}
    }

    /// The same with another engine; one that imitates md is an array that does.
    pub fn assemble_with(
        disks: BTreeMap<u16, Disk>,
        log: bool,
        change: impl FnOnce(&mut AssembleOptions),
        change_engine: impl FnOnce(&mut EngineOptions),
    ) -> Result<Self, AssembleError> {
        let file = disks.get(&EXTERNAL).filter(|file| !file.dead);
        let mut options = AssembleOptions {
            external_bitmap: file.map(|file| BitmapFile {
                bitmap: Bitmap::decode(&file.durable).unwrap(),
                room: Bytes(file.durable.len() as u64),
            }),
            ..AssembleOptions::default()
        };
        change(&mut options);
        let mut assembly = Assembly::decide(candidates(&disks), &options)?;
        let mut disks = disks;
        if !options.read_only {
            for (name, start, bytes) in replay(&mut assembly, &disks) {
                disks.get_mut(&name).unwrap().land(start, &bytes);
            }
            assembly.replayed();
        }
        let handles: Vec<(u16, u16)> = assembly
            .handles()
            .iter()
            .map(|(handle, name)| (handle.0, by_name(name)))
            .chain(
                disks
                    .contains_key(&EXTERNAL)
                    .then_some((EXTERNAL, EXTERNAL)),
            )
            .collect();
        let disks: BTreeMap<u16, Disk> = handles
            .into_iter()
            .map(|(handle, name)| (handle, disks[&name].clone()))
            .collect();
        let mut out = Outputs::default();
        let mut settings = Settings::new(Nanos::from_secs(1_700_000_000), 0);
        if log {
            // Never twice the same.
            settings.session = assembly.array.events + 1000;
        }
        let policy = "md-6.9".parse().unwrap();
        let mut options = EngineOptions::new(policy);
        change_engine(&mut options);
        let array =
            PersistentArray::start(assembly, &options, settings, Nanos(0), &mut out).unwrap();
        let mut world = Self {
            array,
            disks,
            queue: VecDeque::new(),
            now: Nanos(0),
            finished: Vec::new(),
            events: Vec::new(),
            executed: 0,
            strict: true,
            buffers: Vectors::new(0xa5),
            next_request: 1,
            read: BTreeMap::new(),
        };
        world.absorb(out);
        Ok(world)
    }

    pub fn absorb(&mut self, mut out: Outputs) {
        loop {
            let mut results = Vec::new();
            for step in out.steps.drain(..) {
                results.extend(self.buffers.execute(&step).unwrap());
            }
            self.queue.extend(out.commands.drain(..));
            self.events.append(&mut out.events);
            for finished in out.finished.drain(..) {
                if let Some(payload) = self.buffers.remove(finished.id) {
                    self.read.insert(finished.id.0, payload);
                }
                self.finished.push(finished);
            }
            if results.is_empty() {
                return;
            }
            for (id, result) in results {
                self.array.computed(self.now, id, result, &mut out);
            }
        }
    }

    /// Does something with the array, and takes in what comes out.
    pub fn with<R>(
        &mut self,
        call: impl FnOnce(&mut PersistentArray, Nanos, &mut Outputs) -> R,
    ) -> R {
        let mut out = Outputs::default();
        let result = call(&mut self.array, self.now, &mut out);
        self.absorb(out);
        result
    }

    /// Submits a request; every sector of a write is filled with `value`.
    pub fn submit(&mut self, operation: Operation, start: u64, count: u64, value: u8) -> RequestId {
        let id = RequestId(self.next_request);
        self.next_request += 1;
        if matches!(operation, Operation::Read | Operation::Write) {
            let bytes = usize::try_from(count).unwrap() * SECTOR;
            self.buffers.insert(id, vec![value; bytes]);
        }
        let request = Request {
            id,
            operation,
            start: Sectors(start),
            count: Sectors(count),
            force_unit_access: false,
            process: 0,
        };
        self.with(|array, now, out| array.submit(now, request, out));
        id
    }

    /// Does one command: a random one of those in flight if there is a stream.
    pub fn step(&mut self, random: Option<&mut Stream>) -> bool {
        if self.queue.is_empty() {
            return false;
        }
        let at = random.map_or(0, |random| random.below(self.queue.len() as u64));
        let command = self.queue.remove(usize::try_from(at).unwrap()).unwrap();
        if self.strict {
            self.check_metadata_first(&command);
        }
        self.executed += 1;
        let result = self.perform(&command);
        self.with(|array, now, out| array.complete(now, command.id, result, out));
        true
    }

    /// Does what the engine wants done; the metadata wait.
    pub fn engine_alone(&mut self) {
        while let Some(at) = self.queue.iter().position(|it| it.id.0 < FIRST_OUTER_ID) {
            let command = self.queue.remove(at).unwrap();
            self.queue.push_front(command);
            self.step(None);
        }
    }

    fn perform(&mut self, command: &MemberCommand) -> Result<(), MemberError> {
        let disk = self.disks.get_mut(&command.slot.0).unwrap();
        if disk.dead {
            return Err(MemberError::Gone);
        }
        let mut sectors = command.start.0..command.start.0 + command.count.0;
        match command.operation {
            Operation::Read if sectors.any(|sector| disk.unreadable.contains(&sector)) => {
                return Err(MemberError::Medium);
            }
            Operation::Write if sectors.clone().any(|it| disk.unwritable.contains(&it)) => {
                return Err(MemberError::Medium);
            }
            Operation::Read => {
                disk.reads += 1;
                let bytes = self
                    .buffers
                    .slice_mut(command.buffer, command.count)
                    .unwrap();
                disk.read(command.start.0, bytes);
            }
            Operation::Write => {
                if command.purpose != Purpose::Metadata {
                    disk.data_written += command.count.0;
                }
                let bytes = self.buffers.slice(command.buffer, command.count).unwrap();
                for sector in sectors.clone() {
                    disk.unreadable.remove(&sector);
                }
                if command.force_unit_access {
                    // Older writes to the same sectors can no longer land.
                    forget_cached(&mut disk.cache, &sectors);
                    disk.land(command.start.0, bytes);
                } else {
                    disk.cache.push((command.start.0, bytes.to_vec()));
                }
            }
            Operation::Flush => disk.flush(),
            Operation::Discard => {}
        }
        Ok(())
    }

    /// Before data go anywhere, the media of all members in service say that
    /// the array is dirty and that the chunk may differ.
    fn check_metadata_first(&self, command: &MemberCommand) {
        let is_data = command.operation == Operation::Write
            && command.purpose == Purpose::Foreground
            && command.start.0 >= DATA_OFFSET;
        if !is_data {
            return;
        }
        let chunk = (command.start.0 - DATA_OFFSET) / BITMAP_CHUNK;
        if let Some(file) = self.disks.get(&EXTERNAL).filter(|file| !file.dead) {
            let bitmap = Bitmap::decode(&file.durable).unwrap();
            assert!(bitmap.test(chunk), "chunk {chunk} is clear: {command:?}");
        }
        for device in self.array.status().devices {
            if device.state != "active sync" || self.disks[&device.handle.0].dead {
                continue;
            }
            let metadata = self.disks[&device.handle.0].metadata();
            // One that has just been filled is not yet asked for its bitmap.
            if metadata.superblock.features.has(Features::RECOVERY_OFFSET)
                || !matches!(metadata.superblock.role(), Role::Slot(_))
            {
                continue;
            }
            assert_eq!(metadata.superblock.resync_offset, Sectors(0), "{command:?}");
            // The bitmap of a RAID 10 stands for the array's sectors.
            if let Some(bitmap) = metadata.bitmap
                && metadata.superblock.level != 10
            {
                assert!(bitmap.test(chunk), "chunk {chunk} is clear: {command:?}");
            }
        }
    }

    /// Does everything in flight, and lets time pass until `deadline`.
    pub fn run_until(&mut self, deadline: Nanos) {
        loop {
            while self.step(None) {}
            let next = self.array.next_tick().filter(|at| *at <= deadline);
            let Some(next) = next else { break };
            self.now = self.now.max(next);
            self.with(|array, now, out| array.tick(now, out));
        }
        self.now = self.now.max(deadline);
    }

    pub fn run_for(&mut self, time: Nanos) {
        self.run_until(Nanos(self.now.0 + time.0));
    }

    /// Waits for a request; how it ended.
    pub fn wait(&mut self, id: RequestId) -> Result<(), raidlab_array::RequestError> {
        loop {
            if let Some(found) = self.finished.iter().find(|finished| finished.id == id) {
                return found.result;
            }
            assert!(self.step(None), "{id:?} waits for nothing");
        }
    }

    pub fn write(&mut self, start: u64, count: u64, value: u8) {
        let id = self.submit(Operation::Write, start, count, value);
        self.wait(id).unwrap();
    }

    pub fn flush(&mut self) {
        let id = self.submit(Operation::Flush, 0, 0, 0);
        self.wait(id).unwrap();
    }

    pub fn read(&mut self, start: u64, count: u64) -> Vec<u8> {
        let id = self.submit(Operation::Read, start, count, 0);
        self.wait(id).unwrap();
        self.read[&id.0].clone()
    }

    pub fn superblock(&self, handle: u16) -> Superblock {
        self.disks[&handle].metadata().superblock
    }

    /// The disks after a power cut: of what is in the caches and in flight, some
    /// lands, in an order of its own.
    pub fn cut(&self, landing: &mut Landing) -> BTreeMap<u16, Disk> {
        let mut disks = self.disks.clone();
        for (handle, disk) in &mut disks {
            let mut loose = std::mem::take(&mut disk.cache);
            for command in &self.queue {
                if command.slot.0 == *handle && command.operation == Operation::Write {
                    let bytes = self.buffers.slice(command.buffer, command.count).unwrap();
                    loose.push((command.start.0, bytes.to_vec()));
                }
            }
            for (start, bytes) in loose {
                for (sector, part) in (start..).zip(bytes.chunks(SECTOR)) {
                    if !disk.dead && landing.lands(sector == start) {
                        disk.land(sector, part);
                    }
                }
            }
        }
        disks
    }
}

fn forget_cached(cache: &mut Vec<(u64, Vec<u8>)>, sectors: &std::ops::Range<u64>) {
    let mut rest = Vec::new();
    for (start, bytes) in cache.drain(..) {
        for (sector, part) in (start..).zip(bytes.chunks(SECTOR)) {
            if !sectors.contains(&sector) {
                rest.push((sector, part.to_vec()));
            }
        }
    }
    *cache = rest;
}

/// Which writes land at a power cut.
pub enum Landing {
    All,
    None,
    /// Each write whole or not at all.
    Writes(Stream, bool),
    /// Each sector by itself.
    Sectors(Stream),
}

impl Landing {
    fn lands(&mut self, is_first: bool) -> bool {
        match self {
            Self::All => true,
            Self::None => false,
            Self::Writes(random, last) => {
                if is_first {
                    *last = random.below(2) == 0;
                }
                *last
            }
            Self::Sectors(random) => random.below(2) == 0,
        }
    }

    pub fn kinds(seed: u64) -> [Self; 4] {
        let stream = |label| Stream::new(seed).fork("landing", label);
        [
            Self::All,
            Self::None,
            Self::Writes(stream(0), false),
            Self::Sectors(stream(1)),
        ]
    }
}

/// Slots are handles as long as no spare takes over.
pub const fn slot(handle: u16) -> Slot {
    Slot(handle)
}
