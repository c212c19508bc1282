//! btrfs over several devices: the array is a file system.
//!
//! btrfs has no verb that fails a member, or that removes one without copying its data elsewhere
//! first (`btrfs device remove` does that). The nearest to a pulled disk, and possible with any
//! kind of device, is to unmount, let the kernel forget the member (`btrfs device scan --forget`),
//! and mount again with `degraded`: the file system then runs without it, while the device stays as
//! it was, its contents growing old. So:
//!
//! - `fail` is refused; `remove` is unmount, forget, mount degraded. It needs a moment in which the
//!   folder is not in use: between jobs.
//! - `add` wipes the member and has `btrfs replace` rebuild it. The copy runs
//!   in the background and needs no unmount. The mount stays `degraded` until
//!   the next one, which changes nothing once all members are there.
//! - `re_add` is unmount, scan, mount, a reset of the errors counted so far, `btrfs scrub`: only
//!   the scrub finds what the member missed, by checksums and generations, reading everything.
//!   Data without checksums (`nodatacow`) would silently stay stale on it: then it is refused.
//!
//! While it is degraded btrfs may have to make chunks of a lesser profile
//! (two members of `raid1`, one away: `single`). They stay when the member is
//! back; the settings show all profiles that are found.

mod described;
mod plan;
mod settings;
mod state;

use super::steps::smallest;
use super::{Access, ArraySystem, Built, Described, Member, Need, Result};
use crate::named::named;
use raidlab_shell::Command;
use raidlab_units::Bytes;
use serde::Deserialize;

/// The smallest description of one, in JSON, with which leftovers are looked for.
pub(crate) const LEAST: &str = r#"{"data": "raid1"}"#;

/// The settings of a btrfs over several devices.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BtrfsSpec {
    /// The profile of data: `single`, `dup`, `raid0`, `raid1`, `raid1c3`, `raid1c4`, `raid10`,
    /// `raid5` or `raid6`.
    pub data: Profile,
    /// The profile of metadata; by default that of the data.
    pub metadata: Option<Profile>,
    /// The checksum: `crc32c` (the default), `xxhash`, `sha256` or `blake2`.
    #[serde(default)]
    pub checksum: Checksum,
    /// The compression of file data in the form of the mount option: `zstd:3`, `lzo`, `zlib`.
    pub compression: Option<String>,
    /// Whether file data are written in place, without checksums and compression.
    #[serde(default)]
    pub nodatacow: bool,
    /// Other mount options, one by one: `noatime`.
    #[serde(default)]
    pub mount_options: Vec<String>,
}

named! {
    /// The number of copies of a chunk, and of devices that it spreads over.
    pub enum Profile {
        /// One copy of each block.
        Single = "single",
        /// Two copies, on one device if need be.
        Dup = "dup",
        /// One copy in stripes over all devices.
        Raid0 = "raid0",
        /// Two copies on two devices.
        Raid1 = "raid1",
        /// Three copies on three devices.
        Raid1c3 = "raid1c3",
        /// Four copies on four devices.
        Raid1c4 = "raid1c4",
        /// Stripes of two copies.
        Raid10 = "raid10",
        /// Stripes with one parity.
        Raid5 = "raid5",
        /// Stripes with two parities.
        Raid6 = "raid6",
    }
}

named! {
    /// The checksum of data and metadata.
    #[derive(Default)]
    pub enum Checksum {
        /// CRC-32C, of 32 bits: the default.
        #[default]
        Crc32c = "crc32c",
        /// xxHash64, of 64 bits.
        Xxhash = "xxhash",
        /// SHA-256, of 256 bits.
        Sha256 = "sha256",
        /// BLAKE2b-256, of 256 bits.
        Blake2 = "blake2",
    }
}

impl Profile {
    /// The fewest devices (Linux 6.12 fs/btrfs/volumes.c, `btrfs_raid_array`).
    fn fewest(self) -> usize {
        match self {
            Self::Single | Self::Dup | Self::Raid0 => 1,
            Self::Raid1 | Self::Raid10 | Self::Raid5 => 2,
            Self::Raid1c3 | Self::Raid6 => 3,
            Self::Raid1c4 => 4,
        }
    }

    /// The number of devices that may be missing (the same table).
    fn tolerates(self) -> usize {
        match self {
            Self::Single | Self::Dup | Self::Raid0 => 0,
            Self::Raid1 | Self::Raid10 | Self::Raid5 => 1,
            Self::Raid1c3 | Self::Raid6 => 2,
            Self::Raid1c4 => 3,
        }
    }
}

