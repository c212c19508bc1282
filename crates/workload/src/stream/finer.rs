//! Streams whose requests are not all of one size and back to back: different sizes, steps and
//! zones with gaps, offsets drawn in other ways, and reading back.

use super::block_map::BlockMap;
use super::draws::size_by;
use super::read_back::ReadBack;
use super::{Direction, IoUnit, Order, RequestStream};
use crate::job::{JobSpec, Pattern};
use crate::shape::{Distribution, Runs, Sizes, Strides};
use raidlab_units::Bytes;

/// The additional state of such a stream.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Finer {
    sizes: [Sizes; 3],
    unaligned: bool,
    align: [u64; 3],
    step: i64,
    /// The start of the job's region, its bytes, and those from its start to the device's end.
    start: u64,
    region: u64,
    room: u64,
    /// Whether a sequential pass continues where the one before ended.
    goes_on: bool,
    runs: Runs,
    /// The number of requests until the next draw.
    run_left: u32,
    strides: Option<Strides>,
    /// The start of the present zone, and the bytes moved in it.
    pub(super) zone: [u64; 2],
    /// The start and the end of the last request of reads, writes and discards, counted from
    /// the region's start.
    pub(super) before: [Option<(u64, u64)>; 3],
    /// Whether the last request was a discard.
    trimmed: bool,
    /// The number of ranges of one discard, and of those that the last one may still have.
    ranges: u32,
    ranges_left: u32,
    /// Whether a mixed job's first request is a write, as there would be nothing to read.
    writes_first: bool,
    /// The blocks of this pass's requests, where each is to come once.
    map: Option<BlockMap>,
    /// The writes that are to be read back, if any are.
    read_back: Option<ReadBack>,
}

impl JobSpec {
    /// The additional state for a region, given by its start and its length, on a device with
    /// `room` bytes from there on.
    pub(super) fn finer(&self, (start, region): (u64, u64), room: u64) -> Option<Box<Finer>> {
        let plain = self.sizes.is_none()
            && self.alignment.is_none()
            && self.step == 0
            && self.runs == Runs::default()
            && self.distribution == Distribution::Even
            && self.strides.is_none()
            && self.zones.is_none()
            && self.ranges == 1
            && !self.pattern.trims_and_writes()
            && self.verify.is_none();
        let one = || Sizes::One(self.block_size);
        let sizes = self.sizes.clone().unwrap_or_else(|| [one(), one(), one()]);
        let align = [0, 1, 2].map(|direction| self.choices(direction, Bytes(0), 0).1);
        (!plain).then(|| {
            Box::new(Finer {
                sizes,
                unaligned: self.unaligned_sizes,
                align,
                step: self.step,
                start,
                region,
                room,
                goes_on: !self.pattern.is_random()
                    && self.step == 0
                    && self.strides.is_none()
                    && self.zones.is_none()
                    && self.verify.is_none()
                    && !self.pattern.trims_and_writes(),
                runs: self.runs,
                // fio draws the first request.
                run_left: 1,
                strides: self.strides,
                zone: [0; 2],
                before: [None; 3],
                trimmed: false,
                ranges: self.ranges,
                ranges_left: 0,
                writes_first: self.zones.is_some_and(|zones| !zones.reads_beyond)
                    && self.pattern.is_mixed()
                    && self.read_mix_percent < 100,
                map: self.maps_blocks().then(|| BlockMap::new(self, region)),
                read_back: self
                    .verify
                    .filter(|_| self.pattern.writes())
                    .map(|verify| ReadBack::new(verify, !self.has_map())),
            })
        })
    }
}

impl RequestStream {
    /// The next request of a stream of the finer shapes; `None` when it has ended.
    pub(super) fn next_finer(&mut self) -> Option<IoUnit> {
        let reads_back = self.finer.as_mut()?.read_back.as_mut();
        if let Some((offset, length)) = reads_back.and_then(ReadBack::next) {
            return Some(self.request(Direction::Read, offset, length));
        }
        if self.units_left == 0 || self.requests_left == 0 {
            return match self.read_back() {
                true => self.next_finer(),
                false => None,
            };
        }
        // Where its bytes end a pass, fio does not come to the flush before it reads back.
        if self.pass_left == 0 && !self.misses && self.read_back() {
            return self.next_finer();
        }
        if self.flush_is_due() {
            return Some(IoUnit::FLUSH);
        }
        // A pass may have no place left; if the next one has none either, the stream ends.
        for attempt in 0..2 {
            if self.pass_left == 0 {
                if self.read_back() {
                    return self.next_finer();
                }
                if self.start_pass(attempt > 0) {
                    return Some(IoUnit::FLUSH);
                }
            }
            let direction = self.finer_direction();
            if let Some((offset, length)) = self.place(direction) {
                return Some(self.issue(direction, offset, length));
            }
            if let Some(draws) = &mut self.draws {
                draws.take_back(direction);
            }
            self.end_pass(true);
            if self.units_left == 0 {
                return self.next_finer();
            }
        }
        self.units_left = 0;
        self.next_finer()
    }

