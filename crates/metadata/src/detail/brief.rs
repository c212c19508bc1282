//! The text of `--examine --brief`: one `ARRAY` line for each array, for mdadm.conf.

use super::words::{level, uuid};
use crate::probe::MemberMetadata;
use crate::superblock::{Features, Role, Superblock, Version};

/// Returns the lines for these members, each with its device's name; the array that was found last
/// stands first. With `verbose`: levels, sizes and devices too.
#[must_use]
pub fn brief(members: &[(&str, &MemberMetadata)], verbose: bool) -> String {
    let mut arrays: Vec<Vec<&(&str, &MemberMetadata)>> = Vec::new();
    for member in members {
        let known = arrays.iter_mut().find(|array| {
            array
                .first()
                .is_some_and(|(_, first)| same_array(&first.superblock, &member.1.superblock))
        });
        match known {
            Some(array) => array.push(member),
            None => arrays.push(vec![member]),
        }
    }
    let texts = arrays.iter().rev().map(|array| one(array, verbose));
    texts.collect()
}

/// Whether two superblocks belong to the same array, by the facts that
/// mdadm compares (`compare_super1`).
fn same_array(left: &Superblock, right: &Superblock) -> bool {
    let facts = |superblock: &Superblock| {
        (
            superblock.version == Version::V0_90,
            superblock.array_uuid,
            superblock.created,
            superblock.level,
            superblock.layout,
            superblock.used_size,
            superblock.chunk,
            superblock.raid_disks,
        )
    };
    facts(left) == facts(right)
}

fn one(array: &[&(&str, &MemberMetadata)], verbose: bool) -> String {
    let Some((_, first)) = array.first() else {
        return String::new();
    };
    let mut text = match &first.legacy {
        Some(rest) => legacy(&first.superblock, rest.preferred_minor, verbose),
        None => version_1(&first.superblock, verbose),
    };
    let spares = array
        .iter()
        .filter(|(_, member)| !is_in_sync(&member.superblock))
        .count();
    if spares > 0 {
        text.push_str(&format!("   spares={spares}"));
    }
    if verbose {
        // mdadm's list is a ring with the newest device behind its head.
        let devices: Vec<&str> = array.iter().map(|(device, _)| *device).collect();
        text.push_str(&format!("   devices={}", devices.join(",")));
    }
    if spares > 0 || verbose {
        text.push('\n');
    }
    text
}

fn is_in_sync(superblock: &Superblock) -> bool {
    matches!(superblock.role(), Role::Slot(_)) && !superblock.features.has(Features::REPLACEMENT)
}

fn legacy(superblock: &Superblock, minor: u32, verbose: bool) -> String {
    let shape = if verbose {
        format!(
            " level={} num-devices={}",
            level(superblock.level),
            superblock.raid_disks
        )
    } else {
        String::new()
    };
    format!(
        "ARRAY /dev/md{minor}{shape} UUID={}\n",
        uuid(superblock.array_uuid)
    )
}

fn version_1(superblock: &Superblock, verbose: bool) -> String {
    let own = superblock
        .name
        .split_once(':')
        .map_or(superblock.name.as_str(), |(_, own)| own);
    let mut text = "ARRAY ".to_owned();
    if !superblock.name.is_empty() {
        text.push_str(&format!("/dev/md/{} ", escaped(own)));
    }
    if verbose {
        text.push_str(&format!(" level={}", level(superblock.level)));
    }
    text.push_str(&format!(" metadata={} ", superblock.version.name()));
    if verbose {
        text.push_str(&format!("num-devices={} ", superblock.raid_disks));
    }
    text.push_str(&format!("UUID={}", uuid(superblock.array_uuid)));
    if !superblock.name.is_empty() {
        text.push_str(&format!(" name={}", quoted(&superblock.name)));
    }
    text.push('\n');
    text
}

/// Replaces the characters of a name that no device node may have.
fn escaped(name: &str) -> String {
    let characters = name.chars().map(|character| match character {
        ' ' | '\t' => '_',
        '/' => '-',
        other => other,
    });
    characters.collect()
}

/// Returns the text in quotes if it needs them (`print_quoted`): the first quotation mark in it
/// decides which kind, and each one of that kind is quoted by the other.
fn quoted(text: &str) -> String {
    let is_quote = |character: &char| matches!(character, '\'' | '"');
    let first = text.chars().find(is_quote);
    let blank = text.contains([' ', '\t']);
    if first.is_none() && !blank {
        return text.to_owned();
    }
    let mut quote = if first == Some('"') { '\'' } else { '"' };
    let mut whole = String::from(quote);
    for character in text.chars() {
        if character == quote {
            whole.push(quote);
            quote = if quote == '"' { '\'' } else { '"' };
            whole.push(quote);
        }
        whole.push(character);
    }
    whole.push(quote);
    whole
}
