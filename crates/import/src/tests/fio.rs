//! Outputs of fio that are read into rows: JSON, text and terse, logs, groups and several runs.

use super::rows;
use crate::{ImportOptions, Imported, import_file};
use raidlab_store::{Measurement, fact};

/// What fio 3.33 prints of two jobs: `rw` and block size, groups and clones as told.
fn printed(jobs: &[(&str, &str, &str, u32)]) -> String {
    let heads = jobs.iter().map(|(name, pattern, block, group)| {
        format!(
            "{name}: (g={group}): rw={pattern}, bs=(R) {block}-{block}, (W) {block}-{block}, \
             (T) {block}-{block}, ioengine=psync, iodepth=1\n"
        )
    });
    let results = jobs.iter().enumerate().map(|(process, (name, _, _, group))| {
        format!(
            "{name}: (groupid={group}, jobs=1): err= 0: pid={process}: Fri Nov 27 13:25:26 2026\n  \
             read: IOPS=100, BW=400KiB/s (410kB/s)(4000KiB/10000msec)\n     \
             issued rwts: total=1000,0,0,0 short=0,0,0,0 dropped=0,0,0,0\n"
        )
    });
    heads.collect::<String>() + "fio-3.33\n\n" + &results.collect::<String>() + "\n"
}

fn titles(rows: &[Measurement]) -> Vec<(&str, &str, u64)> {
    let told = rows
        .iter()
        .map(|row| (row.job.as_str(), row.job_title.as_str(), row.total_ios));
    told.collect()
}

/// Jobs behind a `stonewall` ran one after the other, also where a log has several runs of
/// them; clones and other jobs of one group ran together.
#[test]
fn groups_of_fio_are_apart_and_jobs_of_one_are_together() {
    let walled = printed(&[
        ("stream", "read", "64.0KiB", 0),
        ("seeks", "randread", "4096B", 1),
    ]);
    let apart = [
        ("stream", "sequential read 64 KiB, queue depth 1", 1000),
        ("seeks", "random read 4 KiB, queue depth 1", 1000),
    ];
    assert_eq!(titles(&rows("one.txt", &walled)), apart);
    let twice = rows("twice.txt", &format!("{walled}{walled}"));
    assert_eq!(titles(&twice)[..2], apart);
    assert_eq!(twice[2].job, "stream #2");
    assert_eq!(twice.len(), 4);
    let clones = printed(&[("a", "randread", "4096B", 0), ("a", "randread", "4096B", 0)]);
    assert_eq!(
        titles(&rows("clones.txt", &clones)),
        [("a", "random read 4 KiB, queue depth 2 of 2 jobs", 2000)]
    );
    let beside = printed(&[
        ("stream", "read", "64.0KiB", 0),
        ("seeks", "randread", "4096B", 0),
    ]);
    let beside = rows("beside.txt", &beside);
    let title = "sequential read 64 KiB beside random read 4 KiB, queue depth 2 of 2 jobs";
    assert_eq!(titles(&beside), [("stream+seeks", title, 2000)]);
    assert_eq!(beside[0].class, "mixed");
}

/// A script's `>>`, in terse output: each line says group 0.
#[test]
fn every_run_of_terse_output_arrives() {
    let line = include_str!("../../../tools/src/fio/data/fio-3.33-v3.terse").trim_end();
    let other = line
        .replace(";vda;0;", ";vda;7;")
        .replacen(";1984;", ";3968;", 1)
        .replacen(";2112;", ";4224;", 1);
    assert_ne!(other, line);
    let both = rows("both.terse", &format!("{line}\n{other}\n"));
    let told: Vec<_> = both
        .iter()
        .map(|row| (row.op.name(), row.block_size_bytes, row.total_bytes >> 10))
        .collect();
    assert_eq!(
        told,
        [
            ("read", 4096, 1984),
            ("write", 4096, 2112),
            ("read", 8192, 3968),
            ("write", 8192, 4224)
        ]
    );
    // Two lines of one report are two clones.
    let clones = rows("clones.terse", &format!("{line}\n{line}\n"));
    assert_eq!(clones[0].total_bytes >> 10, 2 * 1984);
    assert_eq!(clones[0].streams, 2);
    // Depths of 32 to 63 are one level, and the option is not told.
    let deep = line.replace(
        ";100.0%;0.0%;0.0%;0.0%;0.0%;0.0%;",
        ";0.1%;0.1%;0.1%;0.1%;0.1%;99.7%;",
    );
    let deep = rows("deep.terse", &deep);
    assert_eq!(deep[0].queue_depth, 32);
    assert!(
        deep[0].job_title.ends_with("queue depth 32 or more"),
        "{}",
        deep[0].job_title
    );
}

