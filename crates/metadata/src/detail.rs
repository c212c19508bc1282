//! A member's metadata in mdadm's words: the text of `--examine`, of
//! `--examine --brief`, of `--examine-bitmap` and of `--examine-badblocks`,
//! line by line as mdadm 4.2 prints them (super0.c, super1.c, bitmap.c), so
//! that whoever knows or parses the one knows the other.

mod bitmap;
mod brief;
mod legacy;
mod version_1;
mod words;

use crate::probe::MemberMetadata;
use raidlab_units::Bytes;
use std::fmt::Write;

pub use bitmap::{examine_bad_blocks, examine_bitmap};
pub use brief::brief;
pub use words::{utc, uuid};

/// What a text depends on beyond the metadata.
#[derive(Debug, Clone, Copy)]
pub struct DetailOptions<'a> {
    /// The member's name, as the user gave it.
    pub device: &'a str,
    /// The member's size.
    pub size: Bytes,
    /// This host's name: arrays that belong to it are marked. Empty: none is.
    pub host: &'a str,
    /// Writes a time in seconds since 1970 as C's `ctime` does, without the line
    /// end: [`utc`], or the same in local time.
    pub time: fn(u64) -> String,
}

/// The text of `--examine`.
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

/// Lines of a name and a value.
#[derive(Default)]
struct Text(String);

impl Text {
    /// `name : value`, the names ending in the same column.
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
}
