//! `raidlab kernel` and the kernel bench: what is told of kernels in the cache, and
//! one boot where a kernel has been built on this machine.

use crate::lab::Lab;
use raidlab_store::Store;
use serde_json::Value;
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

/// Two seconds of random reads on a mirror that needs no resync.
const SUITE: &str = r#"schema = 1
name = "boot"
title = "One boot"
description = "For tests."
source = "here"
disks = ["wd4000fyyz", "wd4000fyyz"]
subjects = ["md-raid1-clean"]

[[step]]
job = "reads"
title = "random read 4 KiB, queue depth 2"
class = "random-read"
fio = "--rw=randread --bs=4k --iodepth=2 --time_based --runtime=2 --direct=1 --norandommap"
"#;

/// What a run with a processor says of a kernel that another raidlab has made.
const NOT_CHARGING: &str = "may not know what computing costs";

/// Puts a kernel into the lab's cache that is none.
fn put(lab: &Lab, name: &str, more: &str) {
    let folder = lab.path("cache").join("raidlab/kernels").join(name);
    fs::create_dir_all(&folder).expect("made");
    fs::write(folder.join("linux"), "").expect("written");
    let about = format!(
        r#"{{"name": "{name}", "release": "6.12.1", "source": "Debian's package linux-source-6.12",
            "zfs": null, "shared_memory": true, "seccomp": false{more}}}"#
    );
    fs::write(folder.join("kernel.json"), about).expect("written");
}

/// As a power cut leaves it: the others are listed and chosen, and it can be removed.
#[test]
fn a_kernel_with_a_damaged_description_is_in_nobody_s_way() {
    let lab = Lab::new();
    put(&lab, "6.11", "");
    put(&lab, "6.12", "");
    let folder = lab.path("cache").join("raidlab/kernels/6.12");
    fs::write(folder.join("kernel.json"), "").expect("written");
    let told = lab.ok("kernel status");
    let names = told
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    let listed: Vec<&str> = names.filter(|name| name.starts_with("6.")).collect();
    assert_eq!(listed, ["6.11"], "{told}");
    lab.ok("kernel remove 6.12");
    assert!(!folder.exists());
    for name in ["6.12", "../packages", "/", "."] {
        lab.fails(2, &format!("kernel remove {name}"));
    }
}

#[test]
fn a_guest_has_a_memory_that_can_be() {
    let lab = Lab::new();
    lab.write("boot.toml", SUITE);
    put(&lab, "6.12", "");
    for memory in ["0", "1k", "2t", "16383p", "18446744073709551615"] {
        let words = "run ./boot.toml --on kernel --dry-run --memory";
        let said = lab.fails(2, &format!("{words} {memory}"));
        assert!(said.contains("from 64m to 1t"), "{memory}: {said}");
    }
}

