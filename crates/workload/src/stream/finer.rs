//! The requests that are not all alike and back to back: sizes that differ, steps
//! and zones with gaps, offsets drawn in other ways, and what is read back.

use super::{Direction, FLUSH, IoUnit, Order, RequestStream};
use crate::job::JobSpec;
use crate::shape::{Distribution, Runs, Sizes, Strides};
use raidlab_random::Stream;
use raidlab_units::Bytes;
use std::collections::VecDeque;

/// How often a size is drawn that does not fit before the smallest is taken.
const MOST_DRAWS: u32 = 100;

/// What a stream needs whose requests are not all alike and back to back.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Finer {
    sizes: [Sizes; 2],
    unaligned: bool,
    align: [u64; 2],
    step: i64,
    runs: Runs,
    /// Requests until the next draw.
    run_left: u32,
    strides: Option<Strides>,
    /// Where the present zone begins, and bytes moved in it.
    pub(super) zone: [u64; 2],
    /// The first and the end of the request before, of reads and of writes,
    /// counted from the start.
    pub(super) before: [(u64, u64); 2],
    /// After so many writes they are read back; `None`: never.
    backlog: Option<u64>,
    /// Blocks may be written twice: they are read back by offset.
    by_offset: bool,
    /// Written and not yet read back.
    written: Vec<(u64, u64)>,
    /// Being read back.
    to_verify: VecDeque<(u64, u64)>,
}

impl JobSpec {
    /// What only the finer shapes need.
    pub(super) fn finer(&self) -> Option<Box<Finer>> {
        let plain = self.sizes.is_none()
            && self.alignment.is_none()
            && self.step == 0
            && self.runs == Runs::default()
            && self.distribution == Distribution::Even
            && self.strides.is_none()
            && self.verify.is_none();
        let one = || Sizes::One(self.block_size);
        let sizes = self.sizes.clone().unwrap_or_else(|| [one(), one()]);
        let align = [0, 1].map(|direction| self.choices(direction, Bytes(0), 0).1);
        (!plain).then(|| {
            Box::new(Finer {
                sizes,
                unaligned: self.unaligned_sizes,
                align,
                step: self.step,
                runs: self.runs,
                run_left: self.runs.draw_every,
                strides: self.strides,
                zone: [0; 2],
                before: [(0, 0); 2],
                backlog: self
                    .verify
                    .filter(|_| self.pattern.writes())
                    .map(|verify| verify.backlog),
                by_offset: self.pattern.is_random() && !self.random_map,
                written: Vec::new(),
                to_verify: VecDeque::new(),
            })
        })
    }
}

