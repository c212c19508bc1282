//! Faults and administrators, within the budget or beyond it.

use super::{Violation, World, violation};
use crate::core::Added;
use crate::disk::{Health, Overlay};
use crate::reader::slot_of;
use crate::script::Action;
use raidlab_array::{MemberState, Slot, SyncAction};
use raidlab_geometry::SlotSet;

impl World<'_> {
    /// Slots whose disk cannot be counted on.
    pub(super) fn suspects(&self) -> SlotSet {
        let states = self.states();
        let suspect = |slot: &usize| {
            let Some(disk) = self.slots[*slot] else {
                return true;
            };
            states.get(*slot) != Some(&MemberState::InSync)
                || self.disks[disk].health == Health::Gone
                || self.hung[disk].is_some_and(|(_, dies)| dies)
                || self.erring[disk]
        };
        let suspects: SlotSet = (0..self.slots.len()).filter(suspect).map(slot_of).collect();
        suspects | self.unrecorded()
    }

    /// Slots that a restart now would not take as current, by the superblocks.
    pub(super) fn unrecorded(&self) -> SlotSet {
        let all = SlotSet::first(self.slots.len());
        match self.said() {
            Some(said) if self.reader.redundancy() > 0 => all - said.current(),
            _ => SlotSet::EMPTY,
        }
    }

    /// Slots whose disk has unreadable sectors.
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

    /// Parity fits again once the resync after a crash has ended and all
    /// superblocks say so: only then is it flushed as well, and known to those
    /// that are left when others are lost. While a member is
    /// missing there is no resync: started by force, such an array calls itself
    /// clean, and the parity of its open rows goes on from wrong to wrong.
    pub(super) fn look_at_hole(&mut self) {
        let syncing = self.core.as_ref().is_some_and(|core| core.is_syncing());
        let is_whole = self.in_sync().len() == self.slots.len();
        let is_due = (self.hole_open || self.first_sync) && !syncing && is_whole;
        if is_due && self.said().is_some_and(|said| said.is_clean_by_all()) {
            self.hole_open = false;
            self.first_sync = false;
        }
    }

    /// Errors that pass are dealt with once nothing is in work.
    pub(super) fn look_at_errors(&mut self) {
        let is_quiet = self.asked.is_empty()
            && self.flights.is_empty()
            && self.core.as_ref().is_some_and(|core| core.is_idle());
        for (erring, left) in self.erring.iter_mut().zip(&self.transient) {
            *erring &= *left > 0 || !is_quiet;
        }
    }

    /// Whether one more bad slot is within the budget. If not, and the run may
    /// go beyond it, it has done so from now on.
    pub(super) fn allows(&mut self, slot: usize) -> bool {
        self.look_at_hole();
        let bad = (self.suspects() | self.unreadable()).with(slot_of(slot));
        if bad.len() <= self.reader.redundancy() && !self.hole_open {
            return true;
        }
        if self.options.over_budget {
            self.beyond = true;
            if self.hole_open {
                // What is computed without this disk may be wrong.
                self.oracle.forget(0, self.reader.size);
            }
        }
        self.options.over_budget
    }

    /// A fault of the script, if the budget lets it.
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
                    self.transient[disk] = commands;
                    self.erring[disk] = true;
                    "transient error"
                }),
            Action::Slow { member, factor } => self.slots[member].map(|disk| {
                self.disks[disk].slowness = factor;
                "slow disk"
            }),
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

    fn hang(&mut self, member: usize, for_ns: u64, dies: bool) -> Option<&'static str> {
        let disk = self.slots[member]?;
        if self.hung[disk].is_some() || !self.is_alive(disk) || (dies && !self.allows(member)) {
            return None;
        }
        self.hung[disk] = Some((self.now + for_ns, dies));
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
        self.hung[disk] = None;
        self.oracle.members_changed();
        Some("lost disk")
    }

    fn administer_fail(&mut self, member: usize) -> Result<(), Violation> {
        if !self.allows(member) {
            return Ok(());
        }
        let Some(handle) = self.handle_of(member) else {
            return Ok(());
        };
        let mut accepted = false;
        self.call(|core, now, out| accepted = core.fail(now, handle, out).is_ok())?;
        self.oracle.members_changed();
        if accepted {
            self.did("administrator's fail");
        }
        Ok(())
    }

    /// The handle of the device that serves a slot.
    pub(super) fn handle_of(&self, slot: usize) -> Option<Slot> {
        let served = self.core.as_ref()?.served();
        served.get(slot).copied().flatten().map(slot_of)
    }

    /// Every empty or failed slot gets a disk.
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
        let mut removed = false;
        self.call(|core, now, out| removed = core.remove(now, handle, out).is_ok())?;
        if !removed {
            return Ok(());
        }
        self.handles[handle.index()] = None;
        self.follow_slots();
        if let Some(disk) = disk
            && self.is_alive(disk)
            && self.hung[disk].is_none()
        {
            self.retired.push((slot, disk));
        }
        Ok(())
    }

    fn put_in(&mut self, slot: usize, fresh: bool, healed: bool) -> Result<(), Violation> {
        let old = self.retired.iter().position(|(its, _)| *its == slot);
        let disk = match old.filter(|_| !fresh) {
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

    /// A disk is put in, under a handle of its own: how, or why not.
    pub(super) fn attach(&mut self, disk: usize) -> Result<Result<Added, String>, Violation> {
        let free = self.handles.iter().position(Option::is_none);
        let handle = free.unwrap_or(self.handles.len());
        if handle == self.handles.len() {
            self.handles.push(None);
        }
        self.handles[handle] = Some(disk);
        self.oracle.members_changed();
        let mut added = Err(String::new());
        self.call_with_disks(|core, disks, now, out| {
            added = core.add(now, slot_of(handle), (disk, &disks[disk]), out);
        })?;
        if let Err(refused) = &added {
            self.handles[handle] = None;
            let text = format_args!("  adding disk {disk} is refused: {refused}");
            self.trace.note(self.now, &[9], text);
        }
        self.follow_slots();
        Ok(added)
    }

    /// A check or repair begins, if the array lets it.
    pub(super) fn check(&mut self, repair: bool) -> Result<(), Violation> {
        let action = if repair {
            SyncAction::Repair
        } else {
            SyncAction::Check
        };
        self.did(if repair { "repair" } else { "check" });
        self.go_on()?;
        self.call(|core, now, out| {
            // Refused while another sync runs.
            let _running = core.start_sync(now, action, out);
        })
    }
}
