//! Fault simulation: the driver that users run, and the array core in it, with real bytes over
//! failing disks, in virtual time.
//!
//! A seed makes an array, disks, a workload and faults ([`Options`], [`script`]); a [`World`] runs
//! them event by event; an [`oracle`] knows the permitted contents of every sector; an independent
//! [`reader`] reads the disks' pristine bytes. The same seed gives the same run on every machine.

pub mod disk;
mod driver;
pub mod exhaustive;
mod explain;
mod inspect;
mod medium;
mod options;
pub mod oracle;
pub mod pages;
mod part;
mod reach;
pub mod reader;
mod run;
pub mod script;
mod shrink;
mod statistics;
mod trace;
pub mod value;
mod world;

pub use explain::{Failure, explain};
pub use medium::Medium;
pub use options::{DriverFaults, Filter, Options, Seldom, Weights};
pub use part::{PART_SCHEMA, Part, PartError, Simulation};
pub use reach::{Met, Reach, State};
pub use run::{Outcome, Summary, run_seed, run_seeds, run_with};
pub use shrink::shrink;
pub use statistics::Statistics;
pub use trace::Trace;
pub use world::{Violation, World};
