//! Logical volumes of LVM with a RAID type: md's code behind device-mapper.
//!
//! The volume group has the array's name and holds one volume, `volume`.
//! Every command names the members with `--devices` (LVM 2.03.11 and later):
//! it then sees no other disk of the machine, and a member is pulled by leaving
//! it out.
//!
//! LVM has no verb that fails a member. `remove` deactivates the volume and activates it again
//! without the member, `degraded`; it needs a moment in which the volume is not in use. `add` wipes
//! the member, makes it a new one and lets `lvconvert --repair` put it in the lost one's place.
//! `re_add` deactivates the volume and activates it with the member: the kernel copies the regions
//! marked in its bitmap.

mod cache;
mod described;
mod plan;
mod state;

use super::steps::smallest;
use super::{Access, ArraySystem, Built, Described, Member, Need, Result, WriteBack};
use crate::named::named;
pub use cache::{LvmCacheMode, LvmCacheSpec};
use raidlab_shell::Command;
use raidlab_units::Bytes;
use serde::Deserialize;

/// The default size of an extent, bytes.
const EXTENT: u64 = 4 << 20;

/// The smallest description of one, in JSON, with which leftovers are looked for.
pub(crate) const LEAST: &str = r#"{"level": "raid1"}"#;

/// The settings of an LVM volume.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LvmSpec {
    /// The level: `linear`, `striped`, `raid0`, `raid1`, `mirror`, `raid10`, `raid5` or `raid6`.
    pub level: LvmLevel,
    /// The consecutive bytes on one member, a power of two from 4k on; LVM's default is 64k. Not
    /// for `linear`, `raid1` and `mirror`.
    #[serde(default, deserialize_with = "super::spec::optional_chunk")]
    pub stripe_size: Option<Bytes>,
    /// Whether to skip the first resync (`raid1`, `raid10`, `mirror`, `raid5`): the members'
    /// redundancy is taken on trust.
    #[serde(default)]
    pub nosync: bool,
    /// The bytes of the volume for each bit of the bitmap.
    #[serde(default, deserialize_with = "super::spec::optional_size")]
    pub region_size: Option<Bytes>,
    /// The cache before the volume, on the last members.
    pub cache: Option<LvmCacheSpec>,
}

named! {
    /// The segment types of LVM that make arrays.
    pub enum LvmLevel {
        /// Members one after the other.
        Linear = "linear",
        /// Stripes by device-mapper's own target.
        Striped = "striped",
        /// Stripes over all members, by md's code.
        Raid0 = "raid0",
        /// Mirrors, by md's code.
        Raid1 = "raid1",
        /// Mirrors by device-mapper's own, older target.
        Mirror = "mirror",
        /// Stripes with two copies of each.
        Raid10 = "raid10",
        /// Stripes with one parity, which is on the members in turn.
        Raid5 = "raid5",
        /// Stripes with two parities, which are on the members in turn.
        Raid6 = "raid6",
    }
}

impl LvmLevel {
    fn module(self) -> &'static str {
        match self {
            Self::Linear | Self::Striped => "dm-mod",
            Self::Mirror => "dm-mirror",
            _ => "dm-raid",
        }
    }

    fn fewest(self) -> usize {
        match self {
            Self::Linear => 1,
            Self::Striped | Self::Raid0 | Self::Raid1 | Self::Mirror => 2,
            Self::Raid5 => 3,
            Self::Raid10 => 4,
            Self::Raid6 => 5,
        }
    }

    pub(crate) fn redundant(self) -> bool {
        !matches!(self, Self::Linear | Self::Striped | Self::Raid0)
    }

    fn striped(self) -> bool {
        !matches!(self, Self::Linear | Self::Raid1 | Self::Mirror)
    }

    /// The number of data stripes over so many members.
    fn stripes(self, members: usize) -> usize {
        match self {
            Self::Linear | Self::Raid1 | Self::Mirror => 1,
            Self::Striped | Self::Raid0 => members,
            Self::Raid10 => members / 2,
            Self::Raid5 => members.saturating_sub(1),
            Self::Raid6 => members.saturating_sub(2),
        }
    }

    /// Whether data are lost when these members are missing, slot by slot.
    fn has_lost(self, gone: &[bool]) -> bool {
        let count = gone.iter().filter(|gone| **gone).count();
        match self {
            Self::Linear | Self::Striped | Self::Raid0 => count > 0,
            Self::Raid1 | Self::Mirror => count == gone.len(),
            Self::Raid10 => gone.chunks(2).any(|pair| pair.iter().all(|gone| *gone)),
            Self::Raid5 => count > 1,
            Self::Raid6 => count > 2,
        }
    }
}

