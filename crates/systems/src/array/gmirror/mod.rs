//! gmirror, FreeBSD's mirror.
//!
//! `label` writes the metadata into each member's last sector and the members
//! count as equal from the start: nothing is synchronized (as md with
//! `--assume-clean`). The device appears a moment later, when the kernel has
//! tasted the members.
//!
//! The verbs:
//! - fail is `deactivate`: the member is dropped and keeps its metadata, but does not come
//!   back by itself;
//! - re-add is `activate`: there is no bitmap, so everything is copied, unless
//!   nothing at all was written since (gmirror(8), EXAMPLES);
//! - remove is `remove`: the member's metadata go, the mirror counts one
//!   component less and calls itself COMPLETE (the comparison of 2015);
//! - add is `insert`: everything is copied.
//!
//! Source: FreeBSD gmirror(8), sys/geom/mirror/g_mirror_ctl.c.

use super::described::{Described, written};
use super::geom::array::{GeomArray, providers};
use super::geom::{Class, Geom, Part, redundant_status, sector_size, usable};
use super::steps::kernel_name;
use super::{ArrayStatus, Built, ChangeMembers, Member, MemberState, ReadBack, Result};
use crate::named::named;
use raidlab_shell::Command;
use raidlab_units::Bytes;
use serde::Deserialize;

#[cfg(test)]
mod tests;

const CLASS: Class = Class {
    tool: "gmirror",
    folder: "mirror",
    module: "geom_mirror",
};

named! {
    /// The policy that chooses the member for a read (FreeBSD gmirror(8)).
    pub enum Balance {
        /// Reads go to the member with the lowest load: queue length and head position.
        Load = "load",
        /// Reads go to the member with the highest priority.
        Prefer = "prefer",
        /// Reads go to the members in turn.
        RoundRobin = "round-robin",
        /// Reads of a slice or more are split among all members.
        Split = "split",
    }
}

/// The smallest description of one, in JSON, with which leftovers are looked for.
pub(crate) const LEAST: &str = "{}";

/// The settings of a gmirror; missing ones have the system's default.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GmirrorSpec {
    /// The policy for reads; the system's default is `load`.
    pub balance: Option<Balance>,
    /// The smallest read that `split` splits, bytes; default 4096.
    pub slice: Option<u32>,
    /// The priority of each member for `prefer`, slot by slot; by default its slot.
    pub priorities: Option<Vec<u8>>,
    /// Whether stale members are synchronized automatically; default yes.
    pub autosync: Option<bool>,
    /// Whether all members are synchronized after a crash; default yes.
    pub failsync: Option<bool>,
}

impl GmirrorSpec {
    fn priority(&self, slot: usize) -> u8 {
        let asked = self.priorities.as_ref().and_then(|all| all.get(slot));
        asked.copied().unwrap_or(u8::try_from(slot).unwrap_or(255))
    }
}

impl Described for GmirrorSpec {
    fn title(&self) -> String {
        match self.balance {
            Some(balance) => format!("{} {}", CLASS.tool, balance.name()),
            None => CLASS.tool.to_owned(),
        }
    }

    fn level(&self) -> Option<&'static str> {
        Some("mirror")
    }

    fn member_bytes_per_byte(&self, count: usize) -> Option<f64> {
        written(count, 1.0)
    }
}

impl GeomArray for GmirrorSpec {
    const CLASS: Class = CLASS;
    const STOP: &'static str = "destroy";

    fn accepts(&self, members: &[Member]) -> Result<()> {
        let count = members.len();
        if !(2..=256).contains(&count) {
            return Err(CLASS.cannot(format!("it takes 2 to 256 members and there are {count}")));
        }
        match &self.priorities {
            Some(all) if all.len() != count => Err(CLASS.cannot(format!(
                "`priorities` has {} values for {count} members",
                all.len()
            ))),
            _ => Ok(()),
        }
    }

    fn room(&self, members: &[Member]) -> Bytes {
        Bytes(usable(members))
    }

    fn label(&self, array: &Built) -> Vec<String> {
        let mut words = vec!["label".to_owned()];
        if let Some(balance) = self.balance {
            words.extend(["-b".to_owned(), balance.name().to_owned()]);
        }
        if let Some(slice) = self.slice {
            words.extend(["-s".to_owned(), slice.to_string()]);
        }
        if self.autosync == Some(false) {
            words.push("-n".to_owned());
        }
        if self.failsync == Some(false) {
            words.push("-F".to_owned());
        }
        words.push(array.name.clone());
        words.extend(providers(array));
        words
    }

