//! The options of a pass that leaves a solid-state disk as after long random writes.

use super::super::error::OptionError;
use super::super::value::{count, millionths, switch};
use super::option::Setter::Size;
use super::{Draft, ModelledOption, choice, needed, needs, not_modelled, option};
use crate::job::Pattern;
use crate::shape::Distribution;
use raidlab_units::Bytes;

/// The largest number of parts of a pass.
const MOST_REGIONS: u32 = 100_000;

/// The values of these options in a section, before all of it is known.
#[derive(Debug, Clone)]
pub(super) struct PreconditioningDraft {
    asked: bool,
    over_provisioning_millionths: u32,
    regions: u32,
    cache: Bytes,
}

impl Default for PreconditioningDraft {
    /// The defaults, as in fio's options.c.
    fn default() -> Self {
        Self {
            asked: false,
            over_provisioning_millionths: 150_000,
            regions: 100,
            cache: Bytes(0),
        }
    }
}

pub(super) const OPTIONS: &[ModelledOption] = &[
    option("sprandom", |draft, value| {
        draft.preconditioning.asked = switch(value)?;
        Ok(draft.preconditioning.asked.then_some(
            "the writes are fio's, in another random order; no modelled disk collects garbage, so \
             what they leave behind changes nothing later",
        ))
    }),
    option("spr_op", |draft, value| {
        let text = needed(value)?;
        let share = millionths(text)?;
        draft.preconditioning.over_provisioning_millionths = share;
        match share {
            1..=1_000_000 => Ok(None),
            _ => Err(choice(text, "shares above 0 and up to 1")),
        }
    }),
    option("spr_num_regions", |draft, value| {
        let text = needed(value)?;
        draft.preconditioning.regions = count(text, 1)?;
        match draft.preconditioning.regions {
            ..=MOST_REGIONS => Ok(None),
            _ => Err(choice(text, "numbers up to 100000")),
        }
    }),
    ("spr_cs", Size(|draft| &mut draft.preconditioning.cache)),
];

/// Applies these options when all of a job's options are known.
pub(super) fn settle(draft: &mut Draft) -> Result<(), OptionError> {
    let asked = &draft.preconditioning;
    if !asked.asked {
        return Ok(());
    }
    let spec = &mut draft.spec;
    if spec.pattern != Pattern::RandWrite || spec.sizes.is_some() {
        return Err(needs("`rw=randwrite` and one `bs`"));
    }
    if spec.time_based {
        return Err(not_modelled("preconditioning that goes on by time"));
    }
    spec.distribution = Distribution::Preconditioning {
        over_provisioning_millionths: asked.over_provisioning_millionths,
        regions: asked.regions,
        cache: asked.cache,
    };
    // fio sets both.
    draft.no_random_map = true;
    draft.shift_register = false;
    Ok(())
}
