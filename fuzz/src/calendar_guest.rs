//! Any guest: a driver that has set up its ring in the right way says anything
//! more, its memory holds anything, and its clock says anything. The run ends, in
//! one way or another.
//!
//! The guest's answers to interrupts are in their socket before they are asked for;
//! a guest that says no more counts as stuck at once.

use raidlab_disk::medium::constant;
use raidlab_disk::{Disk, DiskParameters, MediumParameters};
use raidlab_random::Stream;
use raidlab_uml_calendar::{Calendar, DeviceConfig, Options};
use raidlab_units::{Bytes, BytesPerSecond, Nanos, Sectors};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use std::fs::File;
use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// The shared memory: a ring's three parts, then buffers.
const FROM: u64 = 0x10_0000;
const SIZE: u64 = 0x1_0000;
/// Few enough bytes for a socket's buffer.
const MOST_BYTES: usize = 8192;

/// The input is what the clock says and what the driver says, each with its length in two bytes
/// before it, and then what is in the memory.
pub fn run(input: &[u8]) {
    let (clock_says, rest) = part(input);
    let (driver_says, memory) = part(rest);
    let Ok(dir) = tempfile::tempdir() else {
        return;
    };
    let options = Options {
        patience: Duration::from_millis(1),
        storage_limit: Bytes(1 << 16),
        time_limit: Some(Nanos::from_secs(1000)),
        ..Options::default()
    };
    let mut calendar = Calendar::bind(dir.path(), vec![disk()], options).expect("a calendar");
    let clock = UnixStream::connect(calendar.socket_path()).expect("a clock");
    let path = calendar.device_path(0).expect("a disk");
    let driver = UnixStream::connect(path).expect("a driver");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // How it ends is the guest's affair; it ends by being dropped here.
            let _ = calendar.run(&mut ());
            drop(calendar);
        });
        let shared = memory_file(memory);
        // A calendar that has ended closes the sockets, which is as good an end.
        let _ = be_a_guest(clock, driver, &shared, clock_says, driver_says);
    });
}

fn part(input: &[u8]) -> (&[u8], &[u8]) {
    let Some((length, rest)) = input.split_first_chunk() else {
        return (input, &[]);
    };
    rest.split_at(rest.len().min(usize::from(u16::from_le_bytes(*length))))
}

fn be_a_guest(
    mut clock: UnixStream,
    mut driver: UnixStream,
    memory: &File,
    clock_says: &[u8],
    driver_says: &[u8],
) -> std::io::Result<()> {
    let (mut interrupts, theirs) = UnixStream::pair()?;
    let answer = [4, 0, 0, 0, 5, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    interrupts.write_all(&answer.repeat(64))?;
    clock.write_all(&time_message(1, 0))?;
    set_up(&driver, theirs.as_fd(), memory.as_fd())?;
    // The kick, and that it was taken.
    say(&driver, 9, 35, &[0; 8], None)?;
    driver.read_exact(&mut [0; 20])?;
    clock.write_all(&time_message(2, 1_000_000))?;
    clock.write_all(&time_message(3, 0))?;
    driver.write_all(&driver_says[..driver_says.len().min(MOST_BYTES)])?;
    clock.write_all(&clock_says[..clock_says.len().min(MOST_BYTES)])?;
    clock.read_to_end(&mut Vec::new())?;
    Ok(())
}

fn time_message(operation: u8, time: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[0] = operation;
    bytes[8..].copy_from_slice(&time.to_le_bytes());
    bytes
}

fn disk() -> DeviceConfig {
    let access = Nanos(1_000);
    let medium = MediumParameters::Constant(constant::Parameters { access });
    let parameters = DiskParameters::uniform(Sectors(4096), BytesPerSecond(1e9), medium);
    let disk = Disk::new(parameters, Nanos::ZERO, Stream::new(1));
    let mut config = DeviceConfig::new(disk.into(), "fuzz");
    config.discard = true;
    config.write_zeroes = true;
    config
}

fn memory_file(bytes: &[u8]) -> File {
    let file = File::from(memfd_create("guest", MemfdFlags::CLOEXEC).expect("a memfd"));
    ftruncate(&file, FROM + SIZE).expect("a size");
    let bytes = &bytes[..bytes.len().min(0x1_0000)];
    file.write_all_at(bytes, FROM).expect("room in the memory");
    file
}

/// What virtio_uml says before its first kick.
fn set_up(
    driver: &UnixStream,
    interrupts: BorrowedFd<'_>,
    memory: BorrowedFd<'_>,
) -> std::io::Result<()> {
    let numbers = |numbers: &[u64]| -> Vec<u8> {
        numbers
            .iter()
            .flat_map(|number| number.to_le_bytes())
            .collect()
    };
    say(driver, 1, 16, &numbers(&[0x4228]), None)?;
    say(driver, 1, 21, &[], Some(interrupts))?;
    say(driver, 1, 2, &numbers(&[0x1_4000_0000]), None)?;
    let table = numbers(&[1, FROM, SIZE, FROM, FROM]);
    say(driver, 1, 5, &table, Some(memory))?;
    say(driver, 1, 8, &numbers(&[16 << 32]), None)?;
    // Table, available and used ring within the first kilobyte, where the input is.
    let ring = numbers(&[0, FROM, FROM + 0x200, FROM + 0x100, 0]);
    say(driver, 1, 9, &ring, None)?;
    say(driver, 1, 18, &numbers(&[1 << 32]), None)
}

fn say(
    driver: &UnixStream,
    flags: u32,
    code: u32,
    payload: &[u8],
    file: Option<BorrowedFd<'_>>,
) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    for word in [code, flags, payload.len() as u32] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend(payload);
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let files: Vec<BorrowedFd<'_>> = file.into_iter().collect();
    if !files.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(&files));
    }
    let slices = [IoSlice::new(&bytes)];
    sendmsg(driver, &slices, &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}
