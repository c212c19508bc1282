//! The shared memory of external time travel (`struct um_timetravel_schedshm`,
//! version 2, Linux 6.11 and later).
//!
//! It is a page with the present time, the time until which the running participant may run,
//! and which one runs; then a slot of 128 bytes for each participant, with its capabilities,
//! and when it wants to run next. Slot 0 is the calendar's, which answers interrupts' questions
//! by being able to share time too; slot 1 is the guest's. Exactly one of the two runs at a
//! time and the socket's messages order their accesses, so that plain loads and stores of whole
//! words are enough.
//!
//! In the free part of the header, guests of raidlab's own kernels
//! (`crates/uml/src/edits/disks_shared.c`) write their kicks, each with how far the ring was
//! filled, and find which devices interrupt them when they are run. Both would be a message and its
//! answer otherwise. After a kick the guest's time does not move before it has waited. A guest that
//! does so says it in its capabilities; one that does not never looks there.

use crate::error::{CalendarError, system};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering;
use vm_memory::{Bytes, FileOffset, MmapRegion, VolatileMemory, VolatileMemoryError};

const VERSION: u32 = 2;
const HEADER_BYTES: usize = 4096;
const SLOT_BYTES: usize = 128;
const PARTICIPANTS: u16 = 2;
const LENGTH: usize = HEADER_BYTES + SLOT_BYTES * PARTICIPANTS as usize;

/// Offsets of the fields in the header.
const VERSION_AT: usize = 0;
const LENGTH_AT: usize = 4;
const FREE_UNTIL_AT: usize = 8;
const CURRENT_TIME_AT: usize = 16;
const RUNNING_AT: usize = 24;
const MOST_PARTICIPANTS_AT: usize = 26;

/// The offset in the header at which the fields of raidlab's kernels begin, and the
/// offsets from there.
const OFFERED_AT: usize = 1024;
const KICKS_AT: usize = OFFERED_AT + 4;
const INTERRUPTS_AT: usize = OFFERED_AT + 8;
const INTERRUPTING_AT: usize = OFFERED_AT + 12;
const KICK_AT: usize = INTERRUPTING_AT + 4 * DEVICES;
/// The number of devices that share kicks and interrupts; others have messages.
const DEVICES: usize = 64;
/// The number of kicks that find room there; for more the guest sends messages.
const MOST_KICKS: usize = 700;
/// The size of a kick in bytes: its device, the ring's available index.
const KICK_BYTES: usize = 4;
const _: () = assert!(KICK_AT + KICK_BYTES * MOST_KICKS <= HEADER_BYTES);

/// Offsets of the fields in a slot.
const CAPABILITIES_AT: usize = 0;
const FLAGS_AT: usize = 4;
const REQUEST_AT: usize = 8;
const NAME_AT: usize = 16;

/// The capability of a participant that can share the time.
const CAN_SHARE: u32 = 1;
/// The capability of a participant that shares kicks and interrupts.
const SHARES_DISKS: u32 = 1 << 31;
/// The flag of a participant that wants to run at its request's time.
const WANTS_TO_RUN: u32 = 1;

/// The calendar's number among the participants, which is also its slot.
pub(crate) const CALENDAR: u16 = 0;
/// The guest's number among the participants, which is also its slot.
pub(crate) const GUEST: u16 = 1;

/// A guest's notice that a device's ring is filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kick {
    /// The number of the device whose ring is filled, from 0.
    pub(crate) device: usize,
    /// The ring's available index at that time.
    pub(crate) available: u16,
}

/// The calendar's side of the shared memory.
#[derive(Debug)]
pub(crate) struct SharedTime {
    file: File,
    memory: MmapRegion,
}

impl SharedTime {
    /// Makes new memory, in which it is time 0 and the guest runs.
    pub(crate) fn new() -> Result<Self, CalendarError> {
        let doing = "make the memory in which the guest shares the time";
        let memfd = memfd_create("raidlab-calendar", MemfdFlags::CLOEXEC)
            .map_err(|error| system(doing, error.into()))?;
        let file = File::from(memfd);
        ftruncate(&file, LENGTH as u64).map_err(|error| system(doing, error.into()))?;
        let copy = file.try_clone().map_err(|error| system(doing, error))?;
        let memory = MmapRegion::from_file(FileOffset::new(copy, 0), LENGTH)
            .map_err(|error| system(doing, std::io::Error::other(error)))?;
        let shared = Self { file, memory };
        shared.fill()?;
        Ok(shared)
    }

    fn fill(&self) -> Result<(), CalendarError> {
        self.store(VERSION_AT, VERSION)?;
        self.store(LENGTH_AT, LENGTH as u32)?;
        self.store(MOST_PARTICIPANTS_AT, PARTICIPANTS)?;
        self.store(RUNNING_AT, GUEST)?;
        self.store(OFFERED_AT, 1_u32)?;
        self.store(slot(CALENDAR) + CAPABILITIES_AT, CAN_SHARE)
    }

    /// The descriptor of the memory that the guest maps.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Notes the name by which the guest calls itself.
    pub(crate) fn name_guest(&self, name: u64) -> Result<(), CalendarError> {
        self.store(slot(GUEST) + NAME_AT, name)
    }

