//! A guest without a kernel: what User-Mode Linux does on its sockets, by hand.
//!
//! Written after `arch/um/kernel/time.c` and `arch/um/drivers/virtio_uml.c`, not
//! after the calendar. The guest's memory is a memfd that it reads and writes as a
//! file; the calendar maps it.

mod driver;

pub use driver::{Driver, PROBE_STEPS};

use crate::ring::Transfer;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use std::fs::File;
use std::io::{IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

pub const START: u32 = 1;
pub const REQUEST: u32 = 2;
pub const WAIT: u32 = 3;
pub const GET: u32 = 4;
pub const UPDATE: u32 = 5;
pub const RUN: u32 = 6;
pub const FREE_UNTIL: u32 = 7;
pub const GET_TOD: u32 = 8;
/// `S64_MAX`: to sleep until something happens.
pub const FOREVER: u64 = i64::MAX as u64;

/// Where the calendar's sockets are.
#[derive(Debug, Clone)]
pub struct Sockets {
    pub clock: PathBuf,
    pub disks: Vec<PathBuf>,
}

/// One side of the time-travel socket.
pub struct Clock {
    pub socket: UnixStream,
    sequence: u32,
    shared: Option<File>,
    pub now: u64,
    propagated: u64,
    free_until: Option<u64>,
    /// Kicks and interrupts are in shared memory too.
    shares_disks: bool,
}

/// The shared memory's fields, those of `crates/uml/src/edits/disks_shared.c` among them.
const SHARED_OFFERED: u64 = 1024;
const SHARED_KICKS: u64 = 1028;
const SHARED_INTERRUPTS: u64 = 1032;
const SHARED_INTERRUPTING: u64 = 1036;
const SHARED_KICK: u64 = SHARED_INTERRUPTING + 64 * 4;
const MOST_SHARED_KICKS: u32 = 700;
const SHARED_FREE_UNTIL: u64 = 8;
const SHARED_CURRENT_TIME: u64 = 16;
const SHARED_RUNNING: u64 = 24;
const SHARED_SLOT: u64 = 4096 + 128;

impl Clock {
    pub fn start(path: &PathBuf) -> Self {
        let mut clock = Self {
            socket: UnixStream::connect(path).unwrap(),
            sequence: 0,
            shared: None,
            now: 0,
            propagated: 0,
            free_until: None,
            shares_disks: false,
        };
        clock.send(START, 1);
        let (message, files) = clock.receive_with_files();
        assert_eq!((message.0, message.1), (0, 1));
        if let [shared, _log] = &files[..] {
            assert_eq!(message.2, 1, "the guest's slot");
            let shared = shared.try_clone().unwrap();
            shared
                .write_all_at(&1_u32.to_le_bytes(), SHARED_SLOT)
                .unwrap();
            clock.shared = Some(shared);
        }
        let epoch = clock.ask(GET_TOD, u64::MAX);
        assert!(epoch > 1_700_000_000_000_000_000);
        clock
    }

    fn load(&self, at: u64) -> u64 {
        let mut bytes = [0; 8];
        self.shared
            .as_ref()
            .unwrap()
            .read_exact_at(&mut bytes, at)
            .unwrap();
        u64::from_le_bytes(bytes)
    }

    fn store(&self, at: u64, value: u64) {
        let shared = self.shared.as_ref().unwrap();
        shared.write_all_at(&value.to_le_bytes(), at).unwrap();
    }

    fn load_word(&self, at: u64) -> u32 {
        self.load(at) as u32
    }

    fn store_word(&self, at: u64, value: u32) {
        let shared = self.shared.as_ref().unwrap();
        shared.write_all_at(&value.to_le_bytes(), at).unwrap();
    }

    /// From now on kicks and interrupts go through shared memory.
    pub fn share_disks(&mut self) {
        assert_eq!(self.load_word(SHARED_OFFERED), 1, "it is offered");
        self.store_word(SHARED_SLOT, 1 | 1 << 31);
        self.shares_disks = true;
    }

    /// `raidlab_kick`; false if there is no room.
    pub fn leave_kick(&mut self, disk: usize, available: u16) -> bool {
        if !self.shares_disks {
            return false;
        }
        let kicks = self.load_word(SHARED_KICKS);
        if kicks >= MOST_SHARED_KICKS {
            return false;
        }
        let kick = disk as u32 | u32::from(available) << 16;
        self.store_word(SHARED_KICK + u64::from(kicks) * 4, kick);
        self.store_word(SHARED_KICKS, kicks + 1);
        self.store(
            SHARED_FREE_UNTIL,
            self.load(SHARED_FREE_UNTIL).min(self.now),
        );
        true
    }

    /// `raidlab_interrupts`: the disks that have interrupted while the guest waited.
    fn take_interrupts(&self) -> Vec<usize> {
        if !self.shares_disks {
            return Vec::new();
        }
        let count = u64::from(self.load_word(SHARED_INTERRUPTS));
        self.store_word(SHARED_INTERRUPTS, 0);
        let number = |index| self.load_word(SHARED_INTERRUPTING + index * 4) as usize;
        (0..count).map(number).collect()
    }

    pub fn send(&mut self, operation: u32, time: u64) -> u32 {
        self.sequence += 1;
        self.send_numbered(operation, self.sequence, time);
        self.sequence
    }

    fn send_numbered(&mut self, operation: u32, sequence: u32, time: u64) {
        let mut bytes = Vec::new();
        bytes.extend(operation.to_le_bytes());
        bytes.extend(sequence.to_le_bytes());
        bytes.extend(time.to_le_bytes());
        // A calendar that has ended takes nothing more, and a test may want that.
        let _ = self.socket.write_all(&bytes);
    }

    /// `None` when the calendar has gone.
    fn receive(&mut self) -> Option<(u32, u32, u64)> {
        let mut bytes = [0; 16];
        self.socket.read_exact(&mut bytes).ok()?;
        Some(parse(&bytes))
    }

    fn receive_with_files(&mut self) -> ((u32, u32, u64), Vec<File>) {
        let mut bytes = [0; 16];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let slices = &mut [IoSliceMut::new(&mut bytes)];
        let received = recvmsg(&self.socket, slices, &mut ancillary, RecvFlags::empty());
        assert_eq!(received.unwrap().bytes, 16);
        let mut files = Vec::new();
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                files.extend(rights.map(File::from));
            }
        }
        (parse(&bytes), files)
    }

    /// Sends a message and waits for its answer, doing meanwhile what is asked.
    fn ask(&mut self, operation: u32, time: u64) -> u64 {
        let sequence = self.send(operation, time);
        while let Some(message) = self.receive() {
            if message.0 == 0 {
                assert_eq!(message.1, sequence, "the answer to another question");
                return message.2;
            }
            self.obey(message);
        }
        0
    }

    /// Does what the calendar says; true if it says RUN.
    fn obey(&mut self, (operation, sequence, time): (u32, u32, u64)) -> bool {
        match operation {
            RUN => {
                self.set(time);
                if let Some(shared) = &self.shared {
                    let flags = SHARED_SLOT + 4;
                    shared.write_all_at(&0_u32.to_le_bytes(), flags).unwrap();
                    return true;
                }
            }
            FREE_UNTIL => {
                assert!(
                    self.shared.is_none(),
                    "FREE_UNTIL in spite of shared memory"
                );
                self.free_until = Some(time);
            }
            other => panic!("operation {other} from the calendar"),
        }
        self.send_numbered(0, sequence, 0);
        operation == RUN
    }

    fn set(&mut self, time: u64) {
        assert!(
            time >= self.now,
            "time goes backwards: {} to {time}",
            self.now
        );
        assert!(time < FOREVER, "the guest was going to sleep for ever");
        self.now = time;
    }

    fn free_until(&self) -> Option<u64> {
        match &self.shared {
            Some(_) => Some(self.load(SHARED_FREE_UNTIL)),
            None => self.free_until,
        }
    }

    fn request(&mut self, time: u64) {
        if self.shared.is_none() {
            self.ask(REQUEST, time);
            return;
        }
        self.store(SHARED_SLOT + 8, time);
        let shared = self.shared.as_ref().unwrap();
        shared
            .write_all_at(&1_u32.to_le_bytes(), SHARED_SLOT + 4)
            .unwrap();
        if time < self.load(SHARED_FREE_UNTIL) {
            self.store(SHARED_FREE_UNTIL, time);
        }
    }

    /// Before another participant is told something: my clock's time.
    pub fn propagate(&mut self) {
        if self.shared.is_some() {
            assert_eq!(self.load(SHARED_RUNNING) as u16, 1, "not running");
            self.store(SHARED_CURRENT_TIME, self.now);
        } else if self.propagated != self.now {
            self.ask(UPDATE, self.now);
            self.propagated = self.now;
        }
    }

    fn fetch_time(&mut self) {
        let time = match &self.shared {
            Some(_) => self.load(SHARED_CURRENT_TIME),
            None => self.ask(GET, u64::MAX),
        };
        self.set(time);
    }
}

