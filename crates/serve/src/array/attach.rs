//! Attaching and detaching devices while an array runs: the owner's part of `add`, `re-add` and
//! `remove`. The caller has already opened the device and read its metadata.

use super::engine::{Core, place_of};
use super::files::{FilesError, write_all};
use super::owner::Owner;
use crate::member::Member;
use raidlab_array::mutation::{self, Mutation};
use raidlab_array::{Candidate, NewDevice, Outputs, PersistentArray, Slot, VerbError};
use raidlab_metadata::{Version, erase};
use raidlab_units::Nanos;
use std::io;

/// The bound of handles: an array has at most 512 devices.
const HANDLES: u16 = 512;

/// The reason why a device cannot be attached or detached.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// A single file is served, so there is no array.
    #[error("this is a single file, not an array")]
    NoArray,
    /// Every handle is in use.
    #[error("the array has too many devices")]
    Full,
    /// The backend cannot attach the device.
    #[error("cannot attach the device")]
    Backend(#[source] io::Error),
    /// The array refuses the device, or its removal.
    #[error(transparent)]
    Refused(#[from] VerbError),
    /// The device's old metadata cannot be erased.
    #[error(transparent)]
    Erase(#[from] FilesError),
}

impl Owner {
    /// Calls a function on the array, and carries out what the array orders in it.
    ///
    /// # Errors
    /// When there is no array.
    pub fn on_array<R>(
        &mut self,
        now: Nanos,
        work: impl FnOnce(&mut PersistentArray, Nanos, &mut Outputs) -> R,
    ) -> Result<R, AttachError> {
        let Core::Array(array) = &mut self.core else {
            return Err(AttachError::NoArray);
        };
        let answer = work(array, now, &mut self.out);
        self.settle(now);
        Ok(answer)
    }

    /// Removes a device from the array and detaches it.
    ///
    /// # Errors
    /// The array's reasons; [`VerbError::Busy`] while its failure is being recorded.
    pub fn remove(&mut self, now: Nanos, handle: Slot) -> Result<(), AttachError> {
        let removed = self.on_array(now, |array, now, out| array.remove(now, handle, out))?;
        if !mutation::is(Mutation::RemovedInService) {
            removed?;
        }
        self.members.detach(place_of(handle));
        Ok(())
    }

    /// Adds a device as a new member or a spare; returns its handle. `found`: the formats of the
    /// metadata on it, which are erased before our own are written, and only after the array has
    /// accepted the device.
    ///
    /// # Errors
    /// The array's reasons, or that the device cannot be written.
    pub fn add(
        &mut self,
        now: Nanos,
        device: &Member,
        new: NewDevice,
        found: &[Version],
    ) -> Result<Slot, AttachError> {
        self.attached(device, |owner, handle| {
            let Core::Array(array) = &mut owner.core else {
                return Err(AttachError::NoArray);
            };
            let added = array.add(now, handle, new, &mut owner.out);
            if !mutation::is(Mutation::AddedUnasked) {
                added?;
            }
            write_all(device, &erase(found, device.size().to_bytes()))?;
            owner.settle(now);
            Ok(())
        })
    }

    /// Adds a former member again; returns its handle. `former`: the contents of its metadata.
    ///
    /// # Errors
    /// The array's reasons.
    pub fn re_add(
        &mut self,
        now: Nanos,
        device: &Member,
        former: Candidate,
    ) -> Result<Slot, AttachError> {
        self.attached(device, |owner, handle| {
            owner.on_array(now, |array, now, out| {
                array.re_add(now, handle, former, out).map_err(Into::into)
            })?
        })
    }

    /// Attaches a device at the lowest handle that neither a device nor a slot uses, and detaches
    /// it again if the array refuses it. A handle to whose former device commands are still under
    /// way is not used: their results would be attributed to this one.
    fn attached(
        &mut self,
        device: &Member,
        take: impl FnOnce(&mut Self, Slot) -> Result<(), AttachError>,
    ) -> Result<Slot, AttachError> {
        let array = self.array().ok_or(AttachError::NoArray)?;
        let slots = u16::try_from(array.member_states().len()).unwrap_or(u16::MAX);
        let devices = array.status().devices;
        let is_free = |handle: &Slot| {
            self.members.is_vacant(place_of(*handle))
                && devices.iter().all(|device| device.handle != *handle)
        };
        let handle = (slots..HANDLES).map(Slot).find(is_free);
        let handle = match mutation::is(Mutation::HandleOfAnother) {
            true => Slot(0),
            false => handle.ok_or(AttachError::Full)?,
        };
        let place = place_of(handle);
        let attached = self.members.attach(place, device);
        attached.map_err(AttachError::Backend)?;
        let taken = take(self, handle);
        if taken.is_err() {
            self.members.detach(place);
        }
        taken.map(|()| handle)
    }
}
