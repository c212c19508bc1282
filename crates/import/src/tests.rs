mod fio;

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

/// Rates of runs that a script's `>>` has put into one file are no rate of all together.
#[test]
fn runs_of_iozone_in_one_file_are_repetitions() {
    let text = include_str!("../../tools/src/iozone/data/3.489-subset.txt");
    let one = rows("one.txt", text);
    let two = rows("two.txt", &format!("MemTotal: 16314388 kB\n{text}{text}"));
    assert_eq!(two.len(), 2 * one.len());
    for row in &two {
        let is_same = |own: &&Measurement| {
            (own.op, &own.part, &own.job) == (row.op, &row.part, &row.job) && own.iops == row.iops
        };
        let same = one.iter().find(is_same).expect("a row of the run alone");
        assert_eq!(row.bytes_per_second, same.bytes_per_second);
    }
    assert!(two.iter().any(|row| row.repetition == 1));

    // Which tests were asked for is each run's own.
    let run = |tests: &str| {
        format!(
            "Iozone: Performance Test of File I/O\nCommand line used: iozone -a {tests}\n\
             kB reclen write rewrite read reread\n1024 4 1 2 3 4\niozone test complete.\n"
        )
    };
    let both = rows("both.txt", &(run("-i 0 -i 1") + &run("-i 0 -i 2")));
    let last: Vec<&str> = both.iter().rev().take(4).map(|row| row.op.name()).collect();
    assert_eq!(last, ["random-write", "random-read", "rewrite", "write"]);
    // Tables alone, as people paste them.
    let bare = "      kB  reclen    write  rewrite    read    reread\n    \
        1024       4        1        2       3         4\n";
    let pasted = rows("bare.txt", &format!("{bare}{bare}"));
    let jobs: Vec<&str> = pasted.iter().map(|row| row.job.as_str()).collect();
    assert_eq!(pasted[0].bytes_per_second, 1024.0);
    assert!(jobs.contains(&"1 MiB #2"), "{jobs:?}");
}

/// bonnie++'s CSV is made for many lines, each of a machine with a name (`-m`).
#[test]
fn lines_of_bonnie_with_several_names_are_several_subjects() {
    let line = "1.97,1.97,md,1,1425384953,16G,,612,98,187654,30,87654,15,1650,95,234567,18,456.7,\
        12,,,,,,,,,,,,,,,,,,17432us,612ms,1234ms,22334us,210ms,345ms,,,,,,\n";
    let named = |text: &str| -> Vec<(String, String, u32)> {
        let mut rows = rows("all.csv", text);
        rows.retain(|row| row.op == raidlab_store::Operation::Write);
        let told = rows
            .into_iter()
            .map(|row| (row.subject, row.job, row.sequence));
        told.collect()
    };
    let of = |subject: &str, job: &str, place| (subject.to_owned(), job.to_owned(), place);
    let other = line.replacen("md", "zfs", 1);
    assert_eq!(
        named(&format!("{line}{other}{line}")),
        [
            of("md", "bonnie++", 0),
            of("zfs", "bonnie++", 0),
            of("md", "bonnie++ #2", 1)
        ]
    );
    let alone = [of("all", "bonnie++", 0), of("all", "bonnie++ #2", 1)];
    assert_eq!(named(&line.repeat(2)), alone);
}

/// A loop of dd is told to do the same each time; where the command is not told, or it names
/// another file, it may be anything.
#[test]
fn a_command_that_is_told_again_is_a_repetition() {
    let output = "16+0 records in\n16+0 records out\n\
        16777216 bytes (17 MB, 16 MiB) copied, 2 s, 8.4 MB/s\n";
    let jobs = |text: &str| -> Vec<(String, u32)> {
        let rows = rows("dd.txt", text);
        rows.into_iter()
            .map(|row| (row.job, row.repetition))
            .collect()
    };
    let line = "for i in 1 2 3; do dd if=/dev/zero of=x bs=1M conv=fsync; done";
    let of = |repetition: u32| ("dd".to_owned(), repetition);
    let three = output.repeat(3);
    assert_eq!(jobs(&format!("$ {line}\n{three}")), [of(0), of(1), of(2)]);
    let numbered = [("dd".to_owned(), 0), ("dd #2".to_owned(), 0)];
    assert_eq!(jobs(&output.repeat(2)), numbered);
    let [one, other] = ["a", "b"].map(|disk| format!("$ dd if=/dev/{disk} of=/dev/null\n{output}"));
    assert_eq!(jobs(&(one + &other)), numbered);
}

/// What is taken for a write without a word on it is said.
#[test]
fn a_dd_whose_direction_is_not_told_is_said_to_be_taken_for_a_write() {
    let output = "16+0 records in\n16+0 records out\n\
        16777216 bytes (17 MB, 16 MiB) copied, 2 s, 8.4 MB/s\n";
    let notes = |text: &str| {
        let import = import_file("dd.txt", text, &ImportOptions::default());
        import.expect("dd's own output").notes.join("\n")
    };
    let said = "taken for a write";
    assert!(notes(output).contains(said));
    let told = format!("$ dd if=x of=/dev/null bs=1M\n{output}");
    assert!(!notes(&told).contains(said));
    assert!(notes(&(told + output)).contains(said));
}

/// Cached and direct I/O are no repetitions of each other.
#[test]
fn runs_of_iozone_with_other_flags_are_other_jobs() {
    let text = include_str!("../../tools/src/iozone/data/3.489-subset.txt");
    let direct = "\tO_DIRECT feature enabled\n";
    assert!(text.contains(direct));
    let cached = text.replace(direct, "");
    let rows = rows("two.txt", &format!("{text}{cached}"));
    assert!(rows.iter().all(|row| row.repetition == 0));
    let last = &rows.last().expect("rows").job_title;
    assert!(last.ends_with(", direct=false"), "{last}");
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