    fn request(&self, direction: Direction, offset: u64, length: u64) -> IoUnit {
        IoUnit {
            direction,
            offset: Bytes(self.start + offset),
            length: Bytes(length),
        }
    }

    /// The direction of the next request.
    fn finer_direction(&mut self) -> Direction {
        let Some(finer) = &self.finer else {
            return self.next_direction();
        };
        if self.pattern.trims_and_writes() {
            let [_, written, trimmed] = finer.before.map(|before| before.map(|(first, _)| first));
            let writes = if self.pattern.is_random() {
                finer.trimmed
            } else {
                written != trimmed
            };
            return if writes {
                Direction::Write
            } else {
                Direction::Trim
            };
        }
        if finer.writes_first && finer.before[1].is_none() {
            return Direction::Write;
        }
        self.next_direction()
    }

    /// Whether a request counts towards the amount.
    fn counts(&self, direction: Direction) -> bool {
        direction != Direction::Trim || !self.pattern.writes()
    }

    /// Counts the bytes of a direction.
    fn account(&mut self, direction: Direction, length: u64) {
        if self.counts(direction) {
            let units = length.div_ceil(self.unit);
            self.pass_left = self.pass_left.saturating_sub(units);
            self.units_left = self.units_left.saturating_sub(units);
        }
    }

    /// The next range of the last request, a discard; `None` after the last range. To be called
    /// until it is `None` before the next request is drawn.
    pub fn next_range(&mut self) -> Option<IoUnit> {
        let finer = self.finer.as_mut()?;
        finer.ranges_left = finer.ranges_left.checked_sub(1)?;
        if self.pass_left == 0 {
            return None;
        }
        let (offset, length) = self.place(Direction::Trim)?;
        self.account(Direction::Trim, length);
        if let Some(finer) = &mut self.finer {
            finer.before[2] = Some((offset, offset + length));
        }
        Some(self.request(Direction::Trim, offset, length))
    }

    /// Notes that the last request, drawn as `drawn`, was moved in the region or shortened;
    /// sequential ones continue from there.
    pub fn put(&mut self, drawn: &IoUnit, placed: &IoUnit) {
        let Some(direction) = drawn.direction.index() else {
            return;
        };
        if self.counts(drawn.direction) {
            let left = (drawn.length.0.saturating_sub(placed.length.0)) / self.unit;
            self.pass_left = self.pass_left.saturating_add(left);
            self.units_left = self.units_left.saturating_add(left);
        }
        let first = placed.offset.0 - self.start;
        if let Some(finer) = &mut self.finer {
            finer.before[direction] = Some((first, first + placed.length.0));
        }
    }

    /// Ends the pass, as the last drawn request has no place; and the job, if no other pass
    /// follows. Beyond its number of passes a job `goes_on` for what is missing of its amount, and
    /// for its time.
    pub fn end_pass(&mut self, goes_on: bool) {
        let ends = match self.passes_left {
            Some(passes) => passes <= 1 && !(goes_on && self.units_left >= self.another_from),
            None => !goes_on,
        };
        if ends {
            self.units_left = 0;
        }
        self.pass_left = 0;
    }

    /// Accounts for a request at `offset` from the start.
    fn issue(&mut self, direction: Direction, offset: u64, length: u64) -> IoUnit {
        self.account(direction, length);
        self.requests_left -= 1;
        self.count_write(direction);
        let writes = direction == Direction::Write;
        if let Some(finer) = &mut self.finer {
            finer.before[direction.index().unwrap_or(0)] = Some((offset, offset + length));
            finer.trimmed = direction == Direction::Trim;
            finer.ranges_left = if finer.trimmed { finer.ranges - 1 } else { 0 };
            finer.zone[1] += length;
            match &mut finer.read_back {
                Some(read_back) if writes => read_back.wrote(offset, length),
                Some(read_back) => read_back.read(),
                None => {}
            }
        }
        self.request(direction, offset, length)
    }

