//! A disk with shingled tracks: platters and an arm, and the
//! bands of [`crate::medium::platters::shingles`].

use super::parameters::{DiskParameters, ParameterError, check};
use super::platters::shingles::ShingleParameters;
use super::platters::{PlatterParameters, Platters};
use super::{Facts, Medium, MediumKind, Number};
use raidlab_random::Stream;
use raidlab_units::{Bytes, Nanos};

/// Parameters of a disk with platters, an arm, and shingled tracks.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Parameters {
    /// The arm and the platters.
    pub platters: PlatterParameters,
    /// The bands and the persistent cache.
    pub shingles: ShingleParameters,
}

impl MediumKind for Parameters {
    type Mechanism = Platters;

    const FACTS: Facts = Facts {
        shared_names: PlatterParameters::FACTS.own_names,
        own_names: &[
            "shingle_cache_bytes",
            "shingle_cache_extents",
            "shingle_band_bytes",
            "shingle_stream_bytes",
            "shingle_idle_ms",
        ],
        like: Some(Medium::Platters),
        ..PlatterParameters::FACTS
    };

    fn blank() -> Self {
        Self::default()
    }

    fn set(&mut self, name: &str, value: Number) -> bool {
        let own = &mut self.shingles;
        match name {
            "shingle_cache_bytes" => own.cache = Bytes(value.whole()),
            "shingle_cache_extents" => own.extents = value.count(),
            "shingle_band_bytes" => own.band = Bytes(value.whole()),
            "shingle_stream_bytes" => own.stream = Bytes(value.whole()),
            "shingle_idle_ms" => own.idle = value.milliseconds(),
            _ => return self.platters.set(name, value),
        }
        true
    }

    fn validate(&self, disk: &DiskParameters) -> Result<(), ParameterError> {
        self.platters.validate(disk)?;
        let own = &self.shingles;
        check(&[
            (
                "shingle_band_bytes",
                (1 << 20..=disk.capacity.to_bytes().0).contains(&own.band.0),
                "must be at least 1 MiB, and a band must fit on the disk",
            ),
            (
                "shingle_cache_bytes",
                own.cache.0 >= 1 << 20,
                "must be at least 1 MiB",
            ),
            (
                "shingle_cache_extents",
                own.extents >= 1,
                "must be at least 1",
            ),
            (
                "shingle_stream_bytes",
                own.stream.0 < 1 << 50,
                "must be below 1 PiB",
            ),
            (
                "shingle_idle_ms",
                own.idle.0 < 1 << 50,
                "must be below thirteen days",
            ),
        ])
    }

    fn build(&self, disk: &DiskParameters, angle: Nanos, random: Stream) -> Platters {
        Platters::new(disk, &self.platters, Some(self.shingles), angle, random)
    }

    fn platters(&self) -> Option<&PlatterParameters> {
        Some(&self.platters)
    }

    fn platters_mut(&mut self) -> Option<&mut PlatterParameters> {
        Some(&mut self.platters)
    }
}
