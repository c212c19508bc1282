//! The charts, as `plotly` figures in JSON.
//!
//! A figure names theme colours (`theme:ink`) where they follow light and
//! dark; the page's script puts in the style sheet's values. A subject has one
//! colour, marker and position everywhere. Which charts there are follows from
//! the shape of the measurements, not from names of jobs or classes: a class
//! with a ladder of queue depths gets a curve, large reads with different
//! numbers of streams get bars, and so on.

mod balance;
mod bars;
mod curves;
mod errors;
mod look;

use crate::compute::view::View;
use crate::data::RunData;
use serde::Serialize;
use serde_json::Value;

pub(crate) use look::colour;

/// A chart for the page.
#[derive(Debug, Serialize)]
pub(crate) struct Figure {
    /// Unique in the page.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// How to read it.
    pub caption: String,
    /// Pixels.
    pub height: usize,
    /// Whether it takes the whole width of a wide page.
    pub wide: bool,
    /// `data`, `layout` and `config` for `Plotly.react`.
    #[serde(skip)]
    pub plot: Value,
}

/// Every chart that the run has the figures for, in reading order; those about
/// errors are apart.
pub(crate) fn figures(data: &RunData, view: &View<'_>) -> Vec<Figure> {
    let mut all = curves::iops_by_depth(data, view);
    all.extend(curves::iops_by_sync(view));
    all.extend(bars::all(view));
    all.extend(curves::latency_by_depth(data, view));
    all.extend(balance::figures(view));
    all
}

/// Errors against the published figures, if there are any.
pub(crate) fn error_figure(data: &RunData, view: &View<'_>) -> Option<Figure> {
    errors::figure(data, view)
}
