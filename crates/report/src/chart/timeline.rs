//! Time lines: the array's rates, the sync's progress and events; and below them the work
//! of each member.
//!
//! The figures are written as JSON at once: bands, marks and the second axis
//! are shapes and settings that the crate has few setters for.

use super::lines::mark_line;
use super::look::{Look, axis, with};
use super::{Figure, Key, Panel};
use crate::compute::shape::event_words;
use crate::compute::timeline::{Bin, Timeline};
use raidlab_store::EventRecord;
use raidlab_store::fact::series as names;
use serde::Serialize;
use serde_json::{Value, json};

/// The part of the clock within which events share a label.
const SHARED_LABEL: f64 = 0.025;
/// The part of the clock from which a job's band carries its name.
const NAMED_BAND: f64 = 0.035;
/// The number of slots that are looked up for the charts of an array's members.
const MOST_MEMBERS: usize = 64;

/// The colours of reads and writes: the palette's blue and vermilion.
const READ: usize = 0;
const WRITE: usize = 3;

/// An experiment's charts.
#[derive(Debug, Serialize)]
pub(crate) struct TimelineFigures {
    /// The experiment: subject, file system, machine and repetition, `md/ext4@one, repetition 1`.
    pub title: String,
    /// Whether the experiment is shown unfolded: the first repetition of each column is.
    pub open: bool,
    pub figures: Vec<Figure>,
}

/// An experiment's charts; `number` makes their identifiers unique.
pub(crate) fn timeline(own: &Timeline<'_>, number: usize, name: &str) -> TimelineFigures {
    let title = match own.repetition {
        Some(repetition) => format!("{name}, repetition {}", repetition + 1),
        None => name.to_owned(),
    };
    let clock = Clock::of(own);
    let mut figures = Vec::new();
    figures.extend(array(own, &clock, number, &title));
    figures.extend(members(own, &clock, number, &title));
    TimelineFigures {
        title,
        open: own.repetition.is_none_or(|repetition| repetition == 0),
        figures,
    }
}

/// The unit of the time axis.
struct Clock {
    unit: &'static str,
    unit_ns: f64,
    bin_ns: u64,
    end: f64,
}

impl Clock {
    fn of(own: &Timeline<'_>) -> Self {
        let (unit, unit_ns) = match own.end_ns / 1_000_000_000 {
            0..900 => ("seconds", 1e9),
            900..18_000 => ("minutes", 60e9),
            _ => ("hours", 3600e9),
        };
        Self {
            unit,
            unit_ns,
            bin_ns: own.bin_ns,
            end: own.end_ns as f64 / unit_ns,
        }
    }

    fn at(&self, ns: u64) -> f64 {
        rounded(ns as f64 / self.unit_ns)
    }

    /// The middles of the first `bins` bins, in the clock's unit.
    fn middles(&self, bins: usize) -> Vec<f64> {
        let middle = |place: usize| (place as f64 + 0.5) * self.bin_ns as f64 / self.unit_ns;
        (0..bins).map(|place| rounded(middle(place))).collect()
    }

    fn bin_words(&self) -> String {
        match self.bin_ns / 1_000_000_000 {
            1 => "1 second".to_owned(),
            seconds if seconds < 120 => format!("{seconds} seconds"),
            seconds => format!("{:.0} minutes", seconds as f64 / 60.0),
        }
    }

    fn axis(&self) -> Value {
        let title = format!("{} since the experiment began", self.unit);
        let settings = json!({"range": [0.0, self.end], "showgrid": false, "zeroline": false});
        with(axis(&title), &settings)
    }
}

/// Rounds to four digits, which are more than a pixel shows, and keep the page small.
fn rounded(value: f64) -> f64 {
    if value == 0.0 {
        return 0.0;
    }
    let digits = 3 - value.abs().log10().floor().clamp(-9.0, 15.0) as i32;
    let scale = 10_f64.powi(digits);
    (value * scale).round() / scale
}

fn y_axis(title: &str) -> Value {
    with(axis(title), &json!({"rangemode": "tozero"}))
}

