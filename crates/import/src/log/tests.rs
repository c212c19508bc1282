use crate::{ImportOptions, Imported, import_figures, import_file};
use proptest::prelude::*;
use raidlab_store::fact::{self, outcome};
use std::fmt::Write as _;

const LOGS: [(&str, &str); 4] = [
    ("test_raid1_md.log", include_str!("data/md-2015.log")),
    (
        "test_raid1_gflash.log",
        include_str!("data/gflash-2015.log"),
    ),
    (
        "test_raid1_gmirror.log",
        include_str!("data/gmirror-2015.log"),
    ),
    ("test_raid1_zvol.log", include_str!("data/zvol-2015.log")),
];

fn imported(index: usize) -> Imported {
    let (name, text) = LOGS[index];
    import_file(name, text, &ImportOptions::default()).expect("an excerpt of a real log")
}

fn value<'a>(import: &'a Imported, name: &str) -> Option<&'a str> {
    let mut all = import.records.observations.iter();
    all.find(|one| one.name == name)
        .map(|one| one.value.as_str())
}

/// A fact of a job's cell.
fn of_job<'a>(import: &'a Imported, job: &str, name: &str) -> Option<&'a str> {
    let cell = import
        .cells
        .iter()
        .find(|cell| cell.rows.iter().any(|row| row.job == job))?;
    let mut all = cell.records.observations.iter();
    all.find(|one| one.name == name)
        .map(|one| one.value.as_str())
}

#[test]
fn rows_of_the_four_logs() {
    let mut text = String::new();
    for index in 0..LOGS.len() {
        let import = imported(index);
        assert_eq!(import.run.suite, "mirror-2015");
        for row in import.cells.iter().flat_map(|cell| &cell.rows) {
            let members: Vec<String> = row
                .members
                .iter()
                .map(|member| format!("{}r{}w", member.read_ios, member.write_ios))
                .collect();
            let _ = writeln!(
                text,
                "{} {:2} job {} {} {}: {} I/Os, {} bytes, {} ms, started {} s, depth {}, streams {}, \
                 state {}, sync {:?}, members {}, printed {}",
                row.subject,
                row.sequence,
                row.job,
                row.class,
                row.op,
                row.total_ios,
                row.total_bytes,
                row.runtime_ns / 1_000_000,
                row.started_ns / 1_000_000_000,
                row.queue_depth,
                row.streams,
                row.array_state_start,
                row.sync_percent_start,
                members.join(" "),
                row.published.first().map_or(0.0, |printed| printed.iops),
            );
        }
    }
    insta::assert_snapshot!(text);
}

#[test]
fn figures_of_the_logs_are_those_printed_cut_to_whole_numbers() {
    for index in 0..LOGS.len() {
        let import = imported(index);
        for row in import.cells.iter().flat_map(|cell| &cell.rows) {
            let printed = row.published.first().expect("the article has every job");
            // Of another run than the log.
            let is_other_run = row.subject == "gflash" && row.job == "21";
            let differs = (row.iops.floor() - printed.iops).abs() > 0.5;
            assert_eq!(differs, is_other_run, "{} job {}", row.subject, row.job);
            assert_eq!(printed.reliability == "disputed", is_other_run);
        }
    }
}

#[test]
fn a_setting_that_was_asked_for_and_is_not_in_force_is_seen() {
    let import = imported(3);
    let get = |what: &str| value(&import, &fact::setting("primarycache", what));
    assert_eq!(get(outcome::ASKED), Some("metadata"));
    assert_eq!(get(outcome::FOUND), Some("all"));
    assert_eq!(get(outcome::APPLIED), Some(fact::FALSE));
    let checksum = fact::setting("checksum", outcome::APPLIED);
    assert_eq!(value(&import, &checksum), Some(fact::TRUE));
    let has = |command: &str| {
        let mut all = import.records.commands.iter();
        all.any(|one| one.command == command)
    };
    assert!(has("zfs set primarycache=metadata"));
    assert_eq!(of_job(&import, "1", fact::WRITTEN_PERCENT), Some("0"));
}

