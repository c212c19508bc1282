//! Charts along a quantity that the jobs vary: figures, and latencies.

use super::Figure;
use super::lines::{Along, Group, Line, Lines, Point, Values, lines_of};
use super::look::{MOST_LINES, hover};
use crate::compute::headline::class_title;
use crate::compute::shape::{self, Job, Ladder, Load, Parameter};
use crate::compute::view::View;
use crate::data::RunData;
use crate::format::{figure, percentiles_ms};
use raidlab_units::grouped;

/// The names of the percentiles, in the order of `percentiles_ms`.
const PERCENTILES: [&str; 4] = ["median", "90 %", "99 %", "99.9 %"];

/// Ladders of one class that differ only in a second quantity, one for each panel.
struct Family<'v, 'a> {
    ladders: Vec<(String, Ladder<'v, 'a>)>,
}

impl<'v, 'a> Family<'v, 'a> {
    fn first(&self) -> &Ladder<'v, 'a> {
        &self.ladders[0].1
    }

    /// The steps of all ladders, in the order of the values.
    fn steps(&self) -> Vec<(f64, String)> {
        let mut steps: Vec<(f64, String)> = Vec::new();
        for (number, _) in self.ladders.iter().flat_map(|(_, ladder)| &ladder.steps) {
            let known = |step: &(f64, String)| step.0 == number.value;
            if !steps.iter().any(known) {
                steps.push((number.value, number.text.clone()));
            }
        }
        steps.sort_by(|a, b| a.0.total_cmp(&b.0));
        steps
    }

    fn along(&self) -> Along {
        let parameter = &self.first().parameter;
        // Shares are not drawn by ratios, as they are parts of one whole.
        let ratios = *parameter != Parameter::ReadShare;
        Along::Steps(parameter.axis(), self.steps(), ratios)
    }

    fn id(&self, data_classes: &[&str]) -> String {
        let first = self.first();
        let class = data_classes.iter().position(|class| *class == first.class);
        let what = match first.load {
            Load::Read => "reads",
            Load::Write => "writes",
            Load::Mixed => "mixed",
        };
        format!("{}-{what}", class.unwrap_or(0))
    }

    fn title(&self, data: &RunData, what: &str) -> String {
        let first = self.first();
        let class = class_title(data, first.class);
        match &first.parameter {
            // The caption explains what N is.
            Parameter::Named(_) => format!("{class}: {what}"),
            parameter => format!("{class}: {what} by {}", parameter.name()),
        }
    }
}

/// Groups the ladders into figures, with their panels' titles.
fn families<'v, 'a>(all: Vec<Ladder<'v, 'a>>) -> Vec<Family<'v, 'a>> {
    let families = grouped(all.into_iter().map(|one| {
        let kind = (
            one.class,
            one.load,
            one.parameter.clone(),
            one.in_megabytes(),
        );
        (kind, (String::new(), one))
    }));
    let families = families.into_iter().map(|(_, ladders)| Family { ladders });
    let mut families: Vec<Family<'v, 'a>> = families.collect();
    for family in &mut families {
        if family.ladders.len() < 2 {
            continue;
        }
        let parameters = [
            Parameter::QueueDepth,
            Parameter::BlockSize,
            Parameter::Streams,
            Parameter::ReadShare,
        ];
        let differs = |parameter: &&Parameter| {
            let value = |ladder: &Ladder<'_, '_>| ladder.fixed(parameter);
            let first = value(family.first());
            *parameter != &family.first().parameter
                && family.ladders.iter().any(|(_, own)| value(own) != first)
        };
        let varied: Vec<&Parameter> = parameters.iter().filter(differs).collect();
        let titles: Vec<String> = family
            .ladders
            .iter()
            .map(|(_, ladder)| {
                let words = varied.iter().map(|own| own.words(ladder.fixed(own)));
                words.collect::<Vec<_>>().join(", ")
            })
            .collect();
        for ((title, _), words) in family.ladders.iter_mut().zip(titles) {
            *title = words;
        }
    }
    families
}

/// Rates along each ladder, and their latencies.
pub(super) fn figures(data: &RunData, view: &View<'_>) -> (Vec<Figure>, Vec<Figure>) {
    let classes = view.classes();
    let (mut rates, mut latencies) = (Vec::new(), Vec::new());
    for (number, family) in families(shape::ladders(view)).into_iter().enumerate() {
        let id = format!("{number}-{}", family.id(&classes));
        rates.extend(rate_figures(data, view, &family, &id));
        latencies.extend(latency_figures(data, view, &family, &id));
    }
    (rates, latencies)
}

