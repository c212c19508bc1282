//! The bands that errors of predictions lie in. An error is the logarithm of measured over
//! predicted. The rule for a [`Band`]:
//!
//! 1. A disk's errors in one kind of load have a least and a greatest. The band's ends
//!    are where nine of ten further disks' would lie by Student's t ([`next_value`]):
//!    below from the least ones, above from the greatest.
//! 2. One or two disks say nothing of their spread: then it is twice the worst error,
//!    either way.
//! 3. A band always holds every error that was seen, and the model's own figure.
//! 4. Two figures on the same disks share their error as far as the disks' loads are
//!    alike. What is left is the difference of a disk's errors between depths of which
//!    one is at most twice the other, by the same rules.
//! 5. Reads mixed with writes are compared with other random loads too: an array with parity
//!    reads and writes where a mirror only writes. So for their ratio rule 4 counts all random
//!    loads of a disk. Where no mixed load was measured, their band holds those of reads and
//!    of writes, and for their ratio any two random loads of a disk are compared.

use super::LeftOutRow;
use raidlab_disk::{Band, Load, Medium};
use raidlab_statistics::{Confidence, Sample, next_value};
use std::fmt::Write;

/// The share of further disks that shall lie within a band.
const CONFIDENCE: f64 = 0.9;

/// The number of disks below which their spread says nothing.
const LEAST_DISKS: usize = 3;

/// The factor between depths above which they put unlike loads on a disk.
const LIKE_DEPTHS: u32 = 2;

/// A band with the figures that it rests on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LeftOutBand {
    /// The kind of disks.
    pub medium: Medium,
    /// The kind of load.
    pub load: Load,
    /// The band, rounded outwards to whole percent.
    pub band: Band,
    /// The number of disks whose figures count.
    pub disks: usize,
}

/// Computes the bands that follow from figures beside their predictions, in order of medium and
/// load: of every kind of disk and load with a figure, and of mixed loads.
#[must_use]
pub fn left_out_bands(rows: &[LeftOutRow]) -> Vec<LeftOutBand> {
    let mut bands = Vec::new();
    for &medium in Medium::ALL {
        let own: Vec<&LeftOutRow> = rows
            .iter()
            .filter(|row| row.medium == medium && row.disputed.is_empty())
            .collect();
        let is_random = |load: Load| !matches!(load, Load::Stream | Load::Streams);
        let random: Vec<&LeftOutRow> = own
            .iter()
            .copied()
            .filter(|row| is_random(row.load))
            .collect();
        for &load in Load::ALL {
            let of_load: Vec<&LeftOutRow> =
                own.iter().copied().filter(|row| row.load == load).collect();
            let is_mixed = load == Load::Mixed;
            let compared = by_disk(if is_mixed { &random } else { &of_load });
            if compared.is_empty() {
                continue;
            }
            let unmeasured = is_mixed && of_load.is_empty();
            let like = if unmeasured { u32::MAX } else { LIKE_DEPTHS };
            let own = by_disk(&of_load);
            let mut band = around(&own);
            if unmeasured {
                let shares = |one: &&LeftOutBand| match one.medium {
                    other if medium.facts().like == Some(other) => one.load == load,
                    other => other == medium && is_random(one.load),
                };
                let parts = bands.iter().filter(shares);
                band = parts.fold(Band::NONE, |band, part| band.or(part.band));
                band.ratio = 1.0;
            }
            band.ratio = band.ratio.max(apart(&compared, like));
            bands.push(LeftOutBand {
                medium,
                load,
                band: outwards(band),
                disks: if unmeasured {
                    compared.len()
                } else {
                    own.len()
                },
            });
        }
    }
    bands
}

/// The queue depths and errors of each disk.
type Errors = Vec<(u32, f64)>;

fn by_disk(rows: &[&LeftOutRow]) -> Vec<Errors> {
    let mut names: Vec<&str> = Vec::new();
    let mut all: Vec<Errors> = Vec::new();
    for row in rows {
        let error = (row.queue_depth, row.error());
        match names.iter().position(|name| *name == row.disk) {
            Some(place) => all[place].push(error),
            None => {
                names.push(&row.disk);
                all.push(vec![error]);
            }
        }
    }
    all
}