#[test]
fn the_machine_the_disks_and_the_array_are_told() {
    let md = imported(0);
    assert_eq!(value(&md, fact::OS_RELEASE), Some("3.16.0-31-generic"));
    assert_eq!(value(&md, fact::OS_NAME), Some("Ubuntu"));
    assert_eq!(value(&md, "disk.sdc.model"), Some("WDC WD4000FYYZ-01UL1B2"));
    assert_eq!(value(&md, "disk.sdd.write_cache"), Some("write back"));
    assert_eq!(value(&md, "disk.sdd.size_bytes"), Some("4000787030016"));
    assert_eq!(value(&md, "member.1.device"), Some("sdd1"));
    assert_eq!(value(&md, fact::ARRAY_LEVEL), Some("raid1"));
    assert_eq!(value(&md, fact::ARRAY_BITMAP), Some("none"));
    let gmirror = imported(2);
    assert_eq!(value(&gmirror, "setting.balance.found"), Some("load"));
    assert_eq!(value(&gmirror, "disk.ada3.serial"), Some("WD-WCC133L4YFU8"));
    assert_eq!(value(&gmirror, fact::OS_VERSION), Some("10.1"));
}

#[test]
fn options_come_from_the_scripts_and_the_log_wins() {
    let gflash = imported(1);
    let get = |job, name: &str| of_job(&gflash, job, name);
    assert_eq!(get("9", &fact::fio_option("gtod_reduce")), Some("1"));
    assert_eq!(get("9", &fact::fio_option("numjobs")), Some("4"));
    assert_eq!(get("9", &fact::fio_option("iodepth")), Some("1"));
    assert_eq!(get("9", &fact::fio_option("ioengine")), Some("sync"));
    assert_eq!(get("9", fact::FIO_JOBS), Some("4"));
    assert_eq!(get("9", fact::JOB_ASKED_RUNTIME_NS), Some("60000000000"));
    assert_eq!(get("9", fact::JOB_OFFSET_BYTES), Some("13631488"));
    assert_eq!(get("18", fact::JOB_ASKED_SIZE_BYTES), Some("8589934592"));
    let md = imported(0);
    let depth = of_job(&md, "9", &fact::fio_option("iodepth"));
    assert_eq!(depth, Some("4"));
    let cell = md.cells.iter().find(|cell| cell.cell.sequence == 8);
    let command = cell.and_then(|cell| cell.records.commands.first());
    assert_eq!(
        command.map(|command| command.command.as_str()),
        Some(
            "fio --name=9_4rr4k --filename=/dev/md1 --rw=randread --bs=4k --ioengine=libaio \
             --iodepth=4 --filesize=3t --offset=13m --runtime=60 --direct=1 --gtod_reduce=1"
        )
    );
}

#[test]
fn members_that_vanish_and_come_back_are_events() {
    for (index, (name, _)) in LOGS.iter().enumerate() {
        let import = imported(index);
        let kinds: Vec<(&str, Option<u32>)> = import
            .records
            .events
            .iter()
            .map(|event| (event.kind.as_str(), event.member))
            .collect();
        assert_eq!(
            kinds,
            [
                ("remove", Some(1)),
                ("insert", Some(1)),
                ("sync-start", None)
            ],
            "{name}"
        );
        let active = |job| of_job(&import, job, fact::SYNC_ACTIVE_START);
        assert_eq!(active("9"), Some("none"));
        assert_eq!(active("21"), Some("recovery"));
        let removed = import.records.events[0].at_ns;
        let before = import.cells.iter().flat_map(|cell| &cell.rows);
        let ended = before
            .filter(|row| row.job == "20")
            .map(|row| row.started_ns + row.runtime_ns)
            .max();
        assert!(ended.is_some_and(|ended| ended <= removed));
    }
}

