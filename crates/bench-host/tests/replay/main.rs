//! A whole experiment on a recorded machine: btrfs on two loop devices, Linux
//! 6.18, btrfs-progs 6.2, fio 3.33, recorded by `examples/record.rs` with
//! `data/tiny.toml`; lists of programs, memory and mounts are cut to what
//! matters.

mod cleanup;

use raidlab_bench_host::{HostBench, HostError, Machine, plan, plan_disks, trial};
use raidlab_inventory::choose::Consent;
use raidlab_lab::{
    ArrayLook, Background, Bench, Choices, Experiment, Finish, HostChoice, Observer, QueueStyle,
    Suite,
};
use raidlab_shell::{Answer, Command, Failure, Recorded, Request, Target};
use raidlab_store::{CellResult, Operation, Records, Role, fact};
use std::path::Path;
use std::sync::Arc;

const TRANSCRIPT: &str = include_str!("../data/btrfs-raid1.jsonl");
const SUITE: &str = include_str!("../data/tiny.toml");

fn disks() -> [String; 2] {
    ["/dev/loop0".to_owned(), "/dev/loop1".to_owned()]
}

fn machine(recorded: &Arc<Recorded>) -> Machine {
    let target: Arc<dyn Target> = Arc::clone(recorded) as Arc<dyn Target>;
    let machine = Machine::behind(target).unwrap();
    machine.with_disks(&disks(), Consent::default()).unwrap()
}

/// A machine as it was recorded, before anybody looked how its disk throttles writes, which files
/// are behind loop devices, and which labels file systems have.
fn from(transcript: &str) -> Recorded {
    let recorded = Recorded::from_transcript("localhost", transcript).unwrap();
    let words = [
        "--list",
        "--noheadings",
        "--output",
        "NAME,BACK-INO,BACK-MAJ:MIN",
    ];
    let files = "/dev/loop1 9977885      254:0  \n/dev/loop0 9977912      254:0  \n";
    recorded
        .file("/sys/block/vda/queue/wbt_lat_usec", "")
        .says(&Command::reads("losetup", words), files)
        .lacks("blkid")
}

fn recorded() -> Arc<Recorded> {
    Arc::new(from(TRANSCRIPT))
}

fn experiment(suite: &str) -> Experiment {
    let suite = Suite::parse("tiny.toml", suite, Path::new(".")).unwrap();
    let choices = Choices {
        hosts: vec![HostChoice {
            name: "localhost".to_owned(),
            queue: QueueStyle::Libaio,
            disks: disks().to_vec(),
        }],
        ..Choices::default()
    };
    suite.experiments(&suite.subjects, &choices).remove(0)
}

/// Keeps everything it is told.
#[derive(Default)]
struct Kept {
    records: Records,
    cells: Vec<CellResult>,
    looks: Vec<ArrayLook>,
    cancelled: bool,
}

impl Kept {
    /// Everything but rows, cells' included.
    fn all(mut self) -> (Vec<CellResult>, Records) {
        for cell in &self.cells {
            let more = cell.records.clone();
            self.records.observations.extend(more.observations);
            self.records.events.extend(more.events);
            self.records.commands.extend(more.commands);
            self.records.series.extend(more.series);
        }
        self.records.events.sort_by_key(|event| event.at_ns);
        (self.cells, self.records)
    }
}

impl Observer for Kept {
    fn record(&mut self, records: Records) {
        self.records.settings.extend(records.settings);
        self.records.observations.extend(records.observations);
        self.records.events.extend(records.events);
        self.records.commands.extend(records.commands);
        self.records.series.extend(records.series);
    }
    fn look(&mut self, look: ArrayLook) {
        self.looks.push(look);
    }
    fn cell(&mut self, result: CellResult) {
        self.cells.push(result);
    }
    fn cancelled(&self) -> bool {
        self.cancelled
    }
}

