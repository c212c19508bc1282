//! Members against a flat array of bytes, over real files with each backend;
//! and what no file does on demand (cut a command short, fail, hang) with a
//! backend that does as it is told.

mod files;
mod told;

use super::{Memory, Transfer};
use crate::export::BufferPool;
use raidlab_units::Nanos;
use std::sync::Arc;

fn memory(bytes: &[u8]) -> Arc<Memory> {
    let mut buffer = BufferPool::default().take(bytes.len()).expect("room");
    buffer.copy_from_slice(bytes);
    Memory::new(buffer)
}

fn write(bytes: &[u8]) -> Transfer {
    Transfer::Write {
        data: memory(bytes).read(0..bytes.len()).expect("free"),
        force_unit_access: false,
    }
}

fn read(len: usize) -> Transfer {
    Transfer::Read(memory(&vec![0xee; len]).write(0..len).expect("free"))
}

fn zero() -> Nanos {
    Nanos::ZERO
}