fn parse(bytes: &[u8; 16]) -> (u32, u32, u64) {
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let time = u64::from_le_bytes(bytes[8..].try_into().unwrap());
    (word(0), word(4), time)
}

/// A guest that has booted.
pub struct Guest {
    pub clock: Clock,
    pub drivers: Vec<Driver>,
}

/// The calendar has gone.
#[derive(Debug, PartialEq, Eq)]
pub struct Gone;

impl Guest {
    /// Boots: the clock, then every disk.
    pub fn boot(sockets: &Sockets) -> Self {
        let mut clock = Clock::start(&sockets.clock);
        clock.propagate();
        let drivers = sockets.disks.iter().map(Driver::probe).collect();
        Self { clock, drivers }
    }

    /// The driver's `vu_notify`: my time, then the kick, then its answer.
    pub fn kick(&mut self, disk: usize) -> Result<(), Gone> {
        self.clock.propagate();
        let driver = &mut self.drivers[disk];
        if self.clock.leave_kick(disk, driver.ring.available) {
            return Ok(());
        }
        driver.send(35, &[0; 8], None);
        loop {
            let ready = readable(&[driver.socket.as_fd(), self.clock.socket.as_fd()]);
            if ready == 0 {
                return driver.acknowledged().then_some(()).ok_or(Gone);
            }
            let message = self.clock.receive().ok_or(Gone)?;
            self.clock.obey(message);
        }
    }

