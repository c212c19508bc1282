//! gflash, a mirror with an optional write-back cache for FreeBSD 9 and 10 by a third party:
//! it is not part of FreeBSD and is distributed as a binary (version 14 in
//! geomflash/geomflash on GitHub).
//!
//! Source: gflash(8) of that version and the logs of its author's comparisons. `insert` copies
//! everything: afterwards `list` counts from `Synchronized: 0%`.

use super::described::{Described, written};
use super::geom::array::{GeomArray, providers};
use super::geom::{Class, Geom, Part, redundant_status, usable};
use super::spec::optional_size;
use super::{ArrayStatus, Built, ChangeMembers, Member, MemberState, ReadBack, Result};
use raidlab_shell::Command;
use raidlab_units::Bytes;
use serde::Deserialize;

#[cfg(test)]
mod tests;

const CLASS: Class = Class {
    tool: "gflash",
    folder: "flash",
    module: "geom_flash",
};

/// The area that gflash reserves on each member: 4 022 272 bytes of a disk of 4 TB in the log
/// of 2015. Taken as fixed, rounded up to MiB.
const OVERHEAD_BYTES: u64 = 4 << 20;

/// The smallest description of one, in JSON, with which leftovers are looked for.
pub(crate) const LEAST: &str = "{}";

/// The settings of a gflash mirror; missing ones have the system's default.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GflashSpec {
    /// Whether the last member is the cache (an SSD); default no.
    #[serde(default)]
    pub cache: bool,
    /// The memory for the cache; gflash's default is 128 MiB. Only with `cache`.
    #[serde(default, deserialize_with = "optional_size")]
    pub ram: Option<Bytes>,
}

impl GflashSpec {
    fn is_cache(&self, array: &Built, slot: usize) -> bool {
        self.cache && slot + 1 == array.members.len()
    }

    /// The options that name a cache on `provider`.
    fn cache_words(&self, provider: &str) -> Vec<String> {
        let mut words = Vec::new();
        if let Some(Bytes(size)) = self.ram {
            words.extend(["-r".to_owned(), format!("{}m", size >> 20)]);
        }
        words.extend(["-c".to_owned(), provider.to_owned()]);
        words
    }
}

impl Described for GflashSpec {
    fn title(&self) -> String {
        if self.cache {
            format!("{} with cache", CLASS.tool)
        } else {
            CLASS.tool.to_owned()
        }
    }

    fn level(&self) -> Option<&'static str> {
        Some("mirror")
    }

    fn member_bytes_per_byte(&self, count: usize) -> Option<f64> {
        written(count, 1.0).filter(|_| !self.cache)
    }

    fn auxiliary(&self) -> &'static str {
        if self.cache { "cache" } else { "" }
    }
}

impl GeomArray for GflashSpec {
    const CLASS: Class = CLASS;
    const STOP: &'static str = "stop";

    /// With a cache a single disk is enough.
    fn settings_agree(&self) -> Result<()> {
        match self.ram {
            Some(_) if !self.cache => Err(CLASS.cannot("`ram` is the cache's; set `cache`")),
            Some(Bytes(size)) if size == 0 || !size.is_multiple_of(1 << 20) => {
                Err(CLASS.cannot("`ram` must be whole MiB"))
            }
            _ => Ok(()),
        }
    }

    fn accepts(&self, members: &[Member]) -> Result<()> {
        if members.len() < 2 {
            let count = members.len();
            return Err(CLASS.cannot(format!("it takes 2 members or more and there are {count}")));
        }
        Ok(())
    }

    fn room(&self, members: &[Member]) -> Bytes {
        let disks = members.len().saturating_sub(usize::from(self.cache));
        Bytes(usable(&members[..disks]).saturating_sub(OVERHEAD_BYTES))
    }

    fn label(&self, array: &Built) -> Vec<String> {
        let mut providers: Vec<String> = providers(array).collect();
        let mut words = vec!["create".to_owned()];
        if self.cache {
            let cache = providers.pop().unwrap_or_default();
            words.extend(self.cache_words(&cache));
        }
        words.push(array.name.clone());
        words.extend(providers);
        words
    }

    fn state(&self, array: &Built, geom: &Geom) -> ArrayStatus {
        let needed = 1 + usize::from(self.cache);
        redundant_status(geom, array, needed, member_state)
    }

    fn told(&self, _: &Built, geom: &Geom, source: &str) -> Vec<ReadBack> {
        let device = geom.providers.first();
        let size = device.and_then(|device| device.fields.get("Sectorsize"));
        let mut caches = geom.consumers.iter();
        let cache = caches.find(|part| part.fields.get("Role") == Some("CACHE"));
        let mut all = vec![
            ReadBack::new("sector_size", None::<&str>, size.unwrap_or(""), source),
            ReadBack::new("cache", Some(self.cache), cache.is_some(), source),
        ];
        if let Some(ram) = cache.and_then(|part| part.fields.get("RAM")) {
            let asked = self.ram.map(|size| format!("{}MB", size.0 >> 20));
            all.push(ReadBack::new("ram", asked, ram, source));
        }
        all
    }
}

impl ChangeMembers for GflashSpec {
    fn remove(&self, array: &Built, slot: usize) -> Result<Vec<Command>> {
        let provider = CLASS.provider(array, slot)?;
        Ok(vec![if self.is_cache(array, slot) {
            CLASS.changes(&["remove", "-c", provider, &array.name])
        } else {
            CLASS.changes(&["remove", &array.name, provider])
        }])
    }

    fn add(&self, array: &Built, slot: usize) -> Result<Vec<Command>> {
        let provider = CLASS.provider(array, slot)?;
        let mut words = vec!["insert".to_owned()];
        if self.is_cache(array, slot) {
            words.extend(self.cache_words(provider));
            words.push(array.name.clone());
        } else {
            words.extend([array.name.clone(), provider.to_owned()]);
        }
        Ok(vec![Command::destroys(CLASS.tool, words)])
    }

    fn re_add(&self, _: &Built, _: usize) -> Result<Vec<Command>> {
        Err(CLASS.cannot_re_add())
    }
}

/// The state of a member: every disk has its progress in the output, a finished one too; one below
/// 100 % is being copied onto. The cache has none.
fn member_state(part: &Part) -> MemberState {
    let role = part.fields.get("Role").unwrap_or("DATA");
    match (part.fields.get("State"), part.fields.number("Synchronized")) {
        (Some("START"), Some(100..)) => MemberState::InSync,
        (Some("START"), _) if role == "CACHE" => MemberState::InSync,
        (Some("START"), _) => MemberState::Recovering,
        _ => MemberState::Faulty,
    }
}
