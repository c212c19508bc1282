//! The beginning of a clone's stream of requests: its part of the region, the order of its blocks,
//! and the amount.

use super::draws::Draws;
use super::{Order, RequestStream};
use crate::job::{Engine, JobError, JobSpec};
use crate::offsets::Offsets;
use crate::permutation::Permutation;
use crate::shape::{Distribution, Runs};
use raidlab_random::Stream;
use raidlab_units::Bytes;

/// The largest region, in blocks, whose random map is honoured exactly: 256 GiB in blocks of 4 KiB.
const MAPPED_BLOCKS: u64 = 1 << 26;

impl JobSpec {
    /// The requests of clone `clone` (0 is the first) on a device of
    /// `device_size`. Equal arguments give equal streams. Clones draw from forks
    /// of `random`, so that a driver may pass the same to all clones of a job
    /// but not to two jobs; a `random_seed` replaces it.
    ///
    /// # Errors
    /// The errors of [`validate`](Self::validate) and
    /// [`region`](Self::region), and [`JobError::NoRoom`].
    pub fn request_stream(
        &self,
        clone: u32,
        device_size: Bytes,
        random: Stream,
    ) -> Result<RequestStream, JobError> {
        self.validate()?;
        let (start, region) = self.region(clone, device_size)?;
        let block = self.block_size.0;
        let (room, unit, region_blocks) = self.blocks(clone, (start, region), device_size)?;
        self.zones_fit(region)?;
        let finer = self.finer((start.0, region.0), room);
        let map = self.has_map() && !self.maps_blocks();
        let reached = self.distribution.bytes_to_write(region.0, block);
        let amount = reached.unwrap_or_else(|| self.amount(region.0));
        let pass_units = match reached {
            Some(bytes) => bytes / unit,
            None => self.pass_units(region.0, unit, room, map),
        };
        let units = self.total_units(amount, pass_units, unit)?;
        // Streams of the finer shapes count their requests themselves.
        let limit = self.most_requests().filter(|_| finer.is_none());
        let units_left = units.min(limit.unwrap_or(u64::MAX));
        let mut random = self
            .random_seed
            .map_or(random, Stream::new)
            .fork("clone", u64::from(clone));
        let draws = self.fio_draws(clone, region_blocks, map);
        let maps = draws.is_none() && map && region_blocks <= MAPPED_BLOCKS;
        let order = self.order(maps, region, region_blocks, &mut random);
        Ok(RequestStream {
            pattern: self.pattern,
            read_mix_percent: self.read_mix_percent,
            unit,
            start: start.0,
            region: if self.pattern.is_random() {
                region.0
            } else {
                region.0.max(region_blocks * block)
            },
            region_blocks,
            pass_units,
            pass_left: pass_units,
            units_left,
            requests_left: self.requests_left(),
            passes_left: (reached.is_none() && !self.time_based).then_some(self.loops),
            another_from: self.another_from(units, unit),
            wraps_alone: self.time_based,
            misses: !self.counts_passes() || pass_units.saturating_mul(unit) < amount,
            order,
            random,
            draws,
            drawn: None,
            fsync_every: self.fsync_every,
            fdatasync_every: self.fdatasync_every,
            writes: 0,
            flushed_last: false,
            finer,
        })
    }

    /// Whether fio keeps a map of the blocks that were drawn.
    pub(super) fn has_map(&self) -> bool {
        self.random_map
            && self.pattern.is_random()
            && self.distribution == Distribution::Even
            && self.alignment.is_none()
    }

    /// Whether that map is kept block by block: where a pass may end before each block has been
    /// drawn, as sizes differ or not all offsets are drawn.
    pub(super) fn maps_blocks(&self) -> bool {
        self.has_map() && (self.sizes.is_some() || self.runs != Runs::default())
    }

    /// Whether a pass ends as soon as its bytes have been issued. fio counts those of requests that
    /// the engine has queued (`do_io`, `io_queue_event` of backend.c), and an engine of one request
    /// at a time queues none: there only a lack of places ends a pass before the whole amount.
    fn counts_passes(&self) -> bool {
        self.engine == Engine::Libaio
            && !self.time_based
            && (self.queues_trims || !self.pattern.trims())
    }

    /// Checks that zones end within the region: fio ends at a request in a zone beyond it, for
    /// which it finds no place.
    fn zones_fit(&self, region: Bytes) -> Result<(), JobError> {
        let Distribution::ZonedByLength(zones) = &self.distribution else {
            return Ok(());
        };
        // A sequential job draws no offsets.
        let zones = zones.iter().filter(|_| self.pattern.is_random());
        let lengths = zones.map(|(_, length)| length.0);
        let end = lengths.fold(0, u64::saturating_add);
        match end <= region.0 {
            true => Ok(()),
            false => Err(JobError::ZonesBehindEnd {
                end: Bytes(end),
                region,
            }),
        }
    }

