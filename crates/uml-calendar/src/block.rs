//! A virtio-blk request: descriptors to meaning (virtio 1.2, 5.2.6).
//!
//! A chain has parts that the device reads, then parts that it writes. The first 16 bytes to read
//! are the request's header, the last byte to write takes the status; between them is data, cut at
//! will. A chain without room for the two cannot even be refused and ends the run; everything else
//! that is wrong with a request is answered with an error status.

use crate::config::SERIAL_BYTES;
use crate::drive::{DiskOperation, Io};
use crate::error::DeviceError;
use crate::memory::{GuestMemory, Process};
use virtio_queue::DescriptorChain;
use vm_memory::GuestMemoryMmap;

/// The size of a request's header, in bytes.
const HEADER_BYTES: usize = 16;
/// The size of a sector in bytes, whatever the disk's blocks.
pub(crate) const SECTOR: u64 = 512;
/// The most bytes of data of a request. Linux sends a few megabytes at most.
const MOST_DATA_BYTES: u64 = 64 << 20;
/// The most sectors of a discard or of a range to zero, as the configuration says.
pub(crate) const MOST_RANGE_SECTORS: u32 = 1 << 16;

/// The status byte, which says how a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    Ok = 0,
    IoError = 1,
    Unsupported = 2,
}

/// A part of the guest's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) address: u64,
    pub(crate) length: u32,
}

/// The operation for which a request of the guest's driver asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Want {
    /// A read, write, flush or discard of the disk.
    Disk(Io),
    /// The disk's serial number (`VIRTIO_BLK_T_GET_ID`).
    Serial,
    /// An operation that cannot be done: the request is refused with this status.
    Nothing(Status),
}

/// A request of the guest's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    /// The chain's first descriptor, by which it is given back.
    pub(crate) head: u16,
    pub(crate) want: Want,
    /// The data: from the guest for a write, to the guest otherwise.
    pub(crate) data: Vec<Segment>,
    /// The address at which the status byte goes.
    pub(crate) status_at: u64,
}

/// The abilities of a disk, and its size.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Abilities {
    pub(crate) sectors: u64,
    /// The number of sectors in a logical block.
    pub(crate) block_sectors: u64,
    pub(crate) flush: bool,
    pub(crate) discard: bool,
    pub(crate) write_zeroes: bool,
}

impl Abilities {
    /// Whether these sectors are at least one, whole blocks, and on the disk.
    fn allow(&self, start: u64, count: u64) -> bool {
        let end = start.checked_add(count);
        count > 0
            && end.is_some_and(|end| end <= self.sectors)
            && start.is_multiple_of(self.block_sectors)
            && count.is_multiple_of(self.block_sectors)
    }
}

/// Reads a chain of descriptors.
pub(crate) fn read_request(
    chain: DescriptorChain<&GuestMemoryMmap>,
    memory: &GuestMemory,
    process: Option<&Process>,
    abilities: &Abilities,
) -> Result<Request, DeviceError> {
    let head = chain.head_index();
    let wrong = |problem| DeviceError::Chain { head, problem };
    let (mut readable, mut writable) = segments(chain).map_err(wrong)?;
    let status = take_last_byte(&mut writable).ok_or(wrong("has no room for a status"))?;
    let mut header = [0; HEADER_BYTES];
    gather(&mut readable, &mut header, memory, process).map_err(wrong)?;
    let (kind, start) = (word(&header, 0), long(&header, 8));
    let (want, data) = match kind {
        0 => (
            transfer(DiskOperation::Read, start, &writable, abilities),
            writable,
        ),
        1 => (
            transfer(DiskOperation::Write, start, &readable, abilities),
            readable,
        ),
        4 if abilities.flush => {
            let operation = DiskOperation::Flush;
            let flush = Io {
                operation,
                start: 0,
                count: 0,
            };
            (Want::Disk(flush), Vec::new())
        }
        8 if total(&writable) == SERIAL_BYTES as u64 => (Want::Serial, writable),
        11 if abilities.discard => {
            let range = gather_range(&mut readable, memory, process);
            (ranged(DiskOperation::Discard, range, abilities), Vec::new())
        }
        13 if abilities.write_zeroes => {
            let range = gather_range(&mut readable, memory, process);
            (
                ranged(DiskOperation::WriteZeroes, range, abilities),
                Vec::new(),
            )
        }
        _ => (Want::Nothing(Status::Unsupported), Vec::new()),
    };
    Ok(Request {
        head,
        want,
        data,
        status_at: status,
    })
}

