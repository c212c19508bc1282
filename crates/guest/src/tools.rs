//! The programs and files that a guest gets from its host.

use crate::kernel::Kernel;
use crate::modules::{self, ModuleError};
use raidlab_initramfs::{Initramfs, InitramfsError};

/// The programs without which a guest is of no use.
const NEEDED: &str = "mdadm fio lsblk mount umount";

/// The programs that are taken along where they are installed.
const WELCOME: &str = include_str!("tools/programs.txt");

/// The paths, Debian's, of the daemon that names disks by their serial numbers, its rules and
/// helpers, and of the settings of tools.
const PATHS: &str = include_str!("tools/paths.txt");

/// The modules that are loaded before all else: the disks' and the ports' drivers. md's
/// personalities too: with them loaded, /proc/mdstat exists from the start, as on a machine that
/// boots from md.
const FIRST: &str = include_str!("tools/first_modules.txt");

/// The modules that are loaded when the kernel or a user asks for them.
const ON_DEMAND: &str = include_str!("tools/modules.txt");

/// Collects everything that arrays, file systems and measurements need: the host's tools and
/// the kernel's drivers.
///
/// # Errors
/// When busybox, mdadm or fio are not installed, the kernel has no md, or a file cannot be read.
pub fn host_tools(kernel: &Kernel) -> Result<Initramfs, ToolsError> {
    let mut initramfs = Initramfs::new()?;
    initramfs.programs(NEEDED)?;
    initramfs.programs_present(WELCOME)?;
    initramfs.paths_present(PATHS)?;
    modules::add(&mut initramfs, kernel, FIRST, ON_DEMAND)?;
    Ok(initramfs)
}

/// The error of a first file system for a guest that cannot be put together.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub enum ToolsError {
    /// A program cannot be put into the file system.
    Programs(#[from] InitramfsError),
    /// A module of the kernel's cannot be put into it.
    Modules(#[from] ModuleError),
}
