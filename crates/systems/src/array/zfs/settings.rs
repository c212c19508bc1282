//! The settings in force, read back from ZFS beside the requested ones.

use super::ZfsSpec;
use super::properties::{self, Property};
use crate::array::steps::printed;
use crate::array::{Built, ReadBack, Result};
use raidlab_shell::{Command, Target};
use raidlab_units::parse_bytes;

/// Properties of the pool that matter to a measurement.
const POOL: &str = include_str!("properties/read-pool.txt");

/// Properties of a volume or data set that matter; each of the two lacks some of them.
const DATASET: &str = include_str!("properties/read-data.txt");

/// Parts of the names of the module's parameters that matter: memory use, read-ahead, the interval
/// of transaction groups, the number of requests of each kind of work at a disk, the throttling of
/// a resilver. Linux writes them `zfs_arc_max`, FreeBSD `vfs.zfs.arc.max` or `vfs.zfs.arc_max`.
const PARAMETERS: &str = include_str!("properties/read-parameters.txt");

const LINUX_MODULE: &str = "/sys/module/zfs";

impl ZfsSpec {
    pub(super) fn read_settings(
        &self,
        target: &dyn Target,
        array: &Built,
    ) -> Result<Vec<ReadBack>> {
        let pool = properties::read(target, "zpool", &array.name)?;
        let dataset = properties::read(target, "zfs", &self.dataset(array))?;
        let mut all = vec![self.ashift_found(target, array, &pool)?];
        let asked = self.pool_options.iter();
        let asked: Vec<(&str, String)> = asked.map(|(n, v)| (n.as_str(), v.clone())).collect();
        all.extend(compare("zpool get", &asked, &pool, POOL));
        let mut asked = self.asked();
        if let Some(volume) = &self.volume {
            let size = self.volume_size(volume, &array.members);
            asked.push(("volsize", size.0.to_string()));
            if let Some(block) = volume.volblocksize {
                asked.push(("volblocksize", block.0.to_string()));
            }
            if volume.sparse {
                asked.push(("refreservation", "none".to_owned()));
            }
        }
        all.extend(compare("zfs get", &asked, &dataset, DATASET));
        all.extend(parameters(target)?);
        Ok(all)
    }

    /// The ashift in force: the pool's property has it only where it was set (else 0), and log
    /// devices may differ, so it is read from the configuration of each vdev.
    fn ashift_found(
        &self,
        target: &dyn Target,
        array: &Built,
        pool: &[Property],
    ) -> Result<ReadBack> {
        let zdb = Command::reads("zdb", ["-C", &array.name]);
        let text = printed(target, &zdb)?;
        let lines = text.lines().map(str::trim);
        let mut found: Vec<&str> = lines
            .filter_map(|line| line.strip_prefix("ashift: "))
            .collect();
        found.dedup();
        let property = pool.iter().find(|p| p.name == "ashift");
        let (found, source) = match (found.is_empty(), property) {
            (false, _) => (found.join(", "), "zdb -C"),
            (true, Some(p)) => (p.value.clone(), "zpool get"),
            (true, None) => (String::from("unknown"), "zpool get"),
        };
        Ok(ReadBack::new("ashift", self.ashift, found, source))
    }
}

/// Adds the requested properties, then the others that matter. A requested one that does not exist
/// was not applied.
fn compare(
    source: &str,
    asked: &[(&str, String)],
    found: &[Property],
    besides: &str,
) -> Vec<ReadBack> {
    let value = |name: &str| found.iter().find(|p| p.name == name).map(|p| &p.value);
    let asked_for = asked.iter().map(|(name, asked)| ReadBack {
        name: (*name).to_owned(),
        applied: value(name).is_some_and(|found| same(asked, found)),
        asked: Some(asked.clone()),
        found: value(name)
            .map_or("no such property", String::as_str)
            .to_owned(),
        source: source.to_owned(),
    });
    let rest = besides
        .split_whitespace()
        .filter(|name| asked.iter().all(|(other, _)| other != name));
    let rest =
        rest.filter_map(|name| Some(ReadBack::new(name, None::<&str>, value(name)?, source)));
    asked_for.chain(rest).collect()
}

/// Whether two values mean the same: `128k` and `131072`, or `none` and `0`.
fn same(asked: &str, found: &str) -> bool {
    let number = |text: &str| match text {
        "none" => Some(0),
        text => parse_bytes(text).ok().map(|bytes| bytes.0),
    };
    asked == found || number(asked).is_some_and(|asked| Some(asked) == number(found))
}

/// The module's version and parameters: on Linux by one `grep` over the files, on FreeBSD by
/// `sysctl`. `grep` ends with 2 when it could not read one of them; the others count.
fn parameters(target: &dyn Target) -> Result<Vec<ReadBack>> {
    let files = ["parameters", "version"].map(|name| format!("{LINUX_MODULE}/{name}"));
    let linux = Command::reads(
        "grep",
        ["-rH", ""].map(str::to_owned).into_iter().chain(files),
    );
    let output = target.output(&linux)?;
    let (text, separator, source) = if output.stdout.is_empty() {
        let sysctl = Command::reads("sysctl", ["vfs.zfs"]);
        (target.output(&sysctl)?.stdout, ": ", "sysctl vfs.zfs")
    } else {
        (output.stdout, ":", LINUX_MODULE)
    };
    let mut all: Vec<ReadBack> = text
        .lines()
        .filter_map(|line| line.split_once(separator))
        .filter(|(name, _)| {
            let name = name.replace('.', "_");
            PARAMETERS
                .split_whitespace()
                .any(|part| name.contains(part))
        })
        .map(|(name, value)| {
            let name = name.rsplit('/').next().unwrap_or(name);
            ReadBack::new(name, None::<&str>, value.trim(), source)
        })
        .collect();
    // The files of a folder have no fixed order.
    all.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(all)
}
