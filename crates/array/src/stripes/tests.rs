//! The engine with real bytes on small disks.

mod bench;
mod costs;
mod crash;
mod disk;
mod field;
mod habits;
mod random;
mod stories;
