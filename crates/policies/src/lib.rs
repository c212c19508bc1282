//! Read policies of other drivers, for models: which member of a mirror they read.
//!
//! Each file imitates one rule, out of its driver's sources as far as there are any, and
//! describes itself by a [`Rule`](raidlab_array::Rule). [`ALL`] is the list of them, together
//! with those that raidlab's own arrays offer. An array that keeps data has no use for the
//! imitations and does not know this crate; a model looks a name up with [`read_policy`] and
//! hands the policy to the array.

mod btrfs;
mod gflash;
mod gmirror_list;
mod gmirror_load;
mod gmirror_prefer;
mod gmirror_split;
mod md_3_16;
mod md_4_10;
mod md_raid10;
mod nearest_head;
mod spdk;
#[cfg(test)]
#[path = "../../array/src/policy/testing.rs"]
mod testing;
#[cfg(test)]
mod tests;
mod zfs;

pub use zfs::{ZfsFreebsd10, Zol06};

#[cfg(test)]
use raidlab_array::{Io, IoKind, MemberView, Read, ReadPolicy, Slot};
use raidlab_array::{ReadPolicyError, ReadPolicyKind};

/// Every policy with its usual parameter, in the order of the manual.
pub const ALL: [ReadPolicyKind; 19] = [
    md_3_16::RULE.usual(),
    md_4_10::RULE.usual(),
    ReadPolicyKind::OWN[0],
    md_raid10::RULE.usual(),
    ReadPolicyKind::OWN[1],
    gmirror_load::RULE.usual(),
    gmirror_list::RULE.usual(),
    gmirror_split::RULE.usual(),
    gmirror_prefer::RULE.usual(),
    gflash::RULE.usual(),
    zfs::FREEBSD_10.usual(),
    zfs::ZOL_0_6.usual(),
    ReadPolicyKind::OWN[2],
    nearest_head::RULE.usual(),
    ReadPolicyKind::OWN[3],
    btrfs::PID.usual(),
    btrfs::ROUND_ROBIN.usual(),
    btrfs::DEVID.usual(),
    spdk::RULE.usual(),
];

/// Reads a policy's name, with its parameter if it has one: `gmirror-split:8k`,
/// `btrfs-devid:1`.
///
/// # Errors
/// When there is no such policy, or its parameter makes no sense.
pub fn read_policy(text: &str) -> Result<ReadPolicyKind, ReadPolicyError> {
    ReadPolicyKind::among(text, &ALL)
}
