//! Text from others is data: whatever a name, a title, a note or a tool's output says, no
//! terminal obeys it, no browser runs it, no spreadsheet works it out, and no page is
//! another one because of it. Every text of a run is made hostile, and every output
//! looked at.

use crate::lab::Lab;
use proptest::prelude::*;
use raidlab_store::text::{EachText, acts};
use raidlab_store::{
    CellResult, CommandRecord, EventRecord, Finding, Observation, Records, Run, Scope, Series,
    Severity, Store,
};
use std::fs;

/// Where a hostile text is found again.
const MARK: &str = "data-evil";

/// What texts are made of.
const PARTS: [&str; 24] = [
    "=1+1",
    "-2+3",
    "+4",
    "@SUM(A1)",
    "\u{ff1d}1",
    "\u{1b}[2J",
    "\u{1b}]0;title\u{7}",
    "\u{9b}31m",
    "\u{202e}",
    "\u{7f}",
    "\r",
    "\n# heading\n",
    "\t",
    "<i data-evil>",
    "</script><i data-evil>",
    "<a href=\"javascript:alert(1)\" data-evil>",
    "\" onclick=\"data-evil",
    "]]><!-- data-evil",
    "a|b",
    "`*_~$x$",
    "[a](http://example.org)",
    ";=1",
    "größer",
    "{{ 7 * 7 }}",
];

fn text() -> impl Strategy<Value = String> {
    let part = proptest::sample::select(&PARTS[..]);
    proptest::collection::vec(part, 1..4).prop_map(|parts| parts.concat())
}

/// A run with records of every kind, all of whose texts begin and end as asked for.
fn hostile(lab: &Lab, before: &str, after: &str) {
    let built = Store::open_existing(lab.path("raidlab.db")).expect("a run of our own");
    let found = built.run_by_name("latest").expect("it is there");
    let mut spoil = |text: &mut String| *text = format!("{before}{text}{after}");
    let mut run = Run {
        finished: None,
        ..found.run
    };
    run.each_text(&mut spoil);
    let mut rows = built.measurements(found.id).expect("rows");
    let scope = Scope {
        subject: rows[0].subject.clone(),
        ..Scope::default()
    };
    let word = |text: &str| text.to_owned();
    let mut records = Records {
        settings: built.settings(found.id).expect("settings"),
        observations: vec![Observation {
            scope: scope.clone(),
            name: word("machine.kernel"),
            value: word("6.9"),
            unit: String::new(),
            source: word("uname"),
        }],
        commands: vec![CommandRecord {
            scope: scope.clone(),
            at_ns: 0,
            command: word("mdadm"),
            code: Some(1),
            took_ns: 1,
            stdout: word("out"),
            stderr: word("err"),
        }],
        events: vec![EventRecord {
            scope: scope.clone(),
            at_ns: 0,
            kind: word("state"),
            member: Some(0),
            text: word("clean"),
        }],
        series: vec![Series {
            scope: scope.clone(),
            name: word("array.read_bytes_per_second"),
            unit: word("bytes/s"),
            points: vec![(0, 1.0), (1_000_000_000, 2.0)],
        }],
    };
    let mut findings = vec![Finding {
        rule: word("C12"),
        title: word("setting not applied"),
        severity: Severity::Warning,
        scope,
        op: None,
        part: String::new(),
        evidence: word("evidence"),
        effect: word("effect"),
        remedy: word("remedy"),
    }];
    let mut notes = built.notes(found.id).expect("notes");
    rows.each_text(&mut spoil);
    records.settings.each_text(&mut spoil);
    records.observations.each_text(&mut spoil);
    records.commands.each_text(&mut spoil);
    records.events.each_text(&mut spoil);
    records.series.each_text(&mut spoil);
    findings.each_text(&mut spoil);
    notes.each_text(&mut spoil);
    let mut store = Store::open(lab.path("hostile.db")).expect("a new store");
    let id = store.begin_run(&run).expect("kept");
    for row in rows {
        let result = CellResult {
            cell: row.cell(),
            rows: vec![row],
            records: Records::default(),
        };
        store.add_cell(id, &result).expect("kept");
    }
    store.add_records(id, &records).expect("kept");
    store.add_notes(id, &notes).expect("kept");
    store.set_findings(id, &findings, None).expect("kept");
}

