//! One pass over the members' metadata.
//!
//! All changes to be recorded are gathered and written in passes, one at a time; changes during a
//! pass wait for the next one. A pass has phases, each of which begins when every device has
//! answered the one before:
//!
//! 1. *flush*: all devices that hold data, so that what the metadata are about
//!    to say (clean, recovered up to here, bit cleared) is true of their media;
//! 2. *pages*: bitmap pages, bad-block logs, and the superblock of each write
//!    log, with the checksum of the md superblock to come;
//! 3. *superblocks*, if anything in them changes: with an event count that the
//!    bitmaps have by now, so that a bitmap is never behind its superblock;
//! 4. at the end of an array's run: the write logs are declared empty.
//!
//! A pass that only sets bits is shorter (see `bits`). Where md is imitated there is no first
//! phase: each of its writes is preceded by a flush of that member alone (Linux drivers/md/md.c,
//! `md_super_write`: PREFLUSH and FUA).
//!
//! Writes are with force-unit-access. The members' states in a pass are those of its beginning,
//! before the flush; only whether the array is dirty is decided later, because writes may have come
//! that wait for it.
//!
//! A device that fails any of it is failed. If that was before the end of the flush, the same pass
//! records it, as its claims were not true of that device's medium. Otherwise the next one does. If
//! it cannot be failed, because the array needs it, the array breaks down and the pass ends there:
//! the members keep their previous metadata, which call the array dirty.

mod bits;
mod catch_up;
mod send;

use super::device::{Device, Place};
use super::now_since_1970;
use super::syncs::InSync;
use super::{Mode, PersistentArray};
use crate::mutation::{self, Mutation};
use crate::request::{ComputeStep, MemberError, Operation, Outputs, ScratchId, Slot};
use raidlab_metadata::{Role, Superblock, superblock_checksum};
use raidlab_units::Sectors;
use std::collections::BTreeMap;

