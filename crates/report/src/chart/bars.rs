//! Bars beside each other: streams, thirds of the disk, before and after
//! filling, the two halves of a mixed job.
//!
//! A bar is our figure, its whisker the band between the fits, and the tick
//! across it the published figure.

use super::Figure;
use super::blocks;
use super::look::{INK, MUTED, axis, colour, hover, layout, log_axis, plot, tint};
use crate::compute::headline::class_title;
use crate::compute::rate::Rate;
use crate::compute::view::{Row, View};
use crate::data::RunData;
use crate::format::figure;
use plotly::common::{ErrorData, ErrorType, HoverInfo, Line, Marker, MarkerSymbol, Mode};
use plotly::layout::{Axis, BarMode, RangeMode};
use plotly::{Bar, Scatter, Trace};
use raidlab_store::Operation;
use serde_json::{Value, json};

/// From this ratio between the highest and the lowest bar on, the scale is
/// logarithmic: below a fiftieth of the height a bar cannot be read.
const LOG_RATIO: f64 = 50.0;

/// Every bar chart that the run has rows for. Ladders of block sizes have
/// curves of their own.
pub(super) fn all(data: &RunData, view: &View<'_>) -> Vec<Figure> {
    let ladders = blocks::ladders(view);
    let in_ladder = |row: &&Row<'_>| {
        let mut all = ladders.iter().flat_map(|ladder| &ladder.rows);
        all.any(|own| std::ptr::eq(*own, *row))
    };
    let rows = || {
        view.main_rows()
            .filter(|row| !row.has_sync() && !in_ladder(row))
    };
    // A job of reads or writes, or of both at once; other tools do more.
    let plain = |row: &&Row<'_>| {
        row.job_ops <= 2 && matches!(row.head.op, Operation::Read | Operation::Write)
    };
    let large = |row: &&Row<'_>| row.rate.is_bytes();
    let mixed = |row: &&Row<'_>| row.job_ops == 2;
    let op = |wanted| move |row: &&Row<'_>| row.head.op == wanted;
    let reads: Vec<&Row<'_>> = rows()
        .filter(plain)
        .filter(large)
        .filter(op(Operation::Read))
        .collect();
    let writes: Vec<&Row<'_>> = rows()
        .filter(plain)
        .filter(large)
        .filter(op(Operation::Write))
        .collect();
    let streams = differ(&reads, |row| u64::from(row.head.streams));
    let places = writes.len() > 1
        && !differ(&writes, |row| u64::from(row.head.streams))
        && !differ(&writes, |row| row.head.block_size_bytes)
        && writes
            .iter()
            .all(|row| row.head.class == writes[0].head.class);
    let small = |wanted| {
        rows()
            .filter(plain)
            .filter(move |row| !large(row) && !mixed(row))
            .filter(op(wanted))
    };
    let groups = [
        (
            "streams",
            if streams {
                "Sequential reads by number of streams"
            } else {
                "Reads of large blocks"
            },
            reads,
        ),
        (
            "sequential-write",
            if places {
                "Sequential writes by place on the disk"
            } else {
                "Writes of large blocks"
            },
            writes,
        ),
        (
            "random-write",
            "Random writes",
            small(Operation::Write).collect(),
        ),
        (
            "mixed",
            "Mixed reads and writes",
            rows()
                .filter(plain)
                .filter(|row| !large(row) && mixed(row))
                .collect(),
        ),
    ];
    let mut all: Vec<Figure> = groups
        .into_iter()
        .filter_map(|(id, title, rows): (_, _, Vec<&Row<'_>>)| bars(view, id, title, &rows))
        .collect();
    for (number, class) in view.classes().into_iter().enumerate() {
        for (kind, bytes, what) in [("bytes", true, "throughput"), ("rate", false, "operations")] {
            let own = |row: &&Row<'_>| {
                row.head.class == class && !plain(row) && row.rate.is_bytes() == bytes
            };
            let rows: Vec<&Row<'_>> = rows().filter(own).collect();
            let title = format!("{}: {what}", class_title(data, class));
            all.extend(bars(view, &format!("{kind}-{number}"), &title, &rows));
        }
    }
    all
}

fn differ(rows: &[&Row<'_>], what: impl Fn(&Row<'_>) -> u64) -> bool {
    rows.iter().any(|row| what(row) != what(rows[0]))
}

fn bars(view: &View<'_>, id: &str, title: &str, rows: &[&Row<'_>]) -> Option<Figure> {
    let rate = rows.first()?.rate;
    let labels = labels(rows);
    let mut traces: Vec<Box<dyn Trace>> = Vec::new();
    let mut values = Vec::new();
    for (subject, name) in view.names.iter().enumerate() {
        let own = Series::new(rows, &labels, subject, name, rate);
        values.extend(
            own.ours
                .iter()
                .chain(own.published.iter().flatten())
                .copied(),
        );
        own.draw(&mut traces, subject, name, view.names.len());
    }
    if values.is_empty() {
        return None;
    }
    let has_published = rows.iter().any(|row| {
        row.cells
            .iter()
            .flatten()
            .any(|cell| !cell.m.published.is_empty())
    });
    let mut caption = "Bars: this run.".to_owned();
    if has_published {
        caption.push_str(" Tick across a bar: published.");
        traces.push(published_key(&labels));
    }
    let banded = |row: &&Row<'_>| {
        let mut cells = row.cells.iter().flatten();
        cells.any(|cell| cell.band.0 < cell.band.1)
    };
    if rows.iter().any(banded) {
        caption.push(' ');
        caption.push_str(&view.band_words("Whisker"));
    }
    let struck = |row: &&Row<'_>| row.cells.iter().flatten().any(|cell| cell.fatal);
    if rows.iter().any(struck) {
        caption.push_str(" Pale: struck out by the audit.");
    }
    let layout = layout()
        .bar_mode(BarMode::Group)
        .bar_gap(0.25)
        .bar_group_gap(0.08)
        .x_axis(axis("").show_grid(false))
        .y_axis(value_axis(rate, &values));
    Some(Figure {
        id: format!("bars-{id}"),
        title: title.to_owned(),
        caption,
        height: 380,
        wide: false,
        plot: grouped(plot(traces, layout)),
    })
}

