//! Throughput against block size: jobs of a class that differ in it.

use super::Figure;
use super::curves::{Point, curve, op_name, published_key};
use super::look::{axis, hover, layout, log_axis, plot};
use crate::compute::headline::class_title;
use crate::compute::rate::Rate;
use crate::compute::view::{Cell, Row, View};
use crate::data::RunData;
use crate::format::figure;
use plotly::layout::{AxisType, RangeMode};
use raidlab_store::Operation;
use std::collections::BTreeMap;

/// Fewer sizes than this are no ladder.
const LADDER_STEPS: usize = 3;

/// From this ratio between the highest and the lowest point on the scale is
/// logarithmic.
const LOG_RATIO: f64 = 20.0;

/// Rows that differ in nothing but their block size.
pub(super) struct Ladder<'v, 'a> {
    class: &'a str,
    op: Operation,
    queue_depth: u32,
    streams: u32,
    pub(super) rows: Vec<&'v Row<'a>>,
}

/// Every ladder of block sizes, in the order of their first rows.
pub(super) fn ladders<'v, 'a>(view: &'v View<'a>) -> Vec<Ladder<'v, 'a>> {
    let mut all: Vec<Ladder<'_, '_>> = Vec::new();
    for row in view.main_rows().filter(|row| !row.has_sync()) {
        let head = row.head;
        if head.block_size_bytes == 0 || !matches!(head.op, Operation::Read | Operation::Write) {
            continue;
        }
        let key = (head.class.as_str(), head.op, head.queue_depth, head.streams);
        let same =
            |own: &&mut Ladder<'_, '_>| (own.class, own.op, own.queue_depth, own.streams) == key;
        match all.iter_mut().find(same) {
            Some(own) => own.rows.push(row),
            None => all.push(Ladder {
                class: key.0,
                op: key.1,
                queue_depth: key.2,
                streams: key.3,
                rows: vec![row],
            }),
        }
    }
    for ladder in &mut all {
        ladder.rows.sort_by_key(|row| row.head.block_size_bytes);
        ladder.rows.dedup_by_key(|row| row.head.block_size_bytes);
    }
    all.retain(|ladder| ladder.rows.len() >= LADDER_STEPS);
    all
}

/// A size as it is spoken of: `4 KiB`, `1 MiB`.
fn size_words(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..0x10_0000 => format!("{} KiB", bytes / 1024),
        _ => format!("{} MiB", bytes / 0x10_0000),
    }
}

/// A value of a row's unit in MB/s.
#[expect(clippy::cast_precision_loss, reason = "block sizes are small")]
fn megabytes(rate: Rate, value: f64, cell: Cell<'_>) -> f64 {
    if rate.is_bytes() {
        rate.in_megabytes(value)
    } else {
        value * cell.m.block_size_bytes as f64 / 1e6
    }
}

/// A figure for each ladder.
#[expect(clippy::cast_precision_loss, reason = "block sizes are small")]
pub(super) fn figures(data: &RunData, view: &View<'_>) -> Vec<Figure> {
    let figure_of = |(number, ladder): (usize, Ladder<'_, '_>)| {
        let point = |row: &&Row<'_>, subject: usize| {
            let cell = row.cells[subject]?;
            let ours = megabytes(row.rate, cell.value, cell);
            let bytes = row.head.block_size_bytes;
            let text = format!("{}: {} MB/s", size_words(bytes), figure(ours));
            let published = row.rate.published(cell.m);
            Some(Point {
                x: bytes as f64,
                y: ours,
                band: (
                    megabytes(row.rate, cell.band.0, cell),
                    megabytes(row.rate, cell.band.1, cell),
                ),
                published: published.map(|p| (bytes as f64, megabytes(row.rate, p, cell))),
                text: hover(&view.names[subject], &row.label, &text),
                struck: cell.fatal,
            })
        };
        let points: Vec<Vec<Point>> = (0..view.names.len())
            .map(|subject| {
                let points = ladder.rows.iter().filter_map(|row| point(row, subject));
                points.collect()
            })
            .collect();
        let mut traces = Vec::new();
        for (subject, points) in points.iter().enumerate() {
            curve(&mut traces, subject, &view.names[subject], points);
        }
        published_key(&mut traces, &points);
        let values = || {
            points
                .iter()
                .flatten()
                .map(|point| point.y)
                .filter(|y| *y > 0.0)
        };
        let wide = values().fold(0.0, f64::max) > LOG_RATIO * values().fold(f64::MAX, f64::min);
        let y_axis = if wide {
            log_axis("MB/s (10⁶ bytes, log scale), more is better")
        } else {
            axis("MB/s (10⁶ bytes), more is better").range_mode(RangeMode::ToZero)
        };
        let sizes = || {
            let mut sizes: BTreeMap<u64, String> = BTreeMap::new();
            for row in &ladder.rows {
                let bytes = row.head.block_size_bytes;
                sizes.insert(bytes, size_words(bytes));
            }
            sizes
        };
        let x_axis = axis("block size (log scale)")
            .type_(AxisType::Log)
            .tick_values(sizes().into_keys().map(|bytes| bytes as f64).collect())
            .tick_text(sizes().into_values().collect());
        Figure {
            id: format!("blocks-{number}"),
            title: format!(
                "{}: {} by block size, queue depth {}",
                class_title(data, ladder.class),
                op_name(ladder.op),
                ladder.queue_depth
            ),
            caption: super::curves::caption(&points, view),
            height: 400,
            wide: false,
            plot: plot(traces, layout().x_axis(x_axis).y_axis(y_axis)),
        }
    };
    ladders(view)
        .into_iter()
        .enumerate()
        .map(figure_of)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::ladders;
    use crate::compute::view::View;
    use crate::sample;

    #[test]
    fn jobs_that_differ_in_block_size_alone_form_a_ladder() {
        let data = sample::bench();
        let view = View::new(&data);
        let all = ladders(&view);
        assert_eq!(all.len(), 1);
        let sizes: Vec<_> = all[0]
            .rows
            .iter()
            .map(|row| row.head.block_size_bytes / 1024)
            .collect();
        assert_eq!(sizes, [4, 16, 64, 256]);
        let data = sample::data();
        assert!(ladders(&View::new(&data)).is_empty());
    }
}
