use crate::log::is_log;
use crate::{ImportError, ImportOptions, Imported, import_file};
use raidlab_store::{Measurement, fact};
use raidlab_tools::detect;
use std::collections::BTreeMap;
use std::path::Path;

fn rows(name: &str, text: &str) -> Vec<Measurement> {
    let options = ImportOptions {
        host: Some("tower".to_owned()),
        filesystem: Some("ext4".to_owned()),
        ..ImportOptions::default()
    };
    let import = import_file(name, text, &options).expect("a tool's own output");
    import
        .cells
        .into_iter()
        .flat_map(|cell| cell.rows)
        .collect()
}

#[test]
fn each_job_of_fio_is_a_cell_with_words_for_people() {
    let json = include_str!("../../tools/src/fio/data/fio-3.33-two-jobs.json");
    let rows = rows("results/raid6.json", json);
    assert!(!rows.is_empty());
    for row in &rows {
        assert_eq!(row.subject, "raid6");
        assert_eq!(
            (row.host.as_str(), row.filesystem.as_str()),
            ("tower", "ext4")
        );
        assert_eq!((row.bench.as_str(), row.suite.as_str()), ("import", "fio"));
        assert!(row.job_title.contains("queue depth"), "{}", row.job_title);
        assert!(row.runtime_ns > 0 && row.total_ios > 0);
        assert_eq!(row.tool, "fio 3.33");
    }
}

#[test]
fn the_other_tools_are_known_by_their_text() {
    let bonnie = rows(
        "a.csv",
        include_str!("../../tools/src/bonnie/data/2.00a-x2.csv"),
    );
    assert!(bonnie.iter().any(|row| row.job == "bonnie++ #2"));
    let iozone = rows(
        "b.txt",
        include_str!("../../tools/src/iozone/data/3.489-subset.txt"),
    );
    assert!(
        iozone
            .iter()
            .all(|row| row.class == "iozone" && !row.part.is_empty())
    );
    let dd = rows(
        "c.txt",
        include_str!("../../tools/src/dd/data/gnu-9.1-c.txt"),
    );
    assert_eq!(dd.len(), 1);
    assert!(dd[0].bytes_per_second > 0.0);
}

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
    let line = include_str!("../../tools/src/fio/data/fio-3.33-v3.terse").trim_end();
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
}