/// A second axis on the right.
fn right_axis(title: &str, range: Option<[f64; 2]>) -> Value {
    let mut axis = y_axis(title);
    axis["overlaying"] = json!("y");
    axis["side"] = json!("right");
    axis["showgrid"] = json!(false);
    if let Some(range) = range {
        axis["range"] = json!(range);
    }
    axis
}

/// A line through the bins' means.
fn line(clock: &Clock, bins: &[Option<Bin>], scale: f64, name: &str, look: &Value) -> Value {
    let means = bins
        .iter()
        .map(|bin| bin.map(|bin| rounded(bin.mean * scale)));
    let mut trace = json!({
        "type": "scatter", "mode": "lines", "name": name, "meta": name,
        "x": clock.middles(bins.len()), "y": means.collect::<Vec<_>>(), "line": look,
    });
    // Samples rarer than the bins, as once an hour: dots, and lines across the empty bins.
    let together = bins
        .windows(2)
        .filter(|pair| pair.iter().all(Option::is_some));
    if 2 * together.count() < bins.iter().flatten().count() {
        trace["mode"] = json!("lines+markers");
        trace["connectgaps"] = json!(true);
    }
    trace
}

/// The range from the lowest to the highest sample of each bin; `None` where bins have one sample.
fn range(clock: &Clock, bins: &[Option<Bin>], scale: f64, name: &str, fill: &str) -> Option<Value> {
    bins.iter()
        .flatten()
        .any(|bin| bin.low < bin.high)
        .then(|| {
            let places: Vec<(f64, Bin)> = clock
                .middles(bins.len())
                .into_iter()
                .zip(bins)
                .filter_map(|(x, bin)| Some((x, (*bin)?)))
                .collect();
            let there = places.iter().map(|(x, bin)| (*x, rounded(bin.low * scale)));
            let back = places
                .iter()
                .rev()
                .map(|(x, bin)| (*x, rounded(bin.high * scale)));
            let (x, y): (Vec<f64>, Vec<f64>) = there.chain(back).unzip();
            json!({
                "type": "scatter", "mode": "lines", "x": x, "y": y, "fill": "toself",
                "fillcolor": fill, "line": {"width": 0}, "hoverinfo": "skip",
                "meta": name,
            })
        })
}

/// Adds the lines of the array's rates, in bytes or, where these were not counted, in requests.
/// Returns the unit, which is empty where neither was sampled.
fn reads_and_writes(
    own: &Timeline<'_>,
    clock: &Clock,
    traces: &mut Vec<Value>,
    legend: &mut Vec<Key>,
) -> &'static str {
    let pairs = [
        (
            names::READ_BYTES_PER_SECOND,
            names::WRITE_BYTES_PER_SECOND,
            1e-6,
            "MB/s (10⁶ bytes)",
        ),
        (names::READ_IOPS, names::WRITE_IOPS, 1.0, "iops"),
    ];
    let sampled = |name: &str| own.lines.contains_key(name);
    let mut pairs = pairs.into_iter();
    let Some((reads, writes, scale, unit)) = pairs.find(|it| sampled(it.0) || sampled(it.1)) else {
        return "";
    };
    for (name, label, which) in [(reads, "read", READ), (writes, "write", WRITE)] {
        let Some(bins) = own.lines.get(name) else {
            continue;
        };
        let fill = Look(which).tint(0.18);
        traces.extend(range(clock, bins, scale, label, &fill));
        let look = json!({"color": Look(which).colour(), "width": 1.6});
        traces.push(line(clock, bins, scale, label, &look));
        legend.push(Key::new(label, Look(which).chip()));
    }
    unit
}

