//! What ZFS counts: its memory cache (ARC), the second-level cache, and the
//! requests of each vdev.

use super::status::{Section, nice_number};
use crate::array::SystemError;
use raidlab_shell::{Command, Target};

/// Where Linux has the ARC's counters.
pub const LINUX_ARCSTATS: &str = "/proc/spl/kstat/zfs/arcstats";

/// The name below which FreeBSD's `sysctl` has these counters.
pub const FREEBSD_ARCSTATS: &str = "kstat.zfs.misc.arcstats";

/// The ARC's counters since the module was loaded; sizes in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ArcStats {
    /// How many bytes the cache holds now.
    pub size: u64,
    /// What it may hold at most.
    pub c_max: u64,
    /// What it would hold now by its own rule.
    pub c: u64,
    /// Blocks asked for and found in memory.
    pub hits: u64,
    /// Blocks asked for and not found.
    pub misses: u64,
    /// Hits for data that a reader waited for.
    pub demand_data_hits: u64,
    /// Misses for data that a reader waited for.
    pub demand_data_misses: u64,
    /// Misses that the cache devices had.
    pub l2_hits: u64,
    /// Misses that they did not have.
    pub l2_misses: u64,
    /// How many bytes the cache devices hold.
    pub l2_size: u64,
    /// How many bytes were read from the cache devices.
    pub l2_read_bytes: u64,
    /// How many bytes were written to the cache devices.
    pub l2_write_bytes: u64,
}

/// Reads the ARC's counters from a Linux kstat file (`name type value`) or
/// from FreeBSD's sysctl (`kstat.zfs.misc.arcstats.name: value`). Counters
/// that a release does not have are 0.
///
/// # Errors
/// When it has neither a size nor hits: then it is something else.
pub fn parse_arcstats(text: &str) -> Result<ArcStats, SystemError> {
    let value = |wanted: &str| {
        text.lines().find_map(|line| {
            let mut words = line.split_whitespace();
            let name = words.next()?.trim_end_matches(':');
            let name = name.rsplit('.').next().unwrap_or(name);
            let last = words.next_back()?;
            (name == wanted).then(|| last.parse::<u64>().ok())?
        })
    };
    let (Some(size), Some(hits)) = (value("size"), value("hits")) else {
        return Err(SystemError::Unreadable {
            source_name: "arcstats".to_owned(),
            line: 0,
            problem: "it has no `size` and `hits`".to_owned(),
        });
    };
    let or_none = |name| value(name).unwrap_or(0);
    Ok(ArcStats {
        size,
        hits,
        c_max: or_none("c_max"),
        c: or_none("c"),
        misses: or_none("misses"),
        demand_data_hits: or_none("demand_data_hits"),
        demand_data_misses: or_none("demand_data_misses"),
        l2_hits: or_none("l2_hits"),
        l2_misses: or_none("l2_misses"),
        l2_size: or_none("l2_size"),
        l2_read_bytes: or_none("l2_read_bytes"),
        l2_write_bytes: or_none("l2_write_bytes"),
    })
}

/// The ARC's counters now; `None` where ZFS is not loaded.
///
/// # Errors
/// When the machine cannot be asked or answers something else.
pub fn arcstats(target: &dyn Target) -> Result<Option<ArcStats>, SystemError> {
    let text = match target.read(LINUX_ARCSTATS) {
        Ok(text) => text,
        Err(error) if error.is_missing() => {
            let output = target.output(&Command::reads("sysctl", [FREEBSD_ARCSTATS]))?;
            if output.code != Some(0) {
                return Ok(None);
            }
            output.stdout
        }
        Err(error) => return Err(error.into()),
    };
    parse_arcstats(&text).map(Some)
}

/// The command whose text [`parse_iostat`] reads: the mean rates since the
/// pool was imported. Not `-H`: that leaves out the headings of log and cache.
#[must_use]
pub fn iostat(pool: &str) -> Command {
    Command::reads("zpool", ["iostat", "-pv", pool])
}

/// The rates of one vdev as `zpool iostat` prints them: means since the pool
/// was imported, or over the interval that it was given.
#[derive(Debug, Clone, PartialEq)]
pub struct VdevRates {
    /// 0 for the pool, 1 for what is below it, and so on.
    pub depth: usize,
    /// The part of the pool that the vdev belongs to.
    pub section: Section,
    /// The name of the pool, the group or the disk: `mirror-0`, `sdb`.
    pub name: String,
    /// Bytes allocated; `None` where it is not counted.
    pub allocated: Option<f64>,
    /// Bytes that are free, where it is told.
    pub free: Option<f64>,
    /// Reads per second.
    pub reads: f64,
    /// Writes per second.
    pub writes: f64,
    /// Bytes read per second.
    pub read_bytes: f64,
    /// Bytes written per second.
    pub write_bytes: f64,
}

/// Reads the table of `zpool iostat -v`, with `-p` (whole numbers) or without
/// (`1.11K`). zfs-fuse prints no heading for log devices:
/// they stand among the data's.
///
/// # Errors
/// When a line has fewer than seven columns, or no numbers in them.
pub fn parse_iostat(text: &str) -> Result<Vec<VdevRates>, SystemError> {
    let mut section = Section::Data;
    let mut all: Vec<VdevRates> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [name, values @ ..] = words.as_slice() else {
            continue;
        };
        let rule = name.chars().all(|c| c == '-');
        if rule || *name == "capacity" || (*name == "pool" && values.first() == Some(&"alloc")) {
            continue;
        }
        if let Some(new) = Section::of_heading(name)
            && values.iter().all(|value| *value == "-")
        {
            section = new;
            continue;
        }
        let numbers: Vec<Option<f64>> = values.iter().map(|text| nice_number(text)).collect();
        let [
            allocated,
            free,
            Some(reads),
            Some(writes),
            Some(read_bytes),
            Some(write_bytes),
            ..,
        ] = numbers[..]
        else {
            return Err(SystemError::Unreadable {
                source_name: "zpool iostat".to_owned(),
                line: index + 1,
                problem: format!("expected a name and six numbers: `{}`", line.trim()),
            });
        };
        all.push(VdevRates {
            depth: (line.len() - line.trim_start().len()) / 2,
            section,
            name: (*name).to_owned(),
            allocated,
            free,
            reads,
            writes,
            read_bytes,
            write_bytes,
        });
    }
    Ok(all)
}
