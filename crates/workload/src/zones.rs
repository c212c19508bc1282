//! Zones that are written sequentially, emulated on a device that has none.
//!
//! With `zonemode=zbd` fio keeps a write pointer for each zone of `zonesize` bytes of a
//! device that is not zoned, for all jobs together, empty at the start. Every request
//! that a job draws is then put where a zoned device would allow it (fio's
//! `zbd_adjust_block`, `zbd_convert_to_write_zone` and `zbd_find_zone`, zbd.c):
//!
//! - A write goes to the write pointer of its zone. A zone with no room for the smallest request is
//!   full, and is reset after the writer's own requests have ended. With a limit of open zones a
//!   write goes to one that is open while no more may be opened.
//! - A read stays below a write pointer, in the nearest zone that has one far enough,
//!   unless the job may read beyond.
//! - A discard is a whole zone, which it empties without reaching the device.
//!
//! Versions differ where a zone has room left, but less than the smallest request needs: since 3.34
//! the next zone is taken, as here; before, the zone was reset.
//!
//! A zone belongs to one clone while that one has requests in flight to it. fio holds a mutex then;
//! a clone that finds it taken waits for its own requests, and then for the zone. Here the driver
//! is told to [wait](Placed::Wait) and asks again when a request ends.

use crate::job::JobSpec;
use crate::shape::ZoneRules;
use crate::stream::{Direction, IoUnit};
use raidlab_units::Bytes;
use std::collections::BTreeMap;

/// The placement of a request on emulated zones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placed {
    /// The request goes here, and counts as in flight until [`ZonedDevice::ended`].
    At(IoUnit),
    /// The request was a discard that emptied a zone; it has ended already.
    Emptied(IoUnit),
    /// The request must be placed again when a request of any job has ended.
    Wait,
    /// No zone can take the request at present.
    Nowhere,
}

/// A zone that was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Zone {
    /// The bytes from its start to its write pointer.
    written: u64,
    /// The clone that opened it, if it is one of the open zones.
    opened_by: Option<u32>,
    /// Whether it is to be reset before the next write.
    resets: bool,
    /// The clone with requests in flight to it, and their number.
    held: Option<(u32, u32)>,
}

/// The zones of a device, for all clones that run together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ZonedDevice {
    zones: BTreeMap<u64, Zone>,
    /// The open zones in the order of opening.
    open: Vec<u64>,
    /// The bytes below write pointers, where a job counts them.
    valid: u64,
    /// The number of writes until the next zone is reset by frequency; 0: not begun.
    countdown: u32,
    /// The number of requests in flight to all zones.
    in_flight: u64,
    emptied: u64,
}

/// A clone with its region and rules.
#[derive(Debug, Clone, Copy)]
struct Worker {
    clone: u32,
    rules: ZoneRules,
    random: bool,
    writes: bool,
    start: u64,
    length: u64,
    /// The size of the smallest request of the direction.
    least: u64,
    /// Whether the clone itself has no request in flight.
    drained: bool,
}

impl Worker {
    const fn zone_of(&self, offset: u64) -> u64 {
        offset / self.rules.size.0
    }

    const fn first(&self) -> u64 {
        self.zone_of(self.start)
    }

    /// The zone after the last one.
    const fn end(&self) -> u64 {
        self.zone_of(self.start + self.length)
    }

    /// The zone after this one, cyclically.
    const fn after(&self, zone: u64) -> u64 {
        if zone + 1 >= self.end() {
            self.first()
        } else {
            zone + 1
        }
    }

    const fn counts_valid_bytes(&self) -> bool {
        self.rules.reset_threshold_millionths > 0 && self.writes
    }
}

impl JobSpec {
    /// A region in whole zones: a job that only reads keeps its start, others begin
    /// with a zone; all end with one (fio's `zbd_zone_align_file_sizes`).
    pub(crate) fn align_to_zones(&self, (start, length): (Bytes, Bytes)) -> (Bytes, Bytes) {
        let Some(rules) = self.zones else {
            return (start, length);
        };
        let size = rules.size.0.max(1);
        let end = start.0 + length.0;
        let only_reads = !self.pattern.writes() && !self.pattern.trims();
        let start = if only_reads {
            start.0
        } else {
            start.0.next_multiple_of(size)
        };
        let end = end - end % size;
        (Bytes(start), Bytes(end.saturating_sub(start)))
    }
}