fn value_axis(rate: Rate, values: &[f64]) -> Axis {
    let unit = match rate {
        Rate::KibibytesPerSecond | Rate::MegabytesPerSecond => "MB/s (10⁶ bytes)",
        rate => rate.unit(),
    };
    let high = values.iter().copied().fold(0.0, f64::max);
    let low = values.iter().copied().fold(high, f64::min);
    if high > low * LOG_RATIO {
        log_axis(&format!("{unit} (log scale), more is better"))
    } else {
        axis(&format!("{unit}, more is better")).range_mode(RangeMode::ToZero)
    }
}

/// One subject's bars.
struct Series {
    labels: Vec<String>,
    ours: Vec<f64>,
    above: Vec<f64>,
    below: Vec<f64>,
    published: Vec<Option<f64>>,
    texts: Vec<String>,
    struck: Vec<bool>,
}

impl Series {
    fn new(rows: &[&Row<'_>], labels: &[String], subject: usize, name: &str, rate: Rate) -> Self {
        let mut own = Self {
            labels: Vec::new(),
            ours: Vec::new(),
            above: Vec::new(),
            below: Vec::new(),
            published: Vec::new(),
            texts: Vec::new(),
            struck: Vec::new(),
        };
        for (row, label) in rows.iter().zip(labels) {
            let Some(cell) = row.cells[subject] else {
                continue;
            };
            let ours = rate.in_megabytes(cell.value);
            let published = rate.published(cell.m);
            let published = published.map(|value| rate.in_megabytes(value));
            let unit = if rate.is_bytes() {
                Rate::MegabytesPerSecond.unit()
            } else {
                rate.unit()
            };
            let mut text = format!("{}<br>{} {unit}", row.head.job_title, figure(ours));
            if let Some(value) = published {
                text.push_str(&format!("<br>published {} {unit}", figure(value)));
            }
            own.labels.push(label.clone());
            own.above.push(rate.in_megabytes(cell.band.1) - ours);
            own.below.push(ours - rate.in_megabytes(cell.band.0));
            own.struck.push(cell.fatal);
            own.ours.push(ours);
            own.published.push(published);
            own.texts.push(hover(name, &row.label, &text));
        }
        own
    }

    fn draw(self, traces: &mut Vec<Box<dyn Trace>>, subject: usize, name: &str, subjects: usize) {
        let banded = self.above.iter().chain(&self.below).any(|size| *size > 0.0);
        let mut bar = Bar::new(self.labels.clone(), self.ours)
            .name(name)
            .marker(if self.struck.contains(&true) {
                let opacity = |struck: &bool| if *struck { 0.22 } else { 0.85 };
                let tints = self
                    .struck
                    .iter()
                    .map(|struck| tint(subject, opacity(struck)));
                Marker::new().color_array(tints.collect())
            } else {
                Marker::new()
                    .color(tint(subject, 0.85))
                    .line(Line::new().width(0.0))
            })
            .hover_template_array(self.texts.clone())
            .legend_group(name)
            .offset_group(name);
        if banded {
            bar = bar.error_y(
                ErrorData::new(ErrorType::Data)
                    .symmetric(false)
                    .array(self.above)
                    .array_minus(self.below)
                    .color(MUTED)
                    .thickness(1.0)
                    .width(3),
            );
        }
        traces.push(bar);
        if self.published.iter().any(Option::is_some) {
            traces.push(
                Scatter::new(self.labels, self.published)
                    .mode(Mode::Markers)
                    .marker(tick(subjects).color(colour(subject)))
                    .hover_template_array(self.texts)
                    .legend_group(name)
                    .show_legend(false),
            );
        }
    }
}

/// The tick across a bar that marks a published figure; the more bars beside
/// each other, the shorter.
fn tick(subjects: usize) -> Marker {
    Marker::new()
        .symbol(MarkerSymbol::LineEW)
        .size((64 / subjects.max(1)).clamp(6, 16))
        .line(Line::new().width(3.0).color(INK))
}

fn published_key(labels: &[String]) -> Box<dyn Trace> {
    Scatter::new(vec![labels[0].clone()], vec![None::<f64>])
        .mode(Mode::Markers)
        .name("published")
        .marker(tick(4).color(INK))
        .hover_info(HoverInfo::Skip)
}

/// Puts published ticks into the bars' groups, which the crate has no setters
/// for: `scattermode` of the layout and `offsetgroup` of a scatter trace.
fn grouped(mut plot: Value) -> Value {
    plot["layout"]["scattermode"] = json!("group");
    if let Some(traces) = plot["data"].as_array_mut() {
        for trace in traces {
            if trace["type"] == "scatter" && !trace["legendgroup"].is_null() {
                trace["offsetgroup"] = trace["legendgroup"].clone();
            }
        }
    }
    plot
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
        .map(|(row, title)| format!("job {}<br>{}", row.label, title[common..].join(" ")))
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
        assert_eq!(
            labels(&rows),
            ["job 1<br>first third", "job 2<br>last third"]
        );
        assert_eq!(labels(&rows[..1]), ["job 1<br>"]);
    }
}
