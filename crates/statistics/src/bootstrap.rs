//! Bootstrap intervals of a median, and of the ratio of two samples' medians.
//!
//! The values are drawn again with replacement, `resamples` times, and the
//! statistic of each resample gives its distribution. The percentile interval
//! reads its ends from that distribution. BCa (Efron 1987; Efron and
//! Tibshirani, An Introduction to the Bootstrap, 1993, chapter 14) reads them
//! at probabilities moved by two corrections: the bias z0, from the share of
//! resamples below the estimate (equal ones counted half), and the
//! acceleration a, the skewness of the leave-one-out values; for two samples
//! equation 5.26 of Davison and Hinkley, Bootstrap Methods and their
//! Application, 1997. Where either is undefined the percentiles stand.
//!
//! Small samples. Three values have ten distinct resamples, none beyond the
//! smallest or the largest value, and the range of three values holds the
//! median with probability 75 % only. No resampling can mend that. Below
//! [`Confidence::least_values`] (6 values at 95 %) Student's t is used: it
//! pays for the missing values with its width, but has to take the values as
//! normal (for ratios, log-normal: Welch 1947 on logarithms, about the ratio
//! of geometric means). At 3 values it reaches 2.5 standard deviations to
//! either side; a skewed or two-peaked source still cannot be seen.

use raidlab_random::Stream;

use crate::distributions::{normal_cdf, normal_quantile, student_t_cdf, student_t_quantile};
use crate::interval::{Confidence, Estimate, Interval, NoInterval};
use crate::quantile::quantile_of_sorted;
use crate::sample::{Sample, mean, squares};

/// The number of resamples, and the confidence of the interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Bootstrap {
    /// The confidence: how often the interval is to hold the true value.
    pub confidence: Confidence,
    /// The number of resamples, 100 or more.
    pub resamples: usize,
}

impl Default for Bootstrap {
    fn default() -> Self {
        Self {
            confidence: Confidence::NINETY_FIVE,
            resamples: 10_000,
        }
    }
}

/// A ratio with its interval and the probability of so large a difference
/// if the true ratio were 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RatioTest {
    pub estimate: Estimate,
    /// The two-sided p-value, found by the same method as the interval, so that it is below alpha
    /// exactly where the interval excludes 1. `None` without an interval.
    pub p_value: Option<f64>,
}

/// The median of `sample` with its interval at 95 %, of 10 000 resamples.
///
/// Below 6 values the interval is Student's t around the mean; it always holds the median
/// too at 80 % and above. One value, or values all equal, have no interval.
#[must_use]
pub fn estimate(sample: &Sample, stream: &mut Stream) -> Estimate {
    estimate_with(sample, &Bootstrap::default(), stream)
}

fn estimate_with(sample: &Sample, how: &Bootstrap, stream: &mut Stream) -> Estimate {
    let value = sample.median();
    Estimate {
        value,
        interval: interval_of(sample, value, how, stream),
    }
}

fn interval_of(
    sample: &Sample,
    value: f64,
    how: &Bootstrap,
    stream: &mut Stream,
) -> Result<Interval, NoInterval> {
    let deviation = sample.standard_deviation().ok_or(NoInterval::OneValue)?;
    if sample.is_constant() {
        return Err(NoInterval::NoSpread);
    }
    if sample.len() < how.confidence.least_values() {
        let count = sample.len() as f64;
        let reach =
            student_t_quantile(how.confidence.upper(), count - 1.0) * deviation / count.sqrt();
        let centre = sample.mean();
        return interval(centre - reach, centre + reach, how.confidence);
    }
    let mut resampler = Resampler::new(sample);
    let mut replicates: Vec<f64> = (0..how.resamples).map(|_| resampler.draw(stream)).collect();
    replicates.sort_unstable_by(f64::total_cmp);
    let influences = [leave_one_out(sample, |median| median)];
    ends(&replicates, value, &influences, how).map(|(found, _)| found)
}

