//! The audit against the published comparisons: their known faults, found from
//! imported data alone. The table is `docs/notes/faults.md`, written anew with
//! `RAIDLAB_WRITE_DOCS=1 cargo test -p raidlab faults`.

use crate::lab::Lab;
use serde_json::Value;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// A known fault: where it is, and by which finding it is known.
struct Fault {
    /// What was done wrong, in a few words.
    what: &'static str,
    /// What is imported: names of figures, or excerpts of logs.
    from: &'static [&'static str],
    /// The rule that must find it.
    rule: &'static str,
    /// The subject that it is found at; empty: any.
    subject: &'static str,
    /// Words that the evidence must hold.
    evidence: &'static str,
}

const LOGS: &[&str] = &[
    "import/src/log/data/md-2015.log",
    "import/src/log/data/gflash-2015.log",
    "import/src/log/data/gmirror-2015.log",
    "import/src/log/data/zvol-2015.log",
];

const FAULTS: &[Fault] = &[
    Fault {
        what: "2015: fio reads its clock at every 64th I/O only, jobs of 60 s run up to 88 s",
        from: LOGS,
        rule: "T1",
        subject: "zfs",
        evidence: "64 x",
    },
    Fault {
        what: "2015: primarycache=metadata was set without a data set's name, so it was `all`",
        from: LOGS,
        rule: "C12",
        subject: "zfs",
        evidence: "asked metadata, found all",
    },
    Fault {
        what: "2015: 9608 random writes per second onto an empty copy-on-write volume",
        from: LOGS,
        rule: "A5",
        subject: "zfs",
        evidence: "9608",
    },
    Fault {
        what: "2015: md's two streams were both read from one disk",
        from: LOGS,
        rule: "A12",
        subject: "md",
        evidence: "65528, 8",
    },
    Fault {
        what: "2015: depth by threads on FreeBSD, by asynchronous requests on Linux",
        from: LOGS,
        rule: "T2",
        subject: "",
        evidence: "the same depth by",
    },
    Fault {
        what: "2015: fio 2.1.9 against 2.1.11",
        from: LOGS,
        rule: "T23",
        subject: "",
        evidence: "2.1.9",
    },
    Fault {
        what: "2015, printed: +5338 % for 9608 against 180",
        from: &["mirror-2015-article"],
        rule: "T20",
        subject: "zfs",
        evidence: "+5237.8 %, printed +5338 %",
    },
    Fault {
        what: "2015, printed: -99 % for 99 against 1952",
        from: &["mirror-2015-article"],
        rule: "T20",
        subject: "md",
        evidence: "-94.9",
    },
    Fault {
        what: "2010: MiB/s of FreeBSD's dd set against MB/s of GNU's",
        from: &["gmirror-md-2010"],
        rule: "T19",
        subject: "gmirror",
        evidence: "MiB were called MB",
    },
    Fault {
        what: "2010: seeks per second read as seconds, so the slower one won",
        from: &["gmirror-md-2010"],
        rule: "T30",
        subject: "",
        evidence: "per second",
    },
    Fault {
        what: "2010: dd of=testfile if=/dev/null reads nothing and empties the file",
        from: &["gmirror-md-2010"],
        rule: "T17",
        subject: "md",
        evidence: "if=/dev/null",
    },
    Fault {
        what: "2010: files smaller than memory",
        from: &["gmirror-md-2010"],
        rule: "C1",
        subject: "",
        evidence: "memory holds",
    },
    Fault {
        what: "2010: two disks on a PCI card cannot read 788 MB/s",
        from: &["gmirror-md-2010"],
        rule: "B1",
        subject: "md",
        evidence: "at most",
    },
    Fault {
        what: "2010: partitions from sector 63 on disks with sectors of 4 KiB",
        from: &["gmirror-md-2010"],
        rule: "H1",
        subject: "md",
        evidence: "WD15EARS",
    },
    Fault {
        what: "2010: the first resync of 1.5 TB ran under the tests",
        from: &["gmirror-md-2010"],
        rule: "A1",
        subject: "md",
        evidence: "resync",
    },
    Fault {
        what: "2010: bonnie++ 1.96 against 1.03",
        from: &["gmirror-md-2010"],
        rule: "T13",
        subject: "",
        evidence: "1.03",
    },
    Fault {
        what: "2010: UFS on one array, ext3 on the other",
        from: &["gmirror-md-2010"],
        rule: "T24",
        subject: "",
        evidence: "ufs",
    },
    Fault {
        what: "2021: 2.7 GB/s from a mirror of two hard disks",
        from: &["freebsd-zfs-2021"],
        rule: "B1",
        subject: "",
        evidence: "2 disks do at most",
    },
    Fault {
        what: "2021: drive-managed shingled disks",
        from: &["freebsd-zfs-2021"],
        rule: "H3",
        subject: "",
        evidence: "ST4000DM004",
    },
    Fault {
        what: "2021: partitions from sector 63",
        from: &["freebsd-zfs-2021"],
        rule: "H1",
        subject: "",
        evidence: "sector 63",
    },
    Fault {
        what: "2020: --end_fsync=1--time_based=1 glued into one argument",
        from: &["ars-md-zfs-2020"],
        rule: "C12",
        subject: "",
        evidence: "--end_fsync=1--time_based=1",
    },
    Fault {
        what: "2020: mkfs.ext4 -E lazy_table_init=0, an option that does not exist",
        from: &["ars-md-zfs-2020"],
        rule: "A9",
        subject: "",
        evidence: "lazy_table_init",
    },
    Fault {
        what: "2008: a stripe reads faster than its members together",
        from: &["unequal-2008"],
        rule: "B2",
        subject: "raid0-a+c",
        evidence: "3.6 %",
    },
    Fault {
        what: "2008: two disks on one cable",
        from: &["unequal-2008"],
        rule: "H4",
        subject: "raid1-a+b",
        evidence: "ide0",
    },
    Fault {
        what: "2008: unequal disks in one array",
        from: &["unequal-2008"],
        rule: "H6",
        subject: "raid1-a+c",
        evidence: "SP1614N",
    },
];

