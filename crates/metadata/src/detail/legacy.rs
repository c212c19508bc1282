//! The text of `--examine` for version 0.90.

use super::words::{array_bytes, human_size, layout, level, uuid};
use super::{DetailOptions, Text};
use crate::superblock::Superblock;
use crate::superblock::legacy::{Legacy, LegacyDevice};

pub(super) fn examine(
    text: &mut Text,
    superblock: &Superblock,
    rest: &Legacy,
    options: &DetailOptions<'_>,
) {
    identity(text, superblock, rest, options);
    let reshape = superblock.reshape;
    if rest.minor_version > 90 && reshape.position != u64::MAX {
        text.reshape(superblock, u64::from(reshape.new_chunk) * 512);
    }
    text.line("Update Time", (options.time)(superblock.updated));
    text.line("State", if rest.is_clean() { "clean" } else { "active" });
    if rest.has_bitmap() {
        text.line("Internal Bitmap", "present");
    }
    text.line("Active Devices", rest.active_disks);
    text.line("Working Devices", rest.working_disks);
    text.line("Failed Devices", rest.failed_disks);
    text.line("Spare Devices", rest.spare_disks);
    text.line("Checksum", format!("{:x} - correct", rest.checksum));
    text.line("Events", superblock.events);
    text.blank();
    let name = layout(superblock.level, superblock.layout);
    if let Some(name) = name.filter(|_| superblock.level != 0) {
        text.line("Layout", name);
    }
    text.chunk(superblock);
    devices(text, superblock, rest);
}

fn identity(text: &mut Text, superblock: &Superblock, rest: &Legacy, options: &DetailOptions<'_>) {
    text.line("Magic", "a92b4efc");
    let [minor, patch] = [rest.minor_version, rest.patch_version];
    text.line("Version", format!("0.{minor:02}.{patch:02}"));
    text.line("UUID", uuid(superblock.array_uuid));
    if rest.not_persistent {
        text.line("Eedk", "not persistent");
    }
    text.line("Creation Time", (options.time)(superblock.created));
    text.line("Raid Level", level(superblock.level));
    if superblock.level > 0 {
        let used = u128::from(rest.size_kib) * 1024;
        text.line(
            "Used Dev Size",
            format!("{}{}", rest.size_kib, human_size(used)),
        );
        let whole = array_bytes(
            superblock.level,
            superblock.raid_disks,
            superblock.layout,
            used,
        );
        if let Some(whole) = whole {
            text.line(
                "Array Size",
                format!("{}{}", whole / 1024, human_size(whole)),
            );
        }
    }
    text.line("Raid Devices", superblock.raid_disks);
    text.line("Total Devices", rest.nr_disks);
    text.line("Preferred Minor", rest.preferred_minor);
    text.blank();
}

/// Adds a table of the devices, without the names of their nodes: numbers in a superblock say
/// nothing about this machine's nodes.
fn devices(text: &mut Text, superblock: &Superblock, rest: &Legacy) {
    text.raw("      Number   Major   Minor   RaidDevice State\n");
    device(text, "this", &rest.this_device);
    text.blank();
    let fewer = if rest.minor_version > 90 {
        superblock.reshape.delta_disks.min(0).unsigned_abs()
    } else {
        0
    };
    let count = superblock
        .raid_disks
        .saturating_add(fewer)
        .saturating_add(rest.spare_disks);
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    for (number, entry) in rest.devices.iter().take(count).enumerate() {
        device(text, &format!("{number:4}"), entry);
    }
}

fn device(text: &mut Text, name: &str, entry: &LegacyDevice) {
    let LegacyDevice {
        number,
        major,
        minor,
        raid_disk,
        state,
    } = *entry;
    text.raw(&format!(
        "{name:>4} {number:5}   {major:5}    {minor:5}    {raid_disk:5}     "
    ));
    let flags = [(1 << 9, " write-mostly"), (1 << 10, " failfast")];
    let rest = state & !(1 << 9 | 1 << 10);
    for (bit, word) in [
        (1, " faulty"),
        (2, " active"),
        (4, " sync"),
        (8, " removed"),
    ] {
        if rest & bit != 0 {
            text.raw(word);
        }
    }
    for (bit, word) in flags {
        if state & bit != 0 {
            text.raw(word);
        }
    }
    if rest == 0 {
        text.raw(" spare");
    }
    text.blank();
}
