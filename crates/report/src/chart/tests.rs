use super::lines::{Along, Group, Line, Lines, Point, Values};
use super::look::Look;
use super::{Figure, error_figure, figures};
use crate::compute::view::View;
use crate::data::RunData;
use crate::format::figure as figure_in_words;
use crate::sample;
use raidlab_store::{DiskBand, Finding, Measurement, Operation, Scope, Severity};
use serde_json::{Value, json};

fn all(data: &RunData) -> Vec<Figure> {
    let view = View::new(data);
    let mut all = figures(data, &view);
    all.extend(error_figure(data, &view));
    all
}

fn named(data: &RunData, title: &str) -> Figure {
    let mut all = all(data);
    let titles: Vec<String> = all.iter().map(|figure| figure.title.clone()).collect();
    all.retain(|figure| figure.title == title);
    assert_eq!(all.len(), 1, "{title} of {titles:?}");
    all.swap_remove(0)
}

fn traces(figure: &Figure, panel: usize) -> &Vec<Value> {
    figure.panels[panel].plot["data"].as_array().unwrap()
}

#[test]
fn the_charts_of_the_2015_suite() {
    let data = sample::data();
    let titles: Vec<String> = all(&data).into_iter().map(|f| f.title).collect();
    assert_eq!(
        titles,
        [
            "Random reads: reads by queue depth",
            "Rates during a sync",
            "Reads by number of streams",
            "Writes of large blocks",
            "Writes of small blocks",
            "Mixed reads and writes",
            "Random reads: latency by queue depth",
            "Latencies of jobs that stand alone",
            "Which member served the reads",
            "Every error against the published figures",
        ]
    );
}

#[test]
fn a_curve_has_line_band_and_published_markers() {
    let data = sample::data();
    let figure = named(&data, "Random reads: reads by queue depth");
    let own = traces(&figure, 0)
        .iter()
        .filter(|trace| trace["meta"] == "md");
    let own: Vec<&Value> = own.collect();
    assert_eq!(own.len(), 3);
    let band = own.iter().find(|trace| trace["fill"] == "toself").unwrap();
    assert_eq!(band["x"].as_array().unwrap().len(), 20);
    let published = own.iter().find(|trace| trace["mode"] == "markers").unwrap();
    assert_eq!(published["y"][3], json!(199.0));
    assert_eq!(figure.panels[0].plot["layout"]["xaxis"]["type"], "log");
    let names: Vec<&str> = figure.legend.iter().map(|key| key.name.as_str()).collect();
    assert_eq!(names, ["md", "gflash", "gmirror", "zfs", "published"]);
}

#[test]
fn every_figure_says_unit_and_direction() {
    let data = sample::data();
    for (title, unit) in [
        ("Random reads: reads by queue depth", "iops, more is better"),
        ("Rates during a sync", "iops, more is better"),
        (
            "Reads by number of streams",
            "MB/s (10⁶ bytes), more is better",
        ),
        ("Writes of small blocks", "iops, more is better, log scale"),
        (
            "Random reads: latency by queue depth",
            "latency, ms, less is better, log scale",
        ),
    ] {
        assert_eq!(named(&data, title).unit, unit, "{title}");
    }
}

#[test]
fn a_tick_stands_on_its_bar() {
    let data = sample::data();
    let figure = named(&data, "Reads by number of streams");
    for name in ["md", "gflash", "gmirror", "zfs"] {
        let own = traces(&figure, 0)
            .iter()
            .filter(|trace| trace["meta"] == name);
        let own: Vec<&Value> = own.collect();
        assert_eq!(
            (own[0]["type"].as_str(), own[1]["type"].as_str()),
            (Some("bar"), Some("scatter"))
        );
        assert_eq!(own[0]["y"], own[1]["y"]);
    }
}

#[test]
fn every_bar_has_a_name_and_its_value() {
    let data = sample::data();
    let figure = named(&data, "Mixed reads and writes");
    let layout = &figure.panels[0].plot["layout"];
    assert_eq!(layout["yaxis"]["ticktext"], json!(["16 read", "16 write"]));
    assert_eq!(layout["annotations"].as_array().unwrap().len(), 8);
    assert_eq!(figure.legend.iter().filter(|key| key.series).count(), 4);
}

