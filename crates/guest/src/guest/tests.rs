use super::{Job, job_archive, text};
use crate::frames::frames;
use crate::newc::{Archive, Node};
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
        take: vec!["/root/store.db".to_owned(), "/tmp/out".to_owned()],
    };
    let archive = job_archive(&job);
    let file = |path: &str| String::from_utf8_lossy(archive.file(path).expect(path)).into_owned();
    insta::assert_snapshot!(file("/raidlab/job"), @r"
    #!/busybox sh
    exec env LC_ALL=C 'MARK=a b' raidlab run 'it'\''s quick' ''
    ");
    assert_eq!(file("/raidlab/input"), "yes\n");
    assert_eq!(file("/raidlab/take"), "/root/store.db\n/tmp/out\n");
    assert_eq!(file("/root/suite.toml"), "x");
}

#[test]
fn a_frame_is_found_by_its_kind() {
    let bytes = b"raidlab-guest ready 0\n\nraidlab-guest exit 2\n7\n\n";
    let frames = frames(bytes).expect("two frames");
    assert_eq!(text(&frames, "ready"), Some(""));
    assert_eq!(text(&frames, "exit"), Some("7"));
    assert_eq!(text(&frames, "end"), None);
}
