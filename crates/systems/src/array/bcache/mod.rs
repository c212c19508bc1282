//! bcache: a cache on a solid-state disk before one disk, or before an array of
//! md's, in the kernel.
//!
//! The last member is the cache; the others are behind it: a single disk, or the members of
//! `[build.bcache.md]`. `make-bcache` formats both sides with the same cache set, by which the
//! kernel joins them once both are registered.
//!
//! The cache set's UUID is the array's name in ASCII: its folder below `/sys/fs/bcache` is then
//! known before it is built, and a crash's leftovers are found by it, without reading any device.
//! The kernel numbers the finished devices by itself, `/dev/bcache0` and on; a link with the
//! array's name leads to ours.
//!
//! A finished device is stopped without writing back its dirty data, as it is
//! blanked afterwards anyway.

mod described;
mod plan;
mod state;

use super::md::MdSpec;
use super::{
    Access, ArraySystem, Built, ChangeMembers, Described, Member, Need, Result, WriteBack,
};
use crate::named::named;
use raidlab_shell::Command;
use raidlab_units::Bytes;
use serde::Deserialize;

/// The smallest description of one, in JSON, with which leftovers are looked for.
pub(crate) const LEAST: &str = r#"{"mode": "writethrough"}"#;

/// The settings of a bcache.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BcacheSpec {
    /// The cache mode: `writethrough`, `writeback`, `writearound` or `none`.
    pub mode: CacheMode,
    /// The size of a bucket, the unit of allocation and eviction: a power of two from 8k to 16m;
    /// `make-bcache`'s default is 512k.
    #[serde(default, deserialize_with = "super::spec::optional_size")]
    pub bucket: Option<Bytes>,
    /// The size of a block, the smallest unit of reads and writes: a power of two from 512 to 4k.
    #[serde(default, deserialize_with = "super::spec::optional_size")]
    pub block: Option<Bytes>,
    /// The length from which a sequential stream bypasses the cache; `0` means never; the kernel's
    /// default is 4m.
    #[serde(default, deserialize_with = "super::spec::optional_size")]
    pub sequential_cutoff: Option<Bytes>,
    /// The share of the cache that may stay dirty, percent, 0 to 40: `0` writes back at full speed;
    /// the kernel's default is 10.
    pub writeback_percent: Option<u32>,
    /// The time that the first dirty data wait before they are written back, seconds; the kernel's
    /// default is 30.
    pub writeback_delay_s: Option<u32>,
    /// The latency of reads from the cache, microseconds, above which it is bypassed for a while;
    /// `0` means never; the kernel's default is 2000.
    pub congested_read_threshold_us: Option<u32>,
    /// The same limit for writes; the kernel's default is 20000.
    pub congested_write_threshold_us: Option<u32>,
    /// The replacement policy for buckets: `lru`, `fifo` or `random`.
    pub replacement: Option<Replacement>,
    /// The array behind the cache; without it a single disk.
    pub md: Option<MdSpec>,
}

named! {
    /// The treatment of writes by a cache.
    pub enum CacheMode {
        /// Writes go to the cache and to the disk, and are done when both have them.
        WriteThrough = "writethrough",
        /// Writes are done when the cache has them; the disk gets them later.
        WriteBack = "writeback",
        /// Writes bypass the cache, which drops its copy of the data.
        WriteAround = "writearound",
        /// Reads and writes bypass the cache, which stores nothing.
        None = "none",
    }
}

named! {
    /// The policy that chooses the bucket to evict.
    pub enum Replacement {
        /// The least recently used bucket is evicted.
        Lru = "lru",
        /// The bucket that was filled first is evicted.
        Fifo = "fifo",
        /// A random bucket is evicted.
        Random = "random",
    }
}

/// The area that `make-bcache` reserves at a backing device's start:
/// 16 sectors (`BDEV_DATA_START_DEFAULT`).
const DATA_START_BYTES: u64 = 16 * 512;

