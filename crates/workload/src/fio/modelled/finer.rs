//! The options by which requests differ from each other: sizes, places, rates.

use super::super::error::OptionError;
use super::super::value::{millionths, number, size, switch};
use super::lists::{by_direction, fill_up, shares};
use super::{Draft, Noted, choice, needed, needs, not_modelled, percent};
use super::{endings, errors, preconditioning, sizes, zones};
use crate::shape::{Distribution, Flow, Verify};
use raidlab_units::{Bytes, Nanos};

pub(super) fn set_alignment(draft: &mut Draft, value: Option<&str>) -> Noted {
    let base = draft.kilo_base;
    let given = by_direction(needed(value)?, |text| size(text, base))?;
    // An empty place has the value of the first; fio takes 0 for the smallest size.
    let alignment = given.map(|one| one.or(given[0]).unwrap_or(Bytes(0)));
    draft.spec.alignment = Some(alignment).filter(|all| all.iter().all(|&one| one > Bytes(0)));
    Ok(None)
}

/// Reads `64k` or `-8k`, as in `rw=read:64k`.
pub(super) fn step(draft: &Draft, text: &str) -> Result<i64, OptionError> {
    let (text, sign) = match text.strip_prefix('-') {
        Some(rest) => (rest, -1),
        None => (text, 1),
    };
    let bytes = size(text, draft.kilo_base)?;
    i64::try_from(bytes.0)
        .map(|bytes| bytes * sign)
        .map_err(|_| choice(text, "steps below 8 EiB"))
}

pub(super) fn set_rate(draft: &mut Draft, value: Option<&str>) -> Noted {
    draft.rate.per_second = rates(draft, value)?;
    Ok(None)
}

pub(super) fn set_least_rate(draft: &mut Draft, value: Option<&str>) -> Noted {
    draft.rate.least = rates(draft, value)?;
    Ok(None)
}

/// Reads bytes per second for reads, writes and discards; an empty place is no limit.
fn rates(draft: &Draft, value: Option<&str>) -> Result<[u64; 3], OptionError> {
    let base = draft.kilo_base;
    let rates = by_direction(needed(value)?, |text| size(text, base))?;
    Ok(rates.map(|rate| rate.map_or(0, |rate| rate.0)))
}

pub(super) fn set_rate_iops(draft: &mut Draft, value: Option<&str>) -> Noted {
    draft.rate_iops = requests(draft, value)?;
    Ok(None)
}

pub(super) fn set_least_iops(draft: &mut Draft, value: Option<&str>) -> Noted {
    draft.rate.least_requests = requests(draft, value)?;
    Ok(None)
}

/// Reads requests per second; fio reads them like sizes: `10k` are 10,240.
fn requests(draft: &Draft, value: Option<&str>) -> Result<[u64; 3], OptionError> {
    let requests = rates(draft, value)?;
    for count in requests {
        number(&count.to_string(), 0..=u64::from(u32::MAX))?;
    }
    Ok(requests)
}

/// Reads `zipf:1.2`, `pareto:0.2`, `normal:10`, `zoned:50/5:30/15:20/80`,
/// `zoned_abs:60/20G:40/100G`, `sequence:2,0,1`; without a number zipf has 1.1, pareto 0.2 and
/// normal 0, fio's defaults.
pub(super) fn set_distribution(draft: &mut Draft, value: Option<&str>) -> Noted {
    let text = needed(value)?;
    let (kind, number) = match text.split_once(':') {
        Some((kind, number)) => (kind.trim(), Some(number.trim())),
        None => (text, None),
    };
    let curve = matches!(kind, "zipf" | "pareto" | "normal");
    if curve && number.is_some_and(|number| number.contains(':')) {
        return Err(not_modelled("a distribution with a centre"));
    }
    let base = draft.kilo_base;
    let wrong = || {
        choice(
            text,
            "random, zipf:1.2 (not 1), pareto:0.2 (below 1), normal:10 (percent), zoned:50/5:50/95, \
             zoned_abs:50/1g:50/2g, sequence:2,0,1",
        )
    };
    draft.spec.distribution = match (kind, number) {
        ("random", None) => Distribution::Even,
        ("zipf", number) => match millionths(number.unwrap_or("1.1"))? {
            0 | 1_000_000 => return Err(wrong()),
            theta_millionths => Distribution::Zipf { theta_millionths },
        },
        ("pareto", number) => match millionths(number.unwrap_or("0.2"))? {
            power_millionths @ 1..1_000_000 => Distribution::Pareto { power_millionths },
            _ => return Err(wrong()),
        },
        ("normal", number) => match millionths(number.unwrap_or("0"))? {
            percent @ 0..=100_000_000 => Distribution::Normal {
                deviation_millionths: percent / 100,
            },
            _ => return Err(wrong()),
        },
        ("zoned", Some(zones)) if !zones.contains(',') => {
            let entries = shares(zones, |text| percent(Some(text)))?;
            let zones = fill_up(zones, entries)?;
            Distribution::Zoned(all_requests(zones).ok_or_else(wrong)?)
        }
        ("zoned_abs", Some(zones)) if !zones.contains(',') => {
            let zone = |text: &str| {
                let (share, length) = text.split_once('/').ok_or_else(wrong)?;
                Ok((percent(Some(share))?, size(length, base)?))
            };
            let zones = zones.split(':').map(zone).collect::<Result<_, _>>()?;
            Distribution::ZonedByLength(all_requests(zones).ok_or_else(wrong)?)
        }
        ("zoned" | "zoned_abs", Some(_)) => {
            return Err(not_modelled("zones that differ for reads and writes"));
        }
        ("sequence", Some(list)) => {
            let blocks = list.split(',').map(|text| number_of(text.trim()));
            Distribution::Sequence {
                blocks: blocks.collect::<Result<_, _>>()?,
                strides: matches!(
                    draft.spec.distribution,
                    Distribution::Sequence { strides: true, .. }
                ),
            }
        }
        _ => return Err(wrong()),
    };
    Ok(None)
}