/// Bytes and the sector that they go to.
type Placed = (Sectors, Vec<u8>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Phase {
    /// Each member by itself: flush, then pages.
    Bits,
    #[default]
    Flush,
    Pages,
    Superblocks,
    EmptyLogs,
}

/// The state of a pass under way.
#[derive(Debug, Default)]
pub(super) struct Pass {
    phase: Phase,
    /// Members that are being flushed, with the writes that follow for each of them.
    behind_flush: BTreeMap<Slot, Vec<Placed>>,
    /// The number of commands that have not been answered.
    outstanding: usize,
    /// The buffers that commands of this phase use, which are released at its end.
    scratches: Vec<ScratchId>,
    /// The devices of the pass, with the superblocks that they will get.
    targets: Vec<(Slot, Superblock)>,
    /// Bad-block logs to be written: `None` where that is impossible.
    bad_blocks: Vec<(Slot, Option<Placed>)>,
    /// The superblocks of the pass as bytes, each with the device that it goes to.
    encoded: Vec<(Slot, Vec<u8>)>,
    writes_superblocks: bool,
    /// The slots whose failure is recorded once these superblocks are written.
    recording: Vec<Slot>,
    /// The slots that have another member from these superblocks on.
    taken: Vec<Slot>,
    /// Whether no writes were under way when the pass began, and none should be.
    may_be_clean: bool,
    /// Whether bad blocks are recorded that answers wait for.
    pub(super) records_bad_blocks: bool,
    says_dirty: bool,
    empties_logs: bool,
    /// Whether members that are behind get the newest superblock as it was found.
    catches_up: bool,
    /// The part of the array that is in sync once the pass has flushed.
    in_sync: InSync,
    /// Whether the bitmap's file has failed since the pass began, and may be taken for sound until
    /// the next superblocks are written.
    pub(super) bitmap_is_lost: bool,
}

impl Pass {
    /// Removes the failure in this slot from those that this pass records; failures that are named
    /// with the flush before them are not affected.
    pub(super) fn forget_failure(&mut self, slot: Slot) {
        self.recording.retain(|recorded| *recorded != slot);
    }

    /// Returns which commands the pass waits for, in words.
    pub(super) fn waits(&self) -> String {
        let what = match self.phase {
            Phase::Bits => "bits that are set in the bitmap",
            Phase::Flush => "flushes before metadata",
            Phase::Pages => "pages of the bitmap or bad-block logs",
            Phase::Superblocks => "superblocks",
            Phase::EmptyLogs => "the logs' superblocks",
        };
        format!(
            "metadata are being written: {} commands for {what} in flight",
            self.outstanding
        )
    }
}

impl PersistentArray {
    /// Whether there is anything to write.
    pub(super) fn wants_pass(&self) -> bool {
        if !self.is_recorded() {
            return false;
        }
        let pages = self.intent.as_ref();
        self.want_superblocks
            || self.bit_passes.is_wanted()
            || pages.is_some_and(|intent| intent.is_wanted() || intent.has_cleared())
    }

    /// Begins a pass over the metadata; none may be running.
    pub(super) fn begin_pass(&mut self, out: &mut Outputs) {
        if !self.behind.is_empty() && !mutation::is(Mutation::CatchUpSkipped) {
            return self.begin_catching_up(out);
        }
        if !mutation::is(Mutation::PositionAhead) {
            self.take_down_positions();
        }
        let writes_superblocks = std::mem::take(&mut self.want_superblocks);
        let had_cleared = self.intent.as_ref().is_some_and(|it| it.has_cleared());
        if writes_superblocks {
            self.count_event();
        }
        let holds_data = |device: &Device| matches!(device.place, Place::InSync(_));
        if !self.devices.values().any(holds_data) {
            return self.break_down(out);
        }
        let has_bitmap = self.has_internal_bitmap();
        let only_sets_bits = !writes_superblocks && has_bitmap && !had_cleared;
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
            // From here on writes wait: the superblocks on the members will say that
            // there are none.
            self.disk_dirty = false;
        }
        let skips_flush = may_be_clean && mutation::is(Mutation::CleanWithoutFlush)
            || had_cleared && mutation::is(Mutation::BitmapClearedWithoutFlush);
        if writes_superblocks {
            self.name_missed();
        }
        self.pass = Some(Pass {
            targets,
            bad_blocks,
            writes_superblocks,
            recording: self.unrecorded.iter().copied().collect(),
            taken: self.replacements.taken(),
            may_be_clean,
            records_bad_blocks: writes_superblocks
                && std::mem::take(&mut self.bad_blocks_unrecorded),
            empties_logs: self.is_final && self.ring.is_some(),
            in_sync: self.in_sync_to_say(),
            ..Pass::default()
        });
        // With copies the submitting processes set bits; with parity the array's thread does. It
        // waits for superblocks too, and not for cleared bits.
        let takes_the_thread = writes_superblocks || only_sets_bits && self.stripes.is_some();
        self.tell_engine_of_pass(takes_the_thread, out);
        if only_sets_bits {
            self.send_bits(out);
        } else if !skips_flush && !self.imitates_md {
            self.send_flushes(out);
        }
        self.continue_pass(out);
    }

    /// Updates the fields that the superblocks have in common.
    fn count_event(&mut self) {
        if !mutation::is(Mutation::EventsNotCounted) {
            self.array.events += 1;
        }
        self.array.updated = now_since_1970(self.settings.unix_base, self.now);
        self.array.roles = self.roles();
        if let Some(intent) = &mut self.intent {
            intent.want_header();
        }
    }

    /// Adds the failures of members during the flush of the others to those that are recorded.
    fn record_failures_since(&mut self) {
        let roles = self.roles();
        let Some(pass) = &mut self.pass else { return };
        if !pass.writes_superblocks
            || pass.catches_up
            || mutation::is(Mutation::FlushFailureUnnamed)
        {
            return;
        }
        for (number, role) in roles.into_iter().enumerate() {
            if role != Role::Faulty || self.array.roles[number] == role {
                continue;
            }
            self.array.roles[number] = role;
            for (_, superblock) in &mut pass.targets {
                superblock.roles[number] = role;
            }
        }
        pass.recording = self.unrecorded.iter().copied().collect();
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
            let is_broken = matches!(self.mode, Mode::Broken | Mode::Stopped);
            if is_broken && !mutation::is(Mutation::BrokenPassGoesOn) {
                // The phase did not make the claims of the pass true, so they are not written.
                self.pass = None;
                self.tell_engine_of_pass(false, out);
                return;
            }
            match pass.phase {
                Phase::Bits => {
                    self.pass = None;
                    if let Some(intent) = &mut self.intent {
                        intent.pages_arrived();
                    }
                    self.bit_passes.wake();
                    let imitation = self.engine.imitation();
                    self.turn_is_due = imitation.is_some_and(|it| it.has_a_thread());
                    self.tell_engine_of_pass(false, out);
                    return;
                }
                Phase::Flush => {
                    pass.phase = Phase::Pages;
                    self.record_failures_since();
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
                    self.bit_passes.wake();
                    if let Some(pass) = pass {
                        self.pass_done(&pass, out);
                    }
                    self.tell_engine_of_pass(false, out);
                    return;
                }
            }
        }
    }

    /// Handles a device's answer to a metadata command; `None`: it has left since.
    pub(super) fn metadata_done(
        &mut self,
        handle: Option<Slot>,
        result: Result<(), MemberError>,
        out: &mut Outputs,
    ) {
        if let Some(pass) = &mut self.pass {
            pass.outstanding -= 1;
        }
        match (handle, result) {
            (Some(handle), Err(_)) => self.metadata_failed(handle, out),
            (Some(handle), Ok(())) => self.send_behind_flush(handle, out),
            (None, _) => {}
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

    /// Returns the devices of this pass that have not failed or left since.
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
            // Their bitmaps were written before a superblock with this count.
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
        // A flush may have failed meanwhile that was to make durable what this pass calls in sync.
        if self.in_sync.below < pass.in_sync.below && !mutation::is(Mutation::InSyncOfBefore) {
            pass.in_sync = self.in_sync;
        }
        let in_sync = pass.in_sync;
        if !catches_up {
            pass.says_dirty = !pass.may_be_clean || !self.held.is_empty();
            self.array.resync_offset = match pass.says_dirty {
                true => Sectors::ZERO,
                false => in_sync.below,
            };
        }
        for (handle, superblock) in &mut pass.targets {
            if !catches_up {
                superblock.resync_offset = self.array.resync_offset;
            }
            // Assembly refuses superblocks that cannot be encoded.
            if let Ok(bytes) = superblock.encode() {
                pass.encoded.push((*handle, bytes));
            }
        }
        if self.ring.is_none() {
            return;
        }
        let sums: Vec<_> = pass
            .encoded
            .iter()
            .map(|(handle, bytes)| (*handle, superblock_checksum(bytes).unwrap_or(0)))
            .collect();
        for (handle, sum) in sums {
            let says = match catches_up {
                true => self.devices[&handle].found_log,
                false => Some(in_sync.in_logs_of(self.settings.session)),
            };
            if let Some(says) = says {
                self.send_log_superblock(handle, sum, says, out);
            }
        }
    }

    /// Removes a device that leaves from this pass.
    pub(super) fn forget(&mut self, handle: Slot) {
        if let Some(pass) = &mut self.pass {
            pass.targets.retain(|(target, _)| *target != handle);
            pass.encoded.retain(|(target, _)| *target != handle);
            pass.bad_blocks.retain(|(target, _)| *target != handle);
        }
        for target in self.commands.metadata.values_mut() {
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
            self.send_durably(handle, start, bytes, out);
        }
    }

    fn send_empty_logs(&mut self, out: &mut Outputs) {
        let Some(pass) = &self.pass else { return };
        if !pass.empties_logs || !pass.writes_superblocks {
            return;
        }
        let says = pass.in_sync.in_logs_of(0);
        for handle in self.targets() {
            let sum = self.devices[&handle].checksum;
            self.send_log_superblock(handle, sum, says, out);
        }
    }

    fn pass_done(&mut self, pass: &Pass, out: &mut Outputs) {
        if !pass.writes_superblocks || pass.catches_up {
            return;
        }
        self.passes_to_start = self.passes_to_start.saturating_sub(1);
        self.started = self.passes_to_start == 0;
        self.want_superblocks |= !self.started;
        self.disk_dirty = pass.says_dirty && !pass.bitmap_is_lost;
        self.said = pass.in_sync;
        self.want_superblocks |= pass.in_sync.below < self.in_sync.below;
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
        if self.started && !self.bad_blocks_unrecorded {
            self.let_log_go_on(out);
        }
        self.release_answers(false, out);
        if !self.has_unrecorded() {
            out.finished.append(&mut self.held_finished);
        }
    }

    /// Returns the role of every device number.
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
