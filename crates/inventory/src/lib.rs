//! What a machine is and has: disks and who uses them, memory, caches, counters.
//!
//! Everything is asked through a [`raidlab_shell::Target`], so that the same
//! code looks at this machine, at another one and, in tests, at what a real
//! machine once answered.
//!
//! - [`Inventory`]: every disk, partition and loop device, and what keeps it
//!   from being used;
//! - [`choose`]: from what a user typed to a disk that may be used, or the
//!   reasons why not.

pub mod caches;
pub mod channels;
pub mod choose;
pub mod counters;
mod disk;
mod disks;
pub mod environment;
mod error;
pub mod files;
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