/// Computes where a further disk's errors lie, by rules 1 to 3.
fn around(disks: &[Errors]) -> Band {
    let ends = |pick: fn(f64, f64) -> f64| -> Vec<f64> {
        let of = |errors: &Errors| errors.iter().map(|(_, error)| *error).reduce(pick);
        disks.iter().filter_map(of).collect()
    };
    let (least, greatest) = (ends(f64::min), ends(f64::max));
    let (low, high) = match (next(&least), next(&greatest)) {
        (Some((low, _)), Some((_, high))) => (low, high),
        _ => {
            let all = least.iter().chain(&greatest);
            let worst = 2.0 * all.fold(0.0, |worst: f64, error| worst.max(error.abs()));
            (-worst, worst)
        }
    };
    let low = least.iter().copied().fold(low.min(0.0), f64::min);
    let high = greatest.iter().copied().fold(high.max(0.0), f64::max);
    Band {
        low: low.exp(),
        high: high.exp(),
        ratio: 1.0,
    }
}

/// Computes the factor by which two figures of a further disk may err apart, if their depths
/// are alike, by rule 4. Of disks with a single figure nothing is known: then the factor is
/// the whole band.
fn apart(disks: &[Errors], like: u32) -> f64 {
    let worst = |errors: &Errors| {
        let pairs = errors
            .iter()
            .enumerate()
            .flat_map(|(place, one)| errors[place + 1..].iter().map(move |other| (one, other)));
        pairs
            .filter(|(one, other)| {
                let (less, more) = (one.0.min(other.0), one.0.max(other.0));
                more <= less.saturating_mul(like)
            })
            .map(|(one, other)| (one.1 - other.1).abs())
            .reduce(f64::max)
    };
    let differences: Vec<f64> = disks.iter().filter_map(worst).collect();
    if differences.is_empty() {
        let band = around(disks);
        return band.high.max(1.0 / band.low);
    }
    let seen = differences.iter().copied().fold(0.0, f64::max);
    let further = next(&differences).map_or(2.0 * seen, |(_, high)| high);
    further.max(seen).exp()
}

/// The ends of the range in which a further value lies; `None` of too few.
fn next(values: &[f64]) -> Option<(f64, f64)> {
    if values.len() < LEAST_DISKS {
        return None;
    }
    let confidence = Confidence::new(CONFIDENCE).ok()?;
    let found = next_value(&Sample::new(values).ok()?, confidence)?;
    Some((found.low, found.high))
}

/// Rounds a band to whole percent, so that files and tables show the band that is used; never to
/// a narrower band.
fn outwards(band: Band) -> Band {
    let down = |factor: f64| ((factor * 100.0 + 1e-9).floor() / 100.0).max(0.01);
    let up = |factor: f64| (factor * 100.0 - 1e-9).ceil() / 100.0;
    Band {
        low: down(band.low),
        high: up(band.high),
        ratio: up(band.ratio),
    }
}

/// Writes the bands as the file that keeps them.
#[must_use]
pub fn bands_file(bands: &[LeftOutBand]) -> String {
    let mut text = String::from(
        "# How far figures of disks that nobody fitted may be from those of the real ones, by\n\
         # kind of disk and load: the real rate is `low` to `high` times the modelled one, and\n\
         # the ratio of two such figures on the same disks is off by `ratio` at most, either\n\
         # way. Made by `raidlab fit --left-out --toml` from facts/left-out.toml; what the\n\
         # numbers rest on is in docs/notes/accuracy.md. `disks` says on how many.\n\
         schema = 1\n",
    );
    for LeftOutBand {
        medium,
        load,
        band,
        disks,
    } in bands
    {
        let _ = write!(
            text,
            "\n[[band]]\nmedium = \"{}\"\nload = \"{}\"\nlow = {:?}\nhigh = {:?}\nratio = {:?}\ndisks = {disks}\n",
            medium.name(),
            load.name(),
            band.low,
            band.high,
            band.ratio
        );
    }
    text
}
