//! The relation of each subject's figure to the best one.

use std::fmt;

/// The direction in which a figure is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Better {
    /// More is better, as of rates.
    More,
    /// Less is better, as of latencies.
    Less,
}

/// A figure's relation to the best of its row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Standing {
    /// No other figure of the row is better.
    Best,
    /// The figure is so many percent above (+) or below (-) the best one.
    Percent(f64),
}

/// The highest of the values that exist, are finite and above zero.
pub(crate) fn best_of(values: &[Option<f64>]) -> Option<f64> {
    let usable = |value: &Option<f64>| value.filter(|v| v.is_finite() && *v > 0.0);
    values.iter().filter_map(usable).reduce(f64::max)
}

/// Each figure's relation to the best one; `None` for figures that are missing, not finite or
/// not above zero.
pub(crate) fn against_best(values: &[Option<f64>], better: Better) -> Vec<Option<Standing>> {
    let usable = |value: &Option<f64>| value.filter(|v| v.is_finite() && *v > 0.0);
    let best = values.iter().filter_map(usable).reduce(match better {
        Better::More => f64::max,
        Better::Less => f64::min,
    });
    let stand = |value: &Option<f64>| {
        let (value, best) = (usable(value)?, best?);
        let percent = 100.0 * (value - best) / best;
        // The best figure itself gives exactly zero.
        Some(if percent.abs() > 0.0 {
            Standing::Percent(percent)
        } else {
            Standing::Best
        })
    };
    values.iter().map(stand).collect()
}

impl fmt::Display for Standing {
    /// Writes `best`, `-5 %`, `+40 %`, and above +100 % the ratio: `x3.4`, `x52`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Best => formatter.pad("best"),
            Self::Percent(percent) if percent > 100.0 => {
                let ratio = 1.0 + percent / 100.0;
                let decimals = usize::from(ratio < 9.95);
                formatter.pad(&format!("x{ratio:.decimals$}"))
            }
            Self::Percent(percent) => formatter.pad(&crate::format::signed_percent(percent)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Better, Standing, against_best};

    fn texts(values: &[f64], better: Better) -> Vec<String> {
        let values: Vec<_> = values.iter().copied().map(Some).collect();
        against_best(&values, better)
            .into_iter()
            .map(|standing| standing.unwrap().to_string().replace('\u{a0}', " "))
            .collect()
    }

    #[test]
    fn more_iops_are_better() {
        // Job 19 of the 2015 article, which prints md's as -99 %.
        let job_19 = texts(&[99.0, 1952.0, 931.0, 622.0], Better::More);
        assert_eq!(job_19, ["-95 %", "best", "-52 %", "-68 %"]);
    }

    #[test]
    fn less_latency_is_better_and_large_ratios_are_factors() {
        let latencies = texts(&[2.0, 2.8, 6.8, 106.8, 4.0], Better::Less);
        assert_eq!(latencies, ["best", "+40 %", "x3.4", "x53", "+100 %"]);
    }

    #[test]
    fn equals_are_both_best_and_a_near_one_is_not() {
        assert_eq!(
            texts(&[175.0, 175.0, 174.9], Better::More),
            ["best", "best", "0 %"]
        );
    }

    #[test]
    fn what_is_not_there_has_no_standing() {
        let values = [None, Some(0.0), Some(f64::NAN), Some(3.0)];
        assert_eq!(
            against_best(&values, Better::Less),
            [None, None, None, Some(Standing::Best)]
        );
    }
}
