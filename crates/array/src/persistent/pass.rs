//! One pass over the members' metadata.
//!
//! Whatever has to be remembered is gathered and written in passes, one at a
//! time; what comes up during a pass waits for the next one. A pass has phases,
//! each of which begins when every device has answered the one before:
//!
//! 1. *flush*: all devices that hold data, so that what the metadata are about
//!    to say (clean, recovered up to here, bit cleared) is true of their media;
//! 2. *pages*: bitmap pages, bad-block logs, and the superblock of each write
//!    log, with the checksum of the md superblock to come;
//! 3. *superblocks*, if anything in them changes: with an event count that the
//!    bitmaps have by now, so that a bitmap is never behind its superblock;
//! 4. at the end of an array's run: the write logs are declared empty.
//!
//! Writes are with force-unit-access. What a pass says of the members is taken
//! down when it begins, before the flush; only whether the array is dirty is
//! decided later, because writes may have come that wait for it.
//!
//! A device that fails any of it is failed, and the next pass records that.
//!
//! *Catching up.* A crash between two members' superblocks leaves some of them
//! one event behind the others, which assembly allows for. If the next count
//! were written to one of the others now and there were a crash again, they
//! would be two behind, like a member that has missed writes, and the array
//! could lack members that have missed nothing. So in a run that starts with
//! such members the first pass brings them level, and does nothing else: they
//! get the newest superblock as it stands, without a new event count, in place
//! of their own. Until it is over no member is ahead of where the newest one
//! was found, and all are still at most one behind. What such a superblock says
//! is what the assembly believed anyway. If a log was replayed, then their log
//! superblocks go before, of the session that was believed.
//!
//! *Members that stay away.* A member that was in service and is not here may
//! be one event ahead of those that are, for the same reason. So a run without
//! it begins only after two passes with superblocks: then the others are ahead
//! of it whatever it says, and it can never be taken for one that has what was
//! written meanwhile.

use super::PersistentArray;
use super::device::{Device, Place};
use super::intent::PAGE_SECTORS;
use super::log_superblock::LogBlock;
use super::now_since_1970;
use crate::engine::EXTERNAL_BITMAP;
use crate::mutation::{self, Mutation};
use crate::request::{
    BufferId, CommandId, ComputeStep, MemberCommand, MemberError, Operation, Outputs, Purpose,
    ScratchId, Slot,
};
use raidlab_metadata::{PAGE_BYTES, Role, Superblock, superblock_checksum};
use raidlab_units::{SECTOR_BYTES, Sectors};

/// Bytes and the sector that they go to.
type Placed = (Sectors, Vec<u8>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Flush,
    Pages,
    Superblocks,
    EmptyLogs,
}

/// A pass under way.
#[derive(Debug)]
pub(super) struct Pass {
    phase: Phase,
    /// Commands that have not been answered.
    outstanding: usize,
    /// Buffers of this phase.
    scratches: Vec<ScratchId>,
    /// Devices that take part, with the superblocks that they will get.
    targets: Vec<(Slot, Superblock)>,
    /// Bad-block logs to be written: `None` where that is impossible.
    bad_blocks: Vec<(Slot, Option<Placed>)>,
    /// Encoded superblocks.
    encoded: Vec<(Slot, Vec<u8>)>,
    writes_superblocks: bool,
    /// Failures that these superblocks record.
    recording: Vec<Slot>,
    /// Slots whose member is another one from these superblocks on.
    taken: Vec<Slot>,
    /// No writes were under way when the pass began, and none should be.
    may_be_clean: bool,
    /// Bad blocks are recorded that answers wait for.
    pub(super) records_bad_blocks: bool,
    says_dirty: bool,
    empties_logs: bool,
    /// Members that are behind get the newest superblock as it was found.
    catches_up: bool,
    /// The array is in sync below this sector once the pass has flushed.
    in_sync_below: Sectors,
}

impl PersistentArray {
    /// Whether there is anything to write.
    pub(super) fn wants_pass(&self) -> bool {
        if !self.is_recorded() {
            return false;
        }
        let pages = self.intent.as_ref();
        self.want_superblocks
            || pages.is_some_and(|intent| intent.is_wanted() || intent.has_cleared())
    }

