//! The options of zones: with gaps between them, or written sequentially.

use super::super::error::OptionError;
use super::super::value::{millionths, number};
use super::option::Setter::{Count, Size, Switch};
use super::{Draft, ModelledOption, choice, needed, needs, not_modelled, option, plain_size};
use crate::job::JobSpec;
use crate::shape::{Strides, ZoneRules};
use raidlab_units::Bytes;

/// The mode of zones in a job (fio `zonemode`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Mode {
    /// There are no zones: `none`, or not given.
    #[default]
    None,
    /// The job works in a part of the device and then skips one (`strided`).
    Strided,
    /// Zones are written from their beginnings on, and reset (`zbd`).
    Sequential,
}

/// The values of the options on zones in a section, before all of it is known.
#[derive(Debug, Clone, Default)]
pub(super) struct ZoneDraft {
    mode: Mode,
    size: Bytes,
    range: Bytes,
    skip: Bytes,
    capacity: Bytes,
    most_open: u32,
    most_open_of_job: u32,
    reads_beyond: bool,
    reset_threshold: u32,
    reset_frequency: u32,
    /// The numbers of zones in `size=8z`, `io_size=8z`,
    /// `offset=8z`, `offset_increment=8z`, `zoneskip=8z`.
    counts: [Option<u64>; 5],
}

/// The options whose values may be numbers of zones, as indexes of [`ZoneDraft::counts`].
#[derive(Debug, Clone, Copy)]
pub(super) enum InZones {
    /// The option `size`: the part of the device that the job has.
    Size,
    /// The option `io_size`: the amount that ends the job.
    IoSize,
    /// The option `offset`: the place at which the job's part begins.
    Offset,
    /// The option `offset_increment`: the distance between the starts of the clones' parts.
    OffsetIncrement,
    /// The option `zoneskip`: the gap between two zones.
    Skip,
}

/// Reads `8z` as eight zones; returns false where the value is something else, which then counts.
pub(super) fn in_zones(
    draft: &mut Draft,
    what: InZones,
    value: Option<&str>,
) -> Result<bool, OptionError> {
    let zones = needed(value)?.strip_suffix('z');
    let zones = zones.map(|text| number(text, 0..=u64::from(u32::MAX)));
    let zones = zones.transpose()?;
    draft.zones.counts[what as usize] = zones;
    Ok(zones.is_some())
}

pub(super) const OPTIONS: &[ModelledOption] = &[
    option("zonemode", |draft, value| {
        draft.zones.mode = match needed(value)? {
            "none" => Mode::None,
            "strided" => Mode::Strided,
            "zbd" => Mode::Sequential,
            text => return Err(choice(text, "none, strided, zbd")),
        };
        Ok((draft.zones.mode == Mode::Sequential).then_some(
            "the modelled device is not zoned: as fio does then, zones are emulated, empty at \
             the start",
        ))
    }),
    ("zonesize", Size(|draft| &mut draft.zones.size)),
    ("zonerange", Size(|draft| &mut draft.zones.range)),
    option("zoneskip", |draft, value| {
        if !in_zones(draft, InZones::Skip, value)? {
            draft.zones.skip = plain_size(draft, value)?;
        }
        Ok(None)
    }),
    ("zonecapacity", Size(|draft| &mut draft.zones.capacity)),
    (
        "max_open_zones",
        Count(0, |draft| &mut draft.zones.most_open),
    ),
    (
        "job_max_open_zones",
        Count(0, |draft| &mut draft.zones.most_open_of_job),
    ),
    (
        "read_beyond_wp",
        Switch(|draft| &mut draft.zones.reads_beyond),
    ),
    option("zone_reset_threshold", |draft, value| {
        draft.zones.reset_threshold = share(value)?;
        Ok(None)
    }),
    option("zone_reset_frequency", |draft, value| {
        draft.zones.reset_frequency = share(value)?;
        Ok(None)
    }),
];

/// Reads a share such as `0.7` in millionths.
fn share(value: Option<&str>) -> Result<u32, OptionError> {
    let text = needed(value)?;
    let share = millionths(text)?;
    match share <= 1_000_000 {
        true => Ok(share),
        false => Err(choice(text, "shares from 0 to 1")),
    }
}

/// Applies these options when all of a job's options are known; the error has the option that
/// it is about.
pub(super) fn settle(draft: &mut Draft) -> Result<(), (&'static str, OptionError)> {
    settle_counts(draft)?;
    settle_mode(draft).map_err(|cause| ("zonemode", cause))
}

