use super::*;
use crate::warden::Start;
use std::os::unix::process::CommandExt;
use std::path::Path;

fn sh(script: &str) -> Command {
    Command::changes("sh", ["-c", script])
}

/// Whether a process runs: one that has ended and waits to be reaped does not.
fn runs(process: &str) -> bool {
    fs::read_to_string(format!("/proc/{process}/stat")).is_ok_and(|stat| {
        let state = stat.rsplit(')').next().unwrap_or_default();
        !state.trim_start().starts_with('Z')
    })
}

fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "waited for {what}"
        );
        thread::sleep(Duration::from_millis(5));
    }
}

/// A file's first line once it is whole.
fn line_of(path: &Path) -> String {
    let mut line = String::new();
    wait_for("a line in a file", || {
        line = fs::read_to_string(path).unwrap_or_default();
        line.ends_with('\n')
    });
    line.trim().to_owned()
}

#[test]
fn a_command_gets_its_input_and_gives_code_and_both_streams() {
    let command = sh("cat; echo oops >&2; exit 7").input("hello");
    let output = Local::new().output(&command).unwrap();
    assert_eq!(output.code, Some(7));
    assert_eq!((&*output.stdout, &*output.stderr), ("hello", "oops\n"));
    let error = Local::new().run(&command).unwrap_err().to_string();
    assert!(error.ends_with("ended with exit code 7: oops"), "{error}");
    let long = sh("printf '1\n2\nwhy\n\nnot done\n' >&2; exit 1");
    let error = Local::new().run(&long).unwrap_err().to_string();
    assert!(error.ends_with("code 1: 2 / why / not done"), "{error}");
}

#[test]
fn ten_megabytes_on_each_stream_block_nothing() {
    let script = "head -c 10485760 /dev/zero >&2 & head -c 10485760 /dev/zero; wait; cat";
    let text = "y".repeat(1 << 20);
    let output = Local::new().run(&sh(script).input(&*text)).unwrap();
    assert_eq!(output.stdout.len(), (10 << 20) + (1 << 20));
    assert_eq!(output.stderr.len(), 10 << 20);
}

#[test]
fn input_that_nobody_reads_blocks_nothing() {
    let command = sh("echo done").input("x".repeat(1 << 20));
    assert_eq!(Local::new().run(&command).unwrap().stdout, "done\n");
}

#[test]
fn bytes_that_are_no_utf8_are_replaced() {
    let output = Local::new().run(&sh(r"printf 'a\377b'")).unwrap();
    assert_eq!(output.stdout, "a\u{fffd}b");
}

#[test]
fn the_language_is_c_and_tools_folders_are_in_the_path() {
    let mut command = sh("echo $LC_ALL $RAIDLAB_RUN $MORE; echo $PATH");
    command.environment = vec![("MORE".to_owned(), "more".to_owned())];
    let local = Local::new().environment("RAIDLAB_RUN", "17");
    let output = local.run(&command).unwrap();
    assert!(
        output.stdout.starts_with("C 17 more\n"),
        "{}",
        output.stdout
    );
    assert!(output.stdout.contains("/usr/sbin"), "{}", output.stdout);
}

#[test]
fn the_folders_of_tools_are_those_in_which_programs_are_found() {
    let output = Local::new().run(&sh("echo $PATH")).unwrap();
    let path: Vec<&str> = output.stdout.trim().split(':').collect();
    let folders = Local::new().tool_folders();
    assert!(folders.iter().any(|folder| folder == "/usr/sbin"));
    assert!(folders.iter().all(|folder| path.contains(&folder.as_str())));
}

#[test]
fn a_signal_that_ended_it_is_told() {
    let output = Local::new().output(&sh("kill -TERM $$")).unwrap();
    assert_eq!((output.code, output.signal), (None, Some(15)));
}

#[test]
fn a_missing_program_is_named() {
    for program in ["no-such-tool-here", "/no/such/tool"] {
        let error = Local::new()
            .output(&Command::reads(program, [""; 0]))
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("localhost has no program `{program}`")
        );
    }
}

#[test]
fn a_command_past_its_time_is_ended_with_all_it_started() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("grandchild");
    let script = format!("sleep 1000 & echo $! >{}; wait", file.display());
    let command = sh(&script).timeout(Duration::from_secs(1));
    let begun = Instant::now();
    let error = Local::new().output(&command).unwrap_err();
    assert!(matches!(error, TargetError::Timeout { .. }), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(20));
    let grandchild = line_of(&file);
    wait_for("the grandchild's end", || !runs(&grandchild));
}

#[test]
fn stop_is_polite_first() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ready");
    // dash loses a signal that comes while it starts a program, so this one
    // sits still.
    let script = "sleep 1000 & trap 'echo bye; exit 5' TERM; echo >";
    let script = format!("{script}{}; wait", file.display());
    let mut running = Local::new().start(&sh(&script)).unwrap();
    assert_eq!(running.poll().unwrap(), None);
    line_of(&file);
    let output = running.stop(Duration::from_secs(20)).unwrap();
    assert_eq!(output.code, Some(5));
    assert_eq!(output.stdout, "bye\n");
    assert_eq!(running.poll().unwrap(), Some(output));
}

