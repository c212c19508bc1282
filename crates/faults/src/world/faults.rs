//! Faults and acts of administrators, within the budget or beyond it.
//!
//! The *budget* is what the level tolerates. Before a fault strikes, the disks that cannot be
//! relied on are counted: failed or dying ones, those whose failure is not recorded, those with
//! unreadable sectors, and after a crash parity that may not fit. A fault that would exceed what
//! the level tolerates is left out, unless the run may go over the budget; from then on the run
//! counts as *beyond* it, and data may be lost.

use super::dispatch::{Flight, TRYING_SLOWNESS};
use super::{Violation, World, violation};
use crate::disk::{Health, Overlay};
use crate::driver::{Added, Driver, write_mostly};
use crate::reader::slot_of;
use crate::script::Action;
use raidlab_array::{MemberState, Slot, SyncAction};
use raidlab_geometry::SlotSet;

/// The parts in which a disk answers a command at the most: each answer is whole at least every
/// second time, so that more do not come in a billion commands.
const MOST_PARTS: u64 = 30;

impl World<'_> {
    /// Returns the slots whose disk cannot be relied on.
    pub(super) fn suspects(&self) -> SlotSet {
        let states = self.states();
        let suspect = |slot: &usize| {
            let Some(disk) = self.slots[*slot] else {
                return true;
            };
            states.get(*slot) != Some(&MemberState::InSync)
                || self.disks[disk].health == Health::Gone
                || self.standing[disk].hung.is_some_and(|(_, dies)| dies)
                || self.standing[disk].erring
                || self.standing[disk].trying
        };
        let suspects: SlotSet = (0..self.slots.len()).filter(suspect).map(slot_of).collect();
        suspects | self.unrecorded() | self.with_failing_successors()
    }

    /// Returns the slots whose next disk is gone, or will fail its next commands.
    fn with_failing_successors(&self) -> SlotSet {
        let attached = self.handles.iter().flatten().copied();
        attached
            .filter(|disk| !self.slots.contains(&Some(*disk)))
            .filter(|disk| self.standing[*disk].erring || self.disks[*disk].health == Health::Gone)
            .filter_map(|disk| self.is_about_to_serve(disk))
            .map(slot_of)
            .collect()
    }

    /// Returns the slots whose disk a restart now would not take as current, by the superblocks.
    pub(super) fn unrecorded(&self) -> SlotSet {
        let all = SlotSet::first(self.slots.len());
        match self.said() {
            Some(said) if self.reader.redundancy() > 0 => all - said.current(),
            _ => SlotSet::EMPTY,
        }
    }

    /// Returns the slots whose disk has unreadable sectors.
    pub(super) fn unreadable(&self) -> SlotSet {
        let marked = |slot: &usize| {
            self.slots[*slot].is_some_and(|number| {
                let disk = &self.disks[number];
                disk.overlays(0, disk.sectors()).next().is_some() || self.is_noted(number)
            })
        };
        (0..self.slots.len()).filter(marked).map(slot_of).collect()
    }

    /// Whether a crash leaves parity that may not fit.
    pub(super) fn has_hole(&self) -> bool {
        self.options.level.parity_count() > 0 && !self.logged
    }

    /// Marks parity as fitting once the resync after a crash has ended and all superblocks record
    /// that: only then is it flushed as well, and known to the members that are left when others
    /// are lost. While a member is missing there is no resync: started by force, such an array
    /// calls itself clean, and the parity of its open rows stays wrong.
    pub(super) fn look_at_hole(&mut self) {
        let syncing = self.driver.as_ref().is_some_and(Driver::is_syncing);
        let is_whole = self.in_sync().len() == self.slots.len();
        let is_due = (self.hole_open || self.first_sync) && !syncing && is_whole;
        if is_due && self.said().is_some_and(|said| said.is_clean_by_all()) {
            self.hole_open = false;
            self.first_sync = false;
        }
    }

    /// Clears transient errors, which are dealt with once nothing is in work.
    pub(super) fn look_at_errors(&mut self) {
        let is_quiet = self.asked.is_empty()
            && self.flights.is_empty()
            && self.driver.as_ref().is_some_and(Driver::is_idle);
        for standing in &mut self.standing {
            standing.erring &= standing.transient > 0 || !is_quiet;
        }
    }

    /// Clears the mark of a disk that may exceed the driver's time limit, once it answers normally
    /// and all commands sent before are answered.
    pub(super) fn look_at_patience(&mut self) {
        let limit = self.options.driver.command_limit_ns;
        for disk in 0..self.standing.len() {
            let is_late = |flight: &Flight| {
                let is_old = self.now - flight.since > limit / 4;
                flight.disk == Some(disk) && (flight.is_trying || is_old)
            };
            self.standing[disk].trying &= self.standing[disk].hung.is_some()
                || self.is_trying(Some(disk))
                || self.flights.values().any(is_late);
        }
    }

    /// Returns whether one more bad slot is within the budget. If not, and the run may go beyond
    /// it, the run is beyond it from now on.
    pub(super) fn allows(&mut self, slot: usize) -> bool {
        self.look_at_hole();
        self.look_at_patience();
        let bad = (self.suspects() | self.unreadable()).with(slot_of(slot));
        if bad.len() <= self.reader.redundancy() && !self.hole_open {
            return true;
        }
        if self.options.over_budget {
            self.beyond = true;
            if self.hole_open {
                // Data computed without this disk may be wrong.
                self.oracle.forget(0, self.reader.size);
            }
        }
        self.options.over_budget
    }

    /// Carries out a fault of the script, if the budget permits it.
    pub(super) fn fault(&mut self, action: Action) -> Result<(), Violation> {
        let done = match action {
            Action::Unreadable {
                member,
                sector,
                count,
            } => self.make_unreadable(member, sector, count),
            Action::Transient { member, commands } => self.slots[member]
                .filter(|_| self.allows(member))
                .map(|disk| {
                    self.standing[disk].transient = commands;
                    self.standing[disk].erring = true;
                    "transient error"
                }),
            Action::Slow { member, factor } => self.slow(member, factor),
            Action::Hang {
                member,
                for_ns,
                dies,
            } => self.hang(member, for_ns, dies),
            Action::Lose { member } => self.lose(member),
            Action::NoteBad {
                member,
                sector,
                count,
            } => self.note_bad(member, sector, count),
            Action::FillLog { member, left } => self.fill_log(member, left),
            Action::Fail { member } => return self.administer_fail(member),
            Action::UnreadableMetadata { member, sector } => {
                self.make_metadata_unreadable(member, sector)
            }
            Action::Mend { fresh, healed } => return self.mend(fresh, healed),
            _ => None,
        };
        if let Some(what) = done {
            self.did(what);
            self.trace.note(self.now, &[8], format_args!("  {what}"));
        }
        Ok(())
    }

    fn make_unreadable(&mut self, member: usize, sector: u64, count: u64) -> Option<&'static str> {
        let disk = self.slots[member]?;
        let (offset, size) = self.reader.areas[member];
        if !self.allows(member) {
            return None;
        }
        for sector in sector..(sector + count).min(size) {
            self.disks[disk].afflict(offset + sector, Overlay::Unreadable);
        }
        Some("latent sector errors")
    }

    fn make_metadata_unreadable(&mut self, member: usize, sector: u64) -> Option<&'static str> {
        let disk = self.slots[member]?;
        let (offset, size) = self.reader.areas[member];
        if !self.allows(member) {
            return None;
        }
        let all = self.disks[disk].sectors();
        let sector = sector % (all - size);
        let sector = if sector < offset {
            sector
        } else {
            sector + size
        };
        self.disks[disk].afflict(sector, Overlay::Unreadable);
        Some("unreadable metadata")
    }

    fn slow(&mut self, member: usize, factor: u64) -> Option<&'static str> {
        let disk = self.slots[member]?;
        let is_trying = self.has_limit() && self.tries_patience(factor);
        if is_trying && !self.allows(member) {
            return None;
        }
        self.standing[disk].trying |= is_trying;
        self.disks[disk].slowness = factor;
        Some("slow disk")
    }

    /// Whether a disk that is so slow may leave a command unanswered for longer than the driver
    /// waits. Where it answers in parts, each part takes its time anew; more than
    /// [`MOST_PARTS`] of them do not come.
    pub(super) fn tries_patience(&self, factor: u64) -> bool {
        let faults = &self.options.driver;
        let is_in_parts = faults.short_percent + faults.again_percent > 0;
        let parts = if is_in_parts { MOST_PARTS } else { 1 };
        let longest = factor.saturating_mul(self.options.latency_high_ns * parts);
        factor >= TRYING_SLOWNESS || self.has_limit() && longest >= faults.command_limit_ns
    }

    /// Whether the driver gives up members that do not answer.
    fn has_limit(&self) -> bool {
        self.options.driver.command_limit_ns < u64::MAX
    }

    fn hang(&mut self, member: usize, for_ns: u64, dies: bool) -> Option<&'static str> {
        let disk = self.slots[member]?;
        // Commands in flight have waited already, but for less than the other half.
        let is_trying = for_ns >= self.options.driver.command_limit_ns / 2;
        if self.standing[disk].hung.is_some() || !self.is_alive(disk) {
            return None;
        }
        if (dies || is_trying) && !self.allows(member) {
            return None;
        }
        self.standing[disk].trying |= is_trying;
        self.standing[disk].hung = Some((self.now + for_ns, dies));
        self.disks[disk].health = Health::Hung;
        Some(if dies {
            "hung disk that dies"
        } else {
            "hung disk"
        })
    }

    fn lose(&mut self, member: usize) -> Option<&'static str> {
        let disk = self.slots[member]?;
        if !self.is_alive(disk) || !self.allows(member) {
            return None;
        }
        self.disks[disk].health = Health::Gone;
        self.standing[disk].hung = None;
        self.oracle.members_changed();
        Some("lost disk")
    }

    pub(super) fn administer_fail(&mut self, member: usize) -> Result<(), Violation> {
        if !self.allows(member) {
            return Ok(());
        }
        let Some(handle) = self.handle_of(member) else {
            return Ok(());
        };
        let failed = self.call(|driver, now| driver.fail(now, handle))?;
        self.oracle.members_changed();
        if failed.is_ok() {
            self.did("administrator's fail");
        }
        Ok(())
    }

    /// Returns the handle of the device that serves a slot.
    pub(super) fn handle_of(&self, slot: usize) -> Option<Slot> {
        let served = self.driver.as_ref()?.served();
        served.get(slot).copied().flatten().map(slot_of)
    }

    /// Gives every empty or failed slot a disk.
    pub(super) fn mend(&mut self, fresh: bool, healed: bool) -> Result<(), Violation> {
        self.go_on()?;
        for slot in 0..self.slots.len() {
            let state = self.states().get(slot).copied();
            if state == Some(MemberState::Faulty) {
                self.take_out(slot)?;
            }
            if self.states().get(slot) == Some(&MemberState::Missing) {
                self.put_in(slot, fresh, healed)?;
            }
        }
        Ok(())
    }

    fn take_out(&mut self, slot: usize) -> Result<(), Violation> {
        let Some(handle) = self.handle_of(slot) else {
            return Ok(());
        };
        let disk = self.slots[slot];
        let removed = self.call(|driver, now| driver.remove(now, handle))?;
        if removed.is_err() {
            return Ok(());
        }
        match disk {
            Some(disk) => self.let_go(handle, disk, slot),
            None => self.handles[handle.index()] = None,
        }
        Ok(())
    }

    /// Keeps a disk that was removed, and may come back as one of this slot.
    pub(super) fn let_go(&mut self, handle: Slot, disk: usize, slot: usize) {
        self.handles[handle.index()] = None;
        self.follow_slots();
        // The disk stays claimed until the last command to it has ended.
        let mut flights = self.flights.values();
        let is_free = flights.all(|it| it.disk != Some(disk));
        if self.is_alive(disk) && self.standing[disk].hung.is_none() && is_free {
            self.retired.push((slot, disk));
        }
    }

    fn put_in(&mut self, slot: usize, fresh: bool, healed: bool) -> Result<(), Violation> {
        let old = self.retired.iter().position(|(its, _)| *its == slot);
        // A disk may have died since it was removed.
        let least = self.least_sectors();
        let lives = |index: &usize| {
            let disk = self.retired[*index].1;
            self.is_alive(disk) && self.disks[disk].sectors() >= least
        };
        let disk = match old.filter(|index| !fresh && lives(index)) {
            Some(index) => self.retired.remove(index).1,
            None => self.new_disk(),
        };
        if healed {
            self.disks[disk].heal();
        }
        self.disks[disk].slowness = 1;
        match self.attach(disk)? {
            Ok(Added::Again) => self.did("re-add by bitmap"),
            Ok(Added::New) => self.did("add"),
            Err(refused) if !self.beyond => {
                return Err(violation("verb", format!("add to slot {slot}: {refused}")));
            }
            Err(_) => {}
        }
        Ok(())
    }

    /// Adds a disk under a handle of its own; returns its role, or the reason of a refusal.
    pub(super) fn attach(&mut self, disk: usize) -> Result<Result<Added, String>, Violation> {
        self.oracle.members_changed();
        let flags = write_mostly(self.options, disk);
        let added = self.call_with_disks(|driver, shelf, now| {
            driver.add(now, (disk, &shelf.member(disk)), flags)
        })?;
        match &added {
            Ok((handle, _)) => {
                let handle = handle.index();
                if self.handles.len() <= handle {
                    self.handles.resize(handle + 1, None);
                }
                self.handles[handle] = Some(disk);
                self.standing[disk].failed = false;
            }
            Err(refused) => {
                let text = format_args!("  adding disk {disk} is refused: {refused}");
                self.trace.note(self.now, &[9], text);
            }
        }
        self.take_up()?;
        Ok(added.map(|(_, how)| how))
    }

    /// Starts a check or repair, if the array permits it.
    pub(super) fn check(&mut self, repair: bool) -> Result<(), Violation> {
        let action = if repair {
            SyncAction::Repair
        } else {
            SyncAction::Check
        };
        self.did(if repair { "repair" } else { "check" });
        self.go_on()?;
        // The array refuses this while another sync runs.
        let _running = self.call(|driver, now| driver.start_sync(now, action))?;
        Ok(())
    }
}
