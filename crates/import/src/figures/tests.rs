use super::{figures, import, import_figures};
use crate::{ImportOptions, Imported};
use proptest::prelude::*;
use raidlab_data::Entry;
use raidlab_store::{Measurement, Operation, fact, fact::claim_part};
use std::collections::BTreeMap;

fn built_in(name: &str) -> Imported {
    import_figures(name, &ImportOptions::default()).expect("built-in figures are well-formed")
}

fn rows(import: &Imported) -> impl Iterator<Item = &Measurement> {
    import.cells.iter().flat_map(|cell| &cell.rows)
}

fn find<'a>(import: &'a Imported, subject: &str, job: &str, op: Operation) -> &'a Measurement {
    rows(import)
        .find(|row| row.subject == subject && row.job == job && row.op == op)
        .expect("a row of the figures")
}

fn claim(import: &Imported, row: &Measurement, what: &str) -> Option<(String, String)> {
    let name = fact::claim(row.op, &row.part, what);
    let cell = import.cells.iter().find(|cell| cell.cell == row.cell())?;
    let mut all = cell.records.observations.iter();
    let found = all.find(|one| one.name == name)?;
    Some((found.value.clone(), found.unit.clone()))
}

#[test]
fn every_built_in_set_can_be_imported() {
    for name in figures() {
        let import = built_in(name);
        let mut cells: Vec<_> = import.cells.iter().map(|cell| &cell.cell).collect();
        let count = cells.len();
        cells.sort();
        cells.dedup();
        assert_eq!(cells.len(), count, "{name}: a cell twice");
        for row in rows(&import) {
            assert!(!row.published.is_empty(), "{name}: no reliability");
            let is_swapped = row.job == "dd-read-1g" && row.subject == "md";
            let moved = row.iops > 0.0 || row.bytes_per_second > 0.0;
            assert_eq!(moved, !is_swapped, "{name} {} {}", row.subject, row.job);
        }
        for cell in &import.cells {
            let names: Vec<_> = cell
                .records
                .observations
                .iter()
                .map(|one| &one.name)
                .collect();
            let unique: std::collections::BTreeSet<_> = names.iter().collect();
            assert_eq!(unique.len(), names.len(), "{name}: a fact twice");
        }
    }
}

/// The percents that the article got wrong, and by how much at least.
const WRONG: [(&str, &str, f64); 5] = [
    ("1", "zfs", 99.0),
    ("19", "md", 4.0),
    ("13", "zfs", 1.5),
    ("23", "zfs", 1.4),
    ("26", "gmirror", 0.6),
];

#[test]
fn printed_percents_recompute_but_for_five() {
    let article = built_in("mirror-2015-article");
    let mut best: BTreeMap<(&str, Operation), f64> = BTreeMap::new();
    for row in rows(&article) {
        let best = best.entry((&row.job, row.op)).or_insert(0.0);
        *best = best.max(row.iops);
    }
    let mut checked = 0;
    for row in rows(&article) {
        let Some((percent, _)) = claim(&article, row, claim_part::PERCENT) else {
            continue;
        };
        let percent: f64 = percent.parse().expect("a percent");
        let base = claim(&article, row, claim_part::BASE)
            .map_or(best[&(row.job.as_str(), row.op)], |(base, _)| {
                base.parse().expect("a base")
            });
        let miss = (percent - (row.iops / base - 1.0) * 100.0).abs();
        let wrong = WRONG
            .iter()
            .find(|(job, subject, _)| *job == row.job && *subject == row.subject);
        match wrong {
            Some((.., least)) => assert!(miss >= *least, "{} job {}", row.subject, row.job),
            None => assert!(miss <= 0.5, "{} job {}: {miss}", row.subject, row.job),
        }
        checked += 1;
    }
    assert!(checked > 70);
}

