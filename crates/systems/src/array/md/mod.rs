//! Linux md, built and changed with mdadm, watched through `/sys`.
//!
//! An array named `raidlab3` becomes `/dev/md103`: 100 plus the number its name ends in. A numbered
//! node is made by mdadm itself, while `/dev/md/<name>` is made by udev, which a small guest does
//! not have; and numbers from 100 on do not collide with arrays that people number from 0, nor, up
//! to `raidlab20`, with those that mdadm numbers from 127 downwards. The name is kept in the
//! superblock as well, where [`super::ReadState::find`] sees it.
//!
//! A `raid4` or `raid5` is created degraded: mdadm lets the first sync rebuild the last
//! member, which is faster than making every stripe's parity anew, and the state says so
//! (mdadm 4.2 Create.c).
//!
//! mdadm asks questions: about an old signature, about a bitmap
//! (since 4.4). `--run` and an explicit `--bitmap` answer them beforehand.

mod described;
mod find;
mod layout;
mod plan;
mod settings;
mod state;

use super::steps::smallest;
use super::{Access, ArraySystem, Built, Described, Member, Need, Result};
use crate::named::named;
use layout::layout_number;
use raidlab_shell::Command;
use raidlab_units::Bytes;
use serde::Deserialize;

/// The smallest description of one, in JSON, with which leftovers are looked for.
pub(crate) const LEAST: &str = r#"{"level": "raid1"}"#;

/// The settings of an array of md. Everything but the level may be left out; the defaults are those
/// of mdadm and the kernel, except for the bitmap.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MdSpec {
    /// The level: `linear`, `raid0`, `raid1`, `raid4`, `raid5`, `raid6` or `raid10`.
    pub level: MdLevel,
    /// Bytes on one member before the next one's turn, a power of two from 4k
    /// on, for `raid0` any multiple of 4k; not for `raid1` and `linear`.
    #[serde(default, deserialize_with = "super::spec::optional_chunk")]
    pub chunk: Option<Bytes>,
    /// The layout by mdadm's name: `left-symmetric` and the like for `raid5` and `raid6`; `n2`,
    /// `f2`, `o2` for `raid10`; `original` or `alternate` for `raid0` of unequal members.
    pub layout: Option<String>,
    /// The bitmap: `none` or `internal`. By default `internal` for levels with redundancy, unless a
    /// consistency policy replaces it.
    pub bitmap: Option<Bitmap>,
    /// The bytes of a member for each bit of the bitmap.
    #[serde(default, deserialize_with = "super::spec::optional_size")]
    pub bitmap_chunk: Option<Bytes>,
    /// The superblock's version: `0.90`, `1.0`, `1.1` or `1.2` (the default).
    #[serde(default)]
    pub metadata: Metadata,
    /// Whether to skip the first resync: the members' redundancy is taken on trust. Only right on
    /// members full of zeros, or where the redundancy is never used.
    #[serde(default)]
    pub assume_clean: bool,
    /// The consistency policy: `ppl` (`raid5`) or `journal` (`raid4`, `raid5`, `raid6`) in place of
    /// a bitmap. The journal's device is the last member.
    pub consistency_policy: Option<ConsistencyPolicy>,
    /// The slots that are read only when nothing else is left (`raid1`).
    #[serde(default)]
    pub write_mostly: Vec<usize>,
    /// The number of members, after those of the array proper, that wait as spares.
    #[serde(default)]
    pub spares: usize,
    /// The rate that a resync keeps even under load, bytes per second.
    #[serde(default, deserialize_with = "super::spec::optional_size")]
    pub sync_speed_min: Option<Bytes>,
    /// The rate that a resync never exceeds, bytes per second.
    #[serde(default, deserialize_with = "super::spec::optional_size")]
    pub sync_speed_max: Option<Bytes>,
    /// The number of stripes in the cache of `raid4`, `raid5`, `raid6`: 17 to 32768. Each takes a
    /// page for each member.
    pub stripe_cache_size: Option<u32>,
    /// The number of threads that handle stripes of `raid4`, `raid5`, `raid6`, 8192 at most; 0 for
    /// md's own thread.
    pub group_thread_count: Option<u32>,
    /// The read-ahead of the finished array.
    #[serde(default, deserialize_with = "super::spec::optional_size")]
    pub read_ahead: Option<Bytes>,
}

named! {
    /// The levels of md, by mdadm's names.
    pub enum MdLevel {
        /// Members one after the other.
        Linear = "linear",
        /// Stripes over all members, without redundancy.
        Raid0 = "raid0",
        /// Mirrors with any number of copies.
        Raid1 = "raid1",
        /// Parity on the last member.
        Raid4 = "raid4",
        /// Stripes with one parity, which is on the members in turn.
        Raid5 = "raid5",
        /// Stripes with two parities, which are on the members in turn.
        Raid6 = "raid6",
        /// Stripes with several copies of each.
        Raid10 = "raid10",
    }
}

