use super::{Submission, Submit, scripts};
use crate::asked::Asked;
use crate::submission::why;
use raidlab_shell::{Command, Output, Recorded};
use raidlab_store::{Shard, Store};
use std::fs;
use std::num::NonZero;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

fn asked(folder: &Path, shards: u32) -> Submit {
    Submit {
        plan: folder.join("plan.json"),
        shards: NonZero::new(shards).expect("some"),
        folder: folder.join("a 100% folder"),
        store: folder.join("raidlab.db"),
        profile: None,
    }
}

/// A folder with a plan of the suite `quick`.
fn planned(on: crate::On) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let plan = raidlab_lab::Plan {
        schema: raidlab_lab::plan::PLAN_SCHEMA,
        asked: Asked {
            on,
            ..Asked::of("quick")
        },
        experiments: Vec::new(),
        files: Default::default(),
    };
    let text = plan.pretty().expect("a form");
    fs::write(folder.path().join("plan.json"), text).expect("written");
    folder
}

fn squeue(job: &str) -> Command {
    Command::reads(
        "squeue",
        [
            "--array",
            "--noheader",
            "--states=all",
            "--format=%K|%T|%r|%N",
            "--jobs",
            job,
            "--clusters=cluster",
        ],
    )
}

fn script(folder: &Path, name: &str) -> String {
    let text = fs::read_to_string(folder.join("a 100% folder").join(name)).expect("a script");
    let here = folder.display().to_string();
    let program = std::env::current_exe().expect("a program");
    text.replace(&here, "HERE")
        .replace(&program.display().to_string(), "raidlab")
}

#[test]
fn scripts_are_what_slurm_takes() {
    let folder = planned(crate::On::Model);
    let mut asked = asked(folder.path(), 64);
    let machine = Recorded::new("login1");
    let found = scripts(&asked, &machine).expect("scripts").expect("some");
    assert_eq!(found.missing.len(), 64);
    drop(found);
    insta::assert_snapshot!(script(folder.path(), "shard.sh"));
    insta::assert_snapshot!(script(folder.path(), "merge.sh"));

    // A site's own words, and shards of which some are whole.
    let profile = "sbatch = [\"--partition=long\"]\nbefore = [\"module load raidlab\"]\n\
        raidlab = [\"apptainer\", \"exec\", \"a b.sif\", \"raidlab\"]\nprocessors = 4\n\
        memory = \"6g\"\ntime = \"8h\"\nat_most = 20\nrestarts = 3\n";
    let path = folder.path().join("site.toml");
    fs::write(&path, profile).expect("written");
    asked.profile = Some(path);
    asked.shards = NonZero::new(5).expect("some");
    whole(&asked, 2);
    let found = scripts(&asked, &machine).expect("scripts").expect("some");
    assert_eq!(found.missing.len(), 4);
    insta::assert_snapshot!(script(folder.path(), "shard.sh"));
    let merge = script(folder.path(), "merge.sh");
    assert!(
        merge.contains("#SBATCH --mem=6144M\n#SBATCH --time=480\n"),
        "{merge}"
    );
}

#[test]
fn a_task_of_the_kernel_bench_gets_what_its_guests_need() {
    let folder = planned(crate::On::Kernel);
    let asked = asked(folder.path(), 2);
    scripts(&asked, &Recorded::new("login1")).expect("scripts");
    let text = script(folder.path(), "shard.sh");
    // One guest of 512 MiB, 256 MiB beside it, and 2 GiB for what its disks hold.
    assert!(text.contains("--mem=2816M\n"), "{text}");
    assert!(text.contains(" --storage-memory 2147483648 "), "{text}");
}

