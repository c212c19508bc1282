//! The charts, as `plotly.js` figures in JSON.
//!
//! The choice of charts follows from what the run varies ([`crate::compute::shape`]), not from
//! names of jobs or classes: figures are drawn along the quantity in which jobs differ, along the
//! number of members where subjects differ in it, or around events of the arrays; other jobs are
//! bars. A figure is one panel or several beside each other; the page has the titles, units and
//! legends, so that only axes and marks have to fit into a panel. Figures name theme colours
//! (`theme:ink`) where they follow light and dark; the page's script puts in the style sheet's
//! values. A subject has one look everywhere.

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
    /// The figure's identifier, unique in the page.
    pub id: String,
    /// The heading of the chart, which names its values.
    pub title: String,
    /// A caption on how to read the chart; may be empty.
    pub caption: String,
    /// The unit of the values and which way is better: `iops, more is better`; may be empty.
    pub unit: String,
    /// Whether the chart takes the whole width of a wide page.
    pub wide: bool,
    /// The legend: the series and the meaning of other marks.
    pub legend: Vec<Key>,
    /// Whether the reader may choose a logarithmic scale: values over time are also near zero, and
    /// neither scale shows all of them.
    pub scales: bool,
    /// The panels of the chart, side by side where there is room.
    pub panels: Vec<Panel>,
}

/// One plot of a figure.
#[derive(Debug, Serialize)]
pub(crate) struct Panel {
    /// The plot's identifier, unique in the page.
    pub id: String,
    /// The title of the panel; empty for an only one.
    pub title: String,
    /// The height of the plot in the page, in CSS pixels.
    pub height: usize,
    /// The plot's `data` and `layout`, without what all plots have in common.
    #[serde(skip)]
    pub plot: Value,
}

/// An entry of a legend.
#[derive(Debug, Serialize)]
pub(crate) struct Key {
    /// The meaning of the mark, as the legend has it.
    pub name: String,
    /// A picture of the mark, as SVG.
    pub swatch: String,
    /// Whether the entry is a series, which a click hides and shows.
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

    /// An entry that explains a kind of mark.
    fn explains(name: &str, swatch: String) -> Self {
        Self {
            series: false,
            ..Self::new(name, swatch)
        }
    }
}

/// All charts of rates and members for which the run has figures, in reading order.
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

/// The charts of the distributions of latencies: many panels, which the page folds away.
pub(crate) fn distributions(data: &RunData, view: &View<'_>) -> Vec<Figure> {
    distribution::figures(data, view)
}

/// The time lines of every experiment that was sampled.
pub(crate) fn timeline_figures(data: &RunData, view: &View<'_>) -> Vec<TimelineFigures> {
    let all = timelines(&data.series, &data.events, &data.measurements);
    let figures = all.iter().enumerate().map(|(number, own)| {
        let mut columns = view.columns.iter().zip(&view.names);
        let name = columns.find(|(column, _)| **column == own.column);
        let name = name.map_or(own.column.subject, |(_, name)| name);
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
