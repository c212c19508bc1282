//! The commands that build a file system over several devices and change it.

use super::BtrfsSpec;
use crate::array::steps::{devices, member, wipe};
use crate::array::{ArraySystem, Built, SystemError};
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

/// The kernel knows the other members: mkfs registers them, and what was
/// mounted before was.
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

/// Members without redundancy cannot come and go.
fn redundant(spec: &BtrfsSpec, what: &str) -> Result<(), SystemError> {
    if spec.tolerates() > 0 {
        return Ok(());
    }
    Err(SystemError::Unsupported {
        system: spec.title(),
        what: what.to_owned(),
        reason: "data or metadata have no copy on another member".to_owned(),
    })
}

pub(super) fn remove(
    spec: &BtrfsSpec,
    array: &Built,
    slot: usize,
) -> Result<Vec<Command>, SystemError> {
    redundant(spec, "remove a member")?;
    let gone = member(&spec.title(), &array.members, slot)?;
    // check() has seen to it that there is another one.
    let other = &array.members[usize::from(slot == 0)];
    Ok(vec![
        unmount(array),
        Command::changes("btrfs", ["device", "scan", "--forget", &gone.device]),
        mount(spec, array, &other.device, true),
    ])
}

/// Members are numbered from 1, and a replacement inherits the number.
pub(super) fn add(
    spec: &BtrfsSpec,
    array: &Built,
    slot: usize,
) -> Result<Vec<Command>, SystemError> {
    redundant(spec, "add a member")?;
    let new = member(&spec.title(), &array.members, slot)?;
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

pub(super) fn re_add(
    spec: &BtrfsSpec,
    array: &Built,
    slot: usize,
) -> Result<Vec<Command>, SystemError> {
    redundant(spec, "re-add a member")?;
    if spec.nodatacow {
        return Err(SystemError::Unsupported {
            system: spec.title(),
            what: "re-add a member".to_owned(),
            reason: "data written in place have no checksums that would tell what the member \
                     missed: add it"
                .to_owned(),
        });
    }
    let back = member(&spec.title(), &array.members, slot)?;
    let other = &array.members[usize::from(slot == 0)];
    Ok(vec![
        unmount(array),
        Command::changes("btrfs", ["device", "scan", &back.device]),
        mount(spec, array, &other.device, false),
        Command::changes("btrfs", ["scrub", "start", &array.folder]),
    ])
}

/// The kernel is told to forget wiped members, or it would refuse the next
/// file system with the same devices for a moment.
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
