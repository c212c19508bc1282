//! The surface: where a sector is, and when it passes under the head.
//!
//! One number gives both. A sector's **position** is the time, in nanoseconds, that a sequential
//! read from sector 0 needs to reach it. It grows along the disk, so differences of positions are
//! differences of radius (tracks are one revolution long), and modulo one revolution it is the
//! sector's angle. Head and cylinder switches are inside the sequential rate, as skew hides them: a
//! stream never misses its next sector, at any track or zone boundary.
//!
//! The rate curve is cut into zones of equal size and constant rate, as drives
//! are. Fixed-point arithmetic keeps positions the same on every machine.

use raidlab_units::Sectors;

/// The number of zones of a disk. Nearline disks of the 2010s have 20 to 40; more cost nothing here
/// and follow the measured curve more closely.
const ZONES: usize = 64;
/// The number of fractional bits in the nanoseconds per sector.
const FRACTION_BITS: u32 = 32;

/// One measured point of the sequential rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RatePoint {
    /// The place, as a fraction of the capacity, 0 to 1.
    pub place: f64,
    /// The sequential rate at that place, in bytes per second.
    pub bytes_per_second: f64,
}

#[derive(Debug, Clone, Copy)]
struct Zone {
    first_sector: u64,
    first_position: u64,
    /// The nanoseconds per sector, in fixed point.
    sector_time: u64,
}

/// The geometry of one disk's platters.
#[derive(Debug, Clone)]
pub struct Surface {
    zones: Vec<Zone>,
    zone_sectors: u64,
    capacity: u64,
    end_position: u64,
    stroke_per_ns: f64,
}

impl Surface {
    /// A surface of `capacity` sectors whose sequential rate follows `curve`:
    /// points in rising order of place, linear between them, constant beyond
    /// the ends. The curve must not be empty and its rates must be positive.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "set-up in floating point, basic operations only; rates are positive and bounded"
    )]
    pub fn new(capacity: Sectors, curve: &[RatePoint]) -> Self {
        let zone_sectors = capacity.0.div_ceil(ZONES as u64).max(1);
        let mut zones = Vec::with_capacity(ZONES);
        let mut position = 0;
        for zone in 0..ZONES as u64 {
            let first_sector = zone * zone_sectors;
            if first_sector >= capacity.0 && zone > 0 {
                break;
            }
            let middle = (first_sector + zone_sectors / 2) as f64 / capacity.0 as f64;
            let rate = rate_at(curve, middle);
            let sector_time = (512e9 / rate * (1_u64 << FRACTION_BITS) as f64) as u64;
            zones.push(Zone {
                first_sector,
                first_position: position,
                sector_time,
            });
            let sectors = zone_sectors.min(capacity.0 - first_sector);
            position += scale(sectors, sector_time);
        }
        Self {
            zones,
            zone_sectors,
            capacity: capacity.0,
            end_position: position,
            stroke_per_ns: 1.0 / position.max(1) as f64,
        }
    }

    /// The number of sectors on the disk.
    #[must_use]
    pub fn capacity(&self) -> Sectors {
        Sectors(self.capacity)
    }

    /// The position of a sector; beyond the end, the position of the end.
    #[inline]
    #[must_use]
    pub fn position(&self, sector: u64) -> u64 {
        if sector >= self.capacity {
            return self.end_position;
        }
        let zone = &self.zones[usize::try_from(sector / self.zone_sectors).unwrap_or(0)];
        zone.first_position + scale(sector - zone.first_sector, zone.sector_time)
    }

    /// The positions of two sectors, of which the second is seldom in another zone.
    #[inline]
    #[must_use]
    pub fn positions(&self, start: u64, end: u64) -> (u64, u64) {
        let first = start / self.zone_sectors;
        let zone = usize::try_from(first)
            .ok()
            .and_then(|first| self.zones.get(first));
        match zone {
            Some(zone) if end < self.capacity && end - zone.first_sector < self.zone_sectors => {
                let position = |sector| {
                    zone.first_position + scale(sector - zone.first_sector, zone.sector_time)
                };
                (position(start), position(end))
            }
            _ => (self.position(start), self.position(end)),
        }
    }

    /// The last sector whose position is not beyond `position`.
    #[must_use]
    pub fn sector_at(&self, position: u64) -> u64 {
        if position >= self.end_position {
            return self.capacity;
        }
        let index = self
            .zones
            .partition_point(|zone| zone.first_position <= position)
            - 1;
        let zone = &self.zones[index];
        let within = (u128::from(position - zone.first_position) << FRACTION_BITS)
            / u128::from(zone.sector_time);
        (zone.first_sector + u64::try_from(within).unwrap_or(0)).min(self.capacity)
    }

    /// A distance of positions as a fraction of the full stroke.
    #[inline]
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "distances need no exactness")]
    pub fn stroke(&self, distance: u64) -> f64 {
        distance as f64 * self.stroke_per_ns
    }
}

#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the time of a whole disk in nanoseconds is far below 2^64"
)]
fn scale(sectors: u64, sector_time: u64) -> u64 {
    ((u128::from(sectors) * u128::from(sector_time)) >> FRACTION_BITS) as u64
}

fn rate_at(curve: &[RatePoint], place: f64) -> f64 {
    let after = curve.partition_point(|point| point.place <= place);
    if after == 0 {
        return curve[0].bytes_per_second;
    }
    let Some(right) = curve.get(after) else {
        return curve[curve.len() - 1].bytes_per_second;
    };
    let left = &curve[after - 1];
    let share = (place - left.place) / (right.place - left.place);
    left.bytes_per_second + share * (right.bytes_per_second - left.bytes_per_second)
}

#[cfg(test)]
mod tests {
    use super::{RatePoint, Surface};
    use proptest::prelude::*;
    use raidlab_units::{Nanos, Sectors};

    fn surface() -> Surface {
        let point = |place, megabytes: f64| RatePoint {
            place,
            bytes_per_second: megabytes * 1e6,
        };
        Surface::new(
            Sectors(1_000_000_007),
            &[point(0.0, 180.0), point(0.5, 150.0), point(1.0, 90.0)],
        )
    }

    #[test]
    fn a_constant_rate_gives_the_plain_quotient() {
        let flat = Surface::new(
            Sectors(1_000_000),
            &[RatePoint {
                place: 0.0,
                bytes_per_second: 512e6,
            }],
        );
        // 512 bytes at 512 MB/s are one microsecond.
        assert_eq!(
            flat.position(501_000) - flat.position(1_000),
            Nanos::from_millis(500).0
        );
    }

    #[test]
    fn outer_sectors_are_faster() {
        let surface = surface();
        let gigabyte = 2_000_000;
        let time = |start| surface.position(start + gigabyte) - surface.position(start);
        let (outer, inner) = (time(0), time(990_000_000));
        assert!(inner > outer * 19 / 10 && inner < outer * 21 / 10);
    }

    proptest! {
        #[test]
        fn two_positions_are_those_of_each(
            start in 0_u64..1_000_000_107,
            length in prop_oneof![0_u64..3000, 0_u64..40_000_000],
        ) {
            let (surface, end) = (surface(), start + length);
            let each = (surface.position(start), surface.position(end));
            prop_assert_eq!(surface.positions(start, end), each);
        }

        #[test]
        fn positions_rise_and_invert(sector in 0_u64..1_000_000_007) {
            let surface = surface();
            let position = surface.position(sector);
            prop_assert!(surface.position(sector + 1) >= position + 2_000);
            prop_assert_eq!(surface.sector_at(position + 1_000), sector);
        }
    }
}
