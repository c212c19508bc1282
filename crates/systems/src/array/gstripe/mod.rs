//! gstripe, FreeBSD's RAID 0 (gstripe(8)). It has no redundancy and so none of
//! the verbs that need some.

use super::described::{Described, data_of};
use super::geom::{Class, read_back, usable};
use super::spec::optional_size;
use super::steps::{cannot_build, kernel_name};
use super::{
    Access, ArrayStatus, ArraySystem, Built, Health, Member, MemberState, MemberStatus, Need,
    OperatingSystem, ReadBack, SystemError,
};
use raidlab_shell::{Command, Target, Watched};
use raidlab_units::Bytes;
use serde::Deserialize;

#[cfg(test)]
mod tests;

const CLASS: Class = Class {
    tool: "gstripe",
    folder: "stripe",
    module: "geom_stripe",
};

const TITLE: &str = "gstripe";

/// What `label` takes without `-s`: 64 KiB (FreeBSD lib/geom/stripe/geom_stripe.c,
/// `GSTRIPE_STRIPESIZE`).
const DEFAULT_STRIPE_BYTES: u64 = 64 << 10;

/// The least that one is described by: with it they are looked for.
pub(crate) const LEAST: &str = "{}";

/// A gstripe; what is left out is the system's default.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GstripeSpec {
    /// The bytes that go to one member before the next: a power of two and a
    /// multiple of every sector size. GEOM's word; elsewhere a chunk.
    #[serde(default, deserialize_with = "optional_size")]
    pub stripesize: Option<Bytes>,
}

fn no_redundancy<T>(what: &str) -> Result<T, SystemError> {
    Err(CLASS.lacks(what, "a stripe cannot live without any of its members"))
}

impl Described for GstripeSpec {
    fn level(&self) -> Option<&'static str> {
        Some("raid0")
    }

    fn data_members(&self, count: usize) -> Option<u64> {
        data_of("raid0", count)
    }

    fn member_bytes_per_byte(&self, count: usize) -> Option<f64> {
        (count > 0).then_some(1.0)
    }
}

impl ArraySystem for GstripeSpec {
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
        if members.len() < 2 {
            return Err(cannot_build(
                TITLE,
                format!("it takes 2 members or more and there are {}", members.len()),
            ));
        }
        match self.stripesize {
            Some(Bytes(size)) if size < 512 || !size.is_power_of_two() => Err(cannot_build(
                TITLE,
                format!("`stripesize` is {size} bytes and must be a power of two from 512"),
            )),
            _ => Ok(()),
        }
    }

    fn capacity(&self, members: &[Member]) -> Bytes {
        let stripe = self.stripesize.map_or(DEFAULT_STRIPE_BYTES, |size| size.0);
        let each = usable(members) / stripe * stripe;
        Bytes(each * members.len() as u64)
    }

    fn create(&self, array: &Built) -> Result<Vec<Command>, SystemError> {
        self.check(&array.members)?;
        let mut words = vec!["label".to_owned()];
        if let Some(Bytes(size)) = self.stripesize {
            words.extend(["-s".to_owned(), size.to_string()]);
        }
        words.push(array.name.clone());
        words.extend((array.members.iter()).map(|m| kernel_name(&m.device).to_owned()));
        let mut commands = CLASS.prepare(&array.members);
        commands.push(Command::destroys(CLASS.tool, words));
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
        let there = |name: &str| geom.consumers.iter().any(|part| part.name == name);
        let members: Vec<MemberStatus> = array
            .members
            .iter()
            .map(|member| match kernel_name(&member.device) {
                name if there(name) => MemberStatus {
                    device: name.to_owned(),
                    state: MemberState::InSync,
                },
                _ => MemberStatus {
                    device: String::new(),
                    state: MemberState::Missing,
                },
            })
            .collect();
        let complete = members.iter().all(|m| m.state == MemberState::InSync);
        Ok(ArrayStatus {
            health: if complete && geom.fields.get("State") == Some("UP") {
                Health::Optimal
            } else {
                Health::Failed
            },
            members,
            sync: None,
        })
    }

    fn fail(&self, _: &Built, _: usize) -> Result<Vec<Command>, SystemError> {
        no_redundancy("fail a member")
    }

    fn remove(&self, _: &Built, _: usize) -> Result<Vec<Command>, SystemError> {
        no_redundancy("remove a member")
    }

    fn add(&self, _: &Built, _: usize) -> Result<Vec<Command>, SystemError> {
        no_redundancy("add a member")
    }

    fn re_add(&self, _: &Built, _: usize) -> Result<Vec<Command>, SystemError> {
        no_redundancy("re-add a member")
    }

    fn settings(&self, target: &dyn Target, array: &Built) -> Result<Vec<ReadBack>, SystemError> {
        const SOURCE: &str = "gstripe list";
        let geom = CLASS.read(target, &array.name)?;
        let found = |key: &str| geom.fields.get(key).unwrap_or("").to_owned();
        let asked = self.stripesize.map(|size| size.0.to_string());
        let mut all = vec![
            read_back("stripesize", asked, found("Stripesize"), SOURCE),
            read_back("type", None, found("Type"), SOURCE),
        ];
        all.extend(CLASS.tunables(target)?);
        Ok(all)
    }

    fn destroy(&self, array: &Built) -> Vec<Command> {
        let mut commands = vec![CLASS.destroys(&["destroy", "-f", &array.name])];
        commands.extend(CLASS.clear(&array.members));
        commands
    }

    fn find(&self, target: &dyn Target, prefix: &str) -> Result<Vec<Built>, SystemError> {
        CLASS.find(target, prefix)
    }
}
