//! Solid-state drives that were left out of every fit. Each has a preset that comes with raidlab and
//! is made of its data sheet. A fact is how many requests a second the real drive served of a
//! stated load, and the same load is simulated on the preset.
//!
//! Some measurements are of a given rate instead of a given depth: requests arrive at random times,
//! and their latency is measured. By Little's law the mean number in flight is the rate times the
//! mean latency. Such a fact has that number, rounded, as its depth, and the depth over the mean
//! latency as its rate: what a program gets that keeps so many in flight, if the latency is that.

use super::{LeftOutRow, usual_block};
use crate::evaluate::{FitError, simulate};
use crate::facts::{Counted, Fact};
use raidlab_disk::{DiskParameters, Load};
use raidlab_units::{Bytes, Nanos, SECTOR_BYTES};
use raidlab_workload::{Engine, JobSpec, Pattern};
use serde::Deserialize;

/// How many times shorter a drive is simulated than a disk with an arm: it serves a thousand times
/// as many requests meanwhile.
const SHORTER: u64 = 300;

/// The time before the measured one, in which the write buffer fills: 64 MiB at 55 thousand writes
/// of 4 KiB a second.
const FILLING: Nanos = Nanos::from_millis(300);

/// A drive whose facts are simulated on its preset.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LeftOutDrive {
    pub(super) preset: String,
    /// The state that the real drive was brought into.
    state: String,
    source: String,
    fact: Vec<DriveFact>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct DriveFact {
    load: Load,
    queue_depth: u32,
    /// The percentage of reads among the requests, 0 to 100.
    read_percent: u32,
    /// The requests served per second.
    rate: f64,
    disputed: Option<String>,
}

impl LeftOutDrive {
    /// Checks the figures of its facts.
    pub(super) fn check(&self) -> Result<(), String> {
        let wrong = |fact: &&DriveFact| {
            let is_rate = fact.rate.is_finite() && fact.rate > 0.0;
            !is_rate || fact.queue_depth == 0 || fact.read_percent > 100
        };
        match self.fact.iter().find(wrong) {
            None => Ok(()),
            Some(_) => Err(format!(
                "{}: rate and queue_depth must be above 0, and read_percent at most 100",
                self.preset
            )),
        }
    }

    /// Computes the drive's figures beside those of its preset.
    pub(super) fn rows(
        &self,
        preset: &DiskParameters,
        seconds: u64,
        seed: u64,
    ) -> Result<Vec<LeftOutRow>, FitError> {
        let mut parameters = preset.clone();
        parameters
            .begin_in(&self.state)
            .map_err(|source| FitError::State {
                drive: self.preset.clone(),
                source,
            })?;
        let time = Nanos(Nanos::from_secs(seconds).0 / SHORTER);
        let row = |one: &DriveFact| {
            let fact = self.simulated(one, &parameters);
            Ok(LeftOutRow {
                disk: self.preset.clone(),
                medium: parameters.medium(),
                load: one.load,
                predicted: simulate(&fact, &parameters, time, seed)?,
                what: fact.title,
                queue_depth: one.queue_depth,
                measured: one.rate,
                disputed: one.disputed.clone().unwrap_or_default(),
                source: self.source.clone(),
            })
        };
        self.fact.iter().map(row).collect()
    }

    fn simulated(&self, one: &DriveFact, parameters: &DiskParameters) -> Fact {
        let block = usual_block();
        let (pattern, what) = match one.read_percent {
            0 => (Pattern::RandWrite, "random writes".to_owned()),
            100 => (Pattern::RandRead, "random reads".to_owned()),
            part => (
                Pattern::RandRw,
                format!("random requests, {part} % of them reads,"),
            ),
        };
        let blocks = parameters.capacity.0 * SECTOR_BYTES / block;
        Fact {
            id: format!("{} at queue depth {}", self.preset, one.queue_depth),
            title: format!(
                "{what} of {} KiB, queue depth {}, {}",
                block / 1024,
                one.queue_depth,
                self.state
            ),
            subject: None,
            jobs: vec![JobSpec {
                pattern,
                block_size: Bytes(block),
                io_depth: one.queue_depth,
                ramp_time: FILLING,
                read_mix_percent: one.read_percent,
                engine: Engine::Libaio,
                random_map: false,
                file_size: Some(Bytes(blocks * block)),
                ..JobSpec::default()
            }],
            turnaround_us: 0,
            counted: Counted::Both,
            iops: one.rate,
            sets: Vec::new(),
            source: self.source.clone(),
        }
    }
}
