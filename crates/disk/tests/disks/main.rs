//! Modelled disks, by themselves.

mod facts;
mod media;
mod properties;
mod sectors;
mod shared;
mod starvation;
