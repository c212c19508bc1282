//! The uncertainty of a disk that was not fitted: how far its figures may be from those of
//! the real one.
//!
//! A preset made from a data sheet borrows the numbers that no data sheet has, mostly those of
//! command scheduling and of the caches. The resulting error was measured by leaving out: disks
//! with published figures were predicted from their data sheets, and the predictions compared
//! (`raidlab fit --left-out`). A [`Band`] is the result for one kind of load on one kind of disk;
//! [`Bands`] is the file with all of them.

use crate::medium::Medium;
use crate::medium::parameters::DiskParameters;
use serde::Deserialize;
use thiserror::Error;

/// The kinds of load that the model's error was found to depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Load {
    /// Random reads, fewer than three in flight on a disk.
    RandomRead,
    /// Random reads, three or more in flight on a disk, which chooses the next.
    QueuedRandomRead,
    /// Random writes; the write cache chooses the next at any queue depth.
    RandomWrite,
    /// Random reads and writes together.
    Mixed,
    /// One sequential stream on a disk, of reads or writes.
    Stream,
    /// Several sequential streams on one disk.
    Streams,
}

/// A band: factors on a rate.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct Band {
    /// The lower factor: the real disk's rate is at least so many times the modelled one;
    /// at most 1.
    pub low: f64,
    /// The upper factor: the real disk's rate is at most so many times the modelled one;
    /// at least 1.
    pub high: f64,
    /// The factor by which the ratio of two such figures on the same disks may be off, either way;
    /// at least 1. It is smaller, as the common error cancels.
    pub ratio: f64,
}

impl Band {
    /// A band without width: the figure is taken as exact.
    pub const NONE: Self = Self {
        low: 1.0,
        high: 1.0,
        ratio: 1.0,
    };

    /// The smallest band that contains both.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            low: self.low.min(other.low),
            high: self.high.max(other.high),
            ratio: self.ratio.max(other.ratio),
        }
    }
}

/// The bands of all kinds of disks and loads.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Bands(Vec<Entry>);

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
struct Entry {
    medium: Medium,
    load: Load,
    #[serde(flatten)]
    band: Band,
}

/// The reason why a file of bands cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BandsError {
    /// The text is no TOML, or does not have the form of such a file.
    #[error("{file}: {message}")]
    Syntax {
        /// The name of the file of bands, as errors show it.
        file: String,
        /// The parser's message.
        message: String,
    },
    /// The band does not contain 1, or its ratio is below 1.
    #[error("{file}: the band of {load} on {medium} must hold 1")]
    Empty {
        /// The name of the file of bands, as errors show it.
        file: String,
        /// The kind of load.
        load: &'static str,
        /// The kind of disk.
        medium: &'static str,
    },
    /// A band is missing, and the medium has no other whose band could be used.
    #[error("{file}: no band of {load} on {medium}")]
    Missing {
        /// The name of the file of bands, as errors show it.
        file: String,
        /// The kind of load.
        load: &'static str,
        /// The kind of disk.
        medium: &'static str,
    },
}

#[derive(Deserialize)]
struct File {
    band: Vec<Entry>,
}

impl Bands {
    /// Reads bands from the text of `file` (used in errors).
    ///
    /// # Errors
    /// Names the file and the first thing that is wrong.
    pub fn parse(file: &str, text: &str) -> Result<Self, BandsError> {
        let raw: File = toml::from_str(text).map_err(|error| BandsError::Syntax {
            file: file.to_owned(),
            message: error.message().to_owned(),
        })?;
        let within = |band: &Band| {
            let Band { low, high, ratio } = *band;
            (0.0..=1.0).contains(&low) && low > 0.0 && high >= 1.0 && ratio >= 1.0
        };
        if let Some(entry) = raw.band.iter().find(|entry| !within(&entry.band)) {
            return Err(BandsError::Empty {
                file: file.to_owned(),
                load: entry.load.name(),
                medium: entry.medium.name(),
            });
        }
        let measured = |medium: &&Medium| medium.facts().like.is_none();
        for &medium in Medium::ALL.iter().filter(measured) {
            for &load in Load::ALL {
                let load = load.on(medium);
                let own = |entry: &Entry| entry.medium == medium && entry.load == load;
                if !raw.band.iter().any(own) {
                    return Err(BandsError::Missing {
                        file: file.to_owned(),
                        load: load.name(),
                        medium: medium.name(),
                    });
                }
            }
        }
        Ok(Self(raw.band))
    }

    /// The band of a load on a kind of disk.
    #[must_use]
    pub fn of(&self, medium: Medium, load: Load) -> Band {
        let load = load.on(medium);
        let kind = |medium| {
            let mut all = self.0.iter();
            all.find(move |entry| entry.medium == medium && entry.load == load)
        };
        let found = kind(medium).or_else(|| kind(medium.facts().like?));
        found.map_or(Band::NONE, |entry| entry.band)
    }
}

impl Load {
    /// All kinds of load, in order.
    pub const ALL: &'static [Self] = &[
        Self::RandomRead,
        Self::QueuedRandomRead,
        Self::RandomWrite,
        Self::Mixed,
        Self::Stream,
        Self::Streams,
    ];

    /// The load's name in files of bands, such as `random-read`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::RandomRead => "random-read",
            Self::QueuedRandomRead => "queued-random-read",
            Self::RandomWrite => "random-write",
            Self::Mixed => "mixed",
            Self::Stream => "stream",
            Self::Streams => "streams",
        }
    }

    /// The kind of load that counts on a kind of disk: without an arm several streams are like one.
    const fn on(self, medium: Medium) -> Self {
        match self {
            Self::Streams if !medium.facts().rotational => Self::Stream,
            load => load,
        }
    }
}

impl DiskParameters {
    /// The kind of disk that the numbers describe.
    #[must_use]
    pub const fn medium(&self) -> Medium {
        self.medium.medium()
    }
}

#[cfg(test)]
mod tests;
