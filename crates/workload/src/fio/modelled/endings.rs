//! The options by which a job follows its own latency or rate: a latency that is kept by the depth,
//! and an end when it is steady.

use super::super::error::OptionError;
use super::super::value::{millionths, size, time};
use super::option::Setter::{Switch, Time};
use super::{Draft, ModelledOption, Noted, choice, needed, needs, option};
use crate::shape::{LatencyTarget, SteadyMeasure, SteadyState};
use raidlab_units::Nanos;

/// The percentile with which all of a window's requests must be within the target: fio's default.
const ALL: u32 = 100_000_000;

/// The values of these options in a section, before all of it is known.
#[derive(Debug, Clone)]
pub(super) struct EndDraft {
    target: Nanos,
    window: Nanos,
    /// The percentile of `latency_percentile`, in millionths of a percent.
    percentile: u32,
    goes_on: bool,
    steady: Option<(SteadyMeasure, bool, u64, bool)>,
    duration: Nanos,
    ramp_time: Nanos,
    interval: Nanos,
}

impl Default for EndDraft {
    /// The defaults, as in fio's options.c.
    fn default() -> Self {
        Self {
            target: Nanos::ZERO,
            window: Nanos::ZERO,
            percentile: ALL,
            goes_on: false,
            steady: None,
            duration: Nanos::ZERO,
            ramp_time: Nanos::ZERO,
            interval: Nanos::SECOND,
        }
    }
}

pub(super) const OPTIONS: &[ModelledOption] = &[
    ("latency_target", Time("us", |draft| &mut draft.ends.target)),
    ("latency_window", Time("us", |draft| &mut draft.ends.window)),
    option("latency_percentile", |draft, value| {
        let text = needed(value)?;
        let percentile = millionths(text)?;
        if percentile > ALL {
            return Err(choice(text, "percentages from 0 to 100"));
        }
        draft.ends.percentile = percentile;
        Ok(None)
    }),
    ("latency_run", Switch(|draft| &mut draft.ends.goes_on)),
    option("steadystate|ss", set_steady_state),
    (
        "steadystate_duration|ss_dur",
        Time("s", |draft| &mut draft.ends.duration),
    ),
    (
        "steadystate_ramp_time|ss_ramp",
        Time("s", |draft| &mut draft.ends.ramp_time),
    ),
    option("steadystate_check_interval|ss_interval", |draft, value| {
        let text = needed(value)?;
        draft.ends.interval = time(text, "s")?;
        match draft.ends.interval >= Nanos::SECOND {
            true => Ok(None),
            false => Err(choice(text, "times of a second or more")),
        }
    }),
];

/// Reads `iops:10%`, `bw_slope:1m`, `lat:50us`.
fn set_steady_state(draft: &mut Draft, value: Option<&str>) -> Noted {
    let text = needed(value)?;
    let wrong = || {
        choice(
            text,
            "iops:10%, iops_slope:0.01%, bw:1m, bw_slope:1%, lat:50us, lat_slope:5%",
        )
    };
    let (kind, limit) = text.split_once(':').ok_or_else(wrong)?;
    let limit = limit.trim();
    let (kind, slope) = match kind.trim().strip_suffix("_slope") {
        Some(kind) => (kind, true),
        None => (kind.trim(), false),
    };
    let measure = match kind {
        "iops" => SteadyMeasure::Iops,
        "bw" => SteadyMeasure::Bandwidth,
        "lat" => SteadyMeasure::Latency,
        _ => return Err(wrong()),
    };
    let whole = |units: u64| units.checked_mul(1_000_000).ok_or_else(wrong);
    let percent = limit.strip_suffix('%');
    let limit = match (percent, measure) {
        (Some(percent), _) => u64::from(millionths(percent)?),
        (None, SteadyMeasure::Iops) => u64::from(millionths(limit)?),
        (None, SteadyMeasure::Bandwidth) => whole(size(limit, draft.kilo_base)?.0)?,
        (None, SteadyMeasure::Latency) => whole(time(limit, "us")?.0)?,
    };
    draft.ends.steady = Some((measure, slope, limit, percent.is_some()));
    Ok(None)
}

/// Applies these options when all of a job's options are known.
pub(super) fn settle(draft: &mut Draft) -> Result<(), OptionError> {
    let ends = &draft.ends;
    let spec = &mut draft.spec;
    spec.latency_target = (ends.target > Nanos::ZERO).then_some(LatencyTarget {
        target: ends.target,
        window: ends.window,
        share_millionths: ends.percentile / 100,
        goes_on: ends.goes_on,
    });
    // fio ignores the others without a duration.
    if ends.duration == Nanos::ZERO {
        return Ok(());
    }
    // With a duration alone fio checks the slope of the requests per second.
    let default = (SteadyMeasure::Iops, true, 10_000, true);
    let (measure, slope, limit_millionths, in_percent) = ends.steady.unwrap_or(default);
    if !ends.duration.0.is_multiple_of(ends.interval.0) || ends.duration <= ends.interval {
        return Err(needs("a multiple of the check interval, twice it or more"));
    }
    spec.steady_state = Some(SteadyState {
        measure,
        slope,
        limit_millionths,
        in_percent,
        duration: ends.duration,
        ramp_time: ends.ramp_time,
        interval: ends.interval,
    });
    Ok(())
}
