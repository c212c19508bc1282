//! Shards whose files are not what was written, and such as only others have looked at.

use crate::resume::{contents, difference};
use crate::shards::{lab, make, shard};

/// A shard of which a bit has turned is not what was measured. SQLite does not see it where it
/// is in a number or a text.
#[test]
fn a_shard_with_a_bit_that_has_turned_is_known() {
    let (lab, rows, _) = lab();
    make(&lab, 2, "s");
    let path = lab.path("s/shard-1-of-2.db");
    let sound = std::fs::read(&path).expect("it is there");
    let merge = "merge s --store new.db --no-audit --json";
    let mut found = 0;
    for part in 0..40 {
        let mut bytes = sound.clone();
        let place = part * bytes.len() / 40 + 7 * part % 89;
        bytes[place] ^= 1 << (part % 8);
        std::fs::write(&path, bytes).expect("written");
        let ran = lab.run(&merge);
        // A place that no row is in harms nobody.
        assert!(
            ran.code == 3 || ran.stdout == rows,
            "byte {place}: {}",
            ran.stderr
        );
        found += u32::from(ran.stderr.contains("that were written as shard 1/2"));
    }
    assert!(found > 3, "only {found} by their seal");
    let title = b"random read 4 KiB";
    let mut pieces = sound.windows(title.len());
    let place = pieces.rposition(|piece| piece == title).expect("a title");
    let mut bytes = sound;
    bytes[place] ^= 1;
    std::fs::write(&path, bytes).expect("written");
    let damaged = "s/shard-1-of-2.db is damaged: it does not have the rows that were written";
    let error = lab.fails(3, &merge);
    assert!(error.contains(damaged), "{error}");
    let said = lab.ok("status s");
    assert!(said.contains("1/2  broken  "), "{said}");
    let error = lab.fails(3, &shard("1/2", "s"));
    assert!(
        error.contains(damaged) && error.contains("move it away"),
        "{error}"
    );
}

/// What the audit says of a shard is not what it says of the run.
#[test]
fn an_audited_shard_is_the_same_shard() {
    let (lab, _, _) = lab();
    make(&lab, 2, "s");
    let merge = "merge s --no-audit --store";
    lab.ok(&format!("{merge} before.db"));
    for index in 0..2 {
        let store = format!("s/shard-{index}-of-2.db");
        lab.ok(&["audit", "--store", &store]);
        lab.ok(&["report", "--store", &store]);
    }
    lab.ok(&format!("{merge} after.db"));
    let [before, after] = ["before.db", "after.db"].map(|store| contents(&lab.path(store)));
    assert!(after == before, "{}", difference(&after, &before));
}

/// A store that a shard was taken into by way of Parquet is a shard's file as well.
#[test]
fn a_shard_goes_through_parquet() {
    let (lab, rows, _) = lab();
    make(&lab, 2, "s");
    lab.ok("report --store s/shard-1-of-2.db --parquet tables");
    lab.ok("import tables --store one.db");
    let files = ["s/shard-0-of-2.db", "one.db"];
    let merge = format!("merge --store new.db --json {}", files.join(" "));
    assert_eq!(lab.ok(&merge), rows);
    lab.ok("report --store one.db --parquet again");
    for table in ["facts", "measurements"] {
        let [one, other] = ["tables", "again"].map(|folder| {
            let path = lab.path(&format!("{folder}/{table}.parquet"));
            std::fs::read(path).expect("a table")
        });
        assert!(one == other, "{table}");
    }
    // Of a folder that is damaged nothing is left, not even a store without a run.
    lab.write("again/facts.parquet", "no table");
    lab.fails(3, &["import", "again", "--store", "none.db"]);
    assert!(!lab.path("none.db").exists());
}

/// Who did the same at another time gives another file with the same rows.
#[test]
fn a_shard_that_was_made_twice_does_no_harm() {
    let (lab, rows, _) = lab();
    make(&lab, 2, "s");
    // A run's times are whole seconds.
    std::thread::sleep(std::time::Duration::from_millis(1100));
    lab.ok(&shard("1/2", "again.db"));
    let merge = "merge s again.db --store new.db --json";
    assert_eq!(lab.ok(&merge), rows);
}

/// `--partial` takes of a folder what has not got its name yet, too, but no file in which no
/// run has begun.
#[test]
fn a_partial_merge_takes_begun_shards_of_a_folder() {
    let (lab, ..) = lab();
    std::fs::create_dir(lab.path("s")).expect("a new folder");
    lab.ok(&shard("1/3", "s"));
    std::fs::create_dir(lab.path("begun")).expect("a new folder");
    let begun = lab.path("begun/shard-1-of-3.db.part");
    std::fs::copy(lab.path("s/shard-1-of-3.db"), begun).expect("a copy");
    lab.write("begun/shard-0-of-3.db.part", "");
    let merge = "merge begun --store begun.db";
    assert!(lab.fails(3, &merge).contains("begun"));
    lab.ok(&format!("{merge} --partial"));
    lab.ok("merge s --store whole.db --partial");
    let rows = |store: &str| lab.ok(&["report", "--json-lines", "-", "--store", store]);
    assert_eq!(rows("begun.db"), rows("whole.db"));
}

/// A file that may not grow stands for a full disk. In the new store there is nothing, so it goes.
#[cfg(target_os = "linux")]
#[test]
fn a_merge_that_finds_no_room_leaves_no_store() {
    let (lab, ..) = lab();
    make(&lab, 2, "s");
    let before = lab.files();
    let whole = lab.command("merge s --store new.db");
    let mut limited = std::process::Command::new("sh");
    limited.args(["-c", "trap '' XFSZ; ulimit -f 300; exec \"$@\"", "sh"]);
    limited.arg(whole.get_program()).args(whole.get_args());
    limited.current_dir(whole.get_current_dir().expect("the lab's folder"));
    let ended = limited.output().expect("a shell");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(4), "{said}");
    let mut after = lab.files();
    after.retain(|name| !name.ends_with(".lock"));
    assert_eq!(after, before, "{said}");
}