/// The median of `other` over the median of `base`, with its interval.
///
/// When either sample has fewer than [`Confidence::least_values`] values: the ratio of
/// geometric means with Welch's t on logarithms. A sample of one value, a value not above
/// zero, or two constant samples have no interval.
pub(crate) fn test_ratio(
    base: &Sample,
    other: &Sample,
    how: &Bootstrap,
    stream: &mut Stream,
) -> RatioTest {
    let value = other.median() / base.median();
    let none = |why| RatioTest {
        estimate: Estimate {
            value,
            interval: Err(why),
        },
        p_value: None,
    };
    if base.min() <= 0.0 || other.min() <= 0.0 {
        return none(NoInterval::NotPositive);
    }
    if !value.is_normal() {
        return none(NoInterval::Unbounded);
    }
    if base.len() < 2 || other.len() < 2 {
        return none(NoInterval::OneValue);
    }
    if base.is_constant() && other.is_constant() {
        return none(NoInterval::NoSpread);
    }
    let few = base.len().min(other.len()) < how.confidence.least_values();
    let found = match few {
        true => welch_on_logs(base, other, how.confidence),
        false => resample_ratio(base, other, value, how, stream),
    };
    found.unwrap_or_else(none)
}

fn resample_ratio(
    base: &Sample,
    other: &Sample,
    value: f64,
    how: &Bootstrap,
    stream: &mut Stream,
) -> Result<RatioTest, NoInterval> {
    let mut below = Resampler::new(base);
    let mut above = Resampler::new(other);
    let mut replicates: Vec<f64> = (0..how.resamples)
        .map(|_| above.draw(stream) / below.draw(stream))
        .collect();
    replicates.sort_unstable_by(f64::total_cmp);
    let (base_median, other_median) = (base.median(), other.median());
    let influences = [
        leave_one_out(base, |median| other_median / median),
        leave_one_out(other, |median| median / base_median),
    ];
    let (found, corrections) = ends(&replicates, value, &influences, how)?;
    Ok(RatioTest {
        estimate: Estimate {
            value,
            interval: Ok(found),
        },
        p_value: Some(p_value(&replicates, 1.0, corrections)),
    })
}

fn interval(low: f64, high: f64, confidence: Confidence) -> Result<Interval, NoInterval> {
    if low.is_finite() && high.is_finite() && low <= high {
        Ok(Interval {
            low,
            high,
            confidence,
        })
    } else {
        Err(NoInterval::Unbounded)
    }
}

/// Draws resamples of one sample.
struct Resampler<'a> {
    sorted: &'a [f64],
    /// The number of times that each ordered value was drawn: the median of a resample is then
    /// found by counting, without sorting.
    counts: Vec<u32>,
}

impl<'a> Resampler<'a> {
    fn new(sample: &'a Sample) -> Self {
        Self {
            sorted: sample.sorted(),
            counts: vec![0; sample.len()],
        }
    }

    /// Draws a sample of the same size with replacement, and returns its median.
    fn draw(&mut self, stream: &mut Stream) -> f64 {
        let size = self.sorted.len();
        self.counts.fill(0);
        for _ in 0..size {
            self.counts[stream.below(size as u64) as usize] += 1;
        }
        f64::midpoint(self.ranked((size - 1) / 2), self.ranked(size / 2))
    }

    /// The value of `rank` (from 0) in the resample just drawn.
    fn ranked(&self, rank: usize) -> f64 {
        let mut seen = 0;
        for (value, &count) in self.sorted.iter().zip(&self.counts) {
            seen += count as usize;
            if seen > rank {
                return *value;
            }
        }
        self.sorted[self.sorted.len() - 1]
    }
}

/// The statistic with each value left out in turn; `turn` computes it from the median of the rest.
/// Needs two values.
fn leave_one_out(sample: &Sample, turn: impl Fn(f64) -> f64) -> Vec<f64> {
    let sorted = sample.sorted();
    let left = sorted.len() - 1;
    (0..sorted.len())
        .map(|out| {
            let ranked = |rank: usize| sorted[if rank < out { rank } else { rank + 1 }];
            turn(f64::midpoint(ranked((left - 1) / 2), ranked(left / 2)))
        })
        .collect()
}

/// The corrections of BCa; both zero for percentiles.
#[derive(Debug, Clone, Copy)]
struct Corrections {
    bias: f64,
    acceleration: f64,
}

impl Corrections {
    /// The probability in the replicates at which the end for `probability` lies.
    fn forward(self, probability: f64) -> f64 {
        let moved = self.bias + normal_quantile(probability);
        normal_cdf(self.bias + moved / (1.0 - self.acceleration * moved))
    }

    /// The probability whose end lies at `share` of the replicates.
    fn backward(self, share: f64) -> f64 {
        let moved = normal_quantile(share) - self.bias;
        normal_cdf(moved / (1.0 + self.acceleration * moved) - self.bias)
    }
}