    /// `configure` sets what `label` has no option for, once the kernel has found the new mirror,
    /// which is awaited as in the scripts of 2015.
    fn configure(&self, array: &Built) -> Vec<Command> {
        let Some(priorities) = &self.priorities else {
            return Vec::new();
        };
        let members = array.members.iter().zip(priorities);
        let wait = Command::reads("sleep", ["5"]);
        let configure = members.map(|(member, priority)| {
            let provider = kernel_name(&member.device);
            let priority = priority.to_string();
            CLASS.changes(&["configure", "-p", &priority, &array.name, provider])
        });
        [wait].into_iter().chain(configure).collect()
    }

    fn state(&self, array: &Built, geom: &Geom) -> ArrayStatus {
        redundant_status(geom, array, 1, member_state)
    }

    fn told(&self, array: &Built, geom: &Geom, source: &str) -> Vec<ReadBack> {
        let found = |key: &str| geom.fields.get(key).unwrap_or("");
        let flags = found("Flags");
        let unless = |flag: &str| !flags.split(", ").any(|f| f == flag);
        let mut all = vec![
            ReadBack::new("balance", self.balance, found("Balance"), source),
            ReadBack::new("slice", self.slice, found("Slice"), source),
            ReadBack::new("autosync", self.autosync, unless("NOAUTOSYNC"), source),
            ReadBack::new("failsync", self.failsync, unless("NOFAILSYNC"), source),
        ];
        all.extend(sector_size(geom, source));
        for (slot, member) in array.members.iter().enumerate() {
            let provider = kernel_name(&member.device);
            let mut parts = geom.consumers.iter();
            let part = parts.find(|part| part.name == provider);
            if let Some(priority) = part.and_then(|part| part.fields.get("Priority")) {
                let all_asked = self.priorities.as_ref();
                let asked = all_asked.and_then(|asked| asked.get(slot));
                let name = format!("priority of {provider}");
                all.push(ReadBack::new(&name, asked, priority, source));
            }
        }
        all
    }
}

impl ChangeMembers for GmirrorSpec {
    fn fail(&self, array: &Built, slot: usize) -> Result<Vec<Command>> {
        let provider = CLASS.provider(array, slot)?;
        Ok(vec![CLASS.changes(&["deactivate", &array.name, provider])])
    }

    /// A member that failed before is no longer connected: `remove` does not know it and
    /// ends with 1, and `forget` drops it from the count. Where all members are connected
    /// `forget` does nothing.
    fn remove(&self, array: &Built, slot: usize) -> Result<Vec<Command>> {
        let provider = CLASS.provider(array, slot)?;
        Ok(vec![
            CLASS
                .changes(&["remove", &array.name, provider])
                .success(&[0, 1]),
            CLASS.changes(&["forget", &array.name]),
        ])
    }

    /// `insert` refuses while a member is missing, so `forget` comes first. By default `insert`
    /// gives priority 0.
    fn add(&self, array: &Built, slot: usize) -> Result<Vec<Command>> {
        let provider = CLASS.provider(array, slot)?;
        let priority = self.priority(slot).to_string();
        Ok(vec![
            CLASS.changes(&["forget", &array.name]),
            CLASS.destroys(&["insert", "-p", &priority, &array.name, provider]),
        ])
    }

    fn re_add(&self, array: &Built, slot: usize) -> Result<Vec<Command>> {
        let provider = CLASS.provider(array, slot)?;
        Ok(vec![CLASS.destroys(&["activate", &array.name, provider])])
    }
}

/// The state of a gmirror consumer or graid3 component (g_mirror.h): a stale one is out of date and
/// unused until it is rebuilt, a new one has no slot yet.
pub(super) fn member_state(part: &Part) -> MemberState {
    match part.fields.get("State") {
        Some("ACTIVE") => MemberState::InSync,
        Some("SYNCHRONIZING") => MemberState::Recovering,
        Some("NEW" | "STALE") => MemberState::Spare,
        _ => MemberState::Missing,
    }
}
