//! The parts of a pass besides the superblocks: bitmap pages, bad-block logs, the superblocks of
//! write logs; and the construction of a metadata command.

use super::{Phase, Placed};
use crate::engine::EXTERNAL_BITMAP;
use crate::mutation::{self, Mutation};
use crate::persistent::PersistentArray;
use crate::persistent::device::Place;
use crate::persistent::intent::PAGE_SECTORS;
use crate::persistent::log_superblock::{LogBlock, LogSays, Numbers};
use crate::request::{
    BufferId, ComputeStep, MemberCommand, Operation, Outputs, Purpose, Sender, Slot,
};
use raidlab_metadata::PAGE_BYTES;
use raidlab_units::{SECTOR_BYTES, Sectors};

impl PersistentArray {
    /// Writes the superblock of a device's log.
    pub(super) fn send_log_superblock(
        &mut self,
        handle: Slot,
        sum: u32,
        says: LogSays,
        out: &mut Outputs,
    ) {
        // Once the run has begun, md's superblocks call them failed.
        let absent = match self.started {
            true => Numbers::default(),
            false => self.absent,
        };
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
            says,
            checksums: [sum, device.checksum],
            ring,
            sequence: device.log_sequence,
            absent,
        };
        device.log_sequence = device.log_sequence.wrapping_add(1);
        let start = area.start + block.place();
        self.send(handle, Operation::Write, start, Some(block.encode()), out);
    }

    pub(super) fn send_bitmap(&mut self, out: &mut Outputs) {
        let events = self.array.events;
        let Some(intent) = &mut self.intent else {
            return;
        };
        let end = intent.end_bytes();
        let runs = intent.take_pages(true, events);
        self.keep_pages_for_who_came_late();
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
                self.send_durably(handle, start + Sectors(skip), bytes.clone(), out);
            }
        }
    }

    /// Keeps the bitmap's pages wanted for a device that has come since the pass began: it takes
    /// part from the next one on, and has none of them, so all are written then.
    fn keep_pages_for_who_came_late(&mut self) {
        let Some(pass) = &self.pass else { return };
        let takes_part = |handle: &Slot| pass.targets.iter().any(|(target, _)| target == handle);
        let mut devices = self.devices.iter();
        let is_late = devices.any(|(handle, device)| {
            !matches!(device.place, Place::Spare | Place::Faulty) && !takes_part(handle)
        });
        if let Some(intent) = self.intent.as_mut().filter(|_| is_late)
            && !mutation::is(Mutation::LateBitmapPartial)
        {
            intent.want_all();
        }
    }

    /// Returns the bad-block logs that have changed.
    pub(super) fn bad_block_logs(&mut self) -> Vec<(Slot, Option<Placed>)> {
        let mut logs = Vec::new();
        for (handle, device) in &mut self.devices {
            if device.place == Place::Faulty || !std::mem::take(&mut device.bad_blocks_changed) {
                continue;
            }
            logs.push((*handle, device.bad_block_log()));
        }
        logs
    }

    pub(super) fn send_bad_blocks(&mut self, out: &mut Outputs) {
        let alive = self.targets();
        let Some(pass) = &mut self.pass else { return };
        for (handle, log) in std::mem::take(&mut pass.bad_blocks) {
            match log {
                _ if !alive.contains(&handle) => {}
                Some((start, bytes)) => self.send_durably(handle, start, bytes, out),
                // Bad blocks that cannot be recorded cannot be left to the member.
                None => self.metadata_failed(handle, out),
            }
        }
    }

    /// Writes to a device whose cache this pass has flushed. Where md is imitated the device is
    /// flushed before each of these writes instead.
    pub(super) fn send_durably(
        &mut self,
        handle: Slot,
        start: Sectors,
        bytes: Vec<u8>,
        out: &mut Outputs,
    ) {
        match self.imitates_md {
            true => self.send_with_flush(handle, vec![(start, bytes)], out),
            false => self.send(handle, Operation::Write, start, Some(bytes), out),
        }
    }

    /// Flushes a device, and then writes to it.
    pub(super) fn send_with_flush(
        &mut self,
        handle: Slot,
        mut writes: Vec<Placed>,
        out: &mut Outputs,
    ) {
        let Some(pass) = &mut self.pass else { return };
        let is_flushing = pass.behind_flush.contains_key(&handle);
        let behind = pass.behind_flush.entry(handle).or_default();
        behind.append(&mut writes);
        if !is_flushing {
            self.send(handle, Operation::Flush, Sectors::ZERO, None, out);
        }
    }

    /// Sends the writes behind a flush that has ended, or notes another answer of the device.
    pub(super) fn send_behind_flush(&mut self, handle: Slot, out: &mut Outputs) {
        let Some(pass) = &mut self.pass else { return };
        for (start, bytes) in pass.behind_flush.remove(&handle).unwrap_or_default() {
            self.send(handle, Operation::Write, start, Some(bytes), out);
        }
    }

    /// Sends a command to a device, with its bytes in a buffer of its own.
    pub(super) fn send(
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
        // md's writes are one request with the flush before them (`md_super_write`).
        let is_for_writes = self.imitates_md && pass.behind_flush.contains_key(&handle);
        let id = self.commands.new_id();
        self.commands.metadata.insert(id, Some(handle));
        let mut count = Sectors::ZERO;
        let mut buffer = BufferId::None;
        if let Some(bytes) = bytes {
            let scratch = self.commands.new_scratch();
            if let Some(pass) = &mut self.pass {
                pass.scratches.push(scratch);
            }
            count = Sectors(bytes.len() as u64 / SECTOR_BYTES);
            buffer = scratch.whole();
            out.steps.push(ComputeStep::Allocate { scratch, count });
            out.steps.push(ComputeStep::Fill { to: buffer, bytes });
        }
        self.tell_engine_of_metadata(handle, count);
        let volatile = match phase {
            Phase::Superblocks => mutation::is(Mutation::SuperblockVolatile),
            Phase::Pages | Phase::Bits => mutation::is(Mutation::BitmapVolatile),
            Phase::Flush | Phase::EmptyLogs => false,
        };
        out.commands.push(MemberCommand {
            id,
            slot: handle,
            operation,
            start,
            count,
            force_unit_access: match operation {
                Operation::Write => !volatile,
                Operation::Flush => is_for_writes,
                Operation::Read | Operation::Discard => false,
            },
            purpose: Purpose::Metadata,
            sender: Sender::Thread,
            buffer,
        });
    }
}
