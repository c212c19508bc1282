//! What an array is, whatever its system: its names, its stripes, how much its members
//! write, what they are for, whether they must be made equal first, whether it copies on
//! write. Benches write these down as facts, and who judges a measurement reads the facts.

use super::ArraySpec;
use crate::array::btrfs::Profile;
use crate::array::lvm::LvmLevel;
use crate::array::md::{ConsistencyPolicy, MdLevel, MdSpec};
use crate::array::zfs::Topology;

impl ArraySpec {
    /// The system's name, as in facts: `md`, `zfs`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Md(_) => "md",
            Self::Btrfs(_) => "btrfs",
            Self::Zfs(_) => "zfs",
            Self::Gmirror(_) => "gmirror",
            Self::Gstripe(_) => "gstripe",
            Self::Graid3(_) => "graid3",
            Self::Gflash(_) => "gflash",
            Self::Lvm(_) => "lvm",
            Self::Bcache(_) => "bcache",
            Self::Nbd(_) => "nbd",
            Self::Disk(_) => "disk",
        }
    }

    /// The level as the system names it: `raid5`, `mirror`; `None` where only
    /// somebody else knows it.
    #[must_use]
    pub fn level(&self) -> Option<&'static str> {
        Some(match self {
            Self::Md(md) => md.level.name(),
            Self::Btrfs(btrfs) => btrfs.data.name(),
            Self::Zfs(zfs) => match zfs.topology {
                Topology::Single => "single",
                Topology::Stripe => "raid0",
                Topology::Mirror => "mirror",
                Topology::StripedMirrors => "mirrors",
                Topology::Raidz1 => "raidz1",
                Topology::Raidz2 => "raidz2",
                Topology::Raidz3 => "raidz3",
            },
            Self::Gmirror(_) | Self::Gflash(_) => "mirror",
            Self::Gstripe(_) => "raid0",
            Self::Graid3(_) => "raid3",
            Self::Lvm(lvm) => lvm.level.name(),
            Self::Bcache(bcache) => bcache.md.as_ref().map_or("single", |md| md.level.name()),
            Self::Nbd(_) => return None,
            Self::Disk(_) => "single",
        })
    }

    /// Members' worth of data in a stripe of an array of `count` members; `None`
    /// where there are no stripes or the level does not tell.
    #[must_use]
    pub fn data_members(&self, count: usize) -> Option<u64> {
        let active = match self {
            Self::Md(md) => active(md, count),
            Self::Lvm(lvm) => {
                let cache = lvm.cache.as_ref().map_or(0, |cache| cache.devices);
                count.saturating_sub(cache)
            }
            Self::Bcache(bcache) => active(bcache.md.as_ref()?, count.saturating_sub(1)),
            Self::Gstripe(_) => count,
            _ => return None,
        };
        let data = match self.level()? {
            "raid0" | "striped" => active,
            "raid4" | "raid5" => active.checked_sub(1)?,
            "raid6" => active.checked_sub(2)?,
            _ => return None,
        };
        u64::try_from(data).ok()
    }

    /// Bytes that all members together write for each byte that is written in sequence,
    /// in whole stripes: 2 for two copies of everything, 4/3 for a RAID 5 of four. `None`
    /// where the members do not bound it (a cache answers before them) or somebody else
    /// knows it. Members beside the array proper (spares, logs) do not count.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a few members")]
    pub fn member_bytes_per_byte(&self, count: usize) -> Option<f64> {
        let (members, data) = match self {
            Self::Md(md) => {
                let members = active(md, count);
                let whole = members as f64;
                let data = match md.level {
                    MdLevel::Linear | MdLevel::Raid0 => whole,
                    MdLevel::Raid1 => 1.0,
                    MdLevel::Raid10 => whole / md.raid10_copies() as f64,
                    MdLevel::Raid4 | MdLevel::Raid5 => whole - 1.0,
                    MdLevel::Raid6 => whole - 2.0,
                };
                (members, data)
            }
            Self::Btrfs(btrfs) => {
                let whole = count as f64;
                let data = match btrfs.data {
                    Profile::Single | Profile::Raid0 => whole,
                    Profile::Dup | Profile::Raid1 | Profile::Raid10 => whole / 2.0,
                    Profile::Raid1c3 => whole / 3.0,
                    Profile::Raid1c4 => whole / 4.0,
                    Profile::Raid5 => whole - 1.0,
                    Profile::Raid6 => whole - 2.0,
                };
                (count, data)
            }
            Self::Zfs(zfs) => {
                let members = zfs.data_count(count);
                let whole = members as f64;
                let data = match zfs.topology {
                    Topology::Single | Topology::Mirror => 1.0,
                    Topology::Stripe => whole,
                    Topology::StripedMirrors => whole / zfs.copies() as f64,
                    Topology::Raidz1 | Topology::Raidz2 | Topology::Raidz3 => {
                        whole - zfs.topology.parity()? as f64
                    }
                };
                (members, data)
            }
            Self::Gflash(gflash) if gflash.cache => return None,
            Self::Gmirror(_) | Self::Gflash(_) => (count, 1.0),
            Self::Gstripe(_) => (count, count as f64),
            Self::Graid3(_) => (count, count as f64 - 1.0),
            Self::Lvm(lvm) if lvm.cache.is_some() => return None,
            Self::Lvm(lvm) => {
                let whole = count as f64;
                let data = match lvm.level {
                    LvmLevel::Linear | LvmLevel::Striped | LvmLevel::Raid0 => whole,
                    LvmLevel::Raid1 | LvmLevel::Mirror => 1.0,
                    LvmLevel::Raid10 => whole / 2.0,
                    LvmLevel::Raid5 => whole - 1.0,
                    LvmLevel::Raid6 => whole - 2.0,
                };
                (count, data)
            }
            Self::Bcache(_) | Self::Nbd(_) => return None,
            Self::Disk(_) => (1, 1.0),
        };
        (members > 0 && data > 0.0).then(|| members as f64 / data)
    }

    /// Whether data that are written again go to another place, so that the old ones
    /// stay until the new ones are whole.
    #[must_use]
    pub const fn copies_on_write(&self) -> bool {
        match self {
            Self::Zfs(_) => true,
            Self::Btrfs(btrfs) => !btrfs.nodatacow,
            _ => false,
        }
    }

    /// Whether it is a file system, or holds one, of its own kind.
    #[must_use]
    pub const fn has_own_file_system(&self) -> bool {
        matches!(self, Self::Zfs(_) | Self::Btrfs(_))
    }

    /// What stands beside the array proper and answers or takes requests before it:
    /// `cache`, `log`, `cache log`; empty where nothing does.
    #[must_use]
    pub fn auxiliary(&self) -> &'static str {
        match self {
            Self::Zfs(zfs) => match (zfs.cache > 0, zfs.log > 0) {
                (true, true) => "cache log",
                (true, false) => "cache",
                (false, true) => "log",
                (false, false) => "",
            },
            Self::Gflash(gflash) if gflash.cache => "cache",
            _ => "",
        }
    }

    /// The program that says the version of the system, and the words that make it do so;
    /// `None` where the kernel's own version is that of the system.
    #[must_use]
    pub const fn version_command(&self) -> Option<(&'static str, &'static [&'static str])> {
        match self {
            Self::Md(_) => Some(("mdadm", &["--version"])),
            Self::Btrfs(_) => Some(("btrfs", &["--version"])),
            Self::Zfs(_) => Some(("zfs", &["version"])),
            Self::Lvm(_) => Some(("lvm", &["version"])),
            _ => None,
        }
    }

    /// What the member in a slot of `count` does beside being one. Caches and logs
    /// are the last members.
    #[must_use]
    pub fn role(&self, count: usize, slot: usize) -> Option<&'static str> {
        let from_end = count.saturating_sub(slot);
        match self {
            Self::Md(md) => md_role(md, count, slot),
            Self::Bcache(_) if from_end <= 1 => Some("cache"),
            Self::Bcache(bcache) => md_role(bcache.md.as_ref()?, count - 1, slot),
            Self::Lvm(lvm) => {
                let devices = lvm.cache.as_ref().map_or(0, |cache| cache.devices);
                (from_end <= devices).then_some("cache")
            }
            // First the log's, then the cache's.
            Self::Zfs(zfs) if from_end <= zfs.cache => Some("cache"),
            Self::Zfs(zfs) if from_end <= zfs.cache + zfs.log => Some("log"),
            _ => None,
        }
    }

    /// Whether its members are made equal after it is created.
    #[must_use]
    pub fn has_first_sync(&self) -> bool {
        match self {
            Self::Md(md) => md_syncs_first(md),
            Self::Bcache(bcache) => bcache.md.as_ref().is_some_and(md_syncs_first),
            Self::Lvm(lvm) => lvm.level.redundant() && !lvm.nosync,
            _ => false,
        }
    }

    /// Leaves that out where it can be: right where members are equal as they are.
    pub const fn leave_out_first_sync(&mut self) {
        match self {
            Self::Md(md) => md.assume_clean = true,
            Self::Bcache(bcache) => {
                if let Some(md) = &mut bcache.md {
                    md.assume_clean = true;
                }
            }
            _ => {}
        }
    }
}

fn md_syncs_first(md: &MdSpec) -> bool {
    !md.assume_clean && !matches!(md.level, MdLevel::Linear | MdLevel::Raid0)
}

/// Members of the array proper.
fn active(md: &MdSpec, count: usize) -> usize {
    let journal = md.consistency_policy == Some(ConsistencyPolicy::Journal);
    count.saturating_sub(md.spares + usize::from(journal))
}

fn md_role(md: &MdSpec, count: usize, slot: usize) -> Option<&'static str> {
    let journal = md.consistency_policy == Some(ConsistencyPolicy::Journal);
    if journal && slot + 1 == count {
        Some("journal")
    } else if slot >= active(md, count) {
        Some("spare")
    } else if md.level == MdLevel::Raid1 && md.write_mostly.contains(&slot) {
        Some("write-mostly")
    } else {
        None
    }
}
