//! The inventory of a machine: disks and their uses, memory, caches, counters.
//!
//! Everything is read through a [`raidlab_shell::Target`], so that the same code inspects the local
//! machine, another one and, in tests, the recorded answers of a real machine.
//!
//! - [`Inventory`]: every disk, partition and loop device, and what keeps it
//!   from being used;
//! - [`choose`]: the choice of disks that may be used, or the reasons why not;
//! - [`environment`]: the facts that results depend on, by the names of one table, and whether they
//!   are unchanged when a run is resumed;
//! - [`caches`]: dropping caches and checking the result; waiting for quiet disks;
//! - [`counters`]: the kernel's counters, once a second, and their differences;
//! - [`channels`]: the controller, adapter and hub of a disk;
//! - [`smart`] and [`smr`]: what drives report about themselves, and what they hide.
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