#[test]
fn a_whisker_reaches_from_the_lowest_to_the_highest_fit() {
    let data = sample::data();
    let figure = named(&data, "Mixed reads and writes");
    let bar = &traces(&figure, 0)[0];
    let above = bar["error_x"]["array"][0].as_f64().unwrap();
    // The sample's second fit is 2.5 % of the published 158 above the first.
    assert!((above - 3.95).abs() < 1e-9, "{above}");
    assert_eq!(bar["error_x"]["arrayminus"][0], json!(0.0));
}

/// As of drives that nobody fitted, one array of which is a hundred times as fast as the other.
#[test]
fn a_whisker_is_whole_on_a_logarithmic_scale() {
    let mut data = sample::data();
    let cells = [("md", 100.0), ("zfs", 10_000.0)].map(|(subject, iops)| {
        let mut m = sample::cell(subject, 0);
        m.iops = iops;
        m.published.clear();
        m.disk_band = Some(DiskBand {
            low: 0.1,
            high: 1.5,
            ratio: 2.0,
        });
        m
    });
    data.measurements = cells.to_vec();
    let mut all = all(&data).into_iter();
    let figure = all.find(|figure| figure.id.starts_with("bars-")).unwrap();
    let axis = &figure.panels[0].plot["layout"]["xaxis"];
    assert_eq!(axis["type"], "log");
    // The lowest whisker ends at 10.
    assert!(axis["range"][0].as_f64().unwrap() <= 1.0, "{axis}");
}

#[test]
fn disputed_figures_are_not_among_the_errors() {
    let data = sample::data();
    let figure = named(&data, "Every error against the published figures");
    let gflash = traces(&figure, 0)
        .iter()
        .filter(|trace| trace["meta"] == "gflash");
    let dots: usize = gflash
        .map(|trace| trace["x"].as_array().unwrap().len())
        .sum();
    // 30 rows, 9 of them disputed.
    assert_eq!(dots, 21);
    assert_eq!(
        figure.panels[0].plot["layout"]["shapes"][0]["x1"],
        json!(4.0)
    );
}

#[test]
fn an_error_beyond_the_edge_stands_there_with_its_number() {
    let mut m = sample::cell("md", 0);
    m.iops = 10.0 * m.published[0].iops;
    let mut unpublished = sample::cell("ours", 0);
    unpublished.published.clear();
    let mut data = sample::data();
    data.measurements = vec![unpublished, m];
    let figure = named(&data, "Every error against the published figures");
    let traces = traces(&figure, 0);
    assert!(traces.iter().all(|trace| trace["meta"] != "ours"));
    assert_eq!(traces[0]["x"], json!([50.0]));
    assert_eq!(traces[0]["text"], json!(["+900\u{a0}%"]));
}

#[test]
fn published_figures_stand_at_their_own_sync_progress() {
    let mut data = sample::data();
    for m in &mut data.measurements {
        for percent in m.sync_percent_start.iter_mut() {
            *percent += 3.0;
        }
    }
    let figure = named(&data, "Rates during a sync");
    let mut traces = traces(&figure, 0).iter();
    let published = traces.find(|trace| trace["mode"] == "markers").unwrap();
    assert_eq!(published["x"][1], json!(16.0));
}

#[test]
fn copying_that_has_just_begun_fills_the_width() {
    let mut data = sample::data();
    data.measurements.retain(|m| m.sync_percent_start.is_some());
    for m in &mut data.measurements {
        m.published.clear();
        for percent in m.sync_percent_start.iter_mut() {
            *percent /= 100.0;
        }
    }
    let figure = named(&data, "Rates during a sync");
    let last = data
        .measurements
        .iter()
        .filter_map(|m| m.sync_percent_start);
    let last = last.fold(0.0, f64::max);
    let end = &figure.panels[0].plot["layout"]["xaxis"]["range"][1];
    let end = end.as_f64().expect("a number");
    assert!(last < end && end < 1.1 * last, "{last} within {end}");
}

/// Random reads of `subjects` arrays at these depths.
fn many(subjects: usize, depths: &[u32]) -> RunData {
    let mut data = sample::data();
    data.measurements.clear();
    for subject in 0..subjects {
        for (place, depth) in (0..).zip(depths) {
            let mut m: Measurement = sample::cell(&format!("array-{subject}"), place);
            (m.op, m.queue_depth, m.streams) = (Operation::Read, *depth, 1);
            m.published.clear();
            m.iops = 100.0 + 10.0 * (subject + 1) as f64 * f64::from(*depth);
            data.measurements.push(m);
        }
    }
    data
}

