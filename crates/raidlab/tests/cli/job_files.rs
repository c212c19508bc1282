//! What is said of job files of fio.

use crate::lab::{Lab, SUITE};

#[test]
fn direct_io_in_parts_of_blocks_is_refused_before_the_run() {
    let lab = Lab::new();
    let job = "[odd]\nrw=read\nbs=5000\nsize=10m\ndirect=1\n";
    lab.write("odd.fio", job);
    lab.write("buffered.fio", &job.replace("direct=1", "direct=0"));
    for bench in ["model", "kernel", "host --trial-size 64m"] {
        let ran = lab.run(&format!("run ./odd.fio --dry-run --on {bench}"));
        let said = "./odd.fio, line 3: option `bs`\ncaused by: it needs multiples of 512 bytes";
        assert!(ran.stderr.contains(said), "{bench}: {}", ran.stderr);
        assert!(
            ran.stderr.contains("help: give a multiple of 512"),
            "{}",
            ran.stderr
        );
        let ran = lab.run(&format!("run ./buffered.fio --dry-run --on {bench}"));
        assert!(!ran.stderr.contains("512"), "{bench}: {}", ran.stderr);
    }
    // btrfs gives a folder, and takes any size.
    let ran = lab.run("run ./odd.fio --dry-run --on host --trial-size 64m --subject btrfs-raid1");
    assert!(!ran.stderr.contains("512"), "{}", ran.stderr);
    let odd = SUITE.replacen("--iodepth", "--direct=1 --offset=1000 --iodepth", 1);
    assert_ne!(odd, SUITE);
    lab.write("odd.toml", &odd);
    let ran = lab.run("run ./odd.toml --dry-run");
    assert!(
        ran.stderr.starts_with("error: ./odd.toml"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("option `offset`"), "{}", ran.stderr);
}

#[test]
fn errors_within_a_job_file_do_not_doubt_that_it_is_one() {
    let lab = Lab::new();
    let wrong = "[job]\nrw=read\nsize=10m\nmax_latency=5ms\n";
    let misspelt = "[job]\nrwmixraed=40\n";
    let other = "some words\n";
    for (name, text, doubts) in [
        ("jobs.fio", wrong, false),
        ("jobs.ini", wrong, false),
        ("jobs.fio", misspelt, false),
        ("jobs.ini", misspelt, true),
        ("jobs.fio", other, false),
        ("jobs.tml", other, true),
    ] {
        lab.write(name, text);
        let ran = lab.run(&format!("run ./{name} --dry-run"));
        assert_ne!(ran.code, 0, "{name}");
        let said = ran.stderr.contains("is taken for a fio job file");
        assert_eq!(said, doubts, "{name}: {}", ran.stderr);
    }
}
