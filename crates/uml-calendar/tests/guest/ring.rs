//! A split ring of 256 entries in a memfd, and virtio-blk requests in it.

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Where the shared memory begins; below it is the kernel's image.
pub const SHARED_FROM: u64 = 0x10_0000;
const SHARED_BYTES: u64 = 16 << 20;
const ENTRIES: u16 = 256;
const DESCRIPTORS: u64 = SHARED_FROM;
const AVAILABLE: u64 = SHARED_FROM + 0x1000;
const USED: u64 = SHARED_FROM + 0x2000;
const SLOTS_FROM: u64 = SHARED_FROM + 0x1_0000;
/// A page for header, status and indirect descriptors, and room for 128 KiB.
const SLOT_BYTES: u64 = 0x2_1000;
/// Every slot owns three descriptors.
pub const SLOTS: u16 = 80;
const STATUS_AT: u64 = 16;
const INDIRECT_AT: u64 = 64;
const DATA_AT: u64 = 4096;

const NEXT: u16 = 1;
const WRITE: u16 = 2;
const INDIRECT: u16 = 4;

pub const IN: u32 = 0;
pub const OUT: u32 = 1;
pub const FLUSH: u32 = 4;
pub const GET_ID: u32 = 8;
pub const DISCARD: u32 = 11;
pub const WRITE_ZEROES: u32 = 13;

/// A request to be made.
#[derive(Debug, Clone)]
pub struct Transfer {
    pub kind: u32,
    pub sector: u64,
    /// Data for the disk.
    pub out: Vec<u8>,
    /// Room for data from it.
    pub room: u32,
    /// Through a table of descriptors of its own.
    pub indirect: bool,
    /// The data's address, if not the slot's own room.
    pub address: Option<u64>,
}

impl Transfer {
    pub fn read(sector: u64, bytes: u32) -> Self {
        Self {
            kind: IN,
            sector,
            out: Vec::new(),
            room: bytes,
            indirect: false,
            address: None,
        }
    }

    pub fn write(sector: u64, bytes: Vec<u8>) -> Self {
        Self {
            out: bytes,
            kind: OUT,
            ..Self::read(sector, 0)
        }
    }

    pub fn of_kind(kind: u32) -> Self {
        Self {
            kind,
            ..Self::read(0, 0)
        }
    }

    /// A discard or a range to zero.
    pub fn range(kind: u32, sector: u64, count: u32) -> Self {
        let mut range = sector.to_le_bytes().to_vec();
        range.extend(count.to_le_bytes());
        range.extend([0; 4]);
        Self {
            kind,
            ..Self::write(0, range)
        }
    }
}

pub struct Ring {
    pub memory: File,
    pub offered: u64,
    pub available: u16,
    used: u16,
    free: Vec<u16>,
    rooms: Vec<u32>,
}

impl Ring {
    pub fn new() -> Self {
        let memory = File::from(memfd_create("guest", MemfdFlags::CLOEXEC).unwrap());
        ftruncate(&memory, SHARED_FROM + SHARED_BYTES).unwrap();
        Self {
            memory,
            offered: 0,
            available: 0,
            used: 0,
            free: (0..SLOTS).rev().collect(),
            rooms: vec![0; usize::from(SLOTS)],
        }
    }

    /// A new ring, with the same features.
    pub fn again(&self) -> Self {
        Self {
            offered: self.offered,
            ..Self::new()
        }
    }

    /// All that is offered and that Linux takes.
    pub fn features(&self) -> u64 {
        self.offered
    }

    /// One region, in a table with room for two, as virtio_uml sends it.
    pub fn memory_table(&self) -> Vec<u8> {
        let mut table = vec![1, 0, 0, 0, 0, 0, 0, 0];
        for number in [SHARED_FROM, SHARED_BYTES, SHARED_FROM, SHARED_FROM] {
            table.extend(number.to_le_bytes());
        }
        table.resize(72, 0);
        table
    }

    pub fn addresses(&self) -> Vec<u8> {
        let mut payload = vec![0; 8];
        for number in [DESCRIPTORS, USED, AVAILABLE, u64::MAX] {
            payload.extend(number.to_le_bytes());
        }
        payload
    }

