//! Charts of lines: figures along a quantity, a subject for each line.
//!
//! The line is this run's figures, the shade around it their known error, and open markers are
//! published figures. Panels of a figure share the scale of their values. Where there are more
//! lines than colours, each line gets a panel, with the others in grey behind it.

use super::look::{GRID, Look, MOST_LINES, open_circle, with};
use super::scale::{Scale, steps_axis};
use super::{Figure, Key, Panel};
use crate::compute::view::View;
use serde_json::{Value, json};

/// The pixels of the only panel of a figure, and of one among several.
const TALL: usize = 400;
const SMALL: usize = 240;

/// The least width in pixels of the axis on a narrow page and of a panel, and that of a chart over
/// the whole width of a wide page.
const AXIS_PIXELS: f64 = 215.0;
const WIDE_AXIS_PIXELS: f64 = 700.0;

/// The pixels around the plot of a panel, above and below.
const FRAME_PIXELS: f64 = 54.0;

/// A point of a line.
#[derive(Debug, Clone)]
pub(super) struct Point {
    pub x: f64,
    pub y: f64,
    /// The lowest and the highest value; both `y` where the error is not known.
    pub band: (f64, f64),
    /// The position of the published figure, which may have a sync progress of its own.
    pub published: Option<(f64, f64)>,
    /// The text of the hover box.
    pub text: String,
    /// Whether the audit struck out the figure.
    pub struck: bool,
}

impl Point {
    fn is_banded(&self) -> bool {
        self.band.0 < self.band.1
    }
}

/// One subject's points, joined in the order of the axis.
#[derive(Debug, Clone)]
pub(super) struct Line {
    pub name: String,
    pub look: Look,
    pub points: Vec<Point>,
}

/// Lines that are drawn together.
#[derive(Debug, Clone)]
pub(super) struct Group {
    /// The title of the group; empty for an only one.
    pub title: String,
    pub lines: Vec<Line>,
}

/// The axis along which figures are drawn.
#[derive(Debug, Clone)]
pub(super) enum Along {
    /// The axis has this title and these steps with their words; the flag allows spacing by ratios
    /// where the steps call for it.
    Steps(String, Vec<(f64, String)>, bool),
    /// The axis is given as it is.
    Axis(Value),
}

/// The kind of values, which decides their scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Values {
    /// Rates are drawn linearly from zero where they can be read so.
    Rates,
    /// Times are always drawn by ratios, as latencies.
    Times,
    /// Percentages are drawn linearly, from 0 to 100.
    Percent,
}

/// A chart of lines before it is laid out.
#[derive(Debug, Clone)]
pub(super) struct Lines {
    pub id: String,
    pub title: String,
    /// The unit in words: `iops, more is better`.
    pub unit: String,
    pub along: Along,
    pub groups: Vec<Group>,
    /// The kind of the values.
    pub values: Values,
    /// The meaning of the shades around lines, printed where there are any.
    pub band_words: String,
    /// The caption, without the words about its marks.
    pub caption: String,
    /// Events, each with its position between two steps of the axis.
    pub marks: Vec<(f64, String)>,
}

/// A line for each subject of these points.
pub(super) fn lines_of(view: &View<'_>, points: impl Fn(usize, &str) -> Vec<Point>) -> Vec<Line> {
    let line = |(column, name): (usize, &String)| Line {
        name: name.clone(),
        look: Look(column),
        points: points(column, name),
    };
    view.names.iter().enumerate().map(line).collect()
}

impl Lines {
    /// The figures; none where there are no points.
    pub(super) fn figures(mut self) -> Vec<Figure> {
        for group in &mut self.groups {
            group.lines.retain(|line| !line.points.is_empty());
        }
        self.groups.retain(|group| !group.lines.is_empty());
        let Some(scale) = self.scale() else {
            return Vec::new();
        };
        let lines = self.groups.iter_mut().flat_map(|group| &mut group.lines);
        let points = lines.flat_map(|line| &mut line.points);
        for point in points.filter(|point| point.struck) {
            point.y = scale.within(point.y);
            point.band = (scale.within(point.band.0), scale.within(point.band.1));
        }
        let most = self.groups.iter().map(|group| group.lines.len()).max();
        if most.unwrap_or(0) <= MOST_LINES {
            return vec![self.side_by_side(scale)];
        }
        let groups = std::mem::take(&mut self.groups);
        let several = groups.len() > 1;
        groups
            .into_iter()
            .enumerate()
            .map(|(number, group)| self.one_by_one(scale, number, several, &group))
            .collect()
    }

