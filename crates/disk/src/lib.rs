//! Modelled disks: mechanics, firmware, caches, presets with provenance.
//!
//! A [`Disk`] is a state machine in virtual time: commands go in with
//! [`Disk::submit`], completions come out of [`Disk::advance`], and
//! [`Disk::next_event`] says when something will happen. It moves no data,
//! reads no clock and draws randomness only from the stream it was given.
//!
//! What is modelled, and where: the platters' rate and angle ([`surface`]),
//! the arm ([`seek`]), the choice of the next command ([`scheduling`]), the
//! read-ahead segments ([`segments`]), what happens to sequential streams
//! ([`stream`]), the write-back cache and the life of a command ([`Disk`]), what
//! several members share ([`shared`]). Two other kinds of disks are told by a few more
//! numbers: shingled ones ([`shingles`]) and solid-state ones ([`flash`]).
//! Parameters come from a [`Preset`]: a TOML file in which every number names
//! its source; [`Bands`] say how far a disk that nobody fitted may be off.

mod bands;
mod command;
mod disk;
mod feature;
pub mod flash;
mod named;
mod parameters;
mod preset;
pub mod scheduling;
pub mod seek;
pub mod segments;
pub mod shared;
pub mod shingles;
pub mod stream;
pub mod surface;

pub use bands::{Band, Bands, BandsError, Load, Medium};
pub use command::{Command, CommandKind, Completion};
pub use disk::Disk;
pub use feature::{Feature, UnknownFeature};
pub use parameters::{DiskParameters, ParameterError};
pub use preset::{Basis, Preset, PresetError, Provenance};
