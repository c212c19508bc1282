//! Lying bars, each with its name: jobs that form no ladder, and the percentiles of their
//! latencies.
//!
//! Few subjects stand below each other within each job; many get a panel for each job,
//! with their names beside their bars. A bar is this run, its whisker what is known of its
//! error, and the tick across it the published figure.

use super::look::{INK, Look, MUTED, axis, folded, hover, lines_of, with};
use super::scale::Scale;
use super::{Figure, Key, Panel};
use crate::compute::headline::class_title;
use crate::compute::rate::Rate;
use crate::compute::shape::{self, Load, jobs, ladders, passages};
use crate::compute::sync;
use crate::compute::view::{Cell, Row, View};
use crate::data::RunData;
use crate::format::figure;
use raidlab_store::Operation;
use serde_json::{Value, json};

/// More subjects than this do not stand within each job.
const MOST_TOGETHER: usize = 6;

/// Pixels of a bar with its gap, of a line of its name, and of all around the bars.
const BAR: usize = 20;
const NAME_LINE: usize = 17;
const FRAME: usize = 44;

/// Characters of a name's line.
const NAME_WIDTH: usize = 18;

/// A panel of bars: which row's and subject's bar stands where.
struct Frame {
    title: String,
    /// What stands beside the bars: position and name.
    names: Vec<(f64, String)>,
    /// Row, column, position.
    bars: Vec<(usize, usize, f64)>,
    /// Of a bar, where names are 1 apart.
    thick: f64,
    height: usize,
}

/// The panels for rows of which some cells are to be drawn.
#[expect(clippy::cast_precision_loss, reason = "a few rows and subjects")]
fn frames(view: &View<'_>, rows: &[&Row<'_>], wanted: impl Fn(&Cell<'_>) -> bool) -> Vec<Frame> {
    let there = |row: &Row<'_>, column: usize| row.cells[column].as_ref().is_some_and(&wanted);
    let columns: Vec<usize> = (0..view.names.len())
        .filter(|&column| rows.iter().any(|row| there(row, column)))
        .collect();
    if columns.len() <= MOST_TOGETHER && rows.len() > 1 {
        let labels = labels(rows);
        let thick = 0.8 / columns.len().max(1) as f64;
        let middle = (columns.len() as f64 - 1.0) / 2.0;
        let mut bars = Vec::new();
        for (place, row) in rows.iter().enumerate() {
            for (order, &column) in columns.iter().enumerate() {
                if there(row, column) {
                    let at = place as f64 + (order as f64 - middle) * thick;
                    bars.push((place, column, at));
                }
            }
        }
        let tallest = labels.iter().map(|label| lines_of(label)).max();
        let row = (columns.len() * BAR * 5 / 4).max(tallest.unwrap_or(1) * NAME_LINE + 6);
        return vec![Frame {
            title: String::new(),
            names: (0..).map(f64::from).zip(labels).collect(),
            bars,
            thick,
            height: rows.len() * row + FRAME,
        }];
    }
    let frame = |(place, row): (usize, &&Row<'_>)| {
        let own: Vec<usize> = columns
            .iter()
            .copied()
            .filter(|&column| there(row, column))
            .collect();
        let names: Vec<String> = own
            .iter()
            .map(|&column| folded(&view.names[column], NAME_WIDTH))
            .collect();
        let tallest = names.iter().map(|name| lines_of(name)).max().unwrap_or(1);
        let positions = || (0..own.len()).map(|place| place as f64);
        Frame {
            title: row_title(row),
            bars: own
                .iter()
                .zip(positions())
                .map(|(&column, at)| (place, column, at))
                .collect(),
            names: positions().zip(names).collect(),
            thick: 0.76,
            height: own.len() * BAR.max(tallest * NAME_LINE) + FRAME,
        }
    };
    rows.iter().enumerate().map(frame).collect()
}

/// What a row's job does, with its operation where the job has several.
fn row_title(row: &Row<'_>) -> String {
    if row.job_ops > 1 {
        format!("{}: {}", row.head.job_title, row.head.op)
    } else {
        row.head.job_title.clone()
    }
}

impl Frame {
    fn name_axis(&self) -> Value {
        let (places, names): (Vec<f64>, Vec<&str>) = self
            .names
            .iter()
            .map(|(at, name)| (*at, name.as_str()))
            .unzip();
        #[expect(clippy::cast_precision_loss, reason = "a few names")]
        let end = self.names.len() as f64 - 0.5;
        let settings = json!({
            "tickvals": places, "ticktext": names, "range": [end, -0.5], "showgrid": false,
            "zeroline": false, "tickfont": {"color": INK},
        });
        with(axis(""), &settings)
    }

