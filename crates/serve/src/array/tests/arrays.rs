//! Whole arrays on temporary files: made, filled by many requests at once,
//! stopped, put together again, degraded, recovered. Afterwards the bytes are
//! those of a flat array.

use crate::array::testing::Client;
use crate::array::{ArrayExport, DriverConfig, FilesError, ServeOptions, assemble, create};
use crate::control::{ControlRequest, ControlResponse, Controlled, DeviceReport, StatusReport};
use crate::export::{Export, Operation};
use crate::member::{BackendKind, Member, MemberFile, OpenOptions};
use proptest::prelude::*;
use raidlab_array::{AssembleError, AssembleOptions, EngineOptions, Level, Stale};
use raidlab_metadata::create::{
    BitmapChoice, CreateSpec, InitialSync, LogReserve, MemberSize, plan,
};
use raidlab_metadata::{DeviceFlags, Uuid, Version};
use raidlab_units::{Bytes, Sectors};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

const MEMBER_BYTES: u64 = 8 << 20;

struct Scene {
    folder: tempfile::TempDir,
    members: usize,
}

fn open(path: &std::path::Path) -> Member {
    MemberFile::open(path, OpenOptions::default())
        .expect("opens")
        .into()
}

pub(super) fn options(backend: BackendKind) -> ServeOptions {
    ServeOptions {
        engine: EngineOptions::new("md-6.9".parse().expect("a policy")),
        log: true,
        driver: DriverConfig {
            backend,
            ..DriverConfig::default()
        },
    }
}

impl Scene {
    fn new(level: Level, members: usize) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let scene = Self { folder, members };
        let files: Vec<_> = (0..members).map(|member| scene.make(member)).collect();
        let spec = CreateSpec {
            version: Version::V1_2,
            level,
            layout: None,
            chunk: (level != Level::Raid1).then_some(Sectors(128)),
            raid_disks: members,
            array_uuid: Uuid([7; 16]),
            host: "here".to_owned(),
            name: "test".to_owned(),
            created: 1_700_000_000,
            size: None,
            data_offset: None,
            bitmap: match level {
                Level::Linear | Level::Raid0 => BitmapChoice::None,
                _ => BitmapChoice::Internal(Some(Bytes(65_536))),
            },
            initial: InitialSync::AssumeClean,
            log: LogReserve::AtLeast(Sectors(2048)),
            bad_block_log: true,
        };
        let sizes = (0..members).map(|member| {
            Some(MemberSize {
                size: Bytes(MEMBER_BYTES),
                device_uuid: Uuid([member as u8; 16]),
                flags: DeviceFlags::default(),
                found: Vec::new(),
            })
        });
        let plan = plan(&spec, &sizes.collect::<Vec<_>>()).expect("a plan");
        create(&plan, &files).expect("writes");
        scene
    }

    fn path(&self, member: usize) -> PathBuf {
        self.folder.path().join(format!("member-{member}"))
    }

    fn make(&self, member: usize) -> Member {
        let file = std::fs::File::create(self.path(member)).expect("a file");
        file.set_len(MEMBER_BYTES).expect("room");
        open(&self.path(member))
    }

    fn try_start(
        &self,
        without: &[usize],
        backend: BackendKind,
        how: &AssembleOptions,
    ) -> Result<ArrayExport, FilesError> {
        let present = (0..self.members).filter(|member| !without.contains(member));
        let files: Vec<_> = present.map(|member| open(&self.path(member))).collect();
        let assembled = assemble(&files, None, how)?;
        Ok(ArrayExport::start(assembled, &options(backend)).expect("starts"))
    }

    fn start(&self, without: &[usize], backend: BackendKind) -> ArrayExport {
        let how = AssembleOptions {
            run_degraded: true,
            stale: Stale::ReAdd,
            ..AssembleOptions::default()
        };
        self.try_start(without, backend, &how).expect("assembles")
    }
}

pub(super) fn ask(array: &ArrayExport, request: ControlRequest) -> Result<(), String> {
    match array.control(request) {
        ControlResponse::Done => Ok(()),
        ControlResponse::Refused { error } => Err(error),
        other => panic!("{other:?}"),
    }
}

