//! The User-Mode Linux kernel of the kernel bench: a Linux kernel that is a
//! program of this machine and runs in virtual time.
//!
//! [`Build`] makes it from the distribution's source package, with a
//! configuration and a few changes of our own, into the user's [`Cache`].
//! Nothing else of raidlab needs it. A [`Boot`] runs it on a [`Machine`] with the
//! [`image()`] of this machine's tools, and reads the frames that raidlab's own
//! program in it hands out.

mod boot;
mod build;
mod cache;
mod changes;
mod charges;
mod configuration;
mod edits;
mod error;
mod frames;
mod image;
mod needs;
mod packages;
mod program;
mod source;
mod zfs;

pub use boot::{Boot, BootError, CLOCK, Machine, Place};
pub use build::{Build, Step, Watcher};
pub use cache::{Cache, CacheError, Kernel};
pub use changes::Changes;
pub use charges::Charges;
pub use edits::EditError;
pub use error::BuildError;
pub use frames::{Damage, END, Frame, FrameError, FrameReader};
pub use image::{AGENT, image};
pub use needs::shared_memory_left;
pub use packages::Packages;
pub use source::{Source, SourceError};
