//! Disks with content for the oracle: a version number per sector.
//!
//! A command lands (its effect happens) at some time after it was sent and
//! before it completes; both times are the test's choice. What a command reads
//! or writes is decided when it lands, so every interleaving that real disks
//! could show can be made.

use crate::request::{BufferId, ComputeStep, MemberCommand, MemberError, Operation, StepResult};
use raidlab_units::Sectors;
use std::collections::{BTreeMap, BTreeSet};

/// A version number. Each write request writes its own.
pub(super) type Version = u64;

/// What a disk that left the array holds.
pub(super) const POISON: Version = u64::MAX;

#[derive(Clone)]
pub(super) struct Disk {
    /// By sector of the data area.
    pub(super) content: Vec<Version>,
    /// Sectors that cannot be read until they are written.
    pub(super) latent: BTreeSet<usize>,
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
    /// What a discard leaves behind.
    pub(super) discarded: Version,
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
    fn bytes(&mut self, buffer: BufferId, count: Sectors) -> &mut [Version] {
        let (all, skip) = match buffer {
            BufferId::Request { request, skip } => {
                (self.requests.get_mut(&request.0).expect("in flight"), skip)
            }
            BufferId::Scratch { scratch, skip } => {
                (self.scratch.get_mut(&scratch.0).expect("allocated"), skip)
            }
            BufferId::None => panic!("a command without a buffer"),
        };
        &mut all[index(skip.0)..][..index(count.0)]
    }

    pub(super) fn store(&mut self, flight: &Flight) {
        let bytes = self.bytes(flight.command.buffer, flight.command.count);
        bytes.copy_from_slice(&flight.data);
    }

    /// Executes a step; gives its result if it has one.
    pub(super) fn execute(&mut self, step: &ComputeStep) -> Option<StepResult> {
        match step {
            ComputeStep::Allocate { scratch, count } => {
                let undefined = vec![POISON; index(count.0)];
                let before = self.scratch.insert(scratch.0, undefined);
                assert!(before.is_none(), "{scratch:?} is allocated twice");
                None
            }
            ComputeStep::Release { scratch } => {
                let released = self.scratch.remove(&scratch.0);
                assert!(released.is_some(), "{scratch:?} is not allocated");
                None
            }
            ComputeStep::Compare {
                left, right, count, ..
            } => {
                let left = self.bytes(*left, *count).to_vec();
                let right = self.bytes(*right, *count).iter();
                let different = left.iter().zip(right).filter(|(left, right)| left != right);
                let different = Sectors(different.count() as u64);
                Some(StepResult::Compared { different })
            }
            other => panic!("{other:?} in an array of copies"),
        }
    }

    pub(super) fn nothing_is_allocated(&self) -> bool {
        self.scratch.is_empty()
    }
}

impl Disk {
    pub(super) fn new(content: Vec<Version>) -> Self {
        Self {
            content,
            latent: BTreeSet::new(),
            gone: false,
            retired: false,
            blamed: false,
        }
    }

    /// The command's effect.
    pub(super) fn land(&mut self, flight: &mut Flight, buffers: &mut Buffers, offset: u64) {
        flight.landed = true;
        let command = &flight.command;
        let Some(start) = command.start.0.checked_sub(offset) else {
            assert_eq!(command.operation, Operation::Flush);
            return;
        };
        let range = index(start)..index(start + command.count.0);
        match command.operation {
            Operation::Read => {
                flight.data = self.content[range.clone()].to_vec();
                if self.latent.range(range).next().is_some() {
                    flight.result = Err(MemberError::Medium);
                }
            }
            Operation::Write => {
                self.latent.retain(|sector| !range.contains(sector));
                let data = buffers.bytes(command.buffer, command.count);
                self.content[range].copy_from_slice(data);
            }
            Operation::Discard => self.content[range].fill(flight.discarded),
            Operation::Flush => {}
        }
    }
}

pub(super) fn index(sectors: u64) -> usize {
    usize::try_from(sectors).expect("a small array")
}
