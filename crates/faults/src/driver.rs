//! The driver that users run, under the control of the simulated world.
//!
//! It is the owner of crate `serve`, with its requests, payloads, member commands, verbs and
//! metadata, but without thread, kernel and files: time is the world's, commands to members wait in
//! a [`Line`](line::Line) until the world lets disks carry them out, and commands that the driver
//! itself waits for, such as reads of metadata, go to the disks at once, through a
//! [`Shelf`](shelf::Shelf). No state is kept outside the disks.

mod arrays;
mod line;
mod shelf;

pub(crate) use arrays::{
    HowToAssemble, Ready, Refusal, assemble, create, data_offset, device_uuid, write_mostly,
};
pub(crate) use line::{Happening, Line};
pub(crate) use shelf::{Interruptions, Shelf, errno};

use crate::options::Options;
use raidlab_array::{
    ArrayStatus, MemberState, NewDevice, Outputs, PersistentArray, Slot, SyncAction, VerbError,
};
use raidlab_metadata::DeviceFlags;
use raidlab_serve::array::{AttachError, Owner, place_of, read_candidate, versions_on};
use raidlab_serve::export::Request;
use raidlab_serve::member::{Member, Members, MembersConfig};
use raidlab_units::{Nanos, Sectors, in_one_line};

/// An array that runs under the driver that users run, on simulated disks.
pub(crate) struct Driver {
    pub(crate) owner: Owner,
    pub(crate) line: Line,
}

/// An administrator's order beyond the verbs that faults need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// Copy the content of this device to a spare, which takes its slot.
    Replace(Slot),
    /// End the sync that runs.
    Idle,
    /// Set the lowest and the highest speed of syncs, in KiB/s.
    Speed(u64, u64),
    /// Make the array read-only: it takes no more writes.
    ReadOnly,
    /// Make the array writable again; syncs that were ended go on.
    ReadWrite,
}

/// The role in which the array accepted a disk that was added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Added {
    /// A new member: all of it is recovered.
    New,
    /// The former member that it was: only what it lacks is recovered.
    Again,
}

impl Driver {
    /// Starts an assembled array. `traced`: compute steps are described in words, too.
    pub(crate) fn start(
        ready: Ready,
        options: &Options,
        now: Nanos,
        traced: bool,
    ) -> Result<Self, String> {
        let mut out = Outputs::default();
        let engine = options.engine();
        let array = PersistentArray::start(ready.assembly, &engine, ready.settings, now, &mut out);
        let array = array.map_err(|error| in_one_line(&error))?;
        let line = Line::new(traced);
        let config = MembersConfig {
            command_limit: Nanos(options.driver.command_limit_ns),
        };
        let mut members = Members::new(Box::new(line.clone()), config, None);
        for (handle, member) in &ready.files {
            let attached = members.attach(place_of(*handle), member);
            attached.map_err(|error| error.to_string())?;
        }
        Ok(Self {
            owner: Owner::of_array(array, out, members, Box::new(line.clone())),
            line,
        })
    }

    fn array(&self) -> Option<&PersistentArray> {
        self.owner.array()
    }

    /// Returns the state of the member in each slot; empty when the array does not run.
    pub(crate) fn states(&self) -> Vec<MemberState> {
        let states = self.array().map(PersistentArray::member_states);
        states.unwrap_or_default()
    }

    /// Returns what the array holds back and why: a line for each cause.
    pub(crate) fn waits(&self) -> Vec<String> {
        let waits = self.array().map(PersistentArray::waits);
        waits.unwrap_or_default()
    }

    /// Returns the handle of the device that serves each slot, failed ones included.
    pub(crate) fn served(&self) -> Vec<Option<usize>> {
        let served = self.array().map(PersistentArray::served);
        let served = served.unwrap_or_default();
        let index = |handle: &Option<Slot>| handle.map(Slot::index);
        served.iter().map(index).collect()
    }

