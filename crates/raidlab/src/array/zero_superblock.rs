//! The command `raidlab zero-superblock`: it erases the superblocks of members.

use super::{Bare, claim, named_once};
use crate::failure::{Failure, Kind};
use crate::output;
use clap::Args;
use raidlab_metadata::{erase, versions_present};
use raidlab_store::text::visible_path;
use std::fmt::Write;
use std::path::PathBuf;

/// Arguments of `raidlab zero-superblock`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Files or block devices.
    #[arg(required = true, value_name = "DEVICE")]
    devices: Vec<PathBuf>,
}

/// Erases the md superblocks of files or devices, once all of them are known to have one.
///
/// # Errors
/// When a device is in use, has no superblock, or cannot be written.
pub fn command(arguments: &Arguments) -> Result<(), Failure> {
    named_once(arguments.devices.iter().map(PathBuf::as_path))?;
    let mut planned = Vec::new();
    for path in &arguments.devices {
        let member = claim(path)?;
        let size = member.size().to_bytes();
        let versions = versions_present(&mut Bare(&member), size);
        if versions.is_empty() {
            let words = format!("{} has no md superblock", visible_path(path));
            return Err(Failure::words(Kind::Input, words));
        }
        planned.push((path, member, erase(&versions, size)));
    }
    let mut text = String::new();
    let erased = planned.into_iter().try_for_each(|(path, member, writes)| {
        let mut writes = writes.iter();
        writes
            .try_for_each(|write| member.write_all_at(&write.bytes, write.offset.0))
            .and_then(|()| member.flush())
            .map_err(|source| Failure::write_file(path, source))?;
        let _ = writeln!(text, "{}: superblock erased", visible_path(path));
        Ok(())
    });
    output::print(&text)?;
    erased
}
