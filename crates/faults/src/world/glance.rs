//! Read-only assembly of an array that is down (`--readonly`).
//!
//! The disks are copies, so that no trace remains of it, and take no writes. The bytes read must be
//! permitted, no member may be given up, and only unreadable sectors that may be torn may fail.

use super::asking::asked;
use super::{Violation, World, nanos, violation};
use crate::driver::{self, Driver, Happening, HowToAssemble, Interruptions, Shelf};
use crate::options::DriverFaults;
use crate::pages::SECTOR;
use crate::value::Value;
use raidlab_array::{Operation, Request, RequestId};
use raidlab_random::Stream;
use raidlab_serve::export::{Buffer, ErrorCode};
use raidlab_serve::member::{Ended, Errno, Job, Transfer};
use raidlab_units::Sectors;
use std::sync::Arc;

/// Sectors that are read at a time.
const READ: u64 = 64;

impl World<'_> {
    /// Reads the whole array that these disks form, if they form one without a write.
    pub(super) fn glance(&mut self, present: &[usize]) -> Result<(), Violation> {
        if self.beyond {
            return Ok(());
        }
        let undisturbed = Interruptions::new(&DriverFaults::default(), &Stream::new(0), 0);
        let mut copies = self.disks.clone();
        let looked = Shelf::new(undisturbed)
            .lend(&mut copies, Some(0), |shelf| self.look(shelf, present))?;
        if looked {
            self.did("read-only start");
        }
        Ok(())
    }

    fn look(&self, shelf: &Shelf, present: &[usize]) -> Result<bool, Violation> {
        let how = HowToAssemble {
            stale: self.stale,
            read_only: true,
            bitmap: self.bitmap_there,
            ..HowToAssemble::default()
        };
        let ready = driver::assemble(self.options, shelf, present, how);
        if shelf.is_cut() {
            return Err(violation("contract", "a write without leave"));
        }
        let Ok(ready) = ready else {
            return Ok(false);
        };
        // The array may have grown before any superblock recorded it.
        let size = ready.assembly.size.0.min(self.reader.size);
        let driver = Driver::start(ready, self.options, nanos(self.now), false);
        let mut driver = driver.map_err(|error| violation("assembly", error))?;
        let states = driver.states();
        for start in (0..size).step_by(READ as usize) {
            let count = READ.min(size - start);
            let (bytes, result) = self.read_alone(&mut driver, start, count)?;
            match result {
                Ok(()) => self.was_allowed(start, &bytes)?,
                Err(_) if self.may_fail(present) => {}
                Err(error) => {
                    let detail = format!("read-only: {start}+{count}: {error}");
                    return Err(violation("error within the budget", detail));
                }
            }
        }
        match driver.states() == states {
            true => Ok(true),
            false => Err(violation("verb", "a read-only array has given up a member")),
        }
    }

    /// Whether reads may fail: unreadable sectors are not computed where parity may be torn. All disks
    /// that are there count: one whose replacement took its place is read again where the crash came
    /// before the superblocks said so.
    fn may_fail(&self, present: &[usize]) -> bool {
        let is_torn = self.logged || self.has_hole() || self.first_sync;
        let is_unreadable = |number: &usize| {
            let disk = &self.disks[*number];
            disk.overlays(0, disk.sectors()).next().is_some() || self.is_noted(*number)
        };
        is_torn && present.iter().any(is_unreadable) || self.has_notes()
    }

    fn was_allowed(&self, start: u64, bytes: &[u8]) -> Result<(), Violation> {
        let (sectors, _) = bytes.as_chunks::<SECTOR>();
        for (sector, bytes) in (start..).zip(sectors) {
            let found = Value::of(bytes);
            let mut allowed = self.oracle.survivors(sector);
            if !allowed.any(|value| value.is_none_or(|value| value == found)) {
                let detail = format!("read-only: sector {sector} holds {:016x}", found.0);
                return Err(violation("wrong bytes", detail));
            }
        }
        Ok(())
    }

    /// Carries out a read while time stands still.
    fn read_alone(
        &self,
        driver: &mut Driver,
        start: u64,
        count: u64,
    ) -> Result<(Buffer, Result<(), ErrorCode>), Violation> {
        let payload = self.buffers.take(count as usize * SECTOR);
        let payload = payload.map_err(|error| violation("buffers", error.to_string()))?;
        let request = Request {
            id: RequestId(start),
            operation: Operation::Read,
            start: Sectors(start),
            count: Sectors(count),
            force_unit_access: false,
            process: 0,
        };
        let now = nanos(self.now);
        let answer = Arc::new(driver.line.clone());
        driver.request(now, asked(&request, payload, (answer, start)));
        let mut answered = None;
        while answered.is_none() {
            driver.owner.settle(now);
            let mut happenings = Vec::new();
            driver.line.exchange(&mut happenings);
            if happenings.is_empty() {
                return Err(violation("liveness", "a read of a read-only array waits"));
            }
            for happening in happenings {
                match happening {
                    Happening::Job(mut job) => {
                        let ended = carry_out(&mut job);
                        driver.line.end(job, ended);
                    }
                    Happening::Answered { buffer, result, .. } => {
                        answered = Some((buffer, result));
                    }
                    Happening::Step(_) | Happening::Command(_) | Happening::Event(_) => {}
                }
            }
            driver.owner.collect(now);
        }
        answered.ok_or_else(|| violation("liveness", "a read has no answer"))
    }
}

/// Carries out a command as a device does that was opened for reading.
fn carry_out(job: &mut Job) -> Ended {
    let (at, moved) = (job.at(), job.moved);
    match &mut job.transfer {
        Transfer::Read(bytes) => job.storage.read_at(&mut bytes[moved..], at),
        Transfer::Write { .. } | Transfer::Discard { .. } => Err(Errno::BADF),
        Transfer::Flush => Ok(0),
    }
}
