//! Prefetch in OpenZFS 2.3 (`dmu_zfetch_prepare`, `dmu_zfetch_stream_create`).
//!
//! A read that begins at a stream's position, or in its last block, or that crosses its position,
//! advances the stream. Then the stream's distance, which begins with the length of a read, doubles
//! up to a minimum (4 MiB), and from then on grows by an eighth whenever a block ordered ahead came
//! after the stream had passed it, up to a maximum (64 MiB); all blocks within the distance that
//! have not been ordered are, and beyond them indirect blocks, whose own distance doubles with
//! every read up to a maximum (128 MiB). Data are ordered only from the first time on that a read
//! of the stream found a block missing. A read a little ahead of a stream, or behind one that is in
//! use, changes nothing. Any other read begins a stream: in place of one that was not used for more
//! than two seconds, or, with the largest number of streams, for more than one; a new one counts as
//! a second old until it is hit. Times are whole seconds.
//!
//! Left out: streams whose parts are read in another order are revived once enough of them has been
//! read (`dmu_zfetch_future`); less is ordered when prefetch fills a sixteenth of the cache.

use super::Ahead;
use crate::config::PrefetchConfig;
use raidlab_units::{Bytes, Nanos};
use std::ops::Range;

#[derive(Debug)]
struct Stream {
    /// The next block that it is expected to read.
    next: u64,
    /// The distance that it reaches ahead, in bytes.
    distance: u64,
    /// The data blocks that are still to be ordered.
    data: Range<u64>,
    /// The further distance to which indirect blocks are ordered, in bytes.
    indirect_distance: u64,
    /// The blocks whose indirect blocks are to be ordered.
    indirect: Range<u64>,
    /// Whether a read found a block missing.
    missed: bool,
    /// Whether an ordered block came after the stream had passed it.
    late: bool,
    /// The time of the last read of the stream, in whole seconds.
    used: u64,
}

/// The prefetcher that the top of the file describes, with its streams.
#[derive(Debug)]
pub(crate) struct ByDistance {
    most: usize,
    blocks: u64,
    block: u64,
    minimum: u64,
    maximum: u64,
    indirect_maximum: u64,
    reorder_blocks: u64,
    reap_seconds: (u64, u64),
    /// The streams that are followed, the newest first.
    streams: Vec<Stream>,
}

impl ByDistance {
    /// Creates a prefetcher for a volume of so many blocks of a size; without streams for rules
    /// of another kind.
    pub(super) fn new(config: PrefetchConfig, blocks: u64, block: Bytes) -> Self {
        let PrefetchConfig::ByDistance {
            streams,
            minimum,
            maximum,
            reorder,
            indirect,
            reap_seconds,
        } = config
        else {
            return Self::new(PrefetchConfig::of_2_3(), 0, block);
        };
        // Streams must not meet.
        let without_meeting = (blocks * block.0 / maximum.0.max(1)).max(1);
        Self {
            most: streams.min(usize::try_from(without_meeting).unwrap_or(usize::MAX)),
            blocks,
            block: block.0,
            minimum: minimum.0,
            maximum: maximum.0,
            indirect_maximum: indirect.0,
            reorder_blocks: reorder.0 / block.0 + 1,
            reap_seconds,
            streams: Vec::new(),
        }
    }

    /// Handles a read of blocks `first..end`, of which some were not in memory if `missed`; returns
    /// the blocks to order now.
    pub(super) fn read(&mut self, now: Nanos, first: u64, end: u64, missed: bool) -> Ahead {
        let now = now.0 / Nanos::SECOND.0;
        let follows = |stream: &Stream| stream.next == first || stream.next == first + 1;
        let crosses = |stream: &Stream| first <= stream.next && end >= stream.next;
        let find = |test: &dyn Fn(&Stream) -> bool| self.streams.iter().position(test);
        if let Some(index) = find(&follows) {
            return self.hit(now, index, end, missed);
        }
        let reorder = self.reorder_blocks;
        let recent = now.saturating_sub(self.reap_seconds.1);
        for index in 0..self.streams.len() {
            let stream = &mut self.streams[index];
            if crosses(stream) {
                return self.hit(now, index, end, missed);
            }
            if first > stream.next && end <= stream.next + reorder {
                stream.used = now;
                return Ahead::NOTHING;
            }
            if end < stream.next && end + reorder > stream.next && stream.used >= recent {
                stream.used = now;
                return Ahead::NOTHING;
            }
        }
        if end < self.blocks {
            self.begin(now, end);
        }
        Ahead::NOTHING
    }

