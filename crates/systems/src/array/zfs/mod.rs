//! ZFS on Linux and FreeBSD: a pool with one volume or one data set in it.
//!
//! The pool has the array's name. It holds the volume `vol` (`/dev/zvol/NAME/vol`, which appears a
//! moment after it is created) or the data set `data`, mounted on the array's folder. Every setting
//! is given when they are created, not set afterwards: a wrong one fails, and none can miss its
//! data set, unlike `zfs set primarycache=metadata` without a name did in the comparison of 2015.
//! The pool is kept in the system's cache file, so that it is imported again, and found, after a
//! crash of the machine; `cachefile` among the pool's options changes that.
//!
//! Members: first those that hold data, then `log` of them, then `cache`.
//!
//! The verbs for a member that holds data:
//!
//! | verb | mirrors | raidz |
//! |---|---|---|
//! | fail | `offline -f`: faulted, keeps its labels | the same |
//! | remove | `detach`: forgotten (as in 2015) | `offline`: raidz cannot lose a member |
//! | add | `attach`: all data are copied | blanked, `replace`: all data are copied |
//! | re-add | `online`: only what it missed; not after `detach` | the same |
//!
//! "All data" are the allocated blocks, not the disk's size. `offline -f` came
//! with ZFS on Linux 0.8; before that fail ends with an error.
//! Source: zpool-offline(8), zpool-detach(8), zpool-attach(8),
//! zpool-replace(8), zpool-online(8), zpool-clear(8) of OpenZFS.

use super::spec::optional_size;
use super::steps::{printed, smallest};
use super::{
    Access, ArrayStatus, ArraySystem, Built, Described, Member, Need, OperatingSystem, ReadBack,
    ReadState, Result, SystemError,
};
use raidlab_shell::{Command, Target, Watched};
use raidlab_units::Bytes;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::Duration;

mod commands;
mod described;
pub mod properties;
mod settings;
pub mod status;

impl ReadState for ZfsSpec {
    /// The command that reads the kernel's tables, without touching the disks. Its text is the same
    /// in every release since 2010, and so is used rather than the JSON of OpenZFS 2.3.
    fn sources(&self, array: &Built) -> Vec<Watched> {
        let status = Command::reads("zpool", ["status", &array.name]);
        vec![Watched::Command(status.timeout(PATIENCE))]
    }

    fn interpret(&self, array: &Built, contents: &[Option<String>]) -> Result<ArrayStatus> {
        let text = contents.first().and_then(Option::as_deref).unwrap_or("");
        let pools = status::parse_status(text)?;
        let pool = pools.iter().find(|pool| pool.name == array.name);
        let pool = pool.ok_or_else(|| SystemError::no_array(&array.name))?;
        Ok(status::interpret(pool, array))
    }

    fn settings(&self, target: &dyn Target, array: &Built) -> Result<Vec<ReadBack>> {
        self.read_settings(target, array)
    }

    fn find(&self, target: &dyn Target, prefix: &str) -> Result<Vec<Built>> {
        let list = Command::reads("zpool", ["list", "-H", "-o", "name"]).timeout(PATIENCE);
        let text = printed(target, &list)?;
        let names = text.lines().map(str::trim);
        names
            .filter(|name| name.starts_with(prefix))
            .map(|name| commands::find_one(target, name))
            .collect()
    }
}

#[cfg(test)]
mod tests;

/// The arrangement of the members that hold data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Topology {
    /// A single disk, without a copy.
    Single,
    /// Blocks are striped over all disks; one copy of each.
    Stripe,
    /// All disks hold a copy.
    Mirror,
    /// Blocks are striped over mirrors of `copies` disks.
    StripedMirrors,
    /// There is one disk's worth of parity.
    Raidz1,
    /// There are two disks' worth of parity.
    Raidz2,
    /// There are three disks' worth of parity.
    Raidz3,
}

impl Topology {
    fn name(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Stripe => "stripe",
            Self::Mirror => "mirror",
            Self::StripedMirrors => "striped mirrors",
            Self::Raidz1 => "raidz1",
            Self::Raidz2 => "raidz2",
            Self::Raidz3 => "raidz3",
        }
    }

    /// The number of parity disks of a raidz.
    pub(crate) fn parity(self) -> Option<usize> {
        match self {
            Self::Raidz1 => Some(1),
            Self::Raidz2 => Some(2),
            Self::Raidz3 => Some(3),
            _ => None,
        }
    }
}