#[test]
fn kernels_made_by_other_changes_are_told() {
    let lab = Lab::new();
    put(&lab, "6.11", "");
    put(&lab, "6.12", r#", "changes": "0123456789abcdef""#);
    let told = lab.ok("kernel status");
    let line = |name: &str| {
        let mut lines = told.lines().map(str::trim);
        lines.find(|line| line.starts_with(name)).expect(name)
    };
    assert!(line("6.11").contains("unknown"), "{told}");
    assert!(line("6.12").contains("an older raidlab"), "{told}");
    let remedy = "kernel 6.12 was made by an older raidlab: `raidlab kernel build --source 6.12 \
                  --again`";
    assert!(told.contains(remedy), "{told}");
    assert_eq!(told.matches("was made by").count(), 1, "{told}");

    // Whatever comes of the run: this kernel cannot be booted.
    lab.write("boot.toml", SUITE);
    let run = |name: &str| {
        let words = format!("run ./boot.toml --on kernel --kernel {name}");
        lab.run(&words).stderr
    };
    let said = run("6.12");
    assert!(said.contains(&format!("warning: {remedy}")), "{said}");
    let said = run("6.11");
    assert!(!said.contains("warning:"), "{said}");

    // One that may not charge for computing is not asked to.
    let words = "run ./boot.toml --on kernel --kernel 6.12";
    let said = lab.fails(2, &format!("{words} --processor nas"));
    assert!(said.contains(NOT_CHARGING), "{said}");
    assert!(said.contains("raidlab kernel build --again"), "{said}");
}

/// Where nobody can be asked, a run without a kernel says what to do about it.
#[test]
fn a_newcomer_without_a_kernel_is_told_how_to_get_one() {
    let lab = Lab::new();
    lab.write("boot.toml", SUITE);
    let error = lab.fails(1, "run ./boot.toml --on kernel");
    assert!(error.contains("no kernel has been built"), "{error}");
    assert!(
        error.contains("`raidlab kernel build` builds one, in 7 to 20"),
        "{error}"
    );
}

/// Rows alone do not show it, so it is said before the run, which here ends as there is no kernel.
#[test]
fn what_a_run_leaves_out_is_told_before_it() {
    let lab = Lab::new();
    put(&lab, "6.12", "");
    let suite = SUITE.replace(
        r#"["md-raid1-clean"]"#,
        r#"["md-raid1-clean", "zfs-mirror"]"#,
    );
    lab.write("boot.toml", &suite);
    for json in ["--json", "--shard 0/1 --store ."] {
        let ran = lab.run(&format!("run ./boot.toml --on kernel --no-report {json}"));
        let told = ran.stderr.lines().next().unwrap_or_default();
        assert!(told.starts_with("left out: zfs-mirror: "), "{}", ran.stderr);
    }
}

/// A job that begins behind its own `filesize` fits nowhere: the reason is told, and no room for
/// the members is asked for.
#[test]
fn a_job_behind_its_own_end_is_told_with_the_reason() {
    let lab = Lab::new();
    put(&lab, "6.12", "");
    let behind = "--bs=4k --filesize=64m --offset=64m";
    lab.write("boot.toml", &SUITE.replace("--bs=4k", behind));
    for subject in ["", "--subject md-raid1-clean"] {
        let error = lab.fails(
            1,
            &format!("run ./boot.toml --on kernel --no-report {subject}"),
        );
        if error.contains("not here: ") {
            return; // without mdadm or fio nothing else is looked at
        }
        let reason = "starts at 64 MiB, but filesize ends at 64 MiB";
        assert!(error.contains(reason), "{error}");
        assert!(!error.contains("--member-size"), "{error}");
    }
}

/// Before anything is booted, with a kernel that is none.
#[test]
fn faults_and_options_that_would_do_nothing_are_refused() {
    let lab = Lab::new();
    put(&lab, "6.12", "");
    lab.write("boot.toml", SUITE);
    let refused = |options: &str| {
        let words = format!("run ./boot.toml --on kernel --dry-run {options}");
        lab.fails(2, &words)
    };
    let error = refused("--disk-fault 7:40s:dies");
    assert!(
        error.contains("disk 7") && error.contains("more than 2"),
        "{error}"
    );
    let error = refused("--disk-fault 1:40s:unreadable=4g+64k");
    assert!(error.contains("of which 4 GiB are used"), "{error}");
    let error = refused("--patience 0");
    assert!(error.contains("--patience"), "{error}");
}

/// The cache folder of who runs the tests, if a kernel is in it.
fn cache_with_a_kernel() -> Option<PathBuf> {
    let absolute = |name: &str| {
        let path = PathBuf::from(env::var_os(name)?);
        path.is_absolute().then_some(path)
    };
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    let kernels = fs::read_dir(cache.join("raidlab/kernels")).ok()?;
    let built = |folder: PathBuf| folder.join("kernel.json").is_file();
    let mut kernels = kernels.flatten().map(|entry| entry.path());
    kernels.any(built).then_some(cache)
}

/// What the guest needs of this machine.
fn installed(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    let more = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    let mut folders = env::split_paths(&path).chain(more);
    folders.any(|folder| folder.join(program).is_file())
}

/// Past what the tests' own runner keeps to itself: a test that does nothing says so.
fn skipped(why: &str) {
    writeln!(io::stderr(), "no guest was booted: {why}").expect("said");
}

/// Runs a suite on a kernel that has been built, if there is one: the rows, and the facts
/// of the run by name.
fn booted(suite: &str) -> Option<(Vec<Value>, BTreeMap<String, String>)> {
    let Some(cache) = cache_with_a_kernel() else {
        skipped("no kernel is built (`raidlab kernel build`)");
        return None;
    };
    if let Some(missing) = ["mdadm", "fio"].iter().find(|name| !installed(name)) {
        skipped(&format!("{missing} is not installed"));
        return None;
    }
    let lab = Lab::new();
    lab.write("boot.toml", suite);
    let words = "run ./boot.toml --on kernel --json --no-report --store boot.db";
    let words: Vec<&str> = words.split(' ').collect();
    let output = lab.command(&words).env("XDG_CACHE_HOME", cache).output();
    let output = output.expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains(NOT_CHARGING) {
        skipped(&said);
        return None;
    }
    assert!(output.status.success(), "{said}");
    let told = String::from_utf8_lossy(&output.stdout);
    let rows = told.lines().map(serde_json::from_str);
    let rows: Vec<Value> = rows.collect::<Result<_, _>>().expect("JSON objects");
    assert_eq!(rows.len(), 1, "{told}");
    let store = Store::open_existing(lab.path("boot.db")).expect("a store");
    let run = store.runs().expect("its runs").remove(0);
    let facts = store.observations(run.id).expect("its facts").into_iter();
    Some((rows, facts.map(|fact| (fact.name, fact.value)).collect()))
}

#[test]
fn a_kernel_that_is_built_boots_and_measures() {
    let Some((rows, facts)) = booted(SUITE) else {
        return;
    };
    assert_eq!(rows[0]["bench"], "kernel");
    assert_eq!(rows[0]["array_state_end"], "[UU]");
    // Two disks of 7200 rotations a minute, one request each.
    let iops = rows[0]["iops"].as_f64().expect("a number");
    assert!((100.0..1000.0).contains(&iops), "{iops}");
    let shown = ["true", "mq-deadline", "64", "write back", "512"];
    assert_eq!(told_of("vdb", &facts), shown);
}

/// What the guest's kernel says of a disk.
fn told_of<'a>(disk: &str, facts: &'a BTreeMap<String, String>) -> Vec<&'a str> {
    let names = [
        "rotational",
        "scheduler",
        "request_queue",
        "write_cache",
        "physical_sector_bytes",
    ];
    let value = |name| facts.get(&format!("disk.{disk}.{name}"));
    names.iter().filter_map(value).map(String::as_str).collect()
}