/// `--output` of a job that verifies: a buffer of 4 KiB that ends within a line stands before
/// the JSON; and with `--output-format=normal,json` fio's text does.
#[test]
fn json_begins_wherever_its_head_is() {
    let json = include_str!("../../tools/src/fio/data/fio-3.33-two-jobs.json");
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

/// Each part of a tool's output that has a number is in a row, and each row is of one.
#[test]
fn nothing_that_a_tool_measured_is_dropped() {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tools/src");
    let mut files = 0;
    for tool in std::fs::read_dir(&tools).expect("the tools") {
        let Ok(data) = std::fs::read_dir(tool.expect("a tool").path().join("data")) else {
            continue;
        };
        for file in data {
            let file = file.expect("a fixture").path();
            let text = std::fs::read_to_string(&file).expect("a text");
            let name = file.display().to_string();
            let format = detect(&text).expect(&name);
            let rows = rows(&name, &text);
            if is_log(&text) {
                assert!(!rows.is_empty(), "{name}");
                continue;
            }
            let result = (format.parse)(&text).expect(&name);
            let mut expected = BTreeMap::new();
            let mut without_rate = 0;
            for part in &result.parts {
                let some = |count: Option<u64>| count.is_some_and(|count| count > 0);
                let says = some(part.total_ios) || some(part.total_bytes) || part.has_rate();
                // What has a count and no rate says so by name.
                let named = part.facts.iter().any(|fact| fact.name == "no-rate");
                if named && !part.has_rate() {
                    without_rate += 1;
                } else if says || part.latency().is_some() {
                    let group = result.tool.group(&result, part);
                    let label = result.tool.part_name(part);
                    let timed = expected
                        .entry((group, part.operation, label))
                        .or_insert(false);
                    let latency = part.latency();
                    *timed |= latency.is_some_and(|one| {
                        one.max_ns.or(one.samples).is_some() || one.mean_ns.is_some()
                    });
                }
            }
            // A dd that copied nothing, or told no bytes, is a row all the same.
            let with_number = |row: &&Measurement| {
                row.total_ios > 0
                    || row.total_bytes > 0
                    || row.iops > 0.0
                    || row.bytes_per_second > 0.0
            };
            let measured = rows.iter().filter(with_number).count();
            let most = expected.len() + without_rate;
            assert!(
                (expected.len()..=most).contains(&measured),
                "{name}: {expected:?}"
            );
            assert!(!rows.is_empty(), "{name}");
            let times = rows
                .iter()
                .filter(|row| row.latency.max_ns > 0 || row.latency.mean_ns > 0.0);
            let timed = expected.values().filter(|timed| **timed);
            assert_eq!(times.count(), timed.count(), "{name}: {expected:?}");
            files += 1;
        }
    }
    assert!(files > 20, "{files}");
}

#[test]
fn what_nobody_wrote_is_refused_by_name() {
    let error = import_file("notes.txt", "nothing here", &ImportOptions::default());
    assert!(matches!(&error, Err(ImportError::Unknown { name }) if name == "notes.txt"));
}

#[test]
fn the_manual_s_figures_can_be_imported() {
    let manual = include_str!("../../../docs/reference/import.md");
    let blocks: Vec<&str> = manual
        .split("```toml\n")
        .skip(1)
        .filter_map(|block| block.split("```").next())
        .collect();
    assert_eq!(blocks.len(), 2);
    let options = ImportOptions::default();
    let own = import_file("mine.toml", blocks[0], &options).expect("the manual's example");
    assert!((own.cells[0].rows[0].bytes_per_second - 49.02 * 1_048_576.0).abs() < 1.0);
    // Without the cell, as output of the same job follows.
    let head = blocks[0].split("cell = [").next().unwrap_or_default();
    let text = format!("{head}{}", blocks[1]);
    let own = import_file("mine.toml", &text, &options).expect("the manual's example");
    assert_eq!(own.cells[0].rows[0].total_ios, 16384);
}

fn dd(name: &str, blocks: &[u64]) -> Imported {
    let runs = blocks.iter().map(|block| {
        let bytes = block * 1024;
        format!(
            "1024+0 records in\n1024+0 records out\n{bytes} bytes copied, 10 s, {} B/s\n",
            bytes / 10
        )
    });
    let text: String = runs.collect();
    import_file(name, &text, &ImportOptions::default()).expect("dd's own output")
}

#[test]
fn other_jobs_of_another_file_have_places_of_their_own() {
    let all = dd("a", &[4096]).join(dd("b", &[8192, 16384]));
    let places: Vec<_> = all
        .cells
        .iter()
        .map(|cell| (cell.cell.subject.as_str(), cell.cell.repetition))
        .collect();
    assert_eq!(places, [("a", 0), ("b", 0), ("b", 0)]);
    let sequences: std::collections::BTreeSet<u32> =
        all.cells.iter().map(|cell| cell.cell.sequence).collect();
    assert_eq!(sequences.len(), 3, "{sequences:?}");
}

#[test]
fn a_tool_that_counts_no_operations_is_measured_twice_too() {
    for text in [
        include_str!("../../tools/src/iozone/data/3.489-subset.txt"),
        include_str!("../../tools/src/bonnie/data/2.00a-x2.csv"),
    ] {
        let once = || import_file("a", text, &ImportOptions::default()).expect("a tool's own");
        let cells = once().cells.len();
        let twice = once().join(once());
        let again = twice.cells.iter().filter(|one| one.cell.repetition == 1);
        assert_eq!(again.count(), cells);
    }
}

#[test]
fn a_command_s_megabytes_are_dd_s() {
    let text = "# dd if=/dev/zero of=f bs=1MB count=1000 conv=fsync\n\
        1000+0 records in\n1000+0 records out\n1000000000 bytes (1.0 GB) copied, 10 s, 100 MB/s\n";
    let import = import_file("a", text, &ImportOptions::default()).expect("dd's own output");
    let facts = &import.cells[0].records.observations;
    let asked = |name: &str| {
        let found = facts.iter().find(|one| one.name == name);
        found.map(|one| one.value.as_str())
    };
    assert_eq!(asked(fact::JOB_ASKED_SIZE_BYTES), Some("1000000000"));
}

#[test]
fn clones_that_fio_reports_together_count_each() {
    let json = include_str!("../../tools/src/fio/data/fio-3.33-group.json");
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

#[test]
fn figures_of_two_articles_stand_beside_each_other() {
    let article = |value: u32, ops: &[&str]| {
        let cells = ops.iter().map(|op| {
            format!(
                "{{ job = \"1\", op = \"{op}\", value = \"{value}\", unit = \"1/s\", \
                 reliability = \"exact\" }}"
            )
        });
        let text = format!(
            "kind = \"figures\"\nschema = 1\nname = \"a\"\ntitle = \"A\"\nsource = \"b\"\n\
             [[job]]\nname = \"1\"\ntitle = \"one\"\nclass = \"c\"\nblock = \"4k\"\n\
             [[subject]]\nname = \"md\"\ncell = [{}]\n",
            cells.collect::<Vec<_>>().join(", ")
        );
        import_file("a.toml", &text, &ImportOptions::default()).expect("figures")
    };
    let both = article(100, &["read"]).join(article(777, &["read", "write"]));
    let rows: Vec<_> = both.cells.iter().flat_map(|cell| &cell.rows).collect();
    let told: Vec<Vec<f64>> = rows
        .iter()
        .map(|row| row.published.iter().map(|figure| figure.iops).collect())
        .collect();
    assert_eq!(told, [vec![100.0, 777.0], vec![777.0]]);
    assert_eq!([rows[0].iops, rows[1].iops], [100.0, 777.0]);
}

#[test]
fn claims_without_figures_stay_with_their_job() {
    let article = |job: &str, rest: &str| {
        let text = format!(
            "kind = \"figures\"\nschema = 1\nname = \"a\"\ntitle = \"A\"\nsource = \"b\"\n\
             [[job]]\nname = \"{job}\"\ntitle = \"{job}\"\nclass = \"c\"\n\
             [[subject]]\nname = \"md\"\n{rest}\n"
        );
        import_file("a.toml", &text, &ImportOptions::default()).expect("figures")
    };
    let figure = article(
        "1",
        "cell = [{ job = \"1\", op = \"read\", value = \"9\", unit = \"1/s\", \
         reliability = \"exact\" }]",
    );
    let claim = article(
        "2",
        "[[claim]]\nsubject = \"md\"\njob = \"2\"\nop = \"read\"\npercent = 50.0",
    );
    let both = figure.join(claim);
    let claims: Vec<_> = both
        .cells
        .iter()
        .map(|cell| {
            let names = cell.records.observations.iter().map(|one| &one.name);
            let claims = names.filter(|name| name.ends_with("percent")).count();
            (cell.cell.sequence, cell.rows.len(), claims)
        })
        .collect();
    assert_eq!(claims, [(0, 1, 0), (1, 0, 1)]);
}

#[test]
fn output_of_every_tool_in_a_file_arrives() {
    let bonnie = include_str!("../../tools/src/bonnie/data/2.00a-fast.txt");
    let dd = include_str!("../../tools/src/dd/data/gnu-9.1-c.txt");
    let tools = |text: &str| {
        let imported = import_file("all.txt", text, &ImportOptions::default());
        let cells = imported.expect("results").cells.into_iter();
        let rows = cells.flat_map(|cell| cell.rows);
        let tools = rows.map(|row| row.tool.split(' ').next().unwrap_or_default().to_owned());
        tools.collect::<std::collections::BTreeSet<_>>()
    };
    for text in [format!("{bonnie}{dd}"), format!("{dd}{bonnie}")] {
        let tools: Vec<String> = tools(&text).into_iter().collect();
        assert_eq!(tools, ["bonnie++", "dd"]);
    }
}
