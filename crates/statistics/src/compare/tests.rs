use raidlab_random::Stream;

use super::{Comparison, Measured, Question, compare_measured, compare_samples};
use crate::best::Direction;
use crate::interval::{Confidence, Interval, NoInterval};
use crate::multiple::{Correction, correct_table};
use crate::sample::Sample;
use crate::verdict::{CannotTell, Verdict};
use proptest::prelude::*;

fn sample(values: &[f64]) -> Sample {
    Sample::new(values).expect("finite")
}

fn compare(base: &[f64], other: &[f64], question: &Question) -> Comparison {
    compare_samples(&sample(base), &sample(other), question, &mut Stream::new(1))
}

fn measured(value: f64, low: f64, high: f64) -> Measured {
    let confidence = Confidence::NINETY_FIVE;
    Measured {
        value,
        interval: Interval {
            low,
            high,
            confidence,
        },
    }
}

const RATE: Direction = Direction::MoreIsBetter;

#[test]
fn once_each_is_never_an_answer() {
    let found = compare(&[38.0], &[9608.0], &Question::new(RATE));
    assert_eq!(found.to_string(), "cannot tell: 1 repetition each");
    let found = compare(&[38.0], &[9608.0, 9700.0, 9800.0], &Question::new(RATE));
    assert_eq!(found.to_string(), "cannot tell: 1 against 3 repetitions");
}

#[test]
fn verdicts_in_words() {
    let text = |base: (f64, f64, f64), other: (f64, f64, f64), direction| {
        let (base, other) = (
            measured(base.0, base.1, base.2),
            measured(other.0, other.1, other.2),
        );
        compare_measured(&base, &other, &Question::new(direction)).to_string()
    };
    let near = (100.0, 98.0, 102.0);
    assert_eq!(
        text(near, (112.0, 110.0, 114.0), RATE),
        "12 % faster (95 % interval 9..15 %)"
    );
    assert_eq!(
        text(near, (88.0, 86.0, 90.0), RATE),
        "12 % slower (95 % interval 9..15 %)"
    );
    let time = Direction::LessIsBetter;
    assert_eq!(
        text(near, (88.0, 86.0, 90.0), time),
        "12 % lower (95 % interval 9..15 %)"
    );
    let share = Direction::HigherIsBetter;
    assert_eq!(
        text(near, (112.0, 110.0, 114.0), share),
        "12 % higher (95 % interval 9..15 %)"
    );
    let far = text((180.0, 176.0, 184.0), (9608.0, 9500.0, 9700.0), RATE);
    assert_eq!(far, "53 x as fast (95 % interval 52..55 x)");
    let overlap = text(near, (103.0, 98.0, 108.0), RATE);
    assert_eq!(
        overlap,
        "cannot tell: between 2.4 % slower and 8 % faster (95 % interval)"
    );
    let tight = text((100.0, 99.6, 100.4), (100.1, 99.7, 100.5), RATE);
    assert_eq!(
        tight,
        "the same within 2 % (95 % interval -0.5 % to +0.7 %)"
    );
    let small = text((100.0, 99.5, 100.5), (101.5, 101.0, 102.5), RATE);
    let expected = "cannot tell: perhaps too small to matter, between 1 % faster and 3 % faster (95 % interval)";
    assert_eq!(small, expected);
}

#[test]
fn direction_decides_what_is_better() {
    let base = [100.0, 101.0, 99.0, 100.5, 99.5, 100.2];
    let more: Vec<f64> = base.iter().map(|v| v * 1.2).collect();
    let rate = compare(&base, &more, &Question::new(RATE));
    assert!(matches!(rate.verdict, Verdict::Better { .. }), "{rate}");
    let time = compare(&base, &more, &Question::new(Direction::LessIsBetter));
    assert!(matches!(time.verdict, Verdict::Worse { .. }), "{time}");
    let share = compare(&base, &more, &Question::new(Direction::HigherIsBetter));
    assert!(matches!(share.verdict, Verdict::Better { .. }), "{share}");
    let back = compare(&more, &base, &Question::new(RATE));
    assert!(matches!(back.verdict, Verdict::Worse { ratio, .. } if ratio < 0.84));
    let same = compare(&base, &base, &Question::new(RATE));
    assert!(matches!(same.verdict, Verdict::Same { .. }), "{same}");
    let strict = Question {
        margin: 0.0,
        ..Question::new(RATE)
    };
    let same = compare(&base, &base, &strict);
    assert!(matches!(
        same.verdict,
        Verdict::CannotTell {
            why: CannotTell::Overlap { .. }
        }
    ));
}

