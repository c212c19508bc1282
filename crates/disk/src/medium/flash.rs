//! A solid-state disk: flash chips behind a controller, on SATA or PCI Express.
//!
//! 1. **Controller.** A command keeps the controller busy for a moment, which limits the commands
//!    per second, and then waits for its firmware, many at a time.
//! 2. **Link.** Data cross it one command after the other, on PCI Express in both directions at a
//!    time. On SATA a flush or a discard waits until no other command is in flight, and all later
//!    ones wait for it, as it is no queued command.
//! 3. **Reads** go to the dies on which their pages lie; which those are depends on
//!    how they were written. A page that was never written, or trimmed, needs no die. Streams
//!    are read ahead.
//! 4. **Writes** are complete when they are in the buffer, which takes them page by page as there
//!    is room (so does MQSim, `Data_Cache_Manager_Flash_Advanced::write_to_destage_buffer`), in
//!    order of arrival. Whether later reads pass them is a switch. A write of a part of a logical
//!    page of 4 KiB reads the rest first. The pages in the buffer are put into units and
//!    programmed, and leave the buffer when that is done.
//! 5. **Garbage.** Each unit of the host causes as many copies as the [translation
//!    layer](translation) has to make for it, evenly or in bursts.
//! 6. **The cache of one bit a cell**, where there is one, takes all writes until it is full. Then
//!    units are programmed with all bits, beside it, until no cells are left; from then on the
//!    cache is folded to make room for them. An idle drive folds until the cache is empty, and one
//!    that is trimmed completely has nothing to fold. The cache of a drive in steady state is full.
//! 7. **Flush.** With power-loss protection it has nothing to wait for. Without it the unit that is
//!    being filled is closed, all received data are programmed, and the map takes its own time; a
//!    write through the buffer waits for its own unit likewise.
//!
//! Left out: serving reads from the buffer (they go to dies); faster reads from the cache of one
//! bit; retries, read disturb, refresh and temperature; errors.

mod ahead;
mod dies;
mod drive;
mod events;
mod link;
mod pages;
mod parameters;
mod shape;
pub mod translation;
pub mod victims;
mod writes;

use super::{Facts, MediumKind, Number};
use crate::medium::parameters::{DiskParameters, ParameterError};
pub use pages::SAMPLE;
pub use parameters::Parameters;
use translation::State;
use raidlab_random::Stream;
use raidlab_units::Nanos;

impl MediumKind for Parameters {
    type Mechanism = drive::FlashDisk;

    const FACTS: Facts = Facts {
        rotational: false,
        like: None,
        shared_names: &[
            "capacity_sectors",
            "overhead_cached_ms",
            "interface_bytes_per_second",
            "write_window",
        ],
        own_names: Self::NAMES,
    };

    const STATES: &'static [&'static str] =
        &[State::ALL[0].1, State::ALL[1].1, State::ALL[2].1];

    fn blank() -> Self {
        Self::default()
    }

    fn set(&mut self, name: &str, value: Number) -> bool {
        self.set_number(name, value)
    }

    fn validate(&self, disk: &DiskParameters) -> Result<(), ParameterError> {
        self.check(disk)
    }

    fn build(&self, disk: &DiskParameters, _angle: Nanos, random: Stream) -> drive::FlashDisk {
        drive::FlashDisk::new(*self, disk, random)
    }

    fn state(&self) -> Option<usize> {
        State::ALL.iter().position(|entry| entry.0 == self.state)
    }

    fn set_state(&mut self, state: usize) {
        self.state = State::ALL[state].0;
    }

    fn is_nvme(&self) -> bool {
        self.generation > 0
    }

    fn is_protected(&self) -> bool {
        self.protected
    }
}

#[cfg(test)]
mod tests;
