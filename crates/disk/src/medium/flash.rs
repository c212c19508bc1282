//! A solid-state disk: flash chips behind a controller, on SATA or PCI Express.
//!
//! 1. **Controller.** A command keeps the controller busy for a moment, which bounds how many
//!    it does in a second, and then waits for its firmware, many at a time.
//! 2. **Link.** Data cross it one command after the other, on PCI Express in both
//!    directions at a time. On SATA a flush or a discard waits until nothing else is under way,
//!    and all that comes later waits for it, as it is no queued command.
//! 3. **Reads** go to the dies on which their pages lie; which those are depends on
//!    how they were written. A page that was never written, or trimmed, needs no die.
//! 4. **Writes** are complete when they are in the buffer, which takes them page by page as there
//!    is room (so does MQSim, `Data_Cache_Manager_Flash_Advanced::write_to_destage_buffer`), in order
//!    of arrival. Whether reads that come after those pass them is a switch. A write of a part
//!    of a logical page of 4 KiB reads the rest first. What the buffer holds is put
//!    into units and programmed, and leaves the buffer when it is.
//! 5. **Garbage.** Each unit of the host brings about as many copies as the
//!    [translation layer](translation) has to make for it, evenly or in bursts.
//! 6. **The cache of one bit a cell**, where there is one, takes what comes until it is
//!    full. Then units are programmed with all bits, beside it, until no cells are left; from
//!    then on the cache is folded to make room for them. A drive with
//!    nothing to do folds until the cache is empty, and one that is trimmed wholly has nothing
//!    to fold. The cache of a drive in steady state is full.
//! 7. **Flush.** With protection against the loss of power it has nothing to wait for. Without
//!    it the unit that is being filled is closed, all that was received is programmed, and the
//!    map takes its own time; a write through the buffer waits for its own unit likewise.
//!
//! Left out: reads of what is still in the buffer are served by dies; a read from the cache of
//! one bit is no faster; retries, read disturb, refresh and temperature; errors.

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
        Self::BLANK
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