named! {
    /// The write-intent bitmap.
    pub enum Bitmap {
        /// There is none: after a crash and when a member returns everything is copied.
        None = "none",
        /// The bitmap is beside the superblock of each member.
        Internal = "internal",
    }
}

named! {
    /// A mechanism beside the bitmap that keeps stripes consistent over a crash.
    pub enum ConsistencyPolicy {
        /// The partial parity log of `raid5`.
        Ppl = "ppl",
        /// A journal on a device of its own.
        Journal = "journal",
    }
}

named! {
    /// The superblock's version.
    #[derive(Default)]
    pub enum Metadata {
        /// The old version, at the end, up to 2 TiB per member and 28 members.
        V0_90 = "0.90",
        /// The superblock lies at the end of each member.
        V1_0 = "1.0",
        /// The superblock lies at the start of each member.
        V1_1 = "1.1",
        /// The superblock lies 4 KiB from the start of each member.
        #[default]
        V1_2 = "1.2",
    }
}

impl MdLevel {
    /// The kernel module of the level.
    fn module(self) -> &'static str {
        match self {
            Self::Raid4 | Self::Raid5 | Self::Raid6 => "raid456",
            other => other.name(),
        }
    }

    /// The fewest members of the level.
    fn fewest(self) -> usize {
        match self {
            Self::Linear => 1,
            Self::Raid0 | Self::Raid1 | Self::Raid4 | Self::Raid5 | Self::Raid10 => 2,
            Self::Raid6 => 4,
        }
    }

    fn redundant(self) -> bool {
        !matches!(self, Self::Linear | Self::Raid0)
    }

    fn parity(self) -> bool {
        matches!(self, Self::Raid4 | Self::Raid5 | Self::Raid6)
    }

    fn striped(self) -> bool {
        !matches!(self, Self::Linear | Self::Raid1)
    }
}

impl MdSpec {
    /// The number of members of the array proper among `members`: without spares and the journal.
    fn active(&self, members: usize) -> usize {
        members.saturating_sub(self.spares + self.journals())
    }

    fn journals(&self) -> usize {
        usize::from(self.consistency_policy == Some(ConsistencyPolicy::Journal))
    }

    /// Whether the array is built with a bitmap.
    #[must_use]
    pub fn has_bitmap(&self) -> bool {
        self.bitmap() == Bitmap::Internal
    }

    /// The bitmap with which the array is built.
    fn bitmap(&self) -> Bitmap {
        match self.bitmap {
            Some(bitmap) => bitmap,
            None if self.level.redundant() && self.consistency_policy.is_none() => Bitmap::Internal,
            None => Bitmap::None,
        }
    }

    /// The kernel's number of the layout; `None` where it is left to mdadm.
    fn layout_number(&self) -> Option<u32> {
        layout_number(self.level, self.layout.as_deref()?)
    }

    /// The number of copies of each chunk in a `raid10`.
    pub(crate) fn raid10_copies(&self) -> usize {
        layout::copies(self.raid10_layout())
    }

    /// The layout of a `raid10`; mdadm's default is two near copies.
    fn raid10_layout(&self) -> u32 {
        self.layout_number().unwrap_or(layout::NEAR_2)
    }

    fn check_numbers(&self) -> Result<()> {
        // The limits of the kernel (`raid5_set_cache_size` and
        // `raid5_store_group_thread_cnt` of drivers/md/raid5.c).
        for (name, number, known) in [
            ("stripe_cache_size", self.stripe_cache_size, 17..=32768),
            ("group_thread_count", self.group_thread_count, 0..=8192),
        ] {
            if number.is_some_and(|number| !known.contains(&number)) {
                let (least, most) = known.into_inner();
                return self.refuse(format!("`{name}` must be from {least} to {most}"));
            }
        }
        for (name, size) in [
            ("bitmap_chunk", self.bitmap_chunk),
            ("sync_speed_min", self.sync_speed_min),
            ("sync_speed_max", self.sync_speed_max),
            ("read_ahead", self.read_ahead),
        ] {
            if size.is_some_and(|size| !size.0.is_multiple_of(1024)) {
                return self.refuse(format!("`{name}` must be whole KiB"));
            }
        }
        // Zero in sysfs is refused by the kernel (drivers/md/md.c, `sync_min_store`).
        for (name, speed) in [
            ("sync_speed_min", self.sync_speed_min),
            ("sync_speed_max", self.sync_speed_max),
        ] {
            if speed == Some(Bytes(0)) {
                return self.refuse(format!("`{name}` must be at least 1 KiB"));
            }
        }
        let fits =
            |chunk: Bytes| chunk.0.is_power_of_two() && (4 << 10..=2 << 30).contains(&chunk.0);
        if self.bitmap_chunk.is_some_and(|chunk| !fits(chunk)) {
            return self.refuse("`bitmap_chunk` must be a power of two from 4 KiB to 2 GiB");
        }
        Ok(())
    }
}

