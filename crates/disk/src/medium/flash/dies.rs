//! The dies of a solid-state disk, and the channels between them and the controller.
//!
//! A die does one thing at a time. Reads wait at their die, in order of arrival. Data to be written
//! wait before all dies in *units*, each programmed in one go, and the next idle die takes one.
//!
//! - **A read** senses a page, for a time that depends on the page's kind, and sends the requested
//!   data over the die's channel; the die is busy until they have arrived. A channel carries one
//!   transfer at a time, in the order in which they are ready.
//! - **The register** of a die holds the page that was sensed last until the die does other work, and
//!   any part of it can be sent without sensing it anew (ONFI 4.2, "Change Read Column").
//! - **A unit** comes over the channel page by page, and is then programmed. A unit of copies
//!   is first gathered by reads. When a die has programmed a block, it erases the next one.
//! - **Suspension.** A read interrupts the programming or erasing of its die, after the time that
//!   suspending takes, but not while a unit's data arrive. Work that will soon end is not
//!   interrupted: the preset says how soon (so does MQSim,
//!   `TSU_OutOfOrder::service_read_transaction`). Neither is a read: one that comes while copies
//!   are gathered waits for the page that is being read. When no read waits, the work is resumed.
//!   While there is work for a die, only a limited number of reads may go before it; then it is
//!   done to its end. With a limit of zero, work is never interrupted, and one read goes between
//!   two units.

use super::parameters::Parameters;
use super::shape::NONE;
use std::collections::VecDeque;

/// A unit of data that is programmed in one go.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unit {
    pub(super) kind: UnitKind,
    /// The number of pages in the buffer that the unit frees.
    pub(super) pages: u32,
    /// The number of the epoch, and so of the flush that waits for the unit.
    pub(super) epoch: u32,
}

/// The source of a unit, and the way in which it is programmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnitKind {
    /// Data from the host, programmed with all bits of a cell.
    Host,
    /// Data from the host, programmed with one bit in a cell.
    Cached,
    /// Copies of valid pages, which are gathered first.
    Copies {
        /// The time for which reads that gather the unit's pages keep the die busy, in nanoseconds.
        gather: u64,
        /// The time of each of these reads, in nanoseconds.
        page: u64,
    },
}

/// The present stage of a die's work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Idle,
    /// The die senses the page of a read.
    Sense,
    /// A read's data are being sent over the channel.
    Send,
    Gather,
    /// This number of a unit's pages has yet to arrive over the channel.
    Receive(u32),
    Program,
    Erase,
}

#[derive(Debug, Clone, Copy)]
struct Die {
    stage: Stage,
    /// The end of the present stage, in nanoseconds.
    until: u64,
    /// The first of the waiting reads, which may be in progress.
    first: u32,
    last: u32,
    /// Interrupted work: its stage, and its remaining time.
    interrupted: Option<(Stage, u64)>,
    unit: Unit,
    /// The page in the die's register, if any.
    held: Option<u64>,
    /// The number of reads that have gone before the die's work since that began.
    passed: u32,
    /// The bytes programmed since the last erasure, counted as all bits of the cells used.
    programmed: u64,
}

/// A page of flash.
#[derive(Debug, Clone, Copy)]
pub(super) struct Page {
    pub(super) die: usize,
    /// A number that no other page has.
    pub(super) number: u64,
    /// The time of sensing it, in nanoseconds.
    pub(super) sense: u64,
}

/// A read of one page of flash.
#[derive(Debug, Clone, Copy)]
struct Read {
    next: u32,
    command: u32,
    bytes: u32,
    page: Page,
}

/// The stage that a die has just ended.
#[derive(Debug, Clone, Copy)]
pub(super) enum Ended {
    /// The data of a command have arrived at the controller.
    Read {
        /// The command to which the data belong.
        command: u32,
        /// The number of bytes that arrived.
        bytes: u32,
    },
    /// The die has programmed this unit.
    Unit(Unit),
}

/// The state of all dies and channels.
#[derive(Debug, Clone)]
pub(super) struct Dies {
    numbers: Parameters,
    nanos_per_byte: f64,
    dies: Vec<Die>,
    /// The time at which each channel is free.
    channels: Vec<u64>,
    /// A bit for each idle die, and where the next search begins.
    idle: Vec<u64>,
    search: usize,
    reads: Vec<Read>,
    unused: u32,
    waiting: VecDeque<Unit>,
    /// The number of units that wait or are in progress.
    units: u32,
}