/// A volume (zvol): a block device in the pool.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VolumeSpec {
    /// The size of the volume; by default four fifths of the pool's capacity.
    #[serde(default, deserialize_with = "optional_size")]
    pub size: Option<Bytes>,
    /// The size of the volume's blocks; the system's default is 8 KiB, since OpenZFS 2.2 16 KiB.
    #[serde(default, deserialize_with = "optional_size")]
    pub volblocksize: Option<Bytes>,
    /// Whether to reserve no space for the volume; default no.
    #[serde(default)]
    pub sparse: bool,
}

/// The smallest description of one, in JSON, with which leftovers are looked for.
pub(crate) const LEAST: &str = r#"{"topology": "mirror"}"#;

/// The settings of a ZFS pool; missing ones have the system's default.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ZfsSpec {
    /// The arrangement of the members.
    pub topology: Topology,
    /// The number of disks in each of the striped mirrors; default 2.
    pub copies: Option<usize>,
    /// The volume; without one there is a data set.
    pub volume: Option<VolumeSpec>,
    /// The number of members that are log devices (SLOG); default 0.
    #[serde(default)]
    pub log: usize,
    /// Whether the log devices are one mirror; default no.
    #[serde(default)]
    pub log_mirror: bool,
    /// The number of members that are cache devices (L2ARC); default 0.
    #[serde(default)]
    pub cache: usize,
    /// Whether mirrors are rebuilt in the order of the disk (`-s`), not of the data, when a member
    /// is added: OpenZFS 2.0 and later. Default no.
    #[serde(default)]
    pub sequential: bool,
    /// The binary logarithm of the smallest block: 9 or 12; by default as the disks report.
    pub ashift: Option<u32>,
    /// The largest block of a data set's files.
    #[serde(default, deserialize_with = "optional_size")]
    pub recordsize: Option<Bytes>,
    /// The property `compression`: `off`, `on`, `lz4`, `zstd` and others.
    pub compression: Option<String>,
    /// The property `checksum`: `on`, `off`, `fletcher4`, `sha256` and others.
    pub checksum: Option<String>,
    /// The property `dedup`, whether equal blocks are stored once: `off`, `on`, `verify`, ...
    pub dedup: Option<String>,
    /// Whether access times of files are recorded; data sets only.
    pub atime: Option<bool>,
    /// The property `sync`, what waits for stable storage: `standard`, `always` or `disabled`.
    pub sync: Option<String>,
    /// The data that memory may cache: `all`, `metadata`, `none`.
    pub primarycache: Option<String>,
    /// The data that the cache devices may hold.
    pub secondarycache: Option<String>,
    /// The target that synchronous writes are tuned for: `latency`, `throughput`.
    pub logbias: Option<String>,
    /// The property `direct`: `standard`, `always`, `disabled`; OpenZFS 2.3 and later,
    /// data sets only.
    pub direct: Option<String>,
    /// Further properties of the pool.
    #[serde(default)]
    pub pool_options: BTreeMap<String, String>,
    /// Further properties of the volume or data set.
    #[serde(default)]
    pub options: BTreeMap<String, String>,
}

/// The role of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Data,
    Log,
    Cache,
}

/// The time limit for commands that may wait for ever on a pool whose disks are gone.
const PATIENCE: Duration = Duration::from_secs(120);

impl ZfsSpec {
    pub(crate) fn copies(&self) -> usize {
        self.copies.unwrap_or(2)
    }

    /// The number of `count` members that hold data.
    pub(crate) fn data_count(&self, count: usize) -> usize {
        count.saturating_sub(self.log + self.cache)
    }

    fn role(&self, count: usize, slot: usize) -> Role {
        let data = self.data_count(count);
        if slot < data {
            Role::Data
        } else if slot < data + self.log {
            Role::Log
        } else {
            Role::Cache
        }
    }

