//! Plans arrays of every level, layout, version and bitmap, writes what was
//! planned to sparse files and asks the installed mdadm what it sees:
//! `mdadm_agrees [FOLDER]`.
//!
//! Every line that `mdadm --examine`, `--examine --brief` and
//! `--examine-bitmap` print has to be the line that raidlab prints for the
//! metadata read back from the file, and those have to be the metadata planned.
//! Ends with 0 and the number of members compared, or with 1 and the first
//! difference. The folder (by default the system's temporary one) has to be on
//! a file system with sparse files and O_DIRECT.

use raidlab_geometry::{Layout, Level};
use raidlab_metadata::create::{
    BitmapChoice, CreatePlan, CreateSpec, InitialSync, LogReserve, MemberSize, plan,
};
use raidlab_metadata::detail::{DetailOptions, brief, examine, examine_bitmap, utc};
use raidlab_metadata::{DeviceFlags, ReadAt, Uuid, Version, read_member};
use raidlab_units::{Bytes, Sectors};
use std::error::Error;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, ExitCode};

/// A member's file.
struct Member(File);

impl ReadAt for Member {
    fn read_at(&mut self, offset: Bytes, bytes: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(bytes, offset.0)
    }
}

/// Runs mdadm and returns what it prints; an error if it complains.
fn mdadm(arguments: &[&str]) -> Result<String, Box<dyn Error>> {
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("mdadm")
        .args(arguments)
        .env("PATH", format!("{path}:/usr/sbin:/sbin"))
        .env("TZ", "UTC")
        .env("LC_ALL", "C")
        .output()?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() || !complaint.is_empty() {
        return Err(format!("mdadm {arguments:?}: {} {complaint}", output.status).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Returns an error that names the first line that differs.
fn compare(what: &str, ours: &str, theirs: &str) -> Result<(), Box<dyn Error>> {
    if ours == theirs {
        return Ok(());
    }
    let mut pairs = ours.lines().zip(theirs.lines());
    let differ = pairs.find(|(ours, theirs)| ours != theirs);
    Err(format!("{what}: raidlab and mdadm differ: {differ:?}\n{ours}\n---\n{theirs}").into())
}

/// Writes a plan to files and compares; returns the number of members.
fn check(
    what: &str,
    plan: &CreatePlan,
    sizes: &[Bytes],
    folder: &Path,
) -> Result<usize, Box<dyn Error>> {
    for member in &plan.members {
        let path = folder.join(format!("member{}", member.index));
        let device = path.to_str().ok_or("a path that is no text")?;
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path)?;
        let size = sizes[member.index];
        file.set_len(size.0)?;
        for write in &member.writes {
            file.write_all_at(&write.bytes, write.offset.0)?;
        }
        let found = read_member(&mut Member(file), size)?;
        if found.superblock != member.superblock || found.bitmap != plan.bitmap {
            return Err(format!("{what}: what was read is not what was planned").into());
        }
        let options = DetailOptions {
            device,
            size,
            host: "lab",
            time: utc,
        };
        let theirs = mdadm(&["--examine", "--homehost=lab", device])?;
        compare(what, &examine(&found, &options), &theirs)?;
        let theirs = mdadm(&["--examine", "--brief", device])?;
        compare(what, &brief(&[(device, &found)], false), &theirs)?;
        fs::remove_file(&path)?;
    }
    for bitmap in [&plan.bitmap, &plan.external_bitmap].into_iter().flatten() {
        let path = folder.join("bitmap");
        fs::write(&path, bitmap.encode())?;
        let device = path.to_str().ok_or("a path that is no text")?;
        let theirs = mdadm(&["--examine-bitmap", device])?;
        compare(what, &examine_bitmap(bitmap, device), &theirs)?;
        fs::remove_file(&path)?;
    }
    Ok(plan.members.len())
}

/// Levels, their layouts and slots.
const SHAPES: [(Level, &[&str], usize); 7] = [
    (Level::Linear, &[], 3),
    (Level::Raid0, &["original", "alternate"], 3),
    (Level::Raid1, &[], 3),
    (Level::Raid4, &[], 3),
    (
        Level::Raid5,
        &[
            "left-asymmetric",
            "right-asymmetric",
            "left-symmetric",
            "right-symmetric",
            "parity-first",
            "parity-last",
        ],
        4,
    ),
    (
        Level::Raid6,
        &[
            "left-symmetric",
            "right-asymmetric",
            "ddf-zero-restart",
            "ddf-N-restart",
            "ddf-N-continue",
            "left-symmetric-6",
            "parity-first-6",
        ],
        5,
    ),
    (Level::Raid10, &["n2", "f2", "o2", "n3"], 5),
];

/// One of the variants that each shape is planned in.
struct Variant {
    bitmap: BitmapChoice,
    initial: InitialSync,
    spares: usize,
    missing: usize,
    size: Bytes,
    uneven: bool,
}

/// Sizes from tiny to large, with and without bitmap, spares, missing members.
fn variants(level: Level) -> Vec<Variant> {
    let bare = matches!(level, Level::Linear | Level::Raid0);
    let mut variants = Vec::new();
    for size in [48 << 20, 1 << 30, 12 << 30, 250 << 30, 4 << 40] {
        for (bitmap, initial, spares, missing) in [
            (BitmapChoice::None, InitialSync::AssumeClean, 0, 0),
            (BitmapChoice::Internal(None), InitialSync::Resync, 1, 0),
            (
                BitmapChoice::External(None),
                InitialSync::SpareRebuild,
                1,
                0,
            ),
            (BitmapChoice::Automatic, InitialSync::Resync, 1, 1),
        ] {
            let (bitmap, spares, missing) = if bare {
                (BitmapChoice::None, 0, 0)
            } else {
                (bitmap, spares, missing)
            };
            variants.push(Variant {
                bitmap,
                initial,
                spares,
                missing,
                size: Bytes(size),
                uneven: spares == 0 && missing == 0,
            });
        }
    }
    variants
}

fn check_variant(
    shape: (Level, Option<Layout>, usize),
    version: Version,
    variant: &Variant,
    folder: &Path,
) -> Result<usize, Box<dyn Error>> {
    let (level, layout, raid_disks) = shape;
    let spec = CreateSpec {
        version,
        level,
        layout,
        chunk: None,
        raid_disks,
        array_uuid: Uuid([0x5a, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]),
        host: "lab".to_owned(),
        name: "plan".to_owned(),
        created: 1_700_000_000,
        size: None,
        data_offset: None,
        bitmap: variant.bitmap,
        initial: variant.initial,
        log: LogReserve::Automatic,
        bad_block_log: true,
    };
    let count = raid_disks + variant.spares;
    let sizes: Vec<Bytes> = (0..count as u64)
        .map(|index| Bytes(variant.size.0 + if variant.uneven { index << 20 } else { 0 }))
        .collect();
    let member = |index: usize| {
        let device_uuid = Uuid([u8::try_from(index).unwrap_or(0xff); 16]);
        (index >= variant.missing).then_some(MemberSize {
            size: sizes[index],
            device_uuid,
            flags: DeviceFlags(u8::from(level == Level::Raid1 && index > 1)),
            found: Vec::new(),
        })
    };
    let members: Vec<Option<MemberSize>> = (0..count).map(member).collect();
    let what = format!(
        "{level} {layout:?} {} {:?} {:?} {} bytes, {} spares, {} missing",
        version.name(),
        variant.bitmap,
        variant.initial,
        variant.size.0,
        variant.spares,
        variant.missing
    );
    let planned = plan(&spec, &members).map_err(|error| format!("{what}: {error:?}"))?;
    let data = Sectors(planned.array_size.0);
    if data == Sectors::ZERO {
        return Err(format!("{what}: an array of nothing").into());
    }
    check(&what, &planned, &sizes, folder)
}

fn run() -> Result<usize, Box<dyn Error>> {
    let folder = std::env::args().nth(1);
    let folder = folder.map_or_else(std::env::temp_dir, Into::into);
    let folder = folder.join(format!("mdadm_agrees.{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let mut compared = 0;
    for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
        for (level, layouts, raid_disks) in SHAPES {
            let named: Result<Vec<Option<Layout>>, _> = layouts
                .iter()
                .map(|name| Layout::parse(level, name).map(Some))
                .collect();
            for layout in std::iter::once(None).chain(named?) {
                for variant in variants(level) {
                    let shape = (level, layout, raid_disks);
                    compared += check_variant(shape, version, &variant, &folder)?;
                }
            }
        }
    }
    fs::remove_dir(&folder)?;
    Ok(compared)
}

fn main() -> ExitCode {
    match run() {
        Ok(compared) => {
            println!("mdadm_agrees: {compared} members, mdadm prints what raidlab prints");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("mdadm_agrees: {error}");
            ExitCode::FAILURE
        }
    }
}
