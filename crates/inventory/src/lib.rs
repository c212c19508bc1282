//! What a machine is and has: disks and who uses them, memory, caches, counters.
//!
//! Everything is asked through a [`raidlab_shell::Target`], so that the same
//! code looks at this machine, at another one and, in tests, at what a real
//! machine once answered.
//!
//! - [`Inventory`]: every disk, partition and loop device, and what keeps it
//!   from being used;
//! - [`choose`]: from what a user typed to a disk that may be used, or the
//!   reasons why not;
//! - [`environment`]: the facts that results depend on, by the names of one
//!   table, and whether they are still the same when a run is carried on;
//! - [`caches`]: dropped and seen to be dropped; disks that have come to rest;
//! - [`counters`]: what the kernel counts, once a second, and what happened
//!   between two readings;
//! - [`channels`]: the controller, adapter and hub that a disk hangs on;
//! - [`smart`] and [`smr`]: what drives say of themselves, and what they hide.
//!
//! Linux is tested on recordings of real machines. FreeBSD is known from its
//! manual pages and from published logs and outputs only.

pub mod caches;
pub mod channels;
pub mod choose;
pub mod counters;
mod disk;
mod disks;
pub mod environment;
mod error;
pub mod smart;
pub mod smr;
mod system;
mod text;

#[cfg(test)]
mod testing;

pub use disk::{Disk, DiskKind, Use};
pub use disks::Inventory;
pub use error::InventoryError;
pub use system::System;
