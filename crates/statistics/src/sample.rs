//! A sample: finite values, at least one, in the order they were measured.

/// The largest size of a value. Squares of it can be summed a million times
/// without overflow; no rate, time or count comes near it.
const MAX_MAGNITUDE: f64 = 1e150;

/// The reason why values are no sample.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum SampleError {
    /// There is not a single value.
    #[error("no values")]
    Empty,
    /// A value that is NaN, infinite or larger than 1e150.
    #[error("value {index} is not usable: {value}")]
    NotFinite {
        /// Position of the value, from 0.
        index: usize,
        /// The value that was refused: NaN, infinite or too large.
        value: f64,
    },
}

/// Finite values in the order they were measured; never empty.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    values: Vec<f64>,
    sorted: Vec<f64>,
}

pub(crate) fn usable(value: f64) -> bool {
    // False for NaN too.
    value.abs() <= MAX_MAGNITUDE
}

impl Sample {
    /// A sample of all `values`.
    ///
    /// # Errors
    /// When there are no values, or one is not finite or above 1e150.
    pub fn new(values: &[f64]) -> Result<Self, SampleError> {
        if let Some(index) = values.iter().position(|&value| !usable(value)) {
            return Err(SampleError::NotFinite {
                index,
                value: values[index],
            });
        }
        if values.is_empty() {
            return Err(SampleError::Empty);
        }
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        Ok(Self {
            values: values.to_vec(),
            sorted,
        })
    }

    /// The values in the order they were measured.
    #[must_use]
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The values in ascending order.
    #[must_use]
    pub fn sorted(&self) -> &[f64] {
        &self.sorted
    }

    /// The number of values, at least 1.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a sample is never empty")]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// True when all values are equal.
    #[must_use]
    pub(crate) fn is_constant(&self) -> bool {
        self.min() == self.max()
    }

    /// The smallest value.
    #[must_use]
    pub fn min(&self) -> f64 {
        self.sorted[0]
    }

    /// The largest value.
    #[must_use]
    pub fn max(&self) -> f64 {
        self.sorted[self.sorted.len() - 1]
    }

    /// The arithmetic mean, within `min..=max`.
    #[must_use]
    pub fn mean(&self) -> f64 {
        mean(&self.values).clamp(self.min(), self.max())
    }

    /// The median: the middle value, or the mean of the two middle ones.
    #[must_use]
    pub fn median(&self) -> f64 {
        median_of_sorted(&self.sorted)
    }

    /// The standard deviation over the mean; `None` for one value, or a mean not above zero.
    #[must_use]
    pub fn coefficient_of_variation(&self) -> Option<f64> {
        let mean = Some(self.mean()).filter(|mean| *mean > 0.0);
        Some(self.standard_deviation()? / mean?)
    }

    /// The sample standard deviation (divisor n - 1); `None` for one value.
    #[must_use]
    pub(crate) fn standard_deviation(&self) -> Option<f64> {
        (self.len() > 1).then(|| {
            if self.is_constant() {
                return 0.0;
            }
            (squares(&self.values) / (self.len() - 1) as f64).sqrt()
        })
    }
}

/// Mean of a non-empty slice.
pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Sum of squared differences from the mean.
pub(crate) fn squares(values: &[f64]) -> f64 {
    let centre = mean(values);
    values.iter().map(|value| (value - centre).powi(2)).sum()
}

/// Median of a non-empty ascending slice.
pub(crate) fn median_of_sorted(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[middle]
    } else {
        f64::midpoint(sorted[middle - 1], sorted[middle])
    }
}

#[cfg(test)]
mod tests {
    use super::{Sample, SampleError};

    #[test]
    fn one_value_has_no_deviation_and_zero_mean_no_coefficient() {
        let sample = |values: &[f64]| Sample::new(values).expect("finite");
        let four = sample(&[8.0, 1.0, 4.0, 2.0]);
        let expected = (28.75_f64 / 3.0).sqrt();
        assert!((four.standard_deviation().expect("four values") - expected).abs() < 1e-12);
        let part = four.coefficient_of_variation().expect("above zero");
        assert!((part - expected / 3.75).abs() < 1e-12);
        let one = sample(&[5.0]);
        assert_eq!((one.standard_deviation(), one.median()), (None, 5.0));
        assert_eq!(one.coefficient_of_variation(), None);
        assert_eq!(sample(&[-1.0, 1.0]).coefficient_of_variation(), None);
        let equal = sample(&[0.1; 10]);
        assert_eq!((equal.standard_deviation(), equal.mean()), (Some(0.0), 0.1));
    }

    #[test]
    fn what_is_not_finite_is_named() {
        let values = [1.0, f64::NAN, 3.0, f64::INFINITY, 1e200];
        assert!(matches!(
            Sample::new(&values),
            Err(SampleError::NotFinite { index: 1, .. })
        ));
        assert_eq!(Sample::new(&[]), Err(SampleError::Empty));
        let error = Sample::new(&[2.0, f64::INFINITY]).expect_err("infinite");
        assert_eq!(error.to_string(), "value 1 is not usable: inf");
    }
}
