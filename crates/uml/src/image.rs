//! The guest's first file system: this machine's own tools, and raidlab as the
//! first program.

use crate::program::trimmed;
use raidlab_initramfs::{Archive, Initramfs, InitramfsError, Node};
use std::path::Path;

/// The first program's path in the guest.
pub const AGENT: &str = "/raidlab/agent";

/// The size of the slot that the agent takes in the guest's memory: this much, or a multiple
/// where it is larger. Otherwise its size would decide in which pages the tools lie, and their
/// later allocations, and with that, how much is free for caches. A build for development takes
/// 53 MB of it.
pub const AGENT_SLOT: u64 = 64 << 20;

/// The programs without which a guest is of no use.
const NEEDED: &str = "mdadm fio sh df cat mkdir rm sleep sync uname lsblk mount umount blockdev \
    wipefs";

/// The programs that are taken along where they are installed.
const WELCOME: &str = include_str!("image/programs.txt");

/// OpenZFS's programs, for a kernel that has it.
const FOR_ZFS: &str = "zpool zfs zdb partx grep";

/// The settings of tools, at Debian's paths.
const PATHS: &str = "/etc/mke2fs.conf /etc/lvm/lvm.conf /etc/lvm/profile";

/// The packages of programs that every guest needs and this machine has not.
pub(crate) fn missing_packages(beside: &Path) -> Vec<String> {
    raidlab_initramfs::missing_packages(NEEDED, Some(beside))
}

/// Whether this machine lacks OpenZFS's own programs.
pub(crate) fn lacks_tools_of_zfs(beside: &Path) -> bool {
    let found = |name| raidlab_initramfs::find_program(name, Some(beside));
    ["zpool", "zfs", "zdb"]
        .into_iter()
        .any(|name| found(name).is_none())
}

/// Makes an archive of everything that arrays, file systems and measurements need, with `agent`, a
/// program of this machine, as the first program. Programs that are not installed may be among the
/// packages that were fetched, whose root is `beside`.
///
/// # Errors
/// When tools are not installed (all of them are named) or a file cannot be read.
pub fn image(agent: &Path, with_zfs: bool, beside: &Path) -> Result<Archive, InitramfsError> {
    let mut initramfs = Initramfs::beside(Some(beside))?;
    initramfs.programs(NEEDED)?;
    initramfs.programs_present(WELCOME)?;
    if with_zfs {
        initramfs.programs(FOR_ZFS)?;
    }
    initramfs.paths_present(PATHS)?;
    initramfs.file(AGENT, agent)?;
    let mut archive = initramfs.into_archive();
    if let Some(Node::File { contents, .. }) = archive.remove(AGENT) {
        let (mode, contents) = (0o755, in_slots(trimmed(contents)));
        archive.insert(AGENT, Node::File { mode, contents });
    }
    archive.insert("/etc/mtab", Node::Link("/proc/self/mounts".to_owned()));
    Ok(archive)
}

/// A program with zeros behind it up to the end of its last slot. They are never read.
fn in_slots(mut program: Vec<u8>) -> Vec<u8> {
    let slots = (program.len() as u64).div_ceil(AGENT_SLOT).max(1);
    let length = usize::try_from(slots * AGENT_SLOT).unwrap_or(program.len());
    program.resize(length, 0);
    program
}

#[cfg(test)]
mod tests {
    use super::{AGENT_SLOT, in_slots};

    #[test]
    fn a_program_takes_whole_slots_whatever_its_size() {
        let taken = |length: usize| {
            let program = in_slots(vec![7; length]);
            assert!(program[..length].iter().all(|byte| *byte == 7));
            assert!(program[length..].iter().all(|byte| *byte == 0));
            program.len() as u64
        };
        let slot = usize::try_from(AGENT_SLOT).expect("it fits");
        for length in [1, 4096, slot - 1, slot] {
            assert_eq!(taken(length), AGENT_SLOT);
        }
        assert_eq!(taken(slot + 1), 2 * AGENT_SLOT);
    }
}