#[test]
fn the_article_has_the_same_numbers_as_the_published_figures_of_the_suite() {
    let text = include_str!("../../../../data/published/mirror-2015.toml");
    let table: toml::Table = text.parse().expect("published figures are well-formed");
    let article = built_in("mirror-2015-article");
    let mut compared = 0;
    for figures in table["figures"].as_array().expect("a list") {
        let subject = figures["subject"].as_str().expect("a name");
        for cell in figures["cell"].as_array().expect("a list") {
            let op = cell["op"]
                .as_str()
                .and_then(|op| op.parse().ok())
                .expect("an operation");
            let row = find(&article, subject, cell["job"].as_str().expect("a job"), op);
            let printed = cell["article"].as_integer().expect("a whole number");
            let printed = printed as f64;
            assert!(
                (row.iops - printed).abs() < 0.01,
                "{subject} job {}",
                row.job
            );
            compared += 1;
        }
    }
    assert_eq!(compared, 4 * 30);
}

#[test]
fn units_of_dd_are_those_of_its_bytes_and_seconds() {
    let import = built_in("gmirror-md-2010");
    let row = find(&import, "gmirror", "dd-write-4k", Operation::Write);
    assert!((row.bytes_per_second / 1e6 - 51.40).abs() < 0.01);
    let printed = claim(&import, row, claim_part::VALUE);
    assert_eq!(printed, Some(("49.02".to_owned(), "MB/s".to_owned())));
    // Every printed rate of FreeBSD's is in MiB.
    for row in rows(&import).filter(|row| row.subject == "gmirror" && row.tool == "dd") {
        let (printed, _) = claim(&import, row, claim_part::VALUE).expect("printed");
        let printed: f64 = printed.parse().expect("a number");
        let mebibytes = row.bytes_per_second / 1_048_576.0;
        assert!((mebibytes / printed - 1.0).abs() < 0.002, "{}", row.job);
    }
    let swapped = find(&import, "md", "dd-read-1g", Operation::Read);
    assert_eq!(swapped.total_bytes, 0);
    let cell = import
        .cells
        .iter()
        .find(|cell| cell.cell == swapped.cell())
        .expect("its cell");
    let operand = fact::dd_operand("if");
    let found = cell
        .records
        .observations
        .iter()
        .find(|one| one.name == operand);
    assert_eq!(found.map(|one| one.value.as_str()), Some("/dev/null"));
}

#[test]
fn seeks_read_as_seconds_stay_rates() {
    let import = built_in("gmirror-md-2010");
    let gmirror = find(&import, "gmirror", "bonnie-files", Operation::Seek);
    let md = find(&import, "md", "bonnie-files", Operation::Seek);
    assert!(gmirror.iops > md.iops);
    let unit = claim(&import, md, claim_part::VALUE).map(|(_, unit)| unit);
    assert_eq!(unit.as_deref(), Some("s"));
    let winner = claim(&import, md, claim_part::WINNER).map(|(value, _)| value);
    assert_eq!(winner.as_deref(), Some(fact::TRUE));
    assert_eq!(gmirror.tool, "bonnie++ 1.96");
    assert_eq!(md.tool, "bonnie++ 1.03");
}

#[test]
fn a_read_faster_than_disks_keeps_what_shows_it() {
    let import = built_in("freebsd-zfs-2021");
    let row = find(&import, "mirror-sec63-cache-log", "bonnie", Operation::Read);
    assert!(row.bytes_per_second > 2.7e9);
    assert_eq!(row.cpu_percent, Some(99.0));
    assert_eq!(row.latency.max_ns, 391_000);
    let write = find(
        &import,
        "mirror-sec63-cache-log",
        "bonnie",
        Operation::Write,
    );
    assert_eq!(write.latency.max_ns, 437_000_000_000);
}

#[test]
fn doubtful_values_keep_the_other_one() {
    let import = built_in("unequal-2008");
    let row = find(&import, "raid0-a+b+c", "bonnie", Operation::Seek);
    let all: Vec<_> = row
        .published
        .iter()
        .map(|one| (one.iops, one.reliability.as_str()))
        .collect();
    assert_eq!(all, [(161.1, "uncertain"), (107.1, "disputed")]);
    // 17 arrays, each read, written and sought on.
    assert_eq!(rows(&import).count(), 51);
}

