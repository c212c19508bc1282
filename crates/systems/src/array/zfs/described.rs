//! The properties of a ZFS pool.

use super::{Topology, ZfsSpec};
use crate::array::described::{Described, written};
use crate::words::{RefusedWord, check_properties, check_value};
use std::time::Duration;

/// The time to wait after a drop of caches: the ARC of OpenZFS keeps its minimal size until a
/// thread that runs once a second lets it grow again (`arc_shrinker_scan`, `arc_reap_cb_check`).
/// A job that fills it earlier loses indirect blocks, by chance, which can cost up to a quarter
/// of the figure.
const ARC_STAYS_SMALL: Duration = Duration::from_secs(2);

/// Properties that only shape a pool: zpoolprops(7).
const POOL_PROPERTIES: &str = include_str!("properties/shape-pool.txt");

/// Properties that only shape a volume or a data set: zfsprops(7).
const DATA_PROPERTIES: &str = include_str!("properties/shape-data.txt");

impl Described for ZfsSpec {
    fn title(&self) -> String {
        let mut title = format!("ZFS {}", self.topology.name());
        for (count, what) in [(self.log, "log"), (self.cache, "cache")] {
            if count > 0 {
                title.push_str(" + ");
                title.push_str(what);
            }
        }
        title
    }

    fn level(&self) -> Option<&'static str> {
        Some(match self.topology {
            Topology::Single => "single",
            Topology::Stripe => "raid0",
            Topology::Mirror => "mirror",
            Topology::StripedMirrors => "mirrors",
            Topology::Raidz1 => "raidz1",
            Topology::Raidz2 => "raidz2",
            Topology::Raidz3 => "raidz3",
        })
    }

    fn check_words(&self) -> Result<(), RefusedWord> {
        let fields = [
            &self.compression,
            &self.checksum,
            &self.dedup,
            &self.sync,
            &self.primarycache,
            &self.secondarycache,
            &self.logbias,
            &self.direct,
        ];
        fields
            .into_iter()
            .flatten()
            .try_for_each(|value| check_value(value))?;
        check_properties(POOL_PROPERTIES, &self.pool_options)?;
        check_properties(DATA_PROPERTIES, &self.options)
    }

    fn member_bytes_per_byte(&self, count: usize) -> Option<f64> {
        let members = self.data_count(count);
        let whole = members as f64;
        let data = match self.topology {
            Topology::Single | Topology::Mirror => 1.0,
            Topology::Stripe => whole,
            Topology::StripedMirrors => whole / self.copies() as f64,
            Topology::Raidz1 | Topology::Raidz2 | Topology::Raidz3 => {
                whole - self.topology.parity()? as f64
            }
        };
        written(members, data)
    }

    fn copies_on_write(&self) -> bool {
        true
    }

    fn has_own_file_system(&self) -> bool {
        true
    }

    fn tells_deduplication(&self) -> bool {
        true
    }

    fn auxiliary(&self) -> &'static str {
        match (self.cache > 0, self.log > 0) {
            (true, true) => "cache log",
            (true, false) => "cache",
            (false, true) => "log",
            (false, false) => "",
        }
    }

    fn version_command(&self) -> Option<(&'static str, &'static [&'static str])> {
        Some(("zfs", &["version"]))
    }

    /// The log devices come first, then the cache devices.
    fn role(&self, count: usize, slot: usize) -> Option<&'static str> {
        let from_end = count.saturating_sub(slot);
        if from_end <= self.cache {
            Some("cache")
        } else {
            (from_end <= self.cache + self.log).then_some("log")
        }
    }

    fn idle_after_drop(&self) -> Duration {
        ARC_STAYS_SMALL
    }
}