    /// The volume's or data set's full name.
    fn dataset(&self, array: &Built) -> String {
        let child = if self.volume.is_some() { "vol" } else { "data" };
        format!("{}/{child}", array.name)
    }

    /// The requested properties of the volume or data set, with their values in ZFS's form.
    fn asked(&self) -> Vec<(&str, String)> {
        let size = |size: Option<Bytes>| size.map(|size| size.0.to_string());
        let switch = |on: bool| if on { "on" } else { "off" }.to_owned();
        let typed = [
            ("recordsize", size(self.recordsize)),
            ("compression", self.compression.clone()),
            ("checksum", self.checksum.clone()),
            ("dedup", self.dedup.clone()),
            ("atime", self.atime.map(switch)),
            ("sync", self.sync.clone()),
            ("primarycache", self.primarycache.clone()),
            ("secondarycache", self.secondarycache.clone()),
            ("logbias", self.logbias.clone()),
            ("direct", self.direct.clone()),
        ];
        let typed = typed.into_iter().filter_map(|(name, v)| Some((name, v?)));
        let more = self.options.iter();
        typed
            .chain(more.map(|(name, value)| (name.as_str(), value.clone())))
            .collect()
    }

    /// The size of the volume, a whole number of blocks of any size that a volume can have.
    fn volume_size(&self, volume: &VolumeSpec, members: &[Member]) -> Bytes {
        const LARGEST_BLOCK: u64 = 16 << 20;
        volume.size.unwrap_or_else(|| {
            let four_fifths = self.pool_capacity(members).0 / 5 * 4;
            Bytes(four_fifths / LARGEST_BLOCK * LARGEST_BLOCK)
        })
    }

    /// The capacity of the pool: the members without parity and copies, where each mirror or raidz
    /// counts its smallest member for all of them, less the 32nd part that ZFS reserves, at most
    /// 128 GiB, and at least 128 MiB or half of a small pool (spa_misc.c, `spa_get_slop_space`).
    fn pool_capacity(&self, members: &[Member]) -> Bytes {
        let data = &members[..self.data_count(members.len())];
        let each = |mirror: &[Member]| smallest(mirror).0;
        let all: u64 = match self.topology {
            Topology::Single | Topology::Mirror => each(data),
            Topology::Stripe => data.iter().map(|member| member.size.0).sum(),
            Topology::StripedMirrors => data.chunks(self.copies().max(1)).map(each).sum(),
            Topology::Raidz1 | Topology::Raidz2 | Topology::Raidz3 => {
                each(data).saturating_mul(data.len() as u64)
            }
        };
        let raw = match self.topology.parity() {
            Some(parity) => self.in_raidz(all, data.len() as u64, parity as u64),
            None => all,
        };
        let slop = (raw / 32).min(128 << 30).max((raw / 2).min(128 << 20));
        Bytes(raw - slop)
    }

    /// The part of a raidz's sectors that is left for data: each block has its own parity, and its
    /// number of sectors is rounded up to a multiple of the parity and one (vdev_raidz.c,
    /// `vdev_raidz_asize`). Small blocks leave much less than large ones.
    fn in_raidz(&self, all: u64, disks: u64, parity: u64) -> u64 {
        let block = match &self.volume {
            Some(volume) => volume.volblocksize.map_or(8 << 10, |size| size.0),
            None => self.recordsize.map_or(128 << 10, |size| size.0),
        };
        // Disks with larger sectors are the rule, and leave the least room.
        let shift = self.ashift.filter(|shift| *shift != 0).unwrap_or(12);
        let sectors = block.div_ceil(1 << shift);
        let rows = sectors.div_ceil(disks.saturating_sub(parity).max(1));
        let taken = (sectors + rows * parity).next_multiple_of(parity + 1);
        let data = u128::from(all) * u128::from(block) / (u128::from(taken) << shift);
        u64::try_from(data).unwrap_or(u64::MAX)
    }

