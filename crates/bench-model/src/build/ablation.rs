//! The features of the model that can be left out, to see what they are worth.

use raidlab_disk::Feature;
use std::str::FromStr;
use thiserror::Error;

/// A feature of the bench that can be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ablation {
    /// The model of the disks lacks this feature.
    Disk(Feature),
    /// The reading of fio's clock on every 64th I/O only: without it, on every one.
    FioClock,
    /// Leaps over uniform phases: without them, every I/O is simulated.
    Leaps,
}

/// The error of a name that is nothing to leave out.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{name}` is nothing that can be left out; known are: {known}")]
pub struct UnknownAblation {
    name: String,
    known: String,
}

impl Ablation {
    /// Every name with the bench's behaviour without it.
    #[must_use]
    pub fn all() -> Vec<(&'static str, &'static str)> {
        let disk = Feature::ALL.iter().map(|entry| (entry.1, entry.2));
        disk.chain([
            ("fio-clock", "fio reads the clock at every I/O"),
            (
                "leaps",
                "every I/O is simulated, also in hours of streaming (slow)",
            ),
        ])
        .collect()
    }
}

impl FromStr for Ablation {
    type Err = UnknownAblation;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "fio-clock" => Ok(Self::FioClock),
            "leaps" => Ok(Self::Leaps),
            _ => Feature::from_str(name)
                .map(Self::Disk)
                .map_err(|_| UnknownAblation {
                    name: name.to_owned(),
                    known: Self::all()
                        .iter()
                        .map(|entry| entry.0)
                        .collect::<Vec<_>>()
                        .join(", "),
                }),
        }
    }
}