    fn hit(&mut self, now: u64, index: usize, end: u64, missed: bool) -> Ahead {
        let stream = &mut self.streams[index];
        stream.used = now;
        let length = end.saturating_sub(stream.next) * self.block;
        if length == 0 {
            return Ahead::NOTHING;
        }
        stream.next = end;
        if end >= self.blocks {
            self.streams.remove(index);
            return Ahead::NOTHING;
        }
        if stream.distance < length {
            stream.distance = length;
        } else if stream.distance < self.minimum {
            stream.distance *= 2;
        } else if stream.late {
            stream.distance += stream.distance / 8;
        }
        stream.late = false;
        stream.distance = stream.distance.min(self.maximum);
        reach(&mut stream.data, end, stream.distance / self.block);
        if stream.indirect_distance < length {
            stream.indirect_distance = length;
        } else {
            stream.indirect_distance *= 2;
        }
        stream.indirect_distance = stream.indirect_distance.min(self.indirect_maximum);
        let further = stream.indirect_distance / self.block;
        reach(&mut stream.indirect, stream.data.end, further);
        stream.missed |= missed;
        let data = if stream.missed {
            take(&mut stream.data)
        } else {
            0..0
        };
        let clip = |range: Range<u64>| range.start.min(self.blocks)..range.end.min(self.blocks);
        Ahead {
            data: clip(data),
            indirect: clip(take(&mut stream.indirect)),
        }
    }

    fn begin(&mut self, now: u64, next: u64) {
        let (short, long) = self.reap_seconds;
        let unused = |stream: &Stream, seconds| stream.used < now.saturating_sub(seconds);
        self.streams.retain(|stream| !unused(stream, long));
        if self.streams.len() >= self.most {
            let old = self.streams.iter().enumerate();
            let old = old.filter(|(_, stream)| unused(stream, short));
            let Some((index, _)) = old.min_by_key(|(_, stream)| stream.used) else {
                return;
            };
            self.streams.remove(index);
        }
        let stream = Stream {
            next,
            distance: 0,
            data: next..next,
            indirect_distance: 0,
            indirect: next..next,
            missed: false,
            late: false,
            used: now.saturating_sub(short),
        };
        self.streams.insert(0, stream);
    }

    /// Notes that prefetched blocks from `first` on have been read.
    pub(super) fn arrived(&mut self, first: u64) {
        let near = |stream: &&mut Stream| {
            first < stream.next && first + self.maximum / self.block > stream.next
        };
        if let Some(stream) = self.streams.iter_mut().find(near) {
            stream.late = true;
        }
    }
}

/// Extends a range of blocks to be ordered: it begins at `from` or later and ends `blocks` after
/// it or later.
fn reach(range: &mut Range<u64>, from: u64, blocks: u64) {
    range.start = range.start.max(from);
    range.end = range.end.max(from + blocks);
}

/// Takes a range of blocks to be ordered, and leaves the empty range after it.
fn take(range: &mut Range<u64>) -> Range<u64> {
    let taken = range.clone();
    range.start = range.end;
    taken
}

#[cfg(test)]
mod tests {
    use super::ByDistance;
    use crate::config::PrefetchConfig;
    use raidlab_units::{Bytes, Nanos};

    const BLOCKS: u64 = 3 << 20;

    fn prefetch() -> ByDistance {
        ByDistance::new(PrefetchConfig::of_2_3(), BLOCKS, Bytes(8 << 10))
    }

    fn read(prefetch: &mut ByDistance, first: u64) -> (u64, u64) {
        let ahead = prefetch.read(Nanos::ZERO, first, first + 16, true);
        (ahead.data.start, ahead.data.end)
    }