fn settle_mode(draft: &mut Draft) -> Result<(), OptionError> {
    let zones = &draft.zones;
    match zones.mode {
        Mode::None if zones.size > Bytes(0) => {
            Err(needs("to be strided or zbd where there is a `zonesize`"))
        }
        Mode::None => Ok(()),
        Mode::Strided => settle_strides(zones, &mut draft.spec),
        Mode::Sequential => {
            let rules = zones.rules()?;
            job_keeps(&rules, draft)?;
            draft.spec.zones = Some(rules);
            Ok(())
        }
    }
}

fn settle_strides(zones: &ZoneDraft, spec: &mut JobSpec) -> Result<(), OptionError> {
    let length = Some(zones.range).filter(|&range| range > Bytes(0));
    spec.strides = Some(Strides {
        amount: zones.size,
        length: length.unwrap_or(zones.size),
        skip: zones.skip,
    });
    if zones.size == Bytes(0) {
        return Err(needs("a `zonesize`"));
    }
    if spec.pattern.is_random() {
        return Err(not_modelled("random offsets in zones with gaps"));
    }
    if spec.step != 0 {
        return Err(not_modelled("steps in zones with gaps"));
    }
    Ok(())
}

impl ZoneDraft {
    /// The rules of zones that are written sequentially.
    fn rules(&self) -> Result<ZoneRules, OptionError> {
        if self.size == Bytes(0) {
            return Err(not_modelled(
                "the device's own zones, which no modelled device has; give a `zonesize`",
            ));
        }
        let capacity = match self.capacity {
            Bytes(0) => self.size,
            capacity => capacity,
        };
        if self.size < Bytes(512) || capacity > self.size {
            return Err(needs(
                "a `zonesize` of at least 512 and a `zonecapacity` within it",
            ));
        }
        if self.most_open_of_job > 0 && self.most_open == 0 {
            return Err(needs("a `max_open_zones` with `job_max_open_zones`"));
        }
        Ok(ZoneRules {
            size: self.size,
            capacity,
            most_open: self.most_open,
            most_open_of_job: self.most_open_of_job,
            reads_beyond: self.reads_beyond,
            reset_threshold_millionths: self.reset_threshold,
            reset_frequency_millionths: self.reset_frequency,
        })
    }
}

/// Checks that a job can keep to the rules of zones that are written sequentially.
fn job_keeps(rules: &ZoneRules, draft: &Draft) -> Result<(), OptionError> {
    let spec = &draft.spec;
    let [_, writes, trims] = match &spec.sizes {
        Some(sizes) => sizes.each_ref().map(|it| (it.least(), it.most())),
        None => [(spec.block_size, spec.block_size); 3],
    };
    if spec.pattern.trims() && trims != (rules.size, rules.size) {
        return Err(needs("discards of one `zonesize`"));
    }
    if spec.pattern.writes() && writes.1 > rules.capacity {
        return Err(needs("writes that fit into a zone"));
    }
    let refused = [
        (
            draft.zones.skip > Bytes(0),
            "gaps between zones that are written in sequence",
        ),
        (
            spec.step != 0,
            "steps in zones that are written in sequence",
        ),
        (
            draft.verifies.unwrap_or(draft.has_pattern) && spec.pattern.writes(),
            "reading back zones that are written in sequence",
        ),
    ];
    match refused.into_iter().find(|(asked, _)| *asked) {
        Some((_, reason)) => Err(not_modelled(reason)),
        None => Ok(()),
    }
}

/// Converts numbers of zones into bytes.
fn settle_counts(draft: &mut Draft) -> Result<(), (&'static str, OptionError)> {
    let counts = draft.zones.counts;
    let options = ["size", "io_size", "offset", "offset_increment", "zoneskip"];
    let mut given = options.into_iter().zip(counts);
    let Some((option, _)) = given.find(|(_, zones)| zones.is_some()) else {
        return Ok(());
    };
    if draft.zones.size == Bytes(0) {
        let reason =
            "a number of the device's own zones, which no modelled device has; give a `zonesize`";
        return Err((option, not_modelled(reason)));
    }
    let size = draft.zones.size.0;
    let bytes = |what: InZones| {
        let zones = counts[what as usize].filter(|&zones| zones > 0);
        zones.map(|zones| Bytes(zones.saturating_mul(size)))
    };
    let spec = &mut draft.spec;
    spec.size = bytes(InZones::Size).or(spec.size);
    spec.io_size = bytes(InZones::IoSize).or(spec.io_size);
    spec.offset = bytes(InZones::Offset).unwrap_or(spec.offset);
    spec.offset_increment = bytes(InZones::OffsetIncrement).unwrap_or(spec.offset_increment);
    draft.zones.skip = bytes(InZones::Skip).unwrap_or(draft.zones.skip);
    Ok(())
}
