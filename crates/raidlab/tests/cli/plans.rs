//! Plans: what a run would do, in a file, which runs elsewhere as it would have here.

use crate::lab::Lab;
use crate::resume::{cut, of_files};

#[test]
fn a_plan_runs_elsewhere_as_it_would_have_here() {
    let lab = Lab::new();
    of_files(&lab);
    let here = lab.ok("run ./own.toml --seed 7 --no-report --json");
    lab.ok("run ./own.toml --seed 7 --plan-only plan.json");
    let files = lab.files();
    assert!(files.contains(&"plan.json".to_owned()), "{files:?}");
    let plan = std::fs::read_to_string(lab.path("plan.json")).expect("it is there");
    let printed = lab.ok("run ./own.toml --seed 7 --plan-only -");
    assert_eq!(printed, plan);

    let elsewhere = Lab::new();
    elsewhere.write("plan.json", &plan);
    let run = "run plan.json --no-report --json";
    assert_eq!(elsewhere.ok(run), here);
    // And is gone on with on a third machine.
    let third = Lab::new();
    std::fs::copy(elsewhere.path("raidlab.db"), third.path("raidlab.db")).expect("a copy");
    cut(&third.path("raidlab.db"));
    let ran = third.run("resume --no-report --json");
    assert_eq!((ran.code, ran.stdout), (0, here), "{}", ran.stderr);
    // Its plan is the same one.
    elsewhere.ok("run plan.json --plan-only again.json");
    let again = std::fs::read_to_string(elsewhere.path("again.json")).expect("it is there");
    assert_eq!(again, plan);
}

const GRID: &str = r#"schema = 1
name = "grid"
title = "Grid"
description = "A test."
source = "here"
disks = ["wd4000fyyz", "wd4000fyyz", "wd4000fyyz"]

[[subjects]]
subject = "md-raid1-clean"
name = "raid1-{members}-{bitmap}"
members = "{members}"
build = { bitmap = "{bitmap}" }
matrix = { members = [2, 3], bitmap = ["none", "internal"] }
draw = 2

[[step]]
matrix = { rw = ["randread", "randwrite"], depth = [1, 2, 4, 8] }
draw = 2
job = "{rw}-{depth}"
title = "{rw}"
class = "{rw}"
fio = "--rw={rw} --iodepth={depth} --filesize=1g --time_based --runtime=1 --norandommap"
"#;

#[test]
fn the_draw_is_part_of_the_plan_and_refused_where_nothing_is_drawn() {
    let lab = Lab::new();
    lab.write("grid.toml", GRID);
    let run = |lab: &Lab, more: &str| {
        let arguments = "run ./grid.toml --fit strict --no-report --json";
        lab.ok(&format!("{arguments} {more}"))
    };
    let seventh = run(&lab, "--draw 7");
    assert_eq!(seventh.lines().count(), 4);
    assert_ne!(run(&lab, "--draw 8"), seventh);
    assert_eq!(run(&lab, ""), run(&lab, "--draw 1"));
    let plan = |arguments: &str| {
        let plan = "run ./grid.toml --fit strict --plan-only -";
        lab.ok(&format!("{plan} {arguments}"))
    };
    let text = plan("--draw 7");
    assert!(text.contains("\"draw\": 7,"), "{text}");
    assert!(
        plan("").contains("\"draw\": 1,"),
        "what nobody says is in it too"
    );
    let elsewhere = Lab::new();
    elsewhere.write("plan.json", &text);
    assert_eq!(elsewhere.ok("run plan.json --no-report --json"), seventh);

    elsewhere.write("own.fio", "[a]\nrw=read\nsize=1m\n");
    for suite in ["quick", "./own.fio"] {
        let refused = elsewhere.run(&format!("run {suite} --draw 7 --dry-run"));
        let expected = format!("`--draw` does nothing: `{suite}` has nothing to draw");
        assert_eq!(refused.code, 2, "{}", refused.stderr);
        assert!(refused.stderr.contains(&expected), "{}", refused.stderr);
    }
    let stranger = lab.run("run ./grid.toml --subject md-raid5 --dry-run");
    assert_eq!(stranger.code, 2, "{}", stranger.stderr);
    assert!(
        stranger.stderr.contains("`md-raid5` is none of them"),
        "{}",
        stranger.stderr
    );
}

#[test]
fn a_plan_is_not_mixed_with_other_wishes_and_a_broken_one_is_named() {
    let lab = Lab::new();
    lab.ok("run ./short.toml --plan-only plan.json");
    let beside = "--seed 3 --subject md --quick --disk-fault 1:1s:dies";
    let error = lab.fails(2, &format!("run plan.json {beside}"));
    for option in ["--seed", "--subject", "--quick", "--disk-fault"] {
        assert!(error.contains(option), "{error}");
    }
    // What is typed is asked for, also where it is what holds without a plan.
    let usual = "run plan.json --seed 2 --fit all";
    let error = lab.fails(2, usual);
    assert!(
        error.contains("--seed") && error.contains("--fit"),
        "{error}"
    );
    let plan = std::fs::read_to_string(lab.path("plan.json")).expect("it is there");
    let write = |name: &str, from: &str, to: &str| {
        assert!(plan.contains(from), "{from}");
        lab.write(name, &plan.replacen(from, to, 1));
    };
    write("host.json", "\"on\": \"model\"", "\"on\": \"host\"");
    write("newer.json", "\"schema\": 1", "\"schema\": 2");
    write("wish.json", "\"seed\": 2", "\"sed\": 2");
    write(
        "lacking.json",
        "built in: disks/wd4000fyyz",
        "built in: disks/other",
    );
    lab.write("rows.json", "{\"bench\":\"model\"}\n");
    let mut seen = String::new();
    for name in ["none", "host", "newer", "wish", "lacking", "rows"] {
        let error = lab.fails(3, &format!("run {name}.json --dry-run"));
        seen.push_str(&format!("{name}\n{error}"));
    }
    insta::assert_snapshot!(seen);
    let error = lab.fails(2, "run quick --on host --plan-only -");
    assert!(error.contains("--plan-only"), "{error}");
}

/// A pipe that nobody writes into is not waited for.
#[test]
fn a_pipe_is_no_plan() {
    let lab = Lab::new();
    let made = std::process::Command::new("mkfifo")
        .arg(lab.path("plan.json"))
        .status();
    assert!(made.expect("mkfifo").success());
    let program = env!("CARGO_BIN_EXE_raidlab");
    let output = std::process::Command::new("timeout")
        .args(["60", program, "run", "plan.json"])
        .current_dir(lab.path("."))
        .output();
    let ran = crate::lab::Ran::new(output.expect("it starts"));
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(ran.stderr.contains("and not a file"), "{}", ran.stderr);
}