    /// Begins a pass.
    pub(super) fn begin_pass(&mut self, out: &mut Outputs) {
        if !self.behind.is_empty() {
            return self.begin_catching_up(out);
        }
        let writes_superblocks = std::mem::take(&mut self.want_superblocks);
        let had_cleared = self.intent.as_ref().is_some_and(|it| it.has_cleared());
        if writes_superblocks {
            if !mutation::is(Mutation::EventsNotCounted) {
                self.array.events += 1;
            }
            self.array.updated = now_since_1970(self.settings.unix_base, self.now);
            self.array.roles = self.roles();
            if let Some(intent) = &mut self.intent {
                intent.want_header();
            }
        }
        let holds_data = |device: &Device| matches!(device.place, Place::InSync(_));
        if !self.devices.values().any(holds_data) {
            return self.break_down(out);
        }
        let has_bitmap = self.has_internal_bitmap();
        let bad_blocks = match writes_superblocks {
            true => self.bad_block_logs(),
            false => Vec::new(),
        };
        let targets: Vec<_> = self
            .devices
            .iter()
            .filter(|(_, device)| device.place != Place::Faulty)
            .map(|(handle, device)| (*handle, device.superblock(&self.array, has_bitmap)))
            .collect();
        let may_be_clean = writes_superblocks
            && !self.active
            && (self.writes == 0 || mutation::is(Mutation::CleanMarkEarly));
        if may_be_clean {
            // From here on writes wait: what is on the members is about to say
            // that there are none.
            self.disk_dirty = false;
        }
        let skips_flush = may_be_clean && mutation::is(Mutation::CleanWithoutFlush)
            || had_cleared && mutation::is(Mutation::BitmapClearedWithoutFlush);
        self.pass = Some(Pass {
            phase: Phase::Flush,
            outstanding: 0,
            scratches: Vec::new(),
            targets,
            bad_blocks,
            encoded: Vec::new(),
            writes_superblocks,
            recording: self.unrecorded.iter().copied().collect(),
            taken: self.replacements.taken(),
            may_be_clean,
            records_bad_blocks: writes_superblocks
                && std::mem::take(&mut self.bad_blocks_unrecorded),
            says_dirty: false,
            empties_logs: self.is_final && self.session != 0,
            catches_up: false,
            in_sync_below: self.in_sync_below,
        });
        if !skips_flush {
            self.send_flushes(out);
        }
        self.continue_pass(out);
    }

    /// Begins the pass that brings members level with the newest one.
    fn begin_catching_up(&mut self, out: &mut Outputs) {
        let has_bitmap = self.has_internal_bitmap();
        let behind = std::mem::take(&mut self.behind);
        // As it was found: the options may have changed the array since.
        let is_newest = |device: &&Device| {
            device.place.slot().is_some() && device.own.events == self.array.events
        };
        let newest = self.devices.values().find(is_newest).map(|it| &it.own);
        let targets = behind.into_iter().filter_map(|handle| {
            let device = self.devices.get(&handle)?;
            let is_member = !matches!(device.place, Place::Spare | Place::Faulty);
            is_member.then_some(())?;
            Some((handle, device.superblock(newest?, has_bitmap)))
        });
        self.pass = Some(Pass {
            phase: Phase::Flush,
            outstanding: 0,
            scratches: Vec::new(),
            targets: targets.collect(),
            bad_blocks: Vec::new(),
            encoded: Vec::new(),
            writes_superblocks: true,
            recording: Vec::new(),
            taken: Vec::new(),
            may_be_clean: false,
            records_bad_blocks: false,
            says_dirty: false,
            empties_logs: false,
            catches_up: true,
            in_sync_below: self.in_sync_below,
        });
        self.send_flushes(out);
        self.continue_pass(out);
    }

