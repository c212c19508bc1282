//! The engine with real bytes on small disks.

mod bench;
mod costs;
mod crash;
mod random;
mod stories;
