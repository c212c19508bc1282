//! Published figures of ZFS on NVMe drives beside the model's, with a processor.
//!
//!     cargo run --release -p raidlab-bench-model --example nvme_zfs
//!
//! The model has mirrors and single disks with a volume, so each case is the nearest of these: its
//! first column says what the original had instead. A file in records is taken for a volume in
//! blocks of that size, and `libaio` on a file for a queue depth of 1, as ZFS does such a request
//! before it takes the next one. Nothing here was fitted.

mod figures;

use figures::{experiment, print_errors, rows, write};
use raidlab_bench_model::presets;
use raidlab_lab::{ZfsChecksum, ZfsCompression};
use raidlab_units::Bytes;
use std::error::Error;

/// A published figure, and the run of the model that is compared with it.
struct Case {
    /// The thing that was measured, for people.
    what: &'static str,
    /// A preset, and the number of its disks.
    disk: (&'static str, usize),
    processor: &'static [(&'static str, &'static str)],
    block: u64,
    compression: (ZfsCompression, f64),
    /// The options of the job that counts.
    fio: &'static str,
    is_rate: bool,
    published: f64,
}

/// The processor of a server of one socket.
const SERVER: &[(&str, &str)] = &[
    ("cores = { value = 128", "cores = { value = 32"),
    ("sockets = { value = 2", "sockets = { value = 1"),
];
/// The eight processors of a guest.
const GUEST: &[(&str, &str)] = &[
    ("cores = { value = 128", "cores = { value = 8"),
    ("sockets = { value = 2", "sockets = { value = 1"),
];
/// The processor Core i7-8700K: Zstandard of level 1 has 480 MB/s there, and 345 on a Core i5
/// of 3.2 GHz.
const DESKTOP: &[(&str, &str)] = &[
    ("cores = { value = 128", "cores = { value = 6"),
    (
        "cores_per_cache = { value = 4",
        "cores_per_cache = { value = 6",
    ),
    ("sockets = { value = 2", "sockets = { value = 1"),
    ("speed = { value = 1,", "speed = { value = 1.26,"),
];
const NOTHING: (ZfsCompression, f64) = (ZfsCompression::Off, 1.0);
const READ: &str = "--rw=randread --time_based --runtime=100ms --norandommap --iodepth=1";

const fn zstd(level: u8, published: f64) -> Case {
    Case {
        what: "write of text, one stream to a ramdisk, 1 MiB records, 2.0.6 (12978); zstd level ",
        disk: ("cm7r", 1),
        processor: DESKTOP,
        block: 128 << 10,
        compression: (ZfsCompression::Zstd(level), 3.0),
        fio: "--rw=write --bs=1m --iodepth=1",
        is_rate: true,
        published,
    }
}

const fn read(
    what: &'static str,
    disk: (&'static str, usize),
    block: u64,
    fio: &'static str,
    published: f64,
) -> Case {
    Case {
        what,
        disk,
        processor: SERVER,
        block,
        compression: NOTHING,
        fio,
        is_rate: false,
        published,
    }
}

fn cases() -> [Case; 9] {
    let guest = Case {
        processor: GUEST,
        ..read(
            "read 128 KiB, 1 job; one drive, in a guest by virtio (18684)",
            ("pm9a3", 1),
            128 << 10,
            "--bs=128k --numjobs=1",
            4015.0,
        )
    };
    [
        read(
            "read 4 KiB, many jobs, direct; one drive of PCIe 5 (16591)",
            ("cm7r", 1),
            4 << 10,
            "--bs=4k --numjobs=32",
            136e3,
        ),
        read(
            "read 4 KiB of 128, 4 jobs; 8 drives in mirrors, 2.2.7 (16993)",
            ("7450pro", 2),
            128 << 10,
            "--bs=4k --numjobs=4",
            27.6e3,
        ),
        read(
            "read 4 KiB of 128, 4 jobs; 2 consumer drives in a stripe",
            ("980pro", 2),
            128 << 10,
            "--bs=4k --numjobs=4",
            21.5e3,
        ),
        guest,
        read(
            "read 16 KiB of 16, 1 job, direct; 6 drives in raidz2 (18660)",
            ("cm7r", 2),
            16 << 10,
            "--bs=16k --numjobs=1",
            11.3e3,
        ),
        read(
            "the same, 8 jobs; its size of requests is not said (19076)",
            ("cm7r", 2),
            16 << 10,
            "--bs=16k --numjobs=8",
            85e3,
        ),
        zstd(3, 678.0),
        zstd(6, 218.0),
        zstd(9, 119.0),
    ]
}

/// Measures the model's figure of a volume of 2 GiB that is filled first, with an eighth of
/// that as cache.
fn figure(case: &Case) -> Result<f64, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let mut processor = presets::processor_text("server-2021")?;
    for (old, new) in case.processor {
        assert!(processor.contains(old), "no {old}");
        processor = processor.replace(old, new);
    }
    let (disk, count) = case.disk;
    let disks = vec![format!("\"{disk}\""); count].join(", ");
    let job = |name: &str, fio: &str| {
        format!(
            "[[step]]\njob = \"{name}\"\ntitle = \"{name}\"\nclass = \"a\"\nfio = \"{fio} \
             --size=2g --ioengine=libaio --direct=1 --group_reporting --randseed=7\"\n"
        )
    };
    let text = format!(
        "schema = 1\nname = \"nvme-zfs\"\ntitle = \"nvme-zfs\"\ndescription = \"one figure\"\n\
         source = \"this example\"\ndisks = [{disks}]\nprocessor = \"{}\"\n\
         subjects = [\"openzfs-2.3\"]\n{}{}",
        write(&folder, "processor.toml", &processor)?,
        job("fill", "--rw=write --bs=1m --iodepth=8"),
        job(
            "counts",
            &format!("{} {}", if case.is_rate { "" } else { READ }, case.fio)
        ),
    );
    let mut experiment = experiment(&folder, &text, None)?;
    let host = experiment.subject.host.as_mut().ok_or("no host")?;
    host.memory = Bytes(1 << 29);
    let zfs = experiment.subject.zfs.as_mut().ok_or("no pool")?;
    zfs.volume_size = Bytes(2 << 30);
    zfs.cache = Bytes(1 << 28);
    zfs.volume_block = Bytes(case.block);
    zfs.checksum = ZfsChecksum::Fletcher4;
    (zfs.compression, zfs.compression_ratio) = case.compression;
    let rows = rows::of(&experiment)?;
    let row = rows.into_iter().find(|row| row.job == "counts");
    let row = row.ok_or("no row")?;
    Ok(match case.is_rate {
        true => row.bytes_per_second / 1e6,
        false => row.iops,
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("| figure | unit | published | model | ratio |");
    println!("|---|---|---|---|---|");
    let mut ratios = Vec::new();
    for case in cases() {
        let model = figure(&case)?;
        let ratio = model / case.published;
        ratios.push(ratio.max(1.0 / ratio));
        let unit = if case.is_rate { "MB/s" } else { "reads/s" };
        let level = match case.compression.0 {
            ZfsCompression::Zstd(level) => level.to_string(),
            _ => String::new(),
        };
        println!(
            "| {}{level} | {unit} | {:.0} | {model:.0} | {ratio:.2} |",
            case.what, case.published
        );
    }
    print_errors("figures", ratios);
    Ok(())
}
