//! The texts of `--examine-bitmap` and `--examine-badblocks`.

use super::words::{human_sectors, uuid};
use crate::bitmap::Bitmap;
use crate::probe::MemberMetadata;
use crate::superblock::{Features, Version};
use std::fmt::Write;

/// Returns the text of `--examine-bitmap`.
#[must_use]
pub fn examine_bitmap(bitmap: &Bitmap, device: &str) -> String {
    let superblock = &bitmap.superblock;
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name:>16} : {value}");
    };
    line("Filename", device.to_owned());
    line("Magic", "6d746962".to_owned());
    line("Version", superblock.version.to_string());
    line("UUID", uuid(superblock.array_uuid));
    line("Events", superblock.events.to_string());
    line("Events Cleared", superblock.events_cleared.to_string());
    let state = match superblock.state {
        0 => "OK",
        2 => "Out of date",
        _ => "Unknown",
    };
    line("State", state.to_owned());
    line("Chunksize", chunk(superblock.chunk.0));
    line(
        "Daemon",
        format!("{}s flush period", superblock.daemon_sleep_seconds),
    );
    let mode = match superblock.write_behind {
        0 => "Normal".to_owned(),
        most => format!("Allow write behind, max {most}"),
    };
    line("Write Mode", mode);
    let size = superblock.sync_size.0;
    line("Sync Size", format!("{}{}", size / 2, human_sectors(size)));
    let [chunks, set] = [bitmap.chunks(), bitmap.count_set()];
    line(
        "Bitmap",
        format!(
            "{chunks} bits (chunks), {set} dirty ({}%)",
            percent(set, chunks)
        ),
    );
    text
}

/// Returns a percentage with one decimal, rounded to even as `%.1f` rounds an exact tie.
fn percent(part: u64, whole: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "a percentage for reading")]
    let percent = 100.0 * part as f64 / whole.max(1) as f64;
    format!("{percent:.1}")
}

/// Returns a size in the largest unit that makes it at least 1.
fn chunk(bytes: u64) -> String {
    let units = ["B", "KB", "MB", "GB", "TB"];
    let power = (bytes.max(1).ilog2() / 10).min(4);
    format!("{} {}", bytes >> (10 * power), units[power as usize])
}

/// Returns the text of `--examine-badblocks`.
#[must_use]
pub fn examine_bad_blocks(member: &MemberMetadata, device: &str) -> String {
    let superblock = &member.superblock;
    if superblock.version == Version::V0_90 {
        return "0.90 metadata does not support badblocks\n".to_owned();
    }
    if superblock.bad_block_log.is_none() {
        return format!("No bad-blocks list configured on {device}\n");
    }
    if !superblock.features.has(Features::BAD_BLOCKS) {
        return format!("Bad-blocks list is empty in {device}\n");
    }
    let mut text = format!("Bad-blocks on {device}:\n");
    for entry in &member.bad_blocks {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{:>20} for {} sectors", entry.start.0, entry.count.0);
    }
    text
}
