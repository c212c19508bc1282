//! The errors of our figures against the published ones, per class and subject.
//!
//! Cells that the model was fitted on show how well it was fitted, the others how well it
//! predicts: the two are never averaged together. A figure whose source is disputed proves nothing
//! and is only counted.

use super::view::{Cell, Row, View};
use raidlab_store::{Role, published_error_percent as error_percent};

/// A published figure's reliability when sources contradict each other.
pub(crate) const DISPUTED: &str = "disputed";

/// Whether the figure that a cell is compared with is disputed.
pub(crate) fn is_disputed(cell: Cell<'_>) -> bool {
    let first = cell.m.published.first();
    first.is_some_and(|figure| figure.reliability == DISPUTED)
}

/// The error of a cell's figure, percent of the published one; with several repetitions the figure
/// is their median.
pub(crate) fn cell_error_percent(row: &Row<'_>, cell: Cell<'_>) -> Option<f64> {
    let nearest = error_percent(cell.m)?;
    let ratio = cell.value / row.rate.of(cell.m);
    let is_between = cell.used > 1 && ratio.is_finite();
    Some(if is_between {
        (nearest + 100.0) * ratio - 100.0
    } else {
        nearest
    })
}

/// Errors of some cells against their published figures.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Errors {
    /// The number of cells, at least 1.
    pub cells: usize,
    /// Mean of the absolute errors, percent.
    pub mean_absolute_percent: f64,
    /// The largest error with its sign, percent.
    pub worst_percent: f64,
    /// The label of the row with the worst error.
    pub worst_label: String,
    /// The index of the subject with the worst error.
    pub worst_subject: usize,
}

impl Errors {
    /// The errors of `(subject, label, percent)`; `None` if there are none.
    fn of<'a>(errors: impl Iterator<Item = (usize, &'a str, f64)>) -> Option<Self> {
        let mut all = Self::default();
        let mut sum = 0.0;
        for (subject, label, percent) in errors {
            all.cells += 1;
            sum += percent.abs();
            if all.cells == 1 || percent.abs() > all.worst_percent.abs() {
                all.worst_percent = percent;
                label.clone_into(&mut all.worst_label);
                all.worst_subject = subject;
            }
        }
        all.mean_absolute_percent = sum / all.cells as f64;
        (all.cells > 0).then_some(all)
    }
}

/// The accuracy of one class on one subject, or over all subjects.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Accuracy {
    /// The errors of cells that were predicted or measured; `None` if there is no such cell.
    pub predicted: Option<Errors>,
    /// The errors of cells that the model was fitted on; `None` if there is no such cell.
    pub fitted: Option<Errors>,
    /// The number of cells left out because their published figure is disputed.
    pub disputed: usize,
}

/// The accuracy of the cells that `wanted` picks by class and subject index.
pub(crate) fn accuracy(view: &View<'_>, wanted: impl Fn(&str, usize) -> bool) -> Accuracy {
    let mut predicted = Vec::new();
    let mut fitted = Vec::new();
    let mut disputed = 0;
    for (subject, row, cell) in view.cells() {
        let Some(percent) = cell_error_percent(row, cell) else {
            continue;
        };
        if !wanted(&row.head.class, subject) {
            continue;
        }
        let error = (subject, row.label.as_str(), percent);
        if is_disputed(cell) {
            disputed += 1;
        } else if cell.m.role == Role::Fitted {
            fitted.push(error);
        } else {
            predicted.push(error);
        }
    }
    Accuracy {
        predicted: Errors::of(predicted.into_iter()),
        fitted: Errors::of(fitted.into_iter()),
        disputed,
    }
}

#[cfg(test)]
mod tests {
    use super::{accuracy, error_percent};
    use crate::compute::view::View;
    use crate::sample;
    use raidlab_store::Role;

    #[test]
    fn fitted_predicted_and_disputed_cells_are_kept_apart() {
        let figures = [
            (0, 110.0, Role::Predicted, "exact"),
            (1, 80.0, Role::Predicted, "rounded"),
            (2, 101.0, Role::Fitted, "exact"),
            (3, 500.0, Role::Predicted, "disputed"),
        ];
        let measurements = figures.map(|(sequence, iops, role, reliability)| {
            let mut m = sample::cell("md", sequence);
            m.iops = iops;
            m.role = role;
            m.published[0].iops = 100.0;
            m.published[0].reliability = reliability.to_owned();
            m
        });
        let view = View::of_rows(&measurements);
        let found = accuracy(&view, |_, _| true);
        let predicted = found.predicted.unwrap();
        assert_eq!(predicted.cells, 2);
        assert!((predicted.mean_absolute_percent - 15.0).abs() < 1e-9);
        assert!((predicted.worst_percent + 20.0).abs() < 1e-9);
        assert_eq!(predicted.worst_label, "2");
        assert_eq!(found.fitted.unwrap().cells, 1);
        assert_eq!(found.disputed, 1);
    }

    #[test]
    fn bytes_are_compared_where_there_are_no_operations() {
        let mut m = sample::cell("md", 0);
        (m.iops, m.bytes_per_second) = (0.0, 110e6);
        m.published[0].iops = 0.0;
        m.published[0].bytes_per_second = Some(100e6);
        let percent = error_percent(&m).unwrap();
        assert!((percent - 10.0).abs() < 1e-9);
        // Printed with its block size, by a tool that does not tell operations.
        m.published[0].iops = 25.0;
        assert!((error_percent(&m).unwrap() - 10.0).abs() < 1e-9);
        m.published[0].bytes_per_second = None;
        assert_eq!(error_percent(&m), None);
    }

    #[test]
    fn the_error_is_that_of_the_figure_that_is_shown() {
        let measurements = [(0, 90.0), (1, 112.0)].map(|(repetition, iops)| {
            let mut m = sample::cell("md", 0);
            (m.repetition, m.iops) = (repetition, iops);
            m.role = Role::Measured;
            m.published[0].iops = 100.0;
            m
        });
        let found = accuracy(&View::of_rows(&measurements), |_, _| true);
        let percent = found.predicted.unwrap().worst_percent;
        assert!((percent - 1.0).abs() < 1e-9, "{percent}");
    }

    #[test]
    fn figures_of_an_article_are_not_compared_with_themselves() {
        let mut measurements = [sample::cell("md", 0), sample::cell("md", 1)];
        for m in &mut measurements {
            "import".clone_into(&mut m.bench);
            m.iops = m.published[0].iops;
        }
        assert!(View::of_rows(&measurements).compared().is_empty());
        measurements[1].iops += 1.0;
        assert_eq!(View::of_rows(&measurements).compared(), [0]);
    }

    #[test]
    fn nothing_published_gives_no_accuracy() {
        let mut m = sample::cell("md", 0);
        m.published.clear();
        let measurements = [m];
        let found = accuracy(&View::of_rows(&measurements), |_, _| true);
        assert_eq!(found.predicted, None);
        assert_eq!(found.fitted, None);
    }
}