/// Of fio 3.33, shortened: a job behind a `stonewall` whose `exec_prerun` failed, and a clone
/// that met an error.
#[test]
fn jobs_that_failed_are_told() {
    let job = |name: &str, group: u32, error: u32, ios: u32| {
        format!(
            "{{ \"jobname\": \"{name}\", \"groupid\": {group}, \"error\": {error}, \
             \"job options\": {{ \"rw\": \"randread\", \"bs\": \"4k\" }}, \"read\": {{ \
             \"io_bytes\": {}, \"total_ios\": {ios}, \"runtime\": 2000, \"short_ios\": {error} }} }}",
            ios * 4096
        )
    };
    let document = |jobs: [String; 2]| {
        let jobs = jobs.join(",");
        format!("{{ \"fio version\": \"fio-3.33\", \"jobs\": [ {jobs} ] }}\n")
    };
    let import = |text: &str| import_file("a.json", text, &ImportOptions::default());
    let text = document([job("good", 0, 0, 500), job("bad", 1, 5, 0)]);
    let imported = import(&text).expect("one job did something");
    assert_eq!(
        imported.notes,
        ["a.json: job `bad` did nothing, and ended with error 5"]
    );
    let row = &imported.cells[0].rows[0];
    assert_eq!(row.job_title, "random read 4 KiB, queue depth 1");
    let fact = |imported: &Imported, name: &str| {
        let all = &imported.cells[0].records.observations;
        let found = all.iter().find(|fact| fact.name == name);
        found.map(|fact| fact.value.clone())
    };
    assert_eq!(fact(&imported, fact::FIO_ERROR).as_deref(), Some("0"));
    let text = document([job("a", 0, 0, 500), job("a", 0, 5, 20)]);
    let imported = import(&text).expect("both did something");
    assert_eq!(fact(&imported, fact::FIO_ERROR).as_deref(), Some("5"));
    assert_eq!(fact(&imported, fact::FIO_SHORT_IOS).as_deref(), Some("5"));
}

/// Clones have files of their own unless one is named for all.
#[test]
fn a_working_set_is_of_all_clones_files() {
    let set = |options: &str| {
        let text = format!(
            "{{ \"fio version\": \"fio-3.33\", \"jobs\": [ {{ \"jobname\": \"w\", \"groupid\": 0, \
             \"job options\": {{ \"rw\": \"randread\", \"size\": \"1g\", \"numjobs\": \"4\"{options} }}, \
             \"read\": {{ \"io_bytes\": 4096, \"total_ios\": 1, \"runtime\": 2000 }} }} ] }}\n"
        );
        let imported = import_file("a.json", &text, &ImportOptions::default()).expect("JSON");
        let all = &imported.cells[0].records.observations;
        let mut found = all.iter();
        let found = found.find(|one| one.name == fact::JOB_WORKING_SET_BYTES);
        found.map(|one| one.value.parse::<u64>().expect("bytes") >> 30)
    };
    assert_eq!(set(", \"directory\": \"/mnt\""), Some(4));
    assert_eq!(set(", \"filename\": \"/dev/md0\""), Some(1));
    // `size` is of all files together, `filesize` of each.
    assert_eq!(set(", \"nrfiles\": \"8\""), Some(4));
    let files = ", \"filesize\": \"4g\", \"nrfiles\": \"8\"";
    assert_eq!(set(files), Some(4 * 32));
    let named = r"a\\:b:c";
    assert_eq!(set(&format!("{files}, \"filename\": \"{named}\"")), Some(8));
}

