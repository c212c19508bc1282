//! Reading a wait: a step that lets time pass, or waits for a state of the array.

use super::{Condition, Wait};
use crate::document::{Document, FileError};
use crate::settings::{Time, time};
use raidlab_units::Nanos;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use std::ops::Range;
use toml::Spanned;

/// The time without a write after which members are idle, on all benches.
const IDLE: Nanos = Nanos::from_secs(3);

/// The values of `wait`.
pub(super) enum RawWait {
    Time(Nanos),
    SyncDone,
    Idle,
    Clean,
}

impl<'de> Deserialize<'de> for RawWait {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match text.as_str() {
            "sync-done" => Ok(Self::SyncDone),
            "idle" => Ok(Self::Idle),
            "clean" => Ok(Self::Clean),
            word if word.starts_with(|letter: char| letter.is_ascii_alphabetic()) => Err(
                D::Error::unknown_variant(word, &["sync-done", "idle", "clean"]),
            ),
            text => time(text).map(Self::Time).map_err(D::Error::custom),
        }
    }
}

/// Reads the wait that a step is by its fields of these names; `named` is where the step is.
pub(super) fn read_wait(
    document: &Document,
    wait: Option<&RawWait>,
    percent: Option<&Spanned<f64>>,
    at_most: Option<&Spanned<Time>>,
    named: Range<usize>,
) -> Result<Wait, FileError> {
    let condition = match (wait, percent) {
        (Some(RawWait::Time(time)), _) => {
            return match at_most {
                None => Ok(Wait::Time(*time)),
                Some(limit) => {
                    let what = "a time has no limit";
                    let remedy =
                        "remove `at_most`, or wait for \"sync-done\", \"idle\" or \"clean\"";
                    Err(document.invalid(limit.span(), what, remedy))
                }
            };
        }
        (Some(RawWait::Idle), _) => Condition::Idle,
        (Some(RawWait::Clean), _) => Condition::Clean,
        (None, Some(percent)) => Condition::SyncPercent(read_percent(document, percent)?),
        (Some(RawWait::SyncDone), _) | (None, None) => Condition::SyncDone,
    };
    let Some(at_most) = at_most else {
        let remedy = "say when to give up: at_most = \"2h\"";
        return Err(document.missing(named, "at_most", remedy));
    };
    if condition == Condition::Idle && at_most.get_ref().0 < IDLE {
        let what = "members are idle after 3 s without a write";
        let remedy = "give them more time: at_most = \"10m\"";
        return Err(document.invalid(at_most.span(), what, remedy));
    }
    Ok(Wait::Until {
        condition,
        at_most: at_most.get_ref().0,
    })
}

/// Reads how far a sync has to be, in percent.
pub(super) fn read_percent(document: &Document, percent: &Spanned<f64>) -> Result<f64, FileError> {
    let value = *percent.get_ref();
    if value > 0.0 && value <= 100.0 {
        return Ok(value);
    }
    let what = format!("{value} is no progress");
    Err(document.invalid(percent.span(), what, "write percent, above 0 and up to 100"))
}
