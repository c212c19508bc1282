//! Against md's metadata as the real kernel and the real mdadm write them.

mod create;
mod faults;
mod members;
mod support;
