//! Leaving out: how far predictions from a data sheet are from what disks do.
//!
//! The disks of the file were not used for any number of the model. Each is predicted as
//! presets without a fit are made: its data sheet's numbers, and the donor's for all that
//! no data sheet has ([`DataSheet::applied_to`]). An error is the logarithm of measured
//! over predicted. The rule for a [`Band`]:
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
//! 5. Reads mixed with writes were not measured: their band holds those of reads and of
//!    writes, and for their ratio any two random loads of a disk are compared.

use crate::evaluate::{FitError, simulate};
use crate::facts::Fact;
use raidlab_disk::{Band, DiskParameters, Load, Medium};
use raidlab_statistics::{Confidence, Sample, next_value};
use raidlab_units::{Bytes, Nanos, SECTOR_BYTES, Sectors};
use raidlab_workload::{Engine, JobSpec, Pattern};
use serde::Deserialize;
use std::fmt::Write;
use thiserror::Error;

/// So many of ten further disks shall lie within a band.
const CONFIDENCE: f64 = 0.9;

/// The host of all measurements: microseconds between a completion and the next request.
/// Against a disk's milliseconds it does not matter.
const TURNAROUND_US: u64 = 59;

/// Of fewer disks the spread says nothing.
const LEAST_DISKS: usize = 3;

/// Depths that differ by more put unlike loads on a disk.
const LIKE_DEPTHS: u32 = 2;

/// What is known of disks that the model was not fitted on.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeftOut {
    schema: u32,
    /// The preset that lends what data sheets do not have.
    pub donor: String,
    /// Its parameter set.
    pub set: String,
    /// The preset that lends its shingled tracks, in its first set.
    pub shingled: String,
    disk: Vec<LeftOutDisk>,
    rated: Vec<Rated>,
}

/// A disk whose facts are simulated.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct LeftOutDisk {
    name: String,
    #[serde(rename = "title")]
    _title: String,
    #[serde(flatten)]
    sheet: DataSheet,
    #[serde(rename = "sheet")]
    _sheet_source: String,
    /// Whether it is given the shingled tracks of the preset that has any.
    #[serde(default)]
    shingled: bool,
    source: String,
    fact: Vec<LeftOutFact>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct LeftOutFact {
    load: Load,
    queue_depth: u32,
    op: Direction,
    #[serde(default = "usual_block")]
    block_bytes: u64,
    /// Seconds of the same load before it was measured.
    #[serde(default)]
    prepared_s: u64,
    ios: u64,
    runtime_ms: u64,
    disputed: Option<String>,
}

const fn usual_block() -> u64 {
    4096
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Direction {
    Read,
    Write,
}

/// A figure whose prediction needs no simulation.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rated {
    disk: String,
    medium: Medium,
    load: Load,
    what: String,
    predicted: f64,
    measured: f64,
    source: String,
}

/// A file of left-out disks that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{file}: {message}")]
pub struct LeftOutError {
    file: String,
    message: String,
}

/// What makers say of a disk with an arm.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct DataSheet {
    /// Sectors of 512 bytes.
    pub capacity_sectors: u64,
    /// Time of a revolution, microseconds.
    pub revolution_us: f64,
    /// Average seek, milliseconds.
    pub average_seek_ms: f64,
    /// Sequential rate at the outer edge, bytes per second.
    pub edge_bytes_per_second: f64,
}

impl DataSheet {
    /// A preset's numbers: what the sheet says, and all else as in `donor`, whose seek
    /// curve is scaled to the rated average (the donor's is `donor_seek_ms`) and whose
    /// rate curve to the rated edge.
    #[must_use]
    pub fn applied_to(&self, donor: &DiskParameters, donor_seek_ms: f64) -> DiskParameters {
        let mut disk = donor.clone();
        disk.capacity = Sectors(self.capacity_sectors);
        if let Some(platters) = disk.medium.platters_mut() {
            platters.revolution = Nanos::from_secs_f64(self.revolution_us / 1e6);
            let slower = self.average_seek_ms / donor_seek_ms;
            platters.seek.settle_ns *= slower;
            platters.seek.root_ns *= slower;
            platters.seek.slope_ns *= slower;
        }
        let edge = donor.rate_curve.first();
        let edge = edge.map_or(1.0, |point| point.bytes_per_second);
        for point in &mut disk.rate_curve {
            point.bytes_per_second *= self.edge_bytes_per_second / edge;
        }
        disk
    }
}