/// Makes a shard's file that is whole.
fn whole(asked: &Submit, index: u32) {
    let shard = Shard::new(index, asked.shards).expect("one of them");
    let path = asked.folder.join(shard.file_name());
    let plan = crate::planned::in_file(&asked.plan).expect("a plan");
    let mut store = Store::open(path).expect("a store");
    let run = raidlab_store::Run {
        name: "a".to_owned(),
        started: "2026-11-21T02:10:00Z".to_owned(),
        finished: Some("2026-11-21T02:11:00Z".to_owned()),
        bench: "model".to_owned(),
        suite: "quick".to_owned(),
        suite_title: String::new(),
        seed: 1,
        raidlab_version: String::new(),
        command_line: String::new(),
        plan_hash: plan.expect("its name").sha256().expect("a form"),
    };
    let plan = raidlab_store::KeptPlan {
        program: String::new(),
        json: String::new(),
        shard: Some(shard),
    };
    let run = store.begin_run_with(&run, Some(&plan), &[]).expect("begun");
    store.seal(run).expect("it is whole");
}

#[test]
fn shards_are_submitted_once_and_status_tells_of_them() {
    let folder = planned(crate::On::Model);
    let asked = asked(folder.path(), 3);
    let first = scripts(&asked, &Recorded::new("login1"))
        .expect("scripts")
        .expect("some");
    let machine = Recorded::new("login1")
        .says(&first.array, "12;cluster\n")
        .says(&first.merge("12"), "13\n")
        .says(
            &squeue("12"),
            "0|COMPLETED|None|n1\n1|FAILED|NonZeroExitCode|n2\n2|RUNNING|None|n1\n",
        )
        .says(&squeue("13"), "N/A|PENDING|Dependency|\n");
    // Two at a time would each find nothing under way.
    let second = scripts(&asked, &machine)
        .expect_err("one submits")
        .to_string();
    assert!(second.contains("submission.lock"), "{second}");
    let submission = first.submit(&machine).expect("submitted");
    drop(first);
    assert_eq!(
        Submission::of(&asked.folder).expect("a record"),
        Some(submission.clone())
    );
    assert_eq!(
        (submission.array.as_str(), submission.merge.as_str()),
        ("12", "13")
    );

    let tasks = submission.tasks(&machine).expect("tasks");
    let words: Vec<_> = tasks
        .iter()
        .map(|(index, task)| {
            (
                *index,
                task.reason.as_str(),
                task.has_ended(),
                task.has_failed(),
            )
        })
        .collect();
    let expected = [
        (0, "on n1", true, false),
        (1, "NonZeroExitCode", true, true),
        (2, "on n1", false, false),
    ];
    assert_eq!(words, expected);
    let merge = submission
        .merge_task(&machine)
        .expect("it answers")
        .expect("a task");
    assert_eq!(
        (merge.state.as_str(), merge.reason.as_str()),
        ("PENDING", "Dependency")
    );
    let log = "error: one\ncaused by: two\nerror: three\nhelp: four\n";
    fs::write(asked.folder.join("slurm-1.log"), log).expect("written");
    assert_eq!(why(&asked.folder, "1").as_deref(), Some("three"));
    assert_eq!(why(&asked.folder, "2"), None);

    // Nobody submits what is under way; a job that Slurm has forgotten is not.
    let refused = scripts(&asked, &machine)
        .expect_err("under way")
        .to_string();
    assert!(refused.contains("job 12 is under way for these shards: task 2 is RUNNING"));
    let forgotten = Output {
        code: Some(1),
        stderr: "slurm_load_jobs error: Invalid job id specified\n".to_owned(),
        ..Output::default()
    };
    let machine = Recorded::new("login1").answers(&squeue("12"), forgotten);
    for index in [0, 2] {
        whole(&asked, index);
    }
    let again = scripts(&asked, &machine).expect("scripts").expect("some");
    assert_eq!(
        again.missing,
        [Shard::new(1, asked.shards).expect("one of them")]
    );
    drop(again);
    whole(&asked, 1);
    assert!(scripts(&asked, &machine).expect("all are there").is_none());
}

