//! One disk's driver: the vhost-user socket.

use crate::ring::Ring;
use std::io::Read;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

/// The driver of one disk.
pub struct Driver {
    pub socket: UnixStream,
    pub(super) interrupts: UnixStream,
    pub ring: Ring,
    pub configuration: Vec<u8>,
    pub(super) interrupted: bool,
}

impl Driver {
    /// The messages of a platform probe, in virtio_uml's order.
    pub fn probe(path: &PathBuf) -> Self {
        Self::begin_probe(path, PROBE_STEPS)
    }

    /// The first so many of them.
    pub fn begin_probe(path: &PathBuf, steps: usize) -> Self {
        let socket = UnixStream::connect(path).unwrap();
        let (interrupts, theirs) = UnixStream::pair().unwrap();
        let mut driver = Self {
            socket,
            interrupts,
            ring: Ring::new(),
            configuration: Vec::new(),
            interrupted: false,
        };
        for step in 0..steps {
            driver.probe_step(step, Some(theirs.as_fd()));
        }
        driver
    }

    /// One step of a probe.
    pub fn probe_step(&mut self, step: usize, interrupts: Option<BorrowedFd<'_>>) {
        let number = |number: u64| number.to_le_bytes();
        let state = |num: u64| number(num << 32);
        match step {
            0 => self.send_plain(3, &[]),
            1 => self.ask_number(1, 0x0_4000_0004),
            2 => self.ask_number(15, 0x4228),
            3 => self.tell(16, &number(0x4228), None),
            4 => self.tell(21, &[], interrupts),
            5 => {
                self.configuration = self.get_config(8);
                self.configuration = self.get_config(60);
            }
            6 => self.tell(2, &number(self.ring.features()), None),
            7 => {
                let table = self.ring.memory_table();
                let memory = self.ring.memory.try_clone().unwrap();
                self.tell(5, &table, Some(memory.as_fd()));
            }
            8 => self.tell(8, &state(256), None),
            9 => self.tell(10, &state(0), None),
            10 => self.tell(9, &self.ring.addresses(), None),
            _ => self.tell(18, &state(1), None),
        }
    }

    pub fn send(&mut self, request: u32, payload: &[u8], file: Option<BorrowedFd<'_>>) {
        self.send_flagged(request, 9, payload, file);
    }

    fn send_plain(&mut self, request: u32, payload: &[u8]) {
        self.send_flagged(request, 1, payload, None);
    }

    fn send_flagged(
        &mut self,
        request: u32,
        flags: u32,
        payload: &[u8],
        file: Option<BorrowedFd<'_>>,
    ) {
        let mut bytes = Vec::new();
        bytes.extend(request.to_le_bytes());
        bytes.extend(flags.to_le_bytes());
        bytes.extend((payload.len() as u32).to_le_bytes());
        bytes.extend(payload);
        send_with_file(&self.socket, &bytes, file);
    }

    fn read_reply(&mut self) -> Option<(u32, u32, Vec<u8>)> {
        let mut header = [0; 12];
        self.socket.read_exact(&mut header).ok()?;
        let word = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().unwrap());
        let mut payload = vec![0; word(8) as usize];
        self.socket.read_exact(&mut payload).ok()?;
        Some((word(0), word(4), payload))
    }

    /// Whether the calendar said that it has done something.
    pub(super) fn acknowledged(&mut self) -> bool {
        match self.read_reply() {
            Some((_, flags, payload)) => {
                assert_eq!((flags, &payload[..]), (5, &[0; 8][..]));
                true
            }
            None => false,
        }
    }

    pub fn tell(&mut self, request: u32, payload: &[u8], file: Option<BorrowedFd<'_>>) {
        self.send(request, payload, file);
        assert!(self.acknowledged(), "no answer to request {request}");
    }

    fn ask_number(&mut self, request: u32, least: u64) {
        self.send_plain(request, &[]);
        let (code, flags, payload) = self.read_reply().unwrap();
        assert_eq!((code, flags), (request, 5));
        let number = u64::from_le_bytes(payload[..].try_into().unwrap());
        assert_eq!(number & least, least, "features of request {request}");
        if request == 1 {
            self.ring.offered = number;
        }
    }

    /// `vhost_user_get_config` of the first `size` bytes.
    pub fn get_config(&mut self, size: u32) -> Vec<u8> {
        let mut payload = vec![0; 12 + size as usize];
        payload[4..8].copy_from_slice(&size.to_le_bytes());
        self.send_plain(24, &payload);
        let (code, flags, reply) = self.read_reply().unwrap();
        assert_eq!((code, flags, reply.len()), (24, 5, payload.len()));
        assert_eq!(reply[..12], payload[..12]);
        reply[12..].to_vec()
    }
}

/// How many steps a probe has.
pub const PROBE_STEPS: usize = 12;

fn send_with_file(socket: &UnixStream, bytes: &[u8], file: Option<BorrowedFd<'_>>) {
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let files: Vec<BorrowedFd<'_>> = file.into_iter().collect();
    if !files.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(&files));
    }
    let slices = [std::io::IoSlice::new(bytes)];
    // The calendar may have gone, and a test may want that.
    let _ = sendmsg(socket, &slices, &mut ancillary, SendFlags::NOSIGNAL);
}
