//! A volume's cache: device-mapper's `cache` target, on a volume of its own.
//!
//! The last members hold only the cache, which LVM calls a cache volume: data and metadata of the
//! cache in one (`lvmcache(7)`). They are added to the volume group once the volume has been made
//! on all the others. LVM then renames the volume behind the cache to `volume_corig`, and puts the
//! cache in its place.

use super::plan::{VOLUME, destroying, volume};
use crate::array::steps::{Reader, devices};
use crate::array::{Built, CacheCounts, CacheState, Result, SystemError};
use crate::named::named;
use raidlab_shell::{Command, Target};
use raidlab_units::Bytes;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The name of the volume behind a cache.
pub(super) const ORIGIN: &str = "volume_corig";
/// The name of the cache volume.
const CACHE: &str = "cache";
/// The columns of `lvs` that describe a cache.
pub(super) const COLUMNS: &str =
    "cache_mode,kernel_cache_policy,chunk_size,kernel_cache_settings,kernel_metadata_format";
/// The smallest block of a cache; every block is a multiple of it (lvmcache(7)).
const CHUNK_UNIT: u64 = 32 << 10;
const LVS: &str = "lvs --reportformat json";

/// The cache of an LVM volume.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LvmCacheSpec {
    /// The number of members, after those for data, that hold the cache; 1 by default.
    #[serde(default = "one")]
    pub devices: usize,
    /// The cache mode: whether a write is done when it is on the disk (`writethrough`) or in
    /// the cache (`writeback`).
    pub mode: LvmCacheMode,
    /// The size of a block, the unit of promotion and demotion: a multiple of 32k up to 1g;
    /// LVM's default is 64k, or more where the cache is so large that there would be more than
    /// a million blocks.
    #[serde(default, deserialize_with = "crate::array::spec::optional_size")]
    pub chunk: Option<Bytes>,
    /// The policy for promotions: `smq` (the default), or `cleaner`, which writes back
    /// and promotes nothing.
    pub policy: Option<String>,
    /// The settings of the policy and the target: `migration_threshold`, sectors.
    #[serde(default)]
    pub settings: BTreeMap<String, u64>,
}

named! {
    /// The treatment of writes by a cache.
    pub enum LvmCacheMode {
        /// Writes are done when both the cache and the disk have them.
        WriteThrough = "writethrough",
        /// Writes are done when the cache has them, if it has the block.
        WriteBack = "writeback",
    }
}

const fn one() -> usize {
    1
}

impl LvmCacheSpec {
    /// Checks that the cache can be built; the error is the reason why not.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.devices == 0 {
            return Err("a cache needs a device: leave [build.lvm.cache] out".to_owned());
        }
        let suits = |chunk: Bytes| {
            chunk.0.is_multiple_of(CHUNK_UNIT) && (CHUNK_UNIT..=1 << 30).contains(&chunk.0)
        };
        match self.chunk {
            Some(chunk) if !suits(chunk) => Err(format!(
                "chunk {chunk} of the cache is no multiple of 32 KiB up to 1 GiB"
            )),
            _ => Ok(()),
        }
    }

    /// The commands that put the cache before the volume, once that exists.
    pub(super) fn attach(&self, array: &Built, data: usize) -> Vec<Command> {
        let all = devices(&array.members);
        let cache = &all[data..];
        let mut extend = vec!["--yes", &array.name];
        extend.extend(cache);
        let mut create = vec!["--yes", "--wipesignatures", "y", "--name", CACHE, "--type"];
        create.extend(["linear", "--extents", "100%FREE", &array.name]);
        create.extend(cache);
        let convert = [
            "--yes",
            "--type",
            "cache",
            "--cachevol",
            CACHE,
            "--cachemode",
        ];
        let mut convert: Vec<String> = convert.map(str::to_owned).into();
        convert.push(self.mode.name().to_owned());
        if let Some(chunk) = self.chunk {
            convert.extend(["--chunksize".to_owned(), format!("{}k", chunk.0 / 1024)]);
        }
        if let Some(policy) = &self.policy {
            convert.extend(["--cachepolicy".to_owned(), policy.clone()]);
        }
        for (name, value) in &self.settings {
            convert.extend(["--cachesettings".to_owned(), format!("{name}={value}")]);
        }
        convert.push(volume(array));
        vec![
            destroying("vgextend", &all, &extend),
            destroying("lvcreate", &all, &create),
            destroying("lvconvert", &all, &convert),
        ]
    }

    /// Adds the settings that LVM and the kernel report, from a row of `lvs`.
    pub(super) fn settings(&self, reader: &mut Reader<'_>, column: &dyn Fn(&str) -> String) {
        reader.found("cache_mode", Some(self.mode), column("cache_mode"), LVS);
        // LVM falls back to `mq` where it finds no module of the name, as with a built-in one; in
        // Linux since 4.6 that is `smq` by its old name (drivers/md/dm-cache-policy-smq.c).
        let policy = match column("kernel_cache_policy").as_str() {
            "mq" => "smq".to_owned(),
            found => found.to_owned(),
        };
        reader.found("cache_policy", self.policy.as_ref(), policy, LVS);
        let chunk = self.chunk.map(|chunk| chunk.0);
        reader.found("cache_chunk", chunk, column("chunk_size"), LVS);
        let format = column("kernel_metadata_format");
        reader.found("cache_metadata_format", None::<&str>, format, LVS);
        let found = column("kernel_cache_settings");
        for (name, value) in &self.settings {
            let pairs = found.split([',', ' ']);
            let mut values = pairs.filter_map(|pair| pair.split_once('='));
            let value_found = values.find(|(key, _)| key == name);
            let value_found = value_found.map_or("nothing", |(_, value)| value);
            reader.found(&format!("cache_{name}"), Some(value), value_found, LVS);
        }
    }
}

