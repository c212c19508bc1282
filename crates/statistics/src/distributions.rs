//! The few distribution functions needed, over `statrs`. All arguments are
//! kept inside the domain here, so that no call can fail or panic.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// Clamps a probability away from 0 and 1, where quantiles are infinite.
fn inside(probability: f64) -> f64 {
    probability.clamp(1e-12, 1.0 - 1e-12)
}

/// P(Z <= x) of the standard normal distribution.
pub(crate) fn normal_cdf(x: f64) -> f64 {
    Normal::standard().cdf(x)
}

/// The x with P(Z <= x) = `probability`.
pub(crate) fn normal_quantile(probability: f64) -> f64 {
    Normal::standard().inverse_cdf(inside(probability))
}

/// Quantile of Student's t with `freedom` (> 0) degrees of freedom. Degrees
/// that are not a positive number are taken as 1, the widest.
pub(crate) fn student_t_quantile(probability: f64, freedom: f64) -> f64 {
    student_t(freedom).map_or_else(
        || normal_quantile(probability),
        |t| t.inverse_cdf(inside(probability)),
    )
}

/// P(T <= x) of Student's t with `freedom` degrees of freedom.
pub(crate) fn student_t_cdf(x: f64, freedom: f64) -> f64 {
    student_t(freedom).map_or_else(|| normal_cdf(x), |t| t.cdf(x))
}

fn student_t(freedom: f64) -> Option<StudentsT> {
    // Above a million degrees t is the normal distribution to six digits.
    if freedom > 1e6 {
        return None;
    }
    let freedom = if freedom > 0.0 { freedom } else { 1.0 };
    StudentsT::new(0.0, 1.0, freedom).ok()
}

#[cfg(test)]
mod tests {
    use super::{normal_cdf, normal_quantile, student_t_cdf, student_t_quantile};

    fn near(value: f64, expected: f64) -> bool {
        (value - expected).abs() < 5e-4
    }

    /// Values from printed tables (Law and Kelton, appendix).
    #[test]
    fn quantiles_are_the_tables() {
        assert!(near(normal_quantile(0.975), 1.960));
        assert!(near(student_t_quantile(0.975, 1.0), 12.7062));
        assert!(near(student_t_quantile(0.975, 2.0), 4.3027));
        assert!(near(student_t_quantile(0.975, 29.0), 2.0452));
        assert!(near(student_t_quantile(0.975, 1e9), 1.960));
    }

    #[test]
    fn ends_of_the_domain_stay_finite() {
        for p in [0.0, 1.0, -1.0, 2.0] {
            assert!(normal_quantile(p).is_finite());
            assert!(student_t_quantile(p, 0.0).is_finite());
        }
        assert!(near(normal_cdf(1.96), 0.975));
        assert!(near(student_t_cdf(4.3027, 2.0), 0.975));
    }
}
