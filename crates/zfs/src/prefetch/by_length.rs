//! Prefetch until 2015.
//!
//! A read of a block that follows a known stream lengthens it, up to a cap of
//! 256 blocks; longer streams lose their front. Whenever less than the stream's
//! own depth is ordered ahead of it (the depth doubles with each block, up to
//! the same cap), as many blocks as the stream is long are ordered at once:
//! a long stream has between 256 and 512 blocks ahead of it. Any other read
//! begins a new stream. There are eight, and one gives way to another when it
//! was not used for two seconds.

use raidlab_units::Nanos;
use std::ops::Range;

#[derive(Debug)]
struct Stream {
    offset: u64,
    length: u64,
    depth: u64,
    /// The block up to which the stream's blocks have been ordered.
    ahead: u64,
    used: Nanos,
}

/// The prefetcher that the top of the file describes, with its streams.
#[derive(Debug)]
pub(crate) struct ByLength {
    most: usize,
    cap: u64,
    reap: Nanos,
    streams: Vec<Stream>,
}

impl ByLength {
    /// Creates a prefetcher for at most so many streams of so many blocks, unused for so long.
    pub(super) const fn new(most: usize, cap: u64, reap: Nanos) -> Self {
        Self {
            most,
            cap,
            reap,
            streams: Vec::new(),
        }
    }

    /// Handles a read of blocks `first..end`; returns the blocks to order now, perhaps none.
    pub(super) fn read(&mut self, now: Nanos, first: u64, end: u64) -> Range<u64> {
        let mut wanted = 0..0;
        for block in first..end {
            let ordered = self.read_block(now, block);
            if wanted.is_empty() {
                wanted = ordered;
            } else if !ordered.is_empty() {
                wanted.end = ordered.end;
            }
        }
        wanted
    }

    fn read_block(&mut self, now: Nanos, block: u64) -> Range<u64> {
        let cap = self.cap;
        for stream in &mut self.streams {
            let end = stream.offset + stream.length;
            if (stream.offset..end).contains(&block) {
                return 0..0;
            }
            if block == end {
                stream.length += 1;
                let over = stream.length.saturating_sub(cap);
                stream.offset += over;
                stream.length -= over;
                stream.depth = cap.min(2 * stream.depth);
                stream.used = now;
                let from = stream.ahead.max(block + 1);
                stream.ahead = from;
                while stream.ahead < block + 1 + stream.depth {
                    stream.ahead += stream.length;
                }
                return from..stream.ahead;
            }
        }
        self.begin(now, block);
        0..0
    }

    fn begin(&mut self, now: Nanos, block: u64) {
        let stream = Stream {
            offset: block,
            length: 1,
            depth: 1,
            ahead: block + 1,
            used: now,
        };
        if self.streams.len() < self.most {
            self.streams.push(stream);
            return;
        }
        let oldest = self.streams.iter_mut().min_by_key(|stream| stream.used);
        if let Some(oldest) = oldest
            && now.saturating_sub(oldest.used) > self.reap
        {
            *oldest = stream;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ByLength;
    use raidlab_units::Nanos;

    fn prefetch() -> ByLength {
        ByLength::new(8, 256, Nanos::from_secs(2))
    }

    /// By hand: lengths 2, 3, 4 with depths 2, 4, 8.
    #[test]
    fn a_stream_reaches_ahead_as_it_grows() {
        let mut prefetch = prefetch();
        let ranges: Vec<_> = (10..14)
            .map(|block| prefetch.read(Nanos::ZERO, block, block + 1))
            .collect();
        assert_eq!(ranges, [0..0, 12..14, 14..17, 17..25]);
    }

    #[test]
    fn a_long_stream_has_256_to_512_blocks_ahead() {
        let mut prefetch = prefetch();
        prefetch.read(Nanos::ZERO, 0, 4096);
        let mut ahead = 0;
        for first in (4096..8192).step_by(16) {
            let range = prefetch.read(Nanos::ZERO, first, first + 16);
            if !range.is_empty() {
                assert_eq!((range.end - range.start) % 256, 0);
                ahead = range.end;
            }
            if ahead > 0 {
                let distance = ahead - (first + 16);
                assert!((256..=512).contains(&distance), "{distance}");
            }
        }
        assert!(ahead > 8192);
    }

    #[test]
    fn random_reads_order_nothing_and_take_no_used_stream() {
        let mut prefetch = prefetch();
        for index in 0..20 {
            let range = prefetch.read(Nanos::ZERO, index * 1000, index * 1000 + 1);
            assert!(range.is_empty());
        }
        // The ninth found no room, the first is still known.
        assert!(prefetch.read(Nanos::from_secs(1), 8001, 8002).is_empty());
        assert_eq!(prefetch.read(Nanos::from_secs(1), 1, 2), 2..4);
        assert!(prefetch.read(Nanos::from_secs(3), 9000, 9001).is_empty());
        assert_eq!(prefetch.read(Nanos::from_secs(3), 9001, 9002), 9002..9004);
    }
}
