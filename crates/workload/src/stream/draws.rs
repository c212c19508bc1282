//! fio's own draws, for a job with a `randseed`: the same directions, offsets and sizes in the same
//! order as with fio on a real disk.
//!
//! From init.c, io_u.c, lib/rand.c and lib/rand.h of fio 3.33, with `randrepeat=0`, which
//! raidlab gives to fio with every `randseed`. fio keeps a generator for each kind of
//! choice, `taus88` of L'Ecuyer (1996, "Maximally Equidistributed Combined Tausworthe
//! Generators"), seeded by a chain of multiplications from `randseed` and the number of the
//! process (`setup_random_seeds`, `__init_rand32`).
//!
//! - An *offset* is a block, as a fraction of all (`__get_next_rand_offset`). With a random
//!   map a block that was taken before is replaced by the next free one, after the last
//!   block from the first on (`axmap_next_free`).
//! - A *direction* is drawn by its share in percent (`get_rand_ddir`). After a change it
//!   stays until it has as many requests as the share of the other would ask for
//!   (`set_rwmix_bytes`).
//! - With `percentage_random` it is drawn first whether an offset is (`should_do_random`).
//! - A *size* is drawn by the shares of `bssplit`, or from `bsrange`, until it fits
//!   (`get_next_buflen`).
//!
//! Regions of more than 2^32 blocks, where fio uses another generator, are not drawn in this way.

use super::Direction;
use crate::job::JobSpec;
use crate::shape::Sizes;
use raidlab_random::Stream;
use raidlab_units::{Sectors, Span, SpanSet};

/// The factor from each seed to the next.
const SEED_FACTOR: u64 = 0x9e37_0001;
/// The number of multiplications before the first seed.
const SEED_ROUNDS: u32 = 4;
/// The indexes of seeds in fio's list: sizes of reads, writes and discards, mix, offsets, and
/// whether an offset is drawn.
const SIZE_SEEDS: [u32; 3] = [0, 1, 2];
const MIX_SEED: u32 = 4;
const OFFSET_SEED: u32 = 6;
const RUN_SEED: u32 = 10;
/// The base of the first word of a generator: fio's `(2^31) + (2^17) + (2^7)`, where C reads `^` as
/// an exclusive or.
const SEED_BASE: u32 = (2 ^ 31) + (2 ^ 17) + (2 ^ 7);
/// The number of values of a draw of the generator, 2^32.
const DRAWS: f64 = 4_294_967_296.0;
/// The number of draws of a size that does not fit before the smallest is taken.
const MOST_DRAWS: u32 = 100;

/// The seeds of sizes. What is read back has the sizes of what was written, and what is written
/// after a discard has the sizes of the discards (fio's `td_fill_rand_seeds_internal`).
fn size_seeds(job: &JobSpec) -> [u32; 3] {
    let [reads, mut writes, mut trims] = SIZE_SEEDS;
    if job.verify.is_some() {
        writes = reads;
    }
    if job.pattern.trims_and_writes() {
        trims = writes;
    }
    [reads, writes, trims]
}

/// A generator of fio: `taus88`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Tausworthe([u32; 3]);

impl Tausworthe {
    fn new(seed: u32) -> Self {
        let word = |before: u32, least: u32| {
            let word = before.wrapping_mul(69069) ^ seed;
            if word < least { word + least } else { word }
        };
        let first = word(SEED_BASE, 1);
        let second = word(first, 7);
        let mut generator = Self([first, second, word(second, 15)]);
        for _ in 0..6 {
            generator.next();
        }
        generator
    }

    const fn next(&mut self) -> u32 {
        let Self([first, second, third]) = *self;
        let first = ((first & !1) << 12) ^ (((first << 13) ^ first) >> 19);
        let second = ((second & !7) << 4) ^ (((second << 2) ^ second) >> 25);
        let third = ((third & !15) << 17) ^ (((third << 3) ^ third) >> 11);
        *self = Self([first, second, third]);
        first ^ second ^ third
    }

    /// A whole number below `bound`, from the fraction that fio uses.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "fio's arithmetic, of which every bit counts"
    )]
    fn below(&mut self, bound: u64) -> u64 {
        (bound as f64 * (f64::from(self.next()) / DRAWS)) as u64
    }
}

/// The draws of fio for one process of a job.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Draws {
    offsets: Tausworthe,
    mix: Tausworthe,
    sizes: [Tausworthe; 3],
    /// Whether offsets of reads, writes and discards are drawn.
    runs: [Tausworthe; 3],
    /// The blocks taken in this pass, where each is taken once.
    taken: Option<SpanSet>,
    /// The numbers of reads and writes so far.
    issued: [u64; 2],
    /// The number of requests that the present direction must reach before another is drawn.
    until: u64,
    /// Whether the present direction is writing.
    writes: bool,
}

impl Draws {
    /// Creates the draws of a job for `randseed` `seed` and fio's number of the process, from 1.
    pub(super) fn new(job: &JobSpec, seed: u64, process: u32, has_map: bool) -> Self {
        let generator = |place: u32| {
            let rounds = 0..SEED_ROUNDS + place;
            let seed = rounds.fold(seed, |seed, _| seed.wrapping_mul(SEED_FACTOR));
            let seed = seed.wrapping_mul(process.into()).wrapping_add(place.into());
            #[expect(clippy::cast_possible_truncation, reason = "as fio does")]
            Tausworthe::new(seed as u32)
        };
        Self {
            offsets: generator(OFFSET_SEED),
            mix: generator(MIX_SEED),
            sizes: size_seeds(job).map(generator),
            runs: [RUN_SEED; 3].map(generator),
            taken: has_map.then(SpanSet::default),
            issued: [0; 2],
            until: 0,
            writes: false,
        }
    }