impl ArraySystem for MdSpec {
    fn needs(&self) -> Vec<Need> {
        vec![
            Need::program("mdadm", "apt-get install mdadm"),
            Need::Module(self.level.module()),
        ]
    }

    fn check_settings(&self) -> Result<()> {
        let level = self.level;
        if let Some(chunk) = self.chunk {
            if !level.striped() {
                return self.refuse("this level has no chunk");
            }
            // drivers/md/raid0.c divides by chunks of any length; mdadm wants whole pages.
            let (fits, what) = match level {
                MdLevel::Raid0 => (chunk.0.is_multiple_of(4096), "multiple of 4 KiB"),
                _ => (chunk.0.is_power_of_two(), "power of two from 4 KiB on"),
            };
            if !fits || chunk.0 < 4096 {
                return self.refuse(format!("chunk {chunk} is no {what}"));
            }
        }
        if let Some(layout) = &self.layout
            && self.layout_number().is_none()
        {
            return self.refuse(format!("it has no layout `{layout}`"));
        }
        if self.bitmap() == Bitmap::Internal {
            if !level.redundant() {
                return self.refuse("a bitmap means nothing without redundancy");
            }
            if self.consistency_policy.is_some() {
                return self.refuse("a bitmap and a consistency policy exclude each other");
            }
        } else if self.bitmap_chunk.is_some() {
            return self.refuse("`bitmap_chunk` is given, but there is no bitmap");
        }
        match self.consistency_policy {
            Some(ConsistencyPolicy::Ppl) if level != MdLevel::Raid5 => {
                return self.refuse("only raid5 has a partial parity log");
            }
            Some(ConsistencyPolicy::Journal) if !level.parity() => {
                return self.refuse("only raid4, raid5 and raid6 have a journal");
            }
            _ => {}
        }
        if !self.write_mostly.is_empty() && level != MdLevel::Raid1 {
            return self.refuse("only raid1 reads around write-mostly members");
        }
        if (self.stripe_cache_size.is_some() || self.group_thread_count.is_some())
            && !level.parity()
        {
            return self.refuse("only raid4, raid5 and raid6 have a stripe cache and its threads");
        }
        if self.spares > 0 && !level.redundant() {
            return self.refuse("a spare means nothing without redundancy");
        }
        let syncs =
            self.assume_clean || self.sync_speed_min.is_some() || self.sync_speed_max.is_some();
        if syncs && !level.redundant() {
            return self.refuse("there is no resync without redundancy");
        }
        self.check_numbers()
    }

    fn check(&self, members: &[Member]) -> Result<()> {
        self.check_settings()?;
        let active = self.active(members.len());
        let fewest = self.level.fewest();
        if active < fewest {
            return self.refuse(format!(
                "it needs {fewest} members beside spares and journal, and there are {active}"
            ));
        }
        if let Some(slot) = self.write_mostly.iter().find(|slot| **slot >= active) {
            return self.refuse(format!("write-mostly slot {slot} is not below {active}"));
        }
        if self.level == MdLevel::Raid10 && self.raid10_copies() > active {
            return self.refuse(format!("more copies than {active} members"));
        }
        Ok(())
    }

    /// Data start at up to 1/1024 of a member, at most 128 MiB plus the superblock and the bitmap
    /// (mdadm 4.2 super1.c, `write_init_super1`); each member is rounded down to whole chunks.
    fn capacity(&self, members: &[Member]) -> Bytes {
        let active = &members[..self.active(members.len())];
        let usable = |size: Bytes| {
            let reserve = (size.0 / 1024).min(128 << 20) + (2 << 20);
            size.0.saturating_sub(reserve)
        };
        let chunk = self.chunk.map_or(512 << 10, |chunk| chunk.0);
        let each = usable(smallest(active)) / chunk * chunk;
        let count = active.len() as u64;
        Bytes(match self.level {
            MdLevel::Linear | MdLevel::Raid0 => {
                active.iter().map(|member| usable(member.size)).sum()
            }
            MdLevel::Raid1 => each,
            MdLevel::Raid4 | MdLevel::Raid5 => each * count.saturating_sub(1),
            MdLevel::Raid6 => each * count.saturating_sub(2),
            MdLevel::Raid10 => each * count / self.raid10_copies() as u64,
        })
    }

    fn create(&self, array: &Built) -> Result<Vec<Command>> {
        self.check(&array.members)?;
        Ok(plan::create(self, array))
    }

    fn access(&self, array: &Built) -> Access {
        Access::Device(plan::device(&array.name))
    }

    fn check_all(&self, array: &Built) -> Result<Vec<Command>> {
        plan::check_all(self, array)
    }

    fn stop(&self, device: &str) -> Option<Command> {
        let number = device.strip_prefix("/dev/md")?;
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| Command::changes("mdadm", ["--stop", device]))
    }

    fn destroy(&self, array: &Built) -> Vec<Command> {
        plan::destroy(array)
    }
}

#[cfg(test)]
mod tests;