#[test]
fn logs_and_article_are_one_run() {
    let article = import_figures("mirror-2015-article", &ImportOptions::default());
    let article = article.expect("built in");
    let all = article.join(imported(1)).join(imported(0));
    let of = |subject: &str, job: &str| {
        let mut cells = all.cells.iter();
        cells.find(|cell| {
            cell.rows
                .iter()
                .any(|row| row.job == job && row.subject == subject)
        })
    };
    let logged = of("gflash", "21").expect("in the log");
    assert_eq!(logged.rows[0].total_ios, 11648);
    let claims = |cell: &raidlab_store::CellResult, name: &str| {
        let mut all = cell.records.observations.iter();
        all.find(|one| one.name == name)
            .map(|one| one.value.clone())
    };
    assert_eq!(claims(logged, "claim.read.value").as_deref(), Some("172"));
    let md = of("md", "19").expect("in both");
    assert_eq!(claims(md, "claim.read.percent").as_deref(), Some("-99"));
    let printed = of("zfs", "13").expect("in the article");
    assert_eq!(printed.rows[0].total_ios, 0);
    let cells: std::collections::BTreeSet<_> = all.cells.iter().map(|cell| &cell.cell).collect();
    assert_eq!(cells.len(), all.cells.len());
    assert_eq!(cells.len(), 4 * 29);
}

#[test]
fn the_same_log_twice_is_two_repetitions() {
    let twice = imported(0).join(imported(0));
    let repetitions: Vec<u32> = twice
        .cells
        .iter()
        .map(|cell| cell.cell.repetition)
        .collect();
    assert_eq!(repetitions.iter().filter(|number| **number == 1).count(), 6);
    assert_eq!(twice.cells.len(), 12);
}

#[test]
fn a_job_that_ran_twice_in_one_log_is_a_repetition() {
    let text = format!("{0}{0}", LOGS[0].1);
    let import = import_file("both.log", &text, &ImportOptions::default()).expect("a log");
    assert_eq!(import.run.suite, "mirror-2015");
    let second = import.cells.iter().filter(|cell| cell.cell.repetition == 1);
    assert_eq!(second.count(), 6);
}

#[test]
fn a_log_of_other_jobs_has_titles_of_its_own() {
    let text = LOGS[0]
        .1
        .replace("9_4rr4k", "reads")
        .replace("1_1rw4k", "reads");
    let options = ImportOptions {
        subject: Some("md-mine".to_owned()),
        ..ImportOptions::default()
    };
    let import = import_file("mine.log", &text, &options).expect("a log");
    let rows: Vec<_> = import.cells.iter().flat_map(|cell| &cell.rows).collect();
    assert_eq!(import.run.suite, "fio");
    assert_eq!(rows[0].subject, "md-mine");
    assert_eq!(rows[1].job, "reads #2");
    assert_eq!(rows[1].job_title, "random read 4 KiB, queue depth 4");
    assert_eq!(rows[1].class, "random-read");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever becomes of a log on its way, importers give a result or an
    /// error, and no rate is other than a number.
    #[test]
    fn no_text_makes_an_importer_panic(
        log in 0..LOGS.len(),
        cuts in proptest::collection::vec((0.0_f64..1.0, 0_usize..400, "[ -~\n\t\u{e9}]{0,12}"), 1..8),
    ) {
        let (name, text) = LOGS[log];
        let mut letters: Vec<char> = text.chars().collect();
        for (place, length, instead) in cuts {
            // A place in a text.
            let from = (place * letters.len() as f64) as usize;
            let to = (from + length).min(letters.len());
            letters.splice(from..to, instead.chars());
        }
        let text: String = letters.into_iter().collect();
        if let Ok(import) = import_file(name, &text, &ImportOptions::default()) {
            let cells: std::collections::BTreeSet<_> =
                import.cells.iter().map(|cell| &cell.cell).collect();
            prop_assert_eq!(cells.len(), import.cells.len());
            for row in import.cells.iter().flat_map(|cell| &cell.rows) {
                prop_assert!(row.iops.is_finite() && row.bytes_per_second.is_finite());
            }
        }
    }
}
