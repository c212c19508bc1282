//! One block device over an export, and what its errors mean to the user.

use crate::failure::{Failure, Kind};
use crate::output;
use raidlab_serve::control::Controlled;
use raidlab_serve::export::Export;
use raidlab_serve::ublk::{Deletion, Swept, UblkDevice, UblkError, UblkGuard, UblkOptions};
use raidlab_store::text::visible_path;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A block device over an export.
pub struct BlockDevice(Arc<UblkDevice>);

impl BlockDevice {
    /// Creates the block device.
    ///
    /// # Errors
    /// When there cannot be one.
    pub fn start(
        export: Arc<dyn Export>,
        number: Option<u32>,
        depth: u16,
    ) -> Result<Self, Failure> {
        let (device, swept) =
            UblkDevice::start(export, UblkOptions { number, depth }).map_err(failed)?;
        let Swept { gone, held } = swept;
        for number in gone {
            output::say(&format!(
                "ublk: device {number} of a killed server is deleted"
            ));
        }
        for number in held {
            output::say(&format!(
                "warning: device {number} of a killed server is still open or mounted: unmount \
                 /dev/ublkb{number}"
            ));
        }
        Ok(Self(Arc::new(device)))
    }

    /// The path of the block device.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Whether the device is gone although its end was not asked for.
    pub fn is_lost(&self) -> bool {
        self.0.is_lost()
    }

    /// The failure to report when the device is lost.
    pub fn failure(&self) -> Failure {
        let words = format!(
            "{} is gone: another program has deleted it, or the kernel takes no answers",
            visible_path(self.path())
        );
        Failure::words(Kind::Run, words)
    }

    /// The verbs of an array, which spare this block device while it is mounted or in use.
    pub fn guard(
        &self,
        controlled: Arc<dyn Controlled>,
        patience: Duration,
    ) -> Arc<dyn Controlled> {
        Arc::new(UblkGuard::new(controlled, Arc::clone(&self.0), patience))
    }

    /// Takes the device away.
    ///
    /// # Errors
    /// When it does not end in time.
    pub fn stop(&self, patience: Duration) -> Result<(), Failure> {
        match self.0.stop(patience).map_err(failed)? {
            Deletion::Gone => {}
            Deletion::Held => output::say(&format!(
                "warning: {} is still open or mounted; it takes no more requests",
                visible_path(self.path())
            )),
        }
        Ok(())
    }
}

/// Looks whether there is a driver that this program may use.
///
/// # Errors
/// When there is none.
pub fn find_driver() -> Result<(), Failure> {
    UblkDevice::find_driver().map_err(failed)
}

fn failed(error: UblkError) -> Failure {
    let help = match &error {
        UblkError::NoDriver => {
            "`modprobe ublk_drv` loads it, where the kernel has it (Linux 6.5 or later with \
             CONFIG_BLK_DEV_UBLK); without --ublk the array is served over NBD"
        }
        UblkError::TooOld => "Linux 6.5 has what is needed; NBD (`--unix`) needs no driver",
        UblkError::Control(_) => "only root may make block devices",
        UblkError::Ring(_) => "`sysctl kernel.io_uring_disabled` must be 0",
        UblkError::Taken {
            process: Some(_), ..
        } => "choose another number, or `--ublk` without one",
        UblkError::Taken { process: None, .. } => {
            "unmount it, if it is; another program's is deleted by `ublk del -n`; or choose \
             another number"
        }
        _ => "see `raidlab serve --help`",
    };
    Failure::new(Kind::Run, error).help(help)
}