impl LvmSpec {
    /// The number of `count` members that hold data.
    fn data_count(&self, count: usize) -> usize {
        let cache = self.cache.as_ref().map_or(0, |cache| cache.devices);
        count.saturating_sub(cache)
    }
}

impl ArraySystem for LvmSpec {
    fn needs(&self) -> Vec<Need> {
        let program = |name, apt| Need::program(name, apt);
        let mut needs = vec![
            program("lvm", "apt-get install lvm2"),
            Need::Module(self.level.module()),
        ];
        if self.cache.is_some() {
            // LVM checks the cache's metadata whenever it activates the cache.
            let check = "apt-get install thin-provisioning-tools";
            needs.push(program("cache_check", check));
            needs.push(program("dmsetup", "apt-get install dmsetup"));
            needs.push(Need::Module("dm-cache"));
        }
        needs
    }

    fn check_settings(&self) -> Result<()> {
        let level = self.level;
        if let Some(Err(reason)) = self.cache.as_ref().map(LvmCacheSpec::check) {
            return self.refuse(reason);
        }
        if let Some(size) = self.stripe_size {
            if !level.striped() {
                return self.refuse("this level has no stripes");
            }
            if !size.0.is_power_of_two() || size.0 < 4096 {
                return self.refuse(format!(
                    "stripe size {size} is no power of two from 4 KiB on"
                ));
            }
            // LVM would use the size of an extent instead (tools/lvcreate.c).
            if size.0 > EXTENT {
                return self.refuse(format!("stripe size {size} is above an extent's, 4 MiB"));
            }
        }
        // lvcreate 2.03 refuses it, as both parities have to be made.
        if self.nosync && (!level.redundant() || level == LvmLevel::Raid6) {
            return self.refuse("its first resync cannot be skipped");
        }
        if let Some(size) = self.region_size {
            if !level.redundant() {
                return self.refuse("a region size means nothing without redundancy");
            }
            // tools/lvcreate.c of LVM 2.03: "must be a power of 2", "must be a multiple of
            // machine memory page size".
            if !size.0.is_power_of_two() || size.0 < 4096 {
                return self.refuse(format!(
                    "region size {size} is no power of two from 4 KiB on"
                ));
            }
        }
        Ok(())
    }

    fn check(&self, members: &[Member]) -> Result<()> {
        self.check_settings()?;
        let (level, count) = (self.level, self.data_count(members.len()));
        if count < level.fewest() {
            return self.refuse(format!(
                "it needs {} members and there are {count}",
                level.fewest()
            ));
        }
        if level == LvmLevel::Raid10 && !count.is_multiple_of(2) {
            return self.refuse(format!("{count} members make no pairs"));
        }
        Ok(())
    }

    /// The volume has whole extents of 4 MiB after a MiB of metadata, one of them for the bitmap
    /// of each member.
    fn capacity(&self, members: &[Member]) -> Bytes {
        let usable = |size: Bytes| size.0.saturating_sub(1 << 20) / EXTENT * EXTENT;
        let members = &members[..self.data_count(members.len())];
        if self.level == LvmLevel::Linear {
            return Bytes(members.iter().map(|member| usable(member.size)).sum());
        }
        let each = usable(smallest(members)).saturating_sub(EXTENT);
        Bytes(each * self.level.stripes(members.len()) as u64)
    }

    fn create(&self, array: &Built) -> Result<Vec<Command>> {
        self.check(&array.members)?;
        Ok(plan::create(self, array))
    }

    fn access(&self, array: &Built) -> Access {
        Access::Device(format!("/dev/{}/{}", array.name, plan::VOLUME))
    }

    /// The policy writes back by itself: `smq` whenever the volume is idle, `cleaner` at once.
    fn write_back(&self, _: &Built) -> Option<WriteBack> {
        self.cache.as_ref().map(|_| WriteBack::default())
    }

    fn destroy(&self, array: &Built) -> Vec<Command> {
        plan::destroy(array)
    }
}

#[cfg(test)]
mod tests;