#[test]
fn stop_forces_what_will_not_go() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("grandchild");
    let script = format!(
        "trap '' TERM; sh -c 'echo $$ >{}; while :; do sleep 0.01; done' & wait",
        file.display()
    );
    let mut running = Local::new().start(&sh(&script)).unwrap();
    let grandchild = line_of(&file);
    assert!(runs(&grandchild));
    let output = running.stop(Duration::from_millis(100)).unwrap();
    assert_eq!(output.signal, Some(9));
    wait_for("the grandchild's end", || !runs(&grandchild));
}

#[test]
fn a_command_that_nobody_follows_any_more_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("process");
    let script = format!("echo $$ >{}; exec sleep 1000", file.display());
    let running = Local::new().start(&sh(&script)).unwrap();
    let process = line_of(&file);
    assert!(runs(&process));
    drop(running);
    assert!(!runs(&process));
}

#[test]
fn a_daemon_left_behind_delays_nobody_and_lives() {
    let output = Local::new().run(&sh("sleep 3 & echo $!")).unwrap();
    assert!(output.took < Duration::from_secs(3));
    assert!(runs(output.stdout.trim()));
}

#[test]
fn files_are_written_read_listed_and_resolved() {
    let local = Local::new();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    local.write(&path("b"), "longer text").unwrap();
    local.write(&path("b"), "text").unwrap();
    std::os::unix::fs::symlink("b", path("a")).unwrap();
    assert_eq!(local.read(&path("a")).unwrap(), "text");
    assert_eq!(local.list(&path("")).unwrap(), ["a", "b"]);
    assert!(local.resolve(&path("a")).unwrap().ends_with("/b"));
    assert!(local.read(&path("c")).unwrap_err().is_missing());
    assert!(local.resolve(&path("c")).unwrap_err().is_missing());
    assert!(local.list(&path("c")).unwrap().is_empty());
    assert!(!local.list(&path("b")).unwrap_err().is_missing());
    assert!(
        local
            .write("/proc/no-such-file", "1")
            .unwrap_err()
            .is_missing()
    );
}

#[test]
fn a_file_that_never_ends_is_refused() {
    let error = Local::new().read("/dev/zero").unwrap_err();
    assert_eq!(error.to_string(), "on localhost, cannot read /dev/zero");
}

#[test]
fn a_watch_keeps_its_cadence_and_ends_when_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ticks").to_string_lossy().into_owned();
    let sources = vec![
        Watched::File("/no/such/file".to_owned()),
        Watched::Command(sh(&format!("echo tick >>{file}; echo seen"))),
    ];
    let every = Duration::from_millis(50);
    let mut watch = Local::new().watch(sources, every).unwrap();
    let mut frames = Vec::new();
    wait_for("frames", || {
        frames.extend(watch.take().unwrap());
        frames.len() >= 5
    });
    drop(watch);
    for (index, pair) in frames.windows(2).enumerate() {
        assert!(pair[0].at < pair[1].at, "{index}: {pair:?}");
    }
    // Frame n is never early: ticks are counted from the beginning.
    for (index, frame) in (0..).zip(&frames) {
        assert!(frame.at >= every * index, "{index}: {:?}", frame.at);
        assert_eq!(frame.contents, [None, Some("seen\n".to_owned())]);
    }
    thread::sleep(Duration::from_millis(200));
    let ticks = Local::new().read(&file).unwrap();
    thread::sleep(Duration::from_millis(200));
    assert_eq!(Local::new().read(&file).unwrap(), ticks);
}

/// Not a test of its own: the raidlab that the next test starts in a process and kills.
#[test]
fn owner_to_be_killed() {
    let Ok(file) = env::var("RAIDLAB_TEST_FILE") else {
        return;
    };
    let script = format!("sleep 1000 & echo $! >{file}; wait");
    if env::var("RAIDLAB_TEST_MOMENT").as_deref() == Ok("before its number is told") {
        let mut command = process::Command::new("sh");
        command.args(["-c", &*script]).process_group(0);
        let _start = Start::announce(&mut command);
        command.spawn().unwrap().wait().unwrap();
    } else {
        let _running = Local::new().start(&sh(&script)).unwrap();
        thread::sleep(Duration::from_secs(60));
    }
}

#[test]
fn nothing_outlives_a_killed_owner() {
    for moment in ["before its number is told", "while it runs"] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("grandchild");
        let mut owner = process::Command::new(env::current_exe().unwrap())
            .args(["--exact", "local::tests::owner_to_be_killed"])
            .env("RAIDLAB_TEST_FILE", &file)
            .env("RAIDLAB_TEST_MOMENT", moment)
            .stdout(process::Stdio::null())
            .spawn()
            .unwrap();
        let grandchild = line_of(&file);
        assert!(runs(&grandchild));
        owner.kill().unwrap();
        owner.wait().unwrap();
        wait_for(&format!("the grandchild's end, killed {moment}"), || {
            !runs(&grandchild)
        });
    }
}