#[test]
fn what_cannot_be_submitted_is_refused_by_name() {
    let folder = planned(crate::On::Model);
    let mut asked = asked(folder.path(), 3);
    let machine = Recorded::new("login1").lacks("sbatch");
    let mut refused = |change: &dyn Fn(&mut Submit)| {
        change(&mut asked);
        match scripts(&asked, &machine) {
            Ok(Some(scripts)) => scripts.submit(&machine).expect_err("no sbatch").to_string(),
            Ok(None) => String::new(),
            Err(error) => error.to_string(),
        }
    };
    assert!(refused(&|_| ()).contains("has no program `sbatch`"));
    let profile = folder.path().join("site.toml");
    fs::write(&profile, "time = \"1h\"\npartition = \"long\"\n").expect("written");
    let said = refused(&|asked| asked.profile = Some(profile.clone()));
    assert!(said.contains("site.toml:2: `partition = "), "{said}");
    assert!(said.contains("there is no field `partition`"), "{said}");
    fs::write(&profile, "\ntime = \"soon\"\n").expect("written");
    assert!(refused(&|_| ()).contains("site.toml:2: `time = \"soon\"`"));
    for field in ["time", "memory"] {
        fs::write(&profile, format!("{field} = \"0\"\n")).expect("written");
        let said = refused(&|_| ());
        let told = format!("site.toml:1: `{field} = \"0\"`: it is 0");
        assert!(said.contains(&told), "{said}");
    }
    let said = refused(&|asked| {
        asked.profile = None;
        asked.shards = NonZero::new(4_000_000_000).expect("some");
    });
    assert!(said.contains("4000000000 shards are more"), "{said}");
    let record = folder.path().join("a 100% folder/submission.json");
    fs::create_dir(&record).expect("in the place of a file");
    let said = refused(&|asked| asked.shards = NonZero::new(3).expect("some"));
    assert!(
        said.starts_with("error: cannot read ") && said.contains("submission.json"),
        "{said}"
    );
    fs::remove_dir(&record).expect("removed");
    let said = refused(&|asked| {
        whole(asked, 0);
        asked.shards = NonZero::new(4).expect("some");
    });
    assert!(said.contains("has shards of 3, not of 4"), "{said}");
    // Shards of another plan would only be refused when all of them are merged.
    let said = refused(&|asked| {
        asked.shards = NonZero::new(3).expect("some");
        let text = fs::read_to_string(&asked.plan).expect("a plan");
        let changed = text.replace("\"seed\": 2", "\"seed\": 3");
        assert_ne!(changed, text);
        fs::write(&asked.plan, changed).expect("written");
    });
    let told = "the file of shard 0/3 cannot stay: it is of another plan";
    assert!(said.contains(told), "{said}");
    // So would a place that the merged run cannot have.
    for (store, told) in [
        ("plan.json", "plan.json is not a store"),
        ("nowhere/raidlab.db", "there is no folder"),
        ("a 100% folder", "is a folder"),
    ] {
        let said = refused(&|asked| asked.store = folder.path().join(store));
        assert!(said.contains(told), "{store}: {said}");
    }
    let said = refused(&|asked| asked.plan = "quick".into());
    assert!(said.contains("quick is no plan"), "{said}");
}

/// Some of the states in which squeue(1) says that a job has not come to its end.
#[test]
fn a_task_that_goes_on_has_not_ended() {
    let ended = |state: &str| {
        let (state, reason) = (state.to_owned(), String::new());
        crate::submission::Task { state, reason }.has_ended()
    };
    let going_on = ["REQUEUE_FED", "RESIZING", "SPECIAL_EXIT", "STAGE_OUT"];
    let wrong: Vec<&str> = going_on.into_iter().filter(|one| ended(one)).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    assert!(
        ["COMPLETED", "FAILED", "TIMEOUT", "CANCELLED"]
            .into_iter()
            .all(ended)
    );
}

/// The limit of jobs in a queue is reached, for one.
#[test]
fn who_submits_is_told_of_the_tasks_that_have_no_merge() {
    let folder = planned(crate::On::Model);
    let asked = asked(folder.path(), 3);
    let first = scripts(&asked, &Recorded::new("login1"))
        .expect("scripts")
        .expect("some");
    let refused = Output {
        code: Some(1),
        stderr: "sbatch: error: QOSMaxSubmitJobPerUserLimit\n".to_owned(),
        ..Output::default()
    };
    let machine = Recorded::new("login1")
        .says(&first.array, "12\n")
        .answers(&first.merge("12"), refused);
    let said = first.submit(&machine).expect_err("no merge").to_string();
    assert!(
        said.contains("QOSMax") && said.contains("`scancel 12`"),
        "{said}"
    );
    let kept = Submission::of(&asked.folder)
        .expect("a record")
        .expect("one");
    assert_eq!((kept.array.as_str(), kept.merge.as_str()), ("12", ""));
}