#[test]
fn more_lines_than_colours_get_a_panel_each() {
    let title = "Random reads: reads by queue depth";
    let ten = named(&many(10, &[1, 4, 16]), title);
    assert_eq!((ten.panels.len(), ten.legend.len()), (1, 10));
    let eleven = named(&many(11, &[1, 4, 16]), title);
    assert_eq!((eleven.panels.len(), eleven.legend.len()), (11, 0));
    assert_eq!(eleven.panels[10].title, "array-10");
    // Its own line, and the others as one.
    assert_eq!(traces(&eleven, 10).len(), 2);
    let ranges = eleven
        .panels
        .iter()
        .map(|p| &p.plot["layout"]["yaxis"]["range"]);
    assert!(
        ranges
            .clone()
            .all(|range| range == ranges.clone().next().unwrap())
    );
}

#[test]
fn many_subjects_have_their_names_beside_their_bars() {
    let data = many(17, &[1, 16]);
    let figure = named(&data, "Reads of small blocks");
    assert_eq!(figure.panels.len(), 2);
    for panel in &figure.panels {
        let layout = &panel.plot["layout"];
        assert_eq!(layout["yaxis"]["ticktext"].as_array().unwrap().len(), 17);
        assert_eq!(layout["annotations"].as_array().unwrap().len(), 17);
    }
}

#[test]
fn an_outlier_does_not_squeeze_the_rest() {
    let mut data = many(4, &[1, 4, 16]);
    for m in data
        .measurements
        .iter_mut()
        .filter(|m| m.subject == "array-3")
    {
        m.iops = 90_000.0;
    }
    let figure = named(&data, "Random reads: reads by queue depth");
    assert_eq!(figure.panels[0].plot["layout"]["yaxis"]["type"], "log");
    assert_eq!(figure.unit, "iops, more is better, log scale");
}

#[test]
fn a_line_that_another_one_covers_is_broader() {
    let mut data = many(3, &[1, 4, 16]);
    for m in &mut data.measurements {
        m.iops = if m.subject == "array-2" { 50.0 } else { 100.0 };
    }
    let figure = named(&data, "Random reads: reads by queue depth");
    let widths: Vec<&Value> = traces(&figure, 0)
        .iter()
        .map(|t| &t["line"]["width"])
        .collect();
    assert_eq!(widths, [&json!(6), &json!(2), &json!(2)]);
}

#[test]
fn names_at_the_ends_of_lines_are_moved_apart() {
    let mut data = many(9, &[1, 4, 16]);
    for m in &mut data.measurements {
        m.iops = 100.0;
    }
    let figure = named(&data, "Random reads: reads by queue depth");
    let labels = figure.panels[0].plot["roomy"]["annotations"]
        .as_array()
        .unwrap();
    let places: Vec<f64> = labels
        .iter()
        .map(|label| label["y"].as_f64().unwrap())
        .collect();
    assert_eq!(places.len(), 9);
    assert!(
        places.windows(2).all(|pair| pair[1] - pair[0] > 0.04),
        "{places:?}"
    );
    assert!(places[8] <= 1.0);
}

#[test]
fn no_row_is_without_a_chart() {
    for data in [
        sample::data(),
        sample::bench(),
        many(3, &[1, 16]),
        many(1, &[4]),
    ] {
        let view = View::new(&data);
        let text: String = figures(&data, &view)
            .iter()
            .flat_map(|figure| &figure.panels)
            .map(|panel| panel.plot["data"].to_string())
            .collect();
        for row in view.main_rows() {
            let at = text.contains(&format!(", job {}<br>", row.label));
            let by_job = text.contains(&format!(", job {}<br>", row.head.job));
            assert!(at || by_job, "{}", row.label);
        }
    }
}