/// The average seek that presets scale the donor's curve from, milliseconds: its rating.
pub const DONOR_SEEK_MS: f64 = 8.2;

/// One figure of a left-out disk beside its prediction.
#[derive(Debug, Clone, PartialEq)]
pub struct LeftOutRow {
    /// The disk's name in `facts/left-out.toml`.
    pub disk: String,
    /// What kind of disk it is.
    pub medium: Medium,
    /// The kind of load.
    pub load: Load,
    /// The figure in words.
    pub what: String,
    /// Queue depth; 0 where it has none.
    pub queue_depth: u32,
    /// What was measured.
    pub measured: f64,
    /// What the model says.
    pub predicted: f64,
    /// Why it does not count; empty where it does.
    pub disputed: String,
    /// Where the measured figure is from.
    pub source: String,
}

impl LeftOutRow {
    /// The logarithm of measured over predicted.
    fn error(&self) -> f64 {
        (self.measured / self.predicted).ln()
    }

    /// By how many percent the prediction is above (+) or below (-) the measured figure.
    #[must_use]
    pub fn error_percent(&self) -> f64 {
        100.0 * (self.predicted / self.measured - 1.0)
    }
}

/// A band with what it rests on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LeftOutBand {
    /// The kind of disks.
    pub medium: Medium,
    /// The kind of load.
    pub load: Load,
    /// The band, rounded outwards to whole percent.
    pub band: Band,
    /// Disks whose figures count.
    pub disks: usize,
}

impl LeftOut {
    /// Reads the file of left-out disks; `file` names it in errors.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn parse(file: &str, text: &str) -> Result<Self, LeftOutError> {
        let fail = |message: String| LeftOutError {
            file: file.to_owned(),
            message,
        };
        let found: Self = toml::from_str(text).map_err(|error| fail(error.message().to_owned()))?;
        if found.schema != 1 {
            return Err(fail(
                "schema must be 1, the only version there is".to_owned(),
            ));
        }
        let positive = |number: f64| number.is_finite() && number > 0.0;
        for rated in &found.rated {
            if !positive(rated.predicted) || !positive(rated.measured) {
                return Err(fail(format!("{}: figures must be above 0", rated.disk)));
            }
        }
        let facts = found.disk.iter().flat_map(|disk| &disk.fact);
        for fact in facts {
            if fact.ios == 0 || fact.runtime_ms == 0 || fact.queue_depth == 0 {
                let message = "ios, runtime_ms and queue_depth must be above 0";
                return Err(fail(message.to_owned()));
            }
        }
        Ok(found)
    }

    /// Every figure beside its prediction, each simulated for `seconds`. `donor` and
    /// `shingled` are the presets that the file names.
    ///
    /// # Errors
    /// A disk that cannot be simulated.
    pub fn rows(
        &self,
        donor: &DiskParameters,
        shingled: &DiskParameters,
        seconds: u64,
        seed: u64,
    ) -> Result<Vec<LeftOutRow>, FitError> {
        let mut rows = Vec::new();
        for disk in &self.disk {
            let mut parameters = disk.sheet.applied_to(donor, DONOR_SEEK_MS);
            if disk.shingled {
                let own = parameters.medium.platters().cloned();
                parameters.medium = shingled.medium.clone();
                if let (Some(platters), Some(own)) = (parameters.medium.platters_mut(), own) {
                    *platters = own;
                }
            }
            for fact in &disk.fact {
                let simulated = simulated(disk, fact);
                rows.push(LeftOutRow {
                    disk: disk.name.clone(),
                    medium: parameters.medium(),
                    load: fact.load,
                    what: simulated.title.clone(),
                    queue_depth: fact.queue_depth,
                    measured: simulated.iops,
                    predicted: simulate(&simulated, &parameters, seconds, seed)?,
                    disputed: fact.disputed.clone().unwrap_or_default(),
                    source: disk.source.clone(),
                });
            }
        }
        rows.extend(self.rated.iter().map(|rated| LeftOutRow {
            disk: rated.disk.clone(),
            medium: rated.medium,
            load: rated.load,
            what: rated.what.clone(),
            queue_depth: 0,
            measured: rated.measured,
            predicted: rated.predicted,
            disputed: String::new(),
            source: rated.source.clone(),
        }));
        Ok(rows)
    }
}

