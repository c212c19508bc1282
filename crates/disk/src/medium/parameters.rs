//! The numbers of a disk: those that all disks have, and those of its medium.

use super::{Medium, MediumParameters, Number};
use crate::surface::RatePoint;
use raidlab_random::Stream;
use raidlab_units::{Bytes, BytesPerSecond, Nanos, SECTOR_BYTES, Sectors};
use thiserror::Error;

/// Everything a [`crate::Disk`] needs to know of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct DiskParameters {
    /// The size of the disk, in sectors.
    pub capacity: Sectors,
    /// Sequential rate along the disk.
    pub rate_curve: Vec<RatePoint>,
    /// Command overhead of a read answered, or a write taken, by the cache.
    pub overhead_cached: Nanos,
    /// Transfer rate of the interface.
    pub interface: BytesPerSecond,
    /// Writes that the cache holds and the scheduler sees, or pages of a flash disk's
    /// buffer; when it is full the host waits. 0 writes through.
    pub write_window: usize,
    /// How long a discard takes beside the overhead of a command that the cache
    /// answers; `None`: the disk takes none.
    pub discard: Option<Nanos>,
    /// What is written at a time on platters: a write of a part of it reads the rest first.
    pub physical_sector: Bytes,
    /// What it reports as that, where it does not report the truth.
    pub reported_sector: Option<Bytes>,
    /// The disk's sector that is the host's first: 63 behind an old partition table. Who
    /// builds the disk says it, not the preset.
    pub first_sector: Sectors,
    /// What the data are on.
    pub medium: MediumParameters,
}

/// A number that no disk can have.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{field}: {problem}")]
pub struct ParameterError {
    /// The field, as named in preset files.
    pub field: &'static str,
    /// What is wrong with it.
    pub problem: &'static str,
}

/// A state in which a disk cannot begin.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StateError {
    /// No state has that name.
    #[error("`{name}` is no state of a disk; known are: {known}")]
    Unknown {
        /// The name of the state that was asked for.
        name: String,
        /// Every name that there is, for people.
        known: String,
    },
    /// The state is one of flash, and the disk has none.
    #[error("`{name}` is a state of solid-state disks, and this is none")]
    NotFlash {
        /// The name of the state that was asked for.
        name: String,
    },
}

/// The first field whose check failed, with what it must be.
pub(crate) fn check(checks: &[(&'static str, bool, &'static str)]) -> Result<(), ParameterError> {
    match checks.iter().find(|check| !check.1) {
        Some(&(field, _, problem)) => Err(ParameterError { field, problem }),
        None => Ok(()),
    }
}

/// What any disk may have.
pub(crate) const OPTIONAL: [&str; 3] = [
    "discard_us",
    "physical_sector_bytes",
    "reported_sector_bytes",
];

/// Positions are nanoseconds of a stream, of which 64 bits hold centuries.
const LONGEST_PASS: f64 = 1e9;

impl DiskParameters {
    /// A disk of this medium with the rate of its interface everywhere, and no cache.
    #[must_use]
    pub fn uniform(capacity: Sectors, rate: BytesPerSecond, medium: MediumParameters) -> Self {
        let rate_curve = vec![RatePoint {
            place: 0.0,
            bytes_per_second: rate.0,
        }];
        Self {
            capacity,
            rate_curve,
            overhead_cached: Nanos::ZERO,
            interface: rate,
            write_window: 0,
            discard: None,
            physical_sector: Bytes(SECTOR_BYTES),
            reported_sector: None,
            first_sector: Sectors::ZERO,
            medium,
        }
    }

    /// A disk with a rate curve and nothing else: not valid until every named
    /// parameter of its medium is set.
    pub(crate) fn blank(medium: Medium, rate_curve: Vec<RatePoint>) -> Self {
        let nothing = Self::uniform(Sectors::ZERO, BytesPerSecond(0.0), medium.blank());
        Self {
            rate_curve,
            ..nothing
        }
    }

    /// Sets a parameter by its name in preset files; false if its medium has none of
    /// that name. Negative values count as 0.
    pub fn set_named(&mut self, name: &str, value: f64) -> bool {
        let number = Number { value };
        match name {
            "capacity_sectors" => self.capacity = Sectors(number.whole()),
            "overhead_cached_ms" => self.overhead_cached = number.milliseconds(),
            "interface_bytes_per_second" => self.interface = BytesPerSecond(value),
            "write_window" => self.write_window = number.count(),
            "discard_us" => self.discard = Some(number.microseconds()),
            "physical_sector_bytes" => self.physical_sector = Bytes(number.whole()),
            "reported_sector_bytes" => self.reported_sector = Some(Bytes(number.whole())),
            _ => return self.medium.set(name, number),
        }
        true
    }

