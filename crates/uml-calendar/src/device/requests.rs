//! The requests of a device: out of the ring, through the drive, and back.

use super::{Answer, Arena, Device, DeviceError, Nanos, Process, Sectors, TraceRecord};
use crate::block::{self, Request, SECTOR, Segment, Status, Want};
use crate::config::SERIAL_BYTES;
use crate::drive::DiskOperation;
use crate::memory::{GuestMemory, Outside};
use crate::sparse::{ArenaError, PAGE_BYTES};
use std::sync::atomic::Ordering;
use virtio_queue::{QueueOwnedT, QueueT};
use vm_memory::{Bytes, GuestAddress};

/// Flag of the available ring (`VRING_AVAIL_F_NO_INTERRUPT` of include/uapi/linux/virtio_ring.h):
/// the guest's driver wants no interrupt for requests that are given back.
const NO_INTERRUPT: u16 = 1;

/// The reason why a request could not be carried out.
enum Failure {
    /// The guest's buffer is nowhere, which is its own fault.
    Outside,
    /// The disks' contents cannot be kept.
    Arena(ArenaError),
}

impl From<Outside> for Failure {
    fn from(Outside: Outside) -> Self {
        Self::Outside
    }
}

impl From<ArenaError> for Failure {
    fn from(error: ArenaError) -> Self {
        Self::Arena(error)
    }
}

/// The errors of carrying out an answer.
#[derive(Debug)]
pub(crate) enum AnswerError {
    /// The guest's ring is broken.
    Device(DeviceError),
    /// The disks' contents cannot be kept.
    Arena(ArenaError),
}

impl From<DeviceError> for AnswerError {
    fn from(error: DeviceError) -> Self {
        Self::Device(error)
    }
}

impl Device {
    /// Takes the new requests in the ring, at `now`, and none from the available index `until` on,
    /// if there is one.
    pub(crate) fn take_requests(
        &mut self,
        now: Nanos,
        until: Option<u16>,
    ) -> Result<(), DeviceError> {
        loop {
            self.take_available(now, until)?;
            let Some(memory) = self.memory.as_ref().filter(|_| self.queue.ready()) else {
                return Ok(());
            };
            if !self.suppress_kicks {
                return Ok(());
            }
            let shared = memory.shared();
            if self.drive.in_flight() > 0 {
                return self
                    .queue
                    .disable_notification(shared)
                    .map_err(DeviceError::Queue);
            }
            let more = self.queue.enable_notification(shared);
            if !more.map_err(DeviceError::Queue)? {
                return Ok(());
            }
        }
    }

    fn take_available(&mut self, now: Nanos, until: Option<u16>) -> Result<(), DeviceError> {
        let Some(memory) = self.memory.as_ref().filter(|_| self.queue.ready()) else {
            return Ok(());
        };
        let first = self.queue.next_avail();
        // An index that was taken already lies behind: a ring has far fewer than half
        // of all indices.
        let most = until.map_or(usize::MAX, |until| {
            usize::try_from(until.wrapping_sub(first).cast_signed()).unwrap_or(0)
        });
        let chains = self.queue.iter(memory.shared());
        for chain in chains.map_err(DeviceError::Queue)?.take(most) {
            let process = self.process.as_ref();
            let request = block::read_request(chain, memory, process, &self.abilities)?;
            let slot = match request.want {
                Want::Disk(io) => self.drive.submit(now, io, self.write_back),
                Want::Serial => self.drive.submit_other(now, true),
                Want::Nothing(_) => self.drive.submit_other(now, false),
            };
            if self.requests.len() <= slot {
                self.requests.resize_with(slot + 1, || None);
            }
            self.requests[slot] = Some(request);
        }
        Ok(())
    }

    /// Collects the drive's answers by `now`.
    pub(crate) fn advance(&mut self, now: Nanos, answers: &mut Vec<Answer>) {
        self.drive.advance(now, answers);
    }

