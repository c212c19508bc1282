//! The bands of disks that nobody fitted follow from disks that were left out.

use raidlab_disk::{DiskParameters, Load, Medium, Preset};
use raidlab_fit::{
    DONOR_SEEK_MS, DataSheet, LeftOut, LeftOutBand, LeftOutRow, bands_file, left_out_bands,
};

const LEFT_OUT: &str = include_str!("../../../../data/facts/left-out.toml");
const BANDS: &str = include_str!("../../../../data/facts/bands.toml");

fn left_out() -> LeftOut {
    LeftOut::parse("facts/left-out.toml", LEFT_OUT).expect("the shipped file is valid")
}

fn preset(file: &str, text: &str, set: &str) -> DiskParameters {
    let preset = Preset::parse(file, text).expect(file);
    preset.parameters(set).expect(set).clone()
}

fn donor() -> DiskParameters {
    let text = include_str!("../../../../data/disks/wd4000fyyz.toml");
    preset("wd4000fyyz.toml", text, &left_out().set)
}

#[test]
fn the_bands_are_those_that_leaving_out_gives() {
    let text = include_str!("../../../../data/disks/st4000dm004.toml");
    let shingled = preset("st4000dm004.toml", text, "rated");
    let drive = |name: &str| {
        let path = format!(
            "{}/../../data/disks/{name}.toml",
            env!("CARGO_MANIFEST_DIR")
        );
        let text = std::fs::read_to_string(&path).expect(&path);
        preset(name, &text, "rated")
    };
    let drives: Vec<DiskParameters> = left_out().drives().map(drive).collect();
    let rows = left_out()
        .rows(&donor(), &shingled, &drives, 60, 1)
        .unwrap();
    let bands = left_out_bands(&rows);
    assert_eq!(
        bands_file(&bands),
        BANDS,
        "repeat `raidlab fit --left-out --toml > facts/bands.toml`"
    );
    // Every figure that counts lies in the band of its kind.
    for row in rows.iter().filter(|row| row.disputed.is_empty()) {
        let own = |one: &&LeftOutBand| one.medium == row.medium && one.load == row.load;
        let band = bands.iter().find(own).unwrap().band;
        let real = row.measured / row.predicted;
        assert!((band.low..=band.high).contains(&real), "{row:?}");
    }
}

/// Presets without a fit are made of their data sheets as left-out disks are.
#[test]
fn presets_are_made_as_left_out_disks_are() {
    let text = include_str!("../../../../data/disks/st6000vn001.toml");
    let preset = preset("st6000vn001.toml", text, "rated");
    let sheet = DataSheet {
        capacity_sectors: preset.capacity.0,
        revolution_us: 11111.111,
        average_seek_ms: 12.0,
        edge_bytes_per_second: 180e6,
    };
    let made = sheet.applied_to(&donor(), DONOR_SEEK_MS);
    let near = |a: f64, b: f64| (a / b - 1.0).abs() < 0.002;
    let own = made.medium.platters().expect("it has platters");
    let theirs = preset.medium.platters().expect("it has platters");
    assert!(near(own.seek.settle_ns, theirs.seek.settle_ns));
    assert!(near(own.seek.root_ns, theirs.seek.root_ns));
    assert!(near(own.seek.slope_ns, theirs.seek.slope_ns));
    assert!(near(own.seek.knee, theirs.seek.knee));
    assert_eq!(own.scheduling, theirs.scheduling);
    assert_eq!(made.write_window, preset.write_window);
    assert_eq!(own.overhead_idle, theirs.overhead_idle);
    assert_eq!(own.stream, theirs.stream);
    assert_eq!(own.revolution, theirs.revolution);
    let ends = |disk: &DiskParameters| {
        let rate = |point: Option<&raidlab_disk::surface::RatePoint>| {
            point.map_or(0.0, |point| point.bytes_per_second)
        };
        [rate(disk.rate_curve.first()), rate(disk.rate_curve.last())]
    };
    let (own, shipped) = (ends(&made), ends(&preset));
    assert!(
        near(own[0], shipped[0]) && near(own[1], shipped[1]),
        "{own:?} {shipped:?}"
    );
    assert_eq!(made.medium(), Medium::Platters);
}

fn row(disk: &str, queue_depth: u32, measured: f64) -> LeftOutRow {
    LeftOutRow {
        disk: disk.to_owned(),
        medium: Medium::Platters,
        load: Load::QueuedRandomRead,
        what: String::new(),
        queue_depth,
        measured,
        predicted: 100.0,
        disputed: String::new(),
        source: String::new(),
    }
}

