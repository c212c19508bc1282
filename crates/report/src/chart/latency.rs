//! Latency percentiles against queue depth.
//!
//! Colour is the subject, the kind of line the percentile. Four percentiles of
//! each subject at once are a tangle: the median and the 99th are drawn, the
//! others wait in the legend.

use super::Figure;
use super::curves::{LADDER_STEPS, Ladder, depth_axis, ladders, op_name};
use super::look::{INK, hover, layout, line, log_axis, marker, plot};
use crate::compute::headline::class_title;
use crate::compute::view::{Row, View};
use crate::data::RunData;
use crate::format::{figure, percentiles_ms};
use plotly::common::{DashType, Line, Mode, Visible};
use plotly::{Scatter, Trace};

/// Names and lines of the percentiles, in the order of `percentiles_ms`.
const PERCENTILES: [(&str, DashType); 4] = [
    ("median", DashType::Solid),
    ("90 %", DashType::Dash),
    ("99 %", DashType::DashDot),
    ("99.9 %", DashType::Dot),
];

/// A figure for each ladder of queue depths whose latencies are known.
pub(super) fn figures(data: &RunData, view: &View<'_>) -> Vec<Figure> {
    let known = |row: &&Row<'_>| {
        let mut cells = row.cells.iter().flatten();
        cells.any(|cell| cell.m.latency.max_ns > 0)
    };
    let with_latencies = |mut ladder: Ladder<'_, '_>| {
        ladder.rows.retain(known);
        (ladder.rows.len() >= LADDER_STEPS).then(|| ladder_figure(data, view, &ladder))
    };
    ladders(view)
        .into_iter()
        .filter_map(with_latencies)
        .collect()
}

fn ladder_figure(data: &RunData, view: &View<'_>, ladder: &Ladder<'_, '_>) -> Figure {
    let mut traces: Vec<Box<dyn Trace>> = Vec::new();
    for (rank, (percentile, dash)) in PERCENTILES.iter().enumerate() {
        let shown = if rank % 2 == 0 {
            Visible::True
        } else {
            Visible::LegendOnly
        };
        for subject in 0..view.names.len() {
            let name = &view.names[subject];
            traces.push(curve(ladder, subject, name, rank).visible(shown.clone()));
        }
        traces.push(
            Scatter::new(vec![1.0], vec![None::<f64>])
                .mode(Mode::Lines)
                .name(*percentile)
                .line(Line::new().color(INK).width(2.0).dash(dash.clone()))
                .legend_group(*percentile)
                .visible(shown),
        );
    }
    let layout = layout()
        .x_axis(depth_axis(&ladder.rows))
        .y_axis(log_axis("latency, ms (log scale), less is better"));
    Figure {
        id: format!("latency-{}-{}", ladder.class, op_name(ladder.op)),
        title: format!(
            "{}: latency against queue depth",
            class_title(data, ladder.class)
        ),
        caption: "Colour and marker: the subject, as everywhere on this page. Click a percentile \
                  in the legend to show or hide it."
            .to_owned(),
        height: 460,
        wide: true,
        plot: plot(traces, layout),
    }
}

/// One percentile of one subject.
fn curve(
    ladder: &Ladder<'_, '_>,
    subject: usize,
    name: &str,
    rank: usize,
) -> Box<Scatter<f64, f64>> {
    let (percentile, dash) = &PERCENTILES[rank];
    let (mut x, mut y, mut texts) = (Vec::new(), Vec::new(), Vec::new());
    for row in &ladder.rows {
        let Some(cell) = row.cells[subject].filter(|cell| cell.m.latency.max_ns > 0) else {
            continue;
        };
        let ms = percentiles_ms(&cell.m.latency)[rank];
        let depth = row.head.queue_depth;
        let text = format!("queue depth {depth}: {percentile} {} ms", figure(ms));
        x.push(f64::from(depth));
        y.push(ms);
        texts.push(hover(name, &row.label, &text));
    }
    Scatter::new(x, y)
        .mode(Mode::LinesMarkers)
        .line(line(subject, dash.clone()))
        .marker(marker(subject, false))
        .hover_template_array(texts)
        .legend_group(*percentile)
        .show_legend(false)
}
