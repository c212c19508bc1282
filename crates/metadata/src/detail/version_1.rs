//! The text of `--examine` for versions 1.0, 1.1 and 1.2.

use super::words::{array_bytes, human_sectors, human_size, layout, level, uuid};
use super::{DetailOptions, Text};
use crate::probe::MemberMetadata;
use crate::superblock::version_1::{Checksum, MAXIMUM_ROLES};
use crate::superblock::{DeviceFlags, Features, Role, Superblock};
use raidlab_units::Sectors;
use std::fmt::Write;

/// The mask of the seconds in a time that has microseconds in its upper bits.
const SECONDS: u64 = (1 << 40) - 1;

pub(super) fn examine(text: &mut Text, member: &MemberMetadata, options: &DetailOptions<'_>) {
    let superblock = &member.superblock;
    identity(text, superblock, options);
    sizes(text, superblock);
    unused(text, member, options);
    let clean = superblock.resync_offset == Superblock::IN_SYNC;
    text.line("State", if clean { "clean" } else { "active" });
    text.line("Device UUID", uuid(superblock.device_uuid));
    text.blank();
    logs(text, member);
    if superblock.features.has(Features::RESHAPE) {
        let new_chunk = format!("{}K", superblock.reshape.new_chunk / 2);
        text.reshape(superblock, new_chunk);
    }
    flags(text, superblock);
    updates(text, member, options);
    shape(text, superblock);
    roles(text, superblock);
}

fn identity(text: &mut Text, superblock: &Superblock, options: &DetailOptions<'_>) {
    text.line("Magic", "a92b4efc");
    text.line("Version", superblock.version.name());
    text.line("Feature Map", format!("{:#x}", superblock.features.0));
    text.line("Array UUID", uuid(superblock.array_uuid));
    let own = superblock.name.strip_prefix(options.host);
    let own = own.is_some_and(|rest| rest.starts_with(':') && !options.host.is_empty());
    let local = if own {
        format!("  (local to host {})", options.host)
    } else {
        String::new()
    };
    text.line("Name", format!("{}{local}", superblock.name));
    text.line(
        "Creation Time",
        (options.time)(superblock.created & SECONDS),
    );
    text.line("Raid Level", level(superblock.level));
    text.line("Raid Devices", superblock.raid_disks);
    text.blank();
}

fn sizes(text: &mut Text, superblock: &Superblock) {
    let sectors = |count: u64| format!("{count} sectors{}", human_sectors(count));
    text.line("Avail Dev Size", sectors(superblock.data_size.0));
    // mdadm compares without a sign here: linear, -1, counts as well.
    if superblock.level != 0 {
        let used = u128::from(superblock.used_size.0) * 512;
        let whole = array_bytes(
            superblock.level,
            superblock.raid_disks,
            superblock.layout,
            used,
        );
        if let Some(whole) = whole {
            text.line(
                "Array Size",
                format!("{} KiB{}", whole / 1024, human_size(whole)),
            );
        }
        if superblock.used_size != superblock.data_size {
            text.line("Used Dev Size", sectors(superblock.used_size.0));
        }
    }
    let offset = superblock.data_offset.0;
    if offset != 0 {
        text.line("Data Offset", format!("{offset} sectors"));
    }
    let later = superblock.reshape.new_offset;
    if later != 0 && superblock.features.has(Features::NEW_OFFSET) {
        let offset = offset.wrapping_add_signed(later.into());
        text.line("New Offset", format!("{offset} sectors"));
    }
    text.line(
        "Super Offset",
        format!("{} sectors", superblock.super_offset.0),
    );
    if superblock.features.has(Features::RECOVERY_OFFSET) {
        let recovered = superblock.recovery_offset.0;
        text.line("Recovery Offset", format!("{recovered} sectors"));
    }
}

/// Returns the offset and length of a partial parity log.
fn partial_parity_log(superblock: &Superblock) -> Option<(u64, u64)> {
    let wanted = Features::PPL | Features::MULTIPLE_PPLS;
    let word = superblock.bitmap_offset.cast_unsigned();
    (superblock.features.0 & wanted != 0).then(|| (u64::from(word & 0xffff), u64::from(word >> 16)))
}

/// Returns the bitmap's sectors from the superblock on, if it can be read.
fn bitmap_place(member: &MemberMetadata) -> Option<(i64, u64)> {
    let bitmap = member.bitmap.as_ref()?;
    let length = bitmap.superblock.bytes().div_ceil(4096) * 8;
    Some((member.superblock.bitmap_offset.into(), length))
}

/// Adds the free sectors before and behind the data (`getinfo_super1`).
fn unused(text: &mut Text, member: &MemberMetadata, options: &DetailOptions<'_>) {
    let superblock = &member.superblock;
    let Superblock {
        data_offset: Sectors(data),
        super_offset: Sectors(own),
        ..
    } = *superblock;
    let held = if superblock.level <= 0 {
        superblock.data_size.0
    } else {
        superblock.used_size.0
    };
    let log = superblock.bad_block_log;
    let (before, after) = if data < own {
        let log = log.map(|log| i64::from(log.offset));
        let bitmap = bitmap_place(member).map(|(offset, _)| offset);
        let parity =
            partial_parity_log(superblock).and_then(|(offset, _)| i64::try_from(offset).ok());
        let earliest = [log, bitmap, parity].into_iter().flatten().min();
        let end = own.saturating_add_signed(earliest.unwrap_or(0).min(0));
        (data, end.saturating_sub(data.saturating_add(held)))
    } else {
        let bitmap = bitmap_place(member).filter(|(offset, _)| *offset > 0);
        let bitmap = bitmap.map(|(offset, length)| offset.unsigned_abs() + length);
        let parity = partial_parity_log(superblock).map(|(offset, length)| offset + length);
        let log = log.map(|log| own.saturating_add_signed(log.offset.into()) + u64::from(log.size));
        let taken = [Some(own + 72), bitmap.or(parity), log];
        let earliest = taken.into_iter().flatten().max().unwrap_or(0);
        let left = options
            .size
            .to_sectors()
            .0
            .wrapping_sub(held)
            .wrapping_sub(data);
        (data.saturating_sub(earliest), left)
    };
    let after = match (before, after) {
        (0, 0) => 1,
        _ if superblock.role() == Role::Journal => {
            options.size.to_sectors().0.wrapping_sub(data) % 8
        }
        _ => after,
    };
    if after != 1 && !superblock.features.has(Features::NEW_OFFSET) {
        text.line(
            "Unused Space",
            format!("before={before} sectors, after={after} sectors"),
        );
    }
}

