use super::{SteadyState, is_steady};
use crate::sample::SampleError;
use proptest::prelude::*;

/// The round, from 1, with which these became steady.
fn settled(rounds: &[f64]) -> Option<usize> {
    let mut state = SteadyState::default();
    let mut each = rounds
        .iter()
        .map(|round| state.push(*round).expect("finite"));
    each.position(|steady| steady).map(|place| place + 1)
}

/// By hand: values, sum, range / average, slope x 4 / average with
/// slope = (-2 y1 - y2 + y4 + 2 y5) / 10.
#[test]
fn limits_are_inclusive_and_exact() {
    // Range 20 of average 100; slope (-220 - 90 + 90 + 220) / 10 = 0.
    assert!(is_steady(&[110.0, 90.0, 100.0, 90.0, 110.0]));
    // Range 21 of sum 501: 0.2096, and a slope of (-222 - 90 + 90 + 220) / 10 = -0.2.
    assert!(!is_steady(&[111.0, 90.0, 100.0, 90.0, 110.0]));
    // Slope (-190 - 97.5 + 102.5 + 210) / 10 = 2.5, x 4 = 10 of 100; range 10.
    assert!(is_steady(&[95.0, 97.5, 100.0, 102.5, 105.0]));
    // The same falling.
    assert!(is_steady(&[105.0, 102.5, 100.0, 97.5, 95.0]));
    // Slope 2.52, x 4 = 10.08 of average 100.02; range 10.1.
    assert!(!is_steady(&[95.0, 97.5, 100.0, 102.5, 105.1]));
}

#[test]
fn real_rounds_settle_at_the_sixth() {
    // Window 1..5: range 400 of 1114; window 2..6: range 100 of 1034, slope
    // (-2 x 1100 - 1050 + 1020 + 2 x 1000) / 10 = -23, x 4 = -92 of 1034: 8.9 %.
    let rounds = [1400.0, 1100.0, 1050.0, 1000.0, 1020.0, 1000.0, 990.0];
    assert_eq!(settled(&rounds), Some(6));
    assert_eq!(settled(&rounds[..5]), None);
}

#[test]
fn rounds_that_never_settle_are_never_steady_however_many() {
    let rounds: Vec<f64> = (0..60).map(|round| 2.0_f64.powi(round)).collect();
    assert_eq!(settled(&rounds), None);
}

#[test]
fn bad_rounds_are_errors_and_zero_is_never_steady() {
    let mut state = SteadyState::default();
    assert_eq!(state.push(5.0), Ok(false));
    assert!(matches!(
        state.push(f64::NAN),
        Err(SampleError::NotFinite { index: 1, .. })
    ));
    for values in [[0.0; 5], [-1.0; 5]] {
        assert_eq!(settled(&values), None);
    }
}

proptest! {
    /// Against the textbook least-squares line.
    #[test]
    fn slope_is_least_squares(values in proptest::collection::vec(90.0..110.0_f64, 2..12)) {
        let count = values.len() as f64;
        let x_mean = (count - 1.0) / 2.0;
        let y_mean = values.iter().sum::<f64>() / count;
        let (mut xy, mut xx) = (0.0, 0.0);
        for (x, y) in values.iter().enumerate() {
            xy += (x as f64 - x_mean) * (y - y_mean);
            xx += (x as f64 - x_mean).powi(2);
        }
        let slope = (xy / xx * (count - 1.0) / y_mean).abs();
        let high = values.iter().copied().fold(f64::MIN, f64::max);
        let low = values.iter().copied().fold(f64::MAX, f64::min);
        let range = (high - low) / y_mean;
        prop_assume!((slope - 0.1).abs() > 1e-9 && (range - 0.2).abs() > 1e-9);
        prop_assert_eq!(is_steady(&values), slope < 0.1 && range < 0.2);
    }

    /// The state machine stops at the first steady window, found by trying all.
    #[test]
    fn stops_at_the_first_window_that_holds(values in proptest::collection::vec(80.0..130.0_f64, 25)) {
        let first = (5..=25).find(|&end| is_steady(&values[end - 5..end]));
        prop_assert_eq!(settled(&values), first);
    }
}
