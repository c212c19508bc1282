//! A run written as Parquet and read back.

use super::records::{records, series};
use super::{cell, measurement, round_trip, run};
use crate::output::OutputError;
use crate::{
    Finding, KeptPlan, Latency, Operation, ParquetError, Records, Scope, Setting, Severity, Shard,
    Store, Taken,
};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, RowAccessor};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;

fn histogram() -> Vec<u8> {
    let mut histogram = Histogram::<u64>::new(3).unwrap();
    histogram.record_n(19_000_000, 7).unwrap();
    histogram.record(95_000_000).unwrap();
    let mut bytes = Vec::new();
    V2DeflateSerializer::new()
        .serialize(&histogram, &mut bytes)
        .unwrap();
    bytes
}

/// A store with a run that has something of everything, of two experiments of which the
/// second ended first.
fn store() -> Store {
    let mut store = Store::open_in_memory().unwrap();
    // Numbers of rows in the store are not those within the run.
    let other = store.begin_run(&run("other")).unwrap();
    store.add_cell(other, &cell(measurement(4))).unwrap();
    let plan = KeptPlan {
        program: "ab12".to_owned(),
        json: "{\"schema\":1}".to_owned(),
        shard: Shard::new(2, 7.try_into().unwrap()),
    };
    let note = crate::AccuracyNote {
        title: "An old kernel".to_owned(),
        declared_percent: Some(8.0),
        subjects: vec!["md".to_owned(), "\"a\"".to_owned()],
        ..crate::AccuracyNote::default()
    };
    let id = store
        .begin_run_with(&run("a"), Some(&plan), std::slice::from_ref(&note))
        .unwrap();
    let setting = Setting {
        scope: "subject md".to_owned(),
        name: "sync_speed_min".to_owned(),
        value: "1000 KiB/s".to_owned(),
        source: String::new(),
    };
    for experiment in [1, 0] {
        let origin = id.experiment(experiment);
        let mut result = cell(measurement(experiment));
        result.rows[0].latency.histogram = histogram();
        result.records = records();
        result.records.settings = vec![setting.clone()];
        store.add_cell(origin, &result).unwrap();
        store
            .add_notes(origin, std::slice::from_ref(&note))
            .unwrap();
        store.end_experiment(id, experiment).unwrap();
    }
    let finding = Finding {
        rule: "cached-reads".to_owned(),
        title: "Reads from memory".to_owned(),
        severity: Severity::Fatal,
        scope: Scope::host("store1"),
        op: Some(Operation::Read),
        part: String::new(),
        evidence: "9 GB/s".to_owned(),
        effect: "too fast".to_owned(),
        remedy: "direct=1".to_owned(),
    };
    store.set_findings(id, &[finding], None).unwrap();
    store.finish_run(id, "2026-11-21T02:11:00Z").unwrap();
    store
}

fn export(store: &Store, name: &str, folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let run = store.run_by_name(name).unwrap();
    store.write_parquet(&run, folder).unwrap();
    let files = fs::read_dir(folder).unwrap().map(|entry| {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        (name, fs::read(entry.path()).unwrap())
    });
    files.collect()
}

#[test]
fn a_run_is_the_same_bytes_after_it_was_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let store = store();
    let first = export(&store, "a", folder.path());
    assert_eq!(first.len(), 15);
    let mut other = Store::open_in_memory().unwrap();
    other.begin_run(&run("before")).unwrap();
    let taken = other.read_parquet(folder.path()).unwrap();
    assert_eq!(taken, Taken::As("a".to_owned()));
    assert_eq!(export(&other, "a", folder.path()), first);

    let [from, to] = [&store, &other].map(|one| one.run_by_name("a").unwrap());
    assert_eq!((&from.run, from.measurements), (&to.run, to.measurements));
    assert_eq!(store.plan(from.id).unwrap(), other.plan(to.id).unwrap());
    assert_eq!(
        store.measurements(from.id).unwrap(),
        other.measurements(to.id).unwrap()
    );
    assert_eq!(store.series(from.id).unwrap(), other.series(to.id).unwrap());
    assert_eq!(
        store.findings(from.id).unwrap(),
        other.findings(to.id).unwrap()
    );
    assert_eq!(other.ended_experiments(to.id).unwrap(), [0, 1]);

    // The same one again is known; another one of its name gets a number.
    let again = other.read_parquet(folder.path()).unwrap();
    assert_eq!(again, Taken::Known("a".to_owned()));
    let mut third = Store::open_in_memory().unwrap();
    third.begin_run(&run("a")).unwrap();
    let taken = third.read_parquet(folder.path()).unwrap();
    assert_eq!(taken, Taken::As("a-2".to_owned()));
}