    /// Whether the last request was one of those that read back a pass's writes after its end,
    /// which fio does between two passes and at the end (`do_verify`).
    #[must_use]
    pub fn reads_back(&self) -> bool {
        let finer = self.finer.as_ref();
        let read_back = finer.and_then(|finer| finer.read_back.as_ref());
        read_back.is_some_and(ReadBack::ends_pass)
    }

    /// Begins to read back written data; returns false where there is nothing.
    fn read_back(&mut self) -> bool {
        let finer = self.finer.as_mut();
        let written = finer.and_then(|finer| finer.read_back.as_mut());
        written.is_some_and(ReadBack::finish)
    }

    /// The offset of the next request, counted from the start, and its bytes; `None` where this
    /// pass has no place left.
    fn place(&mut self, direction: Direction) -> Option<(u64, u64)> {
        let index = direction.index()?;
        let finer = self.finer.as_mut()?;
        let is_turn = finer.is_turn();
        if direction == Direction::Write && self.pattern == Pattern::RandTrimWrite {
            return finer.before[2].map(|(first, end)| (first, end - first));
        }
        let draws = is_turn && self.pattern.is_random() && self.draws_place(index);
        let finer = self.finer.as_mut()?;
        let region = finer.region;
        let followed = if finer.goes_on {
            Some(finer.go_on(index, region, self.wraps_alone)?)
        } else if !self.pattern.is_random() {
            finer.follow(index, region)
        } else if draws {
            None
        } else {
            match finer.run_on(index, !is_turn, self.wraps_alone) {
                // Beyond the device's end fio draws again, and beyond the region's the pass ends.
                next if next >= finer.room => None,
                next if next >= region => return None,
                next => Some(next),
            }
        };
        let offset = match (followed, &mut self.order) {
            (Some(offset), _) => offset,
            (None, Order::Sequential { .. }) => return None,
            (None, Order::Mapped { order, next }) => {
                let block = order.block(*next);
                *next += 1;
                block * self.unit
            }
            (None, Order::Drawn(_)) => {
                let align = finer.align[index];
                self.draw_block(index)? * align
            }
        };
        Some((offset, self.length(index, offset, draws)?))
    }

    /// Draws a block of a direction; `None` where none is free, or a sequence or pass has ended.
    /// Where none is free a time-based job begins anew at once (`get_next_rand_block` of io_u.c).
    fn draw_block(&mut self, index: usize) -> Option<u64> {
        let (finer, Order::Drawn(offsets)) = (self.finer.as_mut()?, &mut self.order) else {
            return None;
        };
        let mut draw = || match &mut self.draws {
            Some(draws) => Some(draws.block(offsets[index].blocks())),
            None => offsets[index].next(&mut self.random),
        };
        let block = draw()?;
        let Some(map) = &mut finer.map else {
            return Some(block);
        };
        if let Some(free) = map.free(block) {
            return Some(free);
        }
        if !self.wraps_alone {
            return None;
        }
        map.clear();
        finer.before = [None; 3];
        map.free(draw()?)
    }

    /// Whether the offset of a random job's next request in a direction is drawn, as its
    /// `percentage_random` has it.
    fn draws_place(&mut self, index: usize) -> bool {
        let runs = self.finer.as_ref().map(|finer| finer.runs);
        let percent = runs.unwrap_or_default().random_percent;
        percent >= 100
            || match &mut self.draws {
                Some(draws) => draws.is_random(index, percent),
                None => self.random.percent(percent),
            }
    }