#[test]
fn series_of_two_classes_are_charts_of_their_own() {
    let mut data = many(1, &[4, 4, 4, 4]);
    for (m, (class, percent)) in data.measurements.iter_mut().zip([
        ("resync", 0.0),
        ("resync", 10.0),
        ("resync-writes", 20.0),
        ("resync-writes", 30.0),
    ]) {
        m.class = class.to_owned();
        m.sync_percent_start = Some(percent);
    }
    for (title, percents) in [
        (
            "Rates during a sync: Random reads during resync",
            [0.0, 10.0],
        ),
        ("Rates during a sync: Resync writes", [20.0, 30.0]),
    ] {
        let figure = named(&data, title);
        let mut traces = traces(&figure, 0).iter();
        let line = traces
            .find(|trace| trace["mode"] == "lines+markers")
            .unwrap();
        assert_eq!(line["x"], json!(percents));
    }
}

#[test]
fn percentiles_that_nobody_told_have_no_marks() {
    let mut data = many(1, &[4]);
    let latency = &mut data.measurements[0].latency;
    (latency.p90_ns, latency.p999_ns) = (0, 0);
    let figure = named(&data, "Latencies of jobs that stand alone");
    let traces = traces(&figure, 0);
    assert_eq!(traces.len(), 1);
    let text = traces[0]["hovertemplate"][0].as_str().unwrap();
    assert!(
        text.contains("90 % -") && text.contains("99.9 % -"),
        "{text}"
    );
}

#[test]
fn what_was_struck_out_does_not_squeeze_the_rest() {
    let line = |place: usize, ys: [f64; 2], struck: bool| Line {
        name: format!("subject {place}"),
        look: Look(place),
        points: [1.0, 4.0]
            .into_iter()
            .zip(ys)
            .map(|(x, y)| Point {
                x,
                y,
                band: (y, y),
                published: None,
                text: y.to_string(),
                struck,
            })
            .collect(),
    };
    let lines = vec![line(0, [80.0, 220.0], false), line(1, [2e4, 8e4], true)];
    let steps = vec![(1.0, "1".to_owned()), (4.0, "4".to_owned())];
    let chart = Lines {
        id: "reads".to_owned(),
        title: "Reads".to_owned(),
        unit: "iops".to_owned(),
        along: Along::Steps("queue depth".to_owned(), steps, false),
        groups: vec![Group {
            title: String::new(),
            lines,
        }],
        values: Values::Rates,
        band_words: String::new(),
        caption: String::new(),
        marks: Vec::new(),
    };
    let figure = chart.figures().swap_remove(0);
    let own = traces(&figure, 0);
    assert_eq!(own[0]["y"], json!([80.0, 220.0]));
    // They stand at the edge, and the box above them says how much it was.
    assert_eq!(own[1]["y"], json!([220.0, 220.0]));
    assert_eq!(own[1]["hovertemplate"], json!(["20000", "80000"]));
    assert!(figure.caption.contains("at an edge"), "{}", figure.caption);
    assert!(!figure.unit.contains("log"), "{}", figure.unit);
}

#[test]
fn bars_that_were_struck_out_do_not_squeeze_the_rest() {
    let mut data = many(2, &[1, 16]);
    for m in (data.measurements.iter_mut()).filter(|m| m.subject == "array-1") {
        m.iops = 90_000.0;
        m.latency.p50_ns = 1;
    }
    let subject = |name: &str| Scope {
        subject: name.to_owned(),
        ..Scope::default()
    };
    data.findings = vec![Finding {
        severity: Severity::Fatal,
        scope: subject("array-1"),
        op: None,
        part: String::new(),
        ..sample::bench().findings.swap_remove(0)
    }];
    let figure = named(&data, "Reads of small blocks");
    let own = traces(&figure, 0);
    assert_eq!(own[0]["x"], json!([110.0, 260.0]));
    // They stand at the edge, and the number beside them says how much it was.
    assert_eq!(own[1]["x"], json!([260.0, 260.0]));
    let beside = &figure.panels[0].plot["layout"]["annotations"];
    assert_eq!(beside[1]["text"], figure_in_words(90_000.0));
    assert!(figure.caption.contains("at the edge"), "{}", figure.caption);
    assert!(!figure.unit.contains("log"), "{}", figure.unit);
    let figure = named(&data, "Latencies of jobs that stand alone");
    let bars = traces(&figure, 0).iter();
    let bases: Vec<&Value> = bars.filter_map(|trace| trace.get("base")).collect();
    assert_eq!(bases.len(), 4);
    assert!(bases.iter().all(|base| *base == bases[0]), "{bases:?}");
}
