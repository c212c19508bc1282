//! Making both ends of a disk blank with `dd`, on Linux and FreeBSD alike.
//!
//! Metadata of arrays and partitions are in the first or the last megabytes of a disk: GEOM's
//! metadata in the last sector, a GPT in the first and last 33 sectors, a ZFS label's four copies
//! in the first and last 512 KiB of its partition, which on Linux ends 8 MiB and a rest before the
//! disk's end (OpenZFS, `zpool_label_disk`), md 0.90 in the last 128 KiB.

use super::Member;
use raidlab_shell::Command;

/// The number of bytes wiped at each end: twice what the farthest label needs.
const END_BYTES: u64 = 16 << 20;

/// The commands that write zeros over both ends of a member. FreeBSD refuses them while an array or
/// file system has the disk open for writing; Linux does not, so they are only for members that
/// surely are not in use.
///
/// A member of unknown size (0) gets its beginning wiped only.
pub(super) fn blank_ends(member: &Member) -> Vec<Command> {
    let size = member.size.0;
    let mut commands = vec![zeros(member, 1 << 20, 0, END_BYTES >> 20)];
    if size <= END_BYTES {
        return commands;
    }
    // A raw device takes whole sectors only, and the last one matters most.
    let block = if size.is_multiple_of(4096) { 4096 } else { 512 };
    let blocks = END_BYTES.min(size - END_BYTES).div_ceil(block);
    commands.push(zeros(member, block, size / block - blocks, blocks));
    commands
}

/// The command that writes `count` blocks of zeros from block `first` on. On a disk smaller than
/// that dd ends with 1 after it has written what fits.
fn zeros(member: &Member, block: u64, first: u64, count: u64) -> Command {
    Command::destroys(
        "dd",
        [
            "if=/dev/zero".to_owned(),
            format!("of={}", member.device),
            format!("bs={block}"),
            format!("seek={first}"),
            format!("count={count}"),
        ],
    )
}