impl RequestStream {
    /// The same for the finer shapes.
    pub(super) fn next_finer(&mut self) -> Option<IoUnit> {
        if let Some((offset, length)) = self.finer.as_mut()?.to_verify.pop_front() {
            return Some(self.request(Direction::Read, offset, length));
        }
        if (self.units_left == 0 || self.requests_left == 0) && !self.read_back() {
            return None;
        }
        if self
            .finer
            .as_ref()
            .is_some_and(|finer| !finer.to_verify.is_empty())
        {
            return self.next_finer();
        }
        if self.flush_is_due() {
            return Some(FLUSH);
        }
        // A pass may have no place left; a second one in a row has none at all.
        for _ in 0..2 {
            if self.pass_left == 0 {
                if self.read_back() {
                    return self.next_finer();
                }
                self.start_pass();
            }
            let direction = self.direction();
            if let Some((offset, length)) = self.place(direction) {
                return Some(self.issue(direction, offset, length));
            }
            if self.by_passes {
                self.units_left = self.units_left.saturating_sub(self.pass_left);
            }
            self.pass_left = 0;
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

    /// Accounts for a request at `offset` from the start.
    fn issue(&mut self, direction: Direction, offset: u64, length: u64) -> IoUnit {
        let units = length.div_ceil(self.unit);
        self.pass_left = self.pass_left.saturating_sub(units);
        self.units_left = self.units_left.saturating_sub(units);
        self.requests_left -= 1;
        self.count_write(direction);
        let writes = direction == Direction::Write;
        if let Some(finer) = &mut self.finer {
            finer.before[usize::from(writes)] = (offset, offset + length);
            finer.zone[1] += length;
            if let Some(backlog) = finer.backlog.filter(|_| writes) {
                finer.written.push((offset, length));
                if backlog > 0 && finer.written.len() as u64 >= backlog {
                    self.read_back();
                }
            }
        }
        self.request(direction, offset, length)
    }

    /// Turns to reading what was written; false where there is nothing.
    fn read_back(&mut self) -> bool {
        let Some(finer) = &mut self.finer else {
            return false;
        };
        if finer.by_offset {
            finer.written.sort_unstable();
            finer.written.dedup_by_key(|&mut (offset, _)| offset);
        }
        finer.to_verify.extend(finer.written.drain(..));
        !finer.to_verify.is_empty()
    }

    /// Where the next request lies, counted from the start, and its bytes;
    /// `None` where this pass has no place left.
    fn place(&mut self, direction: Direction) -> Option<(u64, u64)> {
        let index = usize::from(direction == Direction::Write);
        let finer = self.finer.as_mut()?;
        let draws = match &mut self.order {
            Order::Sequential { .. } => false,
            Order::Mapped { .. } | Order::Drawn(_) => {
                finer.run_left = finer.run_left.saturating_sub(1);
                let is_turn = finer.run_left == 0;
                if is_turn {
                    finer.run_left = finer.runs.draw_every;
                }
                let percent = finer.runs.random_percent;
                is_turn && (percent >= 100 || self.random.percent(percent))
            }
        };
        let least = finer.sizes[index].least().0;
        let region = self.region;
        let followed = if !self.pattern.is_random() {
            finer.follow(index, region)
        } else if draws {
            None
        } else {
            let (first, end) = finer.before[index];
            let next = if finer.runs.repeat { first } else { end };
            // Behind the last block fio draws.
            Some(next).filter(|next| next + least <= region)
        };
        let offset = match (followed, &mut self.order) {
            (Some(offset), _) => offset,
            (None, Order::Sequential { .. }) => return None,
            (None, Order::Mapped { order, next }) => {
                let block = order.block(*next);
                *next += 1;
                block * self.unit
            }
            (None, Order::Drawn(offsets)) => {
                offsets[index].next(&mut self.random)? * finer.align[index]
            }
        };
        let fits = |length: u64| offset + length <= region;
        if !fits(least) {
            return None;
        }
        let length = (0..MOST_DRAWS)
            .map(|_| draw_size(&finer.sizes[index], finer.unaligned, &mut self.random))
            .find(|&length| fits(length));
        Some((offset, length.unwrap_or(least)))
    }
}

impl Finer {
    /// The next sequential offset of a direction, as `get_next_seq_offset` and
    /// `setup_strided_zone_mode` of fio's io_u.c.
    fn follow(&mut self, index: usize, region: u64) -> Option<u64> {
        let mut last = self.before[index].1;
        if let Some(strides) = self.strides {
            if self.zone[1] >= strides.amount.0 {
                self.zone[0] += strides.length.0 + strides.skip.0;
                self.zone[1] = 0;
                if self.zone[0] >= region {
                    self.zone[0] = 0;
                }
                last = self.zone[0];
            }
            if last >= self.zone[0] + strides.length.0 {
                last = self.zone[0];
            }
            return (last < region).then_some(last);
        }
        if self.step == 0 || last == 0 {
            return (last < region).then_some(last);
        }
        match last.checked_add_signed(self.step) {
            Some(offset) if offset < region => Some(offset),
            // Forward, the pass is through; backward, it goes on from the end.
            _ if self.step > 0 => None,
            _ => region.checked_add_signed(self.step),
        }
    }
}

/// Draws a size.
fn draw_size(sizes: &Sizes, unaligned: bool, random: &mut Stream) -> u64 {
    match sizes {
        Sizes::One(size) => size.0,
        Sizes::Range { least, most } => {
            // As fio: the least and up to the most on top, cut at the most, so that
            // the largest comes more often.
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