/// Asks again and again until the array is as wanted.
pub(super) fn wait_for(
    array: &ArrayExport,
    wanted: impl Fn(&StatusReport) -> bool,
) -> StatusReport {
    for _ in 0..6000 {
        let status = array.status().expect("runs");
        if wanted(&status) {
            return status;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("never: {:?}", array.status());
}

/// Writes and reads in batches without overlaps, keeping `oracle`.
pub(super) fn exercise(array: &ArrayExport, oracle: &mut [u8], steps: &[(bool, u64, u64, u8)]) {
    let client = Client::new();
    let sectors = oracle.len() as u64 / 512;
    for batch in steps.chunks(6) {
        let lane = sectors / batch.len() as u64;
        let mut expected = Vec::new();
        for (number, &(write, start, count, byte)) in (0..).zip(batch) {
            let start = number * lane + start % lane;
            let count = count.min((number + 1) * lane - start);
            let range = (start * 512) as usize..((start + count) * 512) as usize;
            let mut payload = Vec::new();
            let operation = if write {
                payload.extend(range.clone().map(|at| byte ^ (at / 512 * 11) as u8));
                oracle[range.clone()].copy_from_slice(&payload);
                Operation::Write
            } else {
                Operation::Read
            };
            let request = (operation, start * 512, (count * 512) as u32);
            client.send(array, number, request, &payload, byte % 4 == 0);
            expected.push((!write).then(|| oracle[range].to_vec()));
        }
        array.submitted();
        for _ in batch {
            let (token, bytes, result) = client.next();
            assert_eq!(result, Ok(()));
            if let Some(expected) = &expected[token as usize] {
                assert!(&bytes == expected, "request {token} of {batch:?}");
            }
        }
    }
}

pub(super) fn holds(array: &ArrayExport, oracle: &[u8]) {
    let client = Client::new();
    for (piece, start) in oracle.chunks(1 << 20).zip((0_u64..).step_by(1 << 20)) {
        let read = (Operation::Read, start, piece.len() as u32);
        let (bytes, result) = client.ask(array, read, &[]);
        assert_eq!(result, Ok(()));
        assert!(bytes == piece, "from byte {start}");
    }
}

pub(super) fn steps() -> impl Strategy<Value = Vec<(bool, u64, u64, u8)>> {
    let step = (
        prop::bool::weighted(0.7),
        any::<u64>(),
        1..1500_u64,
        any::<u8>(),
    );
    prop::collection::vec(step, 6..36)
}

fn levels() -> impl Strategy<Value = (Level, usize)> {
    prop::sample::select(vec![
        (Level::Linear, 2),
        (Level::Raid0, 3),
        (Level::Raid1, 2),
        (Level::Raid4, 3),
        (Level::Raid5, 4),
        (Level::Raid6, 5),
        (Level::Raid10, 4),
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(14))]

    #[test]
    fn any_level_is_a_flat_array_across_restarts(
        (level, members) in levels(),
        first in steps(),
        second in steps(),
    ) {
        let scene = Scene::new(level, members);
        let array = scene.start(&[], BackendKind::Ring);
        let mut oracle = vec![0; array.size_bytes() as usize];
        exercise(&array, &mut oracle, &first);
        drop(array);
        let array = scene.start(&[], BackendKind::Threads);
        prop_assert_eq!(array.status().expect("runs").state, "clean");
        holds(&array, &oracle);
        exercise(&array, &mut oracle, &second);
        holds(&array, &oracle);
    }
}

/// Fails a member while clients write, goes on without it, restarts degraded,
/// takes it back by the bitmap, adds a new one, checks.
fn life(level: Level, members: usize) {
    let steps: Vec<_> = (0..30_u64)
        .map(|step| (step % 3 != 0, step * 7919, 1 + step * 37 % 900, step as u8))
        .collect();
    let scene = Scene::new(level, members);
    let array = scene.start(&[], BackendKind::Automatic);
    let mut oracle = vec![0; array.size_bytes() as usize];
    exercise(&array, &mut oracle, &steps);
    let failed = scene.path(1).display().to_string();
    ask(
        &array,
        ControlRequest::Fail {
            device: failed.clone(),
        },
    )
    .expect("fails");
    exercise(&array, &mut oracle, &steps[3..]);
    let status = wait_for(&array, |status| status.state.contains("degraded"));
    assert_eq!(status.devices[1].state, "faulty");
    ask(
        &array,
        ControlRequest::Remove {
            device: "1".to_owned(),
        },
    )
    .expect("leaves");
    drop(array);

    let array = scene.start(&[1], BackendKind::Automatic);
    holds(&array, &oracle);
    exercise(&array, &mut oracle, &steps[5..]);
    ask(&array, ControlRequest::ReAdd { path: failed }).expect("comes back");
    let whole = |status: &StatusReport| !status.health.contains('_');
    wait_for(&array, whole);
    holds(&array, &oracle);

    let device = scene.path(0).display().to_string();
    ask(
        &array,
        ControlRequest::Fail {
            device: device.clone(),
        },
    )
    .expect("fails");
    exercise(&array, &mut oracle, &steps);
    ask(&array, ControlRequest::Remove { device }).expect("leaves");
    let new = scene.path(members);
    drop(scene.make(members));
    let path = new.display().to_string();
    ask(
        &array,
        ControlRequest::Add {
            path,
            overwrite: false,
        },
    )
    .expect("joins");
    exercise(&array, &mut oracle, &steps);
    wait_for(&array, |status| whole(status) && status.sync.is_none());
    ask(&array, ControlRequest::Check {}).expect("starts");
    let status = wait_for(&array, |status| status.sync.is_none());
    assert_eq!(status.mismatch_sectors, 0);
    holds(&array, &oracle);
    ask(&array, ControlRequest::Stop {}).expect("stops");
    assert!(array.wait_until_stopped(Duration::ZERO), "told too early");
    assert!(array.status().is_err());
}

/// What has died says nothing on its members of how it ended.
#[test]
fn a_stop_of_what_has_died_is_no_clean_one() {
    let scene = Scene::new(Level::Raid1, 2);
    let array = scene.start(&[], BackendKind::Automatic);
    let died = array.call::<()>(|_, _| panic!("on purpose"));
    assert!(died.is_err());
    let refused = ask(&array, ControlRequest::Stop {}).expect_err("nothing was stopped");
    assert_eq!(
        refused,
        "the array was not stopped cleanly: its thread has died"
    );
    // What was under way when the thread died keeps its members claimed, so others are taken.
    let scene = Scene::new(Level::Raid1, 2);
    let array = scene.start(&[], BackendKind::Automatic);
    ask(&array, ControlRequest::Stop {}).expect("stops");
    array.stopped_cleanly().expect("clean");
}

#[test]
fn the_life_of_a_mirror() {
    life(Level::Raid1, 2);
}

#[test]
fn the_life_of_a_raid_5() {
    life(Level::Raid5, 4);
}

#[test]
fn the_life_of_a_raid_6() {
    life(Level::Raid6, 5);
}

#[test]
fn the_life_of_a_raid_10() {
    life(Level::Raid10, 4);
}

/// What stands in a name acts on no terminal, whoever brings it.
#[test]
fn a_device_that_is_added_is_shown_as_others_are() {
    let scene = Scene::new(Level::Raid1, 2);
    let array = scene.start(&[], BackendKind::Automatic);
    drop(scene.make(2));
    let odd = scene.path(2).with_file_name("new\nline");
    std::fs::rename(scene.path(2), &odd).expect("renamed");
    let path = odd.display().to_string();
    let add = ControlRequest::Add {
        path,
        overwrite: false,
    };
    ask(&array, add).expect("a spare");
    let status = array.status().expect("runs");
    let shown = |one: &DeviceReport| one.path.ends_with("new\\nline");
    assert!(status.devices.iter().any(shown), "{status:?}");
}

#[test]
fn verbs_that_make_no_sense_are_refused() {
    let scene = Scene::new(Level::Raid1, 2);
    let array = scene.start(&[], BackendKind::Automatic);
    let device = |device: &str| ControlRequest::Fail {
        device: device.to_owned(),
    };
    let unknown = ask(&array, device("7")).expect_err("there are two");
    assert!(
        unknown.starts_with("no such device: 7; there are "),
        "{unknown}"
    );
    assert!(unknown.contains("member-0, "), "{unknown}");
    let path = scene.path(0).display().to_string();
    let again = ask(
        &array,
        ControlRequest::Add {
            path,
            overwrite: false,
        },
    );
    let again = again.expect_err("it is there");
    assert!(
        again.ends_with("is device 0 of the array already, active sync: `--remove` takes it out"),
        "{again}"
    );
    let slow = ControlRequest::Speed {
        minimum: 5,
        maximum: 4,
    };
    assert!(ask(&array, slow).is_err());
    let remove = ControlRequest::Remove {
        device: "0".to_owned(),
    };
    assert!(
        ask(&array, remove)
            .expect_err("in service")
            .contains("in service")
    );
    assert_eq!(ask(&array, device("0")), Ok(()));
    assert!(ask(&array, device("1")).is_err(), "the last one");
}

#[test]
fn too_few_members_are_refused() {
    let scene = Scene::new(Level::Raid5, 4);
    let how = AssembleOptions::default();
    let error = scene.try_start(&[0, 1], BackendKind::Automatic, &how);
    let refused = matches!(
        error.expect_err("two are missing"),
        FilesError::Assemble(AssembleError::NotEnough { .. })
    );
    assert!(refused);
    let blank = scene.make(9);
    let error = assemble(&[blank], None, &how).expect_err("no superblock");
    assert!(matches!(error, FilesError::Examine { .. }), "{error}");
}

/// Names of files need not be text, and are shown as text.
#[test]
fn members_whose_names_are_no_text_are_known_apart() {
    let scene = Scene::new(Level::Raid5, 3);
    let names = [&b"\xfd"[..], b"\xfe", b"\xff", br"\xff"];
    let [first, second, third, twin] = names.map(|name| {
        let name = std::ffi::OsStr::from_bytes(name);
        scene.folder.path().join(name)
    });
    let paths = [&first, &second, &third];
    for (member, path) in paths.iter().enumerate() {
        std::fs::rename(scene.path(member), path).expect("renamed");
    }
    let found = |paths: [&PathBuf; 3]| {
        let files = paths.map(|path| open(path));
        let assembled = assemble(&files, None, &AssembleOptions::default())?;
        let files = assembled
            .files
            .iter()
            .map(|(_, file)| file.path().to_owned());
        Ok::<Vec<PathBuf>, FilesError>(files.collect())
    };
    assert_eq!(found(paths).expect("assembles"), paths.map(Clone::clone));
    // Whose name is a text that is shown as one that is none.
    std::fs::rename(&second, &twin).expect("renamed");
    let error = found([&first, &twin, &third]).expect_err("two of one name");
    assert!(
        error.to_string().contains("give one of them another"),
        "{error}"
    );
}
