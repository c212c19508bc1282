//! The calendar and its devices, against a guest without a kernel.

mod endings;
mod faults;
mod hostile;
mod peer;
mod requests;
mod ring;
mod stage;
mod times;
