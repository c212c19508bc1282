//! A solid-state disk, as far as a queue of commands can tell: dies that work side by
//! side, and a buffer for writes. It has no arm, no platter and no read-ahead.
//!
//! 1. A page of the flash belongs to the die that its number, modulo the number of
//!    dies, says. A die does one thing at a time, in the order in which it came.
//! 2. A read takes each of its pages' dies for the read time, and is done when the
//!    last page has come and all has crossed the interface.
//! 3. A write is done when it has crossed the interface and its pages are in the
//!    buffer; each page then takes its die for the program time. While the buffer is
//!    full a write waits for the oldest pages.
//! 4. A write through the buffer, and a flush, wait for the dies too.
//!
//! Erasing, garbage collection, wear and the flash's own tables are not modelled: a
//! disk that has been full for long writes slower than this. Everything but the
//! interface is known when a command comes, so a command's end is computed at once.

pub mod translation;
pub mod victims;

use super::{Facts, Mechanism, MediumKind, Number};
use crate::command::{Command, CommandKind, Completion};
use crate::interface::Interface;
use crate::parameters::{DiskParameters, ParameterError};
use raidlab_random::Stream;
use raidlab_units::{Bytes, Nanos, SECTOR_BYTES};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Numbers of a solid-state disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameters {
    /// Dies that work side by side, at least 1.
    pub dies: usize,
    /// What a die reads or programs at a time; whole sectors.
    pub page: Bytes,
    /// How long reading a page takes.
    pub read: Nanos,
    /// How long programming one takes.
    pub program: Nanos,
}

impl MediumKind for Parameters {
    type Mechanism = FlashDisk;

    const FACTS: Facts = Facts {
        rotational: false,
        like: None,
        shared_names: &[
            "capacity_sectors",
            "overhead_cached_ms",
            "interface_bytes_per_second",
            "write_window",
        ],
        own_names: &[
            "flash_dies",
            "flash_page_bytes",
            "flash_read_us",
            "flash_program_us",
        ],
    };

    fn blank() -> Self {
        Self {
            dies: 0,
            page: Bytes(0),
            read: Nanos::ZERO,
            program: Nanos::ZERO,
        }
    }

    fn set(&mut self, name: &str, value: Number) -> bool {
        match name {
            "flash_dies" => self.dies = value.count(),
            "flash_page_bytes" => self.page = Bytes(value.whole()),
            "flash_read_us" => self.read = value.microseconds(),
            "flash_program_us" => self.program = value.microseconds(),
            _ => return false,
        }
        true
    }

    fn validate(&self, _disk: &DiskParameters) -> Result<(), ParameterError> {
        let is_one = (1..=4096).contains(&self.dies)
            && (512..=1 << 20).contains(&self.page.0)
            && self.page.0.is_multiple_of(512)
            && self.read < Nanos::SECOND
            && self.program < Nanos::SECOND;
        if is_one {
            return Ok(());
        }
        Err(ParameterError {
            field: "flash",
            problem: "1 to 4096 dies, pages of 512 bytes to 1 MiB, times below 1 s",
        })
    }

    fn build(&self, disk: &DiskParameters, _angle: Nanos, _random: Stream) -> FlashDisk {
        FlashDisk {
            interface: Interface::new(disk),
            flash: Flash::new(*self, disk.write_window),
        }
    }
}

/// A solid-state disk at work.
#[derive(Debug, Clone)]
pub(crate) struct FlashDisk {
    interface: Interface,
    flash: Flash,
}

impl Mechanism for FlashDisk {
    fn submit(&mut self, now: u64, command: &Command) {
        let bytes = command.count.0 * SECTOR_BYTES;
        let ready = now + self.interface.overhead;
        match command.kind {
            CommandKind::Read => {
                let served = self.flash.serve(ready, command);
                self.interface.transfer(served, bytes, command.tag);
            }
            CommandKind::Write | CommandKind::WriteThrough => {
                let time = self.interface.transfer_time(bytes);
                let arrived = self.flash.receive(ready, time);
                let served = self.flash.serve(arrived, command);
                self.interface.complete(served, command.tag);
            }
            CommandKind::Flush => {
                let served = self.flash.serve(ready, command);
                self.interface.complete(served, command.tag);
            }
            CommandKind::Discard => self.interface.discard(now, command.tag),
        }
    }

    fn next_event(&self) -> u64 {
        self.interface.next()
    }

    fn advance(&mut self, now: u64, completions: &mut Vec<Completion>) {
        self.interface.hand_over(now, completions);
    }

    fn is_quiet(&self) -> bool {
        self.interface.is_quiet()
    }
}

/// The dies and the buffer.
#[derive(Debug, Clone)]
pub(crate) struct Flash {
    parameters: Parameters,
    /// When the way in is free: data go in and out side by side.
    incoming: u64,
    /// When each die is free.
    free: Vec<u64>,
    /// When the buffer's pages will be programmed, the earliest first.
    buffered: BinaryHeap<Reverse<u64>>,
    /// Pages that the buffer holds, at least 1.
    buffer: usize,
}

impl Flash {
    pub(crate) fn new(parameters: Parameters, buffer: usize) -> Self {
        Self {
            incoming: 0,
            free: vec![0; parameters.dies.max(1)],
            buffered: BinaryHeap::new(),
            buffer: buffer.max(1),
            parameters,
        }
    }

    /// When data that take `time` to cross the interface are here.
    pub(crate) fn receive(&mut self, now: u64, time: u64) -> u64 {
        self.incoming = self.incoming.max(now) + time;
        self.incoming
    }

    /// When the flash and the buffer are done with a command that comes to them at
    /// `now`.
    pub(crate) fn serve(&mut self, now: u64, command: &Command) -> u64 {
        match command.kind {
            CommandKind::Read => self.occupy(now, command, self.parameters.read.0),
            CommandKind::Write => self.buffer(now, command),
            CommandKind::WriteThrough => self.occupy(now, command, self.parameters.program.0),
            CommandKind::Flush | CommandKind::Discard => {
                self.buffered.iter().map(|page| page.0).fold(now, u64::max)
            }
        }
    }

    /// The pages of a command.
    fn pages(&self, command: &Command) -> std::ops::Range<u64> {
        let sectors = (self.parameters.page.0 / SECTOR_BYTES).max(1);
        command.start.0 / sectors..command.end().div_ceil(sectors)
    }

    /// Takes the die of `page` for `time`, from `now` at the earliest; until when.
    fn take(&mut self, page: u64, now: u64, time: u64) -> u64 {
        let dies = self.free.len() as u64;
        let die = usize::try_from(page % dies).unwrap_or(0);
        self.free[die] = self.free[die].max(now) + time;
        self.free[die]
    }

    fn occupy(&mut self, now: u64, command: &Command, time: u64) -> u64 {
        let pages = self.pages(command);
        pages.fold(now, |last, page| last.max(self.take(page, now, time)))
    }

    /// Puts a write into the buffer; when all of it is there.
    fn buffer(&mut self, now: u64, command: &Command) -> u64 {
        let mut at = now;
        for page in self.pages(command) {
            while let Some(&Reverse(programmed)) = self.buffered.peek() {
                if programmed > at && self.buffered.len() < self.buffer {
                    break;
                }
                at = at.max(programmed);
                self.buffered.pop();
            }
            let programmed = self.take(page, at, self.parameters.program.0);
            self.buffered.push(Reverse(programmed));
        }
        at
    }
}

#[cfg(test)]
mod tests;
