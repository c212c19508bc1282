//! graid3, FreeBSD's RAID 3 (graid3(8)): every request is spread over all data
//! members, sector parts each, and the last member holds their parity.
//!
//! What the verbs mean here: remove is `remove -n SLOT`, which clears the
//! member's metadata; add is `insert -n SLOT`, which copies everything. There
//! is no verb to fail a member and none that brings one back with less than a
//! whole copy.

use super::described::{Described, written};
use super::geom::{Class, read_back, redundant_status, usable};
use super::gmirror::member_state;
use super::steps::{cannot_build, kernel_name, member};
use super::{
    Access, ArrayStatus, ArraySystem, Built, Member, Need, OperatingSystem, ReadBack, SystemError,
};
use raidlab_shell::{Command, Target, Watched};
use raidlab_units::Bytes;
use serde::Deserialize;

#[cfg(test)]
mod tests;

const CLASS: Class = Class {
    tool: "graid3",
    folder: "raid3",
    module: "geom_raid3",
};

const TITLE: &str = "graid3";

/// The least that one is described by: with it they are looked for.
pub(crate) const LEAST: &str = "{}";

/// A graid3; what is left out is the system's default.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Graid3Spec {
    /// The parity member takes part in reading, in turn with the others
    /// (`-r`); default no. Not together with `verify`.
    #[serde(default)]
    pub round_robin: bool,
    /// Every read is checked against parity (`-w`); default no.
    #[serde(default)]
    pub verify: bool,
    /// Whether stale members are synchronized by themselves; default yes.
    pub autosync: Option<bool>,
}

impl Described for Graid3Spec {
    fn level(&self) -> Option<&'static str> {
        Some("raid3")
    }

    #[expect(clippy::cast_precision_loss, reason = "a few members")]
    fn member_bytes_per_byte(&self, count: usize) -> Option<f64> {
        written(count, count as f64 - 1.0)
    }
}

impl ArraySystem for Graid3Spec {
    fn title(&self) -> String {
        TITLE.to_owned()
    }

    fn runs_on(&self) -> &'static [OperatingSystem] {
        &[OperatingSystem::FreeBsd]
    }

    fn needs(&self) -> Vec<Need> {
        CLASS.needs()
    }

    fn check(&self, members: &[Member]) -> Result<(), SystemError> {
        let count = members.len();
        if count < 3 || !(count - 1).is_power_of_two() {
            return Err(cannot_build(
                TITLE,
                format!("it takes 3, 5, 9, 17 ... members and there are {count}"),
            ));
        }
        if self.round_robin && self.verify {
            return Err(cannot_build(
                TITLE,
                "`round_robin` and `verify` exclude each other",
            ));
        }
        Ok(())
    }

    fn capacity(&self, members: &[Member]) -> Bytes {
        Bytes(usable(members) * (members.len() as u64).saturating_sub(1))
    }

    fn create(&self, array: &Built) -> Result<Vec<Command>, SystemError> {
        self.check(&array.members)?;
        let flags = [
            ("-n", self.autosync == Some(false)),
            ("-r", self.round_robin),
            ("-w", self.verify),
        ];
        let mut words = vec!["label"];
        words.extend(flags.into_iter().filter(|(_, set)| *set).map(|(f, _)| f));
        words.push(&array.name);
        words.extend(array.members.iter().map(|m| kernel_name(&m.device)));
        let mut commands = CLASS.prepare(&array.members);
        commands.push(CLASS.destroys(&words));
        Ok(commands)
    }

    fn access(&self, array: &Built) -> Access {
        Access::Device(CLASS.device(&array.name))
    }

    fn sources(&self, array: &Built) -> Vec<Watched> {
        CLASS.sources(&array.name)
    }

    fn interpret(
        &self,
        array: &Built,
        contents: &[Option<String>],
    ) -> Result<ArrayStatus, SystemError> {
        let geom = CLASS.find_in(&array.name, contents)?;
        let needed = array.members.len().saturating_sub(1);
        Ok(redundant_status(&geom, array, needed, member_state))
    }

    fn fail(&self, _: &Built, _: usize) -> Result<Vec<Command>, SystemError> {
        Err(CLASS.lacks(
            "fail a member",
            "it has no such verb; remove the member instead",
        ))
    }

    fn remove(&self, array: &Built, slot: usize) -> Result<Vec<Command>, SystemError> {
        member(TITLE, &array.members, slot)?;
        let number = slot.to_string();
        Ok(vec![CLASS.changes(&["remove", "-n", &number, &array.name])])
    }

    fn add(&self, array: &Built, slot: usize) -> Result<Vec<Command>, SystemError> {
        let provider = kernel_name(&member(TITLE, &array.members, slot)?.device);
        let number = slot.to_string();
        let insert = CLASS.destroys(&["insert", "-n", &number, &array.name, provider]);
        Ok(vec![insert])
    }

    fn re_add(&self, _: &Built, _: usize) -> Result<Vec<Command>, SystemError> {
        Err(CLASS.lacks(
            "re-add a member",
            "it keeps no record of what a member missed; add copies everything",
        ))
    }

    fn settings(&self, target: &dyn Target, array: &Built) -> Result<Vec<ReadBack>, SystemError> {
        const SOURCE: &str = "graid3 list";
        let geom = CLASS.read(target, &array.name)?;
        let flags = geom.fields.get("Flags").unwrap_or("");
        let has = |flag: &str| flags.split(", ").any(|f| f == flag);
        let text = |value: bool| Some(value.to_string());
        let mut all = vec![
            read_back(
                "round_robin",
                text(self.round_robin),
                has("ROUND-ROBIN").to_string(),
                SOURCE,
            ),
            read_back(
                "verify",
                text(self.verify),
                has("VERIFY").to_string(),
                SOURCE,
            ),
            read_back(
                "autosync",
                self.autosync.and_then(text),
                (!has("NOAUTOSYNC")).to_string(),
                SOURCE,
            ),
        ];
        let device = geom.providers.first();
        if let Some(size) = device.and_then(|device| device.fields.get("Sectorsize")) {
            all.push(read_back("sector_size", None, size, SOURCE));
        }
        all.extend(CLASS.tunables(target)?);
        Ok(all)
    }

    /// `graid3` has no `destroy`.
    fn destroy(&self, array: &Built) -> Vec<Command> {
        let mut commands = vec![CLASS.destroys(&["stop", "-f", &array.name])];
        commands.extend(CLASS.clear(&array.members));
        commands
    }

    fn find(&self, target: &dyn Target, prefix: &str) -> Result<Vec<Built>, SystemError> {
        CLASS.find(target, prefix)
    }
}