#[test]
fn an_option_lost_behind_another_is_in_the_command() {
    let import = built_in("ars-md-zfs-2020");
    assert_eq!(rows(&import).count(), 0);
    let commands = import.cells.iter().flat_map(|cell| &cell.records.commands);
    let glued = commands.filter(|one| one.command.contains("--end_fsync=1--time_based=1"));
    assert_eq!(glued.count(), 8);
}

fn error(text: &str) -> String {
    let error = import("mine.toml", text, &ImportOptions::default()).expect_err("it is broken");
    let source = std::error::Error::source(&error).map(ToString::to_string);
    format!("{error}: {}", source.unwrap_or_default())
}

#[test]
fn errors_name_file_place_and_problem() {
    let head = "kind = \"figures\"\nschema = 1\nname = \"a\"\ntitle = \"A\"\nsource = \"b\"\n\
        [[job]]\nname = \"1\"\ntitle = \"one\"\nclass = \"c\"\n";
    let cell = |job: &str, unit: &str, value: &str| {
        format!(
            "{head}[[subject]]\nname = \"md\"\ncell = [{{ job = \"{job}\", op = \"read\", \
             value = \"{value}\", unit = \"{unit}\", reliability = \"exact\" }}]\n"
        )
    };
    assert!(import("a", &cell("1", "MB/s", "12.5"), &ImportOptions::default()).is_ok());
    let text = error(&cell("1", "parsecs", "1"));
    assert!(
        text.contains("`mine.toml`: subject md, job 1, read: `parsecs` is no unit"),
        "{text}"
    );
    assert!(error(&cell("2", "MB/s", "1")).contains("subject md, job 2: no such job"));
    assert!(error(&cell("1", "MB/s", "fast")).contains("`fast` is no number"));
    let nothing = cell("1", "MB/s", "1").replace("op =", "cpu = nan, op =");
    let text = error(&nothing);
    assert!(
        text.contains("subject md, job 1, read: cpu cannot be NaN"),
        "{text}"
    );
    let twice = cell("1", "MB/s", "1") + "[[subject]]\nname = \"md\"\n";
    assert!(error(&twice).contains("subject md: told twice"));
    let alike = cell("1", "MB/s", "1") + "[[subject]]\nname = \"MD\"\n";
    let words = "subject MD: differs from subject md in capital letters alone";
    assert!(error(&alike).contains(words), "{}", error(&alike));
    let text = error(&head.replace("schema = 1", "schema = 2"));
    assert!(
        text.contains("line 2") && text.contains("schema 2 is not known"),
        "{text}"
    );
    for (facts, said) in [
        (
            "\"memory.total_byte\" = \"1\"",
            "did you mean `memory.total_bytes`?",
        ),
        (
            "ram = \"1GiB\"",
            "there is no fact `ram`; write `memory.total_bytes`",
        ),
    ] {
        let text = error(&format!("{head}[facts]\n{facts}\n"));
        assert!(
            text.contains("`mine.toml`: facts: ") && text.contains(said),
            "{text}"
        );
    }
    let unknown = import_figures("nobody", &ImportOptions::default()).expect_err("no such figures");
    assert!(unknown.to_string().contains("unequal-2008"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A file of figures with letters changed is read or refused.
    #[test]
    fn changed_figures_never_panic(
        which in 0_usize..5,
        place in 0.0_f64..1.0,
        length in 0_usize..40,
        instead in "[ -~\n]{0,8}",
    ) {
        let Entry { name, text } = *super::built_in().nth(which).expect("one of them");
        let mut letters: Vec<char> = text.chars().collect();
        // A place in a text.
        let from = (place * letters.len() as f64) as usize;
        let to = (from + length).min(letters.len());
        letters.splice(from..to, instead.chars());
        let text: String = letters.into_iter().collect();
        let _ = crate::import_file(name, &text, &ImportOptions::default());
    }
}
