//! The server's side against the client of tests, in memory and in any fragments.

#[path = "../client/mod.rs"]
#[expect(dead_code, reason = "other crates' tests share it")]
mod client;
mod handshake;
mod nonsense;
mod transmission;

use raidlab_nbd::{BlockSizes, ExportInfo, TransmissionFlags, server::Directory};
use std::{
    io::{self, Read, Write},
    sync::{Arc, Mutex},
};

/// A directory of a few exports.
pub(crate) struct Known(pub Vec<ExportInfo>);

impl Directory for Known {
    fn list(&self) -> Vec<(String, String)> {
        self.0
            .iter()
            .map(|export| (export.name.clone(), export.description.clone()))
            .collect()
    }

    fn find(&self, name: &str) -> Option<ExportInfo> {
        self.0
            .iter()
            .find(|export| name.is_empty() || export.name == name)
            .cloned()
    }
}

/// An export that takes everything.
pub(crate) fn export(name: &str, size_bytes: u64) -> ExportInfo {
    ExportInfo {
        name: name.to_owned(),
        description: format!("the export {name}"),
        size_bytes,
        flags: TransmissionFlags(0b1101_0111_1101 & !TransmissionFlags::READ_ONLY.0),
        block_sizes: BlockSizes::default(),
        contexts: vec!["base:allocation".to_owned(), "raidlab:state".to_owned()],
    }
}

/// A side without I/O: takes some of the input and writes its answers.
pub(crate) trait Side: Send {
    fn receive(&mut self, input: &[u8], output: &mut Vec<u8>) -> usize;
}

/// A connection to a side in the same thread, whose bytes come to it, and back, in
/// fragments of the given lengths, used round and round.
pub(crate) struct Connection<T> {
    pub side: Arc<Mutex<T>>,
    lengths: Vec<usize>,
    turn: usize,
    input: Vec<u8>,
    output: Vec<u8>,
}

impl<T: Side> Connection<T> {
    pub fn new(side: T, output: Vec<u8>, lengths: &[usize]) -> Self {
        Self {
            side: Arc::new(Mutex::new(side)),
            lengths: lengths.to_vec(),
            turn: 0,
            input: Vec::new(),
            output,
        }
    }

    fn fragment(&mut self, available: usize) -> usize {
        self.turn += 1;
        self.lengths[self.turn % self.lengths.len()].min(available)
    }
}

impl<T: Side> Write for Connection<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.input.extend(bytes);
        loop {
            let count = self.fragment(self.input.len());
            let side = Arc::clone(&self.side);
            let mut side = side.lock().unwrap();
            let taken = side.receive(&self.input[..count], &mut self.output);
            self.input.drain(..taken);
            if taken == 0 {
                return Ok(bytes.len());
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<T: Side> Read for Connection<T> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = self.fragment(bytes.len().min(self.output.len()));
        bytes[..count].copy_from_slice(&self.output[..count]);
        self.output.drain(..count);
        Ok(count)
    }
}
