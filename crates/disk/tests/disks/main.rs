//! Modelled disks, by themselves.

mod chosen;
mod facts;
mod media;
mod properties;
mod read_cache;
mod sectors;
mod shared;
mod starvation;
mod write_cache;
