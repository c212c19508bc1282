//! The operating system of a machine.

use crate::InventoryError;
use raidlab_shell::{Command, Target};
use serde::{Deserialize, Serialize};

/// The supported operating systems.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum System {
    /// Linux, with `/proc`, `/sys` and util-linux.
    Linux,
    /// FreeBSD, with GEOM and `sysctl`.
    FreeBsd,
}

impl System {
    /// Asks `uname -s`.
    ///
    /// # Errors
    /// When the machine cannot be queried, or answers another system's name.
    pub fn of(target: &dyn Target) -> Result<Self, InventoryError> {
        let answer = target.run(&Command::reads("uname", ["-s"]))?.stdout;
        match answer.trim() {
            "Linux" => Ok(Self::Linux),
            "FreeBSD" => Ok(Self::FreeBsd),
            other => Err(InventoryError::UnknownSystem {
                machine: target.name().to_owned(),
                system: other.to_owned(),
            }),
        }
    }
}
