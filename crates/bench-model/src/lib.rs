//! The model bench: experiments on modelled disks in virtual time.
//!
//! [`ModelBench`] builds the system that an experiment describes out of the crates below: disks
//! from their presets, the array core or the pool over them, a machine around it all; then it does
//! the steps one after the other and hands over the measurements. One experiment is single-threaded
//! and depends on nothing but its description and its seed.

mod bands;
mod bench;
mod build;
pub mod calibrate;
pub mod commands;
mod facts;
mod md_array;
mod pool_subject;
pub mod presets;
mod row;
pub mod wiring;

pub use bands::Unfitted;
pub use bench::ModelBench;
pub use build::{Ablation, BuildError, UnknownAblation};
