//! The facts about a machine that results depend on.
//!
//! Each fact has a dotted name, a value, a unit and a source. The names are those of [`NAMES`], and
//! no others. A fact that a machine does not report is absent, never empty.

mod disks;
mod freebsd;
mod linux;
mod names;

pub use names::{Known, NAMES, known};
pub use raidlab_results::Fact;

use crate::{Inventory, InventoryError, System};
use raidlab_shell::Target;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Facts while they are collected; the unit is looked up by the name.
#[derive(Default)]
struct Facts(Vec<Fact>);

impl Facts {
    fn add(&mut self, name: impl Into<String>, value: impl ToString, source: &str) {
        let name = name.into();
        let value = value.to_string().trim().to_owned();
        if value.is_empty() {
            return;
        }
        self.0.push(Fact {
            unit: known(&name).map_or("", |known| known.unit).to_owned(),
            name,
            value,
            source: source.to_owned(),
        });
    }

    fn maybe(&mut self, name: impl Into<String>, value: Option<impl ToString>, source: &str) {
        if let Some(value) = value {
            self.add(name, value, source);
        }
    }
}

/// Reads all facts about a machine in the order of [`NAMES`], those of disks last.
///
/// # Errors
/// When the machine cannot be queried.
pub fn environment(
    target: &dyn Target,
    inventory: &Inventory,
) -> Result<Vec<Fact>, InventoryError> {
    let mut facts = Facts::default();
    match inventory.system {
        System::Linux => linux::facts(target, &mut facts)?,
        System::FreeBsd => freebsd::facts(target, &mut facts)?,
    }
    let place = |fact: &Fact| NAMES.iter().position(|known| known.name == fact.name);
    facts.0.sort_by_key(place);
    disks::facts(target, inventory, &mut facts)?;
    Ok(facts.0)
}

/// The facts that must not change when a run is resumed: the machine's kernel, processor, memory
/// and tunables, and the identity and settings of the run's own disks by their position in the
/// plan, since the kernel may name them differently after a reboot.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Fingerprint(pub BTreeMap<String, String>);

/// A fact that changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The name of the fact.
    pub name: String,
    /// The earlier value; `None` where it was not reported.
    pub was: Option<String>,
    /// The present value; `None` where it is not reported any more.
    pub is: Option<String>,
}

/// The difference in memory size that is ignored, percent: a kernel finds a few hundred KiB more or
/// less at each boot.
const MEMORY_TOLERANCE_PERCENT: u64 = 1;

impl Fingerprint {
    /// The fingerprint in a machine's facts, with the run's own devices (`/dev/sdb`) in
    /// the plan's order.
    #[must_use]
    pub fn of(facts: &[Fact], own: &[String]) -> Self {
        let mut stable = BTreeMap::new();
        for fact in facts
            .iter()
            .filter(|fact| known(&fact.name).is_some_and(|known| known.stable))
        {
            let Some(rest) = fact.name.strip_prefix("disk.") else {
                stable.insert(fact.name.clone(), fact.value.clone());
                continue;
            };
            let place = own.iter().position(|device| {
                let name = device.trim_start_matches("/dev/");
                rest.strip_prefix(name)
                    .is_some_and(|rest| rest.starts_with('.'))
            });
            if let Some(place) = place {
                let field = rest.rsplit('.').next().unwrap_or_default();
                stable.insert(format!("disk.{place}.{field}"), fact.value.clone());
            }
        }
        Self(stable)
    }

    /// The differences in a later fingerprint, by name. Sizes of the memory that are within 1 % of
    /// each other are equal.
    #[must_use]
    pub fn changes(&self, now: &Self) -> Vec<Change> {
        let mut names: Vec<&String> = self.0.keys().chain(now.0.keys()).collect();
        names.sort();
        names.dedup();
        let differs = |name: &&String| {
            let (was, is) = (self.0.get(*name), now.0.get(*name));
            was != is && !(*name == "memory.total_bytes" && close(was, is))
        };
        names
            .into_iter()
            .filter(differs)
            .map(|name| Change {
                name: name.clone(),
                was: self.0.get(name).cloned(),
                is: now.0.get(name).cloned(),
            })
            .collect()
    }
}

fn close(was: Option<&String>, is: Option<&String>) -> bool {
    let number = |text: Option<&String>| text.and_then(|text| text.parse::<u64>().ok());
    match (number(was), number(is)) {
        (Some(was), Some(is)) => was.abs_diff(is) <= was.max(is) / 100 * MEMORY_TOLERANCE_PERCENT,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
