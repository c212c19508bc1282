//! The seek curve: the time of a move of the arm.
//!
//! The classic curve of Ruemmler and Wilkes ("An introduction to disk drive
//! modeling", IEEE Computer 1994): a settle time, growing with the square root
//! of the distance while the arm mostly accelerates and brakes, and linearly
//! beyond the knee where it coasts. Distance is a fraction of the full stroke.

use raidlab_units::Nanos;

/// A seek curve.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SeekCurve {
    /// The time of the shortest move: settle and head switch, nanoseconds.
    pub settle_ns: f64,
    /// The factor of the square root of the distance, nanoseconds.
    pub root_ns: f64,
    /// The distance where the curve becomes linear, as a fraction of the stroke.
    pub knee: f64,
    /// The slope beyond the knee, nanoseconds per full stroke.
    pub slope_ns: f64,
}

impl SeekCurve {
    /// The time of a move over `fraction` of the stroke (0 to 1), settle
    /// included, in nanoseconds.
    #[inline]
    #[must_use]
    pub fn time_ns(&self, fraction: f64) -> f64 {
        // `min` and `max` are avoided, as they have to handle NaN.
        let (curved, straight) = if fraction < self.knee {
            (fraction, 0.0)
        } else {
            (self.knee, fraction - self.knee)
        };
        self.settle_ns + self.root_ns * curved.sqrt() + self.slope_ns * straight
    }

    /// The mean over all pairs of places, each equally likely, which data sheets call the
    /// average seek, nanoseconds.
    #[must_use]
    pub fn average_ns(&self) -> f64 {
        // The distances of two uniform places have the density 2 (1 - d).
        const STEPS: u32 = 1000;
        let steps = f64::from(STEPS);
        (0..STEPS)
            .map(|step| {
                let distance = (f64::from(step) + 0.5) / steps;
                2.0 * (1.0 - distance) * self.time_ns(distance) / steps
            })
            .sum()
    }

    /// [`Self::time_ns`] as a time.
    #[must_use]
    pub fn time(&self, fraction: f64) -> Nanos {
        Nanos::from_secs_f64(self.time_ns(fraction) / 1e9)
    }
}

#[cfg(test)]
mod tests {
    use super::SeekCurve;
    use raidlab_units::Nanos;

    const CURVE: SeekCurve = SeekCurve {
        settle_ns: 900_000.0,
        root_ns: 15_840_000.0,
        knee: 0.123,
        slope_ns: 9_060_000.0,
    };

    #[test]
    fn the_curve_is_continuous_and_rises() {
        let mut last = Nanos::ZERO;
        for step in 0..=1000 {
            let time = CURVE.time(f64::from(step) / 1000.0);
            assert!(time > last, "at {step}");
            assert!(
                time.saturating_sub(last) < Nanos::from_micros(1_500),
                "at {step}"
            );
            last = time;
        }
    }

    #[test]
    fn the_average_of_a_straight_line_is_at_a_third() {
        let line = SeekCurve {
            settle_ns: 1e6,
            root_ns: 0.0,
            knee: 0.0,
            slope_ns: 9e6,
        };
        assert!((line.average_ns() - 4e6).abs() < 100.0);
    }

    #[test]
    fn known_points() {
        assert_eq!(CURVE.time(0.0), Nanos::from_micros(900));
        // 0.9 + 15.84 * 0.1 ms
        assert_eq!(CURVE.time(0.01), Nanos::from_micros(2_484));
        // 0.9 + 15.84 * sqrt(0.123) + 9.06 * 0.877 ms
        assert_eq!(CURVE.time(1.0).0 / 1_000, 14_400);
    }
}