impl ZonedDevice {
    /// The number of zones that were reset so far.
    #[must_use]
    pub const fn emptied(&self) -> u64 {
        self.emptied
    }

    /// Places a request of `clone` of `job` that was drawn as `unit` in the region
    /// `(start, length)` of its [stream](crate::RequestStream::region); `drained`: the clone itself
    /// has no request in flight.
    pub fn place(
        &mut self,
        (clone, job): (u32, &JobSpec),
        (start, length): (Bytes, Bytes),
        unit: IoUnit,
        drained: bool,
    ) -> Placed {
        let (Some(rules), Some(direction)) = (job.zones, unit.direction.index()) else {
            return Placed::At(unit);
        };
        let worker = Worker {
            clone,
            rules,
            random: job.pattern.is_random(),
            writes: job.pattern.writes(),
            start: start.0,
            length: length.0,
            least: job.least(direction).0.max(1),
            drained,
        };
        let placed = match unit.direction {
            Direction::Read => self.place_read(&worker, unit),
            Direction::Write => self.place_write(&worker, unit),
            Direction::Trim => self.place_trim(&worker, unit),
            Direction::Flush => Ok(Placed::At(unit)),
        };
        placed.unwrap_or_else(|other| other)
    }

    /// Notes that a placed request has ended.
    pub fn ended(&mut self, job: &JobSpec, unit: IoUnit) {
        let Some(rules) = job.zones.filter(|rules| is_held(rules, unit.direction)) else {
            return;
        };
        let index = unit.offset.0 / rules.size.0;
        self.in_flight -= 1;
        let zone = self.zone_mut(index);
        zone.held = zone
            .held
            .and_then(|(clone, count)| (count > 1).then(|| (clone, count - 1)));
        let end = unit.offset.0 + unit.length.0;
        if unit.direction == Direction::Write && end >= index * rules.size.0 + rules.capacity.0 {
            self.close(index);
        }
    }

    fn zone(&self, index: u64) -> Zone {
        self.zones.get(&index).copied().unwrap_or_default()
    }

    fn zone_mut(&mut self, index: u64) -> &mut Zone {
        self.zones.entry(index).or_default()
    }

    /// The bytes that a zone can still take.
    fn room(&self, worker: &Worker, index: u64) -> u64 {
        let capacity = worker.rules.capacity.0;
        capacity.saturating_sub(self.zone(index).written)
    }

    /// Checks that no other clone has the zone; else the request must wait.
    fn free_for(&self, worker: &Worker, index: u64) -> Result<(), Placed> {
        let held = self.zone(index).held;
        match held.is_some_and(|(clone, _)| clone != worker.clone) {
            true => Err(Placed::Wait),
            false => Ok(()),
        }
    }

    /// Counts a request in flight, and holds its zone for the clone.
    fn hold(&mut self, worker: &Worker, index: u64) {
        self.in_flight += 1;
        let zone = self.zone_mut(index);
        let count = zone.held.map_or(0, |(_, count)| count);
        zone.held = Some((worker.clone, count + 1));
    }

    /// Removes a zone from the open ones.
    fn close(&mut self, index: u64) {
        self.open.retain(|&open| open != index);
        self.zone_mut(index).opened_by = None;
    }

    /// Makes a zone empty, so that it is written from its start again.
    fn empty(&mut self, worker: &Worker, index: u64) {
        let zone = self.zone_mut(index);
        let written = std::mem::take(&mut zone.written);
        zone.resets = false;
        if written > 0 {
            self.emptied += 1;
            if worker.counts_valid_bytes() {
                self.valid = self.valid.saturating_sub(written);
            }
        }
    }