impl BcacheSpec {
    /// The array behind the cache, with its own members.
    fn behind<'a>(&'a self, array: &Built) -> Option<(&'a MdSpec, Built)> {
        let md = self.md.as_ref()?;
        let (_, members) = array.members.split_last()?;
        let mut behind = array.clone();
        behind.members = members.to_vec();
        Some((md, behind))
    }

    /// Runs a verb of the array behind the cache.
    fn of_md(
        &self,
        array: &Built,
        slot: usize,
        what: &str,
        verb: impl FnOnce(&MdSpec, &Built) -> Result<Vec<Command>>,
    ) -> Result<Vec<Command>> {
        let reason = match self.behind(array) {
            Some((md, behind)) if slot < behind.members.len() => return verb(md, &behind),
            Some(_) => "the cache stays where it is",
            None => "there is no second copy of its data",
        };
        Err(self.lacks(what, reason))
    }
}

impl ArraySystem for BcacheSpec {
    fn needs(&self) -> Vec<Need> {
        let mut needs = vec![
            Need::program("make-bcache", "apt-get install bcache-tools"),
            Need::Module("bcache"),
        ];
        needs.extend(self.md.iter().flat_map(ArraySystem::needs));
        needs
    }

    fn check_settings(&self) -> Result<()> {
        let whole = |size: Option<Bytes>, least: u64, most: u64| {
            size.is_none_or(|size| size.0.is_power_of_two() && (least..=most).contains(&size.0))
        };
        if !whole(self.block, 512, 4096) {
            return self.refuse("`block` must be a power of two from 512 to 4k");
        }
        if !whole(self.bucket, 8 << 10, 16 << 20) {
            return self.refuse("`bucket` must be a power of two from 8k to 16m");
        }
        if self.writeback_percent.is_some_and(|percent| percent > 40) {
            return self.refuse("`writeback_percent` is at most 40");
        }
        let dirty = self.writeback_percent.is_some() || self.writeback_delay_s.is_some();
        if dirty && self.mode != CacheMode::WriteBack {
            return self.refuse("only `writeback` has dirty data to be written back");
        }
        self.md.as_ref().map_or(Ok(()), ArraySystem::check_settings)
    }

    fn check(&self, members: &[Member]) -> Result<()> {
        self.check_settings()?;
        match (&self.md, members.split_last()) {
            (Some(md), Some((_, behind))) => md.check(behind),
            (None, Some((_, [_]))) => Ok(()),
            _ => self.refuse(format!(
                "it takes one disk and the cache's, and there are {}: say [build.bcache.md] for \
                 an array",
                members.len()
            )),
        }
    }

    fn capacity(&self, members: &[Member]) -> Bytes {
        let behind = match (&self.md, members.split_last()) {
            (Some(md), Some((_, behind))) => md.capacity(behind),
            _ => members.first().map_or(Bytes(0), |member| member.size),
        };
        Bytes(behind.0.saturating_sub(DATA_START_BYTES))
    }

    fn create(&self, array: &Built) -> Result<Vec<Command>> {
        self.check(&array.members)?;
        plan::create(self, array)
    }

    fn access(&self, array: &Built) -> Access {
        Access::Device(plan::link(&array.name))
    }

    /// With 0 percent allowed dirty the kernel writes back everything, as fast as the
    /// disk takes it.
    fn write_back(&self, array: &Built) -> Option<WriteBack> {
        Some(plan::write_back(self, array))
    }

    fn own_paths(&self, array: &Built) -> Vec<String> {
        let behind = self.behind(array);
        let behind = behind.map(|(md, behind)| md.own_paths(&behind));
        let own = [plan::link(&array.name)];
        own.into_iter()
            .chain(behind.into_iter().flatten())
            .collect()
    }

    fn destroy(&self, array: &Built) -> Vec<Command> {
        plan::destroy(self, array)
    }
}

impl ChangeMembers for BcacheSpec {
    fn fail(&self, array: &Built, slot: usize) -> Result<Vec<Command>> {
        self.of_md(array, slot, "make that member fail", |md, behind| {
            md.fail(behind, slot)
        })
    }

    fn remove(&self, array: &Built, slot: usize) -> Result<Vec<Command>> {
        self.of_md(array, slot, "remove that member", |md, behind| {
            md.remove(behind, slot)
        })
    }

    fn add(&self, array: &Built, slot: usize) -> Result<Vec<Command>> {
        self.of_md(array, slot, "add that member", |md, behind| {
            md.add(behind, slot)
        })
    }

    fn re_add(&self, array: &Built, slot: usize) -> Result<Vec<Command>> {
        self.of_md(array, slot, "re-add that member", |md, behind| {
            md.re_add(behind, slot)
        })
    }
}

#[cfg(test)]
mod tests;