    /// Checks that the members suit the topology.
    fn check_members(&self, count: usize) -> Result<(), String> {
        let data = self.data_count(count);
        if data == 0 {
            return Err(format!(
                "{count} members leave none for data beside {} log and {} cache devices",
                self.log, self.cache
            ));
        }
        let need = |least: usize| {
            (data >= least)
                .then_some(())
                .ok_or_else(|| format!("it takes {least} disks or more and there are {data}"))
        };
        match self.topology {
            Topology::Single if data != 1 => Err(format!("it is one disk and there are {data}")),
            Topology::Single => Ok(()),
            Topology::Stripe | Topology::Mirror => need(2),
            Topology::StripedMirrors => {
                let copies = self.copies();
                if copies < 2 || !data.is_multiple_of(copies) || data == copies {
                    return Err(format!(
                        "{data} disks do not make two or more mirrors of {copies}"
                    ));
                }
                Ok(())
            }
            Topology::Raidz1 | Topology::Raidz2 | Topology::Raidz3 => {
                need(self.topology.parity().unwrap_or(0) + 1)
            }
        }
    }

    /// Checks that the settings agree with each other.
    fn settings_agree(&self) -> Result<(), String> {
        if self.copies.is_some() && self.topology != Topology::StripedMirrors {
            return Err("`copies` is for striped mirrors".to_owned());
        }
        if self.log_mirror && self.log < 2 {
            return Err("`log_mirror` takes 2 log devices or more".to_owned());
        }
        let mirrors = matches!(self.topology, Topology::Mirror | Topology::StripedMirrors);
        if self.sequential && !mirrors {
            return Err("`sequential` is for mirrors".to_owned());
        }
        let asked = self.asked();
        for (index, (name, _)) in asked.iter().enumerate() {
            if asked[..index].iter().any(|(other, _)| other == name) {
                return Err(format!("`{name}` is given twice"));
            }
            let of_files = ["recordsize", "atime", "direct"].contains(name);
            if of_files && self.volume.is_some() {
                return Err(format!("a volume has no `{name}`"));
            }
        }
        let whole = |size: &Bytes| size.0 >= 512 && size.0.is_power_of_two();
        let sizes = [
            ("recordsize", self.recordsize),
            (
                "volblocksize",
                self.volume.as_ref().and_then(|v| v.volblocksize),
            ),
        ];
        for (name, size) in sizes {
            if size.is_some_and(|size| !whole(&size)) {
                return Err(format!("`{name}` must be a power of two from 512"));
            }
        }
        // `ASHIFT_MIN` and `ASHIFT_MAX` of OpenZFS; 0 means as the disks report.
        if self
            .ashift
            .is_some_and(|ashift| ashift != 0 && !(9..=16).contains(&ashift))
        {
            return Err("`ashift` must be from 9 to 16".to_owned());
        }
        if self.pool_options.contains_key("ashift") {
            return Err("`ashift` is a field of its own".to_owned());
        }
        Ok(())
    }
}

impl ArraySystem for ZfsSpec {
    fn runs_on(&self) -> &'static [OperatingSystem] {
        &[OperatingSystem::Linux, OperatingSystem::FreeBsd]
    }

    fn needs(&self) -> Vec<Need> {
        let program = |name| Need::Program {
            name,
            apt: "apt-get install zfsutils-linux",
            pkg: "",
        };
        vec![program("zpool"), program("zfs"), Need::Module("zfs")]
    }

    fn check_settings(&self) -> Result<()> {
        self.settings_agree().or_else(|reason| self.refuse(reason))
    }

    fn check(&self, members: &[Member]) -> Result<()> {
        self.check_members(members.len())
            .or_else(|reason| self.refuse(reason))?;
        self.check_settings()
    }

    fn capacity(&self, members: &[Member]) -> Bytes {
        match &self.volume {
            Some(volume) => self.volume_size(volume, members),
            None => self.pool_capacity(members),
        }
    }

    fn create(&self, array: &Built) -> Result<Vec<Command>> {
        self.check(&array.members)?;
        Ok(self.create_commands(array))
    }

    fn access(&self, array: &Built) -> Access {
        match self.volume {
            Some(_) => Access::Device(format!("/dev/zvol/{}", self.dataset(array))),
            None => Access::Folder(array.folder.clone()),
        }
    }

    fn destroy(&self, array: &Built) -> Vec<Command> {
        commands::destroy(array)
    }
}