    fn points(&self) -> impl Iterator<Item = &Point> + Clone {
        let lines = self.groups.iter().flat_map(|group| &group.lines);
        lines.flat_map(|line| &line.points)
    }

    /// The scale of the points that were not struck out, so that invalid ones do not
    /// squeeze the rest.
    fn scale(&self) -> Option<Scale> {
        let all = self.points().all(|point| point.struck);
        let counted = self.points().filter(move |point| all || !point.struck);
        let ends = counted
            .clone()
            .flat_map(|point| [point.y, point.band.0, point.band.1]);
        let published = self.points().filter_map(|point| Some(point.published?.1));
        let values = ends.chain(published);
        match self.values {
            Values::Rates => {}
            Values::Times => return Scale::of_ratios(values),
            Values::Percent => return values.reduce(f64::max).map(|_| Scale::PERCENT),
        }
        // A band that reaches zero does not prevent a logarithmic scale.
        let drawn = counted.map(|point| point.y);
        let mut scale = Scale::of(drawn)?;
        let least = if scale.log {
            scale.low / 10.0
        } else {
            f64::MIN
        };
        for value in values.filter(|value| *value > least) {
            scale.low = scale.low.min(value);
            scale.high = scale.high.max(value);
        }
        Some(scale)
    }

    /// Whether a single panel takes the whole width of a wide page: it does where each point has a
    /// marker; a distribution is narrow, and has more points than can be marked.
    fn is_wide(&self) -> bool {
        self.values != Values::Percent
    }

