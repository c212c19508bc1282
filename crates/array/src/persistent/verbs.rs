//! An administrator's verbs, in mdadm's words. Devices are named by their handles.

use super::assembly::{AssembledMember, Candidate, Part};
use super::device::{Device, Place};
use super::error::VerbError;
use super::new_device::NewDevice;
use super::{Mode, PersistentArray};
use crate::admission::Admission;
use crate::engine::{SyncAction, SyncRequest};
use crate::member::MemberState;
use crate::mutation::{self, Mutation};
use crate::request::{Outputs, Slot};
use raidlab_metadata::{Checksum, Features, MemberMetadata, Role, Superblock};
use raidlab_units::{Nanos, Sectors};

impl PersistentArray {
    /// mdadm's `--fail`: marks a device failed, which is no longer used.
    ///
    /// # Errors
    /// When there is no such device, it has failed before, or the array needs it.
    pub fn fail(&mut self, now: Nanos, handle: Slot, out: &mut Outputs) -> Result<(), VerbError> {
        self.now = now;
        let device = self.device(handle)?;
        match device.place {
            Place::InSync(slot) | Place::Recovering { slot, .. } => {
                self.with_engine_do(out, |engine, out| engine.fail(now, slot, out))?;
            }
            Place::Replacing { .. } if self.replacements.fills(handle) => {
                self.replacement_failed(handle, out);
            }
            Place::Spare | Place::Replacing { .. } => self.retire(handle),
            Place::Faulty => {
                return Err(crate::config::AdminError::AlreadyFaulty(handle).into());
            }
        }
        self.pump(out);
        Ok(())
    }

    /// mdadm's `--remove`: removes a failed device or a spare from the array. Its commands in
    /// flight must still be completed.
    ///
    /// # Errors
    /// When there is no such device, it is in service, or its failure is not recorded yet.
    pub fn remove(&mut self, now: Nanos, handle: Slot, out: &mut Outputs) -> Result<(), VerbError> {
        self.now = now;
        let place = self.device(handle)?.place;
        if !matches!(place, Place::Faulty | Place::Spare) {
            return Err(VerbError::InService(handle));
        }
        if self.replacements.is_busy(handle) {
            return Err(VerbError::Busy);
        }
        let slot = (0..)
            .map(Slot)
            .zip(&self.served)
            .find(|(_, served)| **served == Some(handle))
            .map(|(slot, _)| slot);
        if let Some(slot) = slot {
            if self.unrecorded.contains(&slot) {
                return Err(VerbError::Busy);
            }
            self.with_engine_do(out, |engine, out| engine.remove(now, slot, out))?;
            self.served[slot.index()] = None;
        }
        self.forget(handle);
        if let Some(device) = self.devices.remove(&handle)
            && place == Place::Faulty
        {
            self.gone.insert(device.own.device_number);
        }
        self.want_superblocks = true;
        self.pump(out);
        Ok(())
    }

    /// mdadm's `--add`: adds a new device, which serves an empty slot, or becomes a spare. Any data
    /// on it are lost.
    ///
    /// # Errors
    /// When the handle is in use, the device is too small, or the array takes no new members.
    pub fn add(
        &mut self,
        now: Nanos,
        handle: Slot,
        new: NewDevice,
        out: &mut Outputs,
    ) -> Result<(), VerbError> {
        self.now = now;
        self.check_changeable()?;
        if self.devices.contains_key(&handle) {
            return Err(VerbError::DeviceExists(handle));
        }
        let device = self.prepare(new)?;
        if !self.has_log_room(&device) {
            return Err(VerbError::NoLogRoom);
        }
        self.gone.remove(&device.own.device_number);
        self.devices.insert(handle, device);
        self.want_superblocks = true;
        self.pump(out);
        Ok(())
    }