/// The interval's ends from ascending `replicates`.
fn ends(
    replicates: &[f64],
    value: f64,
    influences: &[Vec<f64>],
    how: &Bootstrap,
) -> Result<(Interval, Corrections), NoInterval> {
    let plain = Corrections {
        bias: 0.0,
        acceleration: 0.0,
    };
    let used = corrections(replicates, value, influences, how.confidence).unwrap_or(plain);
    let end = |p| quantile_of_sorted(replicates, used.forward(p));
    let upper = how.confidence.upper();
    let found = interval(end(1.0 - upper), end(upper), how.confidence)?;
    Ok((found, used))
}

/// The share of ascending `replicates` below `value`, equal ones counted half.
fn share_below(replicates: &[f64], value: f64) -> f64 {
    let less = replicates.partition_point(|&r| r < value);
    let not_more = replicates.partition_point(|&r| r <= value);
    f64::midpoint(less as f64, not_more as f64) / replicates.len() as f64
}

/// The corrections of BCa. `None` when all resamples fell on one side of the estimate, where the
/// bias correction is infinite; and when leaving out any one value changes nothing: the
/// acceleration is 0/0.
fn corrections(
    replicates: &[f64],
    value: f64,
    influences: &[Vec<f64>],
    confidence: Confidence,
) -> Option<Corrections> {
    let share = share_below(replicates, value);
    if share <= 0.0 || share >= 1.0 {
        return None;
    }
    let bias = normal_quantile(share);
    let (mut cubes, mut all_squares) = (0.0, 0.0);
    for left_out in influences {
        let size = left_out.len() as f64;
        let centre = mean(left_out);
        for one in left_out {
            // Divided by the estimate, so that cubes stay in range.
            let influence = (size - 1.0) * (centre - one) / value.abs().max(f64::MIN_POSITIVE);
            cubes += (influence / size).powi(3);
            all_squares += (influence / size).powi(2);
        }
    }
    let acceleration = cubes / (6.0 * all_squares.powf(1.5));
    // The denominator 1 - a (z0 + z) must stay above zero at both ends.
    let reach = bias.abs() + normal_quantile(confidence.upper());
    if !acceleration.is_finite() || acceleration.abs() * reach >= 1.0 {
        return None;
    }
    Some(Corrections { bias, acceleration })
}

/// The two-sided p-value by inverting the interval: the alpha whose end lies at `null` (Efron and
/// Tibshirani 1993, section 15.4 and 14.3). Never below 2 / (resamples + 1), the least that so many
/// draws can show.
fn p_value(replicates: &[f64], null: f64, used: Corrections) -> f64 {
    let floor = 1.0 / (replicates.len() as f64 + 1.0);
    let share = share_below(replicates, null).clamp(floor, 1.0 - floor);
    let one_sided = used.backward(share);
    (2.0 * one_sided.min(1.0 - one_sided)).clamp(2.0 * floor, 1.0)
}

/// Welch's t on logarithms (Welch 1947, degrees of freedom of Satterthwaite).
fn welch_on_logs(
    base: &Sample,
    other: &Sample,
    confidence: Confidence,
) -> Result<RatioTest, NoInterval> {
    let part = |sample: &Sample| {
        let logs: Vec<f64> = sample.values().iter().map(|value| value.ln()).collect();
        let count = logs.len() as f64;
        // Logarithms of equal values differ from their mean by rounding.
        let spread = if sample.is_constant() {
            0.0
        } else {
            squares(&logs)
        };
        (mean(&logs), spread / (count - 1.0) / count, count - 1.0)
    };
    let (base_mean, base_variance, base_freedom) = part(base);
    let (other_mean, other_variance, other_freedom) = part(other);
    let difference = other_mean - base_mean;
    let variance = base_variance + other_variance;
    if variance <= 0.0 {
        return Err(NoInterval::NoSpread);
    }
    // Shares of the variance, so that tiny variances do not underflow.
    let (base_share, other_share) = (base_variance / variance, other_variance / variance);
    let freedom = 1.0 / (base_share.powi(2) / base_freedom + other_share.powi(2) / other_freedom);
    let reach = student_t_quantile(confidence.upper(), freedom) * variance.sqrt();
    let (low, high) = ((difference - reach).exp(), (difference + reach).exp());
    if low <= 0.0 {
        return Err(NoInterval::Unbounded);
    }
    let tail = 1.0 - student_t_cdf((difference / variance.sqrt()).abs(), freedom);
    Ok(RatioTest {
        estimate: Estimate {
            value: difference.exp(),
            interval: Ok(interval(low, high, confidence)?),
        },
        p_value: Some((2.0 * tail).clamp(0.0, 1.0)),
    })
}

#[cfg(test)]
mod tests;
