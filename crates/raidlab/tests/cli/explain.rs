//! What `raidlab explain` prints, and what it refuses.

use crate::lab::Lab;
use serde_json::Value;

const SUITE: &str = r#"schema = 1
name = "deep"
title = "deep"
description = "A disk and a mirror at two depths."
source = "this test"
disks = ["p5520", "p5520"]
processor = "server-2021"
subjects = ["disk", { subject = "md-raid1-clean", name = "mirror" }]

[[step]]
matrix = { depth = [1, 16] }
job = "read-{depth}"
title = "random read 4 KiB, queue depth {depth}"
class = "random-read"
fio = "--rw=randread --bs=4k --iodepth={depth} --filesize=10g --time_based --runtime=100ms --direct=1 --norandommap"
"#;

#[test]
fn the_places_add_up_to_the_mean_latency() {
    let lab = Lab::new();
    lab.write("deep.toml", SUITE);
    let rows = lab.ok("run ./deep.toml --no-report --json");
    let rows: Vec<Value> = rows
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let mut seen = 0;
    for job in ["read-1", "read-16"] {
        let lines = lab.ok(&["explain", "latest", job, "--json"]);
        for line in lines.lines() {
            let one: Value = serde_json::from_str(line).expect("JSON");
            let row = rows
                .iter()
                .find(|row| row["subject"] == one["subject"] && row["job"] == job)
                .expect("the run has the row");
            assert_eq!(one["runtime_ns"], row["runtime_ns"], "the same run");
            let places = one["time_ns"].as_object().expect("places");
            let sum: f64 = places.values().filter_map(Value::as_f64).sum();
            let mean = row["latency"]["mean_ns"].as_f64().expect("a latency");
            // Requests in flight at the end are cut off.
            assert!((sum / mean - 1.0).abs() < 0.02, "{sum} of {mean}: {line}");
            assert!(places["medium"].as_f64() > Some(40e3), "{line}");
            assert!(one["cpu_busy_percent"].as_f64() > Some(0.0), "{line}");
            seen += 1;
        }
    }
    assert_eq!(seen, 4);
    let table = lab.ok("explain latest read-1 --subject mirror");
    for expected in [" medium ", " switch ", "percent of one core: jobs"] {
        assert!(table.contains(expected), "{expected}: {table}");
    }
    assert!(!table.contains("disk"), "one subject alone: {table}");
}

#[test]
fn what_is_not_there_is_named() {
    let lab = Lab::new();
    lab.write("deep.toml", SUITE);
    lab.ok("run ./deep.toml --no-report");
    let error = lab.fails(2, "explain latest read-2");
    assert!(error.contains("no job `read-2`"), "{error}");
    let error = lab.fails(2, "explain latest read-1 --subject miror");
    assert!(error.contains("did you mean `mirror`?"), "{error}");
    let error = lab.fails(2, "run ./deep.toml --processor nass --no-report");
    assert!(error.contains("did you mean `nas`?"), "{error}");
}
