//! The distribution of each job's latencies, from the stored histograms: the share of the requests
//! that took at most so long.

use super::Figure;
use super::bars::row_title;
use super::lines::{Along, Group, Line, Lines, Point, Values, lines_of};
use super::look::{MOST_LINES, hover};
use super::scale::Scale;
use crate::compute::headline::class_title;
use crate::compute::view::{Row, View};
use crate::data::RunData;
use crate::format::figure;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;

/// The percentages at which a curve is drawn.
const PERCENTS: [f64; 31] = [
    0.1, 0.5, 1.0, 2.0, 3.5, 5.0, 7.5, 10.0, 15.0, 20.0, 25.0, 30.0, 35.0, 40.0, 45.0, 50.0, 55.0,
    60.0, 65.0, 70.0, 75.0, 80.0, 85.0, 90.0, 92.5, 95.0, 97.5, 99.0, 99.5, 99.9, 100.0,
];

/// A figure for each class whose histograms are stored, a panel for each job. With more subjects
/// than colours there is no figure: their percentiles are drawn as bars.
pub(super) fn figures(data: &RunData, view: &View<'_>) -> Vec<Figure> {
    if view.names.len() > MOST_LINES {
        return Vec::new();
    }
    let classes = view.classes().into_iter().enumerate();
    classes
        .flat_map(|(number, class)| class_figures(data, view, number, class))
        .collect()
}

fn class_figures(data: &RunData, view: &View<'_>, number: usize, class: &str) -> Vec<Figure> {
    let rows = view.main_rows().filter(|row| row.head.class == class);
    let groups: Vec<Group> = rows
        .map(|row| Group {
            title: row_title(view, row),
            lines: lines(view, row),
        })
        .filter(|group| group.lines.iter().any(|line| !line.points.is_empty()))
        .collect();
    let points = groups.iter().flat_map(|group| &group.lines);
    let times = points.flat_map(|line| line.points.iter().map(|point| point.x));
    let Some(scale) = Scale::of_ratios(times) else {
        return Vec::new();
    };
    let mut groups = groups;
    if let [only] = groups.as_mut_slice() {
        only.title.clear();
    }
    Lines {
        id: format!("distribution-{number}"),
        title: format!("{}: spread of latencies", class_title(data, class)),
        unit: "percent of the requests that took at most so long".to_owned(),
        along: Along::Axis(scale.lying_axis("latency, ms (log scale)", 215.0)),
        groups,
        values: Values::Percent,
        band_words: String::new(),
        caption: "Farther to the left is better; a steep line is an even one.".to_owned(),
        marks: Vec::new(),
    }
    .figures()
}

fn lines(view: &View<'_>, row: &Row<'_>) -> Vec<Line> {
    lines_of(view, |column, name| {
        let cell = row.cells[column];
        let struck = cell.is_some_and(|cell| cell.fatal);
        let histogram = cell.and_then(|cell| decoded(&cell.m.latency.histogram));
        let points = histogram.into_iter().flat_map(|histogram| {
            PERCENTS.map(|percent| {
                let ms = histogram.value_at_percentile(percent) as f64 / 1e6;
                let text = format!("{percent} % took at most {} ms", figure(ms));
                Point {
                    x: ms,
                    y: percent,
                    band: (percent, percent),
                    published: None,
                    text: hover(name, &row.label, &text),
                    struck,
                }
            })
        });
        points.filter(|point| point.x > 0.0).collect()
    })
}

/// Decodes a stored histogram; `None` for a missing or empty one, and one that cannot be read, as a
/// foreign store may hold.
fn decoded(bytes: &[u8]) -> Option<Histogram<u64>> {
    if bytes.is_empty() {
        return None;
    }
    let histogram = Deserializer::new()
        .deserialize::<u64, _>(&mut &*bytes)
        .ok()?;
    (!histogram.is_empty()).then_some(histogram)
}

#[cfg(test)]
mod tests {
    use super::{decoded, figures};
    use crate::compute::view::View;
    use crate::sample;
    use hdrhistogram::Histogram;
    use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};

    fn stored(values: impl Iterator<Item = u64>) -> Vec<u8> {
        let mut histogram = Histogram::<u64>::new(3).unwrap();
        for value in values {
            histogram.record(value).unwrap();
        }
        let mut bytes = Vec::new();
        let written = V2DeflateSerializer::new().serialize(&histogram, &mut bytes);
        written.unwrap();
        bytes
    }

    #[test]
    fn a_stored_histogram_becomes_a_curve_in_milliseconds() {
        let mut data = sample::data();
        data.measurements = vec![sample::cell("md", 0)];
        data.measurements[0].latency.histogram = stored((1..=1000).map(|n| n * 1_000_000));
        let view = View::new(&data);
        let all = figures(&data, &view);
        let line = &all[0].panels[0].plot["data"][0];
        let percents = line["y"].as_array().unwrap();
        let middle = percents.iter().position(|y| y == 50.0).unwrap();
        let ms = line["x"][middle].as_f64().unwrap();
        assert!((ms - 500.0).abs() < 1.0, "{ms}");
    }

    #[test]
    fn what_the_audit_struck_out_is_no_line() {
        let mut data = sample::data();
        data.measurements = vec![sample::cell("md", 0)];
        data.measurements[0].latency.histogram = stored((1..=1000).map(|n| n * 1_000_000));
        let struck = |data: &crate::data::RunData| {
            let view = View::new(data);
            let all = figures(data, &view);
            let traces = all[0].panels[0].plot["data"].as_array().unwrap().clone();
            traces.iter().all(|trace| trace["marker"]["symbol"] == "x")
        };
        assert!(!struck(&data));
        data.findings = sample::bench().findings;
        data.findings.truncate(1);
        data.findings[0].severity = raidlab_store::Severity::Fatal;
        data.findings[0].scope = raidlab_store::Scope::default();
        (data.findings[0].op, data.findings[0].part) = (None, String::new());
        assert!(struck(&data));
    }

    #[test]
    fn what_is_no_histogram_is_no_curve() {
        assert!(decoded(&[]).is_none());
        assert!(decoded(b"no histogram at all").is_none());
        assert!(decoded(&stored(std::iter::empty())).is_none());
        let mut cut = stored(1..=100);
        cut.truncate(cut.len() / 2);
        assert!(decoded(&cut).is_none());
    }
}
