//! The audit against the published comparisons: their known faults, found from
//! imported data alone. The table is `docs/notes/faults.md`, written anew with
//! `RAIDLAB_WRITE_DOCS=1 cargo test -p raidlab faults`.

use crate::lab::Lab;
use raidlab_units::table;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// What `raw logs` are, in the table below.
const LOGS: &str = "md-2015 gflash-2015 gmirror-2015 zvol-2015";

/// Known faults: the rule that must find it, what is imported, the subject that it is found at (`-`:
/// any), words that the evidence must hold, and what was done wrong, in a few words.
const FAULTS: &str = "\
T1   raw logs             zfs        64 x                         2015: fio reads its clock at every 64th I/O only, jobs of 60 s run up to 88 s
C12  raw logs             zfs        asked metadata, found all    2015: primarycache=metadata was set without a data set's name, so it was `all`
A5   raw logs             zfs        9608                         2015: 9608 random writes per second onto an empty copy-on-write volume
A12  raw logs             md         65528, 8                     2015: md's two streams were both read from one disk
T2   raw logs             -          the same depth by            2015: depth by threads on FreeBSD, by asynchronous requests on Linux
T23  raw logs             -          2.1.9                        2015: fio 2.1.9 against 2.1.11
T20  mirror-2015-article  zfs        +5237.8 %, printed +5338 %   2015, printed: +5338 % for 9608 against 180
T20  mirror-2015-article  md         -94.9                        2015, printed: -99 % for 99 against 1952
T19  gmirror-md-2010      gmirror    MiB were called MB           2010: MiB/s of FreeBSD's dd set against MB/s of GNU's
T30  gmirror-md-2010      -          per second                   2010: seeks per second read as seconds, so the slower one won
T17  gmirror-md-2010      md         if=/dev/null                 2010: dd of=testfile if=/dev/null reads nothing and empties the file
C1   gmirror-md-2010      -          memory holds                 2010: files smaller than memory
B1   gmirror-md-2010      md         at most                      2010: two disks on a PCI card cannot read 788 MB/s
H1   gmirror-md-2010      md         WD15EARS                     2010: partitions from sector 63 on disks with sectors of 4 KiB
A1   gmirror-md-2010      md         resync                       2010: the first resync of 1.5 TB ran under the tests
T13  gmirror-md-2010      -          1.03                         2010: bonnie++ 1.96 against 1.03
T24  gmirror-md-2010      -          ufs                          2010: UFS on one array, ext3 on the other
B1   freebsd-zfs-2021     -          2 disks do at most           2021: 2.7 GB/s from a mirror of two hard disks
H3   freebsd-zfs-2021     -          ST4000DM004                  2021: drive-managed shingled disks
H1   freebsd-zfs-2021     -          sector 63                    2021: partitions from sector 63
C12  ars-md-zfs-2020      -          --end_fsync=1--time_based=1  2020: --end_fsync=1--time_based=1 glued into one argument
A9   ars-md-zfs-2020      -          lazy_table_init              2020: mkfs.ext4 -E lazy_table_init=0, an option that does not exist
B2   unequal-2008         raid0-a+c  3.6 %                        2008: a stripe reads faster than its members together
H4   unequal-2008         raid1-a+b  ide0                         2008: two disks on one cable
H6   unequal-2008         raid1-a+c  SP1614N                      2008: unequal disks in one array
";

/// The folder of all rooms.
fn crates() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().expect("the rooms' folder").to_owned()
}

/// What the audit finds in an import, one finding a line.
fn findings(lab: &Lab, from: &str) -> Vec<Value> {
    let logs = crates().join("import/src/log/data");
    let log = |name: &str| logs.join(format!("{name}.log")).display().to_string();
    let words = match from {
        "raw logs" => LOGS.split(' ').map(log).collect(),
        _ => vec![from.to_owned()],
    };
    lab.ok(&[vec!["import".to_owned()], words].concat());
    let lines = lab.ok("audit --json");
    lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("a finding"))
        .collect()
}

fn text<'a>(finding: &'a Value, field: &str) -> &'a str {
    finding[field].as_str().unwrap_or_default()
}

#[test]
fn known_faults_of_published_comparisons_are_found() {
    let lab = Lab::new();
    let mut imports: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    let mut page = String::from(
        "# What the audit finds in published comparisons\n\n\
         Five published comparisons have faults that are known. This page lists those that\n\
         `raidlab audit` finds. *Imported* is what it was given: the figures as printed\n\
         (`raidlab import NAME`) or, for 2015, raw logs. Each fault has the [rule](../reference/audit.md)\n\
         that finds it, and the evidence in the words of the finding. The test `faults` of the\n\
         command writes this table, and fails when a fault is no longer found.\n\n\
         | known fault | imported | rule | severity | evidence |\n|---|---|---|---|---|\n",
    );
    for [rule, source, subject, evidence, what] in table(FAULTS, Some) {
        let all = imports
            .entry(source)
            .or_insert_with(|| findings(&lab, source));
        let found = all.iter().find(|finding| {
            text(finding, "rule") == rule
                && text(finding, "evidence").contains(evidence)
                && (subject == "-" || finding["scope"]["subject"] == subject)
        });
        let Some(found) = found else {
            let of_rule: Vec<&str> = all
                .iter()
                .filter(|finding| text(finding, "rule") == rule)
                .map(|finding| text(finding, "evidence"))
                .collect();
            panic!("{rule} finds: {of_rule:#?}\nnot: {what}");
        };
        writeln!(
            page,
            "| {what} | {source} | {rule} | {} | {} |",
            text(found, "severity"),
            text(found, "evidence").replace('|', "\\|")
        )
        .expect("written");
    }
    let path = crates()
        .parent()
        .expect("the root")
        .join("docs/notes/faults.md");
    if std::env::var_os("RAIDLAB_WRITE_DOCS").is_some() {
        fs::write(&path, &page).expect("written");
    }
    assert_eq!(
        fs::read_to_string(&path).expect("docs/notes/faults.md"),
        page,
        "docs/notes/faults.md is stale: RAIDLAB_WRITE_DOCS=1 cargo test -p raidlab faults"
    );
}

#[test]
fn a_clean_run_has_no_alarm() {
    let lab = Lab::new();
    // The pool's own faults are those of the comparison: it is not clean.
    let subjects = "--subject md --subject gflash --subject gmirror";
    lab.ok(&format!(
        "run mirror-2015 --fit strict --no-report {subjects}"
    ));
    let lines = lab.ok("audit --json");
    let loud: Vec<&str> = lines
        .lines()
        .filter(|line| !line.contains(r#""severity":"note""#))
        .collect();
    assert!(loud.is_empty(), "{loud:#?}");
}
