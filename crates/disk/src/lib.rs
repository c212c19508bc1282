//! Modelled disks: mechanics, firmware, caches, presets with provenance.
//!
//! A [`Disk`] is a state machine in virtual time: commands go in with [`Disk::submit`], completions
//! come out of [`Disk::advance`], and [`Disk::next_event`] gives the time of the next event. It
//! moves no data, reads no clock and draws randomness only from the stream it was given.
//!
//! A disk is a medium and its numbers. Each [`medium`] is a module with its own parameters, one
//! line in a registry: [platters](medium::platters) with their arm, the same with [shingled
//! tracks](medium::shingles), [flash](medium::flash), and a disk of [constant](medium::constant)
//! times. Disks that several members share are in [`shared`]; each member has a [`HostQueue`]
//! before it. Parameters come from a [`Preset`]: a TOML file in which every number names its
//! source; [`Bands`] hold the uncertainty of disks that were not fitted.

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
