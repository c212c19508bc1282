//! The parameters of a disk: those that all disks have, and those of its medium.

use super::{Medium, MediumParameters, Number};
use crate::surface::RatePoint;
use raidlab_random::Stream;
use raidlab_units::{Bytes, BytesPerSecond, Nanos, SECTOR_BYTES, Sectors};
use thiserror::Error;

/// All parameters of a [`crate::Disk`].
#[derive(Debug, Clone, PartialEq)]
pub struct DiskParameters {
    /// The size of the disk, in sectors.
    pub capacity: Sectors,
    /// The sequential rate along the disk.
    pub rate_curve: Vec<RatePoint>,
    /// The command overhead of a read answered, or a write taken, by the cache.
    pub overhead_cached: Nanos,
    /// The transfer rate of the interface.
    pub interface: BytesPerSecond,
    /// The number of writes that the cache holds and the scheduler sees, or of pages in a flash
    /// disk's buffer; when it is full the host waits. With 0 writes go through.
    pub write_window: usize,
    /// The time of a discard beside the overhead of a command that the cache answers; `None`: the
    /// disk takes none.
    pub discard: Option<Nanos>,
    /// The unit of writing on platters: a write of a part of it reads the rest first.
    pub physical_sector: Bytes,
    /// The physical sector that it reports, where that is not the true one.
    pub reported_sector: Option<Bytes>,
    /// The disk's sector that is the host's first: 63 after an old partition table. Set by the
    /// builder of the disk, not by the preset.
    pub first_sector: Sectors,
    /// The parameters of the medium.
    pub medium: MediumParameters,
}

/// The error of a number that no disk can have.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{field}: {problem}")]
pub struct ParameterError {
    /// The name of the field in preset files.
    pub field: &'static str,
    /// The problem with its value.
    pub problem: &'static str,
}

/// The error of a state in which a disk cannot begin.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StateError {
    /// There is no state of that name.
    #[error("`{name}` is no state of a disk; known are: {known}")]
    Unknown {
        /// The name of the state that was asked for.
        name: String,
        /// The names of all states, for people.
        known: String,
    },
    /// The state is one of flash, and the disk has none.
    #[error("`{name}` is a state of solid-state disks, and this is none")]
    NotFlash {
        /// The name of the state that was asked for.
        name: String,
    },
}

/// Returns the error of the first field whose check failed, with what it must be.
pub(crate) fn check(checks: &[(&'static str, bool, &'static str)]) -> Result<(), ParameterError> {
    match checks.iter().find(|check| !check.1) {
        Some(&(field, _, problem)) => Err(ParameterError { field, problem }),
        None => Ok(()),
    }
}

/// The parameters that any disk may have.
pub(crate) const OPTIONAL: [&str; 3] = [
    "discard_us",
    "physical_sector_bytes",
    "reported_sector_bytes",
];

/// The longest time of a stream over the whole disk, seconds: positions are its nanoseconds, and 64
/// bits hold centuries.
const LONGEST_PASS: f64 = 1e9;

impl DiskParameters {
    /// Creates a disk of this medium with the rate of its interface everywhere, and no cache.
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

    /// Creates a disk with only a rate curve: not valid until every named parameter of its
    /// medium is set.
    pub(crate) fn blank(medium: Medium, rate_curve: Vec<RatePoint>) -> Self {
        let nothing = Self::uniform(Sectors::ZERO, BytesPerSecond(0.0), medium.blank());
        Self {
            rate_curve,
            ..nothing
        }
    }

    /// Sets a parameter by its name in preset files; returns false if its medium has none of that
    /// name. Negative values count as 0.
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

    /// Sets the state in which the disk begins, by its name.
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

    /// The number of 512-byte sectors in a physical sector.
    #[must_use]
    pub const fn physical_sectors(&self) -> u64 {
        self.physical_sector.0 / SECTOR_BYTES
    }

    /// The physical sector that the host is told.
    #[must_use]
    pub fn told_sector(&self) -> Bytes {
        self.reported_sector.unwrap_or(self.physical_sector)
    }

    /// Whether it is an NVMe drive, which has a queue for each processor.
    #[must_use]
    pub fn is_nvme(&self) -> bool {
        self.medium.is_nvme()
    }

    /// Whether the disk says that it has a write cache, so that the host flushes it. An NVMe drive
    /// says so only if the cache is lost with the power (`VWC` of Identify Controller; Linux
    /// drivers/nvme/host/core.c, `nvme_update_ns_info_block`), but a SATA drive whenever the cache
    /// is on (word 85 of IDENTIFY DEVICE; drivers/ata/libata-scsi.c, `ata_msense_caching`).
    #[must_use]
    pub fn declares_write_cache(&self) -> bool {
        self.write_window > 0 && !(self.medium.is_nvme() && self.medium.is_protected())
    }

    /// An angle of the platters at time zero, drawn from `random`: spindles are not synchronised.
    /// Zero where nothing rotates.
    #[must_use]
    pub fn some_angle(&self, random: &mut Stream) -> Nanos {
        let turn = self.medium.platters().map(|platters| platters.revolution.0);
        turn.map_or(Nanos::ZERO, |turn| Nanos(random.below(turn)))
    }

    /// The time of a stream over the whole disk at the slowest rate, seconds.
    fn whole_seconds(&self) -> f64 {
        let rates = self.rate_curve.iter().map(|point| point.bytes_per_second);
        self.capacity.to_bytes().0 as f64 / rates.fold(f64::INFINITY, f64::min)
    }

    /// Checks that the numbers describe a disk.
    ///
    /// # Errors
    /// Names the first invalid field.
    pub fn validate(&self) -> Result<(), ParameterError> {
        self.check_numbers()?;
        self.check_curve()?;
        self.medium.validate(self)
    }

    /// Checks the numbers that all media have.
    fn check_numbers(&self) -> Result<(), ParameterError> {
        check(&[
            (
                "capacity_sectors",
                self.capacity.0 >= 2048,
                "must be at least 1 MiB",
            ),
            (
                "capacity_sectors",
                self.capacity.0 < 1 << 42,
                "must be below 2 PiB",
            ),
            (
                "interface_bytes_per_second",
                (1e6..=1e12).contains(&self.interface.0),
                "must be between 1 MB/s and 1 TB/s",
            ),
            (
                "overhead_cached_ms",
                self.overhead_cached < Nanos::SECOND,
                "must be below 1 s",
            ),
            (
                "discard_us",
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
        ])
    }

    /// Checks the rates along the disk.
    fn check_curve(&self) -> Result<(), ParameterError> {
        let curve = &self.rate_curve;
        check(&[
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
                self.medium.platters().is_some() || curve.len() == 1,
                "must be one point where nothing turns: other numbers give its rate",
            ),
            (
                "rate_curve",
                self.whole_seconds() < LONGEST_PASS,
                "must pass the whole disk within thirty years",
            ),
        ])
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
