//! Lines: iops against queue depth and against sync progress.
//!
//! Our figures are the line, the band between the fits is shaded, published
//! figures are open markers.

use super::Figure;
use super::look::{MUTED, axis, hover, layout, line, marker, plot, symbol, tint};
use crate::compute::headline::class_title;
use crate::compute::rate::Rate;
use crate::compute::sync::{progress_percent, series};
use crate::compute::view::{Cell, Row, View};
use crate::data::RunData;
use crate::format::figure;
use plotly::common::{DashType, Fill, HoverInfo, Line, Marker, MarkerSymbol, Mode};
use plotly::layout::{Axis, AxisType, RangeMode};
use plotly::{Scatter, Trace};
use raidlab_store::Operation;

/// The article's ladder.
const DEPTH_TICKS: [u32; 10] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32];

/// Fewer steps than this are no ladder.
pub(super) const LADDER_STEPS: usize = 3;

/// Rows of a class that form a ladder of queue depths.
pub(super) struct Ladder<'v, 'a> {
    pub(super) class: &'a str,
    pub(super) op: Operation,
    pub(super) rows: Vec<&'v Row<'a>>,
}

pub(super) fn ladders<'v, 'a>(view: &'v View<'a>) -> Vec<Ladder<'v, 'a>> {
    let mut all = Vec::new();
    for class in view.classes() {
        for op in [Operation::Read, Operation::Write] {
            let rows = view.main_rows();
            let own = |row: &&Row<'_>| {
                row.head.class == class
                    && row.head.op == op
                    && row.rate == Rate::Iops
                    && !row.has_sync()
            };
            let mut rows: Vec<_> = rows.filter(own).collect();
            rows.sort_by_key(|row| row.head.queue_depth);
            rows.dedup_by_key(|row| row.head.queue_depth);
            if rows.len() >= LADDER_STEPS {
                all.push(Ladder { class, op, rows });
            }
        }
    }
    all
}

pub(super) fn op_name(op: Operation) -> &'static str {
    match op {
        Operation::Read => "reads",
        Operation::Write => "writes",
        other => other.name(),
    }
}

/// A point of a curve.
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) band: (f64, f64),
    /// Where the published figure stands, at its own sync progress.
    pub(super) published: Option<(f64, f64)>,
    pub(super) text: String,
    /// Whether the audit struck it out.
    pub(super) struck: bool,
}

impl Point {
    fn new(subject: &str, row: &Row<'_>, cell: Cell<'_>, x: f64, at: &str) -> Self {
        let ours = figure(cell.value);
        let first = cell.m.published.first();
        let published = first.map_or_else(String::new, |f| {
            format!(
                "<br>published {} ({}, {})",
                figure(f.iops),
                f.source,
                f.reliability
            )
        });
        Self {
            x,
            y: cell.value,
            band: cell.band,
            published: first.map(|f| (f.sync_percent.unwrap_or(x), f.iops)),
            text: hover(
                subject,
                &row.label,
                &format!("{at}: {ours} iops{published}"),
            ),
            struck: cell.fatal,
        }
    }
}

/// A subject's band, line and published markers.
pub(super) fn curve(
    traces: &mut Vec<Box<dyn Trace>>,
    subject: usize,
    name: &str,
    points: &[Point],
) {
    let x: Vec<f64> = points.iter().map(|point| point.x).collect();
    if points.iter().any(|point| point.band.0 < point.band.1) {
        let there = points.iter().map(|point| (point.x, point.band.0));
        let back = points.iter().rev().map(|point| (point.x, point.band.1));
        let (x, y): (Vec<f64>, Vec<f64>) = there.chain(back).unzip();
        traces.push(
            Scatter::new(x, y)
                .mode(Mode::Lines)
                .line(Line::new().width(0.0))
                .fill(Fill::ToSelf)
                .fill_color(tint(subject, 0.18))
                .hover_info(HoverInfo::Skip)
                .legend_group(name)
                .show_legend(false),
        );
    }
    let texts: Vec<String> = points.iter().map(|point| point.text.clone()).collect();
    let valid = points
        .iter()
        .map(|point| (!point.struck).then_some(point.y));
    traces.push(
        Scatter::new(x, valid.collect())
            .mode(Mode::LinesMarkers)
            .name(name)
            .line(line(subject, DashType::Solid))
            .marker(marker(subject, false))
            .hover_template_array(texts.clone())
            .legend_group(name),
    );
    let struck = points.iter().filter(|point| point.struck);
    let (x, y): (Vec<f64>, Vec<f64>) = struck.clone().map(|point| (point.x, point.y)).unzip();
    if !x.is_empty() {
        traces.push(
            Scatter::new(x, y)
                .mode(Mode::Markers)
                .marker(marker(subject, false).symbol(MarkerSymbol::X))
                .hover_template_array(struck.map(|point| point.text.clone()).collect())
                .legend_group(name)
                .show_legend(false),
        );
    }
    let published = points.iter().zip(texts);
    let published = published.filter_map(|(point, text)| Some((point.published?, text)));
    let (places, texts): (Vec<(f64, f64)>, Vec<String>) = published.unzip();
    if !places.is_empty() {
        let (x, y) = places.into_iter().unzip();
        traces.push(
            Scatter::new(x, y)
                .mode(Mode::Markers)
                .marker(marker(subject, true))
                .hover_template_array(texts)
                .legend_group(name)
                .show_legend(false),
        );
    }
}