/// The chart of the array's rates, sync, events and jobs; `None` where none was sampled.
fn array(own: &Timeline<'_>, clock: &Clock, number: usize, title: &str) -> Option<Figure> {
    let (mut traces, mut legend) = (Vec::new(), Vec::new());
    let unit = reads_and_writes(own, clock, &mut traces, &mut legend);
    let sync = own.lines.get(names::SYNC_PERCENT);
    if let Some(bins) = sync {
        let look = json!({"color": "theme:muted", "width": 2, "dash": "dash"});
        let mut trace = line(clock, bins, 1.0, "synced, %", &look);
        trace["yaxis"] = json!(if unit.is_empty() { "y" } else { "y2" });
        traces.push(trace);
        legend.push(Key::new("synced, %", dashed()));
    }
    if traces.is_empty() {
        return None;
    }
    let top = room_of_labels(own, clock);
    let (shapes, labels) = marks(own, clock);
    let mut layout = json!({
        "xaxis": clock.axis(), "yaxis": y_axis(""), "shapes": shapes, "annotations": labels,
        "margin": {"l": 44, "r": 20, "t": top, "b": 48},
    });
    if unit.is_empty() {
        layout["yaxis"]["range"] = json!([0.0, 102.0]);
    } else if sync.is_some() {
        layout["yaxis2"] = right_axis("synced, %", Some([0.0, 102.0]));
    }
    let shaded = "Shaded columns: jobs. Shaded around a line: from the lowest to the highest sample of a bin.";
    Some(Figure {
        id: format!("timeline-{number}"),
        title: format!("Time line: {title}"),
        caption: format!(
            "Means over bins of {}. {shaded} Upright marks: events.",
            clock.bin_words()
        ),
        unit: if unit.is_empty() {
            "synced, %".to_owned()
        } else {
            format!("{unit}, more is better")
        },
        wide: true,
        scales: !unit.is_empty(),
        legend,
        panels: vec![Panel {
            id: format!("timeline-{number}-0"),
            title: String::new(),
            height: 300 + top,
            plot: json!({"data": traces, "layout": layout}),
        }],
    })
}

/// The height in pixels above the plot that the slanted labels of events take.
fn room_of_labels(own: &Timeline<'_>, clock: &Clock) -> usize {
    let groups = events_together(&own.events, clock);
    let lines = groups.iter().map(|near| near.len()).max().unwrap_or(0);
    let words = own.events.iter().map(|event| event_words(event));
    let longest = words.map(|words| words.chars().count()).max().unwrap_or(0);
    (14 + 6 * longest + 8 * lines).min(150)
}

/// The dashed line of the progress, as SVG.
fn dashed() -> String {
    "<svg class=\"stroke\" viewBox=\"0 0 30 12\" aria-hidden=\"true\"><path class=\"dashed\" d=\"M0 6H30\"/></svg>".to_owned()
}

/// Bands of jobs and marks of events, with their labels.
fn marks(own: &Timeline<'_>, clock: &Clock) -> (Vec<Value>, Vec<Value>) {
    let (mut shapes, mut labels) = (Vec::new(), Vec::new());
    for (place, job) in own.jobs.iter().enumerate() {
        let (from, to) = (clock.at(job.from_ns), clock.at(job.to_ns));
        shapes.push(json!({
            "type": "rect", "xref": "x", "yref": "paper", "x0": from, "x1": to, "y0": 0, "y1": 1,
            "fillcolor": "theme:band", "line": {"width": 0}, "layer": "below",
            "opacity": if place % 2 == 0 { 1.0 } else { 0.55 },
        }));
        if to - from >= NAMED_BAND * clock.end {
            labels.push(json!({
                "text": job.name, "x": (from + to) / 2.0, "xref": "x", "y": 0, "yref": "paper",
                "yanchor": "bottom", "showarrow": false, "textangle": -90,
                "font": {"size": 10, "color": "theme:muted"},
            }));
        }
    }
    for near in events_together(&own.events, clock) {
        let texts: Vec<String> = near.iter().map(|event| event_words(event)).collect();
        for event in near {
            let at = clock.at(event.at_ns);
            shapes.push(mark_line(at));
        }
        labels.push(json!({
            "text": texts.join("<br>"), "x": clock.at(near[0].at_ns), "xref": "x", "xanchor": "center",
            "y": 1, "yref": "paper", "yanchor": "bottom", "showarrow": false, "textangle": -60,
            "align": "left", "font": {"size": 11, "color": "theme:ink"},
            "hovertext": near.iter().map(|event| event.text.as_str()).collect::<Vec<_>>().join("<br>"),
        }));
    }
    (shapes, labels)
}