/// The zones with their shares of the requests, if these add up to 100 percent.
fn all_requests<T>(zones: Vec<(u32, T)>) -> Option<Vec<(u32, T)>> {
    let shares = zones.iter().map(|(share, _)| share);
    (shares.sum::<u32>() == 100).then_some(zones)
}

fn number_of(text: &str) -> Result<u64, OptionError> {
    number(text, 0..=u64::from(u32::MAX))
}

pub(super) fn set_sequence_stride(draft: &mut Draft, value: Option<&str>) -> Noted {
    let asked = switch(value)?;
    match &mut draft.spec.distribution {
        Distribution::Sequence { strides, .. } => {
            *strides = asked;
            Ok(None)
        }
        _ => Ok(Some("only after `random_distribution=sequence:`")),
    }
}

pub(super) fn set_percentage_random(draft: &mut Draft, value: Option<&str>) -> Noted {
    match by_direction(needed(value)?, |text| percent(Some(text)))? {
        [Some(reads), Some(writes), Some(trims)] if reads == writes && writes == trims => {
            draft.spec.runs.random_percent = reads;
            Ok(None)
        }
        _ => Err(not_modelled("shares that differ for reads and writes")),
    }
}

/// Applies these options when all of a job's options are known; the error has the option that
/// it is about.
pub(in super::super) fn settle(draft: &mut Draft) -> Result<(), (&'static str, OptionError)> {
    sizes::settle(draft);
    settle_engine(draft).map_err(|cause| ("num_range", cause))?;
    settle_rates(draft).map_err(|cause| ("rate_iops", cause))?;
    let spec = &mut draft.spec;
    let mut rate = draft.rate;
    for index in 0..3 {
        let least = spec.least(index).0;
        if rate.per_second[index] == 0 {
            rate.per_second[index] = draft.rate_iops[index].saturating_mul(least);
        }
    }
    let limits = [rate.per_second, rate.least, rate.least_requests];
    let limited = limits.iter().any(|limit| *limit != [0; 3]);
    spec.rate = limited.then_some(rate);
    spec.flow = (draft.flow_weight > 0).then_some(Flow {
        id: draft.flow_id,
        weight: draft.flow_weight,
        sleep: draft.flow_sleep,
    });
    let verifies = draft.verifies.unwrap_or(draft.has_pattern) && !draft.verifies_not;
    spec.verify = (verifies && spec.pattern.writes()).then_some(Verify {
        backlog: draft.verify_backlog.into(),
        batch: draft.verify_batch.into(),
    });
    spec.thinking.only_by_time = spec.thinking.after > Nanos::ZERO && !draft.think_blocks_given;
    let waits = [
        Some(draft.depth_low).filter(|&low| low > 0),
        Some(draft.complete_batch)
            .filter(|&batch| batch > 1)
            .map(|batch| spec.io_depth.saturating_sub(batch)),
    ];
    spec.refill_at = waits.into_iter().flatten().min();
    // Without a number, and with too large a one, it is the depth (fio's `fixup_options`).
    if spec.submit_batch == 0 || spec.submit_batch > spec.io_depth {
        spec.submit_batch = spec.io_depth;
    }
    errors::settle(draft);
    zones::settle(draft)?;
    preconditioning::settle(draft).map_err(|cause| ("sprandom", cause))?;
    endings::settle(draft).map_err(|cause| ("steadystate_duration", cause))
}

/// Checks the rates as fio does: two kinds of them, or a limit below the least rate, are refused.
fn settle_rates(draft: &Draft) -> Result<(), OptionError> {
    let bytes = [draft.rate.per_second, draft.rate.least];
    let requests = [draft.rate_iops, draft.rate.least_requests];
    let mut kinds = bytes.iter().zip(&requests);
    if kinds.any(|(bytes, requests)| *bytes != [0; 3] && *requests != [0; 3]) {
        return Err(needs("no rate in bytes beside it"));
    }
    let is_less = |[rates, least]: [[u64; 3]; 2]| {
        let mut both = rates.into_iter().zip(least);
        both.any(|(rate, least)| rate > 0 && rate < least)
    };
    match is_less(bytes) || is_less(requests) {
        true => Err(needs("a least rate below the rate")),
        false => Ok(()),
    }
}

/// Applies discards of several ranges, and writes that bypass a disk's cache.
fn settle_engine(draft: &mut Draft) -> Result<(), OptionError> {
    let spec = &mut draft.spec;
    spec.sync_writes |= draft.writes_through;
    spec.end_fsync |= draft.flushes_on_close;
    if spec.ranges > 1 {
        if spec.pattern.trims_and_writes() {
            return Err(needs("one range where blocks are written too"));
        }
        if spec.pattern.trims() && !draft.takes_ranges {
            return Err(needs("an engine that takes several ranges: io_uring_cmd"));
        }
    }
    Ok(())
}
