//! A disk with shingled tracks: platters and an arm, and the
//! bands of [`crate::medium::platters::shingles`].

use super::parameters::{DiskParameters, ParameterError};
use super::platters::shingles::ShingleParameters;
use super::platters::{PlatterParameters, Platters};
use super::{Facts, Medium, MediumKind, Number};
use raidlab_random::Stream;
use raidlab_units::{Bytes, Nanos};

/// Parameters of a disk with platters, an arm, and shingled tracks.
#[derive(Debug, Clone, PartialEq)]
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
        Self {
            platters: PlatterParameters::blank(),
            shingles: ShingleParameters {
                cache: Bytes(0),
                extents: 0,
                band: Bytes(0),
                stream: Bytes(0),
                idle: Nanos::ZERO,
            },
        }
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
        let is_one = own.band.0 >= 1 << 20
            && own.band.0 <= disk.capacity.to_bytes().0
            && own.cache.0 >= 1 << 20
            && own.extents >= 1
            && own.stream.0 < 1 << 50
            && own.idle.0 < 1 << 50;
        if is_one {
            return Ok(());
        }
        Err(ParameterError {
            field: "shingles",
            problem: "a band and the cache have at least 1 MiB, the map an entry, and bands fit on \
                      the disk",
        })
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
