//! Several ranges of several buffers at once, without copying a byte.
//!
//! A step reads some ranges and writes others, often of one and the same
//! buffer. The ranges of a step never overlap, so they can all be borrowed for
//! writing at the same time: sorted by buffer and start, each is split off the
//! front of what is left of the table, and of its buffer.

use crate::buffers::Entry;

/// A range of a buffer that a step names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Region {
    /// Which place of the table.
    pub(crate) entry: u32,
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Which of the step's buffers.
    pub(crate) place: u32,
}

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
