//! Disks that were left out of every fit: how far predictions from a data sheet are from the
//! disks' real figures.
//!
//! The disks of the file were not used for any number of the model. Each is predicted as
//! presets without a fit are made: its data sheet's numbers, and the donor's for all that
//! no data sheet has ([`DataSheet::applied_to`]).
//! Bands that hold a further disk's errors follow from them: see `bands`.

mod bands;
mod drives;

pub use bands::{LeftOutBand, bands_file, left_out_bands};

use crate::evaluate::{FitError, simulate};
use crate::facts::{Counted, Fact};
use drives::LeftOutDrive;
use raidlab_disk::{DiskParameters, Load, Medium};
use raidlab_units::{Bytes, Nanos, SECTOR_BYTES, Sectors};
use raidlab_workload::{Engine, JobSpec, Pattern};
use serde::Deserialize;
use thiserror::Error;

/// The turnaround of the host of all measurements, in microseconds between a completion and the
/// next request. Against a disk's milliseconds it does not matter.
const TURNAROUND_US: u64 = 59;

/// The facts about disks that the model was not fitted on.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeftOut {
    schema: u32,
    /// The preset that lends what data sheets do not have.
    pub donor: String,
    /// The parameter set of that preset that is used.
    pub set: String,
    /// The preset that lends its shingled tracks, in its first set.
    pub shingled: String,
    disk: Vec<LeftOutDisk>,
    drive: Vec<LeftOutDrive>,
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
    /// The seconds of the same load before it was measured.
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
    disputed: Option<String>,
}

/// The error of a file of left-out disks that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{file}: {message}")]
pub struct LeftOutError {
    file: String,
    message: String,
}

/// The makers' figures of a disk with an arm.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct DataSheet {
    /// The capacity in sectors of 512 bytes.
    pub capacity_sectors: u64,
    /// The time of a revolution, in microseconds.
    pub revolution_us: f64,
    /// The average seek time as the sheet rates it, in milliseconds.
    pub average_seek_ms: f64,
    /// The sequential rate at the outer edge, in bytes per second.
    pub edge_bytes_per_second: f64,
}

impl DataSheet {
    /// Makes a preset's numbers: the sheet's, and all else as in `donor`, whose seek curve is
    /// scaled to the rated average (the donor's is `donor_seek_ms`) and whose rate curve to
    /// the rated edge.
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

/// The average seek from which presets scale the donor's curve, in milliseconds: its rating.
pub const DONOR_SEEK_MS: f64 = 8.2;

/// One figure of a left-out disk beside its prediction.
#[derive(Debug, Clone, PartialEq)]
pub struct LeftOutRow {
    /// The disk's name in `facts/left-out.toml`.
    pub disk: String,
    /// The kind of the disk.
    pub medium: Medium,
    /// The kind of load.
    pub load: Load,
    /// The figure in words.
    pub what: String,
    /// The queue depth; 0 where it has none.
    pub queue_depth: u32,
    /// The figure of the real disk, as `source` has it.
    pub measured: f64,
    /// The figure that the model gives, in the same unit.
    pub predicted: f64,
    /// The reason why it does not count; empty where it does.
    pub disputed: String,
    /// The source of the measured figure.
    pub source: String,
}

impl LeftOutRow {
    /// Returns the logarithm of measured over predicted.
    fn error(&self) -> f64 {
        (self.measured / self.predicted).ln()
    }

    /// The percentage by which the prediction is above (+) or below (-) the measured figure.
    #[must_use]
    pub fn error_percent(&self) -> f64 {
        100.0 * (self.predicted / self.measured - 1.0)
    }
}

impl LeftOut {
    /// Reads the file of left-out disks; `file` names it in errors.
    ///
    /// # Errors
    /// The first mistake.
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
        for drive in &found.drive {
            drive.check().map_err(fail)?;
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

    /// The presets of solid-state drives that the file names, in its order.
    pub fn drives(&self) -> impl Iterator<Item = &str> {
        self.drive.iter().map(|drive| drive.preset.as_str())
    }

    /// Computes every figure beside its prediction, each simulated for `seconds`, and those of
    /// solid-state drives for a 300th of that. `donor` and `shingled` are the presets that the
    /// file names, and `drives` those of [`Self::drives`].
    ///
    /// # Errors
    /// A disk that cannot be simulated.
    pub fn rows(
        &self,
        donor: &DiskParameters,
        shingled: &DiskParameters,
        drives: &[DiskParameters],
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
                    predicted: simulate(&simulated, &parameters, Nanos::from_secs(seconds), seed)?,
                    disputed: fact.disputed.clone().unwrap_or_default(),
                    source: disk.source.clone(),
                });
            }
        }
        for (drive, preset) in self.drive.iter().zip(drives) {
            rows.extend(drive.rows(preset, seconds, seed)?);
        }
        rows.extend(self.rated.iter().map(|rated| LeftOutRow {
            disk: rated.disk.clone(),
            medium: rated.medium,
            load: rated.load,
            what: rated.what.clone(),
            queue_depth: 0,
            measured: rated.measured,
            predicted: rated.predicted,
            disputed: rated.disputed.clone().unwrap_or_default(),
            source: rated.source.clone(),
        }));
        Ok(rows)
    }
}

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
        counted: Counted::one(reads),
        iops: fact.ios as f64 / (fact.runtime_ms as f64 / 1e3),
        sets: Vec::new(),
        source: disk.source.clone(),
    }
}
