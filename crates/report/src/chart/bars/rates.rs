//! Rates of jobs that form no ladder.

use super::super::look::{INK, Look, MUTED, hover, with};
use super::super::scale::Scale;
use super::super::{Figure, Key};
use super::{Drawn, Frame, frames, panels, rest, row_title};
use crate::compute::headline::class_title;
use crate::compute::rate::Rate;
use crate::compute::shape::{self, Load, jobs};
use crate::compute::standing::Better;
use crate::compute::view::{Row, View, band_words};
use crate::data::RunData;
use crate::format::figure;
use raidlab_store::Operation;
use serde_json::json;

/// All bar charts of the run, for the rows that are in no other chart.
pub(in crate::chart) fn all(data: &RunData, view: &View<'_>) -> Vec<Figure> {
    let rows = rest(data, view);
    let plain = |row: &Row<'_>| {
        row.job_ops <= 2 && matches!(row.head.op, Operation::Read | Operation::Write)
    };
    let together = mixed(view);
    let load = |row: &Row<'_>| {
        if together.contains(&row.head.sequence) {
            Load::Mixed
        } else if row.head.op == Operation::Read {
            Load::Read
        } else {
            Load::Write
        }
    };
    let mut all = Vec::new();
    for (place, (bytes, wanted)) in [
        (true, Load::Read),
        (true, Load::Write),
        (false, Load::Read),
        (false, Load::Write),
        (true, Load::Mixed),
        (false, Load::Mixed),
    ]
    .into_iter()
    .enumerate()
    {
        let own = |(row, _): &&(&Row<'_>, bool)| {
            plain(row) && row.rate.is_bytes() == bytes && load(row) == wanted
        };
        let own: Vec<&(&Row<'_>, bool)> = rows.iter().filter(own).collect();
        // A chart is not made of jobs alone that another chart has.
        if own.iter().all(|(_, drawn)| *drawn) {
            continue;
        }
        let own: Vec<&Row<'_>> = own.into_iter().map(|(row, _)| *row).collect();
        let title = rate_title(view, &own, bytes, wanted);
        all.extend(rates(view, &format!("bars-{place}"), &title, &own));
    }
    for (number, class) in view.classes().into_iter().enumerate() {
        for (kind, bytes, what) in [("bytes", true, "throughput"), ("rate", false, "operations")] {
            let own = |(row, _): &&(&Row<'_>, bool)| {
                row.head.class == class && !plain(row) && row.rate.is_bytes() == bytes
            };
            let own: Vec<&Row<'_>> = rows.iter().filter(own).map(|(row, _)| *row).collect();
            let title = format!("{}: {what}", class_title(data, class));
            all.extend(rates(view, &format!("bars-{kind}-{number}"), &title, &own));
        }
    }
    all.extend(background(view));
    all
}

/// The charts of the durations of rebuilds and checks, and of the rates that jobs kept meanwhile.
fn background(view: &View<'_>) -> Vec<Figure> {
    let figures = [
        (
            "bars-background-time",
            "How long rebuilds took",
            Rate::Seconds,
        ),
        (
            "bars-background-rate",
            "Rates of rebuilds, bytes of each member",
            Rate::MegabytesPerSecond,
        ),
        (
            "bars-background-kept",
            "What jobs kept of their rate during a sync",
            Rate::Percent,
        ),
    ];
    let figure = |(id, title, rate)| {
        let own = view.background.iter().filter(|row| row.rate == rate);
        rates(view, id, title, &own.collect::<Vec<_>>())
    };
    figures.into_iter().filter_map(figure).collect()
}

/// Jobs that read and write at once, by their positions in the suite.
fn mixed(view: &View<'_>) -> Vec<u32> {
    let jobs = jobs(view).into_iter();
    jobs.filter(|job| job.load == Load::Mixed)
        .map(|job| job.head().head.sequence)
        .collect()
}

