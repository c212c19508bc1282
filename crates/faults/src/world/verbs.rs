//! Administrators' orders, right ones and mistakes.
//!
//! A mistake must be refused and change nothing: the promises that follow hold as if it had not
//! been made. While the array is read-only, writes must be refused, and no part of them may
//! ever be seen.

use super::dispatch::TRYING_SLOWNESS;
use super::{Violation, World, violation};
use crate::disk::{Disk, Health};
use crate::driver::{Driver, Order};
use crate::reader::slot_of;
use crate::script::{Mistake, Verb};
use raidlab_array::{MemberState, Slot};
use raidlab_geometry::SlotSet;

impl World<'_> {
    pub(super) fn administer(&mut self, verb: Verb) -> Result<(), Violation> {
        if self.reader.redundancy() == 0 {
            return Ok(());
        }
        let done = match verb {
            Verb::Spare => self.add_spare()?.then_some("spare"),
            Verb::Replace { member } => self.replace(member)?.then_some("replace"),
            Verb::LoseSpare => self.lose_spare().then_some("lost spare"),
            Verb::SpareErrs { commands } => self.spare_errs(commands).then_some("spare that errs"),
            Verb::SlowSpare { factor } => self.slow_spare(factor).then_some("slow spare"),
            Verb::FailSpare { newest } => {
                self.fail_spare(newest)?.then_some("spare failed by hand")
            }
            Verb::RemoveSpare { newest } => {
                let removed = self.remove_spare(newest)?;
                removed.then_some("spare removed by hand")
            }
            Verb::LoseBitmapFile => self.lose_bitmap_file().then_some("lost bitmap file"),
            Verb::BitmapFileErrs { commands } => {
                let errs = self.bitmap_file_errs(commands);
                errs.then_some("bitmap file that errs")
            }
            Verb::Idle => {
                self.paused = true;
                self.order(Order::Idle)?.is_ok().then_some("idle")
            }
            Verb::Speed { minimum, maximum } => {
                let order = Order::Speed(minimum, maximum);
                self.order(order)?.is_ok().then_some("speed")
            }
            Verb::ReadOnly | Verb::ReadOnlyAtOnce => {
                if verb == Verb::ReadOnly {
                    self.drain()?;
                }
                self.order(Order::ReadOnly)?.is_ok().then_some("read-only")
            }
            Verb::ReadWrite => {
                // For an array that takes writes this order changes nothing.
                let was_read_only = self.is_read_only();
                self.did("read-write");
                let writes = self.order(Order::ReadWrite)?.is_ok();
                self.paused &= !(writes && was_read_only);
                None
            }
        };
        if let Some(what) = done {
            self.did(what);
        }
        Ok(())
    }

    /// Gives the core an order and returns its answer.
    fn order(&mut self, order: Order) -> Result<Result<(), String>, Violation> {
        let answer = self.call(|driver, now| driver.order(now, order))?;
        let text = format_args!("  {order:?}: {answer:?}");
        self.trace.note(self.now, &[11], text);
        self.oracle.members_changed();
        self.follow_slots();
        Ok(answer)
    }

    /// Whether writes are refused.
    pub(super) fn is_read_only(&self) -> bool {
        let status = self.driver.as_ref().and_then(Driver::status);
        status.is_some_and(|status| status.state.read_only)
    }

    /// Makes the array take writes again, so that a sync that was ended goes on.
    pub(super) fn go_on(&mut self) -> Result<(), Violation> {
        if self.paused {
            // Without this a resync that was ended would begin anew only after the next start.
            let _refused = self.order(Order::ReadOnly)?;
        }
        if self.paused || self.is_read_only() {
            let _refused = self.order(Order::ReadWrite)?;
        }
        self.paused = false;
        Ok(())
    }

    fn add_spare(&mut self) -> Result<bool, Violation> {
        self.go_on()?;
        let disk = self.new_disk();
        match self.attach(disk)? {
            Err(refused) if !self.beyond => {
                Err(violation("verb", format!("a spare is refused: {refused}")))
            }
            added => Ok(added.is_ok()),
        }
    }

    fn replace(&mut self, member: usize) -> Result<bool, Violation> {
        if self.states().get(member) != Some(&MemberState::InSync) || !self.add_spare()? {
            return Ok(false);
        }
        let Some(handle) = self.handle_of(member) else {
            return Ok(false);
        };
        Ok(self.order(Order::Replace(handle))?.is_ok())
    }

    /// Lets a disk that is attached and serves no slot die.
    fn lose_spare(&mut self) -> bool {
        let Some(disk) = self.spare_that_may_fail() else {
            return false;
        };
        self.disks[disk].health = Health::Gone;
        self.standing[disk].hung = None;
        true
    }

    /// Makes the next commands to a disk that is attached and serves no slot fail.
    fn spare_errs(&mut self, commands: u32) -> bool {
        let Some(disk) = self.spare_that_may_fail() else {
            return false;
        };
        self.standing[disk].transient = commands;
        self.standing[disk].erring = true;
        true
    }

    /// Slows the newest of the disks that are attached and serve no slot.
    fn slow_spare(&mut self, factor: u64) -> bool {
        let attached = self.handles.iter().flatten().copied();
        let spares = attached.filter(|disk| !self.slots.contains(&Some(*disk)));
        // A slower one may be given up, and would have to count as lost.
        let factor = factor.min(TRYING_SLOWNESS - 1);
        match spares.filter(|disk| self.is_alive(*disk)).max() {
            Some(disk) => self.disks[disk].slowness = factor,
            None => return false,
        }
        true
    }

    /// Returns a disk that is attached and serves no slot, with its handle.
    fn spare(&self, newest: bool) -> Option<(Slot, usize)> {
        let attached = self.handles.iter().enumerate();
        let attached = attached.filter_map(|(handle, disk)| Some((slot_of(handle), (*disk)?)));
        let mut spares = attached.filter(|(_, disk)| !self.slots.contains(&Some(*disk)));
        match newest {
            true => spares.max_by_key(|(_, disk)| *disk),
            false => spares.next(),
        }
    }

    /// Fails a disk that serves no slot, as an administrator: no data depends on it.
    fn fail_spare(&mut self, newest: bool) -> Result<bool, Violation> {
        let Some((handle, disk)) = self.spare(newest) else {
            return Ok(false);
        };
        let slot = self.is_about_to_serve(disk);
        if slot.is_some_and(|slot| !self.allows(slot)) {
            return Ok(false);
        }
        let has_failed = self.state_of(handle) == Some("faulty");
        let failed = self.call(|driver, now| driver.fail(now, handle))?;
        self.oracle.members_changed();
        match failed {
            Err(refused) if !self.beyond && !has_failed => {
                let detail = format!("the failing of a spare is refused: {refused}");
                Err(violation("verb", detail))
            }
            failed => Ok(failed.is_ok()),
        }
    }

    /// Returns the state of a device in mdadm's words.
    fn state_of(&self, handle: Slot) -> Option<&'static str> {
        let status = self.driver.as_ref()?.status()?;
        let mut devices = status.devices.iter();
        let device = devices.find(|device| device.handle == handle);
        device.map(|device| device.state)
    }

    /// Removes a disk that serves no slot, as an administrator; this is refused
    /// during its recovery.
    fn remove_spare(&mut self, newest: bool) -> Result<bool, Violation> {
        let Some((handle, disk)) = self.spare(newest) else {
            return Ok(false);
        };
        let waits = self.state_of(handle) == Some("spare");
        let removed = self.call(|driver, now| driver.remove(now, handle))?;
        match removed {
            Ok(()) => self.let_go(handle, disk, handle.index()),
            Err(refused) if waits && !self.beyond => {
                let detail = format!("the removal of a spare is refused: {refused}");
                return Err(violation("verb", detail));
            }
            Err(_) => return Ok(false),
        }
        Ok(true)
    }

    /// Returns the first disk that is attached and serves no slot, if the budget
    /// permits its failure.
    fn spare_that_may_fail(&mut self) -> Option<usize> {
        let attached = self.handles.iter().flatten();
        let mut spares = attached.filter(|disk| !self.slots.contains(&Some(**disk)));
        let disk = *spares.find(|disk| self.is_alive(**disk))?;
        let slot = self.is_about_to_serve(disk);
        slot.is_none_or(|slot| self.allows(slot)).then_some(disk)
    }

    /// Returns the slot that a disk is about to take, all of whose content it has: a replacement is
    /// the member from then on, in md, too, and if it has died by then without having got a
    /// command, a member has died. Where no command is in flight, the array has yet to send it one,
    /// and nothing is lost with it.
    pub(super) fn is_about_to_serve(&self, disk: usize) -> Option<usize> {
        if self.flights.is_empty() {
            return None;
        }
        let status = self.driver.as_ref()?.status()?;
        let handle = self.handles.iter().position(|its| *its == Some(disk))?;
        let mut devices = status.devices.iter();
        let device = devices.find(|device| device.handle.index() == handle)?;
        let used = self.reader.areas.iter().map(|(_, size)| *size).min();
        let is_full = device
            .recovered_below
            .is_none_or(|below| Some(below.0) >= used);
        let slot = device.replaces?.index();
        is_full.then_some(slot)
    }

    pub(super) fn mistake(&mut self, mistake: Mistake) -> Result<(), Violation> {
        if self.beyond || self.reader.redundancy() == 0 {
            return Ok(());
        }
        if mistake == Mistake::AddSmall {
            // When writes are taken again a recovery may start, which is no part of the mistake.
            self.go_on()?;
        }
        let before = self.states();
        let (what, accepted) = match mistake {
            Mistake::Remove { member } => ("removal of a member in service", self.remove(member)?),
            Mistake::FailNeeded { member } => {
                ("failing of a needed member", self.fail_needed(member)?)
            }
            Mistake::ReAddInService { member } => {
                ("second add of a member", self.add_again(member)?)
            }
            Mistake::AddSmall => ("adding of a small disk", self.add_small()?),
            Mistake::ReplaceWithNothing { member } => (
                "replacing without a spare",
                self.replace_with_nothing(member)?,
            ),
        };
        match accepted {
            None => Ok(()),
            Some(true) => Err(violation("verb", format!("{what} is not refused"))),
            Some(false) if self.states() != before => {
                let detail = format!("{what} is refused, and changes the members");
                Err(violation("verb", detail))
            }
            Some(false) => {
                self.did(what);
                Ok(())
            }
        }
    }

    /// Returns whether the removal of a member that is in service is accepted; `None` if it is
    /// not in service.
    fn remove(&mut self, member: usize) -> Result<Option<bool>, Violation> {
        let state = self.states().get(member).copied();
        let in_service = matches!(
            state,
            Some(MemberState::InSync | MemberState::Recovering { .. })
        );
        let Some(handle) = self.handle_of(member).filter(|_| in_service) else {
            return Ok(None);
        };
        let removed = self.call(|driver, now| driver.remove(now, handle))?;
        Ok(Some(removed.is_ok()))
    }

    /// Returns whether the failing of a member is accepted whose data no other member has; `None`
    /// if it is not such a member.
    fn fail_needed(&mut self, member: usize) -> Result<Option<bool>, Violation> {
        let in_sync = self.in_sync();
        let slot = slot_of(member);
        let lost = SlotSet::first(self.slots.len()) - in_sync.without(slot);
        let images = self.images();
        let step = self.options.chunk.max(1) as usize;
        let mut sectors = (0..self.reader.size).step_by(step);
        let is_needed = sectors.any(|sector| self.reader.read(&images, lost, sector).is_none());
        if !in_sync.contains(slot) || !is_needed {
            return Ok(None);
        }
        let Some(handle) = self.handle_of(member) else {
            return Ok(None);
        };
        let failed = self.call(|driver, now| driver.fail(now, handle))?;
        Ok(Some(failed.is_ok()))
    }

    /// Returns whether a disk in service is accepted a second time under another name: the driver
    /// has to recognize it as a member, since the name alone differs.
    fn add_again(&mut self, member: usize) -> Result<Option<bool>, Violation> {
        let (Some(disk), true) = (
            self.slots[member],
            self.states().get(member) == Some(&MemberState::InSync),
        ) else {
            return Ok(None);
        };
        let again =
            self.call_with_disks(|driver, shelf, now| driver.re_add(now, &shelf.member(disk)))?;
        Ok(Some(again.is_some_and(|answer| answer.is_ok())))
    }

    fn add_small(&mut self) -> Result<Option<bool>, Violation> {
        let smallest = (0..self.options.members).map(|slot| self.reader.areas[slot].1);
        let smallest = smallest.min().unwrap_or(0);
        let disk = self.disks.len();
        let _same = self.new_disk();
        self.disks[disk] = Disk::new(smallest / 2 / 8 * 8 + 64, self.options.write_through);
        Ok(Some(self.attach(disk)?.is_ok()))
    }

    fn replace_with_nothing(&mut self, member: usize) -> Result<Option<bool>, Violation> {
        let attached = self.handles.iter().flatten();
        let has_spare = attached.count() > self.slots.iter().flatten().count();
        let (Some(handle), false) = (self.handle_of(member), has_spare) else {
            return Ok(None);
        };
        Ok(Some(self.order(Order::Replace(handle))?.is_ok()))
    }
}
