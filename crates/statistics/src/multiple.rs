//! Correction for many comparisons in one table.
//!
//! At 95 %, one in twenty comparisons of equals is called different by
//! chance; a table of forty has two such rows. The p-values are corrected
//! together. Holm (1979) keeps the chance of any false row below alpha,
//! whatever the rows have to do with each other: for few rows, each read on
//! its own. Benjamini and Hochberg (1995) keep the expected share of false
//! rows among those called different below alpha, for independent or
//! positively dependent rows: for large tables, read for patterns.
//!
//! A row that is no longer significant becomes "cannot tell". Rows called
//! the same stay: the p-values are about difference and say nothing of
//! equivalence. The intervals are each row's own and are not widened.

use crate::compare::Comparison;
use crate::verdict::{CannotTell, Verdict};

/// The method by which the p-values of a table's rows are corrected for their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Correction {
    /// Holm 1979: bounds the chance of any false row.
    Holm,
    /// Benjamini and Hochberg 1995: bounds the share of false rows.
    BenjaminiHochberg,
}

/// Adjusted p-values, in the order given, each in `0..=1` and never below its
/// own; a value that is NaN is taken as 1.
fn adjusted_p_values(p_values: &[f64], correction: Correction) -> Vec<f64> {
    let clean = |p: f64| if p.is_nan() { 1.0 } else { p.clamp(0.0, 1.0) };
    let mut order: Vec<(usize, f64)> = p_values.iter().map(|&p| clean(p)).enumerate().collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    let rows = order.len() as f64;
    let mut adjusted = vec![1.0; order.len()];
    match correction {
        Correction::Holm => {
            let mut largest: f64 = 0.0;
            for (rank, (row, p)) in order.into_iter().enumerate() {
                largest = largest.max((p * (rows - rank as f64)).min(1.0));
                adjusted[row] = largest;
            }
        }
        Correction::BenjaminiHochberg => {
            let mut smallest: f64 = 1.0;
            for (rank, (row, p)) in order.into_iter().enumerate().rev() {
                smallest = smallest.min(p * rows / (rank as f64 + 1.0));
                adjusted[row] = smallest;
            }
        }
    }
    adjusted
}

/// Corrects all rows of a table together: a verdict "better" or "worse" whose adjusted p-value is
/// not below its own alpha becomes "cannot tell". Rows without a p-value are left out.
pub fn correct_table(table: &mut [Comparison], correction: Correction) {
    let p_values: Vec<f64> = table.iter().filter_map(|row| row.p_value).collect();
    let mut adjusted = adjusted_p_values(&p_values, correction).into_iter();
    let rows = p_values.len();
    for row in table.iter_mut().filter(|row| row.p_value.is_some()) {
        let Some(adjusted_p) = adjusted.next() else {
            return;
        };
        if let Verdict::Better { interval, .. } | Verdict::Worse { interval, .. } = row.verdict
            && adjusted_p > interval.confidence.alpha()
        {
            row.verdict = Verdict::CannotTell {
                why: CannotTell::ManyComparisons { rows, adjusted_p },
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Correction, adjusted_p_values};
    use proptest::prelude::*;

    /// R: p.adjust(c(.01, .04, .03, .005), "holm") and "BH".
    #[test]
    fn four_rows_as_in_r() {
        let p = [0.01, 0.04, 0.03, 0.005];
        let near = |found: Vec<f64>, expected: [f64; 4]| {
            found
                .iter()
                .zip(expected)
                .all(|(a, b)| (a - b).abs() < 1e-12)
        };
        assert!(near(
            adjusted_p_values(&p, Correction::Holm),
            [0.03, 0.06, 0.06, 0.02]
        ));
        let found = adjusted_p_values(&p, Correction::BenjaminiHochberg);
        assert!(near(found, [0.02, 0.04, 0.04, 0.02]));
        assert_eq!(adjusted_p_values(&[f64::NAN], Correction::Holm), [1.0]);
    }

    proptest! {
        #[test]
        fn corrections_only_raise_and_keep_order(
            p in proptest::collection::vec(0.0..=1.0_f64, 1..20)
        ) {
            let holm = adjusted_p_values(&p, Correction::Holm);
            let hochberg = adjusted_p_values(&p, Correction::BenjaminiHochberg);
            for (row, &own) in p.iter().enumerate() {
                prop_assert!(own <= hochberg[row] + 1e-15);
                prop_assert!(hochberg[row] <= holm[row] + 1e-15);
                for (other, &theirs) in p.iter().enumerate() {
                    prop_assert!(own > theirs || holm[row] <= holm[other]);
                }
            }
        }
    }
}
