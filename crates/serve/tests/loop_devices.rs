//! Block devices as members: loop devices with logical blocks of 512 and 4,096
//! bytes. Needs root, losetup and a free loop device; without them it says that
//! nothing was tested.

use crossbeam_channel::{Receiver, Sender, unbounded};
use raidlab_array::{AssembleOptions, EngineOptions, Level};
use raidlab_metadata::create::{
    BitmapChoice, CreateSpec, InitialSync, LogReserve, MemberSize, plan,
};
use raidlab_metadata::{DeviceFlags, Uuid, Version};
use raidlab_serve::array::{ArrayExport, DriverConfig, FilesError, ServeOptions, assemble, create};
use raidlab_serve::export::{
    Buffer, BufferPool, Completions, ErrorCode, Export, Operation, Request, RequestFlags,
};
use raidlab_serve::member::{Access, Member, MemberFile, OpenError, OpenOptions};
use raidlab_units::{Bytes, Sectors};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

const MEMBER_BYTES: u64 = 8 << 20;

/// A file, and the loop device that it backs.
struct Loop {
    device: PathBuf,
    file: tempfile::NamedTempFile,
}

fn attached(file: &Path, sector_bytes: u32) -> Result<PathBuf, String> {
    let output = Command::new("losetup")
        .args([
            "--find",
            "--show",
            "--sector-size",
            &sector_bytes.to_string(),
        ])
        .arg(file)
        .output()
        .map_err(|error| format!("losetup: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().into())
}

fn run(program: &str, words: &[&str]) -> bool {
    let output = Command::new(program).args(words).output();
    output.is_ok_and(|output| output.status.success())
}

impl Loop {
    fn new(sector_bytes: u32) -> Result<Self, String> {
        let file = tempfile::NamedTempFile::new().expect("a file");
        file.as_file().set_len(MEMBER_BYTES).expect("room");
        let device = attached(file.path(), sector_bytes)?;
        Ok(Self { device, file })
    }

    fn open(&self) -> Result<MemberFile, OpenError> {
        MemberFile::open(&self.device, OpenOptions::default())
    }

    /// The same file with another size behind the device.
    fn resize(&self, bytes: u64) {
        self.file.as_file().set_len(bytes).expect("room");
        let shown = self.device.display().to_string();
        assert!(run("losetup", &["--set-capacity", &shown]));
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        run("losetup", &["--detach", &self.device.display().to_string()]);
    }
}

/// So many loop devices; `None`, and said, where that cannot be.
fn loops(count: usize, sector_bytes: u32) -> Option<Vec<Loop>> {
    let made: Result<Vec<_>, _> = (0..count).map(|_| Loop::new(sector_bytes)).collect();
    made.inspect_err(|why| eprintln!("nothing was tested, there are no loop devices: {why}"))
        .ok()
}

struct Mailbox(Sender<(Buffer, Result<(), ErrorCode>)>);

impl Completions for Mailbox {
    fn completed(&self, _: u64, buffer: Buffer, result: Result<(), ErrorCode>) {
        // Nobody listens any more: the test is over.
        let _ = self.0.send((buffer, result));
    }
}

struct Client {
    mailbox: Arc<Mailbox>,
    answers: Receiver<(Buffer, Result<(), ErrorCode>)>,
}

impl Client {
    fn new() -> Self {
        let (sender, answers) = unbounded();
        let mailbox = Arc::new(Mailbox(sender));
        Self { mailbox, answers }
    }

    fn ask(&self, array: &ArrayExport, operation: Operation, offset: u64, bytes: &[u8]) -> Vec<u8> {
        let pool = BufferPool::default();
        let mut buffer = pool.take(bytes.len()).expect("room");
        buffer.copy_from_slice(bytes);
        let flags = RequestFlags {
            force_unit_access: operation == Operation::Write,
            ..RequestFlags::default()
        };
        let answer: Arc<dyn Completions> = Arc::clone(&self.mailbox) as _;
        let length = bytes.len() as u32;
        let request = Request::new(operation, offset, length, flags, buffer, (answer, 0));
        array.submit(request);
        array.submitted();
        let (buffer, result) = self.answers.recv().expect("an answer");
        assert_eq!(result, Ok(()), "{operation:?} at {offset}");
        buffer.to_vec()
    }
}

/// Makes a RAID 5 of the devices.
fn make(loops: &[Loop]) {
    let files: Vec<_> = loops
        .iter()
        .map(|one| Member::from(one.open().expect("free")))
        .collect();
    let spec = CreateSpec {
        version: Version::V1_2,
        level: Level::Raid5,
        layout: None,
        chunk: Some(Sectors(128)),
        raid_disks: files.len(),
        array_uuid: Uuid([5; 16]),
        host: String::new(),
        name: "loops".to_owned(),
        created: 1_700_000_000,
        size: None,
        data_offset: None,
        bitmap: BitmapChoice::Internal(Some(Bytes(65_536))),
        initial: InitialSync::AssumeClean,
        log: LogReserve::AtLeast(Sectors(2048)),
        bad_block_log: true,
    };
    let sizes = files.iter().zip(0..).map(|(file, number)| {
        Some(MemberSize {
            size: file.size().to_bytes(),
            device_uuid: Uuid([number; 16]),
            flags: DeviceFlags::default(),
            found: Vec::new(),
        })
    });
    let plan = plan(&spec, &sizes.collect::<Vec<_>>()).expect("a plan");
    create(&plan, &files).expect("writes");
}

fn start(paths: &[&Path]) -> Result<ArrayExport, FilesError> {
    let files: Vec<_> = paths
        .iter()
        .map(|path| MemberFile::open(path, OpenOptions::default()))
        .map(|file| Member::from(file.expect("free")))
        .collect();
    let assembled = assemble(&files, None, &AssembleOptions::default())?;
    let options = ServeOptions {
        engine: EngineOptions::new("md-6.9".parse().expect("a policy")),
        log: true,
        driver: DriverConfig::default(),
    };
    Ok(ArrayExport::start(assembled, &options).expect("starts"))
}

fn pattern(seed: u8, bytes: usize) -> Vec<u8> {
    (0..bytes)
        .map(|place| (place as u8).wrapping_mul(31) ^ (place >> 8) as u8 ^ seed)
        .collect()
}

/// Writes of odd places and lengths through an array of loop devices are read
/// again from it, after it was stopped, and from the files behind the devices.
fn keeps_what_is_written(sector_bytes: u32) {
    let Some(loops) = loops(3, sector_bytes) else {
        return;
    };
    let member = loops[0].open().expect("free");
    assert_eq!(member.size().to_bytes(), Bytes(MEMBER_BYTES));
    assert_eq!(member.logical_block_bytes(), sector_bytes);
    // The array addresses sectors of 512 bytes.
    assert_eq!(member.direct(), sector_bytes == 512);
    let again = loops[0].open().expect_err("claimed");
    assert!(matches!(again, OpenError::InUse { .. }), "{again}");
    drop(member);
    make(&loops);
    let client = Client::new();
    let places = [
        (0, 512),
        (7 * 512, 4096),
        (65_536 - 1024, 200 * 1024),
        (1 << 20, 512),
    ];
    let paths: Vec<&Path> = loops.iter().map(|one| &*one.device).collect();
    let array = start(&paths).expect("assembles");
    for (seed, (offset, length)) in (1..).zip(places) {
        client.ask(&array, Operation::Write, offset, &pattern(seed, length));
    }
    let reads_all = |array: &ArrayExport| {
        for (seed, (offset, length)) in (1..).zip(places).skip(1) {
            let read = client.ask(array, Operation::Read, offset, &vec![0; length]);
            assert!(read == pattern(seed, length), "at {offset}");
        }
        let read = client.ask(array, Operation::Read, 0, &[0; 512]);
        assert!(read == pattern(1, 512));
    };
    reads_all(&array);
    drop(array);
    let array = start(&paths).expect("assembles again");
    reads_all(&array);
    drop(array);
    let files: Vec<_> = loops
        .into_iter()
        .map(|one| {
            let path = one.file.path().to_owned();
            let kept = one.file.as_file().try_clone().expect("a handle");
            (path, kept, one)
        })
        .collect();
    let copies: Vec<_> = files
        .iter()
        .map(|(path, ..)| {
            let copy = tempfile::NamedTempFile::new().expect("a file");
            std::fs::copy(path, copy.path()).expect("a copy");
            copy
        })
        .collect();
    let paths: Vec<&Path> = copies.iter().map(|copy| copy.path()).collect();
    reads_all(&start(&paths).expect("assembles from files"));
}

#[test]
fn devices_with_blocks_of_512_bytes_keep_what_is_written() {
    keeps_what_is_written(512);
}

#[test]
fn devices_with_blocks_of_4096_bytes_keep_what_is_written() {
    keeps_what_is_written(4096);
}

#[test]
fn a_device_that_is_mounted_is_refused() {
    let Some(loops) = loops(1, 512) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let device = loops[0].device.display().to_string();
    let on = folder.path().display().to_string();
    if !run("mkfs.ext4", &["-q", "-F", &device]) || !run("mount", &[&device, &on]) {
        eprintln!("nothing was tested: {device} cannot be mounted");
        return;
    }
    let refused = loops[0].open();
    let looked = MemberFile::open(
        &loops[0].device,
        OpenOptions {
            buffered: true,
            access: Access::Look,
        },
    );
    assert!(run("umount", &[&on]));
    let said = refused.expect_err("is mounted").to_string();
    assert_eq!(said, format!("{device} is mounted on {on}"));
    looked.expect("looking is free");
    loops[0].open().expect("free again");
}

/// The kernel opens such a device for writing all the same: an array would start, and lose it with
/// the first superblock.
#[test]
fn a_device_that_is_set_read_only_is_refused_to_who_writes() {
    let Some(loops) = loops(1, 512) else {
        return;
    };
    let device = loops[0].device.display().to_string();
    assert!(run("blockdev", &["--setro", &device]));
    let refused = loops[0].open();
    let read = MemberFile::open(
        &loops[0].device,
        OpenOptions {
            buffered: false,
            access: Access::Read,
        },
    );
    assert!(run("blockdev", &["--setrw", &device]));
    let error = refused.expect_err("it takes no writes");
    let OpenError::Open { source, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(source.kind(), std::io::ErrorKind::ReadOnlyFilesystem);
    drop(read.expect("reading is free"));
    loops[0].open().expect("it takes writes again");
}

/// The file and the loop device on it are the same bytes.
#[test]
fn a_loop_device_on_a_file_that_is_a_member_is_refused() {
    let Some(loops) = loops(1, 512) else {
        return;
    };
    let device = &loops[0];
    drop(device.open().expect("nobody has the file"));
    let lock = device.file.as_file();
    lock.try_lock()
        .expect("as a server does whose member it is");
    let refused = device.open().expect_err("a member's");
    assert!(matches!(&refused, OpenError::InUse { .. }), "{refused}");
    assert!(refused.to_string().contains("is in use by"), "{refused}");
    lock.unlock().expect("locked");
    device.open().expect("free again");
}

#[test]
fn a_device_smaller_than_its_superblock_says_is_refused_a_larger_one_is_not() {
    let Some(loops) = loops(3, 512) else {
        return;
    };
    make(&loops);
    let paths: Vec<&Path> = loops.iter().map(|one| &*one.device).collect();
    loops[1].resize(2 * MEMBER_BYTES);
    drop(start(&paths).expect("larger is no harm"));
    loops[1].resize(MEMBER_BYTES / 2);
    let error = start(&paths).expect_err("a half is gone");
    // As with a member that is not there: the others could be started.
    let said = format!("{error:?}");
    assert!(
        said.contains(&loops[1].device.display().to_string()),
        "{said}"
    );
}
