//! The export as a block device too, by Linux's driver for block devices in user space.

use crate::failure::Failure;
use raidlab_serve::export::Export;
use raidlab_serve::ublk::prepare_process;
use std::sync::Arc;

mod device;

pub use device::BlockDevice;

/// Whether and how there is to be a block device.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Block device")]
pub struct UblkArguments {
    /// Also make a block device of this machine, /dev/ublkbN, with the first free N if
    /// none is given. It needs root, Linux 6.5 or later and its module ublk_drv. NBD is
    /// then served only where --unix or --tcp says so.
    #[arg(
        long = "ublk",
        value_name = "N",
        num_args = 0..=1,
        require_equals = true,
        value_parser = clap::value_parser!(u32).range(0..1 << 20)
    )]
    number: Option<Option<u32>>,

    /// With --ublk: how many requests may be in flight, 1 to 4096.
    #[arg(
        long = "ublk-depth",
        value_name = "N",
        requires = "number",
        default_value_t = 128,
        value_parser = clap::value_parser!(u16).range(1..=4096)
    )]
    depth: u16,
}

impl UblkArguments {
    /// Whether a block device is wanted.
    pub fn is_wanted(&self) -> bool {
        self.number.is_some()
    }

    /// Does the steps that must come before any thread is started.
    ///
    /// # Errors
    /// When this machine has no block devices of this kind.
    pub fn prepare(&self) -> Result<(), Failure> {
        if self.is_wanted() {
            prepare_process();
            device::find_driver()?;
        }
        Ok(())
    }

    /// Starts the block device, if one is wanted.
    ///
    /// # Errors
    /// When there cannot be one.
    pub fn start(&self, export: Arc<dyn Export>) -> Result<Option<BlockDevice>, Failure> {
        let start = |number| BlockDevice::start(export, number, self.depth);
        self.number.map(start).transpose()
    }
}
