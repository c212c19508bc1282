//! A modelled disk that is served in real time.

use super::Served;
use crate::array::claim_refused;
use crate::disks;
use crate::failure::Failure;
use raidlab_bench_model::presets;
use raidlab_disk::QueueRules;
use raidlab_serve::disk::{DiskConfig, DiskExport, DiskStorage};
use raidlab_serve::member::{MemberFile, OpenOptions};
use raidlab_units::Nanos;
use std::path::Path;
use std::sync::Arc;

/// A modelled disk that is served, as it was asked for.
pub(super) struct Source<'a> {
    pub(super) preset: &'a str,
    pub(super) set: Option<&'a str>,
    pub(super) storage: Option<&'a Path>,
    pub(super) seed: u64,
}

impl Source<'_> {
    /// Starts serving the disk.
    ///
    /// # Errors
    /// When there is no such preset or set, or the file cannot be used.
    pub(super) fn start(&self) -> Result<Served, Failure> {
        let preset = presets::load(self.preset)?;
        let set = disks::set(&preset, self.set)?;
        let parameters = preset.parameters(&set).map_err(Failure::input)?;
        let storage = match self.storage {
            None => DiskStorage::Memory,
            Some(path) => {
                let options = OpenOptions {
                    buffered: true,
                    ..OpenOptions::default()
                };
                DiskStorage::File(MemberFile::open(path, options).map_err(claim_refused)?)
            }
        };
        let export = DiskExport::start(DiskConfig {
            parameters: parameters.clone(),
            phase: Nanos::ZERO,
            seed: self.seed,
            queue: QueueRules::SATA,
            storage,
        })
        .map_err(Failure::run)?;
        Ok(Served::Disk(Arc::new(export)))
    }
}
