//! A member's metadata in mdadm's words: the text of `--examine`, of `--examine --brief`, of
//! `--examine-bitmap` and of `--examine-badblocks`, line by line as mdadm 4.2 prints them
//! (super0.c, super1.c, bitmap.c), so that users and scripts that know mdadm's output can
//! read this one.

mod bitmap;
mod brief;
mod legacy;
mod version_1;
mod words;

use crate::probe::MemberMetadata;
use crate::superblock::Superblock;
use raidlab_units::Bytes;
use std::fmt::Write;
use words::{UNKNOWN, human_sectors, layout, level};

pub use bitmap::{examine_bad_blocks, examine_bitmap};
pub use brief::brief;
pub use words::{utc, uuid};

/// Facts beyond the metadata that the text depends on.
#[derive(Debug, Clone, Copy)]
pub struct DetailOptions<'a> {
    /// The member's name, as the user gave it.
    pub device: &'a str,
    /// The member's size.
    pub size: Bytes,
    /// This host's name: arrays that belong to it are marked. Empty: none are.
    pub host: &'a str,
    /// The function that formats a time in seconds since 1970 as C's `ctime` does, without the line
    /// end: [`utc`], or the same in local time.
    pub time: fn(u64) -> String,
}

/// Returns the text of `--examine`.
#[must_use]
pub fn examine(member: &MemberMetadata, options: &DetailOptions<'_>) -> String {
    let mut text = Text::default();
    text.raw(&format!("{}:\n", options.device));
    match &member.legacy {
        Some(rest) => legacy::examine(&mut text, &member.superblock, rest, options),
        None => version_1::examine(&mut text, member, options),
    }
    text.0
}

/// A text of lines with a name and a value each.
#[derive(Default)]
struct Text(String);

impl Text {
    /// Adds a line `name : value`; all names end in the same column.
    fn line(&mut self, name: &str, value: impl std::fmt::Display) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "{name:>15} : {value}");
    }

    fn blank(&mut self) {
        self.0.push('\n');
    }

    fn raw(&mut self, text: &str) {
        self.0.push_str(text);
    }

    /// Adds the chunk, where the level has one.
    fn chunk(&mut self, superblock: &Superblock) {
        let chunk = format!("{}K", superblock.chunk.0 / 2);
        match superblock.level {
            0 | 4 | 5 | 6 | 10 => self.line("Chunk Size", chunk),
            -1 => self.line("Rounding", chunk),
            _ => {}
        }
        self.blank();
    }

    /// Adds the progress of a reshape, and the shape that the array is changed to; each version
    /// writes the chunk in its own way.
    fn reshape(&mut self, superblock: &Superblock, new_chunk: impl std::fmt::Display) {
        let reshape = superblock.reshape;
        let position = reshape.position;
        self.line(
            "Reshape pos'n",
            format!("{}{}", position / 2, human_sectors(position)),
        );
        if reshape.delta_disks != 0 {
            let after = superblock.raid_disks;
            let before = i64::from(after) - i64::from(reshape.delta_disks);
            self.line(
                "Delta Devices",
                format!("{} ({before}->{after})", reshape.delta_disks),
            );
        }
        if reshape.new_level != superblock.level {
            self.line("New Level", level(reshape.new_level));
        }
        if reshape.new_layout != superblock.layout && superblock.level >= 5 {
            let name = layout(superblock.level, reshape.new_layout);
            self.line("New Layout", name.as_deref().unwrap_or(UNKNOWN));
        }
        if u64::from(reshape.new_chunk) != superblock.chunk.0 {
            self.line("New Chunksize", new_chunk);
        }
        self.blank();
    }
}