/// `--output` of a job that verifies: a buffer of 4 KiB that ends within a line stands before
/// the JSON; and with `--output-format=normal,json` fio's text does.
#[test]
fn json_begins_wherever_its_head_is() {
    let json = include_str!("../../../tools/src/fio/data/fio-3.33-two-jobs.json");
    let lines = "crc32c: verify failed at file x\n".repeat(20);
    let text = format!("{lines}crc32c: verify fai{json}");
    let imported = import_file("a.json", &text, &ImportOptions::default()).expect("JSON");
    assert_eq!(imported.notes.len(), 9, "{:?}", imported.notes);
    assert_eq!(imported.notes[8], "a.json: fio says 13 lines more");
    let marked = import_file(
        "a.json",
        &format!("\u{feff}{json}"),
        &ImportOptions::default(),
    );
    assert_eq!(marked.expect("JSON").notes, [""; 0]);
    let people = printed(&[("a", "randread", "4096B", 0)]);
    let text = format!("{people}\n{json}");
    let imported = import_file("a.json", &text, &ImportOptions::default()).expect("JSON");
    assert_eq!(
        imported.notes,
        ["a.json: fio says: results in its other forms beside the JSON are left out"]
    );
}

/// Names and random numbers are not of the load, and of text for people no options are known.
#[test]
fn a_job_with_other_options_is_no_repetition() {
    let run = |file: &str, options: &str| {
        let text = format!(
            "{{ \"fio version\": \"fio-3.33\", \"jobs\": [ {{ \"jobname\": \"x\", \"elapsed\": 3, \
             \"job options\": {{ \"rw\": \"randwrite\", \"bs\": \"4k\"{options} }}, \"write\": {{ \
             \"io_bytes\": 4096000, \"total_ios\": 1000, \"runtime\": 2000 }} }} ] }}\n"
        );
        let subject = Some("one".to_owned());
        let options = ImportOptions {
            subject,
            ..ImportOptions::default()
        };
        import_file(file, &text, &options).expect("a run")
    };
    let (direct, seed) = (", \"direct\": \"1\"", ", \"randseed\": \"7\"");
    let synced = format!("{direct}, \"fsync\": \"1\"");
    let all = [direct, &synced, "", &format!("{synced}{seed}"), seed];
    let runs = all.iter().map(|options| run("a.json", options));
    let text = import_file(
        "a.txt",
        &printed(&[("x", "randwrite", "4096B", 0)]),
        &ImportOptions {
            subject: Some("one".to_owned()),
            ..ImportOptions::default()
        },
    );
    let runs = runs.chain([text.expect("a run")]);
    let all = runs.reduce(Imported::join).expect("runs");
    let rows = all.cells.iter().flat_map(|cell| &cell.rows);
    let jobs: Vec<_> = rows
        .map(|row| (row.job_title.as_str(), row.repetition))
        .collect();
    let plain = "random write 4 KiB, queue depth 1";
    let [synced, buffered] = ["fsync=1", "without direct"].map(|words| format!("{plain}, {words}"));
    assert_eq!(
        jobs,
        [
            (plain, 0),
            (plain, 1),
            (&*synced, 0),
            (&*synced, 1),
            (&*buffered, 0),
            (&*buffered, 1),
        ]
    );
}

#[test]
fn clones_that_fio_reports_together_count_each() {
    let json = include_str!("../../../tools/src/fio/data/fio-3.33-group.json");
    let row = &rows("a.json", json)[0];
    assert_eq!((row.queue_depth, row.streams), (8, 2));
    assert_eq!(row.job_title, "random read 4 KiB, queue depth 8 of 2 jobs");
    // fio prints the mean of both: 28.9 %.
    let percent = row.cpu_percent.expect("fio tells");
    assert!((percent - 57.8).abs() < 0.1, "{percent}");
}

