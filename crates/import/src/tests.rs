use crate::{ImportError, ImportOptions, import_file};
use raidlab_store::Measurement;

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