impl Dies {
    pub(super) fn new(numbers: Parameters) -> Self {
        let die = Die {
            stage: Stage::Idle,
            until: 0,
            first: NONE,
            last: NONE,
            interrupted: None,
            unit: Unit {
                kind: UnitKind::Host,
                pages: 0,
                epoch: 0,
            },
            held: None,
            passed: 0,
            programmed: 0,
        };
        let count = numbers.dies;
        let mut idle = vec![u64::MAX; count.div_ceil(64)];
        if !count.is_multiple_of(64) {
            idle[count / 64] = (1 << (count % 64)) - 1;
        }
        Self {
            dies: vec![die; count],
            channels: vec![0; numbers.channels],
            idle,
            search: 0,
            reads: Vec::new(),
            unused: NONE,
            waiting: VecDeque::new(),
            units: 0,
            nanos_per_byte: 1e9 / numbers.channel_rate.0,
            numbers,
        }
    }

    /// The number of units that wait or are being programmed.
    pub(super) fn units(&self) -> u32 {
        self.units
    }

    /// Requests `bytes` of a page for a command. Returns the time at which the page's die next has
    /// something to do, if this changed it, as all functions here do.
    pub(super) fn read(&mut self, now: u64, page: Page, command: u32, bytes: u32) -> Option<u64> {
        let die = page.die;
        let read = Read {
            next: NONE,
            command,
            bytes,
            page,
        };
        let slot = self.unused;
        let slot = if slot == NONE {
            self.reads.push(read);
            self.reads.len() as u32 - 1
        } else {
            self.unused = std::mem::replace(&mut self.reads[slot as usize], read).next;
            slot
        };
        let state = &mut self.dies[die];
        if state.first == NONE {
            state.first = slot;
        } else {
            self.reads[state.last as usize].next = slot;
        }
        state.last = slot;
        match state.stage {
            Stage::Idle => {
                self.idle[die / 64] &= !(1 << (die % 64));
                Some(self.sense(now, die))
            }
            Stage::Gather | Stage::Program | Stage::Erase
                if state.passed < self.numbers.suspend_reads =>
            {
                let left = state.until - now;
                let suspend = self.numbers.suspend.0;
                let (wait, rest) = match (state.stage, state.unit.kind) {
                    (Stage::Gather, UnitKind::Copies { page, .. }) => {
                        let wait = left % page.max(1);
                        (wait, left - wait)
                    }
                    _ if left < suspend.max(self.numbers.suspend_left.0) => return None,
                    _ => (suspend, left),
                };
                state.interrupted = Some((state.stage, rest));
                state.passed += 1;
                Some(self.sense(now + wait, die))
            }
            _ => None,
        }
    }

    /// Takes a page that is written anew out of its die's register.
    pub(super) fn forget(&mut self, page: Page) {
        let held = &mut self.dies[page.die].held;
        *held = held.filter(|&number| number != page.number);
    }

    /// Queues a unit to be programmed. Returns the die that begins it at once, if any, and the end
    /// of its stage.
    pub(super) fn write(&mut self, now: u64, unit: Unit) -> Option<(usize, u64)> {
        self.units += 1;
        let Some(die) = self.find_idle() else {
            self.waiting.push_back(unit);
            return None;
        };
        self.idle[die / 64] &= !(1 << (die % 64));
        Some((die, self.begin(now, die, unit)))
    }

    /// Ends the stage of a die that is due at `now`, unless it was interrupted meanwhile. Returns
    /// what ended, and when the die is due again.
    pub(super) fn advance(&mut self, now: u64, die: usize) -> (Option<Ended>, Option<u64>) {
        let state = &mut self.dies[die];
        if state.until != now {
            return (None, None);
        }
        match state.stage {
            Stage::Idle => (None, None),
            Stage::Sense => {
                let bytes = self.reads[state.first as usize].bytes;
                state.stage = Stage::Send;
                (None, Some(self.transfer(now, die, u64::from(bytes))))
            }
            Stage::Send => {
                let slot = state.first;
                let read = self.reads[slot as usize];
                state.first = read.next;
                self.reads[slot as usize].next = self.unused;
                self.unused = slot;
                let ended = Ended::Read {
                    command: read.command,
                    bytes: read.bytes,
                };
                (Some(ended), self.next(now, die))
            }
            Stage::Gather => (None, Some(self.receive(now, die))),
            Stage::Receive(left) if left > 0 => {
                state.stage = Stage::Receive(left - 1);
                (None, Some(self.transfer(now, die, self.numbers.page.0)))
            }
            Stage::Receive(_) => {
                let time = match state.unit.kind {
                    UnitKind::Cached => self.numbers.slc_program,
                    UnitKind::Host | UnitKind::Copies { .. } => self.numbers.program,
                };
                (None, Some(self.begin_or_read(now, die, Stage::Program, time.0)))
            }
            Stage::Program => {
                self.units -= 1;
                let unit = state.unit;
                // With one bit per cell a unit takes as many cells, so they are erased
                // just as soon.
                state.programmed += self.numbers.unit_bytes(false);
                let due = if state.programmed >= self.numbers.block.0 {
                    state.programmed = 0;
                    Some(self.begin_or_read(now, die, Stage::Erase, self.numbers.erase.0))
                } else {
                    state.passed = 0;
                    self.next(now, die)
                };
                (Some(Ended::Unit(unit)), due)
            }
            Stage::Erase => {
                state.passed = 0;
                (None, self.next(now, die))
            }
        }
    }