impl BtrfsSpec {
    fn metadata(&self) -> Profile {
        self.metadata.unwrap_or(self.data)
    }

    /// The number of devices that may be missing.
    fn tolerates(&self) -> usize {
        self.data.tolerates().min(self.metadata().tolerates())
    }

    /// The requested mount options, without `degraded`.
    fn mount_options(&self) -> Vec<String> {
        let compression = self
            .compression
            .iter()
            .map(|kind| format!("compress={kind}"));
        let in_place = self.nodatacow.then(|| "nodatacow".to_owned());
        compression
            .chain(in_place)
            .chain(self.mount_options.iter().cloned())
            .collect()
    }
}

impl ArraySystem for BtrfsSpec {
    fn needs(&self) -> Vec<Need> {
        vec![
            Need::program("mkfs.btrfs", "apt-get install btrfs-progs"),
            Need::Module("btrfs"),
        ]
    }

    fn check_settings(&self) -> Result<()> {
        if self.nodatacow && self.compression.is_some() {
            return self.refuse("data written in place cannot be compressed");
        }
        Ok(())
    }

    fn check(&self, members: &[Member]) -> Result<()> {
        self.check_settings()?;
        for profile in [self.data, self.metadata()] {
            let fewest = profile.fewest();
            if members.len() < fewest {
                let (name, there) = (profile.name(), members.len());
                return self.refuse(format!(
                    "{name} needs {fewest} members and there are {there}"
                ));
            }
        }
        // Below this size btrfs-progs 6.2 mkfs.btrfs has no room for the first chunks
        // of some profiles.
        let small = Bytes(256 << 20);
        if smallest(members) < small {
            return self.refuse(format!("each member needs {small}"));
        }
        Ok(())
    }

    /// Nine tenths of what the profile leaves, as metadata and chunks need room; of unequal members
    /// the part that the others match. A RAID 10 takes four at a time before Linux 5.15, so there
    /// the smallest counts.
    fn capacity(&self, members: &[Member]) -> Bytes {
        let mut sizes: Vec<u64> = members.iter().map(|member| member.size.0).collect();
        sizes.sort_unstable();
        let total: u64 = sizes.iter().sum();
        let net = match self.data {
            Profile::Single => total,
            Profile::Dup => total / 2,
            Profile::Raid0 => striped(&sizes, 2.min(sizes.len()), 0),
            Profile::Raid1 => copied(&sizes, 2),
            Profile::Raid10 => smallest(members).0 * members.len() as u64 / 2,
            Profile::Raid1c3 => copied(&sizes, 3),
            Profile::Raid1c4 => copied(&sizes, 4),
            Profile::Raid5 => striped(&sizes, 2, 1),
            Profile::Raid6 => striped(&sizes, 3, 2),
        };
        Bytes(net / 10 * 9)
    }

    fn create(&self, array: &Built) -> Result<Vec<Command>> {
        self.check(&array.members)?;
        Ok(plan::create(self, array))
    }

    fn access(&self, array: &Built) -> Access {
        Access::Folder(array.folder.clone())
    }

    fn destroy(&self, array: &Built) -> Vec<Command> {
        plan::destroy(array)
    }
}

/// The capacity of chunks that lie on all members with room left, on `least` or more, of which
/// `parity` hold parity; `sizes` in ascending order.
fn striped(sizes: &[u64], least: usize, parity: usize) -> u64 {
    let (mut all, mut full) = (0, 0);
    for (place, size) in sizes.iter().enumerate() {
        let wide = sizes.len() - place;
        if wide >= least {
            all += (size - full) * (wide - parity) as u64;
            full = *size;
        }
    }
    all
}

/// The largest amount of data with each chunk on `copies` members: every member takes part in
/// a chunk once.
fn copied(sizes: &[u64], copies: u64) -> u64 {
    let room = |data: u64| sizes.iter().map(|size| *size.min(&data)).sum::<u64>();
    let (mut holds, mut beyond) = (0, sizes.iter().sum::<u64>() / copies + 1);
    while holds + 1 < beyond {
        let data = u64::midpoint(holds, beyond);
        match room(data) >= data * copies {
            true => holds = data,
            false => beyond = data,
        }
    }
    holds
}

#[cfg(test)]
mod tests;
