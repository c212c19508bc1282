//! The mean of an autocorrelated series, such as throughput second by second.
//!
//! Neighbouring seconds resemble each other, so n of them say less than n
//! independent values, and Student's t on them would be too narrow. The
//! method of batch means (Law and Kelton, Simulation Modeling and Analysis,
//! 3rd edition, section 9.5.3) averages runs of m neighbours and treats the
//! averages as independent. m starts at 1 and doubles until the averages pass
//! von Neumann's test for independence (Fishman, Grouping Observations in
//! Digital Simulation, Management Science 24, 1978, with his 10 % level,
//! one-sided against resemblance). At least [`LEAST_BATCHES`] must remain:
//! with fewer, t grows faster than the averages settle (Schmeiser, Batch Size
//! Effects, Operations Research 30, 1982). Otherwise the series is too
//! correlated for its length and has no interval.
//!
//! What a multiple of m leaves over is left out at the start, where a
//! transient would be. The method takes the series as stationary:
//! [`crate::change_point`] tells whether it is.

use crate::distributions::{normal_quantile, student_t_quantile};
use crate::interval::{Confidence, Interval};
use crate::sample::{Sample, mean, squares};

/// The fewest batches for an interval.
const LEAST_BATCHES: usize = 10;
/// The fewest samples: below, the test has no power to find correlation.
const LEAST_SAMPLES: usize = 20;
/// Fishman's level of the independence test.
const TEST_LEVEL: f64 = 0.10;

/// The mean of a series with an interval that allows for autocorrelation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BatchMeans {
    /// Mean of the samples used.
    pub mean: f64,
    /// Student's t interval of the mean over the batches.
    pub interval: Interval,
}

/// Mean and interval of `series`, whose samples are in order of time at equal distances. `None` for
/// fewer than 20 samples, too short to test for resemblance; where even the largest batches
/// resemble their neighbours; and where all values are equal, with no spread to judge by.
#[must_use]
pub fn batch_means(series: &Sample, confidence: Confidence) -> Option<BatchMeans> {
    let samples = series.len();
    if samples < LEAST_SAMPLES || series.is_constant() {
        return None;
    }
    let mut batch_samples = 1;
    while samples / batch_samples >= LEAST_BATCHES {
        let used = &series.values()[samples % batch_samples..];
        let averages: Vec<f64> = used.chunks_exact(batch_samples).map(mean).collect();
        if independent(&averages) {
            return finish(&averages, confidence);
        }
        batch_samples *= 2;
    }
    None
}

/// The interval over independent averages; `None` when they are all equal.
fn finish(averages: &[f64], confidence: Confidence) -> Option<BatchMeans> {
    let count = averages.len() as f64;
    let centre = mean(averages);
    let variance = squares(averages) / (count - 1.0) / count;
    if variance <= 0.0 {
        return None;
    }
    let reach = student_t_quantile(confidence.upper(), count - 1.0) * variance.sqrt();
    Some(BatchMeans {
        mean: centre,
        interval: Interval {
            low: centre - reach,
            high: centre + reach,
            confidence,
        },
    })
}

/// Von Neumann's ratio as Fishman uses it: with C = 1 - (sum of squared
/// differences of neighbours) / (2 x sum of squares), C is near normal with
/// mean 0 and variance (k - 2) / (k^2 - 1) when the k averages are
/// independent. True unless C is too large. Equal averages count as not
/// independent: they show nothing.
fn independent(averages: &[f64]) -> bool {
    let count = averages.len() as f64;
    let total = squares(averages);
    let steps: f64 = averages.windows(2).map(|w| (w[1] - w[0]).powi(2)).sum();
    let ratio = 1.0 - steps / (2.0 * total);
    let deviation = ((count - 2.0) / (count * count - 1.0)).sqrt();
    ratio <= normal_quantile(1.0 - TEST_LEVEL) * deviation
}

#[cfg(test)]
mod tests {
    use super::{BatchMeans, batch_means};
    use crate::distributions::normal_quantile;
    use crate::interval::Confidence;
    use crate::sample::Sample;
    use raidlab_random::Stream;

    /// x(t) = rho x(t-1) + noise around 100.
    fn series(length: usize, rho: f64, stream: &mut Stream) -> Sample {
        let mut state = 0.0;
        let values: Vec<f64> = (0..length + 100)
            .map(|_| {
                let share = (stream.below(1 << 40) as f64 + 0.5) / (1_u64 << 40) as f64;
                state = rho * state + normal_quantile(share);
                100.0 + state
            })
            .skip(100)
            .collect();
        Sample::new(&values).expect("finite")
    }

    fn find(series: &Sample) -> Option<BatchMeans> {
        batch_means(series, Confidence::NINETY_FIVE)
    }

    /// The variance of the mean of this process is (1 + rho) / (1 - rho)
    /// times that of independent values: 600 samples at 0.8 count as 67.
    #[test]
    fn correlated_series_are_covered_and_counted() {
        for (rho, effective) in [(0.0, 600.0), (0.5, 200.0), (0.8, 600.0 / 9.0)] {
            let mut stream = Stream::new(3);
            let (mut held, mut found, mut naive, mut sum) = (0, 0, 0, 0.0);
            for _ in 0..300 {
                let values = series(600, rho, &mut stream);
                let Some(batch) = find(&values) else { continue };
                found += 1;
                held += u32::from(batch.interval.contains(100.0));
                let deviation = values.standard_deviation().expect("many");
                // So many independent samples would have an interval of this width.
                let width = (batch.interval.high - batch.interval.low) / 2.0;
                sum += (1.96 * deviation / width).powi(2);
                let error = deviation / 600_f64.sqrt();
                naive += u32::from((values.mean() - 100.0).abs() < 1.96 * error);
            }
            let share = f64::from(held) / f64::from(found);
            assert!(found > 250, "rho {rho}: {found} of 300");
            assert!((0.87..=0.99).contains(&share), "rho {rho}: {share}");
            let mean = sum / f64::from(found);
            assert!(
                (0.7..=1.9).contains(&(mean / effective)),
                "rho {rho}: {mean}"
            );
            // What the method is for: plain t misses far more often.
            assert!(rho < 0.7 || f64::from(naive) / f64::from(found) < 0.7);
        }
    }

    #[test]
    fn short_constant_and_drifting_series_are_refused() {
        let ramp: Vec<f64> = (0..60).map(f64::from).collect();
        for values in [&[1.0, 2.0].repeat(10)[..19], &[7.0; 60], &ramp] {
            let series = Sample::new(values).expect("finite");
            assert_eq!(find(&series), None, "{values:?}");
        }
        let longer = Sample::new(&[1.0, 2.0].repeat(10)).expect("finite");
        assert!(find(&longer).is_some());
    }

    /// A square wave of period two: single seconds differ, pairs do not.
    #[test]
    fn an_alternating_series_is_not_batched() {
        let values: Vec<f64> = (0..40)
            .map(|t| if t % 2 == 0 { 9.0 } else { 11.0 })
            .collect();
        let batch = find(&Sample::new(&values).expect("finite")).expect("no resemblance");
        assert_eq!(batch.mean, 10.0);
        // t(0.975, 39) = 2.0227 and the deviation of 40 single samples, 1.0127, over sqrt(40).
        assert!((batch.interval.high - 10.3239).abs() < 1e-3);
    }
}