/// Nothing in it acts on a terminal or on the eye.
fn is_still(output: &str, what: &str) {
    let acting = output.find(|letter| acts(letter) && !matches!(letter, '\n' | '\t'));
    let around = |at: usize| output[at..].chars().take(30).collect::<String>();
    assert_eq!(acting.map(around), None, "{what}");
}

/// No hostile text is a tag, an attribute or a script of a page.
fn is_a_page(page: &str, what: &str) {
    for (at, _) in page.match_indices(MARK) {
        let before = &page[..at];
        let opens = before.rfind('<').map_or("", |open| &before[open..]);
        // Inside a tag of ours it would be behind an unclosed quote: quotes are escaped.
        assert!(
            opens.contains('>') || opens.matches('"').count() % 2 == 1,
            "{what}: {opens}"
        );
    }
    assert!(!page.contains("<i data-evil"), "{what}");
    assert!(!page.contains("<a href=\"javascript:"), "{what}");
    // plotly, the figures, the drawing code; a comparison has none.
    assert!(
        [0, 3].contains(&page.matches("</script>").count()),
        "{what}"
    );
}

fn is_markdown(text: &str, what: &str) {
    is_still(text, what);
    // Within a block of code a text is what it is; none ends the block.
    let mut in_code = false;
    let mut cells = None;
    for line in text.lines() {
        in_code ^= line.starts_with("```");
        if in_code {
            continue;
        }
        assert!(!line.contains(&format!("<i {MARK}")), "{what}: {line}");
        assert!(
            !line.replace("\\]", "").contains("](http"),
            "{what}: {line}"
        );
        let here = line.replace("\\|", "").matches('|').count();
        if line.starts_with('|') {
            assert_eq!(*cells.get_or_insert(here), here, "{what}: {line}");
        } else {
            cells = None;
        }
        assert!(!line.starts_with("# heading"), "{what}");
    }
    assert!(!in_code, "{what}");
}

fn is_a_sheet(text: &str, what: &str) {
    is_still(text, what);
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    for row in reader.records() {
        for cell in &row.expect("comma-separated values") {
            let parts = cell.split(';').map(str::trim_start);
            for part in parts.filter(|part| part.parse::<f64>().is_err()) {
                let formula = part.starts_with(['=', '+', '-', '@', '\u{ff1d}']);
                assert!(!formula, "{what}: {cell}");
            }
        }
    }
}

fn are_objects(text: &str, what: &str) {
    is_still(text, what);
    for line in text.lines() {
        serde_json::from_str::<serde_json::Value>(line).expect(what);
    }
}

fn look_at_every_output(lab: &Lab) {
    let own = "--store hostile.db";
    let with = |more: &str| lab.ok(&format!("{more} {own}"));
    is_still(&with("report"), "report");
    is_still(&with("report --list"), "list");
    let page = with("report --html -");
    is_a_page(&page, "page");
    is_markdown(&with("report --markdown -"), "report in Markdown");
    is_a_sheet(&with("report --csv -"), "rows");
    is_a_sheet(&with("report --members-csv -"), "members");
    are_objects(&with("report --json-lines -"), "JSON");
    let compare = "compare latest latest";
    is_still(&with(compare), "comparison");
    is_a_page(&with(&format!("{compare} --html -")), "comparison's page");
    is_markdown(
        &with(&format!("{compare} --markdown -")),
        "comparison in Markdown",
    );
    is_still(&with("audit"), "audit");
    are_objects(&with("audit --json"), "audit in JSON");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, ..ProptestConfig::default() })]

    #[test]
    fn no_text_is_more_than_text_in_any_output(before in text(), after in text()) {
        let lab = Lab::new();
        lab.ok("run ./jobs.fio --fit strict --no-report");
        hostile(&lab, &before, &after);
        look_at_every_output(&lab);
    }
}