    /// Goes on to the next phases while nothing is outstanding.
    fn continue_pass(&mut self, out: &mut Outputs) {
        while let Some(pass) = &mut self.pass {
            if pass.outstanding > 0 {
                return;
            }
            for scratch in std::mem::take(&mut pass.scratches) {
                out.steps.push(ComputeStep::Release { scratch });
            }
            match pass.phase {
                Phase::Flush => {
                    pass.phase = Phase::Pages;
                    self.send_pages(out);
                }
                Phase::Pages => {
                    pass.phase = Phase::Superblocks;
                    if let Some(intent) = &mut self.intent
                        && !pass.catches_up
                    {
                        intent.pages_arrived();
                    }
                    self.send_superblocks(out);
                }
                Phase::Superblocks => {
                    pass.phase = Phase::EmptyLogs;
                    self.send_empty_logs(out);
                }
                Phase::EmptyLogs => {
                    let pass = self.pass.take();
                    if let Some(pass) = pass {
                        self.pass_done(&pass, out);
                    }
                    return;
                }
            }
        }
    }

    /// A device answered a metadata command; `None`: it has left since.
    pub(super) fn metadata_done(
        &mut self,
        handle: Option<Slot>,
        result: Result<(), MemberError>,
        out: &mut Outputs,
    ) {
        if let Some(pass) = &mut self.pass {
            pass.outstanding -= 1;
        }
        if let (Some(handle), Err(_)) = (handle, result) {
            self.metadata_failed(handle, out);
        }
        self.continue_pass(out);
    }

    fn send_flushes(&mut self, out: &mut Outputs) {
        for handle in self.targets() {
            let holds_data = self
                .devices
                .get(&handle)
                .is_some_and(|device| !matches!(device.place, Place::Spare | Place::Faulty));
            if holds_data {
                self.send(handle, Operation::Flush, Sectors::ZERO, None, out);
            }
        }
    }

    /// The devices of this pass that have not failed or left since.
    fn targets(&self) -> Vec<Slot> {
        let targets = self.pass.iter().flat_map(|pass| &pass.targets);
        targets
            .map(|(handle, _)| *handle)
            .filter(|handle| {
                let device = self.devices.get(handle);
                device.is_some_and(|device| device.place != Place::Faulty)
            })
            .collect()
    }

    fn send_pages(&mut self, out: &mut Outputs) {
        self.encode_superblocks(out);
        if self.pass.as_ref().is_some_and(|pass| pass.catches_up) {
            // Their bitmaps were written before a superblock of this count.
            return;
        }
        self.send_bitmap(out);
        self.send_bad_blocks(out);
    }

    /// Decides whether the array is dirty, and encodes the superblocks, whose
    /// checksums the logs' superblocks need.
    fn encode_superblocks(&mut self, out: &mut Outputs) {
        let Some(pass) = &mut self.pass else { return };
        if !pass.writes_superblocks {
            return;
        }
        let catches_up = pass.catches_up;
        let in_sync_below = pass.in_sync_below;
        if !catches_up {
            pass.says_dirty = !pass.may_be_clean || !self.held.is_empty();
            self.array.resync_offset = match pass.says_dirty {
                true => Sectors::ZERO,
                false => in_sync_below,
            };
        }
        for (handle, superblock) in &mut pass.targets {
            if !catches_up {
                superblock.resync_offset = self.array.resync_offset;
            }
            // Assembly refuses to write what cannot be encoded.
            if let Ok(bytes) = superblock.encode() {
                pass.encoded.push((*handle, bytes));
            }
        }
        if self.session == 0 {
            return;
        }
        let sums: Vec<_> = pass
            .encoded
            .iter()
            .map(|(handle, bytes)| (*handle, superblock_checksum(bytes).unwrap_or(0)))
            .collect();
        for (handle, sum) in sums {
            let found = self.devices[&handle].found_log;
            match (catches_up, found) {
                (true, None) => {}
                (true, Some((session, below))) => {
                    self.send_log_superblock(handle, sum, session, below, out);
                }
                (false, _) => {
                    self.send_log_superblock(handle, sum, self.session, in_sync_below, out);
                }
            }
        }
    }

