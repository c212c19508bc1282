//! Values of options that several commands have, out of what was typed.

use clap::builder::{PossibleValue, PossibleValuesParser};
use raidlab_bench_model::Ablation;
use raidlab_units::parse_duration;
use std::num::NonZero;
use std::time::Duration;

/// A time out of its number and unit.
pub fn time(text: &str) -> Result<Duration, String> {
    let time = parse_duration(text).map_err(|error| error.to_string())?;
    Ok(Duration::from_nanos(time.0))
}

/// A seed out of its digits.
pub fn seed(text: &str) -> Result<u64, String> {
    whole("a seed", text)
}

/// The number of a draw out of its digits.
pub fn draw(text: &str) -> Result<u64, String> {
    whole("a draw", text)
}

fn whole(what: &str, text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("{what} is a whole number from 0 to {}", u64::MAX))
}

/// A number of something out of its digits.
pub fn count(text: &str) -> Result<NonZero<u16>, String> {
    text.parse()
        .map_err(|_| format!("this is a whole number from 1 to {}", u16::MAX))
}

/// The names for `--without`, each with what the bench does then.
pub fn features() -> PossibleValuesParser {
    Ablation::all()
        .into_iter()
        .map(|(name, what)| PossibleValue::new(name).help(what))
        .collect::<Vec<_>>()
        .into()
}