    /// The bytes of a request of a direction at this offset; `None` where none fits. The map has
    /// those whose offset was `drawn`, and no other.
    fn length(&mut self, index: usize, offset: u64, drawn: bool) -> Option<u64> {
        let finer = self.finer.as_mut()?;
        let least = finer.sizes[index].least().0;
        // fio lets a request of one size that follows another stick out of the region.
        let is_one = matches!(finer.sizes[index], Sizes::One(_)) && !drawn;
        let end = if is_one { finer.room } else { finer.region };
        let fits = |length: u64| offset + length <= end;
        if !fits(least) {
            return None;
        }
        let (sizes, unaligned) = (&finer.sizes[index], finer.unaligned);
        // What is written after a discard has its size, where fio draws both from the same sizes.
        let alike = index == 1 && self.pattern.trims_and_writes() && finer.sizes[2] == *sizes;
        let trimmed = finer.before[2].filter(|&(first, _)| alike && first == offset);
        let length = match (&mut self.draws, trimmed) {
            (Some(draws), _) => draws.size(index, sizes, unaligned, fits),
            (None, Some((first, end))) => end - first,
            (None, None) => size_by(&mut self.random, sizes, unaligned, fits),
        };
        Some(match &mut finer.map {
            Some(map) if drawn => map.take(offset, length, least),
            _ => length,
        })
    }
}

impl Finer {
    /// Starts a new pass, at the region's start where all directions `restart`.
    pub(super) fn start_pass(&mut self, restart: bool) {
        if restart || !self.goes_on {
            self.before = [None; 3];
            self.zone = [0; 2];
        }
        if let Some(map) = &mut self.map {
            map.clear();
        }
    }

    /// The next sequential offset of a direction of a job whose requests are back to back; `None`
    /// where even its smallest size does not fit any more, and the pass ends.
    fn go_on(&mut self, index: usize, region: u64, wraps_alone: bool) -> Option<u64> {
        let last = self.before[index].map_or(0, |(_, end)| end);
        let (least, end) = match &self.sizes[index] {
            Sizes::One(size) if last < region => (size.0, self.room),
            sizes => (sizes.least().0, region),
        };
        if last.saturating_add(least) <= end {
            return Some(last);
        }
        self.before[index] = None;
        wraps_alone.then_some(0)
    }

    /// Counts a request; returns whether it is the first one of a run, whose offset may be drawn.
    const fn is_turn(&mut self) -> bool {
        self.run_left = self.run_left.saturating_sub(1);
        let is_turn = self.run_left == 0;
        if is_turn {
            self.run_left = self.runs.draw_every;
        }
        is_turn
    }

    /// The offset at which a random job continues in a direction, within a run or with another
    /// one: only within a run is an offset repeated.
    fn run_on(&self, index: usize, within: bool, goes_round: bool) -> u64 {
        let (first, end) = self.before[index].unwrap_or_default();
        match self.runs.repeat && within {
            true => first,
            false if goes_round && end >= self.region => 0,
            false => end,
        }
    }

    /// The next sequential offset of a direction, as in `get_next_seq_offset` and
    /// `setup_strided_zone_mode` of fio's io_u.c.
    fn follow(&mut self, index: usize, region: u64) -> Option<u64> {
        if let Some(strides) = self.strides {
            if self.zone[1] >= strides.amount.0 {
                let whole = strides.length.0.saturating_add(strides.skip.0);
                self.zone[0] = self.zone[0].saturating_add(whole);
                self.zone[1] = 0;
                // Only the device's end is a limit here, not the region's.
                if self.zone[0] >= self.room {
                    self.zone[0] = 0;
                }
            }
            // fio then resets its places in the file, those of the other direction of a mix, too.
            if self.zone[1].is_multiple_of(strides.length.0) {
                self.before = [None; 3];
            }
            let mut last = self.before[index].map_or(self.zone[0], |(_, end)| end);
            if last >= self.zone[0].saturating_add(strides.length.0) {
                last = self.zone[0];
            }
            return (last < self.room && last - self.zone[0] < region).then_some(last);
        }
        let last = self.before[index].map_or(0, |(_, end)| end);
        let next = match self.step {
            0 => last,
            _ if last >= self.room => return None,
            step => self.step_on(last, step, region),
        };
        (next < region).then_some(next)
    }

    /// The offset `step` bytes after `last`, or before it. As in fio a step that leaves the device
    /// continues from the start of the region, or backward from its end; and a job that goes
    /// backward begins below its size by the offset of its region, if there is so much. Its offsets
    /// are 64 bits that overflow.
    fn step_on(&self, last: u64, step: i64, region: u64) -> u64 {
        let last = match last {
            0 if step < 0 && self.start > 0 => region.wrapping_sub(self.start),
            last => last,
        };
        if last == 0 {
            return 0;
        }
        match last.wrapping_add_signed(step) {
            next if next < self.start.saturating_add(self.room) => next,
            _ if step > 0 => self.start,
            _ => region.wrapping_add_signed(step),
        }
    }
}