    fn legend(&self, view: &View<'_>, rows: &[&Row<'_>]) -> Vec<Key> {
        // Where names stand beside the bars, nobody has to look them up.
        if rows.len() < 2 || !self.title.is_empty() {
            return Vec::new();
        }
        let mut columns: Vec<usize> = self.bars.iter().map(|(_, column, _)| *column).collect();
        columns.sort_unstable();
        columns.dedup();
        let key = |column: usize| Key::new(&view.names[column], Look(column).chip());
        columns.into_iter().map(key).collect()
    }
}

/// Panels as a figure's, with values that `draw` gives as traces and as words beside
/// each bar.
fn panels(
    id: &str,
    frames: Vec<Frame>,
    draw: impl Fn(&Frame) -> Option<(Vec<Value>, Scale, Vec<(f64, String)>)>,
) -> (Vec<Panel>, bool) {
    let (mut panels, mut log) = (Vec::new(), false);
    for (number, frame) in frames.into_iter().enumerate() {
        let Some((traces, scale, words)) = draw(&frame) else {
            continue;
        };
        log |= scale.log;
        let longest = words.iter().map(|(_, text)| text.chars().count()).max();
        let labels = words.iter().map(|(at, text)| {
            json!({
                "text": text, "x": 1, "xref": "paper", "xanchor": "left", "xshift": 4, "y": at,
                "yref": "y", "yanchor": "middle", "showarrow": false,
                "font": {"size": 12, "color": MUTED},
            })
        });
        panels.push(Panel {
            id: format!("{id}-{number}"),
            height: frame.height,
            plot: json!({
                "data": traces,
                "layout": {
                    "barmode": "overlay", "xaxis": scale.axis("", 200.0),
                    "yaxis": frame.name_axis(), "annotations": labels.collect::<Vec<_>>(),
                    "margin": {"l": 30, "r": 10 + 8 * longest.unwrap_or(0), "t": 6, "b": 30},
                },
            }),
            title: if scale.log && !frame.title.is_empty() {
                format!("{} (log scale)", frame.title)
            } else {
                frame.title
            },
        });
    }
    (panels, log)
}

/// Every bar chart that the run has rows for: those that are in no other chart.
pub(super) fn all(data: &RunData, view: &View<'_>) -> Vec<Figure> {
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
        // Jobs that another chart has do not make one alone.
        if own.iter().all(|(_, drawn)| *drawn) {
            continue;
        }
        let own: Vec<&Row<'_>> = own.into_iter().map(|(row, _)| *row).collect();
        let title = rate_title(&own, bytes, wanted);
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
    all
}