#[test]
fn imported_names_are_text() {
    let lab = Lab::new();
    let job = |name: &str| {
        let name = serde_json::to_string(name).expect("a text");
        format!(
            "{{\"jobname\": {name}, \"read\": {{\"io_bytes\": 4096000, \"iops\": 100.0, \
             \"bw_bytes\": 409600, \"total_ios\": 1000, \"runtime\": 10000}}}}"
        )
    };
    let jobs: Vec<String> = PARTS.iter().map(|part| job(part)).collect();
    let fio = format!(
        "{{\"fio version\": \"fio-3.33\", \"jobs\": [{}]}}",
        jobs.join(", ")
    );
    lab.write("fio.json", &fio);
    let import = [
        "import",
        "fio.json",
        "--subject",
        "=1\u{1b}[2J",
        "--store",
        "hostile.db",
    ];
    is_still(&lab.ok(&import), "import");
    look_at_every_output(&lab);
}

/// An article's own figures, imported after the run, were counted as newer rows.
#[test]
fn claims_are_held_against_what_was_measured_before_what_was_imported() {
    let lab = Lab::new();
    let claims = r#"
schema = 1
name = "ours"
title = "ours"
source = "this test"
suites = ["jobs"]
commands = ["raidlab run ./jobs.fio"]
[[claim]]
id = "A"
says = "it reads faster than it writes"
tests = [{ of = "md 1 read", to = ["md 2 write"], at_least = 0.1 }]
"#;
    lab.write("claims.toml", claims);
    let job = |name: u32, operation: &str, rate: u32| {
        format!(
            r#"{{"jobname": "{name}", "{operation}": {{"io_bytes": {}, "iops": {rate},
            "bw_bytes": {}, "total_ios": {}, "runtime": 10000}}}}"#,
            rate * 40_960,
            rate * 4096,
            rate * 10
        )
    };
    let jobs = [job(1, "read", 1), job(2, "write", 1000)].join(", ");
    let fio = format!(r#"{{"fio version": "fio-3.33", "jobs": [{jobs}]}}"#);
    lab.write("a.json", &fio);
    let import = "import a.json --suite jobs --subject md";
    lab.ok(&format!("{import} --store printed.db"));
    let told = lab.ok("claims ./claims.toml --store printed.db");
    assert!(told.contains("(import bench)."), "{told}");
    assert!(told.contains("it writes: not reproduced"), "{told}");
    assert!(!told.contains("struck"), "{told}");
    // The audit strikes out a job that failed.
    let failed = fio.replace(r#""jobname": "2","#, r#""jobname": "2", "error": 5,"#);
    lab.write("b.json", &failed);
    lab.ok("import b.json --suite jobs --subject md --store struck.db");
    let told = lab.ok("claims ./claims.toml --store struck.db");
    assert!(
        told.contains("; rests on figures that the audit struck out"),
        "{told}"
    );
    lab.ok("run ./jobs.fio --fit strict --no-report");
    lab.ok(import);
    let told = lab.ok("claims ./claims.toml");
    assert!(told.contains("(model bench), else of "), "{told}");
    assert!(told.contains("it writes: reproduced"), "{told}");
}

/// One folder for each array is how people keep results: files of one name were averaged.
#[test]
fn files_of_one_name_in_two_folders_are_two_subjects() {
    let lab = Lab::new();
    let fio = r#"{"fio version": "fio-3.33", "jobs": [{"jobname": "r", "read": {"io_bytes": 4096000,
        "iops": 100.0, "bw_bytes": 409600, "total_ios": 1000, "runtime": 10000}}]}"#;
    let files = ["a/md/fio.json", "a/zfs/fio.json"];
    for file in files {
        let folder = lab.path(file).with_file_name("");
        std::fs::create_dir_all(folder).expect("a folder");
        lab.write(file, fio);
    }
    let import = |more: &str| lab.ok(&format!("import {} {more}", files.join(" ")));
    let two = import("--store two.db");
    assert!(two.contains("2 subjects (md-fio and zfs-fio)"), "{two}");
    assert!(
        two.contains("a/md/fio.json: another file has this name"),
        "{two}"
    );
    let one = import("--store one.db --subject md");
    assert!(one.contains("1 subject (md)"), "{one}");
    assert!(!one.contains("another file"), "{one}");
}

