//! Arrays of NVMe drives with a processor: what comes out of the rules, and was not set.

mod rows;

use raidlab_lab::{Bench, Choices, Experiment, Suite};
use raidlab_store::Measurement;

fn experiments() -> Vec<Experiment> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/processor.toml");
    let suite = Suite::load(file).expect("a suite");
    let choices = Choices {
        fits: vec!["rated".to_owned()],
        seed: 1,
        ..Choices::default()
    };
    suite.experiments(&suite.subjects, &choices)
}

#[test]
fn workers_have_an_optimum_and_a_larger_stripe_cache_is_heard() {
    let all = experiments();
    let rows: Vec<Measurement> = all[..6]
        .iter()
        .flat_map(|one| rows::of(one).expect("it runs"))
        .collect();
    let row = |subject: &str, job: &str| {
        let found = rows
            .iter()
            .find(|row| row.subject == subject && row.job == job);
        found.expect("it has a row")
    };
    let writes = |workers: u32| row(&format!("workers-{workers}"), "write").iops;
    let rates = [0, 1, 2, 4, 16].map(writes);
    assert!(rates[2] > 1.5 * rates[0], "two workers: {rates:?}");
    assert!(rates[3] > rates[2], "four: {rates:?}");
    assert!(
        rates[4] < 0.95 * rates[3],
        "sixteen are too many: {rates:?}"
    );
    // Handling a stripe four times, under the plug of one thread.
    assert!((30e3..100e3).contains(&rates[0]), "{rates:?}");
    let streams = ["small-cache", "workers-0"].map(|it| row(it, "stream").bytes_per_second);
    assert!(streams[1] > 1.15 * streams[0], "{streams:?}");
    for row in &rows {
        let used = row.cpu_percent.expect("a processor is modelled");
        assert!(
            used > 0.1 && used < 800.0,
            "{} {}: {used}",
            row.subject,
            row.job
        );
    }
}

#[test]
fn what_is_not_known_of_zfs_is_refused() {
    let zfs = experiments().pop().expect("the last one");
    let bench = raidlab_bench_model::ModelBench::default();
    let error = bench.check(&zfs).expect_err("ZFS has no charges");
    let text = raidlab_units::in_one_line(&error);
    assert!(text.contains("no processor for ZFS"), "{text}");
}