    /// The nearest zone with so many bytes written, first upwards, and for a random
    /// job also downwards.
    fn find_written(&self, worker: &Worker, from: u64, bytes: u64) -> Option<u64> {
        let fits = |(&index, zone): (&u64, &Zone)| (zone.written >= bytes).then_some(index);
        let above = self.zones.range(from + 1..worker.end().max(from + 1));
        let above = above.map(fits).find_map(|found| found);
        let below = self.zones.range(worker.first().min(from)..from).rev();
        let below = below.map(fits).find_map(|found| found);
        match (above, below.filter(|_| worker.random)) {
            (Some(above), Some(below)) if from - below < above - from => Some(below),
            (above, below) => above.or(below),
        }
    }

    fn place_read(&mut self, worker: &Worker, mut unit: IoUnit) -> Result<Placed, Placed> {
        if worker.rules.reads_beyond {
            return Ok(Placed::At(unit));
        }
        let size = worker.rules.size.0;
        let drawn = worker.zone_of(unit.offset.0);
        self.free_for(worker, drawn)?;
        let mut index = drawn;
        let mut written = self.zone(index).written;
        let end = index * size + written;
        if written < worker.least || (!worker.random && unit.offset.0 + worker.least > end) {
            let found = self.find_written(worker, index, worker.least);
            index = found.ok_or(Placed::Nowhere)?;
            self.free_for(worker, index)?;
            written = self.zone(index).written;
            if !worker.random {
                unit.offset = Bytes(index * size);
            }
        }
        if written <= unit.length.0 {
            unit.offset = Bytes(index * size);
        } else if worker.random {
            let within = (unit.offset.0 - drawn * size) % (written - unit.length.0);
            unit.offset = Bytes(index * size + within / worker.least * worker.least);
        }
        let length = unit.length.0.min(index * size + written - unit.offset.0);
        unit.length = Bytes(length / worker.least * worker.least);
        self.hold(worker, index);
        Ok(Placed::At(unit))
    }

    fn place_trim(&mut self, worker: &Worker, mut unit: IoUnit) -> Result<Placed, Placed> {
        let mut index = worker.zone_of(unit.offset.0);
        if worker.random && self.zone(index).written == 0 {
            let found = self.find_written(worker, index, 1);
            index = found.ok_or(Placed::Nowhere)?;
            unit.offset = Bytes(index * worker.rules.size.0);
        }
        self.free_for(worker, index)?;
        self.empty(worker, index);
        self.close(index);
        Ok(Placed::Emptied(unit))
    }

    fn place_write(&mut self, worker: &Worker, mut unit: IoUnit) -> Result<Placed, Placed> {
        let rules = &worker.rules;
        let mut index = worker.zone_of(unit.offset.0);
        let within = unit.offset.0 - index * rules.size.0;
        if rules.capacity < rules.size && !worker.random && within >= rules.capacity.0 {
            index += 1;
            unit.offset = Bytes(index * rules.size.0);
            if index >= worker.end() {
                return Err(Placed::Nowhere);
            }
        }
        self.free_for(worker, index)?;
        loop {
            index = self.writable(worker, unit.offset.0, index)?;
            if !(1..worker.least).contains(&self.room(worker, index)) {
                break;
            }
        }
        self.reset_by_frequency(worker, index);
        if self.zone(index).resets || self.room(worker, index) < worker.least {
            if !worker.drained {
                return Err(Placed::Wait);
            }
            self.empty(worker, index);
        }
        let written = self.zone(index).written;
        unit.offset = Bytes(index * rules.size.0 + written);
        let length = unit.length.0.min(rules.capacity.0 - written);
        unit.length = Bytes(length / worker.least * worker.least);
        self.zone_mut(index).written += unit.length.0;
        if worker.counts_valid_bytes() {
            self.valid += unit.length.0;
        }
        self.hold(worker, index);
        Ok(Placed::At(unit))
    }

    /// Marks a zone for reset when enough of the region is written.
    fn reset_by_frequency(&mut self, worker: &Worker, index: u64) {
        let rules = &worker.rules;
        let frequency = u64::from(rules.reset_frequency_millionths);
        if frequency == 0 || self.zone(index).resets {
            return;
        }
        let threshold =
            u128::from(worker.length) * u128::from(rules.reset_threshold_millionths) / 1_000_000;
        if u128::from(self.valid) < threshold {
            return;
        }
        let every = u32::try_from(1_000_000 / frequency)
            .unwrap_or(u32::MAX)
            .max(1);
        if self.countdown == 0 {
            self.countdown = every;
        }
        self.countdown -= 1;
        if self.countdown == 0 {
            self.countdown = every;
            self.zone_mut(index).resets = true;
        }
    }

