//! No block device: raidlab was built without the feature.

use crate::failure::{Failure, Kind};
use raidlab_serve::control::Controlled;
use raidlab_serve::export::Export;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Says that it cannot be done.
///
/// # Errors
/// Always.
pub fn prepare() -> Result<(), Failure> {
    Err(refusal())
}

fn refusal() -> Failure {
    Failure::words(Kind::Usage, "this raidlab was built without ublk")
        .help("build it with `cargo build --release --package raidlab --features ublk`")
}

/// There is none.
pub enum BlockDevice {}

impl BlockDevice {
    /// See [`prepare`].
    ///
    /// # Errors
    /// Always.
    pub fn start(_: Arc<dyn Export>, _: Option<u32>, _: u16) -> Result<Self, Failure> {
        Err(refusal())
    }

    /// Never called.
    pub fn path(&self) -> &Path {
        match *self {}
    }

    /// Never called.
    pub fn is_lost(&self) -> bool {
        match *self {}
    }

    /// Never called.
    pub fn failure(&self) -> Failure {
        match *self {}
    }

    /// Never called.
    pub fn guard(&self, _: Arc<dyn Controlled>, _: Duration) -> Arc<dyn Controlled> {
        match *self {}
    }

    /// Never called.
    ///
    /// # Errors
    /// Never.
    pub fn stop(&self, _: Duration) -> Result<(), Failure> {
        match *self {}
    }
}