/// Readers take minima and means of columns, for which 0 would be a figure.
#[test]
fn what_was_not_reported_is_null_and_0_again_when_it_is_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open_in_memory().unwrap();
    let id = store.begin_run(&run("a")).unwrap();
    // A job, one of which nothing was reported, one that did nothing, and a rebuild.
    for sequence in 0..4 {
        let mut row = measurement(sequence);
        if sequence > 0 {
            (row.iops, row.latency) = (0.0, Latency::default());
        }
        if sequence == 2 {
            (row.total_ios, row.total_bytes, row.bytes_per_second) = (0, 0, 0.0);
        }
        if sequence == 3 {
            (row.op, row.total_ios) = (Operation::Recovery, 0);
        }
        store.add_cell(id, &cell(row)).unwrap();
    }
    export(&store, "a", folder.path());
    let file = File::open(folder.path().join("measurements.parquet")).unwrap();
    let file = SerializedFileReader::new(file).unwrap();
    let rows: Vec<[bool; 3]> = file
        .get_row_iter(None)
        .unwrap()
        .map(|row| {
            let columns = row.unwrap().into_columns();
            ["iops", "bytes_per_second", "latency_p99_ns"].map(|wanted| {
                let found = columns.iter().find(|(name, _)| name == wanted);
                found.unwrap().1 != Field::Null
            })
        })
        .collect();
    let told = [
        [true, true, true],
        [false, true, false],
        [true, true, false],
        [false, true, false],
    ];
    assert_eq!(rows, told);
    let mut other = Store::open_in_memory().unwrap();
    other.read_parquet(folder.path()).unwrap();
    let to = other.run_by_name("a").unwrap().id;
    let [from, to] = [store.measurements(id), other.measurements(to)];
    assert_eq!(from.unwrap(), to.unwrap());
}

/// As an article's figure of dd.
#[test]
fn a_published_figure_of_bytes_alone_has_no_iops() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open_in_memory().unwrap();
    let id = store.begin_run(&run("a")).unwrap();
    let mut row = measurement(0);
    row.published[0].iops = 0.0;
    store.add_cell(id, &cell(row)).unwrap();
    export(&store, "a", folder.path());
    let file = File::open(folder.path().join("published.parquet")).unwrap();
    let file = SerializedFileReader::new(file).unwrap();
    let told: Vec<bool> = file
        .get_row_iter(None)
        .unwrap()
        .map(|row| {
            let columns = row.unwrap().into_columns();
            let found = columns.iter().find(|(name, _)| name == "iops");
            found.unwrap().1 != Field::Null
        })
        .collect();
    assert_eq!(told, [false, true]);
    let mut other = Store::open_in_memory().unwrap();
    other.read_parquet(folder.path()).unwrap();
    let to = other.run_by_name("a").unwrap().id;
    let [from, to] = [store.measurements(id), other.measurements(to)];
    assert_eq!(from.unwrap(), to.unwrap());
}

/// Runs of two machines that began in the same second have one name. What the table of runs says
/// is the same of a run that goes on, at noon and in the evening.
#[test]
fn a_run_is_known_by_what_it_has_and_not_by_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let [one, other] = ["one", "other"].map(|name| folder.path().join(name));
    let mut begun = Store::open_in_memory().unwrap();
    let id = begun.begin_run(&run("a")).unwrap();
    begun.add_cell(id, &cell(measurement(0))).unwrap();
    export(&begun, "a", &one);
    begun.add_cell(id, &cell(measurement(1))).unwrap();
    export(&begun, "a", &other);
    let mut store = Store::open_in_memory().unwrap();
    let mut taken = |folder| store.read_parquet(folder).unwrap();
    let as_it_is = |name: &str| Taken::As(name.to_owned());
    let known = |name: &str| Taken::Known(name.to_owned());
    assert_eq!(taken(&one), as_it_is("a"));
    assert_eq!(taken(&other), as_it_is("a-2"));
    assert_eq!([taken(&one), taken(&other)], [known("a"), known("a-2")]);
    // Under its new name it is the same run elsewhere too.
    export(&store, "a-2", &one);
    assert_eq!(begun.read_parquet(&one).unwrap(), known("a"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn any_measurement_comes_back(row in round_trip::measurements(3)) {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::open_in_memory().unwrap();
        let id = store.begin_run(&run("a")).unwrap();
        store.add_cell(id, &cell(row.clone())).unwrap();
        export(&store, "a", folder.path());
        let mut other = Store::open_in_memory().unwrap();
        other.read_parquet(folder.path()).unwrap();
        let found = other.run_by_name("a").unwrap();
        prop_assert_eq!(other.measurements(found.id).unwrap(), [row]);
    }
}

/// Names and types are what other people's queries rest on: a change of them is seen here.
#[test]
fn columns_and_their_types() {
    let folder = tempfile::tempdir().unwrap();
    let mut text = String::new();
    for (name, _) in export(&store(), "a", folder.path()) {
        let file = File::open(folder.path().join(&name)).unwrap();
        let file = SerializedFileReader::new(file).unwrap();
        let head = file.metadata().file_metadata();
        parquet::schema::printer::print_schema(&mut TextOf(&mut text), head.schema());
    }
    insta::assert_snapshot!(text);
}

struct TextOf<'a>(&'a mut String);