    /// The time that the clock of the running participant shows.
    pub(crate) fn current_time(&self) -> Result<u64, CalendarError> {
        self.load(CURRENT_TIME_AT)
    }

    /// The time until which the running participant may run.
    pub(crate) fn free_until(&self) -> Result<u64, CalendarError> {
        self.load(FREE_UNTIL_AT)
    }

    pub(crate) fn set_free_until(&self, time: u64) -> Result<(), CalendarError> {
        self.store(FREE_UNTIL_AT, time)
    }

    /// The time at which the guest wants to run next, if it does.
    pub(crate) fn request(&self) -> Result<Option<u64>, CalendarError> {
        let flags: u32 = self.load(slot(GUEST) + FLAGS_AT)?;
        if flags & WANTS_TO_RUN == 0 {
            return Ok(None);
        }
        self.load(slot(GUEST) + REQUEST_AT).map(Some)
    }

    /// Sets the time to `now`, and lets `running` run, before `free_until`.
    pub(crate) fn set(&self, now: u64, running: u16, free_until: u64) -> Result<(), CalendarError> {
        self.store(FREE_UNTIL_AT, free_until)?;
        self.store(CURRENT_TIME_AT, now)?;
        self.store(RUNNING_AT, running)
    }

    /// Takes the guest's kicks since it last waited, in order.
    pub(crate) fn take_kicks(&self, kicks: &mut Vec<Kick>) -> Result<(), CalendarError> {
        let count: u32 = self.load(KICKS_AT)?;
        for number in 0..(count as usize).min(MOST_KICKS) {
            let at = KICK_AT + KICK_BYTES * number;
            kicks.push(Kick {
                device: self.load::<u16>(at)?.into(),
                available: self.load(at + 2)?,
            });
        }
        if count > 0 {
            self.store(KICKS_AT, 0_u32)?;
        }
        Ok(())
    }

    /// Leaves an interrupt of `device` for the guest to find when it is run next; returns false
    /// where it would not look for it.
    pub(crate) fn interrupt(&self, device: usize) -> Result<bool, CalendarError> {
        let capabilities: u32 = self.load(slot(GUEST) + CAPABILITIES_AT)?;
        if capabilities & SHARES_DISKS == 0 || device >= DEVICES {
            return Ok(false);
        }
        let count: u32 = self.load(INTERRUPTS_AT)?;
        for number in 0..count as usize {
            if self.load::<u32>(INTERRUPTING_AT + 4 * number)? as usize == device {
                return Ok(true);
            }
        }
        self.store(INTERRUPTING_AT + 4 * count as usize, device as u32)?;
        self.store(INTERRUPTS_AT, count + 1)?;
        Ok(true)
    }

    fn store<T: vm_memory::AtomicAccess>(&self, at: usize, value: T) -> Result<(), CalendarError> {
        let words = self.memory.as_volatile_slice();
        words.store(value, at, Ordering::SeqCst).map_err(broken)
    }

    fn load<T: vm_memory::AtomicAccess>(&self, at: usize) -> Result<T, CalendarError> {
        let words = self.memory.as_volatile_slice();
        words.load(at, Ordering::SeqCst).map_err(broken)
    }
}

fn slot(participant: u16) -> usize {
    HEADER_BYTES + SLOT_BYTES * usize::from(participant)
}

fn broken(error: VolatileMemoryError) -> CalendarError {
    system(
        "reach the memory in which the guest shares the time",
        std::io::Error::other(error),
    )
}

#[cfg(test)]
mod tests {
    use super::{CALENDAR, GUEST, LENGTH, SharedTime};
    use std::os::unix::fs::FileExt;

    fn bytes(shared: &SharedTime) -> Vec<u8> {
        let mut bytes = vec![0; LENGTH];
        shared.file.read_exact_at(&mut bytes, 0).unwrap();
        bytes
    }

    #[test]
    fn the_layout_is_the_header_files() {
        let shared = SharedTime::new().unwrap();
        shared.name_guest(9).unwrap();
        shared.set(0x11, CALENDAR, 0x22).unwrap();
        let bytes = bytes(&shared);
        assert_eq!(bytes[..8], [2, 0, 0, 0, 0, 17, 0, 0]);
        assert_eq!(bytes[8..16], 0x22_u64.to_le_bytes());
        assert_eq!(bytes[16..24], 0x11_u64.to_le_bytes());
        assert_eq!(bytes[24..28], [0, 0, 2, 0]);
        assert_eq!(bytes[4096..4104], [1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[4096 + 128 + 16], 9);
        assert_eq!(bytes.len(), 4096 + 2 * 128);
    }

    #[test]
    fn a_guests_request_is_seen_when_it_is_flagged() {
        let shared = SharedTime::new().unwrap();
        let slot = 4096 + 128;
        let time = 77_u64.to_le_bytes();
        shared.file.write_all_at(&time, slot + 8).unwrap();
        assert_eq!(shared.request().unwrap(), None);
        shared.file.write_all_at(&[1], slot + 4).unwrap();
        assert_eq!(shared.request().unwrap(), Some(77));
        shared.set(5, GUEST, 8).unwrap();
        assert_eq!(shared.current_time().unwrap(), 5);
        assert_eq!(shared.free_until().unwrap(), 8);
    }
}