    /// The number of requests after which the job ends, unless its time ends it (`do_io`): fio
    /// counts all loops together.
    fn most_requests(&self) -> Option<u64> {
        let limit = self.request_limit.filter(|_| !self.time_based)?;
        Some(limit.saturating_mul(u64::from(self.loops)))
    }

    /// The number of requests in this model's count: fio counts a block that is discarded and
    /// written as one.
    fn requests_left(&self) -> u64 {
        let each = 1 + u64::from(self.pattern.trims_and_writes());
        let limit = self.most_requests();
        limit.map_or(u64::MAX, |limit| limit.saturating_mul(each))
    }

    /// The job's `size` in fio's sense on a region of so many bytes.
    fn amount(&self, region: u64) -> u64 {
        let size = self.size.map_or(region, |size| size.0.min(region));
        let share = |percent: u32| {
            let share = u128::from(region) * u128::from(percent) / 100;
            u64::try_from(share).unwrap_or(u64::MAX).min(size)
        };
        let size = self.percents.io_size.map_or(size, share);
        // Random writes without a map are not limited by `size`.
        let is_free = self.pattern.is_random() && self.pattern.writes() && !self.random_map;
        let io_size = self.io_size.filter(|_| is_free).unwrap_or_default();
        size.max(io_size.0)
    }

    /// Checks that clone `clone` has room for a block on a device of `device_size`, as
    /// [`request_stream`](Self::request_stream) does.
    ///
    /// # Errors
    /// The errors of [`region`](Self::region), and [`JobError::NoRoom`].
    pub fn check_room(&self, clone: u32, device_size: Bytes) -> Result<(), JobError> {
        let (start, region) = self.region(clone, device_size)?;
        self.blocks(clone, (start, region), device_size)?;
        self.zones_fit(region)
    }

    /// The bytes from a region's start to the device's end, the bytes of a unit, and the number of
    /// whole blocks in the region.
    fn blocks(
        &self,
        clone: u32,
        (start, region): (Bytes, Bytes),
        device_size: Bytes,
    ) -> Result<(u64, u64, u64), JobError> {
        let block = self.block_size.0;
        // For fio the null device ends with the job's region (`setup_files` of filesetup.c).
        let room = match self.engine {
            Engine::Null => region.0,
            Engine::Sync | Engine::Libaio => device_size.0 - start.0,
        };
        let unit = if self.sizes.is_some() { 1 } else { block };
        let region_blocks = self.whole_units(region.0, unit, room) * unit / block;
        if region_blocks == 0 || self.amount(region.0) < block {
            return Err(JobError::NoRoom {
                clone,
                block_size: self.block_size,
                room: region,
            });
        }
        Ok((room, unit, region_blocks))
    }

    /// The number of whole units in so many bytes of a region with `room` bytes up to the device's
    /// end: a sequential job continues to the end of the last unit that has begun.
    fn whole_units(&self, bytes: u64, unit: u64, room: u64) -> u64 {
        match self.pattern.is_random() {
            true => bytes / unit,
            false => bytes.div_ceil(unit).min(room / unit),
        }
    }

    /// The number of units of one pass over a region of so many bytes, unless the distribution
    /// decides it; `map`: each block comes once.
    fn pass_units(&self, region: u64, unit: u64, room: u64, map: bool) -> u64 {
        let amount = self.amount(region);
        let is_random = self.pattern.is_random();
        let is_timed = self.time_based && self.verify.is_none();
        let goes_on = self.pattern.writes() && self.io_size.is_some_and(|size| size.0 > amount);
        if !is_random && self.has_gaps() && (is_timed || goes_on) {
            u64::MAX
        } else if is_timed {
            match map || !is_random {
                true => self.whole_units(region, unit, room),
                false => u64::MAX,
            }
        } else if map {
            let most = self.whole_units(region, unit, room);
            amount.div_ceil(unit).min(most)
        } else if !self.counts_passes() {
            let is_whole = !is_random && !self.pattern.is_mixed() && !self.has_gaps();
            match is_whole {
                true => self.whole_units(region, unit, room),
                false => u64::MAX,
            }
        } else if is_random || self.step != 0 || self.pattern.is_mixed() {
            amount.div_ceil(unit)
        } else {
            self.whole_units(amount, unit, room)
        }
    }

    /// Whether sequential requests are not back to back, so that their offsets alone tell when a
    /// pass has ended.
    fn has_gaps(&self) -> bool {
        self.zones.is_some() || self.strides.is_some() || self.step != 0
    }

