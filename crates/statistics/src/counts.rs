//! How sure a count of I/Os is, and how fine a printed number can be.
//!
//! Sixty seconds at 38 IOPS are 2300 I/Os, and if they came at random the
//! count would vary by 1 / sqrt(2300) = 2 %: a difference of 1 % is no
//! finding. A count of independent arrivals is a Poisson number, with the
//! exact limits of Garwood (1936) by way of the gamma distribution. A disk
//! served one I/O after another is more regular than that: a renewal process,
//! whose count over a long time has variance c^2 n, with c the coefficient of
//! variation of the times between completions (Cox, Renewal Theory, 1962,
//! section 3.3). c = 1 gives the Poisson variance.

use crate::distributions::{gamma_quantile, normal_quantile};
use crate::interval::{Confidence, Estimate, Interval, Method, NoInterval};

/// The relative standard error of a rate measured by counting: c / sqrt(n).
/// `None` without any I/O, or for a coefficient of variation that is negative
/// or not finite. Take 1 when it is not known.
#[must_use]
pub fn relative_standard_error(count: u64, coefficient_of_variation: f64) -> Option<f64> {
    let valid =
        count > 0 && coefficient_of_variation >= 0.0 && coefficient_of_variation.is_finite();
    valid.then(|| coefficient_of_variation / (count as f64).sqrt())
}

/// The interval of a count. Divide by the time for a rate.
///
/// Without a coefficient of variation: exact Poisson limits, for any count
/// (none seen still has an upper limit). With one: the normal approximation
/// of a renewal count, which needs at least one I/O ([`NoInterval::OneValue`]
/// otherwise) and has its lower end held at 0.
#[must_use]
pub fn count_estimate(
    count: u64,
    coefficient_of_variation: Option<f64>,
    confidence: Confidence,
) -> Estimate {
    let value = count as f64;
    let upper = confidence.upper();
    let Some(variation) = coefficient_of_variation else {
        let low = if count == 0 {
            0.0
        } else {
            gamma_quantile(1.0 - upper, value)
        };
        let high = gamma_quantile(upper, value + 1.0);
        return Estimate {
            value,
            interval: Ok((
                Interval {
                    low,
                    high,
                    confidence,
                },
                Method::PoissonCount,
            )),
        };
    };
    let reach = relative_standard_error(count, variation)
        .map(|error| error * value * normal_quantile(upper))
        .filter(|reach| reach.is_finite());
    let interval = match reach {
        None if count == 0 => Err(NoInterval::OneValue),
        None => Err(NoInterval::Unbounded),
        // No variation at all is a claim about the clock, not about the disk.
        Some(0.0) => Err(NoInterval::NoSpread),
        Some(reach) => Ok((
            Interval {
                low: (value - reach).max(0.0),
                high: value + reach,
                confidence,
            },
            Method::RenewalCount,
        )),
    };
    Estimate { value, interval }
}

/// The smallest relative difference that a value in whole steps can show:
/// step / |value|, so 1 IOPS at 50 IOPS is 0.02. `None` for a value of zero,
/// a step not above zero, or numbers that are not finite.
///
/// fio 2.1 printed whole IOPS, and KB/s cut from bytes per second.
#[must_use]
pub fn relative_resolution(value: f64, step: f64) -> Option<f64> {
    let ratio = step / value.abs();
    (step > 0.0 && ratio.is_finite() && ratio > 0.0).then_some(ratio)
}

/// The largest step of which all `values` are multiples; `None` when there is
/// none but zero. Bandwidths that are all multiples of the block size were
/// computed from whole IOPS; counts that are all multiples of 64 were cut by
/// a clock read at every 64th I/O.
#[must_use]
pub fn common_step(values: &[u64]) -> Option<u64> {
    let step = values
        .iter()
        .fold(0, |step, &value| common_divisor(step, value));
    (step > 0).then_some(step)
}

fn common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::{common_step, count_estimate, relative_resolution, relative_standard_error};
    use crate::interval::{Confidence, NoInterval};
    use proptest::prelude::*;

    fn ends(count: u64, variation: Option<f64>) -> (f64, f64) {
        let (found, _) = count_estimate(count, variation, Confidence::NINETY_FIVE)
            .interval
            .expect("has an interval");
        (found.low, found.high)
    }

    /// Garwood's table: 0 gives 0 to 3.689, 5 gives 1.623 to 11.668, 100 gives
    /// 81.36 to 121.63.
    #[test]
    fn poisson_limits_are_garwoods() {
        for (count, low, high) in [(0, 0.0, 3.689), (5, 1.623, 11.668), (100, 81.364, 121.627)] {
            let found = ends(count, None);
            assert!(
                (found.0 - low).abs() < 2e-3 && (found.1 - high).abs() < 2e-3,
                "{found:?}"
            );
        }
    }

    #[test]
    fn a_minute_at_38_iops_is_two_percent() {
        let error = relative_standard_error(2280, 1.0).expect("counted");
        assert!((error - 0.020_94).abs() < 1e-5);
        let (low, high) = ends(2280, Some(0.5));
        // 0.5 x sqrt(2280) x 1.96 = 46.8.
        assert!((low - 2233.2).abs() < 0.1 && (high - 2326.8).abs() < 0.1);
        assert_eq!(relative_standard_error(0, 1.0), None);
        assert_eq!(relative_standard_error(5, f64::NAN), None);
    }

    #[test]
    fn what_cannot_be_counted_says_why() {
        let of = |count, c| count_estimate(count, Some(c), Confidence::NINETY_FIVE).interval;
        assert_eq!(of(0, 1.0), Err(NoInterval::OneValue));
        assert_eq!(of(9, f64::NAN), Err(NoInterval::Unbounded));
        assert_eq!(of(9, 1e308), Err(NoInterval::Unbounded));
        assert_eq!(of(9, 0.0), Err(NoInterval::NoSpread));
    }

    #[test]
    fn steps_of_printed_numbers() {
        assert_eq!(relative_resolution(50.0, 1.0), Some(0.02));
        assert_eq!(relative_resolution(0.0, 1.0), None);
        assert_eq!(relative_resolution(f64::NAN, 1.0), None);
        // 175, 38 and 41 IOPS of 4 KiB, printed as KB/s.
        assert_eq!(common_step(&[700, 152, 164]), Some(4));
        assert_eq!(common_step(&[640, 64, 1920]), Some(64));
        assert_eq!(common_step(&[0, 0]), None);
        assert_eq!(common_step(&[]), None);
    }

    proptest! {
        /// The exact limits hold the count and, for large counts, come near
        /// n +- z sqrt(n).
        #[test]
        fn limits_surround_the_count(count in 1..10_000_000_u64) {
            let (low, high) = ends(count, None);
            let value = count as f64;
            prop_assert!(low < value && value < high);
            let reach = 1.96 * value.sqrt();
            prop_assert!((high - value - reach).abs() < 4.0);
            prop_assert!((value - low - reach).abs() < 4.0);
        }
    }
}
