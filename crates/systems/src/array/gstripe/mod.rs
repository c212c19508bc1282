//! gstripe, FreeBSD's RAID 0 (gstripe(8)). It has no redundancy, and so none of the verbs
//! that need it.

use super::described::{Described, data_of};
use super::fixed::Fixed;
use super::geom::array::{GeomArray, providers};
use super::geom::{Class, Geom, usable};
use super::spec::optional_size;
use super::{ArrayStatus, Built, Health, Member, MemberState, ReadBack, Result};
use raidlab_units::Bytes;
use serde::Deserialize;

#[cfg(test)]
mod tests;

const CLASS: Class = Class {
    tool: "gstripe",
    folder: "stripe",
    module: "geom_stripe",
};

/// The stripe size of `label` without `-s`: 64 KiB (FreeBSD lib/geom/stripe/geom_stripe.c,
/// `GSTRIPE_STRIPESIZE`).
const DEFAULT_STRIPE_BYTES: u64 = 64 << 10;

/// The smallest description of one, in JSON, with which leftovers are looked for.
pub(crate) const LEAST: &str = "{}";

/// The settings of a gstripe; missing ones have the system's default.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GstripeSpec {
    /// The consecutive bytes on one member: a power of two and a multiple of every sector size.
    /// GEOM's word for a chunk.
    #[serde(default, deserialize_with = "optional_size")]
    pub stripesize: Option<Bytes>,
}

impl Described for GstripeSpec {
    fn title(&self) -> String {
        CLASS.tool.to_owned()
    }

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

impl GeomArray for GstripeSpec {
    const CLASS: Class = CLASS;
    const STOP: &'static str = "destroy";

    fn settings_agree(&self) -> Result<()> {
        match self.stripesize {
            Some(Bytes(size)) if size < 512 || !size.is_power_of_two() => Err(CLASS.cannot(
                format!("`stripesize` is {size} bytes and must be a power of two from 512"),
            )),
            _ => Ok(()),
        }
    }

    fn accepts(&self, members: &[Member]) -> Result<()> {
        if members.len() < 2 {
            return Err(CLASS.cannot(format!(
                "it takes 2 members or more and there are {}",
                members.len()
            )));
        }
        Ok(())
    }

    fn room(&self, members: &[Member]) -> Bytes {
        let stripe = self.stripesize.map_or(DEFAULT_STRIPE_BYTES, |size| size.0);
        let each = usable(members) / stripe * stripe;
        Bytes(each * members.len() as u64)
    }

    fn label(&self, array: &Built) -> Vec<String> {
        let mut words = vec!["label".to_owned()];
        if let Some(Bytes(size)) = self.stripesize {
            words.extend(["-s".to_owned(), size.to_string()]);
        }
        words.push(array.name.clone());
        words.extend(providers(array));
        words
    }

    fn state(&self, array: &Built, geom: &Geom) -> ArrayStatus {
        let members: Vec<MemberState> = providers(array)
            .map(
                |name| match geom.consumers.iter().any(|part| part.name == name) {
                    true => MemberState::InSync,
                    false => MemberState::Missing,
                },
            )
            .collect();
        let complete = !members.contains(&MemberState::Missing);
        ArrayStatus {
            health: if complete && geom.fields.get("State") == Some("UP") {
                Health::Optimal
            } else {
                Health::Failed
            },
            members,
            sync: None,
        }
    }

    fn told(&self, _: &Built, geom: &Geom, source: &str) -> Vec<ReadBack> {
        let found = |key: &str| geom.fields.get(key).unwrap_or("");
        let asked = self.stripesize.map(|size| size.0);
        vec![
            ReadBack::new("stripesize", asked, found("Stripesize"), source),
            ReadBack::new("type", None::<&str>, found("Type"), source),
        ]
    }
}

impl Fixed for GstripeSpec {
    const WHY: &str = "a stripe cannot live without any of its members";
}
