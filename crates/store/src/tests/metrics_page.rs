//! The page of metrics and operations, against the registries.

use crate::{Measurement, Metric, Operation};

#[test]
fn the_page_of_metrics_has_each_metric_and_each_operation() {
    let page = include_str!("../../../../docs/reference/metrics.md");
    let rows = page.lines().filter_map(|line| {
        let row = line.strip_prefix("| `")?.strip_suffix(" |")?;
        row.split_once("` | ")
    });
    let (names, rest): (Vec<&str>, Vec<&str>) = rows.unzip();
    let metrics = Metric::ALL.iter().map(|metric| metric.name());
    let operations = Operation::ALL.iter().map(|operation| operation.name());
    assert_eq!(names, metrics.chain(operations).collect::<Vec<_>>());
    for (operation, rest) in Operation::ALL.iter().zip(&rest[Metric::ALL.len()..]) {
        let row = Measurement {
            op: *operation,
            ..Measurement::blank("model")
        };
        let counts = match row.metric() {
            metric if metric.is_of_jobs() => "`operations` or `rate`".to_owned(),
            metric => format!("`{}`", metric.name()),
        };
        assert!(rest.ends_with(&counts), "{operation}: {rest}");
    }
}
