use super::*;
use crate::local::Local;
use crate::observed::Observed;
use std::io;
use std::io::Write;

fn detail() -> Command {
    Command::reads("mdadm", ["--detail", "/dev/md0"])
}

fn stop() -> Command {
    Command::changes("mdadm", ["--stop", "/dev/md0"])
}

#[test]
fn equal_requests_get_their_answers_in_order_and_the_last_look_repeats() {
    let store = Recorded::new("store1")
        .says(&detail(), "State : resyncing")
        .says(&detail(), "State : clean");
    let said: Vec<String> = (0..4)
        .map(|_| store.run(&detail()).unwrap().stdout)
        .collect();
    assert_eq!(
        said,
        [
            "State : resyncing",
            "State : clean",
            "State : clean",
            "State : clean"
        ]
    );
}

#[test]
fn a_change_is_answered_as_often_as_recorded() {
    let store = Recorded::new("store1").says(&stop(), "");
    assert!(store.run(&stop()).is_ok());
    assert_eq!(
        store.run(&stop()).unwrap_err().to_string(),
        "the recording of store1 has no answer to `mdadm --stop /dev/md0`"
    );
    assert_eq!(store.commands(), ["mdadm --stop /dev/md0"; 2]);
}

#[test]
fn the_marker_of_a_run_makes_no_other_request() {
    let store = Recorded::new("store1").says(&detail(), "clean");
    let mut marked = detail().timeout(Duration::from_secs(3));
    marked.environment = vec![("RAIDLAB_RUN".to_owned(), "17".to_owned())];
    assert_eq!(store.run(&marked).unwrap().stdout, "clean");
}

#[test]
fn a_file_is_read_written_and_listed() {
    let store = Recorded::new("store1")
        .file("/sys/block/md0/md/sync_action", "idle\n")
        .file("/sys/block/sda/size", "2048\n")
        .file_missing("/proc/mdstat");
    store
        .write("/sys/block/md0/md/sync_action", "check")
        .unwrap();
    assert_eq!(
        store.read("/sys/block/md0/md/sync_action").unwrap(),
        "check"
    );
    assert_eq!(store.list("/sys/block").unwrap(), ["md0", "sda"]);
    assert!(store.read("/proc/mdstat").unwrap_err().is_missing());
    assert!(!store.read("/proc/cpuinfo").unwrap_err().is_missing());
    assert!(store.write("/proc/cpuinfo", "x").is_err());
}

#[test]
fn folders_links_and_lacking_programs_are_told() {
    let store = Recorded::new("store1")
        .folder("/dev/disk/by-id", &[])
        .link("/dev/disk/by-id/wwn-1", "/dev/sda")
        .lacks("smartctl");
    assert!(store.list("/dev/disk/by-id").unwrap().is_empty());
    assert_eq!(store.resolve("/dev/disk/by-id/wwn-1").unwrap(), "/dev/sda");
    let error = store
        .output(&Command::reads("smartctl", ["-a"]))
        .unwrap_err();
    assert!(matches!(error, TargetError::NoProgram { .. }), "{error}");
}

#[test]
fn a_watch_gives_its_frames_and_then_the_files() {
    let source = vec![Watched::File("/proc/stat".to_owned())];
    let given = Frame {
        at: Duration::from_secs(9),
        contents: vec![Some("given".to_owned())],
    };
    let store = Recorded::new("store1")
        .frames(vec![given.clone()])
        .file("/proc/stat", "cpu 1");
    let mut frames = store.watch(source, Duration::from_secs(1)).unwrap();
    assert_eq!(frames.take().unwrap(), [given]);
    let read = Frame {
        at: Duration::from_secs(1),
        contents: vec![Some("cpu 1".to_owned())],
    };
    assert_eq!(frames.take().unwrap(), [read]);
}

/// A transcript in memory, seen from the test.
#[derive(Clone, Default)]
struct Page(Arc<Mutex<Vec<u8>>>);

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Page {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

#[test]
fn what_was_recorded_is_answered_again() {
    let page = Page::default();
    let real = Observed::recording(Local::new(), page.clone());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tunable").to_string_lossy().into_owned();
    let script = Command::changes("sh", ["-c", "cat; echo out; echo err >&2; exit 3"])
        .input("in ")
        .success(&[0, 3]);
    let ask = |target: &dyn Target| {
        let mut told = Vec::new();
        told.push(format!(
            "{:?}",
            target
                .run(&script)
                .map(|output| (output.code, output.stdout, output.stderr))
        ));
        let mut running = target.start(&script).unwrap();
        let stopped = loop {
            if let Some(output) = running.poll().unwrap() {
                break output;
            }
        };
        told.push(format!("{:?}", (stopped.code, stopped.stdout)));
        told.push(format!(
            "{:?}",
            target.output(&Command::reads("no-such-tool-here", ["-x"]))
        ));
        told.push(target.read(&file).unwrap_err().is_missing().to_string());
        told.push(format!("{:?}", target.write(&file, "42")));
        told.push(format!("{:?}", target.read(&file)));
        told.push(format!(
            "{:?}",
            target.list(&folder.path().to_string_lossy())
        ));
        told.push(format!("{:?}", target.resolve(&file)));
        let sources = vec![
            Watched::File(file.clone()),
            Watched::File("/no/such".to_owned()),
        ];
        let mut frames = target.watch(sources, Duration::from_secs(60)).unwrap();
        let frame = loop {
            if let Some(frame) = frames.take().unwrap().pop() {
                break frame;
            }
        };
        told.push(format!("{:?}", frame.contents));
        told
    };
    let first = ask(&real);
    drop(real);
    let again = Recorded::from_transcript("localhost", &page.text()).unwrap();
    assert_eq!(ask(&again), first);
}

#[test]
fn a_broken_transcript_names_the_line() {
    let error = Recorded::from_transcript("store1", "\n{\"at\":1}\n").unwrap_err();
    assert_eq!(error.to_string(), "line 2 of the transcript is no exchange");
}
