use super::*;
use crate::local::Local;
use std::{fs, thread};

/// Over `tests/fake-ssh.sh`, which runs the far side's part here; or over a
/// real connection to this machine, which `tests/real-sshd.sh` sets up.
fn ssh() -> Ssh {
    Ssh::new("store1", options()).unwrap()
}

fn options() -> SshOptions {
    match std::env::var("RAIDLAB_TEST_SSH_CONFIG") {
        Ok(config) => SshOptions {
            arguments: vec!["-F".to_owned(), config],
            ..SshOptions::default()
        },
        Err(_) => SshOptions {
            program: concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fake-ssh.sh").to_owned(),
            arguments: vec!["-p".to_owned()],
            ..SshOptions::default()
        },
    }
}

fn sh(script: &str) -> Command {
    Command::changes("sh", ["-c", script])
}

fn runs(process: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z")
}

fn wait_for<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "waited for {what}"
        );
        thread::sleep(Duration::from_millis(5));
    }
}

/// A file's first line once it is whole.
fn line_of(path: &str) -> String {
    wait_for("a line in a file", || {
        let text = Local::new().read(path).ok()?;
        Some(text.strip_suffix('\n')?.to_owned())
    })
}

#[test]
fn a_command_gets_its_input_and_gives_code_and_both_streams() {
    let command = sh("cat; printf oops >&2; exit 255").input("hello\n\n");
    let output = ssh().output(&command).unwrap();
    assert_eq!(output.code, Some(255));
    assert_eq!((&*output.stdout, &*output.stderr), ("hello\n\n", "oops"));
}

#[test]
fn both_environments_arrive() {
    let options = SshOptions {
        environment: vec![("RAIDLAB_RUN".to_owned(), "1 7".to_owned())],
        ..options()
    };
    let mut command = sh("echo $LC_ALL $RAIDLAB_RUN $MORE");
    command.environment = vec![("MORE".to_owned(), "!".to_owned())];
    let output = Ssh::new("store1", options).unwrap().run(&command).unwrap();
    assert_eq!(output.stdout, "C 1 7 !\n");
}

#[test]
fn input_that_nobody_reads_and_much_output_block_nothing() {
    let script = "head -c 10485760 /dev/zero >&2 & head -c 10485760 /dev/zero; wait";
    let output = ssh().run(&sh(script).input("x".repeat(100_000))).unwrap();
    assert_eq!(output.stdout.len(), 10 << 20);
    assert_eq!(output.stderr.len(), 10 << 20);
}

#[test]
fn a_missing_program_is_named() {
    let error = ssh().output(&Command::reads("no-such-tool-here", [""; 0]));
    assert_eq!(
        error.unwrap_err().to_string(),
        "store1 has no program `no-such-tool-here`"
    );
}

#[test]
fn a_machine_that_is_not_there_is_unreachable() {
    let error = Ssh::new("nowhere", options()).unwrap_err();
    let words = error.to_string();
    assert!(
        words.starts_with("cannot reach nowhere: ssh: connect to host "),
        "{words}"
    );
    let no_client = SshOptions {
        program: "/no/such/ssh".to_owned(),
        ..options()
    };
    let error = Ssh::new("store1", no_client).unwrap_err();
    assert!(matches!(error, TargetError::NoProgram { .. }), "{error}");
}

#[test]
fn a_connection_that_breaks_is_no_exit_code() {
    // The keeper, and with it the session, is killed from within.
    let error = ssh().output(&sh("kill -s KILL 0")).unwrap_err();
    assert!(matches!(error, TargetError::Unreachable { .. }), "{error}");
}

#[test]
fn a_zero_byte_is_refused() {
    let error = ssh().output(&Command::reads("echo", ["a\0b"])).unwrap_err();
    assert!(matches!(error, TargetError::Io { .. }), "{error}");
}

#[test]
fn a_command_past_its_time_is_ended_with_all_it_started() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("grandchild").display().to_string();
    let command = sh(&format!("sleep 1000 & echo $! >{file}; wait"));
    let error = ssh()
        .output(&command.timeout(Duration::from_secs(3)))
        .unwrap_err();
    assert!(matches!(error, TargetError::Timeout { .. }), "{error}");
    let grandchild = line_of(&file);
    wait_for("the grandchild's end", || {
        (!runs(&grandchild)).then_some(())
    });
}