    fn mode(&self) -> &'static str {
        match self.is_wide() {
            true => "lines+markers",
            false => "lines",
        }
    }

    /// Draws every group as a panel, with subjects in their colours.
    fn side_by_side(self, scale: Scale) -> Figure {
        let several = self.groups.len() > 1;
        let height = if several { SMALL } else { TALL };
        let mut legend: Vec<Key> = Vec::new();
        let mut panels = Vec::new();
        for (number, group) in self.groups.iter().enumerate() {
            for line in &group.lines {
                if legend.iter().all(|key| key.name != line.name) {
                    legend.push(Key::new(&line.name, line.look.stroke()));
                }
            }
            let lines = group.lines.iter().enumerate();
            let traces = lines.flat_map(|(place, line)| {
                let later = group.lines[place + 1..].iter();
                let covered = later.filter(|other| covers(other, line, scale)).count();
                drawn(line, covered, scale, self.mode())
            });
            let mut plot = self.plot(traces.collect(), scale, height);
            if self.is_wide() && !several {
                plot["roomy"] = self.roomy(group, scale);
            }
            panels.push(Panel {
                id: format!("{}-{number}", self.id),
                title: group.title.clone(),
                height,
                plot,
            });
        }
        if self.points().any(|point| point.published.is_some()) {
            legend.push(Key::explains("published", open_circle()));
        }
        Figure {
            title: self.title.clone(),
            caption: self.words(scale),
            unit: format!("{}{}", self.unit, scale.words()),
            wide: several || self.is_wide(),
            legend,
            panels,
            id: self.id,
            ..Figure::default()
        }
    }

    /// Draws a panel for each line of a group, with the others in grey behind it.
    fn one_by_one(&self, scale: Scale, number: usize, several: bool, group: &Group) -> Figure {
        let id = if several {
            format!("{}-{number}", self.id)
        } else {
            self.id.clone()
        };
        let panel = |(place, line): (usize, &Line)| {
            let mut traces = vec![behind(&group.lines, place)];
            traces.extend(drawn(line, 0, scale, self.mode()));
            Panel {
                id: format!("{id}-{place}"),
                title: line.name.clone(),
                height: SMALL,
                plot: self.plot(traces, scale, SMALL),
            }
        };
        let panels: Vec<Panel> = group.lines.iter().enumerate().map(panel).collect();
        let title = if several {
            format!("{}: {}", self.title, group.title)
        } else {
            self.title.clone()
        };
        let mut legend = Vec::new();
        let mut points = group.lines.iter().flat_map(|line| &line.points);
        if points.any(|point| point.published.is_some()) {
            legend.push(Key::explains("published", open_circle()));
        }
        Figure {
            id: id.clone(),
            title,
            caption: format!("{} Grey: all others.", self.words(scale)),
            unit: format!("{}{}", self.unit, scale.words()),
            wide: true,
            legend,
            panels,
            ..Figure::default()
        }
    }

    fn plot(&self, traces: Vec<Value>, scale: Scale, height: usize) -> Value {
        let pixels = height as f64 - FRAME_PIXELS;
        let x_axis = match &self.along {
            Along::Steps(title, steps, ratios) => steps_axis(title, steps, *ratios, AXIS_PIXELS),
            Along::Axis(axis) => axis.clone(),
        };
        let (mut shapes, mut labels) = (Vec::new(), Vec::new());
        for (at, text) in &self.marks {
            shapes.push(mark_line(*at));
            labels.push(json!({
                "text": text, "x": at, "y": 1, "yref": "paper", "textangle": -90,
                "xanchor": "right", "yanchor": "top", "showarrow": false,
                "font": {"size": 11, "color": "theme:ink"},
            }));
        }
        json!({
            "data": traces,
            "layout": {
                "xaxis": x_axis, "yaxis": scale.axis("", pixels),
                "shapes": shapes, "annotations": labels,
            },
        })
    }

    /// The additions of a chart over the whole width of a wide page: every step's word, and the
    /// lines' names at their ends.
    fn roomy(&self, group: &Group, scale: Scale) -> Value {
        let mut more = json!({});
        if let Along::Steps(title, steps, ratios) = &self.along {
            let axis = steps_axis(title, steps, *ratios, WIDE_AXIS_PIXELS);
            more["xaxis"] = json!({"tickvals": axis["tickvals"], "ticktext": axis["ticktext"]});
        }
        let end = self.points().map(|point| point.x).fold(f64::MIN, f64::max);
        let at_end = |line: &&Line| line.points.last().is_some_and(|point| point.x == end);
        let lines: Vec<&Line> = group.lines.iter().filter(at_end).collect();
        if lines.len() > 1 {
            let (labels, longest) = labels_at_ends(&lines, scale);
            more["annotations"] = json!(labels);
            more["right"] = json!(14 + longest * 8);
        }
        more
    }

    /// The caption on how to read the chart.
    fn words(&self, scale: Scale) -> String {
        let mut words = Vec::new();
        if !self.caption.is_empty() {
            words.push(self.caption.clone());
        }
        if self.points().any(|point| point.published.is_some()) {
            words.push("Open markers are published figures.".to_owned());
        }
        if self.points().any(Point::is_banded) {
            words.push(self.band_words.clone());
        }
        if self.points().any(|point| point.struck) {
            let crosses = "Crosses were struck out by the audit; at an edge, they lie beyond it.";
            words.push(crosses.to_owned());
        }
        if scale.log && self.values == Values::Rates {
            words.push("The scale is logarithmic: equal steps are equal ratios.".to_owned());
        }
        words.join(" ")
    }
}

/// The names at the ends of lines, moved apart where ends are near to each other; and the length of
/// the longest in characters.
fn labels_at_ends(lines: &[&Line], scale: Scale) -> (Vec<Value>, usize) {
    const LINE: f64 = 16.0;
    let gap = LINE / (TALL as f64 - FRAME_PIXELS);
    let mut ends: Vec<(f64, &str)> = lines
        .iter()
        .filter_map(|line| Some((scale.part(line.points.last()?.y), line.name.as_str())))
        .collect();
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    // Moved upwards as far as needed, then down again from the top.
    for place in 1..ends.len() {
        ends[place].0 = ends[place].0.max(ends[place - 1].0 + gap);
    }
    let mut top = 1.0;
    for end in ends.iter_mut().rev() {
        end.0 = end.0.min(top);
        top = end.0 - gap;
    }
    let labels = ends.iter().map(|(at, name)| {
        json!({
            "text": name, "x": 1, "xref": "paper", "xanchor": "left", "xshift": 6, "y": at,
            "yref": "paper", "yanchor": "middle", "showarrow": false, "font": {"size": 12},
        })
    });
    let longest = ends.iter().map(|(_, name)| name.chars().count()).max();
    (labels.collect(), longest.unwrap_or(0))
}