fn rate_title(view: &View<'_>, rows: &[&Row<'_>], bytes: bool, load: Load) -> String {
    let streams = rows
        .iter()
        .any(|row| row.head.streams != rows[0].head.streams);
    let (what, size) = match (load, bytes) {
        (Load::Mixed, _) => ("Mixed reads and writes", ""),
        (Load::Read, true) => ("Reads", " of large blocks"),
        (Load::Write, true) => ("Writes", " of large blocks"),
        (Load::Read, false) => ("Reads", " of small blocks"),
        (Load::Write, false) => ("Writes", " of small blocks"),
    };
    match rows {
        [one] => row_title(view, one),
        _ if streams && bytes => format!("{what} by number of streams"),
        _ => format!("{what}{size}"),
    }
}

fn rates(view: &View<'_>, id: &str, title: &str, rows: &[&Row<'_>]) -> Option<Figure> {
    let rate = rows.first()?.rate;
    let frames = frames(view, rows, |_| true);
    let mut legend = frames
        .first()
        .map_or_else(Vec::new, |frame| frame.legend(view, rows));
    let alone = frames.len() == 1;
    let (mut panels, log) = panels(id, frames, |frame| rate_bars(view, rows, frame));
    if alone && let [panel] = panels.as_mut_slice() {
        panel.title.clear();
    }
    let cells = || rows.iter().flat_map(|row| row.cells.iter().flatten());
    let mut caption = String::new();
    if !view.compared().is_empty() && cells().any(|cell| !cell.m.published.is_empty()) {
        caption.push_str("A tick across a bar is a published figure. ");
        legend.push(Key::explains("published", published_key()));
    }
    if cells().any(|cell| cell.band.0 < cell.band.1) {
        caption.push_str(&band_words("Whisker", cells().copied()));
        caption.push(' ');
    }
    if cells().any(|cell| cell.fatal) {
        caption.push_str(
            "Pale bars were struck out by the audit; at the edge, they are as long as the number \
             beside them says. ",
        );
    }
    if cells().any(|cell| cell.at_least) {
        caption.push_str("A pale bar is a time that had not ended when the run did. ");
    }
    if panels.len() > 1 {
        caption.push_str("Each panel has a scale of its own. ");
    }
    let unit = match rate {
        Rate::KibibytesPerSecond | Rate::MegabytesPerSecond => "MB/s (10⁶ bytes)",
        Rate::Percent => "% of the rate without a sync",
        rate => rate.unit(),
    };
    let better = match rate.better() {
        Better::More => "more is better",
        Better::Less => "less is better",
    };
    let scale = if log && panels.len() == 1 {
        ", log scale"
    } else {
        ""
    };
    (!panels.is_empty()).then(|| Figure {
        id: id.to_owned(),
        title: title.to_owned(),
        caption: caption.trim_end().to_owned(),
        unit: format!("{unit}, {better}{scale}"),
        wide: panels.len() > 1,
        legend,
        panels,
        ..Figure::default()
    })
}

fn published_key() -> String {
    "<svg class=\"stroke\" viewBox=\"0 0 30 12\" aria-hidden=\"true\"><path class=\"open\" d=\"M15 1V11\"/></svg>".to_owned()
}

/// A bar of a frame.
struct Bar<'a> {
    /// The bar's position across the bars' direction.
    at: f64,
    column: usize,
    row: &'a Row<'a>,
    own: shape::Figure<'a>,
}