/// Three repetitions 12 % apart with 1 % of spread are enough for Welch.
#[test]
fn three_repetitions_use_welch() {
    let found = compare(
        &[99.0, 100.0, 101.0],
        &[111.0, 112.0, 113.0],
        &Question::new(RATE),
    );
    assert_eq!(found.to_string(), "12 % faster (95 % interval 10..14 %)");
}

#[test]
fn constant_samples_have_no_answer() {
    let found = compare(&[38.0; 9], &[50.0; 9], &Question::new(RATE));
    assert!(matches!(
        found.verdict,
        Verdict::CannotTell {
            why: CannotTell::NoInterval(NoInterval::NoSpread)
        }
    ));
}

#[test]
fn a_table_of_rows_is_corrected_together() {
    let base = measured(100.0, 96.0, 104.0);
    // The first row alone is just significant, the second clearly.
    let mut table: Vec<Comparison> = [106.0, 150.0, 100.0, 101.0]
        .iter()
        .map(|&v| {
            compare_measured(
                &base,
                &measured(v, v * 0.965, v * 1.035),
                &Question::new(RATE),
            )
        })
        .collect();
    assert!(
        matches!(table[0].verdict, Verdict::Better { .. }),
        "{}",
        table[0]
    );
    correct_table(&mut table, Correction::Holm);
    let text = table[0].to_string();
    assert!(
        text.starts_with("cannot tell: may be chance among 4 comparisons"),
        "{text}"
    );
    assert!(matches!(table[1].verdict, Verdict::Better { .. }));
}

#[test]
fn unusable_intervals_are_refused() {
    let good = measured(100.0, 90.0, 110.0);
    for bad in [
        measured(f64::NAN, 1.0, 2.0),
        measured(0.0, 0.0, 1.0),
        measured(5.0, -1.0, 7.0),
        measured(5.0, 6.0, 7.0),
        measured(5.0, 4.0, f64::INFINITY),
    ] {
        for (base, other) in [(&good, &bad), (&bad, &good)] {
            let found = compare_measured(base, other, &Question::new(RATE));
            let refused = matches!(
                found.verdict,
                Verdict::CannotTell {
                    why: CannotTell::NoInterval(_)
                }
            );
            assert!(refused, "{found}");
        }
    }
}

proptest! {
    /// Whatever the values: an answer needs an interval on its side of 1, and
    /// changing places changes better into worse.
    #[test]
    fn answers_are_backed_by_their_interval(
        base in proptest::collection::vec(1.0..1000.0_f64, 1..8),
        other in proptest::collection::vec(1.0..1000.0_f64, 1..8),
    ) {
        let mut question = Question::new(RATE);
        question.bootstrap.resamples = 200;
        let found = compare(&base, &other, &question);
        match found.verdict {
            Verdict::Better { interval, ratio } => prop_assert!(interval.low > 1.0 && ratio > 1.02),
            Verdict::Worse { interval, ratio } => prop_assert!(interval.high < 1.0 && ratio < 0.981),
            Verdict::Same { interval, .. } => prop_assert!(interval.high <= 1.02),
            Verdict::CannotTell { .. } => {}
        }
        if base.len().min(other.len()) == 1 {
            let silent = matches!(
                found.verdict,
                Verdict::CannotTell { why: CannotTell::TooFew { .. } }
            );
            prop_assert!(silent);
        }
        prop_assert!(!found.to_string().contains("NaN"));
    }
}