    /// Begins a die's next work.
    fn next(&mut self, now: u64, die: usize) -> Option<u64> {
        let state = &mut self.dies[die];
        let has_work = state.interrupted.is_some() || !self.waiting.is_empty();
        // Without suspension, one read may still go between two units.
        let most = self.numbers.suspend_reads.max(1);
        if state.first != NONE && (!has_work || state.passed < most) {
            state.passed += u32::from(has_work);
            return Some(self.sense(now, die));
        }
        if let Some((stage, left)) = state.interrupted.take() {
            return Some(self.begin_work(now, die, stage, left));
        }
        if let Some(unit) = self.waiting.pop_front() {
            return Some(self.begin(now, die, unit));
        }
        state.stage = Stage::Idle;
        state.passed = 0;
        self.idle[die / 64] |= 1 << (die % 64);
        None
    }

    fn sense(&mut self, now: u64, die: usize) -> u64 {
        let state = &mut self.dies[die];
        let Page { number, sense, .. } = self.reads[state.first as usize].page;
        let is_held = state.held.replace(number) == Some(number);
        state.stage = Stage::Sense;
        state.until = now + if is_held { 0 } else { sense };
        state.until
    }

    fn begin(&mut self, now: u64, die: usize, unit: Unit) -> u64 {
        self.dies[die].unit = unit;
        match unit.kind {
            UnitKind::Copies { gather, .. } => self.begin_work(now, die, Stage::Gather, gather),
            UnitKind::Host | UnitKind::Cached => self.receive(now, die),
        }
    }

    /// Begins the transfer of the first page of a die's unit over the channel.
    fn receive(&mut self, now: u64, die: usize) -> u64 {
        let cached = self.dies[die].unit.kind == UnitKind::Cached;
        let pages = self.numbers.unit_bytes(cached) / self.numbers.page.0;
        self.dies[die].stage = Stage::Receive(pages as u32 - 1);
        self.dies[die].held = None;
        self.transfer(now, die, self.numbers.page.0)
    }

    /// Begins a die's work, or first a read that came meanwhile.
    fn begin_or_read(&mut self, now: u64, die: usize, stage: Stage, time: u64) -> u64 {
        let state = &mut self.dies[die];
        if state.first != NONE && state.passed < self.numbers.suspend_reads {
            state.interrupted = Some((stage, time));
            state.passed += 1;
            return self.sense(now, die);
        }
        self.begin_work(now, die, stage, time)
    }

    fn begin_work(&mut self, now: u64, die: usize, stage: Stage, time: u64) -> u64 {
        let state = &mut self.dies[die];
        state.stage = stage;
        state.held = None;
        state.until = now + time;
        state.until
    }

    /// Transfers so many bytes over a die's channel.
    fn transfer(&mut self, now: u64, die: usize, bytes: u64) -> u64 {
        let channel = die % self.channels.len();
        let free = &mut self.channels[channel];
        *free = (*free).max(now) + (bytes as f64 * self.nanos_per_byte) as u64;
        self.dies[die].until = *free;
        *free
    }

    /// The next idle die in turn.
    fn find_idle(&mut self) -> Option<usize> {
        let words = self.idle.len();
        let (word, bit) = (self.search / 64, self.search % 64);
        // The search covers its own word from the bit on, the others, and its own word
        // from the start.
        let found = (0..=words).find_map(|step| {
            let index = (word + step) % words;
            let mask = if step == 0 { u64::MAX << bit } else { u64::MAX };
            let rest = self.idle[index] & mask;
            (rest != 0).then(|| index * 64 + rest.trailing_zeros() as usize)
        })?;
        self.search = (found + 1) % self.dies.len();
        Some(found)
    }
}
