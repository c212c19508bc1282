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
mod blocks;
mod curves;
mod errors;
mod latency;
mod look;
mod timeline;

use crate::compute::timeline::timelines;
use crate::compute::view::View;
use crate::data::RunData;
use serde::Serialize;
use serde_json::Value;

pub(crate) use look::colour;
pub(crate) use timeline::TimelineFigures;

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
    all.extend(blocks::figures(data, view));
    all.extend(bars::all(data, view));
    all.extend(latency::figures(data, view));
    all.extend(balance::figures(view));
    all
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
mod tests {
    use super::figures;
    use crate::compute::view::View;
    use crate::sample;
    use serde_json::{Value, json};

    fn figure(id: &str) -> Value {
        let data = sample::data();
        let view = View::new(&data);
        let mut all = figures(&data, &view);
        all.extend(super::error_figure(&data, &view));
        all.retain(|figure| figure.id == id);
        all.swap_remove(0).plot
    }

    #[test]
    fn the_depth_curve_has_line_band_and_published_markers() {
        let plot = figure("depth-random-read-reads");
        let md: Vec<&Value> = plot["data"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|trace| trace["legendgroup"] == "md")
            .collect();
        assert_eq!(md.len(), 3);
        let band = md.iter().find(|trace| trace["fill"] == "toself").unwrap();
        assert_eq!(band["x"].as_array().unwrap().len(), 20);
        let published = md.iter().find(|trace| trace["mode"] == "markers").unwrap();
        assert_eq!(published["y"][3], json!(199.0));
        let ticks = json!(["1", "2", "3", "4", "6", "8", "12", "16", "24", "32"]);
        assert_eq!(plot["layout"]["xaxis"]["ticktext"], ticks);
        assert_eq!(plot["layout"]["xaxis"]["type"], "log");
    }

    #[test]
    fn every_axis_with_figures_says_unit_and_direction() {
        for (id, words) in [
            ("depth-random-read-reads", "iops, more is better"),
            ("sync", "iops, more is better"),
            ("bars-streams", "MB/s (10⁶ bytes), more is better"),
            ("bars-random-write", "iops (log scale), more is better"),
            (
                "latency-random-read-reads",
                "latency, ms (log scale), less is better",
            ),
        ] {
            assert_eq!(
                figure(id)["layout"]["yaxis"]["title"]["text"],
                words,
                "{id}"
            );
        }
    }

    #[test]
    fn published_ticks_stand_in_their_subjects_group() {
        let plot = figure("bars-streams");
        assert_eq!(plot["layout"]["scattermode"], "group");
        for trace in plot["data"].as_array().unwrap() {
            assert_eq!(trace["offsetgroup"], trace["legendgroup"]);
        }
    }

    #[test]
    fn a_whisker_reaches_from_the_lowest_to_the_highest_fit() {
        let plot = figure("bars-mixed");
        let bar = &plot["data"][0];
        let ours = bar["y"][0].as_f64().unwrap();
        let above = bar["error_y"]["array"][0].as_f64().unwrap();
        // The sample's second fit is 2.5 % of the published 158 above the first.
        assert!((above - 3.95).abs() < 1e-9, "{ours} {above}");
        assert_eq!(bar["error_y"]["arrayminus"][0], json!(0.0));
    }

    #[test]
    fn disputed_figures_are_not_among_the_errors() {
        let plot = figure("errors");
        let gflash = plot["data"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|trace| trace["name"] == "gflash");
        let dots: usize = gflash
            .map(|trace| trace["x"].as_array().unwrap().len())
            .sum();
        // 30 rows, 9 of them disputed.
        assert_eq!(dots, 21);
        assert_eq!(plot["layout"]["shapes"][0]["x1"], json!(4.0));
    }

    #[test]
    fn an_error_beyond_the_edge_stands_there_with_its_number() {
        let mut m = sample::cell("md", 0);
        m.iops = 10.0 * m.published[0].iops;
        let mut unpublished = sample::cell("ours", 0);
        unpublished.published.clear();
        let mut data = sample::data();
        data.measurements = vec![unpublished, m];
        let view = View::new(&data);
        let plot = super::error_figure(&data, &view).unwrap().plot;
        let traces = plot["data"].as_array().unwrap();
        assert!(traces.iter().all(|trace| trace["name"] != "ours"));
        assert_eq!(traces[0]["x"], json!([50.0]));
        assert_eq!(traces[0]["text"], json!(["+900\u{a0}%"]));
    }

    #[test]
    fn published_figures_stand_at_their_own_sync_progress() {
        let mut data = sample::data();
        for m in &mut data.measurements {
            for percent in m.sync_percent_start.iter_mut() {
                *percent += 3.0;
            }
        }
        let view = View::new(&data);
        let sync = figures(&data, &view).into_iter().find(|f| f.id == "sync");
        let plot = sync.unwrap().plot;
        let mut traces = plot["data"].as_array().unwrap().iter();
        let published = traces.find(|trace| trace["mode"] == "markers").unwrap();
        assert_eq!(published["x"][1], json!(16.0));
    }
}