/// The entry that explains open markers.
pub(super) fn published_key(traces: &mut Vec<Box<dyn Trace>>, points: &[Vec<Point>]) {
    let mut all = points.iter().flatten();
    if all.any(|point| point.published.is_some()) {
        traces.push(
            Scatter::new(vec![1.0], vec![None::<f64>])
                .mode(Mode::Markers)
                .name("published")
                .hover_info(HoverInfo::Skip)
                .marker(
                    Marker::new()
                        .symbol(symbol(0, true))
                        .size(10)
                        .color(MUTED)
                        .line(Line::new().width(2.0)),
                ),
        );
    }
}

/// How to read a figure of curves.
pub(super) fn caption(points: &[Vec<Point>], view: &View<'_>) -> String {
    let mut words = vec!["Lines: this run.".to_owned()];
    let all = || points.iter().flatten();
    if all().any(|point| point.published.is_some()) {
        words.push("Open markers: published.".to_owned());
    }
    if all().any(|point| point.band.0 < point.band.1) {
        words.push(view.band_words("Shaded"));
    }
    if points.iter().flatten().any(|point| point.struck) {
        words.push("Crosses: struck out by the audit.".to_owned());
    }
    words.join(" ")
}

pub(super) fn depth_axis(rows: &[&Row<'_>]) -> Axis {
    let mut ticks: Vec<u32> = rows.iter().map(|row| row.head.queue_depth).collect();
    if ticks.iter().all(|depth| DEPTH_TICKS.contains(depth)) {
        ticks = DEPTH_TICKS.to_vec();
    }
    axis("queue depth (I/Os in flight, log scale)")
        .type_(AxisType::Log)
        .tick_values(ticks.iter().map(|depth| f64::from(*depth)).collect())
        .tick_text(ticks.iter().map(u32::to_string).collect())
}

/// Iops against queue depth: a figure for each ladder.
pub(super) fn iops_by_depth(data: &RunData, view: &View<'_>) -> Vec<Figure> {
    let figure = |ladder: Ladder<'_, '_>| {
        let points: Vec<Vec<Point>> = (0..view.names.len())
            .map(|subject| {
                let point = |row: &&Row<'_>| {
                    let depth = row.head.queue_depth;
                    let at = format!("queue depth {depth}");
                    let name = &view.names[subject];
                    Some(Point::new(
                        name,
                        row,
                        row.cells[subject]?,
                        f64::from(depth),
                        &at,
                    ))
                };
                ladder.rows.iter().filter_map(point).collect()
            })
            .collect();
        let mut traces = Vec::new();
        for (subject, points) in points.iter().enumerate() {
            curve(&mut traces, subject, &view.names[subject], points);
        }
        published_key(&mut traces, &points);
        let layout = layout()
            .x_axis(depth_axis(&ladder.rows))
            .y_axis(axis("iops, more is better").range_mode(RangeMode::ToZero));
        Figure {
            id: format!("depth-{}-{}", ladder.class, op_name(ladder.op)),
            title: format!(
                "{}: iops against queue depth",
                class_title(data, ladder.class)
            ),
            caption: caption(&points, view),
            height: 460,
            wide: true,
            plot: plot(traces, layout),
        }
    };
    ladders(view).into_iter().map(figure).collect()
}

/// Iops against the progress of a resync or recovery.
pub(super) fn iops_by_sync(view: &View<'_>) -> Option<Figure> {
    let rows = series(view);
    let points: Vec<Vec<Point>> = (0..view.names.len())
        .map(|subject| {
            let point = |row: &&Row<'_>| {
                let cell = row.cells[subject]?;
                let percent = progress_percent(cell.m)?;
                let at = format!("{percent:.0} % in sync");
                Some(Point::new(&view.names[subject], row, cell, percent, &at))
            };
            rows.iter().filter_map(point).collect()
        })
        .collect();
    if points.iter().all(Vec::is_empty) {
        return None;
    }
    let mut traces = Vec::new();
    for (subject, points) in points.iter().enumerate() {
        curve(&mut traces, subject, &view.names[subject], points);
    }
    published_key(&mut traces, &points);
    let layout = layout()
        .x_axis(axis("resync progress at the job's start, percent").range(vec![-2.0, 102.0]))
        .y_axis(axis("iops, more is better").range_mode(RangeMode::ToZero));
    Some(Figure {
        id: "sync".to_owned(),
        title: "Rates while the array resyncs".to_owned(),
        caption: caption(&points, view),
        height: 400,
        wide: true,
        plot: plot(traces, layout),
    })
}
