//! graid3, FreeBSD's RAID 3 (graid3(8)): every request is spread over all data
//! members, sector parts each, and the last member holds their parity.
//!
//! The verbs: remove is `remove -n SLOT`, which clears the member's metadata; add is
//! `insert -n SLOT`, which copies everything. There is no verb to fail a member, and none that
//! re-adds one with less than a whole copy.

use super::described::{Described, written};
use super::geom::array::{GeomArray, providers};
use super::geom::{Class, Geom, redundant_status, sector_size, usable};
use super::gmirror::member_state;
use super::{ArrayStatus, Built, ChangeMembers, Member, ReadBack, Result};
use raidlab_shell::Command;
use raidlab_units::Bytes;
use serde::Deserialize;

#[cfg(test)]
mod tests;

const CLASS: Class = Class {
    tool: "graid3",
    folder: "raid3",
    module: "geom_raid3",
};

/// The smallest description of one, in JSON, with which leftovers are looked for.
pub(crate) const LEAST: &str = "{}";

/// The settings of a graid3; missing ones have the system's default.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Graid3Spec {
    /// Whether the parity member takes part in reading, in turn with the others (`-r`); default no.
    /// Not together with `verify`.
    #[serde(default)]
    pub round_robin: bool,
    /// Whether every read is checked against parity (`-w`); default no.
    #[serde(default)]
    pub verify: bool,
    /// Whether stale members are synchronized automatically; default yes.
    pub autosync: Option<bool>,
}

impl Described for Graid3Spec {
    fn title(&self) -> String {
        CLASS.tool.to_owned()
    }

    fn level(&self) -> Option<&'static str> {
        Some("raid3")
    }

    fn member_bytes_per_byte(&self, count: usize) -> Option<f64> {
        written(count, count as f64 - 1.0)
    }
}

impl GeomArray for Graid3Spec {
    const CLASS: Class = CLASS;
    // graid3 has no `destroy`.
    const STOP: &'static str = "stop";

    fn settings_agree(&self) -> Result<()> {
        if self.round_robin && self.verify {
            return Err(CLASS.cannot("`round_robin` and `verify` exclude each other"));
        }
        Ok(())
    }

    fn accepts(&self, members: &[Member]) -> Result<()> {
        let count = members.len();
        if count < 3 || !(count - 1).is_power_of_two() {
            return Err(CLASS.cannot(format!(
                "it takes 3, 5, 9, 17 ... members and there are {count}"
            )));
        }
        Ok(())
    }

    fn room(&self, members: &[Member]) -> Bytes {
        Bytes(usable(members) * (members.len() as u64).saturating_sub(1))
    }

    fn label(&self, array: &Built) -> Vec<String> {
        let flags = [
            ("-n", self.autosync == Some(false)),
            ("-r", self.round_robin),
            ("-w", self.verify),
        ];
        let flags = flags.into_iter().filter(|(_, set)| *set);
        let words = ["label"].into_iter().chain(flags.map(|(flag, _)| flag));
        let words = words.chain([array.name.as_str()]).map(str::to_owned);
        words.chain(providers(array)).collect()
    }

    fn state(&self, array: &Built, geom: &Geom) -> ArrayStatus {
        let needed = array.members.len().saturating_sub(1);
        redundant_status(geom, array, needed, member_state)
    }

    fn told(&self, _: &Built, geom: &Geom, source: &str) -> Vec<ReadBack> {
        let flags = geom.fields.get("Flags").unwrap_or("");
        let has = |flag: &str| flags.split(", ").any(|f| f == flag);
        let mut all = vec![
            ReadBack::new(
                "round_robin",
                Some(self.round_robin),
                has("ROUND-ROBIN"),
                source,
            ),
            ReadBack::new("verify", Some(self.verify), has("VERIFY"), source),
            ReadBack::new("autosync", self.autosync, !has("NOAUTOSYNC"), source),
        ];
        all.extend(sector_size(geom, source));
        all
    }
}

impl ChangeMembers for Graid3Spec {
    fn remove(&self, array: &Built, slot: usize) -> Result<Vec<Command>> {
        CLASS.provider(array, slot)?;
        let number = slot.to_string();
        Ok(vec![CLASS.changes(&["remove", "-n", &number, &array.name])])
    }

    fn add(&self, array: &Built, slot: usize) -> Result<Vec<Command>> {
        let provider = CLASS.provider(array, slot)?;
        let number = slot.to_string();
        let insert = CLASS.destroys(&["insert", "-n", &number, &array.name, provider]);
        Ok(vec![insert])
    }

    fn re_add(&self, _: &Built, _: usize) -> Result<Vec<Command>> {
        Err(CLASS.cannot_re_add())
    }
}