    /// Opens a zone for writing, and returns whether that is possible; not for one that writes in
    /// flight will fill.
    fn opens(&mut self, worker: &Worker, index: u64) -> bool {
        let rules = &worker.rules;
        if rules.most_open == 0 {
            return true;
        }
        if self.zone(index).opened_by.is_some() {
            return self.room(worker, index) > 0;
        }
        let own = self.open.iter();
        let own = own.filter(|&&open| self.zone(open).opened_by == Some(worker.clone));
        let too_many = |limit: u32, count: usize| limit > 0 && count >= limit as usize;
        if too_many(rules.most_open_of_job, own.count())
            || too_many(rules.most_open, self.open.len())
        {
            return false;
        }
        self.open.push(index);
        self.zone_mut(index).opened_by = Some(worker.clone);
        true
    }

    /// The open zone of the clone's region that an offset leads to.
    fn open_zone_for(&self, worker: &Worker, offset: u64) -> Option<u64> {
        let count = self.open.len();
        let place = u128::from(offset - worker.start) * count as u128;
        let place = usize::try_from(place / u128::from(worker.length.max(1))).unwrap_or(0);
        let mut turns = (0..count).map(|turn| self.open[(place + turn) % count]);
        turns.find(|open| (worker.first()..worker.end()).contains(open))
    }

    /// Finds the zone that takes a write that was drawn at `offset` in zone `drawn`.
    fn writable(&mut self, worker: &Worker, offset: u64, drawn: u64) -> Result<u64, Placed> {
        let mut drawn = drawn;
        if (1..worker.least).contains(&self.room(worker, drawn)) {
            if !worker.drained {
                return Err(Placed::Wait);
            }
            self.close(drawn);
            self.zone_mut(drawn).written = worker.rules.size.0;
            if drawn + 1 >= worker.end() && !worker.random {
                return Err(Placed::Nowhere);
            }
            drawn = worker.after(drawn);
            self.free_for(worker, drawn)?;
        }
        if self.opens(worker, drawn) {
            return Ok(drawn);
        }
        let mut from = drawn;
        if !self.open.is_empty() {
            let open = self.open_zone_for(worker, offset).ok_or(Placed::Nowhere)?;
            self.free_for(worker, open)?;
            if self.room(worker, open) >= worker.least {
                return Ok(open);
            }
            from = open;
        }
        if !worker.drained {
            return Err(Placed::Wait);
        }
        if worker.random {
            if self.opens(worker, drawn) {
                return Ok(drawn);
            }
            from = drawn;
        }
        self.another(worker, offset, from)
    }

    /// Finds a zone to open, or an open one with room; as a last resort one is closed.
    fn another(&mut self, worker: &Worker, offset: u64, from: u64) -> Result<u64, Placed> {
        let mut index = from;
        for _ in 0..=self.open.len() {
            index = worker.after(index);
            if self.zone(index).opened_by.is_none() {
                break;
            }
        }
        if self.zone(index).opened_by.is_none() {
            self.free_for(worker, index)?;
            if self.opens(worker, index) {
                return Ok(index);
            }
        }
        let inside = worker.first()..worker.end();
        let roomy = |&open: &u64| inside.contains(&open) && self.room(worker, open) >= worker.least;
        if let Some(open) = self.open.iter().copied().find(roomy) {
            self.free_for(worker, open)?;
            return Ok(open);
        }
        if self.in_flight > 0 {
            return Err(Placed::Wait);
        }
        let open = self.open_zone_for(worker, offset).filter(|_| worker.random);
        let open = open.ok_or(Placed::Nowhere)?;
        self.zone_mut(open).written = worker.rules.size.0;
        Ok(open)
    }
}

/// Whether a request keeps its zone for its clone.
const fn is_held(rules: &ZoneRules, direction: Direction) -> bool {
    match direction {
        Direction::Write => true,
        Direction::Read => !rules.reads_beyond,
        Direction::Trim | Direction::Flush => false,
    }
}