#[expect(clippy::cast_precision_loss, reason = "a rate is a statistic")]
fn simulated(disk: &LeftOutDisk, fact: &LeftOutFact) -> Fact {
    let reads = fact.op == Direction::Read;
    let blocks = disk.sheet.capacity_sectors * SECTOR_BYTES / fact.block_bytes.max(1);
    let whole = blocks * fact.block_bytes;
    let pattern = if reads {
        Pattern::RandRead
    } else {
        Pattern::RandWrite
    };
    Fact {
        id: format!("{} at queue depth {}", disk.name, fact.queue_depth),
        title: format!(
            "random {} of {} KiB, queue depth {}{}",
            if reads { "read" } else { "write" },
            fact.block_bytes / 1024,
            fact.queue_depth,
            if fact.prepared_s > 0 {
                ", sustained"
            } else {
                ""
            }
        ),
        subject: None,
        jobs: vec![JobSpec {
            pattern,
            block_size: Bytes(fact.block_bytes),
            ramp_time: Nanos::from_secs(fact.prepared_s),
            io_depth: fact.queue_depth,
            engine: Engine::Libaio,
            random_map: false,
            file_size: Some(Bytes(whole)),
            ..JobSpec::default()
        }],
        turnaround_us: TURNAROUND_US,
        reads,
        iops: fact.ios as f64 / (fact.runtime_ms as f64 / 1e3),
        sets: Vec::new(),
        source: disk.source.clone(),
    }
}

/// The bands that follow from figures beside their predictions, in order of medium and
/// load: of every kind of disk and load with a figure, and of mixed loads.
#[must_use]
pub fn left_out_bands(rows: &[LeftOutRow]) -> Vec<LeftOutBand> {
    let mut bands = Vec::new();
    for &medium in Medium::ALL {
        let own: Vec<&LeftOutRow> = rows
            .iter()
            .filter(|row| row.medium == medium && row.disputed.is_empty())
            .collect();
        let is_random = |load: Load| !matches!(load, Load::Stream | Load::Streams | Load::Mixed);
        let random: Vec<&LeftOutRow> = own
            .iter()
            .copied()
            .filter(|row| is_random(row.load))
            .collect();
        for &load in Load::ALL {
            let of_load: Vec<&LeftOutRow> =
                own.iter().copied().filter(|row| row.load == load).collect();
            let (counted, like) = if load == Load::Mixed {
                (&random, u32::MAX)
            } else {
                (&of_load, LIKE_DEPTHS)
            };
            let by_disk = by_disk(counted);
            if by_disk.is_empty() {
                continue;
            }
            let mut band = around(&by_disk);
            if load == Load::Mixed {
                let shares = |one: &&LeftOutBand| match one.medium {
                    other if medium.facts().like == Some(other) => one.load == load,
                    own => own == medium && is_random(one.load),
                };
                let parts = bands.iter().filter(shares);
                band = parts.fold(Band::NONE, |band, part| band.or(part.band));
                band.ratio = 1.0;
            }
            band.ratio = band.ratio.max(apart(&by_disk, like));
            bands.push(LeftOutBand {
                medium,
                load,
                band: outwards(band),
                disks: by_disk.len(),
            });
        }
    }
    bands
}

/// Queue depths and errors of each disk.
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

/// Rules 1 to 3: where a further disk's errors lie.
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

/// Rule 4: by what factor two figures of a further disk may err apart, if their depths
/// are alike. Of disks with a single figure nothing is known: then by the whole band.
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

/// The ends of what a further value lies between; `None` of too few.
fn next(values: &[f64]) -> Option<(f64, f64)> {
    if values.len() < LEAST_DISKS {
        return None;
    }
    let confidence = Confidence::new(CONFIDENCE).ok()?;
    let found = next_value(&Sample::new(values).ok()?, confidence)?;
    Some((found.low, found.high))
}

/// Rounded to whole percent, so that files and tables say what is reckoned with; never
/// to a narrower band.
fn outwards(band: Band) -> Band {
    let down = |factor: f64| ((factor * 100.0 + 1e-9).floor() / 100.0).max(0.01);
    let up = |factor: f64| (factor * 100.0 - 1e-9).ceil() / 100.0;
    Band {
        low: down(band.low),
        high: up(band.high),
        ratio: up(band.ratio),
    }
}

/// The bands as the file that keeps them.
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