#[test]
fn stop_is_polite_first_and_keeps_the_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ready").display().to_string();
    // dash loses a signal that comes while it starts a program, so this one
    // sits still.
    let script = format!("sleep 1000 & trap 'echo bye; exit 5' TERM; echo >{file}; wait");
    let mut running = ssh().start(&sh(&script)).unwrap();
    assert_eq!(running.poll().unwrap(), None);
    line_of(&file);
    let output = running.stop(Duration::from_secs(20)).unwrap();
    assert_eq!(output.code, Some(5));
    assert_eq!(output.stdout, "bye\n");
    assert_eq!(running.poll().unwrap(), Some(output));
}

#[test]
fn a_signal_that_ended_it_is_told_by_nobody_else() {
    let output = ssh().output(&sh("kill -TERM $$")).unwrap();
    assert_eq!((output.code, output.signal), (None, Some(15)));
    assert_eq!(output.stderr, "");
}

#[test]
fn stop_forces_what_will_not_go() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("process").display().to_string();
    let script = format!("trap '' TERM; echo $$ >{file}; while :; do sleep 0.01; done");
    let mut running = ssh().start(&sh(&script)).unwrap();
    let process = line_of(&file);
    let output = running.stop(Duration::from_millis(100)).unwrap();
    assert_eq!(output.signal, Some(9));
    wait_for("its end", || (!runs(&process)).then_some(()));
}

#[test]
fn a_daemon_left_behind_delays_nobody_and_lives() {
    let begun = Instant::now();
    let output = ssh().run(&sh("sleep 8 & echo $!")).unwrap();
    assert!(begun.elapsed() < Duration::from_secs(8));
    assert!(output.stdout.trim().parse::<u32>().is_ok(), "{output:?}");
}

#[test]
fn files_are_written_read_listed_and_resolved() {
    let ssh = ssh();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    ssh.write(&path("it's b"), "longer text").unwrap();
    ssh.write(&path("it's b"), "te\nxt\n\n").unwrap();
    std::os::unix::fs::symlink("it's b", path("a")).unwrap();
    assert_eq!(ssh.read(&path("a")).unwrap(), "te\nxt\n\n");
    assert_eq!(ssh.list(&path("")).unwrap(), ["a", "it's b"]);
    assert!(ssh.resolve(&path("a")).unwrap().ends_with("/it's b"));
    assert!(ssh.read(&path("c")).unwrap_err().is_missing());
    assert!(ssh.resolve(&path("c")).unwrap_err().is_missing());
    assert!(ssh.list(&path("c")).unwrap().is_empty());
    assert!(ssh.list(&path("a")).is_err());
    assert!(
        ssh.write("/proc/no-such-file", "1")
            .unwrap_err()
            .is_missing()
    );
}

#[test]
fn a_watch_keeps_its_cadence_and_ends_when_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ticks").display().to_string();
    let sources = vec![
        Watched::File("/no/such/file".to_owned()),
        Watched::Command(
            sh(&format!("cat; echo tick >>{file}; exit 3"))
                .success(&[3])
                .input("in"),
        ),
        Watched::File("/proc/self/comm".to_owned()),
    ];
    let every = Duration::from_millis(50);
    let ssh = ssh();
    let mut watch = ssh.watch(sources, every).unwrap();
    let mut frames = Vec::new();
    wait_for("frames", || {
        frames.extend(watch.take().unwrap());
        (frames.len() >= 5).then_some(())
    });
    drop(watch);
    for (index, frame) in (0..).zip(&frames) {
        assert!(frame.at >= every * index, "{index}: {:?}", frame.at);
        let expected = [None, Some("in".to_owned()), Some("cat\n".to_owned())];
        assert_eq!(frame.contents, expected);
    }
    thread::sleep(Duration::from_millis(300));
    let ticks = ssh.read(&file).unwrap();
    thread::sleep(Duration::from_millis(300));
    assert_eq!(ssh.read(&file).unwrap(), ticks);
}

#[test]
fn a_watch_whose_session_breaks_says_so_after_its_frames() {
    let sources = vec![Watched::Command(sh("echo last words >&2; kill -s KILL 0"))];
    let mut watch = ssh().watch(sources, Duration::from_millis(50)).unwrap();
    let error = wait_for("the loss", || watch.take().err());
    assert!(matches!(error, TargetError::Unreachable { .. }), "{error}");
}