#[test]
fn a_recorded_experiment_gives_rows_events_and_facts_and_leaves_nothing() {
    let recorded = recorded();
    let bench = HostBench::new(vec![machine(&recorded)]);
    let experiment = experiment(SUITE);
    bench.check(&experiment).unwrap();
    let mut kept = Kept::default();
    let finish = bench.run(&experiment, &mut kept).unwrap();
    assert_eq!(finish, Finish::Complete);
    let mut background = Background::default();
    kept.looks.drain(..).for_each(|look| background.look(look));
    let (cells, records) = kept.all();
    let rebuilt = background.rows(&experiment, "host");
    // The array was seen once without the member, and then whole: what is behind the
    // recording's last look is made of single answers.
    let told: Vec<(Operation, f64, f64)> = rebuilt[..2]
        .iter()
        .map(|row| {
            let band = row.runtime_band_ns as f64 / 1e9;
            (row.op, (row.value() * 10.0).round(), (band * 10.0).round())
        })
        .collect();
    assert_eq!(
        told,
        [
            (Operation::Degraded, 15.0, 15.0),
            (Operation::Recovery, 5.0, 5.0)
        ]
    );
    assert!(
        rebuilt[..2]
            .iter()
            .all(|row| !row.is_unfinished() && row.role == Role::Measured)
    );

    let rows: Vec<_> = cells.iter().map(|cell| cell.rows.len()).collect();
    assert_eq!(rows, [0, 1, 1], "the job that prepares has no rows");
    let read = &cells[1].rows[0];
    assert_eq!((read.tool.as_str(), read.queue_depth), ("fio 3.33", 4));
    assert_eq!(read.array_state_start, "[UU]");
    assert!(read.iops > 0.0 && read.total_ios > 0);
    assert_eq!(read.members.len(), 2);
    let members: u64 = read.members.iter().map(|member| member.read_bytes).sum();
    assert!(members >= read.total_bytes, "{members} bytes from members");
    let write = &cells[2].rows[0];
    assert_eq!(write.array_state_start, "[U_]");
    assert_eq!(write.total_bytes, 16 << 20);
    assert_eq!(write.members[1].write_bytes, 0, "member 1 was out");

    let kinds: Vec<&str> = records
        .events
        .iter()
        .filter(|event| event.kind != "state")
        .map(|event| event.kind.as_str())
        .filter(|kind| !kind.starts_with("sync-"))
        .collect();
    let expected = [
        "job-start",
        "job-end",
        "job-start",
        "job-end",
        "remove",
        "job-start",
        "job-end",
        "insert",
    ];
    let told: Vec<&str> = kinds
        .into_iter()
        .filter(|kind| expected.contains(kind))
        .collect();
    assert_eq!(told, expected);

    let value = |sequence: Option<u32>, name: &str| {
        let mut found = records
            .observations
            .iter()
            .filter(|fact| fact.name == name && fact.scope.sequence == sequence);
        found.next().map(|fact| fact.value.as_str())
    };
    for (sequence, name, expected) in [
        (None, fact::ARRAY_SYSTEM, "btrfs"),
        (None, fact::ARRAY_LEVEL, "raid1"),
        (None, fact::COMPRESSION, "off"),
        (None, fact::FILESYSTEM_TYPE, "btrfs"),
        (None, fact::OS_KERNEL, "Linux"),
        (None, &fact::version("btrfs"), "6.2"),
        (None, &fact::member_device(1), "loop1"),
        (Some(1), fact::JOB_ASKED_RUNTIME_NS, "2000000000"),
        (Some(1), fact::JOB_WORKING_SET_BYTES, "16777216"),
        (Some(1), fact::JOB_DATA_PATTERN, "random"),
        (Some(1), fact::JOB_ALLOWS_DEGRADED, fact::FALSE),
        (Some(1), fact::ARRAY_HEALTH_START, "optimal"),
        (Some(1), fact::CLOCK_STEP_NS, "0"),
        (Some(1), fact::CACHES_DROPPED, fact::TRUE),
        (Some(2), fact::JOB_ALLOWS_DEGRADED, fact::TRUE),
        (Some(2), fact::JOB_ASKED_SIZE_BYTES, "16777216"),
        (Some(2), fact::JOB_DATA_PATTERN, "zero"),
        (Some(2), fact::ARRAY_HEALTH_END, "degraded"),
    ] {
        assert_eq!(value(sequence, name), Some(expected), "{name}");
    }
    assert!(value(Some(1), fact::FOREIGN_BYTES).is_some());

    let series = |name: &str| {
        let points = records.series.iter().filter(|series| series.name == name);
        points.map(|series| series.points.len()).sum::<usize>()
    };
    assert!(series(fact::series::READ_BYTES_PER_SECOND) >= 6);
    assert!(series(&fact::series::member(0, "busy_percent")) >= 6);

    let journal = records.commands.iter();
    let fio = journal.filter(|command| command.command.starts_with("fio "));
    assert_eq!(fio.count(), 2, "commands are written down");
    let commands: Vec<String> = recorded
        .commands()
        .into_iter()
        .filter(|command| {
            let words = ["umount", "wipefs --all", "btrfs device scan"];
            words.iter().any(|word| command.starts_with(word))
        })
        .collect();
    let last = &commands[commands.len() - 4..];
    assert_eq!(
        last,
        [
            "umount /run/raidlab/raidlab0",
            "wipefs --all /dev/loop0 /dev/loop1",
            "btrfs device scan --forget /dev/loop0",
            "btrfs device scan --forget /dev/loop1",
        ]
    );
}

