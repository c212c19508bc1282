//! How each job's reads spread over the members: stacked bars, a panel per
//! subject, four panels to a figure.

use super::Figure;
use super::look::{axis, hover, layout, plot, tint};
use crate::compute::balance::read_shares_percent;
use crate::compute::view::{Row, View};
use crate::format::thousands;
use plotly::common::{Anchor, Font, Line, Marker, Orientation};
use plotly::layout::{Annotation, Axis, BarMode};
use plotly::{Bar, Layout, Trace};
use raidlab_store::Operation;

/// Panels beside each other; more would be too narrow to read.
const PANELS: usize = 4;

/// Pixels of a bar with its gap, and of everything around the bars.
const ROW_HEIGHT: usize = 17;
const FRAME_HEIGHT: usize = 90;

/// The figures, none where no member counted its reads.
pub(super) fn figures(view: &View<'_>) -> Vec<Figure> {
    let counted = |row: &&Row<'_>| {
        let mut cells = row.cells.iter().flatten();
        row.head.op == Operation::Read
            && cells.any(|cell| read_shares_percent(cell.m).is_some_and(|s| s.len() > 1))
    };
    let rows: Vec<&Row<'_>> = view.main_rows().filter(counted).collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let with_members = |subject: &usize| {
        let mut cells = rows.iter().filter_map(|row| row.cells[*subject]);
        cells.any(|cell| read_shares_percent(cell.m).is_some())
    };
    let subjects: Vec<usize> = (0..view.names.len()).filter(with_members).collect();
    let figures = subjects.chunks(PANELS).enumerate();
    figures
        .map(|(number, subjects)| panels(view, &rows, number, subjects))
        .collect()
}

fn panels(view: &View<'_>, rows: &[&Row<'_>], number: usize, subjects: &[usize]) -> Figure {
    let mut traces = Vec::new();
    let mut layout = layout()
        .bar_mode(BarMode::Stack)
        .bar_gap(0.3)
        .show_legend(false)
        .y_axis(axis("").auto_range(true).show_grid(false));
    let mut heads = Vec::new();
    for (panel, &subject) in subjects.iter().enumerate() {
        stack(&mut traces, view, rows, panel, subject);
        let (from, to) = domain(panel, subjects.len());
        let x_axis = axis("reads, %")
            .domain(&[from, to])
            .range(vec![0.0, 100.0])
            .tick_values(vec![0.0, 50.0, 100.0])
            .tick_text(["0", "50", ""].map(str::to_owned).to_vec());
        layout = place(layout, panel, x_axis);
        heads.push(
            Annotation::new()
                .text(format!("<b>{}</b>", view.names[subject]))
                .font(Font::new().size(13))
                .show_arrow(false)
                .x_ref("paper")
                .y_ref("paper")
                .x(from)
                .x_anchor(Anchor::Left)
                .y(1.0)
                .y_anchor(Anchor::Bottom),
        );
    }
    let mut plot = plot(traces, layout.annotations(heads));
    // First job on top; the crate's setter takes no "reversed".
    plot["layout"]["yaxis"]["autorange"] = "reversed".into();
    plot["layout"]["yaxis"]["type"] = "category".into();
    plot["layout"]["margin"]["t"] = 28.into();
    Figure {
        id: format!("balance-{number}"),
        title: "Which member served the reads".to_owned(),
        caption: "Share of each member in the read commands of a job, resync included: the first \
                  member dark, the others lighter. An even mirror has 50 % each; one long dark \
                  bar means that one disk did all the work."
            .to_owned(),
        height: FRAME_HEIGHT + rows.len() * ROW_HEIGHT,
        wide: true,
        plot,
    }
}

fn stack(
    traces: &mut Vec<Box<dyn Trace>>,
    view: &View<'_>,
    rows: &[&Row<'_>],
    panel: usize,
    subject: usize,
) {
    let members = rows
        .iter()
        .filter_map(|row| Some(row.cells[subject]?.m.members.len()));
    let members = members.max().unwrap_or(0);
    for slot in 0..members {
        let (mut shares, mut labels, mut texts) = (Vec::new(), Vec::new(), Vec::new());
        for row in rows {
            let Some(cell) = row.cells[subject] else {
                continue;
            };
            let Some((own, share)) = cell
                .m
                .members
                .get(slot)
                .zip(read_shares_percent(cell.m).and_then(|all| all.get(slot).copied()))
            else {
                continue;
            };
            #[expect(clippy::cast_precision_loss, reason = "for printing")]
            let reads = thousands(own.read_ios as f64);
            let text = format!("member {}: {reads} reads, {share:.1} %", own.member);
            shares.push(share);
            labels.push(format!("job {}", row.label));
            texts.push(hover(&view.names[subject], &row.label, &text));
        }
        #[expect(clippy::cast_precision_loss, reason = "a few members")]
        let opacity = 0.9 - 0.65 * slot as f64 / (members.max(2) - 1) as f64;
        let name = if panel == 0 {
            "x".to_owned()
        } else {
            format!("x{}", panel + 1)
        };
        traces.push(
            Bar::new(shares, labels)
                .orientation(Orientation::Horizontal)
                .x_axis(name)
                .marker(
                    Marker::new()
                        .color(tint(subject, opacity))
                        .line(Line::new().width(0.0)),
                )
                .hover_template_array(texts),
        );
    }
}

/// The part of the width that a panel takes.
#[expect(clippy::cast_precision_loss, reason = "up to four panels")]
fn domain(panel: usize, panels: usize) -> (f64, f64) {
    const GAP: f64 = 0.03;
    let width = (1.0 - GAP * (panels as f64 - 1.0)) / panels as f64;
    let from = panel as f64 * (width + GAP);
    (from, (from + width).min(1.0))
}

fn place(layout: Layout, panel: usize, x_axis: Axis) -> Layout {
    match panel {
        0 => layout.x_axis(x_axis),
        1 => layout.x_axis2(x_axis),
        2 => layout.x_axis3(x_axis),
        _ => layout.x_axis4(x_axis),
    }
}