/// The target's name, `raidlab0-volume`; a `-` in a name is doubled.
fn target_name(array: &Built) -> String {
    format!("{}-{VOLUME}", array.name.replace('-', "--"))
}

/// The cache's state in the output of `dmsetup status`. Without `--noflush` the target would write
/// its metadata first.
pub(super) fn state(target: &dyn Target, array: &Built) -> Result<CacheState> {
    let words = ["status", "--noflush", &target_name(array)];
    let output = target.run(&Command::reads("dmsetup", words))?;
    parse_status(&output.stdout).ok_or_else(|| {
        SystemError::unreadable(
            "dmsetup status",
            1,
            format!("`{}` is no state of a cache", output.stdout.trim()),
        )
    })
}

/// Reads a line of the target's (Linux, Documentation/admin-guide/device-mapper,
/// cache.rst): start, length, `cache`, the metadata's block size and its use, the
/// cache's block size in sectors and its use, hits and misses of reads and of
/// writes, demotions, promotions, dirty blocks.
fn parse_status(text: &str) -> Option<CacheState> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let place = words.iter().position(|word| *word == "cache")?;
    let number = |at: usize| words.get(place + at)?.parse::<u64>().ok();
    let block = number(3)?.checked_mul(512)?;
    Some(CacheState {
        dirty: Bytes(number(11)?.checked_mul(block)?),
        counts: Some(CacheCounts {
            read_hits: number(5)?,
            read_misses: number(6)?,
            write_hits: number(7)?,
            write_misses: number(8)?,
            demotions: number(9)?,
            promotions: number(10)?,
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_target_is_read_by_its_places() {
        let line = "0 8372224 cache 8 42/2048 128 1203/6240 5 6 7 8 90 100 11 2 metadata2 \
                    writeback 2 migration_threshold 2048 smq 0 rw - ";
        let state = parse_status(line).expect("a state");
        assert_eq!(state.dirty, Bytes(11 * 65536));
        let counts = state.counts.expect("counts");
        assert_eq!((counts.read_hits, counts.read_misses), (5, 6));
        assert_eq!((counts.write_hits, counts.write_misses), (7, 8));
        assert_eq!((counts.demotions, counts.promotions), (90, 100));
        assert_eq!(parse_status("0 8372224 cache Fail"), None);
        assert_eq!(parse_status("0 8372224 linear 254:0 2048"), None);
        assert_eq!(parse_status("cache 8 1/2 99999999999999999999 1/2"), None);
    }
}