    /// Carries out one answer: moves the data, and gives the request back.
    pub(crate) fn answer(&mut self, answer: &Answer, arena: &mut Arena) -> Result<(), AnswerError> {
        let request = self.requests.get_mut(answer.slot).and_then(Option::take);
        let memory = self.memory.as_ref().filter(|_| self.queue.ready());
        // Without a ring the guest does not wait for it any more.
        let (Some(request), Some(memory)) = (request, memory) else {
            return Ok(());
        };
        let mut moving = Moving {
            memory,
            process: self.process.as_ref(),
            pages: &mut self.pages,
            arena,
        };
        let moved = match request.want {
            Want::Nothing(status) => Ok((status, 0)),
            _ if !answer.good => Ok((Status::IoError, 0)),
            Want::Serial => moving.serial(&request, &self.config.serial),
            Want::Disk(_) => moving.data(&request, answer),
        };
        let (status, written) = match moved {
            Ok(moved) => moved,
            Err(Failure::Outside) => match self.process_error.take() {
                Some(source) if answer.io.operation == DiskOperation::Write => {
                    let address = request.data.first().map_or(0, |first| first.address);
                    return Err(DeviceError::Image { address, source }.into());
                }
                _ => (Status::IoError, 0),
            },
            Err(Failure::Arena(error)) => return Err(AnswerError::Arena(error)),
        };
        let no_status = DeviceError::Chain {
            head: request.head,
            problem: "has its status outside the memory",
        };
        let status_byte = [status as u8];
        memory
            .write(request.status_at, &status_byte)
            .map_err(|_| no_status)?;
        self.queue
            .add_used(memory.shared(), request.head, written + 1)
            .map_err(DeviceError::Queue)?;
        Ok(())
    }

    /// Whether the guest wants to be interrupted for the requests that were given back.
    pub(crate) fn wants_interrupt(&self) -> Result<bool, DeviceError> {
        let Some(memory) = self.memory.as_ref().filter(|_| self.queue.ready()) else {
            return Ok(false);
        };
        let flags = GuestAddress(self.queue.avail_ring());
        let flags: Result<u16, _> = memory.shared().load(flags, Ordering::SeqCst);
        let flags = flags.map_err(|_| DeviceError::QueueOutside)?;
        Ok(flags & NO_INTERRUPT == 0)
    }

    /// The record of an answer.
    pub(crate) fn record(disk: usize, answer: &Answer, now: Nanos) -> TraceRecord {
        TraceRecord {
            arrived: answer.arrived,
            completed: now,
            disk,
            operation: answer.io.operation,
            start: Sectors(answer.io.start),
            count: Sectors(answer.io.count),
            good: answer.good,
        }
    }
}

/// The two sides between which data moves.
struct Moving<'a> {
    memory: &'a GuestMemory,
    process: Option<&'a Process>,
    pages: &'a mut crate::sparse::Pages,
    arena: &'a mut Arena,
}

impl Moving<'_> {
    /// Does what the disk was asked; returns the status, and the bytes given to the guest.
    fn data(&mut self, request: &Request, answer: &Answer) -> Result<(Status, u32), Failure> {
        let at = answer.io.start * SECTOR;
        let length = answer.io.count * SECTOR;
        match answer.io.operation {
            DiskOperation::Read => {
                self.read(at, &request.data)?;
                return Ok((Status::Ok, u32::try_from(length).unwrap_or(u32::MAX - 1)));
            }
            DiskOperation::Write => self.write(at, &request.data)?,
            DiskOperation::Discard | DiskOperation::WriteZeroes => {
                self.pages.clear(self.arena, at, length)?;
            }
            DiskOperation::Flush | DiskOperation::Other => {}
        }
        Ok((Status::Ok, 0))
    }

    fn read(&self, mut at: u64, data: &[Segment]) -> Result<(), Failure> {
        for segment in data {
            let mut address = segment.address;
            let length = segment.length as usize;
            self.pages.read(self.arena, at, length, |piece| {
                self.memory.write(address, piece)?;
                // The write has found all of the piece: its end is an address.
                address = address.wrapping_add(piece.len() as u64);
                Ok::<(), Failure>(())
            })?;
            at += length as u64;
        }
        Ok(())
    }

    fn write(&mut self, mut at: u64, data: &[Segment]) -> Result<(), Failure> {
        let mut buffer = [0; PAGE_BYTES];
        for segment in data {
            let mut done = 0;
            let length = segment.length as usize;
            while done < length {
                // A piece goes to the end of the disk's page, so that whole pages of zeros are
                // seen as such.
                let room = PAGE_BYTES - at as usize % PAGE_BYTES;
                let piece = &mut buffer[..room.min(length - done)];
                let address = segment.address.checked_add(done as u64).ok_or(Outside)?;
                self.memory.read(self.process, address, piece)?;
                self.pages.write(self.arena, at, piece)?;
                done += piece.len();
                at += piece.len() as u64;
            }
        }
        Ok(())
    }

    fn serial(&self, request: &Request, serial: &str) -> Result<(Status, u32), Failure> {
        let mut bytes = [0; SERIAL_BYTES];
        bytes[..serial.len()].copy_from_slice(serial.as_bytes());
        let mut rest = &bytes[..];
        for segment in &request.data {
            let (piece, after) = rest.split_at((segment.length as usize).min(rest.len()));
            self.memory.write(segment.address, piece)?;
            rest = after;
        }
        Ok((Status::Ok, SERIAL_BYTES as u32))
    }
}
