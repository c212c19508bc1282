//! Every error against the published figures as a dot, by class, with the
//! declared accuracy as a band.

use super::look::{Look, MUTED, axis, folded, hover, open_circle, with};
use super::{Figure, Key, Panel};
use crate::compute::accuracy::{cell_error_percent, is_disputed};
use crate::compute::headline::class_title;
use crate::compute::view::{Cell, Row, View};
use crate::data::RunData;
use crate::format::{signed_percent, signed_percent_fine};
use crate::table::declared_percent;
use raidlab_store::{Role, published_error_percent as error_percent};
use serde_json::{Value, json};

/// The pixels of a class, and of everything around the classes.
const CLASS_HEIGHT: usize = 74;
const FRAME_HEIGHT: usize = 60;

/// The characters of a line of a class's title, so that the axis stays narrow.
const CLASS_WIDTH: usize = 14;

/// The error, in percent, at which larger ones are drawn: one outlier must not squeeze all others.
const EDGE_PERCENT: f64 = 50.0;

/// The figure, if there are errors to draw.
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
    let mut traces: Vec<Value> = Vec::new();
    let mut legend: Vec<Key> = Vec::new();
    let mut farthest = 0.0_f64;
    for &subject in &lanes.subjects {
        let name = &view.names[subject];
        for fitted in [false, true] {
            let mut dots = Dots::default();
            for (own, row, cell) in view.cells().filter(|(_, _, cell)| comparable(*cell)) {
                let class = classes.iter().position(|class| *class == row.head.class);
                let (Some(class), Some(percent)) = (class, cell_error_percent(row, cell)) else {
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
            if !dots.x.is_empty() {
                traces.push(dots.draw(subject, name, fitted));
            }
        }
        legend.push(Key::new(name, Look(subject).stroke()));
    }
    legend.push(Key::explains("fitted", open_circle()));
    let mut layout = error_layout(data, &classes, farthest);
    layout["shapes"] = json!(bands(data, view, &classes, &lanes));
    Some(Figure {
        id: "errors".to_owned(),
        title: "Every error against the published figures".to_owned(),
        caption: "One marker per job and subject; open markers were fitted and prove nothing. \
                  Grey: what is declared for the subject. Disputed figures are left out; errors \
                  beyond 50 % stand at the edge with their number."
            .to_owned(),
        unit: String::new(),
        wide: true,
        legend,
        panels: vec![Panel {
            id: "errors-0".to_owned(),
            title: String::new(),
            height: FRAME_HEIGHT + classes.len() * CLASS_HEIGHT.max(lanes.subjects.len() * 14),
            plot: json!({"data": traces, "layout": layout}),
        }],
        ..Figure::default()
    })
}

fn error_layout(data: &RunData, classes: &[&str], farthest: f64) -> Value {
    let edge = 1.15 * farthest.max(1.0);
    let titles = classes
        .iter()
        .map(|class| folded(&class_title(data, class), CLASS_WIDTH));
    let x_axis = json!({
        "range": [-edge, edge], "zerolinecolor": MUTED, "zerolinewidth": 2, "ticksuffix": " %",
        "nticks": 7, "tickangle": 0,
    });
    let y_axis = json!({
        "tickvals": (0..classes.len()).collect::<Vec<_>>(),
        "ticktext": titles.collect::<Vec<_>>(), "range": [classes.len() as f64 - 0.5, -0.5],
        "showgrid": false, "zeroline": false,
    });
    json!({
        "xaxis": with(axis("error, % (0 is exact)"), &x_axis),
        "yaxis": with(axis(""), &y_axis),
    })
}

fn comparable(cell: Cell<'_>) -> bool {
    error_percent(cell.m).is_some() && !is_disputed(cell)
}

/// The lanes of classes and subjects: classes are at a distance of 1, their subjects share the
/// middle 0.8 of it.
struct Lanes {
    /// Indexes of the subjects, from the top down.
    subjects: Vec<usize>,
}

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
    /// The side of each marker on which its label is: towards the middle.
    sides: Vec<&'static str>,
    texts: Vec<String>,
}

impl Dots {
    /// Adds an error; one beyond the edge is drawn at the edge, with its number.
    fn push(&mut self, percent: f64, y: f64, text: String) {
        let beyond = percent.abs() > EDGE_PERCENT;
        self.x.push(percent.clamp(-EDGE_PERCENT, EDGE_PERCENT));
        self.y.push(y);
        self.texts.push(text);
        self.sides.push(if percent > 0.0 {
            "middle left"
        } else {
            "middle right"
        });
        self.labels.push(if beyond {
            signed_percent(percent)
        } else {
            String::new()
        });
    }

    fn draw(self, subject: usize, name: &str, fitted: bool) -> Value {
        let look = Look(subject);
        let marker = if fitted {
            with(
                look.open_marker(),
                &json!({"size": 9, "line": {"width": 1.5}}),
            )
        } else {
            with(look.marker(), &json!({"size": 9, "opacity": 0.85}))
        };
        let kind = if fitted { ", fitted" } else { "" };
        json!({
            "type": "scatter", "mode": "markers+text", "name": format!("{name}{kind}"),
            "x": self.x, "y": self.y, "marker": marker, "text": self.labels,
            "textposition": self.sides, "textfont": {"size": 11}, "hovertemplate": self.texts,
            "meta": name,
        })
    }
}

/// The declared accuracy of each class and subject, the widest of its jobs.
fn bands(data: &RunData, view: &View<'_>, classes: &[&str], lanes: &Lanes) -> Vec<Value> {
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
            let half = lanes.height() / 2.0;
            shapes.push(json!({
                "type": "rect", "layer": "below", "xref": "x", "yref": "y", "x0": -declared,
                "x1": declared, "y0": middle - half, "y1": middle + half,
                "fillcolor": "theme:band", "line": {"width": 0},
            }));
        }
    }
    shapes
}