    /// mdadm's `--re-add`: adds a former member, to which only the writes since it left are copied.
    ///
    /// # Errors
    /// When the device was no member, its slot is taken, or the bitmap does not cover (any more)
    /// what it lacks.
    pub fn re_add(
        &mut self,
        now: Nanos,
        handle: Slot,
        candidate: Candidate,
        out: &mut Outputs,
    ) -> Result<(), VerbError> {
        self.now = now;
        self.check_changeable()?;
        if self.devices.contains_key(&handle) {
            return Err(VerbError::DeviceExists(handle));
        }
        let slot = self.former_slot(&candidate)?;
        let intent = self.intent.as_ref().ok_or(VerbError::NoBitmap)?;
        let ranges = match mutation::is(Mutation::ReAddTrusted) {
            true => Vec::new(),
            false => intent.spans(),
        };
        let admission = Admission::Ranges(ranges);
        let part = Part::Recovering(slot, admission.clone());
        let mut device = Device::new(AssembledMember { candidate, part });
        if !self.has_log_room(&device) {
            return Err(VerbError::NoLogRoom);
        }
        device.bad_blocks_changed = device.own.bad_block_log.is_some();
        self.gone.remove(&device.own.device_number);
        self.devices.insert(handle, device);
        let states = self.engine.member_states();
        let vacate = states.get(slot.index()) == Some(&MemberState::Faulty);
        if !self.seat(handle, slot, admission, vacate, out) {
            self.devices.remove(&handle);
            return Err(VerbError::SlotTaken(slot));
        }
        self.pump(out);
        Ok(())
    }

    /// Returns the metadata that would be found on a device in sync if it left now, as
    /// [`Self::re_add`] takes them. `None` for all others, which md accepts as new ones only.
    #[must_use]
    pub fn former(&self, handle: Slot) -> Option<Candidate> {
        let device = self.devices.get(&handle)?;
        let is_current = matches!(device.place, Place::InSync(_));
        is_current.then(|| Candidate {
            name: device.name.clone(),
            size: device.size,
            metadata: MemberMetadata {
                superblock: device.superblock(&self.array, self.has_internal_bitmap()),
                checksum: Checksum::default(),
                legacy: None,
                bitmap: None,
                bitmap_error: None,
                bad_blocks: device.bad_blocks.clone(),
                log_area: Sectors::ZERO..Sectors::ZERO,
            },
            log: None,
            rotational: device.rotational,
        })
    }

    /// Returns the slot that a former member may take again.
    fn former_slot(&self, candidate: &Candidate) -> Result<Slot, VerbError> {
        let old = &candidate.metadata.superblock;
        let array = &self.array;
        let Role::Slot(slot) = old.role() else {
            return Err(VerbError::NotAMember);
        };
        if old.array_uuid != array.array_uuid {
            return Err(VerbError::NotAMember);
        }
        let slot = Slot(slot);
        let shape = |it: &Superblock| (it.level, it.layout, it.chunk, it.used_size);
        if shape(old) != shape(array) || slot.index() >= self.served.len() {
            return Err(VerbError::Changed);
        }
        // The device left while a present member was in service, too; otherwise it may have
        // run without them.
        let has_witness = self.devices.values().any(|device| {
            let number = usize::try_from(device.own.device_number).unwrap_or(usize::MAX);
            let role = old.roles.get(number).copied();
            matches!(device.place, Place::InSync(slot) if role == Some(Role::Slot(slot.0)))
        });
        let number_taken = self
            .devices
            .values()
            .any(|device| device.own.device_number == old.device_number);
        let has_witness = has_witness || mutation::is(Mutation::ReAddUnwitnessed);
        if old.events > array.events || !has_witness {
            return Err(VerbError::Unwitnessed);
        }
        if number_taken {
            return Err(VerbError::NumberTaken);
        }
        let needed = old.data_offset.0.saturating_add(array.used_size.0);
        if candidate.size.0 < needed {
            return Err(VerbError::TooSmall {
                size: candidate.size.0,
                needed,
            });
        }
        let is_free = self.served[slot.index()].is_none_or(|handle| {
            let device = self.devices.get(&handle);
            device.is_none_or(|device| device.place == Place::Faulty)
        });
        // While the others' superblocks call it current, its content must not change: after a crash
        // it would be taken for current, whatever it has lost.
        let is_settled =
            self.started && !self.unrecorded.contains(&slot) && !self.recorded.contains(&slot);
        let is_settled = is_settled || mutation::is(Mutation::ReAddUnsettled);
        if !is_free || !is_settled || self.replacements.has(slot) {
            return Err(VerbError::SlotTaken(slot));
        }
        let intent = self.intent.as_ref().ok_or(VerbError::NoBitmap)?;
        let cleared = intent.superblock().events_cleared;
        let was_whole = !old.features.has(Features::RECOVERY_OFFSET)
            && !old.features.has(Features::RECOVERY_BITMAP);
        let is_too_old = old.events < cleared && !mutation::is(Mutation::ReAddTooOld);
        let was_whole = was_whole || mutation::is(Mutation::ReAddHalfFilled);
        if is_too_old || !was_whole {
            return Err(VerbError::TooOld {
                events: old.events,
                cleared,
            });
        }
        Ok(slot)
    }