/// The scale with room for bars, whiskers and published figures. Figures that were struck out do
/// not squeeze the rest.
fn scale_of(bars: &[Bar<'_>]) -> Option<Scale> {
    let all = bars.iter().all(|bar| bar.own.struck);
    let counts = |bar: &&Bar<'_>| all || !bar.own.struck;
    let values = bars.iter().filter(counts).map(|bar| bar.own.value);
    let mut scale = Scale::of(values)?;
    for bar in bars {
        let own = &bar.own;
        if counts(&bar) {
            scale.high = scale.high.max(own.band.1);
            // A logarithmic scale does not reach zero.
            if own.band.0 > 0.0 {
                scale.low = scale.low.min(own.band.0);
            }
        }
        if let Some(value) = own.published {
            scale.high = scale.high.max(value);
            scale.low = if value > 0.0 {
                scale.low.min(value)
            } else {
                scale.low
            };
        }
    }
    Some(scale)
}

/// The bars of a frame; `bytes`: as bytes per second.
fn bars_of<'a>(view: &View<'a>, rows: &[&'a Row<'a>], frame: &Frame, bytes: bool) -> Vec<Bar<'a>> {
    let bar = |&(row, column, at): &(usize, usize, f64)| {
        let row = rows[row];
        let mut own = shape::Figure::told(row, row.cells[column]?, bytes)?;
        // An import is not compared with the same published figures.
        own.published = own.published.filter(|_| !view.compared().is_empty());
        Some(Bar {
            at,
            column,
            row,
            own,
        })
    };
    frame.bars.iter().filter_map(bar).collect()
}

/// The bars of a frame, their scale, and their values in words.
fn rate_bars(view: &View<'_>, rows: &[&Row<'_>], frame: &Frame) -> Option<Drawn> {
    let bytes = rows[0].rate.is_bytes();
    let bars = bars_of(view, rows, frame, bytes);
    let scale = scale_of(&bars)?;
    let end = |bar: &Bar<'_>, value: f64| match bar.own.struck {
        true => scale.within(value),
        false => value,
    };
    let unit = if bytes { "MB/s" } else { rows[0].rate.unit() };
    let mut traces = Vec::new();
    let mut columns: Vec<usize> = bars.iter().map(|bar| bar.column).collect();
    columns.sort_unstable();
    columns.dedup();
    for column in columns {
        let name = &view.names[column];
        let own = || bars.iter().filter(|bar| bar.column == column);
        let look = Look(column);
        let text = |Bar { row, own, .. }: &Bar<'_>| {
            let mut text = format!("{}<br>{} {unit}", row_title(view, row), figure(own.value));
            if let Some(value) = own.published {
                text.push_str(&format!("<br>published {} {unit}", figure(value)));
            }
            hover(name, &row.label, &text)
        };
        let texts: Vec<String> = own().map(text).collect();
        let places: Vec<f64> = own().map(|bar| bar.at).collect();
        let colours = own().map(|bar| look.tint(if bar.own.struck { 0.22 } else { 0.85 }));
        let marker = with(look.bar(), &json!({"color": colours.collect::<Vec<_>>()}));
        let mut bar = json!({
            "type": "bar", "orientation": "h", "name": name, "meta": name, "y": places,
            "x": own().map(|bar| end(bar, bar.own.value)).collect::<Vec<_>>(),
            "width": frame.thick * 0.9, "marker": marker, "hovertemplate": texts,
        });
        if own().any(|bar| bar.own.band.0 < bar.own.band.1) {
            let apart = |bar, high, low| end(bar, high) - end(bar, low);
            let above = own().map(|bar| apart(bar, bar.own.band.1, bar.own.value));
            let below = own().map(|bar| apart(bar, bar.own.value, bar.own.band.0));
            bar["error_x"] = json!({
                "type": "data", "symmetric": false, "color": MUTED, "thickness": 1.3, "width": 3,
                "array": above.collect::<Vec<_>>(), "arrayminus": below.collect::<Vec<_>>(),
            });
        }
        traces.push(bar);
        let published = own().filter_map(|bar| Some((bar.own.published?, bar.at)));
        let (x, y): (Vec<f64>, Vec<f64>) = published.unzip();
        if !x.is_empty() {
            traces.push(json!({
                "type": "scatter", "mode": "markers", "x": x, "y": y, "meta": name,
                "name": format!("{name}, published"), "hoverinfo": "skip",
                "marker": {"symbol": "line-ns", "size": 12, "line": {"width": 3, "color": INK}},
            }));
        }
    }
    let words = bars.iter().map(|bar| (bar.at, figure(bar.own.value)));
    Some(Drawn {
        traces,
        scale,
        words: words.collect(),
    })
}
