//! Every error against the published figures as a dot, by class, with the
//! declared accuracy as a band.

use super::Figure;
use super::look::{MUTED, axis, colour, hover, layout, plot, symbol};
use crate::compute::accuracy::is_disputed;
use crate::compute::headline::class_title;
use crate::compute::view::View;
use crate::data::RunData;
use crate::format::signed_percent_fine;
use crate::table::declared_percent;
use plotly::common::{HoverInfo, Line, Marker, Mode};
use plotly::layout::{Shape, ShapeLayer, ShapeLine, ShapeType};
use plotly::{Scatter, Trace};
use raidlab_store::{Role, published_error_percent};

/// Pixels of a class, and of everything around the classes.
const CLASS_HEIGHT: usize = 74;
const FRAME_HEIGHT: usize = 110;

/// Half of a class's height on its axis, where classes are 1 apart.
const HALF_BAND: f64 = 0.42;

/// The figure, if there is anything to compare with.
#[expect(
    clippy::cast_precision_loss,
    reason = "a handful of classes and subjects"
)]
pub(super) fn figure(data: &RunData, view: &View<'_>) -> Option<Figure> {
    let compared = |class: &&str| {
        view.cells()
            .any(|(_, row, cell)| row.head.class == *class && comparable(cell))
    };
    let classes: Vec<&str> = view.classes().into_iter().filter(compared).collect();
    if classes.is_empty() {
        return None;
    }
    let mut traces: Vec<Box<dyn Trace>> = Vec::new();
    let middle = (view.subjects.len() as f64 - 1.0) / 2.0;
    let spread = 2.0 * 0.34 / (view.subjects.len() as f64).max(2.0);
    for (subject, name) in view.subjects.iter().enumerate() {
        for fitted in [false, true] {
            let (mut x, mut y, mut texts) = (Vec::new(), Vec::new(), Vec::new());
            for (own, row, cell) in view.cells().filter(|(_, _, cell)| comparable(*cell)) {
                let class = classes.iter().position(|class| *class == row.head.class);
                let (Some(class), Some(percent)) = (class, published_error_percent(cell.m)) else {
                    continue;
                };
                if own != subject || (cell.m.role == Role::Fitted) != fitted {
                    continue;
                }
                x.push(percent);
                y.push(class as f64 + (subject as f64 - middle) * spread);
                let kind = if fitted { " (fitted)" } else { "" };
                let text = format!("{}{kind}", signed_percent_fine(percent));
                texts.push(hover(name, &row.label, &text));
            }
            let marker = Marker::new()
                .symbol(symbol(subject, fitted))
                .size(9)
                .color(colour(subject))
                .opacity(0.85)
                .line(Line::new().width(if fitted { 1.5 } else { 0.0 }));
            traces.push(
                Scatter::new(x, y)
                    .mode(Mode::Markers)
                    .name(*name)
                    .marker(marker)
                    .hover_template_array(texts)
                    .legend_group(*name)
                    .show_legend(!fitted),
            );
        }
    }
    traces.push(fitted_key());
    let layout = layout()
        .shapes(bands(data, &classes))
        .x_axis(
            axis("error against the published figure, % (0 is exact)")
                .tick_suffix(" %")
                .zero_line_color(MUTED)
                .zero_line_width(2),
        )
        .y_axis(
            axis("")
                .tick_values((0..classes.len()).map(|class| class as f64).collect())
                .tick_text(
                    classes
                        .iter()
                        .map(|class| folded(&class_title(data, class)))
                        .collect(),
                )
                .range(vec![classes.len() as f64 - 0.5, -0.5])
                .show_grid(false)
                .zero_line(false),
        );
    Some(Figure {
        id: "errors".to_owned(),
        title: "Every error against the published figures".to_owned(),
        caption: "One marker per job and subject; open markers were fitted and prove nothing. \
                  Grey: the declared accuracy of the class. Disputed figures are left out."
            .to_owned(),
        height: FRAME_HEIGHT + classes.len() * CLASS_HEIGHT,
        wide: true,
        plot: plot(traces, layout),
    })
}

fn comparable(cell: crate::compute::view::Cell<'_>) -> bool {
    published_error_percent(cell.m).is_some() && !is_disputed(cell)
}

fn fitted_key() -> Box<dyn Trace> {
    Scatter::new(vec![None::<f64>], vec![None::<f64>])
        .mode(Mode::Markers)
        .name("fitted")
        .hover_info(HoverInfo::Skip)
        .marker(
            Marker::new()
                .symbol(symbol(0, true))
                .size(9)
                .color(MUTED)
                .line(Line::new().width(1.5)),
        )
}

#[expect(clippy::cast_precision_loss, reason = "a handful of classes")]
fn bands(data: &RunData, classes: &[&str]) -> Vec<Shape> {
    let band = |(class, name): (usize, &&str)| {
        let declared = declared_percent(data, name)?;
        Some(
            Shape::new()
                .shape_type(ShapeType::Rect)
                .layer(ShapeLayer::Below)
                .x_ref("x")
                .y_ref("y")
                .x0(-declared)
                .x1(declared)
                .y0(class as f64 - HALF_BAND)
                .y1(class as f64 + HALF_BAND)
                .fill_color("theme:band")
                .line(ShapeLine::new().width(0.0)),
        )
    };
    classes.iter().enumerate().filter_map(band).collect()
}

/// A class's title on two lines, so that the axis stays narrow.
fn folded(title: &str) -> String {
    let middle = title.len() / 2;
    let spaces = title.match_indices(' ').map(|(at, _)| at);
    match spaces.min_by_key(|at| at.abs_diff(middle)) {
        Some(at) if title.len() > 14 => format!("{}<br>{}", &title[..at], &title[at + 1..]),
        _ => title.to_owned(),
    }
}