    /// Reads of 128 KiB: distances of 128, 256, 512 KiB ... 4 MiB, which is 512
    /// blocks.
    #[test]
    fn the_distance_doubles_up_to_four_mebibytes() {
        let mut prefetch = prefetch();
        assert_eq!(read(&mut prefetch, 160), (0, 0));
        assert_eq!(read(&mut prefetch, 176), (192, 208));
        assert_eq!(read(&mut prefetch, 192), (208, 240));
        assert_eq!(read(&mut prefetch, 208), (240, 288));
        for first in (224..4000).step_by(16) {
            read(&mut prefetch, first);
        }
        assert_eq!(read(&mut prefetch, 4000), (4512, 4528));
    }

    /// Beyond the data, 128, 256, 512 KiB ... 128 MiB further, which is 16 384 blocks.
    #[test]
    fn indirect_blocks_are_ordered_further_ahead() {
        let mut prefetch = prefetch();
        let mut above = |first: u64| {
            let ahead = prefetch.read(Nanos::ZERO, first, first + 16, true);
            (ahead.indirect.start, ahead.indirect.end)
        };
        assert_eq!(above(160), (0, 0));
        assert_eq!(above(176), (208, 224), "data to 208");
        assert_eq!(above(192), (240, 272), "data to 240");
        assert_eq!(above(208), (288, 352), "data to 288");
        for first in (224..4000).step_by(16) {
            above(first);
        }
        assert_eq!(above(4000), (4528 + 16_368, 4528 + 16_384));
    }

    #[test]
    fn data_that_are_in_memory_need_none_ahead() {
        let mut prefetch = prefetch();
        read(&mut prefetch, 160);
        for first in [176, 192] {
            let ahead = prefetch.read(Nanos::ZERO, first, first + 16, false);
            assert_eq!(ahead.data, 0..0);
            assert!(!ahead.indirect.is_empty());
        }
        // One is missing: 512 KiB, and from now on always.
        assert_eq!(read(&mut prefetch, 208), (224, 288));
        let ahead = prefetch.read(Nanos::ZERO, 224, 240, false);
        assert_eq!(ahead.data, 288..368);
    }

    #[test]
    fn blocks_that_come_too_late_make_it_grow_by_an_eighth() {
        let mut prefetch = prefetch();
        for first in (160..4000).step_by(16) {
            read(&mut prefetch, first);
        }
        prefetch.arrived(9000);
        assert_eq!(read(&mut prefetch, 4000), (4512, 4528), "that was in time");
        prefetch.arrived(4010);
        assert_eq!(read(&mut prefetch, 4016), (4528, 4608));
        for first in (4032..200_000).step_by(16) {
            prefetch.arrived(first - 16);
            read(&mut prefetch, first);
        }
        let last = prefetch.streams[0].data.end - prefetch.streams[0].next;
        assert_eq!(last, 8192, "64 MiB");
    }

    #[test]
    fn random_reads_order_nothing_and_take_no_used_stream() {
        let mut prefetch = prefetch();
        read(&mut prefetch, 160);
        read(&mut prefetch, 176);
        for index in 1..20 {
            assert_eq!(read(&mut prefetch, index * 100_000), (0, 0));
        }
        assert_eq!(prefetch.streams.len(), 8, "never more");
        assert_eq!(read(&mut prefetch, 192), (208, 240), "still known");
        let later = Nanos::from_secs(3);
        prefetch.read(later, 1_000_000, 1_000_001, true);
        assert_eq!(prefetch.streams.len(), 1, "all others were too old");
    }

    #[test]
    fn what_is_near_a_stream_begins_none() {
        let mut prefetch = prefetch();
        read(&mut prefetch, 160);
        read(&mut prefetch, 176);
        assert_eq!(read(&mut prefetch, 300), (0, 0), "ahead");
        assert_eq!(read(&mut prefetch, 0), (0, 0), "behind");
        assert_eq!(prefetch.streams.len(), 1);
        // Across its position: what is new moves it on, and 128 KiB become 256.
        assert_eq!(read(&mut prefetch, 184), (208, 232));
    }

    #[test]
    fn a_stream_ends_with_the_volume() {
        let mut prefetch = ByDistance::new(PrefetchConfig::of_2_3(), 48, Bytes(8 << 10));
        assert_eq!(read(&mut prefetch, 0), (0, 0));
        assert_eq!(read(&mut prefetch, 16), (32, 48));
        assert_eq!(read(&mut prefetch, 32), (0, 0));
        assert!(prefetch.streams.is_empty());
    }
}
