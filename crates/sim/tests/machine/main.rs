//! Whole machines: an array on modelled disks under jobs in virtual time.

mod bench;
mod clock;
mod departures;
mod endings;
mod errors;
mod jobs;
mod leaps;
mod members;
mod open_loop;
mod pace;
mod processor;
mod repeatable;
mod trims;
mod zones;
