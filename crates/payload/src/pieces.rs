//! Several ranges of several buffers at once, without copying a byte.
//!
//! A step reads some ranges and writes others, often of one and the same
//! buffer. The ranges of a step never overlap, so they can all be borrowed for
//! writing at the same time: sorted by buffer and start, each is split off the
//! front of what is left of the table, and of its buffer.

use crate::PayloadError;
use crate::buffers::{Buffers, Entry, Region};
use crate::execute::{Ranges, Store, execute};
use raidlab_array::{BufferId, ComputeStep, ScratchId, StepId, StepResult};
use raidlab_units::Sectors;

/// The places of two regions that overlap.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Overlap(pub(crate) u32, pub(crate) u32);

/// The bytes of all regions, each at its place of `count`; the rest `None`.
pub(crate) fn borrow<'a>(
    mut entries: &'a mut [Entry],
    regions: &mut [Region],
    count: usize,
) -> Result<Vec<Option<&'a mut [u8]>>, Overlap> {
    regions.sort_unstable_by_key(|region| (region.entry, region.start));
    let mut pieces: Vec<Option<&'a mut [u8]>> = Vec::with_capacity(count);
    pieces.resize_with(count, || None);
    // What was split off so far: places of the table, bytes of the last one.
    let mut entries_before = 0;
    let mut bytes_before = 0;
    let mut bytes: &'a mut [u8] = &mut [];
    let mut last: Option<Region> = None;
    for region in regions.iter() {
        match last {
            Some(last) if last.entry == region.entry => {
                if region.start < last.end {
                    return Err(Overlap(last.place, region.place));
                }
            }
            _ => {
                let place = region.entry as usize - entries_before;
                let (_, from_place) = entries.split_at_mut(place);
                let (entry, others) = from_place
                    .split_first_mut()
                    .expect("places are in the table");
                entries = others;
                entries_before = region.entry as usize + 1;
                bytes = entry.buffer.as_mut().expect("names lead to buffers");
                bytes_before = 0;
            }
        }
        let (_, from_start) = bytes.split_at_mut(region.start - bytes_before);
        let (piece, others) = from_start.split_at_mut(region.end - region.start);
        bytes = others;
        bytes_before = region.end;
        pieces[region.place as usize] = Some(piece);
        last = Some(*region);
    }
    Ok(pieces)
}

impl Buffers {
    /// Executes one step. Gives back the result of a step with an id.
    ///
    /// # Errors
    /// See [`execute`].
    pub fn execute(
        &mut self,
        step: &ComputeStep,
    ) -> Result<Option<(StepId, StepResult)>, PayloadError> {
        execute(self, step)
    }

    /// The bytes of several buffers at once.
    fn borrow(&mut self, ranges: Ranges<'_>) -> Result<Vec<Option<&mut [u8]>>, PayloadError> {
        let buffers = || ranges.reads.iter().chain(ranges.writes).copied();
        let mut regions = std::mem::take(&mut self.regions);
        regions.clear();
        for (place, buffer) in (0..).zip(buffers()) {
            if buffer != BufferId::None {
                let mut region = self.region(buffer, ranges.bytes)?;
                region.place = place;
                regions.push(region);
            }
        }
        self.regions = regions;
        borrow(&mut self.entries, &mut self.regions, buffers().count()).map_err(
            |Overlap(first, second)| {
                let [first, second] = [first, second].map(|place| {
                    let buffer = buffers().nth(place as usize);
                    buffer.unwrap_or(BufferId::None)
                });
                PayloadError::Overlap(first, second)
            },
        )
    }
}

impl Store for Buffers {
    type Error = PayloadError;

    fn allocate(&mut self, scratch: ScratchId, count: Sectors) -> Result<(), PayloadError> {
        Self::allocate(self, scratch, count)
    }

    fn release(&mut self, scratch: ScratchId) -> Result<(), PayloadError> {
        Self::release(self, scratch)
    }

    fn with<R>(
        &mut self,
        ranges: Ranges<'_>,
        work: impl FnOnce(&[Option<&[u8]>], &mut [Option<&mut [u8]>]) -> R,
    ) -> Result<R, PayloadError> {
        if ranges.writes.is_empty() {
            // What is only read may overlap.
            let slice = |&buffer: &BufferId| match buffer {
                BufferId::None => Ok(None),
                buffer => self.bytes_of(buffer, ranges.bytes).map(Some),
            };
            let reads = ranges.reads.iter().map(slice);
            return Ok(work(&reads.collect::<Result<Vec<_>, _>>()?, &mut []));
        }
        let mut pieces = self.borrow(ranges)?;
        let (reads, writes) = pieces.split_at_mut(ranges.reads.len());
        let reads: Vec<_> = reads.iter().map(Option::as_deref).collect();
        Ok(work(&reads, writes))
    }
}
