//! Modelled disks: mechanics, firmware, caches, presets with provenance.
//!
//! A [`Disk`] is a state machine in virtual time: commands go in with
//! [`Disk::submit`], completions come out of [`Disk::advance`], and
//! [`Disk::next_event`] says when something will happen. It moves no data,
//! reads no clock and draws randomness only from the stream it was given.
//!
//! A disk is a medium and its numbers. Each [`medium`] is a module with its own
//! parameters, one line in a registry: [platters](medium::platters) with their arm, the
//! same with [shingled tracks](medium::shingles), [flash](medium::flash), and a disk of
//! [constant](medium::constant) times. What several members share is in [`shared`]; before each of them stands a [`HostQueue`].
//! Parameters come from a [`Preset`]: a TOML file in which every number names
//! its source; [`Bands`] say how far a disk that nobody fitted may be off.

mod bands;
mod bus;
mod command;
mod disk;
mod feature;
mod interface;
pub mod medium;
mod preset;
mod queue;
pub mod shared;
pub mod surface;

pub use bands::{Band, Bands, BandsError, Load};
pub use bus::BusRules;
pub use command::{Command, CommandKind, Completion};
pub use disk::Disk;
pub use feature::{Feature, UnknownFeature};
pub use medium::flash::translation::State;
pub use medium::parameters::{DiskParameters, ParameterError, StateError};
pub use medium::{Inside, Medium, MediumParameters};
pub use preset::{Basis, Preset, PresetError, Provenance};
pub use queue::{Order, Queue, QueueRules, Submitter, Target, UnknownOrder};
pub use shared::HostQueue;