/// Of options that the scripts have the last one counts.
#[test]
fn a_profile_changes_nothing_that_the_scripts_rest_on() {
    let folder = planned(crate::On::Model);
    let mut asked = asked(folder.path(), 3);
    let profile = folder.path().join("site.toml");
    asked.profile = Some(profile.clone());
    let says = |text: &str| {
        fs::write(&profile, text).expect("written");
        match scripts(&asked, &Recorded::new("login1")) {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        }
    };
    for (option, field) in [
        ("--time=10", "`time`"),
        ("-t 10", "`time`"),
        ("--array=0-1", "`at_most`"),
        ("-a0-1", "`at_most`"),
        ("--mem 4G", "`memory`"),
        ("--mem-per-cpu=1G", "`memory`"),
        ("-c4", "`processors`"),
        ("--output=/dev/null", "leave it out"),
        ("--no-requeue", "leave it out"),
        // The last errors of tasks are looked for in their logs.
        ("--error=/dev/null", "leave it out"),
        ("-e /dev/null", "leave it out"),
        ("--partition=long --time=10", "`time`"),
        ("-p long -a 0-1", "`at_most`"),
        ("--tim=10", "`time`"),
        ("--dependency=afterany:1", "leave it out"),
        ("partition=long", "is no option"),
    ] {
        let said = says(&format!("sbatch = [\"{option}\"]"));
        assert!(said.contains(field), "{option}: {said}");
    }
    for option in [
        "--partition=long",
        "-A storage",
        "--time-min=5",
        "--mem-bind=local",
        "-n1",
        "--partition=long --export=NONE -A storage",
    ] {
        assert_eq!(says(&format!("sbatch = [\"{option}\"]")), "", "{option}");
    }
    assert!(says("raidlab = [\"\"]").contains("an empty word"));
    // As many as threads can be asked for.
    assert!(says("processors = 65536").contains("processors"));
}

#[test]
fn logs_are_found_by_the_names_that_folders_have() {
    let folder = planned(crate::On::Model);
    let mut asked = asked(folder.path(), 3);
    asked.folder = folder.path().join("a \"quoted\" #1 100% folder");
    drop(scripts(&asked, &Recorded::new("login1")).expect("scripts"));
    let text = fs::read_to_string(asked.folder.join("shard.sh")).expect("a script");
    let name = "/a \\\"quoted\\\" #1 100%% folder/slurm-%a.log\"\n";
    assert!(text.contains(name), "{text}");
    for name in [&b"a\\b"[..], b"a\nb", b"a\xff"] {
        asked.folder = folder.path().join(std::ffi::OsStr::from_bytes(name));
        let said = scripts(&asked, &Recorded::new("login1")).expect_err("refused");
        assert!(
            said.to_string().contains("cannot be told to Slurm"),
            "{said}"
        );
    }
}

/// Lines of a site's own often begin with `set -e`.
#[test]
fn a_task_goes_back_into_the_queue_whatever_ends_the_shell() {
    let folder = planned(crate::On::Model);
    let mut asked = asked(folder.path(), 3);
    let here = folder.path().display();
    let profile = folder.path().join("site.toml");
    asked.profile = Some(profile.clone());
    let text = format!(
        "before = [\"set -euo pipefail\", \"raidlab() {{ return 75; }}\", \
         \"scontrol() {{ echo $@ >'{here}/told'; return 1; }}\"]\nraidlab = [\"raidlab\"]\n"
    );
    fs::write(&profile, text).expect("written");
    drop(scripts(&asked, &Recorded::new("login1")).expect("scripts"));
    let ran = std::process::Command::new("bash")
        .arg(asked.folder.join("shard.sh"))
        .env("SLURM_ARRAY_TASK_ID", "1")
        .env("SLURM_JOB_ID", "17")
        .status()
        .expect("a shell");
    assert_eq!(ran.code(), Some(75));
    let told = fs::read_to_string(folder.path().join("told")).expect("it is put back");
    assert_eq!(told, "requeue 17\n");
}
