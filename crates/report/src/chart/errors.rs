//! Every error against the published figures as a dot, by class, with the
//! declared accuracy as a band.

use super::Figure;
use super::look::{MUTED, axis, colour, hover, layout, plot, symbol};
use crate::compute::accuracy::{error_percent, is_disputed};
use crate::compute::headline::class_title;
use crate::compute::view::{Cell, Row, View};
use crate::data::RunData;
use crate::format::{signed_percent, signed_percent_fine};
use crate::table::declared_percent;
use plotly::common::{HoverInfo, Line, Marker, Mode, Position};
use plotly::layout::{Shape, ShapeLayer, ShapeLine, ShapeType};
use plotly::{Layout, Scatter, Trace};
use raidlab_store::Role;

/// Pixels of a class, and of everything around the classes.
const CLASS_HEIGHT: usize = 74;
const FRAME_HEIGHT: usize = 110;

/// Errors beyond are drawn here: one outlier must not squeeze all others.
const EDGE_PERCENT: f64 = 50.0;

/// The figure, if there is anything to compare with.
pub(super) fn figure(data: &RunData, view: &View<'_>) -> Option<Figure> {
    let compared = |class: &&str| {
        view.cells()
            .any(|(_, row, cell)| row.head.class == *class && comparable(cell))
    };
    let classes: Vec<&str> = view.classes().into_iter().filter(compared).collect();
    if classes.is_empty() || view.compared().is_empty() {
        return None;
    }
    let lanes = Lanes {
        subjects: view.compared(),
    };
    let mut traces: Vec<Box<dyn Trace>> = Vec::new();
    let mut farthest = 0.0_f64;
    for &subject in &lanes.subjects {
        let name = &view.names[subject];
        for fitted in [false, true] {
            let mut dots = Dots::default();
            for (own, row, cell) in view.cells().filter(|(_, _, cell)| comparable(*cell)) {
                let class = classes.iter().position(|class| *class == row.head.class);
                let (Some(class), Some(percent)) = (class, error_percent(cell.m)) else {
                    continue;
                };
                if own == subject && (cell.m.role == Role::Fitted) == fitted {
                    farthest = farthest.max(percent.abs().min(EDGE_PERCENT));
                    let kind = if fitted { " (fitted)" } else { "" };
                    let text = format!("{}{kind}", signed_percent_fine(percent));
                    let text = hover(name, &row.label, &text);
                    dots.push(percent, lanes.middle(class, subject), text);
                }
            }
            traces.push(dots.draw(subject, name, fitted));
        }
    }
    traces.push(fitted_key());
    let shapes = bands(data, view, &classes, &lanes);
    let layout = error_layout(data, &classes, farthest).shapes(shapes);
    Some(Figure {
        id: "errors".to_owned(),
        title: "Every error against the published figures".to_owned(),
        caption: "One marker per job and subject; open markers were fitted and prove nothing. \
                  Grey: what is declared for the subject. Disputed figures are left out; errors \
                  beyond 50 % stand at the edge with their number."
            .to_owned(),
        height: FRAME_HEIGHT + classes.len() * CLASS_HEIGHT,
        wide: true,
        plot: plot(traces, layout),
    })
}

#[expect(clippy::cast_precision_loss, reason = "a handful of classes")]
fn error_layout(data: &RunData, classes: &[&str], farthest: f64) -> Layout {
    layout()
        .x_axis(
            axis("error against the published figure, % (0 is exact)")
                .tick_suffix(" %")
                .range(vec![-1.12 * farthest.max(1.0), 1.12 * farthest.max(1.0)])
                .zero_line_color(MUTED)
                .zero_line_width(2),
        )
        .y_axis(
            axis("")
                .tick_values((0..classes.len()).map(|class| class as f64).collect())
                .tick_text(titles(data, classes))
                .range(vec![classes.len() as f64 - 0.5, -0.5])
                .show_grid(false)
                .zero_line(false),
        )
}

fn titles(data: &RunData, classes: &[&str]) -> Vec<String> {
    let title = |class: &&str| folded(&class_title(data, class));
    classes.iter().map(title).collect()
}

fn comparable(cell: Cell<'_>) -> bool {
    error_percent(cell.m).is_some() && !is_disputed(cell)
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

/// Where a class and a subject have their lane: classes are 1 apart, their
/// subjects share the middle 0.8 of it.
struct Lanes {
    /// Indexes of the subjects, top down.
    subjects: Vec<usize>,
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a handful of classes and subjects"
)]
impl Lanes {
    fn height(&self) -> f64 {
        0.8 / self.subjects.len().max(1) as f64
    }

    fn middle(&self, class: usize, subject: usize) -> f64 {
        let lane = self.subjects.iter().take_while(|own| **own != subject);
        let from_middle = lane.count() as f64 - (self.subjects.len() as f64 - 1.0) / 2.0;
        class as f64 + from_middle * self.height()
    }
}

/// The markers of one subject.
#[derive(Default)]
struct Dots {
    x: Vec<f64>,
    y: Vec<f64>,
    labels: Vec<String>,
    texts: Vec<String>,
}

impl Dots {
    /// Adds an error; beyond the edge it stands there with its number.
    fn push(&mut self, percent: f64, y: f64, text: String) {
        let beyond = percent.abs() > EDGE_PERCENT;
        self.x.push(percent.clamp(-EDGE_PERCENT, EDGE_PERCENT));
        self.y.push(y);
        self.texts.push(text);
        self.labels.push(if beyond {
            signed_percent(percent)
        } else {
            String::new()
        });
    }

    fn draw(self, subject: usize, name: &str, fitted: bool) -> Box<dyn Trace> {
        let marker = Marker::new()
            .symbol(symbol(subject, fitted))
            .size(9)
            .color(colour(subject))
            .opacity(0.85)
            .line(Line::new().width(if fitted { 1.5 } else { 0.0 }));
        Scatter::new(self.x, self.y)
            .mode(Mode::MarkersText)
            .name(name)
            .marker(marker)
            .text_array(self.labels)
            .text_position(Position::MiddleLeft)
            .hover_template_array(self.texts)
            .legend_group(name)
            .show_legend(!fitted)
    }
}

/// The declared accuracy of each class and subject, the widest of its jobs.
fn bands(data: &RunData, view: &View<'_>, classes: &[&str], lanes: &Lanes) -> Vec<Shape> {
    let mut shapes = Vec::new();
    for (class, name) in classes.iter().enumerate() {
        for &subject in &lanes.subjects {
            let own = |(own, row, cell): (usize, &Row<'_>, Cell<'_>)| {
                (own == subject && row.head.class == *name)
                    .then(|| declared_percent(data, cell.m))
                    .flatten()
            };
            let Some(declared) = view.cells().filter_map(own).reduce(f64::max) else {
                continue;
            };
            let middle = lanes.middle(class, subject);
            shapes.push(
                Shape::new()
                    .shape_type(ShapeType::Rect)
                    .layer(ShapeLayer::Below)
                    .x_ref("x")
                    .y_ref("y")
                    .x0(-declared)
                    .x1(declared)
                    .y0(middle - lanes.height() / 2.0)
                    .y1(middle + lanes.height() / 2.0)
                    .fill_color("theme:band")
                    .line(ShapeLine::new().width(0.0)),
            );
        }
    }
    shapes
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
