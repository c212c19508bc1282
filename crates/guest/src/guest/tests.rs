use super::{GuestError, Job, job_archive};
use crate::run::Report;
use raidlab_initramfs::{Archive, Node, excerpt, reason};
use raidlab_shell::Command;

#[test]
fn a_job_is_a_script_with_its_input_and_wishes() {
    let mut command = Command::reads("raidlab", ["run", "it's quick", ""]).input("yes\n");
    command
        .environment
        .push(("MARK".to_owned(), "a b".to_owned()));
    let mut files = Archive::default();
    let contents = b"x".to_vec();
    files.insert(
        "/root/suite.toml",
        Node::File {
            mode: 0o644,
            contents,
        },
    );
    let job = Job {
        command,
        files,
        take: vec!["/root/store.db".to_owned(), "/root/out".to_owned()],
    };
    let archive = job_archive(&job);
    let file = |path: &str| String::from_utf8_lossy(archive.file(path).expect(path)).into_owned();
    insta::assert_snapshot!(file("/raidlab/job"), @r"
    #!/busybox sh
    exec env LC_ALL=C 'MARK=a b' raidlab run 'it'\''s quick' ''
    ");
    assert_eq!(file("/raidlab/input"), "yes\n");
    assert_eq!(file("/raidlab/take"), "/root/store.db\n/root/out\n");
    assert_eq!(file("/root/suite.toml"), "x");
}

/// What a guest says that ran a command and hands one file over.
fn said(code: &str, files: &Archive) -> Vec<u8> {
    let mut archive = Vec::new();
    files.write_to(&mut archive).expect("memory takes all");
    let mut said = format!(
        "raidlab-guest ready 0\n\nraidlab-guest exit {}\n{code}\n",
        code.len()
    );
    said += &format!("raidlab-guest files {}\n", archive.len());
    let mut said = said.into_bytes();
    said.extend(archive);
    said.extend(b"\nraidlab-guest end 0\n\n");
    said
}

#[test]
fn a_report_is_an_exit_code_and_files() {
    let mut files = Archive::default();
    let contents = b"raidlab-guest end 0\n\n".to_vec();
    files.insert(
        "root/store.db",
        Node::File {
            mode: 0o600,
            contents,
        },
    );
    let said = said("7\n", &files);
    let report = Report::read(&said).expect("sound");
    assert_eq!(report, Some(Report { code: 7, files }));
    // Without its last byte the guest was cut off, whatever is in its files.
    let report = Report::read(&said[..said.len() - 1]).expect("sound so far");
    assert_eq!(report, None);
    assert_eq!(Report::read(b"").expect("sound so far"), None);
}

#[test]
fn a_report_without_a_sound_part_is_an_error() {
    let error = Report::read(&said("seven", &Archive::default())).expect_err("no number");
    assert!(
        matches!(error, GuestError::Incomplete { lacks: "exit" }),
        "{error:?}"
    );
    let error = Report::read(b"raidlab-guest exit 1\n0\nraidlab-guest end 0\n\n");
    let error = error.expect_err("no files");
    assert!(
        matches!(error, GuestError::Incomplete { lacks: "files" }),
        "{error:?}"
    );
    let damaged = b"raidlab-guest exit 1\n0\nraidlab-guest files 3\nabc\nraidlab-guest end 0\n\n";
    let error = Report::read(damaged).expect_err("no archive");
    assert!(matches!(error, GuestError::Files(_)), "{error:?}");
}

#[test]
fn an_early_end_is_told_with_its_reason() {
    let console = include_str!("../../../initramfs/src/console/data/memory-too-small.txt");
    let error = GuestError::Early {
        reason: reason(console),
        console: excerpt(console),
        emulator: "warning: x".to_owned(),
    };
    insta::assert_snapshot!(error);
}