    pub fn poke(&self, address: u64, bytes: &[u8]) {
        self.memory.write_all_at(bytes, address).unwrap();
    }

    pub fn peek(&self, address: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.memory.read_exact_at(&mut bytes, address).unwrap();
        bytes
    }

    fn peek_u16(&self, address: u64) -> u16 {
        let bytes = self.peek(address, 2);
        u16::from_le_bytes([bytes[0], bytes[1]])
    }

    /// Whether the device wants to be kicked.
    pub fn wants_kicks(&self) -> bool {
        self.peek_u16(USED) & 1 == 0
    }

    pub fn slot_at(slot: u16) -> u64 {
        SLOTS_FROM + u64::from(slot) * SLOT_BYTES
    }

    pub fn put_descriptor(&self, table: u64, index: u16, entry: (u64, u32, u16, u16)) {
        let mut bytes = entry.0.to_le_bytes().to_vec();
        bytes.extend(entry.1.to_le_bytes());
        bytes.extend(entry.2.to_le_bytes());
        bytes.extend(entry.3.to_le_bytes());
        self.poke(table + u64::from(index) * 16, &bytes);
    }

    /// Puts a request into the ring; its slot.
    pub fn put(&mut self, transfer: &Transfer) -> u16 {
        let slot = self.free.pop().expect("a free slot");
        self.rooms[usize::from(slot)] = transfer.room;
        let at = Self::slot_at(slot);
        let mut header = transfer.kind.to_le_bytes().to_vec();
        header.extend([0; 4]);
        header.extend(transfer.sector.to_le_bytes());
        header.push(0xff);
        self.poke(at, &header);
        let data = transfer.address.unwrap_or(at + DATA_AT);
        if transfer.address.is_none() {
            self.poke(data, &transfer.out);
        }
        let mut parts = vec![(at, 16, 0)];
        match (transfer.out.len() as u32, transfer.room) {
            (0, 0) => {}
            (0, room) => parts.push((data, room, WRITE)),
            (out, _) => parts.push((data, out, 0)),
        }
        parts.push((at + STATUS_AT, 1, WRITE));
        let (table, first) = if transfer.indirect {
            (at + INDIRECT_AT, 0)
        } else {
            (DESCRIPTORS, slot * 3)
        };
        for (index, &(address, length, flags)) in parts.iter().enumerate() {
            let index = index as u16;
            let more = if usize::from(index) + 1 < parts.len() {
                NEXT
            } else {
                0
            };
            let entry = (address, length, flags | more, first + index + 1);
            self.put_descriptor(table, first + index, entry);
        }
        if transfer.indirect {
            let length = parts.len() as u32 * 16;
            self.put_descriptor(DESCRIPTORS, slot * 3, (table, length, INDIRECT, 0));
        }
        self.offer(slot * 3);
        slot
    }

    /// Makes a chain available.
    pub fn offer(&mut self, head: u16) {
        let entry = AVAILABLE + 4 + u64::from(self.available % ENTRIES) * 2;
        self.poke(entry, &head.to_le_bytes());
        self.available = self.available.wrapping_add(1);
        self.poke(AVAILABLE + 2, &self.available.to_le_bytes());
    }

    /// Offers chains that do not exist.
    pub fn pretend(&mut self, ahead: u16) {
        self.poke(
            AVAILABLE + 2,
            &self.available.wrapping_add(ahead).to_le_bytes(),
        );
    }

    /// Takes back what the device has used, in its order.
    pub fn take_used(&mut self) -> Vec<u16> {
        let mut slots = Vec::new();
        while self.used != self.peek_u16(USED + 2) {
            let entry = USED + 4 + u64::from(self.used % ENTRIES) * 8;
            let head = self.peek_u16(entry);
            self.used = self.used.wrapping_add(1);
            self.free.push(head / 3);
            slots.push(head / 3);
        }
        slots
    }

    /// A slot's status, and its data.
    pub fn result(&self, slot: u16) -> (u8, Vec<u8>) {
        let at = Self::slot_at(slot);
        let room = self.rooms[usize::from(slot)] as usize;
        (
            self.peek(at + STATUS_AT, 1)[0],
            self.peek(at + DATA_AT, room),
        )
    }
}
