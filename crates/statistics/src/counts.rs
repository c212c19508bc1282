//! The accuracy of a rate found by counting I/Os.
//!
//! Sixty seconds at 38 IOPS are 2300 I/Os, and if they came at random the
//! count would vary by 1 / sqrt(2300) = 2 %: a difference of 1 % is no
//! finding. A count of independent arrivals is a Poisson number. A disk
//! served one I/O after another is more regular than that: a renewal process,
//! whose count over a long time has variance c^2 n, with c the coefficient of
//! variation of the times between completions (Cox, Renewal Theory, 1962,
//! section 3.3). c = 1 gives the Poisson variance.

/// The relative standard error of a rate measured by counting: c / sqrt(n).
/// `None` without any I/O, or for a coefficient of variation that is negative
/// or not finite. Take 1 when it is not known.
#[must_use]
pub fn relative_standard_error(count: u64, coefficient_of_variation: f64) -> Option<f64> {
    let valid =
        count > 0 && coefficient_of_variation >= 0.0 && coefficient_of_variation.is_finite();
    valid.then(|| coefficient_of_variation / (count as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::relative_standard_error;

    #[test]
    fn a_minute_at_38_iops_is_two_percent() {
        let error = relative_standard_error(2280, 1.0).expect("counted");
        assert!((error - 0.020_94).abs() < 1e-5);
        assert_eq!(relative_standard_error(0, 1.0), None);
        assert_eq!(relative_standard_error(5, f64::NAN), None);
    }
}
