//! Parsers of option values that several commands share.

use crate::failure::{Failure, Kind};
use clap::builder::{PossibleValue, PossibleValuesParser};
use raidlab_bench_model::Ablation;
use raidlab_units::{Bytes, parse_bytes, parse_duration};
use std::num::NonZero;
use std::time::Duration;

/// Parses a time, a number with its unit.
pub fn time(text: &str) -> Result<Duration, String> {
    let time = parse_duration(text).map_err(|error| error.to_string())?;
    Ok(Duration::from_nanos(time.0))
}

/// Parses a seed from its digits.
pub fn seed(text: &str) -> Result<u64, String> {
    whole("a seed", text)
}

/// Parses the number of a draw from its digits.
pub fn draw(text: &str) -> Result<u64, String> {
    whole("a draw", text)
}

fn whole(what: &str, text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("{what} is a whole number from 0 to {}", u64::MAX))
}

/// Parses a number of something from its digits.
pub fn count(text: &str) -> Result<NonZero<u16>, String> {
    text.parse()
        .map_err(|_| format!("this is a whole number from 1 to {}", u16::MAX))
}

/// Parses the size that `option` gives.
pub(crate) fn size(option: &str, text: &str) -> Result<Bytes, Failure> {
    parse_bytes(text).map_err(|error| {
        Failure::new(Kind::Usage, error).help(format!("{option} takes `512m` or `4g`"))
    })
}

/// The smallest size of a member: below it there is no room for the metadata of any array.
const LEAST_MEMBER: Bytes = Bytes(1 << 20);

/// Parses the size that `option` gives to each member.
pub(crate) fn member_size(option: &str, text: &str) -> Result<Bytes, Failure> {
    let size = size(option, text)?;
    if size >= LEAST_MEMBER {
        return Ok(size);
    }
    let words = format!("{option} {text}: a member has at least 1 MiB");
    Err(Failure::words(Kind::Usage, words).help(format!("{option} takes `512m` or `4g`")))
}

/// The names for `--without`, each with the bench's behaviour then.
pub fn features() -> PossibleValuesParser {
    Ablation::all()
        .into_iter()
        .map(|(name, what)| PossibleValue::new(name).help(what))
        .collect::<Vec<_>>()
        .into()
}
