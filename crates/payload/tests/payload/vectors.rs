//! The simplest store: each buffer is a vector. Tests of other crates share it.

use raidlab_array::{BufferId, ComputeStep, RequestId, ScratchId, StepId, StepResult};
use raidlab_payload::{PayloadError, Ranges, Store, execute, length};
use raidlab_units::Sectors;
use std::collections::BTreeMap;
use std::ops::Range;

/// What a step asked for and cannot have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Misuse {
    /// No buffer of this name, or not so many bytes of it.
    Beyond(BufferId),
    /// There is a scratch buffer of this name.
    Exists(ScratchId),
    /// A range that is written overlaps another one.
    Overlap(BufferId, BufferId),
    /// The step makes no sense.
    Step(PayloadError),
}

impl From<PayloadError> for Misuse {
    fn from(error: PayloadError) -> Self {
        Self::Step(error)
    }
}

/// A buffer's name, and bytes of it.
type Region = (BufferId, Range<usize>);

/// Buffers that are vectors, by the names that they have at skip 0.
pub struct Vectors {
    buffers: BTreeMap<(bool, u64), Vec<u8>>,
    /// What a scratch buffer is full of when it is made.
    poison: u8,
}

fn key(buffer: BufferId) -> Option<((bool, u64), Sectors)> {
    match buffer {
        BufferId::Request { request, skip } => Some(((true, request.0), skip)),
        BufferId::Scratch { scratch, skip } => Some(((false, scratch.0.into()), skip)),
        BufferId::None => None,
    }
}

impl Vectors {
    /// A store without buffers; new ones are full of `poison`.
    pub fn new(poison: u8) -> Self {
        Self {
            buffers: BTreeMap::new(),
            poison,
        }
    }

    /// Gives a request's payload into the core's hands.
    pub fn insert(&mut self, request: RequestId, payload: Vec<u8>) {
        let before = self.buffers.insert((true, request.0), payload);
        assert!(before.is_none(), "{request:?} has a payload");
    }

    /// Takes a request's payload back, if it has one.
    pub fn remove(&mut self, request: RequestId) -> Option<Vec<u8>> {
        self.buffers.remove(&(true, request.0))
    }

    /// Executes a step.
    pub fn execute(&mut self, step: &ComputeStep) -> Result<Option<(StepId, StepResult)>, Misuse> {
        execute(self, step)
    }

    /// The bytes of a buffer.
    pub fn slice(&self, buffer: BufferId, count: Sectors) -> Result<&[u8], Misuse> {
        let (_, range) = self.region(buffer, length(count))?;
        Ok(&self.bytes(buffer)[range])
    }

    /// The bytes of a buffer, to be written.
    pub fn slice_mut(&mut self, buffer: BufferId, count: Sectors) -> Result<&mut [u8], Misuse> {
        let (_, range) = self.region(buffer, length(count))?;
        Ok(&mut self.bytes_mut(buffer)[range])
    }

    fn region(&self, buffer: BufferId, bytes: usize) -> Result<Region, Misuse> {
        let there = key(buffer).and_then(|(key, skip)| {
            let start = length(skip);
            let range = start..start.checked_add(bytes)?;
            self.buffers.get(&key)?.get(range.clone())?;
            Some((buffer, range))
        });
        there.ok_or(Misuse::Beyond(buffer))
    }

    fn bytes(&self, buffer: BufferId) -> &[u8] {
        key(buffer).map_or(&[], |(key, _)| &self.buffers[&key])
    }

    fn bytes_mut(&mut self, buffer: BufferId) -> &mut [u8] {
        let there = key(buffer).and_then(|(key, _)| self.buffers.get_mut(&key));
        there.expect("a region was found in it")
    }
}

impl Store for Vectors {
    type Error = Misuse;

    fn allocate(&mut self, scratch: ScratchId, count: Sectors) -> Result<(), Misuse> {
        let key = (false, scratch.0.into());
        if self.buffers.contains_key(&key) {
            return Err(Misuse::Exists(scratch));
        }
        self.buffers.insert(key, vec![self.poison; length(count)]);
        Ok(())
    }

    fn release(&mut self, scratch: ScratchId) -> Result<(), Misuse> {
        let released = self.buffers.remove(&(false, scratch.0.into()));
        released.map(drop).ok_or(Misuse::Beyond(scratch.whole()))
    }

    fn with<R>(
        &mut self,
        ranges: Ranges<'_>,
        work: impl FnOnce(&[Option<&[u8]>], &mut [Option<&mut [u8]>]) -> R,
    ) -> Result<R, Misuse> {
        let regions = |buffers: &[BufferId]| -> Result<Vec<Option<Region>>, Misuse> {
            let is_there = |buffer: &BufferId| *buffer != BufferId::None;
            let region = |buffer: &BufferId| {
                is_there(buffer)
                    .then(|| self.region(*buffer, ranges.bytes))
                    .transpose()
            };
            buffers.iter().map(region).collect()
        };
        let (reads, writes) = (regions(ranges.reads)?, regions(ranges.writes)?);
        for (at, write) in writes.iter().enumerate() {
            let Some((buffer, range)) = write else {
                continue;
            };
            let others = reads.iter().chain(&writes[..at]).flatten();
            for (other, there) in others {
                let is_same = key(*buffer).map(|it| it.0) == key(*other).map(|it| it.0);
                if is_same && range.start < there.end && there.start < range.end {
                    return Err(Misuse::Overlap(*other, *buffer));
                }
            }
        }
        let bytes_of = |regions: &[Option<Region>]| -> Vec<Option<Vec<u8>>> {
            let bytes = |(buffer, range): &Region| self.bytes(*buffer)[range.clone()].to_vec();
            regions
                .iter()
                .map(|region| region.as_ref().map(bytes))
                .collect()
        };
        let (read, mut written) = (bytes_of(&reads), bytes_of(&writes));
        let read: Vec<_> = read.iter().map(Option::as_deref).collect();
        let mut to_write: Vec<_> = written.iter_mut().map(Option::as_deref_mut).collect();
        let result = work(&read, &mut to_write);
        for ((buffer, range), bytes) in writes.into_iter().flatten().zip(written.iter().flatten()) {
            self.bytes_mut(buffer)[range].copy_from_slice(bytes);
        }
        Ok(result)
    }
}
