//! The commands that build a file system over several devices and change it.

use super::BtrfsSpec;
use crate::array::steps::{devices, member, wipe};
use crate::array::{Built, ChangeMembers, Described, Result};
use raidlab_shell::Command;

pub(super) fn create(spec: &BtrfsSpec, array: &Built) -> Vec<Command> {
    let devices = devices(&array.members);
    let mut words = vec![
        "--force",
        "--label",
        &array.name,
        "--data",
        spec.data.name(),
        "--metadata",
        spec.metadata().name(),
        "--csum",
        spec.checksum.name(),
    ];
    words.extend(&devices);
    vec![
        wipe(&devices),
        Command::destroys("mkfs.btrfs", words),
        Command::changes("mkdir", ["-p", &array.folder]),
        mount(spec, array, &array.members[0].device, false),
    ]
}

/// The command that mounts the file system. The kernel knows the other members: mkfs registers
/// them, and earlier mounted ones were registered before.
fn mount(spec: &BtrfsSpec, array: &Built, device: &str, degraded: bool) -> Command {
    let mut options = spec.mount_options();
    if degraded {
        options.push("degraded".to_owned());
    }
    let mut words = vec!["-t".to_owned(), "btrfs".to_owned()];
    if !options.is_empty() {
        words.extend(["-o".to_owned(), options.join(",")]);
    }
    words.extend([device.to_owned(), array.folder.clone()]);
    Command::changes("mount", words)
}

fn unmount(array: &Built) -> Command {
    Command::changes("umount", [&array.folder])
}

/// Refuses changes of members without redundancy.
fn redundant(spec: &BtrfsSpec, what: &str) -> Result<()> {
    if spec.tolerates() > 0 {
        return Ok(());
    }
    Err(spec.lacks(what, "data or metadata have no copy on another member"))
}

impl ChangeMembers for BtrfsSpec {
    fn remove(&self, array: &Built, slot: usize) -> Result<Vec<Command>> {
        redundant(self, "remove a member")?;
        let gone = member(&self.title(), &array.members, slot)?;
        // Given the device of a removed member, the kernel would register that again.
        let other = array.others(slot).next();
        let other = other.ok_or_else(|| self.lacks("remove a member", "no other is there"))?;
        Ok(vec![
            unmount(array),
            Command::changes("btrfs", ["device", "scan", "--forget", &gone.device]),
            mount(self, array, &other.device, true),
        ])
    }

    /// Members are numbered from 1, and a replacement inherits the number.
    fn add(&self, array: &Built, slot: usize) -> Result<Vec<Command>> {
        redundant(self, "add a member")?;
        let new = member(&self.title(), &array.members, slot)?;
        let number = (slot + 1).to_string();
        let folder = &array.folder;
        Ok(vec![
            wipe(&[&new.device]),
            Command::destroys(
                "btrfs",
                ["replace", "start", "-f", &number, &new.device, folder],
            ),
        ])
    }

    fn re_add(&self, array: &Built, slot: usize) -> Result<Vec<Command>> {
        redundant(self, "re-add a member")?;
        if self.nodatacow {
            let reason = "data written in place have no checksums that would tell what the \
                          member missed: add it";
            return Err(self.lacks("re-add a member", reason));
        }
        let back = member(&self.title(), &array.members, slot)?;
        let other = array.others(slot).next().unwrap_or(back);
        let degraded = array.others(slot).count() + 1 < array.members.len();
        Ok(vec![
            unmount(array),
            Command::changes("btrfs", ["device", "scan", &back.device]),
            mount(self, array, &other.device, degraded),
            // Writes that failed before are no reason to call the member faulty any more.
            Command::changes("btrfs", ["device", "stats", "--reset", &array.folder]),
            Command::changes("btrfs", ["scrub", "start", &array.folder]),
        ])
    }
}

/// The commands that take the file system down. The kernel is told to forget wiped members, as it
/// would otherwise refuse the next file system with the same devices for a moment.
pub(super) fn destroy(array: &Built) -> Vec<Command> {
    let devices = devices(&array.members);
    let mut commands = Vec::new();
    if !array.folder.is_empty() {
        commands.push(unmount(array));
    }
    commands.push(wipe(&devices));
    commands.extend(
        devices
            .iter()
            .map(|device| Command::changes("btrfs", ["device", "scan", "--forget", device])),
    );
    commands
}