type Parts = (Vec<Segment>, Vec<Segment>);

/// Splits the chain into its parts to read and to write, if it is whole and in order.
fn segments(chain: DescriptorChain<&GuestMemoryMmap>) -> Result<Parts, &'static str> {
    let (mut readable, mut writable) = (Vec::new(), Vec::new());
    let mut goes_on = true;
    for descriptor in chain {
        let segment = Segment {
            address: descriptor.addr().0,
            length: descriptor.len(),
        };
        goes_on = descriptor.has_next();
        if descriptor.is_write_only() {
            writable.push(segment);
        } else if writable.is_empty() {
            readable.push(segment);
        } else {
            return Err("has a part to read after one to write");
        }
    }
    // The iterator ends where the next descriptor is missing, lies outside the memory, or has been
    // seen too often.
    if goes_on {
        return Err("does not end");
    }
    Ok((readable, writable))
}

/// Cuts off the last byte and returns its address.
fn take_last_byte(segments: &mut Vec<Segment>) -> Option<u64> {
    while segments.last().is_some_and(|last| last.length == 0) {
        segments.pop();
    }
    let last = segments.last_mut()?;
    last.length -= 1;
    let address = last.address.checked_add(u64::from(last.length))?;
    if last.length == 0 {
        segments.pop();
    }
    Some(address)
}

/// Reads the first bytes of the segments, which lose them.
fn gather(
    segments: &mut Vec<Segment>,
    bytes: &mut [u8],
    memory: &GuestMemory,
    process: Option<&Process>,
) -> Result<(), &'static str> {
    let mut done = 0;
    let mut used = 0;
    while done < bytes.len() {
        let segment = segments.get_mut(used).ok_or("has no whole header")?;
        let count = (bytes.len() - done).min(segment.length as usize);
        memory
            .read(process, segment.address, &mut bytes[done..done + count])
            .map_err(|_| "has its header outside the memory")?;
        done += count;
        // `read` has found the last of these bytes, so the address has room.
        segment.address = segment.address.wrapping_add(count as u64);
        segment.length -= count as u32;
        used += usize::from(segment.length == 0);
    }
    segments.drain(..used);
    Ok(())
}

/// Reads the one range of a discard or of a range to zero: first sector, number of sectors.
fn gather_range(
    segments: &mut Vec<Segment>,
    memory: &GuestMemory,
    process: Option<&Process>,
) -> Option<(u64, u64)> {
    let mut range = [0; HEADER_BYTES];
    gather(segments, &mut range, memory, process).ok()?;
    let count = word(&range, 8);
    (segments.is_empty() && count <= MOST_RANGE_SECTORS)
        .then(|| (long(&range, 0), u64::from(count)))
}

fn total(segments: &[Segment]) -> u64 {
    segments
        .iter()
        .map(|segment| u64::from(segment.length))
        .sum()
}

fn transfer(operation: DiskOperation, start: u64, data: &[Segment], abilities: &Abilities) -> Want {
    let bytes = total(data);
    let count = bytes / SECTOR;
    if bytes > MOST_DATA_BYTES || !bytes.is_multiple_of(SECTOR) || !abilities.allow(start, count) {
        return Want::Nothing(Status::IoError);
    }
    Want::Disk(Io {
        operation,
        start,
        count,
    })
}

fn ranged(operation: DiskOperation, range: Option<(u64, u64)>, abilities: &Abilities) -> Want {
    match range {
        Some((start, count)) if abilities.allow(start, count) => Want::Disk(Io {
            operation,
            start,
            count,
        }),
        _ => Want::Nothing(Status::IoError),
    }
}

fn word(bytes: &[u8; HEADER_BYTES], at: usize) -> u32 {
    bytes[at..at + 4]
        .iter()
        .rev()
        .fold(0, |word, &byte| word << 8 | u32::from(byte))
}

fn long(bytes: &[u8; HEADER_BYTES], at: usize) -> u64 {
    u64::from(word(bytes, at)) | u64::from(word(bytes, at + 4)) << 32
}

#[cfg(test)]
mod tests;
