//! Disks with content for the oracle: a version number per sector.
//!
//! A command lands (its effect happens) at some time after it was sent and
//! before it completes; both times are the test's choice. What a command reads
//! or writes is decided when it lands, so every interleaving that real disks
//! could show can be made.

use crate::request::{BufferId, MemberCommand, MemberError, Operation, ScratchId};
use std::collections::BTreeMap;

/// A version number. Each write request writes its own.
pub(super) type Version = u64;

/// What a disk that left the array holds.
pub(super) const POISON: Version = u64::MAX;

pub(super) struct Disk {
    pub(super) content: Vec<Version>,
    /// Answers nothing but `Gone`.
    pub(super) gone: bool,
    /// Was failed or removed: nothing from it may be used.
    pub(super) retired: bool,
    /// Failed a command, or an administrator wanted it out.
    pub(super) blamed: bool,
}

pub(super) struct Flight {
    pub(super) command: MemberCommand,
    /// The disk it was sent to: the slot may hold another one by now.
    pub(super) disk: usize,
    pub(super) landed: bool,
    pub(super) result: Result<(), MemberError>,
    /// What a read found.
    pub(super) data: Vec<Version>,
}

/// Payloads by buffer.
#[derive(Default)]
pub(super) struct Buffers {
    pub(super) requests: BTreeMap<u64, Vec<Version>>,
    scratch: BTreeMap<u32, Vec<Version>>,
}

impl Buffers {
    fn load(&self, command: &MemberCommand, discarded: Version) -> Vec<Version> {
        let count = index(command.count.0);
        match command.buffer {
            BufferId::Request { request, skip } => {
                self.requests[&request.0][index(skip.0)..][..count].to_vec()
            }
            BufferId::Scratch {
                scratch: ScratchId(number),
                ..
            } => self.scratch[&number][..count].to_vec(),
            BufferId::None => vec![discarded; count],
        }
    }

    pub(super) fn store(&mut self, flight: &Flight) {
        match flight.command.buffer {
            BufferId::Request { request, skip } => {
                let payload = self.requests.get_mut(&request.0).expect("in flight");
                payload[index(skip.0)..][..flight.data.len()].copy_from_slice(&flight.data);
            }
            BufferId::Scratch {
                scratch: ScratchId(number),
                ..
            } => {
                self.scratch.insert(number, flight.data.clone());
            }
            BufferId::None => panic!("a read without a buffer"),
        }
    }
}

impl Disk {
    pub(super) fn new(content: Vec<Version>) -> Self {
        Self {
            content,
            gone: false,
            retired: false,
            blamed: false,
        }
    }

    /// The command's effect. `discarded` is what discarded sectors read as.
    pub(super) fn land(
        &mut self,
        flight: &mut Flight,
        buffers: &Buffers,
        offset: u64,
        discarded: Version,
    ) {
        flight.landed = true;
        let command = &flight.command;
        let Some(start) = command.start.0.checked_sub(offset) else {
            assert_eq!(command.operation, Operation::Flush);
            return;
        };
        let range = index(start)..index(start + command.count.0);
        match command.operation {
            Operation::Read => flight.data = self.content[range].to_vec(),
            Operation::Write | Operation::Discard => {
                let data = buffers.load(command, discarded);
                self.content[range].copy_from_slice(&data);
            }
            Operation::Flush => {}
        }
    }
}

pub(super) fn index(sectors: u64) -> usize {
    usize::try_from(sectors).expect("a small array")
}