/// `tiny.toml` with a scheduler, on a machine whose kernel has these.
fn scheduled(asked: &str, listed: &str) -> (Machine, Experiment) {
    let mut recorded = from(TRANSCRIPT);
    for disk in ["loop0", "loop1"] {
        recorded = recorded.file(&format!("/sys/block/{disk}/queue/scheduler"), listed);
    }
    let subjects = format!("[{{ subject = \"btrfs-raid1\", scheduler = \"{asked}\" }}]");
    let suite = SUITE.replace("[\"btrfs-raid1\"]", &subjects);
    (machine(&Arc::new(recorded)), experiment(&suite))
}

#[test]
fn a_scheduler_is_written_to_each_member_and_what_they_had_is_put_back() {
    let (machine, experiment) = scheduled("kyber", "none [mq-deadline] kyber bfq \n");
    let planned = plan(&machine, &experiment).unwrap();
    let place = |words: &str| planned.find(words).unwrap_or_else(|| panic!("{planned}"));
    let write = |disk: &str| format!("tee /sys/block/{disk}/queue/scheduler");
    for disk in ["loop0", "loop1"] {
        let (set, restored) = (place(&write(disk)), planned.rfind(&write(disk)).unwrap());
        assert!(set < place("mkfs.btrfs"), "{planned}");
        assert!(place("umount") < restored, "{planned}");
    }
}

/// A queue that never had the throttling cannot be read, and one of the two is so here.
#[test]
fn writes_are_held_back_as_a_suite_says_and_what_members_had_is_put_back() {
    let subjects = "[{ subject = \"btrfs-raid1\", write_throttling = \"75ms\" }]";
    let experiment = experiment(&SUITE.replace("[\"btrfs-raid1\"]", subjects));
    let file = |disk: &str| format!("/sys/block/{disk}/queue/wbt_lat_usec");
    let recorded = || from(TRANSCRIPT);
    let ready = recorded().file(&file("loop0"), "2000\n");
    let unreadable = Answer::Failure(Failure::Other("Invalid argument".to_owned()));
    let ready = ready.knows(&Request::Read(file("loop1")), unreadable);
    let planned = plan(&machine(&Arc::new(ready)), &experiment).unwrap();
    let written: Vec<&str> = planned
        .lines()
        .filter(|it| it.contains("wbt_lat"))
        .collect();
    let expected = ["loop0", "loop1", "loop1", "loop0"].map(file);
    assert_eq!(written.len(), expected.len(), "{planned}");
    for (line, file) in written.iter().zip(&expected) {
        assert!(line.contains(file), "{planned}");
    }
    let error = plan(
        &machine(&Arc::new(recorded().file_missing(&file("loop0")))),
        &experiment,
    )
    .unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains("no throttling of writes for /dev/loop0"),
        "{error}"
    );
}