/// The rows of no ladder and no series, each with whether another chart has it already.
fn rest<'v, 'a>(data: &RunData, view: &'v View<'a>) -> Vec<(&'v Row<'a>, bool)> {
    let mut taken: Vec<&Row<'_>> = sync::series(view);
    for ladder in ladders(view) {
        let jobs = ladder.steps.into_iter().map(|(_, job)| job);
        taken.extend(jobs.flat_map(|job| job.rows));
    }
    let (mut first, mut later) = (Vec::new(), Vec::new());
    for passage in passages(data, view) {
        for (place, (_, job)) in passage.jobs.into_iter().enumerate() {
            // The first is what other jobs of its kind are compared with, too.
            let rows = if place == 0 { &mut first } else { &mut later };
            rows.extend(job.rows);
        }
    }
    taken.extend(later);
    let within = |all: &[&Row<'_>], row: &Row<'_>| all.iter().any(|own| std::ptr::eq(*own, row));
    let rows = view.main_rows().filter(|row| !within(&taken, row));
    rows.map(|row| (row, within(&first, row))).collect()
}

/// Jobs that read and write at once, by their places in the suite.
fn mixed(view: &View<'_>) -> Vec<u32> {
    let jobs = jobs(view).into_iter();
    jobs.filter(|job| job.load == Load::Mixed)
        .map(|job| job.head().head.sequence)
        .collect()
}

fn rate_title(rows: &[&Row<'_>], bytes: bool, load: Load) -> String {
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
        [one] => row_title(one),
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
    if cells().any(|cell| !cell.m.published.is_empty()) {
        caption.push_str("Tick across a bar: published. ");
        legend.push(Key::explains("published", published_key()));
    }
    if cells().any(|cell| cell.band.0 < cell.band.1) {
        caption.push_str(&view.band_words("Whisker"));
        caption.push(' ');
    }
    if cells().any(|cell| cell.fatal) {
        caption.push_str("Pale: struck out by the audit. ");
    }
    if panels.len() > 1 {
        caption.push_str("Each panel has a scale of its own. ");
    }
    let unit = match rate {
        Rate::KibibytesPerSecond | Rate::MegabytesPerSecond => "MB/s (10⁶ bytes)",
        rate => rate.unit(),
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
        unit: format!("{unit}, more is better{scale}"),
        wide: panels.len() > 1,
        legend,
        panels,
    })
}

fn published_key() -> String {
    "<svg class=\"stroke\" viewBox=\"0 0 30 12\" aria-hidden=\"true\"><path class=\"open\" d=\"M15 1V11\"/></svg>".to_owned()
}

/// The bars of a frame, their scale, and their values in words.
fn rate_bars(
    view: &View<'_>,
    rows: &[&Row<'_>],
    frame: &Frame,
) -> Option<(Vec<Value>, Scale, Vec<(f64, String)>)> {
    let bytes = rows[0].rate.is_bytes();
    let bars: Vec<(f64, usize, &Row<'_>, shape::Figure<'_>)> = frame
        .bars
        .iter()
        .filter_map(|&(row, column, at)| {
            let row = rows[row];
            let own = shape::Figure::new(row, row.cells[column]?, bytes);
            Some((at, column, row, own))
        })
        .collect();
    let drawn = bars.iter().map(|(_, _, _, own)| own.value);
    let mut scale = Scale::of(drawn)?;
    for (_, _, _, own) in &bars {
        scale.high = scale.high.max(own.band.1);
        if let Some(value) = own.published {
            scale.high = scale.high.max(value);
            scale.low = if value > 0.0 {
                scale.low.min(value)
            } else {
                scale.low
            };
        }
    }
    let unit = if bytes { "MB/s" } else { rows[0].rate.unit() };
    let mut traces = Vec::new();
    let mut columns: Vec<usize> = bars.iter().map(|(_, column, _, _)| *column).collect();
    columns.sort_unstable();
    columns.dedup();
    for column in columns {
        let name = &view.names[column];
        let own = || bars.iter().filter(|(_, other, _, _)| *other == column);
        let look = Look(column);
        let text = |(_, _, row, own): &(f64, usize, &Row<'_>, shape::Figure<'_>)| {
            let mut text = format!("{}<br>{} {unit}", row_title(row), figure(own.value));
            if let Some(value) = own.published {
                text.push_str(&format!("<br>published {} {unit}", figure(value)));
            }
            hover(name, &row.label, &text)
        };
        let texts: Vec<String> = own().map(text).collect();
        let places: Vec<f64> = own().map(|(at, ..)| *at).collect();
        let colours = own().map(|(_, _, _, own)| look.tint(if own.struck { 0.22 } else { 0.85 }));
        let marker = with(look.bar(), &json!({"color": colours.collect::<Vec<_>>()}));
        let mut bar = json!({
            "type": "bar", "orientation": "h", "name": name, "meta": name, "y": places,
            "x": own().map(|(_, _, _, own)| own.value).collect::<Vec<_>>(),
            "width": frame.thick * 0.9, "marker": marker, "hovertemplate": texts,
        });
        if own().any(|(_, _, _, own)| own.band.0 < own.band.1) {
            let above = own().map(|(_, _, _, own)| own.band.1 - own.value);
            let below = own().map(|(_, _, _, own)| own.value - own.band.0);
            bar["error_x"] = json!({
                "type": "data", "symmetric": false, "color": MUTED, "thickness": 1.3, "width": 3,
                "array": above.collect::<Vec<_>>(), "arrayminus": below.collect::<Vec<_>>(),
            });
        }
        traces.push(bar);
        let published = own().filter_map(|(at, _, _, own)| Some((own.published?, *at)));
        let (x, y): (Vec<f64>, Vec<f64>) = published.unzip();
        if !x.is_empty() {
            traces.push(json!({
                "type": "scatter", "mode": "markers", "x": x, "y": y, "meta": name,
                "name": format!("{name}, published"), "hoverinfo": "skip",
                "marker": {"symbol": "line-ns", "size": 12, "line": {"width": 3, "color": INK}},
            }));
        }
    }
    let words = bars.iter().map(|(at, _, _, own)| (*at, figure(own.value)));
    Some((traces, scale, words.collect()))
}

/// From the median to the 99th percentile of each job's latencies, with the 90th and
/// the 99.9th marked; jobs of ladders have theirs along it.
pub(super) fn percentiles(data: &RunData, view: &View<'_>) -> Vec<Figure> {
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
        caption: "So many percent of the requests were faster. The number is the median."
            .to_owned(),
        unit: "latency, ms, less is better, log scale".to_owned(),
        wide: panels.len() > 1,
        legend,
        panels,
    }]
}

