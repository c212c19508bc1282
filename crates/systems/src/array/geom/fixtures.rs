//! Shared fixtures for the tests of the GEOM classes.

use crate::array::{Built, Member};
use raidlab_shell::Command;
use raidlab_units::Bytes;

/// An array of disks of the size in the 2015 comparison.
pub fn array(name: &str, devices: &[&str]) -> Built {
    Built {
        name: name.to_owned(),
        members: devices
            .iter()
            .map(|device| Member {
                device: format!("/dev/{device}"),
                size: Bytes(4_000_787_030_016),
                backing: None,
                away: false,
            })
            .collect(),
        folder: String::new(),
    }
}

/// A plan as the user sees it: each command with its effect, and its allowed exit codes where these
/// are not 0 alone.
pub fn plan(commands: &[Command]) -> String {
    let line = |command: &Command| {
        let codes = match command.success.as_slice() {
            [0] => String::new(),
            codes => format!("  {codes:?}"),
        };
        format!("{:?}: {command}{codes}\n", command.effect)
    };
    commands.iter().map(line).collect()
}
