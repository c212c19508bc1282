//! Percentiles of the latencies of jobs that form no ladder.

use super::super::look::{INK, Look, hover, with};
use super::super::scale::Scale;
use super::super::{Figure, Key};
use super::{Drawn, Frame, frames, panels, rest};
use crate::compute::view::{Cell, Row, View};
use crate::data::RunData;
use crate::format::{figure, percentiles_ms};
use serde_json::json;

/// The charts of each job's latencies from the median to the 99th percentile, with the 90th and the
/// 99.9th marked; jobs of ladders have theirs in charts along the ladder.
pub(in crate::chart) fn percentiles(data: &RunData, view: &View<'_>) -> Vec<Figure> {
    let recorded = |cell: &Cell<'_>| cell.m.latency.is_recorded() && cell.m.latency.p50_ns > 0;
    let rows: Vec<&Row<'_>> = rest(data, view)
        .into_iter()
        .map(|(row, _)| row)
        .filter(|row| row.cells.iter().flatten().any(recorded))
        .collect();
    let frames = frames(view, &rows, recorded);
    let mut legend = frames
        .first()
        .map_or_else(Vec::new, |frame| frame.legend(view, &rows));
    let (panels, _) = panels("percentiles", frames, |frame| {
        latency_bars(view, &rows, frame)
    });
    if panels.is_empty() {
        return Vec::new();
    }
    for (name, mark) in [
        (
            "median to 99 %",
            "<path class=\"range\" d=\"M2 3H28V9H2z\"/>",
        ),
        ("90 %", "<path class=\"open\" d=\"M15 1V11\"/>"),
        (
            "99.9 %",
            "<circle class=\"open\" cx=\"15\" cy=\"6\" r=\"4\"/>",
        ),
    ] {
        let swatch = format!(
            "<svg class=\"stroke\" viewBox=\"0 0 30 12\" aria-hidden=\"true\">{mark}</svg>"
        );
        legend.push(Key::explains(name, swatch));
    }
    vec![Figure {
        id: "percentiles".to_owned(),
        title: "Latencies of jobs that stand alone".to_owned(),
        caption: "The marks say how many percent of the requests were faster. The number beside \
                  a bar is its median."
            .to_owned(),
        unit: "latency, ms, less is better, log scale".to_owned(),
        wide: panels.len() > 1,
        legend,
        panels,
        ..Figure::default()
    }]
}

fn latency_bars(view: &View<'_>, rows: &[&Row<'_>], frame: &Frame) -> Option<Drawn> {
    let bars: Vec<(f64, usize, &Row<'_>, [f64; 4], bool)> = frame
        .bars
        .iter()
        .filter_map(|&(row, column, at)| {
            let cell = rows[row].cells[column]?;
            let ms = percentiles_ms(&cell.m.latency);
            Some((at, column, rows[row], ms, cell.fatal))
        })
        .collect();
    // Figures that were struck out do not squeeze the rest.
    let all = bars.iter().all(|(.., struck)| *struck);
    let counted = bars.iter().filter(|(.., struck)| all || !struck);
    let scale = Scale::of_ratios(counted.flat_map(|(_, _, _, ms, _)| *ms))?;
    let mut traces = Vec::new();
    for (at, column, row, ms, struck) in &bars {
        let (name, look) = (&view.names[*column], Look(*column));
        let told = |ms: f64| if ms > 0.0 { figure(ms) } else { "-".to_owned() };
        let [median, most, nearly_all, slow] = ms.map(told);
        let text = format!("median {median} ms, 90 % {most}, 99 % {nearly_all}, 99.9 % {slow}");
        let marker = json!({"color": look.tint(if *struck { 0.22 } else { 0.85 })});
        let ms = ms.map(|ms| match *struck && ms > 0.0 {
            true => scale.within(ms),
            false => ms,
        });
        traces.push(json!({
            "type": "bar", "orientation": "h", "name": name, "meta": name, "y": [at],
            "base": [ms[0]], "x": [(ms[2] - ms[0]).max(ms[0] * 0.02)],
            "width": frame.thick * 0.7, "marker": with(look.bar(), &marker),
            "hovertemplate": [hover(name, &row.label, &text)],
        }));
        // A tool may report only some of the percentiles.
        let marks = [(ms[1], "line-ns", 10), (ms[3], "circle-open", 7)];
        for (value, symbol, size) in marks.into_iter().filter(|mark| mark.0 > 0.0) {
            let line = json!({"width": 2, "color": INK});
            traces.push(json!({
                "type": "scatter", "mode": "markers", "x": [value], "y": [at], "meta": name,
                "name": format!("{name}, a percentile"), "hoverinfo": "skip",
                "marker": {"symbol": symbol, "size": size, "color": INK, "line": line},
            }));
        }
    }
    let words = bars.iter().map(|(at, _, _, ms, _)| (*at, figure(ms[0])));
    Some(Drawn {
        traces,
        scale,
        words: words.collect(),
    })
}