#[test]
fn a_scheduler_that_the_kernel_does_not_have_is_refused_by_name() {
    let (machine, experiment) = scheduled("bfq", "[none] mq-deadline\n");
    let error = plan(&machine, &experiment).unwrap_err().to_string();
    assert!(error.contains("`bfq` for /dev/loop0"), "{error}");
}

/// `/dev/md100` is somebody else's: it is neither built over nor stopped.
#[test]
fn an_array_of_somebody_else_that_has_our_device_is_left_alone() {
    let scan = Command::reads(
        "mdadm",
        ["--examine", "--scan", "--verbose", "--config=partitions"],
    );
    let recorded = from(TRANSCRIPT)
        .says(&scan, "")
        .link("/dev/md100", "/dev/md100");
    let recorded = Arc::new(recorded);
    let bench = HostBench::new(vec![machine(&recorded)]);
    let experiment = experiment(&SUITE.replace("btrfs-raid1", "md-raid1"));
    let error = bench.run(&experiment, &mut Kept::default()).unwrap_err();
    let source = std::error::Error::source(&error).unwrap().to_string();
    let words = "localhost is taken: /dev/md100 is there, and is not of this run";
    assert_eq!(source, words);
    let commands = recorded.commands();
    let touched = |command: &String| command.contains("--stop") || command.contains("--create");
    assert!(!commands.iter().any(touched), "{commands:?}");
}

/// Loop devices whose files only have a name like a trial's are asked about, and known
/// again when the run goes on.
#[test]
fn a_loop_device_is_a_trial_s_only_if_it_was_made_for_one() {
    let given = machine(&recorded());
    let file = given.disks()[0].disk.backing_file.as_deref();
    assert!(file.unwrap().contains(trial::FILE_PREFIX));
    assert!(!given.is_trial(&given.disks()[0]));
    assert_eq!(plan_disks::facts(&given).len(), 2);
    let made = machine(&recorded()).with_trial(disks().to_vec());
    assert!(made.is_trial(&made.disks()[0]));
    assert!(plan_disks::facts(&made).is_empty());
}

#[test]
fn a_run_that_is_cancelled_builds_nothing() {
    let recorded = recorded();
    let bench = HostBench::new(vec![machine(&recorded)]);
    let mut kept = Kept {
        cancelled: true,
        ..Kept::default()
    };
    let finish = bench.run(&experiment(SUITE), &mut kept).unwrap();
    assert_eq!(finish, Finish::Cancelled);
    let commands = recorded.commands();
    let built = commands.iter().any(|command| command.starts_with("mkfs"));
    assert!(!built, "{commands:?}");
}

/// fio leaves a job that hangs after five minutes, and tells of it as of any other.
#[test]
fn a_job_that_fio_gave_up_waiting_for_has_no_row() {
    let said = "fio: job 'job1' (state=5) hasn't exited in 301 seconds, it appears to be stuck. \
                Doing forceful exit of this job.";
    let stuck = |line: &str| {
        if line.contains("\"program\":\"fio\"") && line.contains("--rw=randread") {
            line.replace("\"stderr\":\"\"", &format!("\"stderr\":\"{said}\""))
        } else {
            line.to_owned()
        }
    };
    let transcript: Vec<String> = TRANSCRIPT.lines().map(stuck).collect();
    let transcript = transcript.join("\n");
    assert_ne!(transcript, TRANSCRIPT.trim_end());
    let recorded = from(&transcript);
    let bench = HostBench::new(vec![machine(&Arc::new(recorded))]);
    let mut kept = Kept::default();
    let error = bench.run(&experiment(SUITE), &mut kept).unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains("did not end: fio: job 'job1'"), "{cause}");
    assert!(kept.cells.iter().all(|cell| cell.rows.is_empty()));
}