fn queued(rows: &[LeftOutRow]) -> LeftOutBand {
    let of = |one: &LeftOutBand| one.load == Load::QueuedRandomRead;
    *left_out_bands(rows).iter().find(|one| of(one)).unwrap()
}

#[test]
fn one_or_two_disks_give_twice_their_worst_error() {
    let found = queued(&[row("a", 8, 80.0), row("b", 8, 110.0)]);
    // (0.8)^2 and its inverse, rounded outwards.
    assert_eq!(
        (found.band.low, found.band.high, found.disks),
        (0.64, 1.57, 2)
    );
    // A single depth of each: nothing is known of ratios but the whole band.
    assert_eq!(found.band.ratio, 1.57);
}

#[test]
fn three_disks_give_students_interval_and_a_disputed_one_counts_in_nothing() {
    let mut rows = vec![row("a", 8, 80.0), row("b", 8, 90.0), row("c", 8, 100.0)];
    let found = queued(&rows).band;
    // Mean -0.1095 and deviation 0.1117 of the logarithms, times 3.3717.
    assert_eq!((found.low, found.high), (0.61, 1.31));
    rows.push(LeftOutRow {
        disputed: "it was asleep".to_owned(),
        ..row("d", 8, 10.0)
    });
    assert_eq!(queued(&rows).band, found);
}

#[test]
fn what_the_depths_of_one_disk_share_cancels() {
    // Both depths of each disk are off alike: the ratio is not.
    let rows = [
        row("a", 8, 50.0),
        row("a", 16, 50.0),
        row("b", 8, 70.0),
        row("b", 16, 77.0),
    ];
    let found = queued(&rows).band;
    assert!(found.low < 0.3, "{found:?}");
    assert_eq!(found.ratio, 1.21);
    // Depths that are four apart put unlike loads on a disk.
    let far = [row("a", 8, 50.0), row("a", 32, 70.0)];
    assert!(queued(&far).band.ratio > 2.0);
}

/// A row of some load at some depth on a drive of flash.
fn on_flash(disk: &str, load: Load, queue_depth: u32, measured: f64) -> LeftOutRow {
    LeftOutRow {
        medium: Medium::Flash,
        load,
        ..row(disk, queue_depth, measured)
    }
}

fn mixed(rows: &[LeftOutRow]) -> LeftOutBand {
    let of = |one: &LeftOutBand| one.medium == Medium::Flash && one.load == Load::Mixed;
    *left_out_bands(rows).iter().find(|one| of(one)).unwrap()
}

#[test]
fn mixed_loads_have_their_own_errors_once_somebody_measured_them() {
    let unmeasured = [
        on_flash("a", Load::RandomRead, 1, 80.0),
        on_flash("a", Load::RandomWrite, 64, 100.0),
    ];
    let found = mixed(&unmeasured);
    // The reads' band, and any two loads of the disk for the ratio: twice 0.8.
    assert_eq!((found.band.low, found.band.ratio), (0.64, 1.57));
    let mut measured = unmeasured.to_vec();
    measured.push(on_flash("a", Load::Mixed, 32, 90.0));
    let found = mixed(&measured);
    // Twice 0.9, and writes at a like depth; the reads at depth 1 are unlike both.
    assert_eq!(
        (found.band.low, found.band.ratio, found.disks),
        (0.81, 1.24, 1)
    );
}

#[test]
fn what_is_wrong_with_a_drive_is_said() {
    let complaint = |from: &str, to: &str| {
        assert!(LEFT_OUT.contains(from), "`{from}` is not in the file");
        let error = LeftOut::parse("left-out.toml", &LEFT_OUT.replacen(from, to, 1));
        error.expect_err(to).to_string()
    };
    let wrong = "left-out.toml: 7300pro: rate and queue_depth must be above 0, and read_percent at most 100";
    let fact = "queue_depth = 1, read_percent = 100, rate = 8547";
    for other in [
        "queue_depth = 0, read_percent = 100, rate = 8547",
        "queue_depth = 1, read_percent = 101, rate = 8547",
        "queue_depth = 1, read_percent = 100, rate = 0",
    ] {
        assert_eq!(complaint(fact, other), wrong);
    }
    let text = LEFT_OUT.replacen("state = \"steady\"", "state = \"worn\"", 1);
    let file = LeftOut::parse("left-out.toml", &text).expect("a state is read later");
    let drives = vec![donor(); file.drives().count()];
    let error = file.rows(&donor(), &donor(), &drives, 1, 1).unwrap_err();
    assert_eq!(error.to_string(), "`p5520` cannot begin so");
}
