//! Comparison of two configurations: is one better than the other?
//!
//! The ratio of the two centres gets an interval; the interval decides. Wholly within the margin of
//! indifference: the same (the equivalence test of Schuirmann 1987, at half its alpha, since the
//! two-sided interval is used throughout). Excluding 1, with the ratio itself beyond the margin:
//! better or worse. Anything else: cannot tell. A value measured once never gets an answer, however
//! far apart the two are.
//!
//! The margin runs from 1 / (1 + m) to 1 + m, so that the answer does not
//! depend on which of the two is the base.

use std::fmt;

use raidlab_random::Stream;

use crate::best::Direction;
use crate::bootstrap::{Bootstrap, test_ratio};
use crate::distributions::{normal_cdf, normal_quantile};
use crate::interval::{Confidence, Estimate, Interval, NoInterval};
use crate::sample::{Sample, usable};
use crate::verdict::{CannotTell, Verdict, cannot_tell_text, difference_text, same_text};

/// The parameters of a comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Question {
    /// The direction in which the figure is better.
    direction: Direction,
    /// The relative difference that does not matter, 0.02 for 2 %, or 0: then nothing is
    /// ever called the same.
    margin: f64,
    /// The bootstrap that finds the interval of the ratio.
    bootstrap: Bootstrap,
}

impl Question {
    /// Creates a question with a margin of 2 %, and the ratio of medians at 95 %.
    #[must_use]
    pub fn new(direction: Direction) -> Self {
        Self {
            direction,
            margin: 0.02,
            bootstrap: Bootstrap::default(),
        }
    }
}

/// A single value that brings its own interval, from batch means or counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// The measured value, such as a mean rate or latency, in its own unit.
    pub value: f64,
    /// The value's interval, which must hold the value.
    pub interval: Interval,
}

/// A comparison's answer and its grounds. Prints as the report's words.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Comparison {
    /// Whether the other is better, worse or the same, or why that cannot be told.
    pub verdict: Verdict,
    /// The probability of so large a difference between equals, two-sided; `None`
    /// without an interval.
    pub p_value: Option<f64>,
    /// The direction in which the figure is better.
    pub direction: Direction,
    /// The margin of indifference used.
    pub margin: f64,
}

impl Comparison {
    /// Whether a ratio is too near 1 to matter, whichever of the two sides is the base.
    #[must_use]
    pub fn is_small(&self, ratio: f64) -> bool {
        is_within(ratio, self.margin)
    }
}

impl fmt::Display for Comparison {
    /// `12 % faster (95 % interval 9..15 %)`, `cannot tell: 1 repetition each`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&match &self.verdict {
            Verdict::Better { ratio, interval } | Verdict::Worse { ratio, interval } => {
                difference_text(*ratio, interval, self.direction)
            }
            Verdict::Same { interval, .. } => same_text(interval, self.margin),
            Verdict::CannotTell { why } => cannot_tell_text(why, self.direction, self.margin),
        })
    }
}

/// Compares the repetitions of two configurations.
#[must_use]
pub fn compare_samples(
    base: &Sample,
    other: &Sample,
    question: &Question,
    stream: &mut Stream,
) -> Comparison {
    let tested = test_ratio(base, other, &question.bootstrap, stream);
    let mut found = answer(tested.estimate, tested.p_value, question);
    if base.len() == 1 || other.len() == 1 {
        found.verdict = Verdict::CannotTell {
            why: CannotTell::TooFew {
                base: base.len(),
                other: other.len(),
            },
        };
    }
    found
}

/// Compares two values by their own intervals.
///
/// On logarithms, where a ratio is a difference: each end of the difference
/// takes the facing arms of the two intervals, squared and summed (Zou and
/// Donner 2008, the method of variance estimates recovery). Intervals of
/// another confidence are first stretched by normal quantiles. The two must
/// have been measured independently.
#[must_use]
pub fn compare_measured(base: &Measured, other: &Measured, question: &Question) -> Comparison {
    let value = other.value / base.value;
    let none = |why| {
        let interval = Err(NoInterval::Unbounded);
        let mut found = answer(Estimate { value, interval }, None, question);
        found.verdict = Verdict::CannotTell { why };
        found
    };
    let confidence = question.bootstrap.confidence;
    let (base_arms, other_arms) = match (
        arms(base.value, &base.interval, confidence),
        arms(other.value, &other.interval, confidence),
    ) {
        (Ok(base), Ok(other)) => (base, other),
        (Err(why), _) | (_, Err(why)) => return none(CannotTell::NoInterval(why)),
    };
    let down = other_arms.0.hypot(base_arms.1);
    let up = other_arms.1.hypot(base_arms.0);
    let difference = value.ln();
    let facing = if difference > 0.0 { down } else { up };
    let interval = Interval {
        low: (difference - down).exp(),
        high: (difference + up).exp(),
        confidence,
    };
    if down <= 0.0 || up <= 0.0 {
        return none(CannotTell::NoInterval(NoInterval::NoSpread));
    }
    if !(interval.low > 0.0 && interval.high.is_finite()) {
        return none(CannotTell::NoInterval(NoInterval::Unbounded));
    }
    let score = difference.abs() / facing * normal_quantile(confidence.upper());
    let p_value = 2.0 * (1.0 - normal_cdf(score));
    let estimate = Estimate {
        value,
        interval: Ok(interval),
    };
    answer(estimate, Some(p_value.clamp(0.0, 1.0)), question)
}

/// The distances of the interval's ends from the value, down and up, on logarithms.
fn arms(value: f64, interval: &Interval, to: Confidence) -> Result<(f64, f64), NoInterval> {
    if ![value, interval.low, interval.high].into_iter().all(usable) {
        return Err(NoInterval::Unbounded);
    }
    if interval.low <= 0.0 || value <= 0.0 {
        return Err(NoInterval::NotPositive);
    }
    if !interval.contains(value) {
        return Err(NoInterval::Unbounded);
    }
    let stretch = normal_quantile(to.upper()) / normal_quantile(interval.confidence.upper());
    Ok((
        stretch * (value / interval.low).ln(),
        stretch * (interval.high / value).ln(),
    ))
}

/// The verdict that an interval of the ratio gives.
fn answer(ratio: Estimate, p_value: Option<f64>, question: &Question) -> Comparison {
    let margin = question.margin;
    let verdict = match ratio.interval {
        Err(why) => Verdict::CannotTell {
            why: CannotTell::NoInterval(why),
        },
        Ok(interval) => decide(ratio.value, interval, margin, question.direction),
    };
    Comparison {
        verdict,
        p_value,
        direction: question.direction,
        margin,
    }
}

/// Whether a ratio is within a margin, whichever of the two sides is the base.
fn is_within(ratio: f64, margin: f64) -> bool {
    (1.0 / (1.0 + margin)..=1.0 + margin).contains(&ratio)
}

fn decide(ratio: f64, interval: Interval, margin: f64, direction: Direction) -> Verdict {
    let is_small = |ratio| is_within(ratio, margin);
    if margin > 0.0 && is_small(interval.low) && is_small(interval.high) {
        return Verdict::Same { ratio, interval };
    }
    if interval.contains(1.0) {
        let why = CannotTell::Overlap { interval };
        return Verdict::CannotTell { why };
    }
    if is_small(ratio) {
        let why = CannotTell::NearMargin { interval };
        return Verdict::CannotTell { why };
    }
    if (interval.low > 1.0) == (direction != Direction::LessIsBetter) {
        Verdict::Better { ratio, interval }
    } else {
        Verdict::Worse { ratio, interval }
    }
}

#[cfg(test)]
mod tests;