    /// Writes the superblock of a device's log.
    fn send_log_superblock(
        &mut self,
        handle: Slot,
        sum: u32,
        session: u64,
        in_sync_below: Sectors,
        out: &mut Outputs,
    ) {
        let (Some(ring), Some(device)) = (self.ring, self.devices.get_mut(&handle)) else {
            return;
        };
        let Some(area) = device.log_area else { return };
        if matches!(device.place, Place::Faulty | Place::Spare) {
            return;
        }
        let block = LogBlock {
            array_uuid: self.array.array_uuid,
            device_uuid: device.own.device_uuid,
            session,
            in_sync_below,
            checksums: [sum, device.checksum],
            ring,
            sequence: device.log_sequence,
        };
        device.log_sequence = device.log_sequence.wrapping_add(1);
        let start = area.start + block.place();
        self.send(handle, Operation::Write, start, Some(block.encode()), out);
    }

    fn send_bitmap(&mut self, out: &mut Outputs) {
        let events = self.array.events;
        let Some(intent) = &mut self.intent else {
            return;
        };
        let bytes_used = usize::try_from(intent.superblock().bytes()).unwrap_or(usize::MAX);
        let end = bytes_used.next_multiple_of(512);
        let runs = intent.take_pages(true, events);
        for (page, mut bytes) in runs {
            bytes.truncate(end.saturating_sub(page * PAGE_BYTES));
            let skip = page as u64 * PAGE_SECTORS;
            if self.bitmap_is_external {
                self.send(
                    EXTERNAL_BITMAP,
                    Operation::Write,
                    Sectors(skip),
                    Some(bytes),
                    out,
                );
                continue;
            }
            for handle in self.targets() {
                let device = &self.devices[&handle];
                let start = device.beside(device.own.bitmap_offset);
                let (Some(start), false) = (start, device.place == Place::Spare) else {
                    continue;
                };
                let start = start + Sectors(skip);
                self.send(handle, Operation::Write, start, Some(bytes.clone()), out);
            }
        }
    }

    /// The bad-block logs that have changed.
    fn bad_block_logs(&mut self) -> Vec<(Slot, Option<Placed>)> {
        let mut logs = Vec::new();
        for (handle, device) in &mut self.devices {
            if device.place == Place::Faulty || !std::mem::take(&mut device.bad_blocks_changed) {
                continue;
            }
            let place = device.own.bad_block_log;
            let log = place.and_then(|log| {
                let start = device.beside(log.offset)?;
                Some((start, log.encode(&device.bad_blocks).ok()?))
            });
            logs.push((*handle, log));
        }
        logs
    }

    fn send_bad_blocks(&mut self, out: &mut Outputs) {
        let alive = self.targets();
        let Some(pass) = &mut self.pass else { return };
        for (handle, log) in std::mem::take(&mut pass.bad_blocks) {
            match log {
                _ if !alive.contains(&handle) => {}
                Some((start, bytes)) => {
                    self.send(handle, Operation::Write, start, Some(bytes), out);
                }
                // What cannot be remembered cannot be left to the member.
                None => self.metadata_failed(handle, out),
            }
        }
    }

    /// A device leaves: this pass has nothing more to do with it.
    pub(super) fn forget(&mut self, handle: Slot) {
        if let Some(pass) = &mut self.pass {
            pass.targets.retain(|(target, _)| *target != handle);
            pass.encoded.retain(|(target, _)| *target != handle);
            pass.bad_blocks.retain(|(target, _)| *target != handle);
        }
        for target in self.metadata_commands.values_mut() {
            if *target == Some(handle) {
                *target = None;
            }
        }
    }

    fn send_superblocks(&mut self, out: &mut Outputs) {
        let alive = self.targets();
        let Some(pass) = &mut self.pass else { return };
        for (handle, mut bytes) in std::mem::take(&mut pass.encoded) {
            let Some(device) = self.devices.get_mut(&handle) else {
                continue;
            };
            if !alive.contains(&handle) {
                continue;
            }
            device.checksum = superblock_checksum(&bytes).unwrap_or(0);
            let start = device.own.super_offset;
            bytes.resize(device.superblock_sectors(bytes.len()) * 512, 0);
            self.send(handle, Operation::Write, start, Some(bytes), out);
        }
    }