    /// The order of requests; `maps`: each block once in a pass.
    fn order(&self, maps: bool, region: Bytes, blocks: u64, random: &mut Stream) -> Order {
        if !self.pattern.is_random() {
            return Order::Sequential { next: [0; 3] };
        }
        if maps {
            let order = Permutation::new(blocks, random);
            return Order::Mapped { order, next: 0 };
        }
        let mut offsets = |direction: usize| {
            let (blocks, align) = self.choices(direction, region, blocks);
            Offsets::new(&self.distribution, blocks, align, random)
        };
        let (reads, writes) = (offsets(0), offsets(1));
        let trims = match self.pattern.trims() {
            true => offsets(2),
            false => writes.clone(),
        };
        Order::Drawn(Box::new([reads, writes, trims]))
    }

    /// fio's own draws, for jobs whose draws are known.
    fn fio_draws(&self, clone: u32, region_blocks: u64, map: bool) -> Option<Box<Draws>> {
        let draws = self.pattern.is_random() || self.pattern.is_mixed() || self.sizes.is_some();
        let is_known = draws
            && self.distribution == Distribution::Even
            && self.zones.is_none()
            && self.ranges == 1
            && region_blocks <= u64::from(u32::MAX);
        let seed = self.random_seed.filter(|_| is_known)?;
        let process = self.first_process.saturating_add(clone);
        Some(Box::new(Draws::new(self, seed, process, map)))
    }

    /// The number of blocks that can be drawn in a direction, and their bytes: as in fio's
    /// `last_block`, the smallest request fits at the last one.
    pub(super) fn choices(
        &self,
        direction: usize,
        region: Bytes,
        region_blocks: u64,
    ) -> (u64, u64) {
        let Some(alignment) = &self.alignment else {
            return match &self.sizes {
                None => (region_blocks, self.block_size.0),
                Some(sizes) => {
                    let least = sizes[direction].least().0.max(1);
                    ((region.0 / least).max(1), least)
                }
            };
        };
        let align = alignment[direction].0.max(1);
        let least = self.least(direction);
        let room = region.0.saturating_sub(least.0.saturating_sub(align));
        ((room / align).max(1), align)
    }

    /// The number of units until the job ends by itself, as in `keep_running` of fio's backend.c:
    /// as many passes as loops, and with an `io_size` more until that is reached, or the rest is
    /// less than a request.
    fn total_units(&self, amount: u64, pass_units: u64, unit: u64) -> Result<u64, JobError> {
        if self.time_based {
            return Ok(u64::MAX);
        }
        let loops = u64::from(self.loops);
        let (limit, option) = match self.io_size {
            Some(io_size) => (io_size.0, "io_size"),
            None => (amount, "loops"),
        };
        let most = limit.checked_mul(loops);
        let most = most.ok_or(JobError::TooLarge { option })?.div_ceil(unit);
        let pass_units = match self.has_gaps() {
            true => pass_units.min(amount.div_ceil(unit)),
            false => pass_units,
        };
        let pass = pass_units.saturating_mul(unit).max(1);
        let until = self.io_size.map_or(0, |io_size| io_size.0 + 1);
        let counted = pass.saturating_add(self.read_back_of(pass));
        let passes = until.saturating_sub(self.largest().0).div_ceil(counted);
        Ok(pass_units.saturating_mul(passes.max(loops)).min(most))
    }

    /// The bytes that are read back after a pass of so many: fio counts them, too, when it looks
    /// whether `io_size` is reached.
    fn read_back_of(&self, pass: u64) -> u64 {
        let reads = match self.pattern.is_mixed() {
            true => u64::from(self.read_mix_percent.min(100)),
            false => 0,
        };
        match self.verify {
            Some(_) if self.pattern.writes() => pass.saturating_mul(100 - reads) / 100,
            _ => 0,
        }
    }

    /// The number of units left of so many from which another pass begins when `loops` are over:
    /// with an `io_size` fio goes on until less than a request is missing (`keep_running`).
    fn another_from(&self, units: u64, unit: u64) -> u64 {
        let begins = |io_size: Bytes| {
            let beyond = units.saturating_sub(io_size.0.div_ceil(unit));
            beyond.saturating_add(self.largest().0.div_ceil(unit))
        };
        self.io_size.map_or(u64::MAX, begins)
    }

    /// The size of the largest request.
    fn largest(&self) -> Bytes {
        let sizes = self.sizes.iter().flatten();
        let used = sizes.zip(self.pattern.directions());
        let used = used.filter(|&(_, used)| used);
        used.map(|(sizes, _)| sizes.most())
            .max()
            .unwrap_or(self.block_size)
    }
}
