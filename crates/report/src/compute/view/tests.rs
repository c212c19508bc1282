use super::{View, matrix_sizes};
use crate::sample;
use raidlab_store::{Finding, Operation, Scope, Severity};

#[test]
fn strict_is_shown_and_the_other_fits_are_the_band() {
    let mut measurements = Vec::new();
    for (fit, iops) in [("joint", 90.0), ("strict", 100.0), ("cost", 110.0)] {
        let mut m = sample::cell("md", 0);
        m.fit = fit.to_owned();
        m.iops = iops;
        measurements.push(m);
    }
    let view = View::of_rows(&measurements);
    let cell = view.rows[0].cells[0].unwrap();
    assert_eq!(cell.m.fit, "strict");
    assert_eq!(cell.band, (90.0, 110.0));
}

#[test]
fn a_job_with_reads_and_writes_has_two_rows_named_so() {
    let mut write = sample::cell("md", 0);
    write.op = Operation::Write;
    let measurements = [write, sample::cell("md", 0), sample::cell("gflash", 1)];
    let view = View::of_rows(&measurements);
    let labels: Vec<_> = view.rows.iter().map(|row| row.label.as_str()).collect();
    assert_eq!(labels, ["1 read", "1 write", "2"]);
    assert_eq!(view.names, ["md", "gflash"]);
    assert!(view.rows[0].cells[1].is_none());
}

#[test]
fn hosts_and_filesystems_are_columns_and_repetitions_one_figure() {
    let mut measurements = Vec::new();
    for (host, filesystem, repetition, iops) in [
        ("one", "ext4", 0, 100.0),
        ("one", "ext4", 1, 104.0),
        ("one", "ext4", 2, 102.0),
        ("two", "ext4", 0, 50.0),
    ] {
        let mut m = sample::cell("md", 0);
        host.clone_into(&mut m.host);
        filesystem.clone_into(&mut m.filesystem);
        m.fit.clear();
        (m.repetition, m.iops) = (repetition, iops);
        measurements.push(m);
    }
    let view = View::of_rows(&measurements);
    assert_eq!(view.names, ["one", "two"]);
    assert_eq!(view.rows[0].valid_values(), [Some(102.0), Some(50.0)]);
    assert_eq!(view.rows[0].cells[0].unwrap().used, 3);
    assert_eq!(view.rows[0].repetitions[0].len(), 3);
}

#[test]
fn fatal_findings_strike_a_cell_out_and_the_worst_comes_first() {
    let mut data = sample::data();
    data.measurements = vec![sample::cell("md", 0), sample::cell("zfs", 0)];
    let finding = |severity, subject: &str| Finding {
        rule: "C1".to_owned(),
        title: String::new(),
        severity,
        scope: Scope {
            subject: subject.to_owned(),
            ..Scope::default()
        },
        op: None,
        part: String::new(),
        evidence: String::new(),
        effect: String::new(),
        remedy: String::new(),
    };
    data.findings = vec![
        finding(Severity::Warning, ""),
        finding(Severity::Fatal, "zfs"),
    ];
    let view = View::new(&data);
    let row = &view.rows[0];
    assert_eq!(row.findings, [vec![0], vec![1, 0]]);
    assert_eq!(row.valid_values()[1], None);
    assert!(row.valid_values()[0].is_some() && row.cells[1].is_some());
}

#[test]
fn many_parts_are_a_matrix_in_the_order_of_sizes() {
    let parts = ["1024k/4k", "512k/64k", "512k/4k", "1m/64k", "1g/4k"];
    let measurements = parts.map(|part| {
        let mut m = sample::cell("md", 0);
        part.clone_into(&mut m.part);
        m
    });
    let view = View::of_rows(&measurements);
    let found: Vec<_> = view.rows.iter().map(|row| row.head.part.as_str()).collect();
    assert_eq!(
        found,
        ["512k/4k", "512k/64k", "1024k/4k", "1m/64k", "1g/4k"]
    );
    assert!(view.rows.iter().all(|row| row.in_matrix));
    assert_eq!(matrix_sizes("64/8k"), Some((64, 8192)));
    assert_eq!(matrix_sizes("putc"), None);
}

#[test]
fn a_figure_with_a_repetition_that_had_not_ended_is_a_least_time() {
    let recovery = |repetition, seconds: u64, percent| {
        let mut m = sample::cell("md", 0);
        (m.op, m.repetition) = (Operation::Recovery, repetition);
        m.runtime_ns = seconds * 1_000_000_000;
        m.sync_percent_end = Some(percent);
        m
    };
    let at_least = |measurements: &[raidlab_store::Measurement]| {
        let view = View::of_rows(measurements);
        view.background[0].cells[0].unwrap().at_least
    };
    assert!(at_least(&[recovery(0, 100, 100.0), recovery(1, 50, 40.0)]));
    assert!(at_least(&[recovery(0, 100, 100.0), recovery(1, 120, 40.0)]));
    // The third took longer than the median, however much longer.
    assert!(!at_least(&[
        recovery(0, 100, 100.0),
        recovery(1, 110, 100.0),
        recovery(2, 500, 40.0),
    ]));
}
