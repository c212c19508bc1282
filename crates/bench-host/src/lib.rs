//! The bench of real machines: builds, measures, pulls disks, takes down.
//!
//! A [`Machine`] is the local one or one behind ssh, with the disks that may be used on it.
//! [`HostBench`] runs experiments on machines: it builds the subject's array and file system, does
//! the suite's steps with real tools, watches array and members each second, reads every setting
//! back, and takes everything down whatever happens. [`plan()`] shows every command before any
//! runs; [`cleanup()`] finds what a killed run has left.

mod arguments;
mod bench;
mod changes;
mod clean;
mod cleanup;
mod error;
mod facts;
mod job;
mod machine;
mod machines;
mod marks;
mod members;
mod memory;
mod moment;
mod needs;
mod place;
mod plan;
pub mod plan_disks;
mod queues;
mod sampler;
mod session;
mod standing;
mod subject;
pub mod trial;
mod tunables;
mod watch;

pub use bench::HostBench;
pub use changes::changes;
pub use cleanup::{Cleaned, cleanup, forget_if_clean};
pub use error::HostError;
pub use machine::{MARKER, Machine, PREFIX};
pub use machines::{LOCALHOST, MachineEntry, MachineFileError, read_machines, read_toml};
pub use marks::Marks;
pub use plan::plan;
pub use tunables::Tunable;