/// An NVMe drive that is protected against the loss of power, beside a SATA disk.
#[test]
fn the_guest_knows_an_nvme_drive_from_a_disk_that_turns() {
    let suite = SUITE.replacen("wd4000fyyz", "pm9a3", 1);
    let suite = suite.replace("depth=2 ", "depth=32 ");
    let suite = suite.replace("runtime=2 ", "runtime=200ms ");
    let Some((rows, facts)) = booted(&suite) else {
        return;
    };
    let nvme = ["false", "none", "256", "write through", "512"];
    assert_eq!(told_of("vda", &facts), nvme);
    let turning = ["true", "mq-deadline", "64", "write back", "512"];
    assert_eq!(told_of("vdb", &facts), turning);
    // Nor does the clock hold it to what it holds others to, where programs read it by
    // themselves: seven readings for a request at 3 us each were 46,800 requests a second.
    if facts
        .get("guest.clock_cost_ns")
        .is_some_and(|cost| cost == "50")
    {
        let iops = rows[0]["iops"].as_f64().expect("a number");
        assert!(iops > 60_000.0, "{iops}");
    }
}

/// A read through an array takes 5.07 us of the one core of `desktop-2015` (two system calls, seven
/// readings of the clock, the array, a member, the driver, an interrupt and a command's end), a part
/// of which requests share. The drives could do four times as many.
#[test]
fn computing_takes_its_time_where_a_processor_is_named() {
    let suite = SUITE.replace("wd4000fyyz", "pm9a3");
    let suite = suite.replace("depth=2 ", "depth=32 ");
    let suite = suite.replace("runtime=2 ", "runtime=200ms ");
    let with = suite.replace("source = ", "processor = \"desktop-2015\"\nsource = ");
    let Some((rows, facts)) = booted(&with) else {
        return;
    };
    assert_eq!(facts["cpu.preset"], "desktop-2015");
    let number = |name: &str| rows[0][name].as_f64().expect("a number");
    assert!((150_000.0..230_000.0).contains(&number("iops")), "{rows:?}");
    assert!(number("cpu_percent") > 95.0, "{rows:?}");
}