fn logs(text: &mut Text, member: &MemberMetadata) {
    let superblock = &member.superblock;
    let bitmap = superblock.features.has(Features::BITMAP) && member.bitmap_error.is_none();
    if bitmap {
        let offset = superblock.bitmap_offset;
        text.line(
            "Internal Bitmap",
            format!("{offset} sectors from superblock"),
        );
    } else if let Some((offset, length)) = partial_parity_log(superblock) {
        let place = format!("{length} sectors at offset {offset} sectors from superblock");
        text.line("PPL", place);
    }
}

fn flags(text: &mut Text, superblock: &Superblock) {
    let flags = superblock.device_flags.0;
    if flags == 0 {
        return;
    }
    let named = [
        (DeviceFlags::WRITE_MOSTLY, "write-mostly"),
        (DeviceFlags::FAILFAST, "failfast"),
    ];
    let set = named.iter().filter(|(bit, _)| flags & bit != 0);
    let names: Vec<&str> = set.map(|(_, name)| *name).collect();
    text.line("Flags", names.join(" "));
}

fn updates(text: &mut Text, member: &MemberMetadata, options: &DetailOptions<'_>) {
    let superblock = &member.superblock;
    text.line("Update Time", (options.time)(superblock.updated & SECONDS));
    if let Some(log) = superblock.bad_block_log {
        let present = if superblock.features.has(Features::BAD_BLOCKS) {
            " - bad blocks present."
        } else {
            ""
        };
        let entries = u32::from(log.size) * 64;
        let place = log.offset;
        text.line(
            "Bad Block Log",
            format!("{entries} entries available at offset {place} sectors{present}"),
        );
    }
    let Checksum { stored, expected } = member.checksum;
    let verdict = match stored == expected {
        true => "correct".to_owned(),
        false => format!("expected {expected:x}"),
    };
    text.line("Checksum", format!("{stored:x} - {verdict}"));
    text.line("Events", superblock.events);
    text.blank();
}

fn shape(text: &mut Text, superblock: &Superblock) {
    let recorded = superblock.level != 0 || superblock.features.has(Features::RAID0_LAYOUT);
    if let Some(name) = layout(superblock.level, superblock.layout).filter(|_| recorded) {
        text.line("Layout", name);
    }
    text.chunk(superblock);
}

fn roles(text: &mut Text, superblock: &Superblock) {
    let own = match superblock.role() {
        Role::Spare | Role::Faulty => "spare".to_owned(),
        Role::Journal => "Journal".to_owned(),
        Role::Slot(slot) if superblock.features.has(Features::REPLACEMENT) => {
            format!("Replacement device {slot}")
        }
        Role::Slot(slot) => format!("Active device {slot}"),
    };
    // These two names end a column further left.
    text.raw(&format!("   Device Role : {own}\n"));
    let reshaping = superblock.features.has(Features::RESHAPE);
    let fewer = superblock.reshape.delta_disks.min(0).unsigned_abs();
    let slots = u64::from(superblock.raid_disks) + u64::from(if reshaping { fewer } else { 0 });
    let mut inconsistent = false;
    // A superblock has no roles for more slots.
    let shown = usize::try_from(slots)
        .unwrap_or(MAXIMUM_ROLES)
        .min(MAXIMUM_ROLES);
    let mut counts = vec![0_usize; shown];
    for role in &superblock.roles {
        let Role::Slot(slot) = *role else {
            continue;
        };
        if let Some(count) = counts.get_mut(usize::from(slot)) {
            *count += 1;
        }
        inconsistent |= slot <= 0xff00 && u64::from(slot) > slots;
    }
    let states: String = counts
        .iter()
        .map(|count| match count {
            0 => '.',
            1 => 'A',
            2 if superblock.level != 0 => 'R',
            _ => '?',
        })
        .collect();
    inconsistent |= states.contains('?');
    text.raw(&format!(
        "   Array State : {states} ('A' == active, '.' == missing, 'R' == replacing)\n"
    ));
    if inconsistent {
        warn(text, superblock);
    }
}

fn warn(text: &mut Text, superblock: &Superblock) {
    text.raw("WARNING Array state is inconsistent - each number should appear only once\n");
    let mut line = String::new();
    for (number, role) in superblock.roles.iter().enumerate() {
        let role = match role {
            Role::Slot(slot) => slot.to_string(),
            Role::Journal => "65533".to_owned(),
            Role::Spare | Role::Faulty => "-".to_owned(),
        };
        // Writing to a string cannot fail.
        let _ = write!(line, " {number}:{role}");
    }
    text.raw(&line);
    text.blank();
}
