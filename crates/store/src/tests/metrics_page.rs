//! The page of metrics and operations is made from the registries themselves. To make it
//! anew: `RAIDLAB_WRITE_DOCS=1 cargo test -p raidlab-store --lib metrics_page`.

use crate::{Measurement, Metric, Operation};
use std::fmt::Write;

fn page() -> Result<String, std::fmt::Error> {
    let mut page = String::from(
        "# Metrics\n\nWhat a figure of a table counts. A row has one, which its operation and \
         its block size decide; of\nwhat an array copies it has a rate beside the time. Claims \
         and `raidlab compare` call them by these\nnames.\n\n\
         | metric | unit | better | field of exports | what it counts |\n|---|---|---|---|---|\n",
    );
    for metric in Metric::ALL {
        let better = match metric.more_is_better() {
            true => "more",
            false => "less",
        };
        writeln!(
            page,
            "| `{}` | {} | {better} | `{}` | {} |",
            metric.name(),
            metric.unit(),
            metric.field(),
            metric.says()
        )?;
    }
    page.push_str(
        "\nEvery other field of a row, with its unit, is on the page of the\n[command \
         line](command-line.md).\n\n## Operations\n\nWhat was done, as `op` of exports and of \
         files of figures has it.\n\n| operation | what it is | metric |\n|---|---|---|\n",
    );
    for operation in Operation::ALL {
        let row = Measurement {
            op: *operation,
            ..Measurement::blank("model")
        };
        let counts = match row.metric() {
            metric if metric.is_of_jobs() => "`operations` or `rate`".to_owned(),
            metric => format!("`{}`", metric.name()),
        };
        writeln!(page, "| `{operation}` | {} | {counts} |", operation.says())?;
    }
    page.push_str(
        "\nThe page is made from the program's own tables by\n`RAIDLAB_WRITE_DOCS=1 cargo test -p \
         raidlab-store --lib metrics_page`.\n",
    );
    Ok(page)
}

#[test]
fn the_page_of_metrics_is_the_tables() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/reference/metrics.md"
    );
    let page = page().expect("a string takes all");
    if std::env::var_os("RAIDLAB_WRITE_DOCS").is_some() {
        std::fs::write(path, &page).expect("the page is written");
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        written == page,
        "docs/reference/metrics.md is not the tables'"
    );
}