/// Groups events that are so near to each other that they share a label.
fn events_together<'e, 'a>(
    events: &'e [&'a EventRecord],
    clock: &Clock,
) -> Vec<&'e [&'a EventRecord]> {
    let mut all = Vec::new();
    let mut from = 0;
    for place in 1..=events.len() {
        let ends = events.get(place).is_none_or(|event| {
            clock.at(event.at_ns) - clock.at(events[from].at_ns) > SHARED_LABEL * clock.end
        });
        if ends {
            all.push(&events[from..place]);
            from = place;
        }
    }
    all
}

/// The chart of the bytes that each member moved, with temperatures where there are any.
fn members(own: &Timeline<'_>, clock: &Clock, number: usize, title: &str) -> Option<Figure> {
    let quantities = [
        (
            "read_bytes_per_second",
            "write_bytes_per_second",
            1e-6,
            "MB/s, reads and writes",
        ),
        ("read_iops", "write_iops", 1.0, "iops, reads and writes"),
    ];
    let line_of = |slot: usize, what: &str| own.lines.get(names::member(slot, what).as_str());
    let slots: Vec<usize> = (0..MOST_MEMBERS).collect();
    let quantity = quantities.iter().find(|(reads, writes, _, _)| {
        slots
            .iter()
            .any(|slot| line_of(*slot, reads).or(line_of(*slot, writes)).is_some())
    })?;
    let (reads, writes, scale, unit) = quantity;
    let (mut traces, mut legend, mut warm) = (Vec::new(), Vec::new(), false);
    for slot in slots {
        let name = format!("member {slot}");
        let own_look = Look(slot);
        let look = |dash: &str, width: f64| json!({"color": own_look.colour(), "width": width, "dash": dash});
        let moved = match (line_of(slot, reads), line_of(slot, writes)) {
            (Some(reads), Some(writes)) => sum(reads, writes),
            (Some(one), None) | (None, Some(one)) => one.clone(),
            (None, None) => continue,
        };
        traces.push(line(
            clock,
            &moved,
            *scale,
            &name,
            &look(own_look.dash(), 1.6),
        ));
        legend.push(Key::new(&name, own_look.chip()));
        if let Some(bins) = line_of(slot, "temperature_celsius") {
            traces.push(temperature(clock, bins, &name, &look("dot", 1.4)));
            warm = true;
        }
    }
    let mut layout = json!({
        "xaxis": clock.axis(), "yaxis": y_axis(""), "margin": {"l": 44, "r": 20, "t": 12, "b": 48},
    });
    let mut caption = format!(
        "Reads and writes together, means over bins of {}.",
        clock.bin_words()
    );
    if warm {
        layout["yaxis2"] = right_axis("°C", None);
        caption.push_str(" Dotted: temperature.");
    }
    Some(Figure {
        id: format!("timeline-members-{number}"),
        title: format!("Members: {title}"),
        caption,
        unit: (*unit).to_owned(),
        wide: true,
        legend,
        panels: vec![Panel {
            id: format!("timeline-members-{number}-0"),
            title: String::new(),
            height: 250,
            plot: json!({"data": traces, "layout": layout}),
        }],
        ..Figure::default()
    })
}

/// A member's temperature, on the axis to the right.
fn temperature(clock: &Clock, bins: &[Option<Bin>], member: &str, look: &Value) -> Value {
    let mut trace = line(clock, bins, 1.0, member, look);
    trace["yaxis"] = json!("y2");
    trace["name"] = json!(format!("{member}, temperature"));
    trace["mode"] = json!("lines");
    trace
}

/// The sum of two lines; a gap in one is a gap.
fn sum(a: &[Option<Bin>], b: &[Option<Bin>]) -> Vec<Option<Bin>> {
    let add = |(a, b): (&Option<Bin>, &Option<Bin>)| {
        let (a, b) = ((*a)?, (*b)?);
        Some(Bin {
            low: a.low + b.low,
            mean: a.mean + b.mean,
            high: a.high + b.high,
        })
    };
    a.iter().zip(b).map(add).collect()
}

#[cfg(test)]
mod tests;