    fn send_empty_logs(&mut self, out: &mut Outputs) {
        let Some(pass) = &self.pass else { return };
        if !pass.empties_logs || !pass.writes_superblocks {
            return;
        }
        let in_sync_below = pass.in_sync_below;
        for handle in self.targets() {
            let sum = self.devices[&handle].checksum;
            self.send_log_superblock(handle, sum, 0, in_sync_below, out);
        }
    }

    pub(super) fn new_scratch(&mut self) -> ScratchId {
        let scratch = ScratchId(self.next_scratch);
        // Long before it wraps around, the first ones are free again.
        self.next_scratch = self.next_scratch.checked_add(1).unwrap_or(FIRST_SCRATCH);
        scratch
    }

    /// Sends a command to a device, with its bytes in a buffer of its own.
    fn send(
        &mut self,
        handle: Slot,
        operation: Operation,
        start: Sectors,
        bytes: Option<Vec<u8>>,
        out: &mut Outputs,
    ) {
        let Some(pass) = &mut self.pass else { return };
        pass.outstanding += 1;
        let phase = pass.phase;
        let id = CommandId(self.next_command);
        self.next_command += 1;
        self.metadata_commands.insert(id, Some(handle));
        let mut count = Sectors::ZERO;
        let mut buffer = BufferId::None;
        if let Some(bytes) = bytes {
            let scratch = self.new_scratch();
            if let Some(pass) = &mut self.pass {
                pass.scratches.push(scratch);
            }
            count = Sectors(bytes.len() as u64 / SECTOR_BYTES);
            buffer = BufferId::Scratch {
                scratch,
                skip: Sectors::ZERO,
            };
            out.steps.push(ComputeStep::Allocate { scratch, count });
            out.steps.push(ComputeStep::Fill { to: buffer, bytes });
        }
        let volatile = match phase {
            Phase::Superblocks => mutation::is(Mutation::SuperblockVolatile),
            Phase::Pages => mutation::is(Mutation::BitmapVolatile),
            Phase::Flush | Phase::EmptyLogs => false,
        };
        out.commands.push(MemberCommand {
            id,
            slot: handle,
            operation,
            start,
            count,
            force_unit_access: operation == Operation::Write && !volatile,
            purpose: Purpose::Metadata,
            buffer,
        });
    }

    fn pass_done(&mut self, pass: &Pass, out: &mut Outputs) {
        if !pass.writes_superblocks || pass.catches_up {
            return;
        }
        self.passes_to_start = self.passes_to_start.saturating_sub(1);
        self.started = self.passes_to_start == 0;
        self.want_superblocks |= !self.started;
        self.disk_dirty = pass.says_dirty;
        for slot in &pass.recording {
            if self.unrecorded.remove(slot) {
                self.recorded.insert(*slot);
            }
        }
        for (handle, superblock) in &pass.targets {
            self.replacements
                .set_recorded(*handle, superblock.recovery_offset);
        }
        for slot in &pass.taken {
            self.replacement_recorded(*slot);
        }
        self.tell_what_is_recorded(out);
        if !self.has_unrecorded() {
            out.finished.append(&mut self.held_finished);
        }
    }

    /// The role of every device number.
    fn roles(&self) -> Vec<Role> {
        let mut roles = vec![Role::Spare; self.array.roles.len()];
        let mut put = |number: u32, role| {
            let index = usize::try_from(number).unwrap_or(usize::MAX);
            if let Some(entry) = roles.get_mut(index) {
                *entry = role;
            }
        };
        for number in &self.gone {
            put(*number, Role::Faulty);
        }
        for device in self.devices.values() {
            let role = match (device.role(), device.last_slot) {
                (Role::Faulty, Some(slot)) if mutation::is(Mutation::FailureNotRecorded) => {
                    Role::Slot(slot.0)
                }
                (role, _) => role,
            };
            put(device.own.device_number, role);
        }
        roles
    }
}

const FIRST_SCRATCH: u32 = crate::engine::FIRST_OUTER_SCRATCH;