/// The recording ends with the first mkfs: the second build fails in it.
#[test]
fn a_build_that_fails_is_taken_down() {
    let recorded = recorded();
    let mkfs = "mkfs.btrfs --force --label raidlab0 --data raid1 --metadata raid1 --csum crc32c \
                /dev/loop0 /dev/loop1";
    let mut words = mkfs.split(' ');
    let first = Command::destroys(words.next().unwrap(), words);
    recorded.run(&first).unwrap();
    let bench = HostBench::new(vec![machine(&recorded)]);
    let error = bench
        .run(&experiment(SUITE), &mut Kept::default())
        .unwrap_err();
    assert_eq!(error.to_string(), "building the array failed");
    let commands = recorded.commands();
    let failed = commands
        .iter()
        .rposition(|command| command == mkfs)
        .unwrap();
    let after = commands[failed + 1..].join("\n");
    assert!(
        after.contains("wipefs --all /dev/loop0 /dev/loop1"),
        "{after}"
    );
    assert!(
        after.contains("btrfs device scan --forget /dev/loop1"),
        "{after}"
    );
}

#[test]
fn what_is_mounted_by_another_run_is_left_alone() {
    let mounts = "/dev/loop7 /run/raidlab/raidlab0 btrfs rw 0 0\n";
    let transcript = TRANSCRIPT
        .lines()
        .filter(|line| !line.contains("\"/proc/self/mounts\""))
        .collect::<Vec<_>>()
        .join("\n");
    let recorded = from(&transcript);
    let recorded = Arc::new(recorded.file("/proc/self/mounts", mounts));
    let bench = HostBench::new(vec![machine(&recorded)]);
    let error = bench
        .run(&experiment(SUITE), &mut Kept::default())
        .unwrap_err();
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert!(
        source.starts_with("localhost is taken: something is mounted on /run/raidlab/raidlab0"),
        "{source}"
    );
    let commands = recorded.commands();
    let touched = |command: &String| {
        ["umount", "wipefs --all", "mkfs"]
            .iter()
            .any(|word| command.starts_with(word))
    };
    assert!(!commands.iter().any(touched), "{commands:?}");
}

const EVENTS: &str = "\n[[step]]\nevent = \"fail\"\nmember = 1\n";

#[test]
fn what_an_array_cannot_do_is_known_before_anything_runs() {
    let recorded = recorded();
    let bench = HostBench::new(vec![machine(&recorded)]);
    let suite = format!("{SUITE}{EVENTS}");
    let error = bench.obstacle(&experiment(&suite)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "btrfs raid1 cannot make a member fail: it has no such verb: remove the member"
    );
    let within = SUITE
        .replace("[[step]]\nevent = \"remove\"\nmember = 1\n", "")
        .replace(
            "title = \"random read 4 KiB\"\n",
            "title = \"random read 4 KiB\"\n\
             events = [{ event = \"remove\", member = 1, at = \"1s\" }]\n",
        );
    let error = bench
        .obstacle(&experiment(&within))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("must be out of use to remove member 1"),
        "{error}"
    );
}

#[test]
fn what_a_machine_lacks_is_named_with_its_package() {
    let recorded = recorded();
    let bench = HostBench::new(vec![machine(&recorded)]);
    let md = SUITE.replace("btrfs-raid1", "md-raid1");
    match bench.obstacle(&experiment(&md)) {
        Err(HostError::Missing { missing, .. }) => {
            assert_eq!(missing[0], "program `mdadm` (`apt-get install mdadm`)");
        }
        other => panic!("mdadm is not there: {other:?}"),
    }
}

#[test]
fn the_plan_of_md_with_ext4_and_events() {
    let recorded = recorded();
    let machine = machine(&recorded);
    let suite = SUITE.replace("btrfs-raid1", "md-raid5").replace(
        "\n[[step]]\nwait",
        "\nfilesystems = [{ type = \"ext4\", mount_options = [\"noatime\"] }]\n\n[[step]]\nwait",
    );
    let mut suite = suite.replacen("filesystems", "# again", 2);
    suite = suite.replacen("# again", "filesystems", 1);
    insta::assert_snapshot!(plan(&machine, &experiment(&suite)).unwrap());
    let commands = recorded.commands();
    let changed = |command: &String| command.contains("mdadm") || command.starts_with("mkfs");
    assert!(!commands.iter().any(changed), "{commands:?}");
}