#[test]
fn errors_quote_and_do_not_act() {
    let lab = Lab::new();
    lab.ok("run ./jobs.fio --fit strict --no-report");
    let evil = "\u{1b}[2Jx\u{202e}";
    for arguments in [
        &["run", evil][..],
        &["run", "quick", "--subject", evil],
        &["run", "quick", "--disk", evil],
        &["report", evil],
        &["report", "--store", evil],
        &["suites", evil],
        &["import", evil],
        &["claims", evil],
        &["run", "quick", "--threads", evil],
    ] {
        let ran = lab.run(arguments);
        assert_ne!(ran.code, 0, "{arguments:?}");
        is_still(&ran.stderr, "an error");
        // Of arguments, what reads them leaves the sequence out.
        assert!(ran.stderr.contains("x\\u{202e}"), "{}", ran.stderr);
    }
}

#[cfg(unix)]
#[test]
fn names_that_are_no_utf_8_are_names() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let lab = Lab::new();
    let name = OsStr::from_bytes(b"a\xff\x1b.db");
    let report = OsStr::from_bytes(b"\xfe.html");
    let run = |arguments: &[&OsStr]| {
        let mut command = lab.command("");
        let ran = command.args(arguments).output().expect("it starts");
        crate::lab::Ran::new(ran)
    };
    let word = OsStr::new;
    let suite = [
        word("run"),
        word("./jobs.fio"),
        word("--fit"),
        word("strict"),
    ];
    let places = [word("--store"), name, word("--report"), report];
    let ran = run(&[suite, places].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("a\\xff\\u{1b}.db"), "{}", ran.stdout);
    assert!(fs::metadata(lab.path(".").join(name)).is_ok());
    let again = run(&[word("resume"), word("--store"), name]);
    assert_eq!(again.code, 2, "it has come to its end: {}", again.stderr);
    let shown = run(&[
        word("report"),
        word("--store"),
        name,
        word("--markdown"),
        word("-"),
    ]);
    assert!(
        shown.stdout.contains(r"$'a\xff\x1b.db'"),
        "{}",
        shown.stdout
    );
    for command in [
        "run", "suites", "subjects", "disks", "import", "claims", "fit",
    ] {
        let ran = run(&[word(command), name]);
        assert!([1, 2, 3].contains(&ran.code), "{command}: {}", ran.stderr);
        assert!(
            !ran.stderr.contains("panicked"),
            "{command}: {}",
            ran.stderr
        );
    }
}

/// A file's name may be bytes that are no UTF-8, and its text UTF-16, as `>` of PowerShell
/// writes it. Where a name has to be text, the words that are none are told.
#[cfg(unix)]
#[test]
fn what_is_no_utf_8_is_read_or_named() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let lab = Lab::new();
    let run = |command: &str, name: &OsStr| {
        let mut command = lab.command(&[command]);
        let ran = command.arg(name).output().expect("it starts");
        crate::lab::Ran::new(ran)
    };
    let dd = "2048+0 records in\n2048+0 records out\n\
              2147483648 bytes (2.1 GB, 2.0 GiB) copied, 20.5 s, 105 MB/s\n";
    let name = OsStr::from_bytes(b"dd\xff.txt");
    for (mark, bytes) in [
        ([0xff, 0xfe], u16::to_le_bytes as fn(u16) -> [u8; 2]),
        ([0xfe, 0xff], u16::to_be_bytes),
    ] {
        let bytes = mark.into_iter().chain(dd.encode_utf16().flat_map(bytes));
        let bytes: Vec<u8> = bytes.collect();
        fs::write(lab.path(".").join(name), bytes).expect("written");
        let ran = run("import", name);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert!(ran.stdout.contains("104.8"), "{}", ran.stdout);
        assert!(ran.stdout.contains("dd\\xff"), "{}", ran.stdout);
    }
    for command in ["run", "claims", "fit"] {
        let ran = run(command, name);
        assert_eq!(ran.code, 2, "{command}: {}", ran.stderr);
        assert!(
            ran.stderr.contains("`dd\\xff.txt`"),
            "{command}: {}",
            ran.stderr
        );
    }
}
