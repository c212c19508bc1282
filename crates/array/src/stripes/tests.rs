//! The engine with real bytes on small disks.

mod bench;
mod costs;
mod crash;
mod disk;
mod field;
mod random;
mod stories;
