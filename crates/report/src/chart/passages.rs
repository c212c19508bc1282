//! Charts around events: one load before, between and after them; and rates along the progress
//! of a resync.

use super::Figure;
use super::ladders::{rate_point, unit_words};
use super::lines::{Along, Group, Lines, Point, Values, lines_of};
use super::look::{axis, folded, hover, with};
use crate::compute::headline::class_title;
use crate::compute::shape::{self, Passage, passages, size_words};
use crate::compute::sync::{progress_percent, series_by_class};
use crate::compute::view::{Row, View};
use crate::data::RunData;
use crate::format::figure;
use serde_json::json;

/// A figure for each load that met the array in several states.
pub(super) fn around_events(data: &RunData, view: &View<'_>) -> Vec<Figure> {
    let all = passages(data, view).into_iter().enumerate();
    all.flat_map(|(number, passage)| passage_figures(view, &passage, number))
        .collect()
}

fn passage_figures(view: &View<'_>, passage: &Passage<'_, '_>, number: usize) -> Vec<Figure> {
    let head = passage.jobs[0].1.head();
    let megabytes = head.rate.is_bytes();
    let unit = if megabytes { "MB/s" } else { "iops" };
    let lines = lines_of(view, |column, name| {
        let points = passage.jobs.iter().enumerate();
        let points = points.filter_map(|(place, (state, job))| {
            let own = job.figure(column, megabytes)?;
            let at = format!("{} ({})", job.head().head.job_title, state.name());
            Some(rate_point(name, job, &own, place as f64, &at, unit))
        });
        points.collect()
    });
    let jobs = passage.jobs.iter();
    let labels = jobs.map(|(state, job)| {
        let name = folded(&job.head().head.job, 12);
        format!("{name}<br>({})", state.name())
    });
    let places: Vec<usize> = (0..passage.jobs.len()).collect();
    let x_axis = with(
        axis(""),
        &json!({
            "tickvals": places, "ticktext": labels.collect::<Vec<_>>(), "zeroline": false,
            "range": [-0.5, passage.jobs.len() as f64 - 0.5], "showgrid": false,
        }),
    );
    let marks = passage.marks.iter();
    let streams = head.head.streams;
    let streams = if streams > 1 {
        format!(", {streams} streams")
    } else {
        String::new()
    };
    Lines {
        id: format!("events-{number}"),
        title: format!(
            "Around events: {} of {}, queue depth {}{streams}",
            passage.jobs[0].1.load.name(),
            size_words(head.head.block_size_bytes as f64),
            head.head.queue_depth
        ),
        unit: unit_words(megabytes).to_owned(),
        along: Along::Axis(x_axis),
        groups: vec![Group {
            title: String::new(),
            lines,
        }],
        values: Values::Rates,
        band_words: view.band_words("Shaded"),
        caption: "The same load in the suite's order, with the state in which it met the arrays. \
                  Upright lines: what happened in between."
            .to_owned(),
        marks: marks
            .map(|(before, text)| (*before as f64 - 0.5, text.clone()))
            .collect(),
    }
    .figures()
}

/// Rates against the progress of a resync or recovery, for each class that has a series of them:
/// jobs of two classes do not belong on one line.
pub(super) fn along_sync(data: &RunData, view: &View<'_>) -> Vec<Figure> {
    let all = series_by_class(view);
    let several = all.len() > 1;
    let figures = all.into_iter().enumerate().flat_map(|(number, rows)| {
        let title = "Rates during a sync";
        let (id, title) = if several {
            let class = class_title(data, &rows[0].head.class);
            (format!("sync-of-{number}"), format!("{title}: {class}"))
        } else {
            ("sync".to_owned(), title.to_owned())
        };
        series_figures(view, &rows, id, title)
    });
    figures.collect()
}

fn series_figures(view: &View<'_>, rows: &[&Row<'_>], id: String, title: String) -> Vec<Figure> {
    let megabytes = rows[0].rate.is_bytes();
    let unit = if megabytes { "MB/s" } else { "iops" };
    let lines = lines_of(view, |column, name| {
        let point = |row: &&Row<'_>| {
            let cell = row.cells[column]?;
            let percent = progress_percent(cell.m)?;
            let own = shape::Figure::told(row, cell, megabytes)?;
            let first = cell.m.published.first();
            let text = format!(
                "{} % in sync: {} {unit}",
                figure(percent),
                figure(own.value)
            );
            Some(Point {
                x: percent,
                y: own.value,
                band: own.band,
                published: first
                    .zip(own.published)
                    .map(|(figure, value)| (figure.sync_percent.unwrap_or(percent), value)),
                text: hover(name, &row.label, &text),
                struck: own.struck,
            })
        };
        rows.iter().filter_map(point).collect()
    });
    let points = lines.iter().flat_map(|line| &line.points);
    let places = points.flat_map(|point| [Some(point.x), point.published.map(|(x, _)| x)]);
    let last = places.flatten().fold(0.0, f64::max);
    // During a copy that takes hours, jobs of minutes see only the beginning.
    let end = if last > 0.0 && last < 50.0 {
        last
    } else {
        100.0
    };
    let x_axis = with(
        axis("progress of the sync, percent"),
        &json!({"range": [-0.03 * end, 1.03 * end], "zeroline": false}),
    );
    Lines {
        id,
        title,
        unit: unit_words(megabytes).to_owned(),
        along: Along::Axis(x_axis),
        groups: vec![Group {
            title: String::new(),
            lines,
        }],
        values: Values::Rates,
        band_words: view.band_words("Shaded"),
        caption: "Progress at the job's start.".to_owned(),
        marks: Vec::new(),
    }
    .figures()
}