/// A line for each subject, with a point for each step that it has.
fn steps(
    view: &View<'_>,
    ladder: &Ladder<'_, '_>,
    point: impl Fn(&str, &Job<'_, '_>, usize, f64, &str) -> Option<Point>,
) -> Vec<Line> {
    lines_of(view, |column, name| {
        let steps = ladder.steps.iter().filter_map(|(number, job)| {
            let at = match &ladder.parameter {
                Parameter::BlockSize => format!("blocks of {}", number.text),
                Parameter::Named(_) => format!("N = {}", number.text),
                parameter => parameter.words(number.value),
            };
            point(name, job, column, number.value, &at)
        });
        steps.collect()
    })
}

fn rate_figures(data: &RunData, view: &View<'_>, family: &Family<'_, '_>, id: &str) -> Vec<Figure> {
    let megabytes = family.first().in_megabytes();
    let unit = if megabytes { "MB/s" } else { "iops" };
    let point = |name: &str, job: &Job<'_, '_>, column: usize, x: f64, at: &str| {
        let own = job.figure(column, megabytes)?;
        Some(rate_point(name, job, &own, x, at, unit))
    };
    let groups = family.ladders.iter().map(|(title, ladder)| Group {
        title: title.clone(),
        lines: steps(view, ladder, point),
    });
    let what = match (family.first().load, megabytes) {
        (Load::Mixed, _) => "reads and writes together".to_owned(),
        (load, true) => format!("throughput of {}", load.name()),
        (load, false) => load.name().to_owned(),
    };
    let title = family.title(data, &what);
    Lines {
        id: format!("along-{id}"),
        title,
        unit: unit_words(megabytes).to_owned(),
        along: family.along(),
        groups: groups.collect(),
        values: Values::Rates,
        band_words: view.band_words("Shaded"),
        caption: family.first().parameter.explanation(),
        marks: Vec::new(),
    }
    .figures()
}

/// A job's figure as a point.
pub(super) fn rate_point(
    name: &str,
    job: &Job<'_, '_>,
    own: &shape::Figure<'_>,
    x: f64,
    at: &str,
    unit: &str,
) -> Point {
    let published = own.published.map_or_else(String::new, |value| {
        let source = own.cell.m.published.first();
        let source =
            source.map_or_else(String::new, |f| format!("{}, {}", f.source, f.reliability));
        format!("<br>published {} {unit} ({source})", figure(value))
    });
    let value = figure(own.value);
    Point {
        x,
        y: own.value,
        band: own.band,
        published: own.published.map(|value| (x, value)),
        text: hover(
            name,
            &job.head().head.job,
            &format!("{at}: {value} {unit}{published}"),
        ),
        struck: own.struck,
    }
}

/// The unit in words: `MB/s (10⁶ bytes), more is better`.
pub(super) fn unit_words(megabytes: bool) -> &'static str {
    if megabytes {
        "MB/s (10⁶ bytes), more is better"
    } else {
        "iops, more is better"
    }
}

/// A panel for each percentile of each panel's ladder.
fn latency_figures(
    data: &RunData,
    view: &View<'_>,
    family: &Family<'_, '_>,
    id: &str,
) -> Vec<Figure> {
    // Four percentiles would be too many for many panels, or for many subjects with a panel each.
    let few = view.names.len() <= MOST_LINES && family.ladders.len() == 1;
    let ranks: &[usize] = if few { &[0, 1, 2, 3] } else { &[0, 2] };
    let mut groups = Vec::new();
    for &rank in ranks {
        let percentile = PERCENTILES[rank];
        let point = |name: &str, job: &Job<'_, '_>, column: usize, x: f64, at: &str| {
            let row = job.head();
            let cell = row.cells[column].filter(|cell| cell.m.latency.is_recorded())?;
            let ms = percentiles_ms(&cell.m.latency)[rank];
            let text = format!("{at}: {percentile} {} ms", figure(ms));
            (ms > 0.0).then(|| Point {
                x,
                y: ms,
                band: (ms, ms),
                published: None,
                text: hover(name, &row.label, &text),
                struck: cell.fatal,
            })
        };
        let ladders = family.ladders.iter();
        for (title, ladder) in ladders.filter(|(_, own)| own.load != Load::Mixed) {
            groups.push(Group {
                title: if title.is_empty() {
                    percentile.to_owned()
                } else {
                    format!("{percentile}, {title}")
                },
                lines: steps(view, ladder, point),
            });
        }
    }
    Lines {
        id: format!("latency-{id}"),
        title: family.title(data, "latency"),
        unit: "latency, ms, less is better".to_owned(),
        along: family.along(),
        groups,
        values: Values::Times,
        band_words: String::new(),
        caption: format!(
            "Each panel says how many percent of the requests were faster; of the median it is \
             half of them. {}",
            family.first().parameter.explanation()
        )
        .trim_end()
        .to_owned(),
        marks: Vec::new(),
    }
    .figures()
}