    /// mdadm's `--action=check`: compares, and changes nothing.
    ///
    /// # Errors
    /// When a sync runs or the level has nothing to compare.
    pub fn check(&mut self, now: Nanos, out: &mut Outputs) -> Result<(), VerbError> {
        self.compare(now, SyncAction::Check, out)
    }

    /// mdadm's `--action=repair`: compares, and corrects differences.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub fn repair(&mut self, now: Nanos, out: &mut Outputs) -> Result<(), VerbError> {
        self.compare(now, SyncAction::Repair, out)
    }

    fn compare(
        &mut self,
        now: Nanos,
        action: SyncAction,
        out: &mut Outputs,
    ) -> Result<(), VerbError> {
        self.now = now;
        self.check_changeable()?;
        if self.syncs.asked.is_some() {
            return Err(crate::config::AdminError::SyncRunning.into());
        }
        self.syncs.asked = Some(action);
        let before = std::mem::take(&mut self.syncs.mismatches);
        let request = SyncRequest {
            action,
            ranges: None,
        };
        let started = self.with_engine_do(out, |engine, out| engine.start_sync(now, request, out));
        if let Err(error) = started {
            self.syncs.asked = None;
            self.syncs.mismatches = before;
            return Err(error.into());
        }
        if self.engine.sync_status().is_none() {
            self.syncs.asked = None;
        }
        self.pump(out);
        Ok(())
    }

    /// mdadm's `--action=idle`: ends the running sync early. A resync or recovery goes on when
    /// something changes, or at the next start.
    pub fn stop_sync(&mut self, now: Nanos, out: &mut Outputs) {
        self.now = now;
        self.syncs.resync_waits = true;
        self.syncs.resume_due = false;
        self.with_engine_do(out, |engine, out| engine.stop_sync(now, out));
        self.pump(out);
    }

    /// Sets md's `sync_speed_min` and `sync_speed_max`, in KiB/s per member.
    pub fn set_sync_speed(&mut self, minimum: u64, maximum: u64) {
        self.engine.set_sync_speed(minimum, maximum);
        self.replacements.set_speeds(minimum, maximum);
    }

    /// mdadm's `--readonly`: stops writes; the array is marked clean as soon as those under
    /// way are done.
    ///
    /// # Errors
    /// When the array is being stopped or has failed.
    pub fn read_only(&mut self, now: Nanos, out: &mut Outputs) -> Result<(), VerbError> {
        self.now = now;
        match self.mode {
            Mode::ReadWrite => {}
            Mode::ReadOnly | Mode::Untouched => return Ok(()),
            Mode::Stopping | Mode::Stopped => return Err(VerbError::Stopping),
            Mode::Broken => return Err(VerbError::Broken),
        }
        self.mode = Mode::ReadOnly;
        self.engine
            .set_corrects(mutation::is(Mutation::ReadOnlyCorrected));
        self.with_engine_do(out, |engine, out| engine.halt_syncs(now, out));
        self.pump(out);
        Ok(())
    }

    /// mdadm's `--readwrite`: makes the array take writes again.
    ///
    /// # Errors
    /// When the array is being stopped or has failed, or was started without permission to write:
    /// then it has to be assembled again.
    pub fn read_write(&mut self, now: Nanos, out: &mut Outputs) -> Result<(), VerbError> {
        self.now = now;
        match self.mode {
            Mode::ReadWrite => return Ok(()),
            Mode::ReadOnly => self.mode = Mode::ReadWrite,
            Mode::Untouched => return Err(VerbError::Untouched),
            Mode::Stopping | Mode::Stopped => return Err(VerbError::Stopping),
            Mode::Broken => return Err(VerbError::Broken),
        }
        self.engine.set_corrects(true);
        self.syncs.resume_due = !mutation::is(Mutation::StoppedSyncForgotten);
        self.resume_replacements();
        self.pump(out);
        Ok(())
    }

    /// Resumes syncs that were stopped, once the blocks that they had in work have
    /// ended: until then the engine takes no other. Returns whether it did.
    pub(super) fn resume(&mut self, out: &mut Outputs) -> bool {
        let has_ended = self.syncs.asked.is_none() && self.engine.sync_status().is_none();
        if !self.syncs.resume_due || !has_ended || self.mode != Mode::ReadWrite {
            return false;
        }
        self.syncs.resume_due = false;
        self.syncs.resync_waits = false;
        self.resume_recovery(out);
        true
    }

    /// Continues a recovery that was stopped: a check of nothing ends the hold.
    pub(super) fn resume_recovery(&mut self, out: &mut Outputs) {
        let fills = |device: &Device| matches!(device.place, Place::Recovering { .. });
        if self.syncs.asked.is_some() || !self.devices.values().any(fills) {
            return;
        }
        let now = self.now;
        let request = SyncRequest {
            action: SyncAction::Check,
            ranges: Some(Vec::new()),
        };
        self.syncs.asked = Some(SyncAction::Check);
        let started = self.with_engine_do(out, |engine, out| engine.start_sync(now, request, out));
        if started.is_err() {
            self.syncs.asked = None;
        }
    }

    /// mdadm's `--stop`: stops writes; once all requests under way are done and flushed, the
    /// superblocks are marked clean and the write logs emptied.
    pub fn stop(&mut self, now: Nanos, out: &mut Outputs) {
        self.now = now;
        if matches!(self.mode, Mode::Stopping | Mode::Stopped) {
            return;
        }
        if matches!(self.mode, Mode::Untouched | Mode::Broken) {
            self.mode = Mode::Stopped;
            return;
        }
        self.mode = Mode::Stopping;
        self.with_engine_do(out, |engine, out| engine.halt_syncs(now, out));
        self.pump(out);
    }

    pub(super) fn device(&self, handle: Slot) -> Result<&Device, VerbError> {
        self.devices
            .get(&handle)
            .ok_or(VerbError::NoSuchDevice(handle))
    }

    pub(super) fn check_changeable(&self) -> Result<(), VerbError> {
        match self.mode {
            Mode::ReadWrite if self.is_recorded() => Ok(()),
            Mode::ReadWrite => Err(VerbError::NoRedundancy),
            Mode::ReadOnly => Err(VerbError::ReadOnly),
            Mode::Untouched => Err(VerbError::Untouched),
            Mode::Stopping | Mode::Stopped => Err(VerbError::Stopping),
            Mode::Broken => Err(VerbError::Broken),
        }
    }

    /// Whether the array is in sync everywhere.
    pub(super) fn is_in_sync(&self) -> bool {
        self.in_sync.below == Superblock::IN_SYNC
    }
}