/// The vertical line of an event.
pub(super) fn mark_line(at: f64) -> Value {
    json!({
        "type": "line", "xref": "x", "yref": "paper", "x0": at, "x1": at, "y0": 0, "y1": 1,
        "line": {"width": 1.4, "color": "theme:ink", "dash": "dot"},
    })
}

/// All lines but one, as one thin grey trace.
fn behind(lines: &[Line], but: usize) -> Value {
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for (_, line) in lines.iter().enumerate().filter(|(place, _)| *place != but) {
        let points = line.points.iter().filter(|point| !point.struck);
        for point in points {
            x.push(Some(point.x));
            y.push(Some(point.y));
        }
        x.push(None);
        y.push(None);
    }
    json!({
        "type": "scatter", "mode": "lines", "x": x, "y": y, "hoverinfo": "skip",
        "line": {"color": GRID, "width": 1.5}, "meta": "",
    })
}

/// Whether a line that is drawn later hides one: at each of its points both have the same height.
fn covers(later: &Line, line: &Line, scale: Scale) -> bool {
    const NEAR: f64 = 0.012;
    line.points.iter().all(|point| {
        let mut same = later.points.iter().filter(|other| other.x == point.x);
        same.any(|other| (scale.part(other.y) - scale.part(point.y)).abs() < NEAR)
    })
}

/// A line's band, line, struck points and published figures. A line that is covered by others is
/// drawn broader, so that it shows on both sides.
fn drawn(line: &Line, covered: usize, scale: Scale, mode: &str) -> Vec<Value> {
    let Line { name, look, points } = line;
    let mut traces = Vec::new();
    if points.iter().any(Point::is_banded) {
        // A logarithmic scale has no zero.
        let least = if scale.log { scale.low } else { f64::MIN };
        let there = points
            .iter()
            .map(|point| (point.x, point.band.0.max(least)));
        let back = points.iter().rev();
        let back = back.map(|point| (point.x, point.band.1.max(least)));
        let (x, y): (Vec<f64>, Vec<f64>) = there.chain(back).unzip();
        traces.push(json!({
            "type": "scatter", "mode": "lines", "x": x, "y": y, "fill": "toself",
            "fillcolor": look.tint(0.18), "line": {"width": 0}, "hoverinfo": "skip",
            "meta": name,
        }));
    }
    let texts: Vec<&str> = points.iter().map(|point| point.text.as_str()).collect();
    let x: Vec<f64> = points.iter().map(|point| point.x).collect();
    let valid: Vec<Option<f64>> = points
        .iter()
        .map(|point| (!point.struck).then_some(point.y))
        .collect();
    if valid.iter().any(Option::is_some) {
        traces.push(json!({
            "type": "scatter", "mode": mode, "name": name, "x": x, "y": valid,
            "line": with(look.line(), &json!({"width": 2 + 4 * covered})),
            "marker": with(look.marker(), &json!({"size": 8 + 5 * covered})),
            "hovertemplate": texts, "meta": name,
        }));
    }
    let struck: Vec<&Point> = points.iter().filter(|point| point.struck).collect();
    if !struck.is_empty() {
        traces.push(json!({
            "type": "scatter", "mode": "markers", "name": format!("{name}, struck"),
            "x": struck.iter().map(|point| point.x).collect::<Vec<_>>(),
            "y": struck.iter().map(|point| point.y).collect::<Vec<_>>(),
            "marker": {"symbol": "x", "color": look.colour(), "size": 8},
            "hovertemplate": struck.iter().map(|point| point.text.as_str()).collect::<Vec<_>>(),
            "meta": name,
        }));
    }
    let published = points.iter().filter_map(|point| {
        let (x, y) = point.published?;
        Some((x, (y, point.text.as_str())))
    });
    let (x, rest): (Vec<f64>, Vec<(f64, &str)>) = published.unzip();
    let (y, texts): (Vec<f64>, Vec<&str>) = rest.into_iter().unzip();
    if !x.is_empty() {
        traces.push(json!({
            "type": "scatter", "mode": "markers", "name": format!("{name}, published"),
            "x": x, "y": y, "marker": look.open_marker(), "hovertemplate": texts, "meta": name,
        }));
    }
    traces
}