    /// Draws a request for which no block is free, where there is a map: by this fio notices that
    /// a pass has ended. `read_percent`: the share of reads where its direction is drawn, too.
    pub(super) fn miss(&mut self, read_percent: Option<u32>) {
        if self.taken.is_none() {
            return;
        }
        if let Some(percent) = read_percent {
            let direction = self.direction(percent);
            self.take_back(direction);
        }
        self.offsets.next();
    }

    /// Starts a pass, with all blocks free. Any direction may follow (`reset_io_counters` of
    /// libfio.c), unless the job `goes_on` as one pass for fio.
    pub(super) fn start_pass(&mut self, goes_on: bool) {
        if let Some(taken) = &mut self.taken {
            taken.clear();
        }
        if !goes_on {
            self.until = 0;
        }
    }

    /// Draws a block of `0..blocks`.
    pub(super) fn block(&mut self, blocks: u64) -> u64 {
        let block = self.offsets.below(blocks);
        let Some(taken) = &mut self.taken else {
            return block;
        };
        let free = [block, 0].into_iter().find_map(|from| {
            let (is_taken, end) = taken.at(Sectors(from));
            let free = if is_taken { end.0 } else { from };
            (free < blocks).then_some(free)
        });
        let block = free.unwrap_or(block);
        taken.insert(Span::new(block, block + 1));
        block
    }

    /// Draws whether the offset of direction `index` is drawn, where `percent` of them are:
    /// `should_do_random` of fio's io_u.c.
    pub(super) fn is_random(&mut self, index: usize, percent: u32) -> bool {
        self.runs[index].below(100) < percent.into()
    }

    /// Draws the direction of the next request of a job of which `read_percent` are reads.
    pub(super) fn direction(&mut self, read_percent: u32) -> Direction {
        if self.issued[usize::from(self.writes)] >= self.until {
            let writes = 1 + self.mix.below(100) > read_percent.into();
            if writes != self.writes {
                let share = if writes {
                    100 - read_percent
                } else {
                    read_percent
                };
                self.until = self.issued[usize::from(self.writes)] * u64::from(share) / 100;
            }
            self.writes = writes;
        }
        self.issued[usize::from(self.writes)] += 1;
        match self.writes {
            true => Direction::Write,
            false => Direction::Read,
        }
    }

    /// Takes back the last drawn direction, whose request was not made, as the pass has ended.
    pub(super) fn take_back(&mut self, direction: Direction) {
        if let Some(issued) = direction
            .index()
            .and_then(|index| self.issued.get_mut(index))
        {
            *issued = issued.saturating_sub(1);
        }
        self.until = 0;
    }

    /// Replaces the last drawn direction by this one.
    pub(super) fn turn_to(&mut self, direction: Direction) {
        self.writes = direction == Direction::Write;
        for (writes, issued) in self.issued.iter_mut().enumerate() {
            *issued = match writes == usize::from(self.writes) {
                true => *issued + 1,
                false => issued.saturating_sub(1),
            };
        }
    }

    /// Draws the bytes of a request of direction `index` for which `fits` holds.
    pub(super) fn size(
        &mut self,
        index: usize,
        sizes: &Sizes,
        unaligned: bool,
        fits: impl Fn(u64) -> bool,
    ) -> u64 {
        let least = sizes.least().0.max(1);
        let align = |size: u64| if unaligned { size } else { size - size % least };
        // The rarest sizes come first (`bs_cmp` of options.c).
        let mut shares = match sizes {
            Sizes::Split(sizes) => sizes.clone(),
            Sizes::One(_) | Sizes::Range { .. } => Vec::new(),
        };
        shares.retain(|(_, percent)| *percent > 0);
        shares.sort_by_key(|(_, percent)| *percent);
        let generator = &mut self.sizes[index];
        let mut draw = || match sizes {
            Sizes::One(size) => size.0,
            Sizes::Range { least, most } => align(least.0 + generator.below(most.0)).min(most.0),
            Sizes::Split(_) => {
                let drawn = generator.next();
                let mut share = 0;
                let mut sizes = shares.iter().map(|&(size, percent)| {
                    share += percent;
                    (size.0, drawn / share <= u32::MAX / 100)
                });
                let found = sizes.find(|&(size, is_it)| is_it && fits(size));
                let last = shares.last().map_or(least, |(size, _)| size.0);
                align(found.map_or(last, |(size, _)| size))
            }
        };
        (0..MOST_DRAWS)
            .map(|_| draw())
            .find(|&size| fits(size))
            .unwrap_or(least)
    }
}

/// Draws the bytes of a request for which `fits` holds by another generator than fio's.
pub(super) fn size_by(
    random: &mut Stream,
    sizes: &Sizes,
    unaligned: bool,
    fits: impl Fn(u64) -> bool,
) -> u64 {
    (0..MOST_DRAWS)
        .map(|_| draw_size(sizes, unaligned, random))
        .find(|&size| fits(size))
        .unwrap_or(sizes.least().0)
}

fn draw_size(sizes: &Sizes, unaligned: bool, random: &mut Stream) -> u64 {
    match sizes {
        Sizes::One(size) => size.0,
        Sizes::Range { least, most } => {
            // The size is drawn as in fio: the least plus up to the most, limited to the most, so
            // that the largest is more frequent.
            let drawn = least.0 + random.below(most.0);
            let whole = if unaligned {
                drawn
            } else {
                drawn - drawn % least.0
            };
            whole.min(most.0)
        }
        Sizes::Split(sizes) => {
            let mut draw = random.below(100);
            for &(size, share) in sizes {
                let share = u64::from(share);
                if draw < share {
                    return size.0;
                }
                draw -= share;
            }
            sizes.last().map_or(0, |&(size, _)| size.0)
        }
    }
}