    /// Puts a request into the ring and kicks.
    pub fn submit(&mut self, disk: usize, transfer: &Transfer) -> Result<u16, Gone> {
        let slot = self.drivers[disk].ring.put(transfer);
        if self.drivers[disk].ring.wants_kicks() {
            self.kick(disk)?;
        }
        Ok(slot)
    }

    /// Lets time pass until `time`, or until a disk has interrupted.
    pub fn sleep_until(&mut self, time: u64) -> Result<(), Gone> {
        let freely = self.clock.free_until();
        if freely.is_some_and(|free_until| time < free_until) {
            self.clock.set(time);
            return Ok(());
        }
        self.clock.request(time);
        self.clock.free_until = None;
        if self.clock.shared.is_some() {
            self.clock.send(WAIT, u64::MAX);
        } else {
            self.clock.ask(WAIT, u64::MAX);
        }
        loop {
            let mut descriptors = vec![self.clock.socket.as_fd()];
            descriptors.extend(self.drivers.iter().map(|driver| driver.interrupts.as_fd()));
            match readable(&descriptors) {
                0 => {
                    let message = self.clock.receive().ok_or(Gone)?;
                    if self.clock.obey(message) {
                        for disk in self.clock.take_interrupts() {
                            self.drivers[disk].interrupted = true;
                        }
                        return Ok(());
                    }
                }
                other => self.interrupted(other - 1)?,
            }
        }
    }

    /// `vu_req_read_message` with a time-travel event.
    fn interrupted(&mut self, disk: usize) -> Result<(), Gone> {
        let mut message = [0; 20];
        let driver = &mut self.drivers[disk];
        driver
            .interrupts
            .read_exact(&mut message)
            .map_err(|_| Gone)?;
        assert_eq!(message[..12], [4, 0, 0, 0, 9, 0, 0, 0, 8, 0, 0, 0]);
        driver.interrupted = true;
        self.clock.fetch_time();
        self.clock.request(self.clock.now);
        let reply = [4, 0, 0, 0, 5, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let driver = &mut self.drivers[disk];
        driver.interrupts.write_all(&reply).map_err(|_| Gone)
    }

    /// Sleeps until a disk has given something back: disk, slots, in order.
    pub fn wait(&mut self) -> Result<Vec<(usize, u16)>, Gone> {
        loop {
            let mut done = Vec::new();
            for (disk, driver) in self.drivers.iter_mut().enumerate() {
                if std::mem::take(&mut driver.interrupted) {
                    let slots = driver.ring.take_used();
                    done.extend(slots.into_iter().map(|slot| (disk, slot)));
                }
            }
            if !done.is_empty() {
                return Ok(done);
            }
            self.sleep_until(FOREVER)?;
        }
    }

    /// One request alone: its status and its data, if it reads.
    pub fn perform(&mut self, disk: usize, transfer: &Transfer) -> Result<(u8, Vec<u8>), Gone> {
        let slot = self.submit(disk, transfer)?;
        loop {
            if self.wait()?.contains(&(disk, slot)) {
                return Ok(self.drivers[disk].ring.result(slot));
            }
        }
    }
}

/// The first of the descriptors that has something to read.
fn readable(descriptors: &[BorrowedFd<'_>]) -> usize {
    let mut polled: Vec<PollFd<'_>> = descriptors
        .iter()
        .map(|&descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN))
        .collect();
    loop {
        if poll(&mut polled, None).is_ok_and(|count| count > 0) {
            let ready = polled.iter().position(|one| !one.revents().is_empty());
            return ready.unwrap();
        }
    }
}