    /// Returns the status of the array as users see it.
    pub(crate) fn status(&self) -> Option<ArrayStatus> {
        self.array().map(PersistentArray::status)
    }

    /// Whether writes go through a log, so that a crash opens no write hole.
    pub(crate) fn keeps_log(&self) -> bool {
        self.status()
            .is_some_and(|status| status.log > Sectors::ZERO)
    }

    /// Whether a resync, recovery, check or repair runs or is about to.
    pub(crate) fn is_syncing(&self) -> bool {
        let Some(array) = self.array() else {
            return false;
        };
        // A resync of parity waits for the missing members.
        let vacant =
            |state: &MemberState| matches!(state, MemberState::Faulty | MemberState::Missing);
        let waits = array.member_states().iter().any(vacant) && array.status().sync.is_none();
        array.is_syncing() && !waits
    }

    /// Whether no request is in work and none held back.
    pub(crate) fn is_idle(&self) -> bool {
        self.array().is_none_or(PersistentArray::is_idle)
    }

    /// Passes a client's request to the driver.
    pub(crate) fn request(&mut self, now: Nanos, request: Request) {
        self.owner.request(now, request);
    }

    /// Marks a member failed.
    pub(crate) fn fail(&mut self, now: Nanos, handle: Slot) -> Result<(), String> {
        told(
            self.owner
                .on_array(now, |array, now, out| array.fail(now, handle, out)),
        )
    }

    /// Removes a failed member.
    pub(crate) fn remove(&mut self, now: Nanos, handle: Slot) -> Result<(), String> {
        self.owner
            .remove(now, handle)
            .map_err(|error| in_one_line(&error))
    }

    /// Re-adds a former member and returns its handle; `None` if the disk has no metadata that
    /// can be read.
    pub(crate) fn re_add(&mut self, now: Nanos, disk: &Member) -> Option<Result<Slot, String>> {
        let former = read_candidate(disk).ok()?;
        let added = self.owner.re_add(now, disk, former);
        Some(added.map_err(|error| in_one_line(&error)))
    }

    /// Adds a disk and returns its handle. One that was a member before is re-added, if possible.
    pub(crate) fn add(
        &mut self,
        now: Nanos,
        (number, disk): (usize, &Member),
        flags: DeviceFlags,
    ) -> Result<(Slot, Added), String> {
        if let Some(Ok(handle)) = self.re_add(now, disk) {
            return Ok((handle, Added::Again));
        }
        let found = versions_on(disk);
        let new = NewDevice {
            name: number.to_string(),
            size: disk.size(),
            rotational: true,
            write_mostly: flags != DeviceFlags::default(),
            uuid: device_uuid(number),
        };
        let added = self.owner.add(now, disk, new, &found);
        let added = added.map_err(|error| in_one_line(&error))?;
        Ok((added, Added::New))
    }

    /// Starts a check or repair.
    pub(crate) fn start_sync(&mut self, now: Nanos, action: SyncAction) -> Result<(), String> {
        told(self.owner.on_array(now, |array, now, out| match action {
            SyncAction::Check => array.check(now, out),
            SyncAction::Resync | SyncAction::FirstResync | SyncAction::Repair => {
                array.repair(now, out)
            }
        }))
    }

    /// Carries out an administrator's order.
    pub(crate) fn order(&mut self, now: Nanos, order: Order) -> Result<(), String> {
        told(self.owner.on_array(now, |array, now, out| match order {
            Order::Replace(handle) => array.replace(now, handle, None, out),
            Order::ReadOnly => array.read_only(now, out),
            Order::ReadWrite => array.read_write(now, out),
            // Users are refused this during a recovery. The array has to cope with it all the same.
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
}

/// Returns a verb's result in words.
fn told(result: Result<Result<(), VerbError>, AttachError>) -> Result<(), String> {
    let done = result.map_err(|error| in_one_line(&error))?;
    done.map_err(|error| in_one_line(&error))
}