    /// From now on the disk begins in the state of that name.
    ///
    /// # Errors
    /// If no state has that name, or the disk has no flash.
    pub fn begin_in(&mut self, name: &str) -> Result<(), StateError> {
        let position = |states: &[&str]| states.iter().position(|known| *known == name);
        let media = Medium::ALL.iter();
        let known: Vec<_> = media.flat_map(|medium| medium.states()).copied().collect();
        if position(&known).is_none() {
            return Err(StateError::Unknown {
                name: name.to_owned(),
                known: known.join(", "),
            });
        }
        let own = position(self.medium.medium().states());
        let state = own.ok_or_else(|| StateError::NotFlash {
            name: name.to_owned(),
        })?;
        self.medium.set_state(state);
        Ok(())
    }

    /// The name of the state in which a solid-state disk begins.
    #[must_use]
    pub fn state(&self) -> Option<&'static str> {
        let state = self.medium.state()?;
        self.medium.medium().states().get(state).copied()
    }

    /// Sectors of 512 bytes of a physical sector.
    #[must_use]
    pub const fn physical_sectors(&self) -> u64 {
        self.physical_sector.0 / SECTOR_BYTES
    }

    /// The physical sector that a host is told of.
    #[must_use]
    pub fn told_sector(&self) -> Bytes {
        self.reported_sector.unwrap_or(self.physical_sector)
    }

    /// Whether it is an NVMe drive, to which each processor has a queue of its own.
    #[must_use]
    pub fn is_nvme(&self) -> bool {
        self.medium.is_nvme()
    }

    /// Whether what it has acknowledged can be lost with the power, until a flush.
    #[must_use]
    pub fn has_volatile_cache(&self) -> bool {
        self.write_window > 0 && !self.medium.is_protected()
    }

    /// An angle of the platters at time zero, drawn from `random`: spindles are not
    /// synchronised. Zero where nothing turns.
    #[must_use]
    pub fn some_angle(&self, random: &mut Stream) -> Nanos {
        let turn = self.medium.platters().map(|platters| platters.revolution.0);
        turn.map_or(Nanos::ZERO, |turn| Nanos(random.below(turn)))
    }

    /// How long a stream at the slowest rate takes for the whole disk.
    fn whole_seconds(&self) -> f64 {
        let rates = self.rate_curve.iter().map(|point| point.bytes_per_second);
        self.capacity.to_bytes().0 as f64 / rates.fold(f64::INFINITY, f64::min)
    }

    /// Checks that the numbers describe a disk.
    ///
    /// # Errors
    /// Names the first field that does not.
    pub fn validate(&self) -> Result<(), ParameterError> {
        let curve = &self.rate_curve;
        check(&[
            (
                "capacity",
                self.capacity.0 >= 2048,
                "must be at least 1 MiB",
            ),
            ("capacity", self.capacity.0 < 1 << 42, "must be below 2 PiB"),
            ("rate_curve", !curve.is_empty(), "must have a point"),
            (
                "rate_curve",
                curve.iter().all(|point| {
                    (1e5..1e11).contains(&point.bytes_per_second)
                        && (0.0..=1.0).contains(&point.place)
                }),
                "places must be 0 to 1, rates 0.1 MB/s to 100 GB/s",
            ),
            (
                "rate_curve",
                curve.windows(2).all(|pair| pair[0].place < pair[1].place),
                "places must rise",
            ),
            (
                "rate_curve",
                self.whole_seconds() < LONGEST_PASS,
                "must pass the whole disk within thirty years",
            ),
            (
                "interface",
                (1e6..=1e12).contains(&self.interface.0),
                "must be between 1 MB/s and 1 TB/s",
            ),
            (
                "overhead",
                self.overhead_cached < Nanos::SECOND,
                "must be below 1 s",
            ),
            (
                "discard",
                self.discard.is_none_or(|time| time < Nanos::SECOND),
                "must be below 1 s",
            ),
            (
                "physical_sector_bytes",
                self.physical_sectors() >= 1
                    && self.physical_sectors() <= 128
                    && self.physical_sector.0.is_multiple_of(SECTOR_BYTES),
                "must be whole 512 bytes, up to 64 KiB",
            ),
            (
                "reported_sector_bytes",
                self.reported_sector.is_none_or(|sector| {
                    (SECTOR_BYTES..=65_536).contains(&sector.0) && sector.0.is_power_of_two()
                }),
                "must be a power of two from 512 bytes to 64 KiB",
            ),
            (
                "write_window",
                self.write_window <= 65_536,
                "must be at most 65536",
            ),
        ])?;
        self.medium.validate(self)
    }
}

#[cfg(test)]
mod tests {
    use super::{DiskParameters, OPTIONAL};
    use crate::medium::Medium;

    #[test]
    fn every_name_sets_something() {
        for &medium in Medium::ALL {
            let blank = DiskParameters::blank(medium, Vec::new());
            for name in medium.names().chain(OPTIONAL) {
                let mut set = blank.clone();
                assert!(set.set_named(name, 3.0), "{name}");
                assert_ne!(set, blank, "{name}");
            }
            assert!(!blank.clone().set_named("seek", 1.0));
        }
    }

    #[test]
    fn a_file_is_of_the_medium_whose_names_it_has() {
        for &medium in Medium::ALL {
            assert_eq!(Medium::of_names(medium.names()), medium);
        }
    }
}
