//! What other programs get to read.

use super::measurement;
use crate::{Latency, Measurement, to_json_line, write_csv, write_json_lines, write_members_csv};
use serde_json::Value;

#[test]
fn a_json_line_begins_with_what_matters_most() {
    insta::assert_snapshot!(to_json_line(&measurement(8)).unwrap());
}

#[test]
fn a_row_without_published_figure_has_no_published_key() {
    let mut row = measurement(8);
    row.published.clear();
    let value: Value = serde_json::from_str(&to_json_line(&row).unwrap()).unwrap();
    assert!(value.get("published").is_none());
    assert!(value.get("published_error_percent").is_none());
    assert_eq!(value["iops"], 186.0);
}

/// As dd and the articles that quote it tell no operations.
#[test]
fn figures_of_bytes_alone_are_compared_in_exports_as_in_reports() {
    let mut row = measurement(8);
    (row.iops, row.bytes_per_second) = (0.0, 110e6);
    row.published[0].iops = 0.0;
    row.published[0].bytes_per_second = Some(100e6);
    let value: Value = serde_json::from_str(&to_json_line(&row).unwrap()).unwrap();
    assert!(value.get("published").is_none());
    let figure = &value["published_figures"][0];
    assert!(figure["iops"].is_null(), "{figure}");
    assert_eq!(figure["bytes_per_second"], 100e6);
    let error = value["published_error_percent"].as_f64().unwrap();
    assert!((error - 10.0).abs() < 1e-9, "{error}");
    let text = csv_of(row);
    assert_eq!(cell(&text, "published_iops"), Some(""));
    assert_eq!(cell(&text, "published_error_percent"), Some("10.0"));
}

/// dd tells none, bonnie++ the slowest alone, and fio of several jobs no percentiles.
#[test]
fn latencies_that_nobody_told_are_not_zero_in_exports() {
    let mut row = measurement(8);
    row.latency = Latency {
        max_ns: 175,
        ..Latency::default()
    };
    let value: Value = serde_json::from_str(&to_json_line(&row).unwrap()).unwrap();
    let latency = &value["latency"];
    assert_eq!(latency["max_ns"], 175);
    let untold = ["mean_ns", "p50_ns", "p90_ns", "p99_ns", "p999_ns"];
    let text = csv_of(row);
    for name in untold {
        assert!(latency[name].is_null(), "{latency}");
        assert_eq!(cell(&text, &format!("latency_{name}")), Some(""));
    }
    assert_eq!(cell(&text, "latency_max_ns"), Some("175"));
}

fn csv_of(row: Measurement) -> String {
    let mut out = Vec::new();
    write_csv(&mut out, &[row]).unwrap();
    String::from_utf8(out).unwrap()
}

/// The first row's cell in this column.
fn cell<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = text.lines();
    let place = lines.next()?.split(',').position(|own| own == name)?;
    // A title has a comma in it, and quotes around it.
    let cells: Vec<&str> = lines.next()?.rsplit('"').next()?.split(',').collect();
    let behind = text.lines().next()?.split(',').count() - place;
    cells.get(cells.len() - behind).copied()
}

#[test]
fn json_lines_are_one_object_each() {
    let mut row = measurement(0);
    row.job_title = "two\nlines".to_owned();
    let mut out = Vec::new();
    write_json_lines(&mut out, &[row, measurement(1)]).unwrap();
    let text = String::from_utf8(out).unwrap();
    let jobs: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["job"].take())
        .collect();
    assert_eq!(jobs, ["1", "2"]);
}

#[test]
fn csv_has_a_column_for_each_field() {
    let mut none = measurement(1);
    none.published.clear();
    none.sync_percent_start = Some(15.5);
    let mut out = Vec::new();
    write_csv(&mut out, &[measurement(0), none]).unwrap();
    insta::assert_snapshot!(String::from_utf8(out).unwrap());
}

#[test]
fn csv_of_members_has_a_row_for_each() {
    let mut out = Vec::new();
    write_members_csv(&mut out, &[measurement(0)]).unwrap();
    insta::assert_snapshot!(String::from_utf8(out).unwrap());
}

/// As of a directory test whose operations were too quick to be timed.
#[test]
fn a_rate_that_nobody_told_is_absent() {
    let mut row = measurement(0);
    (row.iops, row.bytes_per_second) = (0.0, 0.0);
    let value: Value = serde_json::from_str(&to_json_line(&row).unwrap()).unwrap();
    assert!(value["iops"].is_null() && value["bytes_per_second"].is_null());
    // One that did nothing in its time has a rate of 0.
    let mut idle = row.clone();
    (idle.total_ios, idle.total_bytes, idle.runtime_ns) = (0, 0, 1_000_000_000);
    let value: Value = serde_json::from_str(&to_json_line(&idle).unwrap()).unwrap();
    assert_eq!(
        (&value["iops"], &value["bytes_per_second"]),
        (&0.0.into(), &0.0.into())
    );
    idle.runtime_ns = 0;
    let value: Value = serde_json::from_str(&to_json_line(&idle).unwrap()).unwrap();
    assert!(value["iops"].is_null(), "it had no time");
    let mut out = Vec::new();
    write_csv(&mut out, &[row]).unwrap();
    let text = String::from_utf8(out).unwrap();
    let mut lines = text.lines();
    let place = |line: &str, name| line.split(',').position(|own| own == name).unwrap();
    let head = lines.next().unwrap();
    let behind = head.split(',').count() - place(head, "iops");
    // A title has a comma in it, and quotes around it.
    let cells: Vec<&str> = lines
        .next()
        .unwrap()
        .rsplit('"')
        .next()
        .unwrap()
        .split(',')
        .collect();
    let at = cells.len() - behind;
    assert_eq!(cells[at..at + 2], ["", ""]);
}

#[test]
fn a_run_without_a_row_has_its_columns() {
    let (mut rows, mut members) = (Vec::new(), Vec::new());
    write_csv(&mut rows, &[]).unwrap();
    write_members_csv(&mut members, &[]).unwrap();
    for (own, format) in [
        (rows, crate::output::Format::Rows),
        (members, crate::output::Format::MemberRows),
    ] {
        assert!(format.begins(&own));
        assert_eq!(String::from_utf8(own).unwrap().lines().count(), 1);
    }
}