/// The folder of all rooms.
fn crates() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().expect("the rooms' folder").to_owned()
}

/// What the audit finds in an import, one finding a line.
fn findings(lab: &Lab, from: &[&str]) -> Vec<Value> {
    let paths: Vec<String> = from
        .iter()
        .map(|name| {
            if name.contains('/') {
                crates().join(name).display().to_string()
            } else {
                (*name).to_owned()
            }
        })
        .collect();
    let mut arguments = vec!["import"];
    arguments.extend(paths.iter().map(String::as_str));
    lab.ok(&arguments);
    let lines = lab.ok(&["audit", "--json"]);
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
    let mut imports: Vec<(&[&str], Vec<Value>)> = Vec::new();
    let mut table = String::from(
        "# What the audit finds in published comparisons\n\n\
         Five published comparisons have faults that are known. This page lists those that\n\
         `raidlab audit` finds. *Imported* is what it was given: the figures as printed\n\
         (`raidlab import NAME`) or, for 2015, raw logs. Each fault has the [rule](../reference/audit.md)\n\
         that finds it, and the evidence in the words of the finding. The test `faults` of the\n\
         command writes this table, and fails when a fault is no longer found.\n\n\
         | known fault | imported | rule | severity | evidence |\n|---|---|---|---|---|\n",
    );
    for fault in FAULTS {
        if !imports.iter().any(|(from, _)| *from == fault.from) {
            imports.push((fault.from, findings(&lab, fault.from)));
        }
        let (_, all) = imports
            .iter()
            .find(|(from, _)| *from == fault.from)
            .expect("imported");
        let found = all.iter().find(|finding| {
            text(finding, "rule") == fault.rule
                && text(finding, "evidence").contains(fault.evidence)
                && (fault.subject.is_empty() || finding["scope"]["subject"] == fault.subject)
        });
        let Some(found) = found else {
            let of_rule: Vec<&str> = all
                .iter()
                .filter(|finding| text(finding, "rule") == fault.rule)
                .map(|finding| text(finding, "evidence"))
                .collect();
            panic!("{} finds: {of_rule:#?}\nnot: {}", fault.rule, fault.what);
        };
        let source = if fault.from == LOGS {
            "raw logs"
        } else {
            fault.from[0]
        };
        writeln!(
            table,
            "| {} | {source} | {} | {} | {} |",
            fault.what,
            fault.rule,
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
        fs::write(&path, &table).expect("written");
    }
    assert_eq!(
        fs::read_to_string(&path).expect("docs/notes/faults.md"),
        table,
        "docs/notes/faults.md is stale: RAIDLAB_WRITE_DOCS=1 cargo test -p raidlab faults"
    );
}

#[test]
fn a_clean_run_has_no_alarm() {
    let lab = Lab::new();
    let mut arguments = vec!["run", "mirror-2015", "--fit", "strict", "--no-report"];
    // The pool's own faults are those of the comparison: it is not clean.
    for subject in ["md", "gflash", "gmirror"] {
        arguments.extend(["--subject", subject]);
    }
    lab.ok(&arguments);
    let lines = lab.ok(&["audit", "--json"]);
    let loud: Vec<&str> = lines
        .lines()
        .filter(|line| !line.contains(r#""severity":"note""#))
        .collect();
    assert!(loud.is_empty(), "{loud:#?}");
}