/// As `fio --output-format=json >> results.json` leaves it.
#[test]
fn every_run_of_a_file_that_was_appended_to_arrives() {
    let document = |at: u64, block: u64, ios: u64| {
        format!(
            "{{ \"fio version\": \"fio-3.33\", \"timestamp_ms\": {at}, \"jobs\": [ {{ \
             \"jobname\": \"x\", \"elapsed\": 3, \"job options\": {{ \"rw\": \"randread\", \
             \"bs\": \"{block}k\" }}, \"read\": {{ \"io_bytes\": {}, \"total_ios\": {ios}, \
             \"runtime\": 2000 }} }} ] }}\n",
            ios * block * 1024
        )
    };
    let text = [
        document(1_795_716_465_169, 4, 8000),
        document(1_795_716_473_426, 64, 4000),
        document(1_795_716_483_426, 4, 9000),
    ];
    let imported = import_file("all.json", &text.concat(), &ImportOptions::default());
    let imported = imported.expect("three runs");
    let rows: Vec<_> = imported
        .cells
        .iter()
        .flat_map(|cell| &cell.rows)
        .map(|row| (row.job_title.as_str(), row.repetition, row.total_ios))
        .collect();
    assert_eq!(
        rows,
        [
            ("random read 4 KiB, queue depth 1", 0, 8000),
            ("random read 4 KiB, queue depth 1", 1, 9000),
            ("random read 64 KiB, queue depth 1", 0, 4000),
        ]
    );
    assert_eq!(imported.run.source, "all.json");
}

/// In Markdown text of tools is indented by four blanks, and whoever answers quotes it.
#[test]
fn quoted_and_indented_text_is_read_as_it_was_printed() {
    let text = printed(&[("seeks", "randread", "4096B", 0)]);
    let expected = format!("{:?}", titles(&rows("plain.txt", &text)));
    for mark in ["    ", "> ", ">> \t"] {
        let blank = mark.trim_end();
        let marked = text.lines().map(|line| match line {
            "" => format!("{blank}\n"),
            line => format!("{mark}{line}\n"),
        });
        let marked = rows("marked.txt", &marked.collect::<String>());
        assert_eq!(format!("{:?}", titles(&marked)), expected, "{mark:?}");
    }
}

/// Where neither the options nor the levels of the queue are told, a depth of one is not said.
#[test]
fn a_depth_that_nobody_tells_is_not_said_to_be_one() {
    let text = printed(&[("seeks", "randread", "4096B", 0)]);
    let piece = &text[text.find("seeks: (groupid").expect("a result")..];
    assert_eq!(
        titles(&rows("piece.txt", piece)),
        [("seeks", "read, queue depth 1 or more", 1000)]
    );
}

/// Of a text that ends too early the jobs are named that it has no result of, and a number
/// that is cut in two is none.
#[test]
fn text_that_is_cut_off_says_what_is_missing() {
    let text = printed(&[
        ("stream", "read", "64.0KiB", 0),
        ("seeks", "randread", "4096B", 1),
    ]);
    let end = text.find("seeks: (groupid").expect("a result");
    let import = import_file("cut.txt", &text[..end], &ImportOptions::default()).expect("a row");
    assert_eq!(
        import.notes,
        ["cut.txt: no result of job `seeks` is in it: was its end cut off?"]
    );
    let whole = import_file("whole.txt", &text, &ImportOptions::default()).expect("rows");
    assert!(whole.notes.is_empty(), "{:?}", whole.notes);
    let all = include_str!("../../../tools/src/fio/data/fio-3.33.txt");
    let cut = |at: &str, length: usize| {
        let end = all.rfind(at).expect("a line of it") + length;
        let import = import_file("cut.txt", &all[..end], &ImportOptions::default()).expect("rows");
        let last = |row: &Measurement| (row.op.name().to_owned(), row.total_ios, row.total_bytes);
        (
            import.cells[0].rows.iter().map(last).collect::<Vec<_>>(),
            import.notes,
        )
    };
    // Within a percentile, and within the count of a job's requests.
    for (at, length) in [("99.99th=[99840]", 12), ("issued rwts: total=0,64", 21)] {
        let (rows, notes) = cut(at, length);
        assert!(
            notes[0].contains("the last line is cut off and left out: `"),
            "{notes:?}"
        );
        assert_eq!(rows[0], ("read".to_owned(), 982, 3928 << 10));
        // Of the third job, which was cut, fio told the bytes, and no count.
        assert_eq!(rows[1], ("write".to_owned(), 1066, 8360 << 10));
    }
    // What was pasted without the end of its last line is whole.
    for end in [
        "util=0.00%",
        "-132msec",
        "depth=1",
        "dropped=0,0,0,0",
        "stdev=15426.95",
    ] {
        assert_eq!(cut(end, end.len()).1, [""; 0], "{end}");
    }
}
