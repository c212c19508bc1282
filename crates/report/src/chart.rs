//! The charts, as `plotly.js` figures in JSON.
//!
//! Which charts there are follows from what the run varies ([`crate::compute::shape`]),
//! not from names of jobs or classes: figures lie along the quantity in which jobs differ,
//! along the number of members where subjects differ in it, around the events that the
//! arrays met; jobs that stand alone are bars. A figure is one panel or several beside
//! each other; the page has the titles, units and legends, so that only axes and marks
//! have to fit into a panel. Figures name theme colours (`theme:ink`) where they follow
//! light and dark; the page's script puts in the style sheet's values. A subject has one
//! look everywhere.

mod balance;
mod bars;
mod distribution;
mod errors;
mod ladders;
mod lines;
mod look;
mod members;
mod passages;
mod scale;
mod timeline;

use crate::compute::timeline::timelines;
use crate::compute::view::View;
use crate::data::RunData;
use serde::Serialize;
use serde_json::Value;

pub(crate) use look::{Look, base};
pub(crate) use timeline::TimelineFigures;

/// A chart for the page.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Figure {
    /// The figure's name in the page, which no other has.
    pub id: String,
    /// The heading of the chart: what its values are of.
    pub title: String,
    /// How to read it; may be empty.
    pub caption: String,
    /// What the values are and which way is better: `iops, more is better`; may be empty.
    pub unit: String,
    /// Whether it takes the whole width of a wide page.
    pub wide: bool,
    /// The series and what other marks mean.
    pub legend: Vec<Key>,
    /// Whether the reader may choose a logarithmic scale: values over time are near zero
    /// too, and neither scale shows all of them.
    pub scales: bool,
    /// The panels of the chart, which stand side by side where there is room.
    pub panels: Vec<Panel>,
}

/// One plot of a figure.
#[derive(Debug, Serialize)]
pub(crate) struct Panel {
    /// The plot's name in the page, which no other has.
    pub id: String,
    /// What sets it apart from the figure's others; empty for the only one.
    pub title: String,
    /// How high it is in the page, in CSS pixels.
    pub height: usize,
    /// `data` and `layout`; what all plots have in common is not in it.
    #[serde(skip)]
    pub plot: Value,
}

/// An entry of a legend.
#[derive(Debug, Serialize)]
pub(crate) struct Key {
    /// What the mark stands for, as the legend says it.
    pub name: String,
    /// A picture of the mark, as SVG.
    pub swatch: String,
    /// Whether it is a series, which a click hides and shows.
    pub series: bool,
}

impl Key {
    fn new(name: &str, swatch: String) -> Self {
        Self {
            name: name.to_owned(),
            swatch,
            series: true,
        }
    }

    /// An entry that tells what a kind of mark means.
    fn explains(name: &str, swatch: String) -> Self {
        Self {
            series: false,
            ..Self::new(name, swatch)
        }
    }
}

/// Every chart of rates and members that the run has the figures for, in reading order.
pub(crate) fn figures(data: &RunData, view: &View<'_>) -> Vec<Figure> {
    let (mut all, latencies) = ladders::figures(data, view);
    all.extend(passages::along_sync(data, view));
    all.extend(passages::around_events(data, view));
    all.extend(members::figures(view));
    all.extend(bars::all(data, view));
    all.extend(latencies);
    all.extend(bars::percentiles(data, view));
    all.extend(balance::figures(view));
    all
}

/// How latencies are spread: many panels, which the page folds away.
pub(crate) fn distributions(data: &RunData, view: &View<'_>) -> Vec<Figure> {
    distribution::figures(data, view)
}

/// The time lines of every experiment that was sampled.
pub(crate) fn timeline_figures(data: &RunData, view: &View<'_>) -> Vec<TimelineFigures> {
    let all = timelines(&data.series, &data.events, &data.measurements);
    let figures = all.iter().enumerate().map(|(number, own)| {
        let mut columns = view.columns.iter().zip(&view.names);
        let name = columns.find(|(column, _)| own.is_of(column));
        let name = name.map_or(own.subject, |(_, name)| name);
        timeline::timeline(own, number, name)
    });
    figures.filter(|own| !own.figures.is_empty()).collect()
}

/// Errors against the published figures, if there are any.
pub(crate) fn error_figure(data: &RunData, view: &View<'_>) -> Option<Figure> {
    errors::figure(data, view)
}

#[cfg(test)]
mod tests;
