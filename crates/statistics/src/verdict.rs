//! The four answers a comparison can have, and their words.

use crate::best::{Direction, signed};
use crate::interval::{Interval, NoInterval};

/// The result of a comparison. `ratio` is always the other value over the base as measured, also
/// where less is better.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Verdict {
    /// The other is better than the base.
    Better {
        /// The other's value divided by the base's.
        ratio: f64,
        /// Interval of the ratio, which excludes 1.
        interval: Interval,
    },
    /// The other is worse than the base.
    Worse {
        /// The other's value divided by the base's.
        ratio: f64,
        /// Interval of the ratio, which excludes 1.
        interval: Interval,
    },
    /// Any difference is smaller than what matters: the whole interval lies
    /// within the margin.
    Same {
        /// The other's value divided by the base's.
        ratio: f64,
        /// Interval of the ratio.
        interval: Interval,
    },
    /// The numbers give no answer.
    CannotTell {
        /// The thing that the numbers lack for an answer.
        why: CannotTell,
    },
}

/// The reason why a comparison has no answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CannotTell {
    /// At least one side was measured once only.
    TooFew {
        /// Repetitions of the base.
        base: usize,
        /// Repetitions of the other.
        other: usize,
    },
    /// The interval holds 1 and reaches beyond the margin.
    Overlap {
        /// Interval of the ratio.
        interval: Interval,
    },
    /// The interval excludes 1, but the ratio itself lies within the margin: there is a difference,
    /// perhaps too small to matter.
    NearMargin {
        /// Interval of the ratio.
        interval: Interval,
    },
    /// There is no interval of the ratio.
    NoInterval(NoInterval),
    /// Among so many rows the difference may be due to chance.
    ManyComparisons {
        /// The number of rows of the table that have a p-value, which were corrected together.
        rows: usize,
        /// The p-value after correction.
        adjusted_p: f64,
    },
}

/// The fewest decimals (0 to 2) that show an interval of `width` in two steps or more and do not
/// round `least` to zero.
fn decimals(width: f64, least: f64) -> usize {
    (0..2)
        .find(|&places| {
            let step = 0.1_f64.powi(places);
            width >= 2.0 * step && least >= 0.5 * step
        })
        .map_or(2, |places| places as usize)
}

fn word(ratio: f64, direction: Direction) -> &'static str {
    match (direction, ratio >= 1.0) {
        (Direction::MoreIsBetter, true) => "faster",
        (Direction::MoreIsBetter, false) => "slower",
        (Direction::LessIsBetter | Direction::HigherIsBetter, true) => "higher",
        (Direction::LessIsBetter | Direction::HigherIsBetter, false) => "lower",
    }
}

fn as_word(direction: Direction) -> &'static str {
    match direction {
        Direction::MoreIsBetter => "as fast",
        Direction::LessIsBetter | Direction::HigherIsBetter => "as high",
    }
}

/// A difference in words: `12 % faster (95 % interval 9..15 %)`, `53.4 x as fast (...)`.
pub(crate) fn difference_text(ratio: f64, interval: &Interval, direction: Direction) -> String {
    let confidence = interval.confidence;
    if ratio > 2.0 {
        let places = decimals(interval.high - interval.low, interval.low);
        return format!(
            "{ratio:.places$} x {} ({confidence} interval {:.places$}..{:.places$} x)",
            as_word(direction),
            interval.low,
            interval.high,
        );
    }
    let sizes = [interval.low, interval.high].map(|end| (end - 1.0).abs() * 100.0);
    let (least, most) = (sizes[0].min(sizes[1]), sizes[0].max(sizes[1]));
    let places = decimals(most - least, least);
    let size = (ratio - 1.0).abs() * 100.0;
    format!(
        "{size:.places$} % {} ({confidence} interval {least:.places$}..{most:.places$} %)",
        word(ratio, direction),
    )
}

/// One end of an interval in words: `3 % slower`, `2.4 x as fast`. What would be printed as the
/// margin has a decimal, as 1.7 % is within 2 % and 2.3 % is not.
fn end_text(ratio: f64, direction: Direction, margin: f64) -> String {
    if ratio > 2.0 {
        return format!("{ratio:.1} x {}", as_word(direction));
    }
    let size = (ratio - 1.0).abs() * 100.0;
    let least = usize::from((size - margin * 100.0).abs() < 0.5);
    let places = decimals(2.0, size).max(least);
    format!("{size:.places$} % {}", word(ratio, direction))
}

fn between_text(interval: &Interval, direction: Direction, margin: f64) -> String {
    format!(
        "between {} and {} ({} interval)",
        end_text(interval.low, direction, margin),
        end_text(interval.high, direction, margin),
        interval.confidence
    )
}

/// An equality in words: `the same within 2 % (95 % interval -1 % to +1 %)`.
pub(crate) fn same_text(interval: &Interval, margin: f64) -> String {
    let width = (interval.high - interval.low) * 100.0;
    let places = decimals(width, 1.0);
    let margin = margin * 100.0;
    let digits = decimals(2.0, margin);
    format!(
        "the same within {margin:.digits$} % ({} interval {} to {})",
        interval.confidence,
        signed((interval.low - 1.0) * 100.0, places),
        signed((interval.high - 1.0) * 100.0, places),
    )
}

fn repetitions(count: usize) -> &'static str {
    if count == 1 {
        "repetition"
    } else {
        "repetitions"
    }
}

pub(crate) fn cannot_tell_text(why: &CannotTell, direction: Direction, margin: f64) -> String {
    let reason = match why {
        CannotTell::TooFew { base, other } if base == other => {
            format!("{base} {} each", repetitions(*base))
        }
        CannotTell::TooFew { base, other } => format!("{base} against {other} repetitions"),
        CannotTell::Overlap { interval } => between_text(interval, direction, margin),
        CannotTell::NearMargin { interval } => format!(
            "perhaps too small to matter, {}",
            between_text(interval, direction, margin)
        ),
        CannotTell::NoInterval(why) => why.to_string(),
        CannotTell::ManyComparisons { rows, adjusted_p } => {
            format!("may be chance among {rows} comparisons (adjusted p = {adjusted_p:.3})")
        }
    };
    format!("cannot tell: {reason}")
}
