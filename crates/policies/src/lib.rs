//! Read policies of other drivers, for models: which member of a mirror they read.
//!
//! Each file imitates one rule, from its driver's sources where they are published, and describes
//! itself by a [`Rule`](raidlab_array::Rule); a further one is a file and a line in the list below.
//! [`ALL`] lists them together with the policies that raidlab's own arrays offer. An array that
//! keeps data does not use the imitations and does not know this crate; a model looks a name up
//! with [`read_policy`] and hands the policy to the array.

#[cfg(test)]
#[path = "../../array/src/policy/testing.rs"]
mod testing;
#[cfg(test)]
mod tests;

pub use zfs::{ZfsFreebsd10, Zol06};

#[cfg(test)]
use raidlab_array::{Io, IoKind, MemberView, Read, ReadPolicy, Slot};
use raidlab_array::{ReadPolicyError, ReadPolicyKind};

/// Declares the modules of the policies, and the list of all their rules.
macro_rules! policies {
    ($($module:ident: $($rule:ident),+;)+) => {
        $(mod $module;)+

        /// Every policy with its usual parameter: those of arrays that keep data, and then the
        /// imitations of other drivers.
        pub const ALL: &[ReadPolicyKind] = &[
            ReadPolicyKind::OWN[0],
            ReadPolicyKind::OWN[1],
            ReadPolicyKind::OWN[2],
            ReadPolicyKind::OWN[3],
            $($($module::$rule.usual(),)+)+
        ];
    };
}

policies! {
    md_3_16: RULE;
    md_4_10: RULE;
    md_raid10: RULE;
    gmirror_load: RULE;
    gmirror_list: RULE;
    gmirror_split: RULE;
    gmirror_prefer: RULE;
    gflash: RULE;
    zfs: FREEBSD_10, ZOL_0_6;
    nearest_head: RULE;
    btrfs: PID, ROUND_ROBIN, DEVID;
    spdk: RULE;
}

/// Parses a policy's name, with its parameter if it has one: `gmirror-split:8k`, `btrfs-devid:1`.
///
/// # Errors
/// When no policy has this name, or its parameter is invalid.
pub fn read_policy(text: &str) -> Result<ReadPolicyKind, ReadPolicyError> {
    ReadPolicyKind::among(text, ALL)
}