impl std::io::Write for TextOf<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.push_str(str::from_utf8(bytes).unwrap());
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn rows_are_in_groups_and_histograms_are_counts() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = store();
    let run = store.run_by_name("a").unwrap();
    let points: Vec<(u64, f64)> = (10..70_010).map(|at| (at, 0.5)).collect();
    let more = Records {
        series: vec![series(&points)],
        ..Records::default()
    };
    store.add_records(run.id.experiment(7), &more).unwrap();
    export(&store, "a", folder.path());
    let open = |name: &str| {
        let file = File::open(folder.path().join(name)).unwrap();
        SerializedFileReader::new(file).unwrap()
    };
    let samples = open("samples.parquet");
    let groups = samples.metadata().row_groups().iter();
    let groups: Vec<i64> = groups.map(|group| group.num_rows()).collect();
    assert_eq!(groups, [65_536, 70_004 - 65_536]);
    let rows = open("histograms.parquet");
    let counts: Vec<(i64, i64)> = rows
        .get_row_iter(None)
        .unwrap()
        .map(Result::unwrap)
        .map(|row| (row.get_long(1).unwrap(), row.get_long(3).unwrap()))
        .collect();
    assert_eq!(counts, [(0, 7), (0, 1), (1, 7), (1, 1)]);
}

#[test]
fn a_file_in_the_folder_s_place_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("taken");
    fs::write(&path, "mine").unwrap();
    let store = store();
    let run = store.run_by_name("a").unwrap();
    let refused = store.write_parquet(&run, &path);
    assert!(matches!(refused, Err(ParquetError::Folder(_))));
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
}

#[test]
fn what_is_no_run_is_refused_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(format!("{name}.parquet"));
    let mut store = store();
    let mut other = Store::open_in_memory().unwrap();
    let mut refused = || {
        let error = other.read_parquet(folder.path()).unwrap_err();
        assert!(other.runs().unwrap().is_empty());
        let mut text = error.to_string();
        let mut source = std::error::Error::source(&error);
        while let Some(cause) = source {
            text = format!("{text}: {cause}");
            source = cause.source();
        }
        text.replace(&format!("{}/", folder.path().display()), "")
    };
    assert!(refused().starts_with("cannot read run.parquet"));
    let files = export(&store, "a", folder.path());
    fs::remove_file(file("facts")).unwrap();
    assert!(refused().starts_with("cannot read facts.parquet"));
    fs::write(file("facts"), &files["events.parquet"]).unwrap();
    assert_eq!(
        refused(),
        "facts.parquet: its columns are not those of facts"
    );
    // Somebody else's file is not replaced.
    fs::write(file("facts"), b"PAR1 of another program PAR1").unwrap();
    let run = store.run_by_name("a").unwrap();
    let error = store.write_parquet(&run, folder.path()).unwrap_err();
    assert!(matches!(
        error,
        ParquetError::Output(OutputError::Taken { .. })
    ));
    fs::remove_file(file("facts")).unwrap();
    store.delete_run(run.id).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let others = export(&store, "other", elsewhere.path());
    fs::write(file("facts"), &others["facts.parquet"]).unwrap();
    assert_eq!(
        refused(),
        "facts.parquet: it is of run other, others here of a"
    );
}

/// Whatever happens to the bytes, it is an error, or the same rows come back.
#[test]
fn damaged_bytes_are_no_other_rows() {
    let folder = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let files = export(&store(), "a", folder.path());
    for name in ["run.parquet", "measurements.parquet", "samples.parquet"] {
        let whole = &files[name];
        let path = folder.path().join(name);
        let ends = whole.len() - 12..whole.len();
        for at in (0..whole.len()).step_by(whole.len() / 20).chain(ends) {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x55;
            fs::write(&path, &damaged).unwrap();
            let mut other = Store::open_in_memory().unwrap();
            if other.read_parquet(folder.path()).is_ok() {
                let again = export(&other, "a", elsewhere.path());
                assert!(again == files, "{name}, byte {at}");
            }
            fs::write(&path, &whole[..at]).unwrap();
            let mut other = Store::open_in_memory().unwrap();
            assert!(other.read_parquet(folder.path()).is_err());
        }
        fs::write(&path, whole).unwrap();
    }
}

/// Parquet's library panics where the header of a page lies.
#[test]
fn the_header_of_a_page_may_lie() {
    let folder = tempfile::tempdir().unwrap();
    let files = export(&store(), "a", folder.path());
    let (path, whole) = (folder.path().join("ended.parquet"), &files["ended.parquet"]);
    for at in 4..16 {
        for bit in 0..8 {
            let mut damaged = whole.clone();
            damaged[at] ^= 1_u8 << bit;
            fs::write(&path, &damaged).unwrap();
            let mut other = Store::open_in_memory().unwrap();
            if other.read_parquet(folder.path()).is_err() {
                assert!(other.runs().unwrap().is_empty(), "byte {at}, bit {bit}");
            }
        }
    }
}