fn latency_bars(
    view: &View<'_>,
    rows: &[&Row<'_>],
    frame: &Frame,
) -> Option<(Vec<Value>, Scale, Vec<(f64, String)>)> {
    let bars: Vec<(f64, usize, &Row<'_>, [f64; 4], bool)> = frame
        .bars
        .iter()
        .filter_map(|&(row, column, at)| {
            let cell = rows[row].cells[column]?;
            let ms = crate::format::percentiles_ms(&cell.m.latency);
            Some((at, column, rows[row], ms, cell.fatal))
        })
        .collect();
    let values = bars.iter().flat_map(|(_, _, _, ms, _)| *ms);
    let scale = Scale::of_ratios(values)?;
    let mut traces = Vec::new();
    for (at, column, row, ms, struck) in &bars {
        let (name, look) = (&view.names[*column], Look(*column));
        let text = format!(
            "median {} ms, 90 % {}, 99 % {}, 99.9 % {}",
            figure(ms[0]),
            figure(ms[1]),
            figure(ms[2]),
            figure(ms[3])
        );
        let marker = json!({"color": look.tint(if *struck { 0.22 } else { 0.85 })});
        traces.push(json!({
            "type": "bar", "orientation": "h", "name": name, "meta": name, "y": [at],
            "base": [ms[0]], "x": [(ms[2] - ms[0]).max(ms[0] * 0.02)],
            "width": frame.thick * 0.7, "marker": with(look.bar(), &marker),
            "hovertemplate": [hover(name, &row.label, &text)],
        }));
        for (value, symbol, size) in [(ms[1], "line-ns", 10), (ms[3], "circle-open", 7)] {
            let line = json!({"width": 2, "color": INK});
            traces.push(json!({
                "type": "scatter", "mode": "markers", "x": [value], "y": [at], "meta": name,
                "name": format!("{name}, a percentile"), "hoverinfo": "skip",
                "marker": {"symbol": symbol, "size": size, "color": INK, "line": line},
            }));
        }
    }
    let words = bars.iter().map(|(at, _, _, ms, _)| (*at, figure(ms[0])));
    Some((traces, scale, words.collect()))
}

/// Names for the rows: the job, and below it what sets its title apart from
/// the others'.
fn labels(rows: &[&Row<'_>]) -> Vec<String> {
    let titles: Vec<Vec<&str>> = rows
        .iter()
        .map(|row| row.head.job_title.split(' ').collect())
        .collect();
    let shortest = titles.iter().map(Vec::len).min().unwrap_or(0);
    let same = |position: &usize| {
        titles
            .iter()
            .all(|title| title[*position] == titles[0][*position])
    };
    let common = (0..shortest).take_while(same).count();
    rows.iter()
        .zip(&titles)
        .map(|(row, title)| {
            let mut label = folded(&row.label, NAME_WIDTH);
            let apart = title[common..].join(" ");
            // A title as long as a sentence is in the table.
            if !apart.is_empty() && apart.chars().count() <= 2 * NAME_WIDTH {
                label.push_str("<br>");
                label.push_str(&folded(&apart, NAME_WIDTH));
            }
            label
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::labels;
    use crate::compute::view::View;
    use crate::sample;

    #[test]
    fn labels_say_what_differs() {
        let mut measurements = [sample::cell("md", 0), sample::cell("md", 1)];
        measurements[0].job_title = "sequential write 128 KiB, first third".to_owned();
        measurements[1].job_title = "sequential write 128 KiB, last third".to_owned();
        let view = View::of_rows(&measurements);
        let rows: Vec<_> = view.rows.iter().collect();
        assert_eq!(labels(&rows), ["1<br>first third", "2<br>last third"]);
        assert_eq!(labels(&rows[..1]), ["1"]);
    }
}
