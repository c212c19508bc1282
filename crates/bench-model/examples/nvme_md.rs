//! Published figures of md on NVMe drives beside the model's, with a processor.
//!
//!     cargo run --release -p raidlab-bench-model --example nvme_md
//!
//! Where a machine is described as one socket, the processor is `server-2021` with half its cores
//! and one socket. Drives without a name are those of a preset that reaches the figures of the raw
//! drives; where the drives' limit is known, the preset has that limit. The last column says which
//! figure was used to fit a charge.

mod figures;

use figures::{experiment, print_errors, rows, write};
use raidlab_bench_model::presets;
use raidlab_store::Measurement;
use std::error::Error;
use tempfile::TempDir;

/// A published figure, and the run of the model that is compared with it.
struct Case {
    /// The thing that was measured, for people.
    what: &'static str,
    /// A preset, changes of its text, and the number of its disks.
    disk: (&'static str, &'static [(&'static str, &'static str)], usize),
    /// One more drive, of another preset.
    beside: Option<&'static str>,
    sockets: u32,
    /// The subject as a suite names it.
    subject: &'static str,
    host: &'static str,
    fio: &'static str,
    unit: Unit,
    published: f64,
    role: &'static str,
}

#[derive(Clone, Copy, PartialEq)]
enum Unit {
    /// Thousands of requests a second.
    Thousand,
    /// Millions of bytes a second.
    Megabytes,
    /// Microseconds for a request and member, from two rates.
    PerMember(u32, u32),
}

const READ_64: &str = "--rw=randread --iodepth=64 --numjobs=64";
const ONE_WRITER: &str = "--rw=randwrite --iodepth=64 --numjobs=1";
/// The options of a job over the whole array, for so long that bits are set and cleared again.
const WHOLE: &str = "--rw=randwrite --bs=4k --norandommap --ioengine=psync --runtime=20";
/// The ramp in which the bits of a bitmap are set, or all stripes of a cache are in use once.
const RAMP: &str = " --ramp_time=500ms";
const STREAM: &str = "--rw=write --bs=1m --iodepth=32 --numjobs=1 --size=50g";

/// Drives that can do 1.3 million reads a second, as those of the raw figure.
const QUICK: (&str, &[(&str, &str)], usize) = ("cm7r", &[], 11);
/// Drives of 3.84 TB, which write up to 3500 MB/s (heise.de/-4720224, Samsung's announcement of May
/// 2020); the preset, of 960 GB, writes 1500.
const THREE: (&str, &[(&str, &str)], usize) = (
    "pm9a3",
    &[(PROGRAM, "flash_program_us = { value = 877.9")],
    3,
);
const PROGRAM: &str = "flash_program_us = { value = 2048.4";
const LIMIT: &str = "flash_commands_per_second = { value = 700000";
const QUARTER: (&str, &[(&str, &str)], usize) = (
    "p5520",
    &[(LIMIT, "flash_commands_per_second = { value = 250000")],
    8,
);
const FOUR: (&str, &[(&str, &str)], usize) = ("p5520", &[], 4);
const FITTED: &str = "fitted";
const PREDICTED: &str = "predicted";

macro_rules! case {
    ($what:expr, $disk:expr, $sockets:expr, $subject:expr, $host:expr, $fio:expr, $unit:expr, $published:expr, $role:expr) => {
        Case {
            what: $what,
            disk: $disk,
            beside: None,
            sockets: $sockets,
            subject: $subject,
            host: $host,
            fio: $fio,
            unit: $unit,
            published: $published,
            role: $role,
        }
    };
}

const CASES: &[Case] = &[
    case!(
        "RAID 5 of 10+1, 64 jobs, read 4 KiB, device_lock in reads",
        QUICK,
        1,
        r#""md-raid5-clean""#,
        "linux-5.10",
        READ_64,
        Unit::Thousand,
        1260.0,
        FITTED
    ),
    case!(
        "the same without it (5.14)",
        QUICK,
        1,
        r#""md-raid5-clean""#,
        "linux-6.9",
        READ_64,
        Unit::Thousand,
        5330.0,
        PREDICTED
    ),
    case!(
        "RAID 6 of 6+2, 64 jobs, read 4 KiB, device_lock in reads",
        QUARTER,
        1,
        r#""md-raid6-clean""#,
        "linux-5.10",
        READ_64,
        Unit::Thousand,
        1600.0,
        PREDICTED
    ),
    case!(
        "the same without it: the drives' limit",
        QUARTER,
        1,
        r#""md-raid6-clean""#,
        "linux-6.9",
        READ_64,
        Unit::Thousand,
        2000.0,
        PREDICTED
    ),
    case!(
        "RAID 10 of 4, 16 jobs QD256, read 4 KiB, resync_lock, both sockets",
        FOUR,
        2,
        r#""md-raid10-clean""#,
        "linux-5.10",
        "--rw=randread --iodepth=256 --numjobs=16",
        Unit::Thousand,
        839.0,
        PREDICTED
    ),
    case!(
        "the same, one socket",
        FOUR,
        1,
        r#""md-raid10-clean""#,
        "linux-5.10",
        "--rw=randread --iodepth=256 --numjobs=16",
        Unit::Thousand,
        1809.0,
        PREDICTED
    ),
    case!(
        "the same, seqlock, both sockets",
        FOUR,
        2,
        r#""md-raid10-clean""#,
        "linux-6.9",
        "--rw=randread --iodepth=256 --numjobs=16",
        Unit::Thousand,
        2071.0,
        PREDICTED
    ),
    case!(
        "the same, seqlock, one socket",
        FOUR,
        1,
        r#""md-raid10-clean""#,
        "linux-6.9",
        "--rw=randread --iodepth=256 --numjobs=16",
        Unit::Thousand,
        2097.0,
        PREDICTED
    ),
    case!(
        "RAID 5 of 2+1, one job, write 4 KiB, 256 stripes",
        THREE,
        2,
        r#"{ subject = "md-raid5-clean" }"#,
        "linux-6.9",
        ONE_WRITER,
        Unit::Thousand,
        64.7,
        FITTED
    ),
    case!(
        "the same, group_thread_cnt 8, 32768 stripes",
        THREE,
        2,
        r#"{ subject = "md-raid5-clean", build = { group_thread_count = 8, stripe_cache_size = 32768 } }"#,
        "linux-6.9",
        ONE_WRITER,
        Unit::Thousand,
        80.8,
        PREDICTED
    ),
    case!(
        "the same, group_thread_cnt 2, on one socket",
        THREE,
        1,
        r#"{ subject = "md-raid5-clean", build = { group_thread_count = 2, stripe_cache_size = 32768 } }"#,
        "linux-6.9",
        ONE_WRITER,
        Unit::Thousand,
        109.0,
        PREDICTED
    ),
    case!(
        "RAID 10 of 3, one job, write 4 KiB",
        THREE,
        2,
        r#""md-raid10-clean""#,
        "linux-6.9",
        ONE_WRITER,
        Unit::Thousand,
        96.6,
        PREDICTED
    ),
    case!(
        "RAID 5 of 2+1, one stream, 256 stripes",
        THREE,
        2,
        r#"{ subject = "md-raid5-clean" }"#,
        "linux-6.9",
        STREAM,
        Unit::Megabytes,
        1380.0,
        PREDICTED
    ),
    case!(
        "the same, group_thread_cnt 8, 32768 stripes",
        THREE,
        2,
        r#"{ subject = "md-raid5-clean", build = { group_thread_count = 8, stripe_cache_size = 32768 } }"#,
        "linux-6.9",
        STREAM,
        Unit::Megabytes,
        1770.0,
        PREDICTED
    ),
    case!(
        "RAID 10 of 4 P5520 with bitmap, write 4 KiB, psync",
        FOUR,
        2,
        r#""md-raid10-clean-bitmap""#,
        "linux-6.9",
        WHOLE,
        Unit::Thousand,
        15.7,
        PREDICTED
    ),
    case!(
        "RAID 0, write and flush: us for each member",
        ("pm9a3", &[], 64),
        2,
        r#"{ subject = "md-raid0", members = MEMBERS }"#,
        "linux-6.9",
        "--rw=randwrite --iodepth=1 --numjobs=1 --fsync=1",
        Unit::PerMember(16, 64),
        0.34,
        "seen when clone_ns was chosen"
    ),
];

/// Cases of the same array and load with each scheduler. The number of jobs is not said.
const SCHEDULERS: [Case; 3] = [
    scheduled(
        "RAID 10 of 3 PM9A3 and an SN850X, one job, write 4 KiB, none",
        r#"{ subject = "md-raid10-clean", scheduler = "none" }"#,
        91.8,
    ),
    scheduled(
        "the same, kyber",
        r#"{ subject = "md-raid10-clean", scheduler = "kyber" }"#,
        63.9,
    ),
    scheduled(
        "the same, mq-deadline",
        r#"{ subject = "md-raid10-clean", scheduler = "mq-deadline" }"#,
        63.3,
    ),
];

const fn scheduled(what: &'static str, subject: &'static str, published: f64) -> Case {
    Case {
        beside: Some("sn850x"),
        ..case!(
            what,
            THREE,
            2,
            subject,
            "linux-6.9",
            ONE_WRITER,
            Unit::Thousand,
            published,
            PREDICTED
        )
    }
}

fn processor(folder: &TempDir, sockets: u32) -> Result<String, Box<dyn Error>> {
    let mut text = presets::processor_text("server-2021")?;
    if sockets == 1 {
        text = text.replace("cores = { value = 128", "cores = { value = 64");
        text = text.replace("sockets = { value = 2", "sockets = { value = 1");
    }
    write(folder, "processor.toml", &text)
}

/// Measures the row of a case, with `members` for a subject that leaves their number open.
fn row(case: &Case, members: u32) -> Result<Measurement, Box<dyn Error>> {
    let (name, changes, count) = case.disk;
    let mut preset = presets::text(name)?;
    for (old, new) in changes {
        assert!(preset.contains(old), "{name} has no {old}");
        preset = preset.replace(old, new);
    }
    let folder = tempfile::tempdir()?;
    let disk = write(&folder, "disk.toml", &preset)?;
    let mut disks = vec![format!("\"{disk}\""); count];
    disks.extend(case.beside.map(|name| format!("\"{name}\"")));
    let disks = disks.join(", ");
    let subject = case.subject.replace("MEMBERS", &members.to_string());
    let size = if case.fio.contains("--bs") {
        ""
    } else {
        "--bs=4k --filesize=100g --norandommap"
    };
    let last = |option: &str, usual: &str| match case.fio.contains(option) {
        true => String::new(),
        false => usual.to_owned(),
    };
    let mut usual = last("--ioengine", "--ioengine=libaio") + &last("--runtime", " --runtime=30ms");
    if case.subject.contains("stripe_cache_size") {
        // The ramp lasts until each of its stripes has been in use, which makes lookups longer.
        usual += &last(RAMP, RAMP);
    }
    let text = format!(
        "schema = 1\nname = \"nvme-md\"\ntitle = \"nvme-md\"\ndescription = \"one figure\"\n\
         source = \"this example\"\ndisks = [{disks}]\nprocessor = \"{}\"\nsubjects = [{subject}]\n\
         [[step]]\njob = \"a\"\ntitle = \"a\"\nclass = \"a\"\nfio = \"{} {size} {usual} \
         --direct=1 --time_based --group_reporting --randseed=7\"\n",
        processor(&folder, case.sockets)?,
        case.fio,
    );
    let rows = rows::of(&experiment(&folder, &text, Some(case.host))?)?;
    rows.into_iter().next().ok_or_else(|| "no row".into())
}

fn figure(case: &Case) -> Result<f64, Box<dyn Error>> {
    Ok(match case.unit {
        Unit::Thousand => row(case, 0)?.iops / 1e3,
        Unit::Megabytes => row(case, 0)?.bytes_per_second / 1e6,
        Unit::PerMember(few, many) => {
            let each = |members| row(case, members).map(|row| 1e6 / row.iops);
            (each(many)? - each(few)?) / f64::from(many - few)
        }
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("| figure | Linux | unit | published | model | ratio | |");
    println!("|---|---|---|---|---|---|---|");
    let mut ratios = Vec::new();
    for case in CASES.iter().chain(&SCHEDULERS) {
        let model = figure(case)?;
        let ratio = model / case.published;
        let (unit, digits) = match case.unit {
            Unit::Thousand => ("thousand/s", 1),
            Unit::Megabytes => ("MB/s", 0),
            Unit::PerMember(..) => ("us", 2),
        };
        if case.role == PREDICTED {
            ratios.push(ratio.max(1.0 / ratio));
        }
        println!(
            "| {} | {} | {unit} | {:.digits$} | {model:.digits$} | {ratio:.2} | {} |",
            case.what,
            case.host.trim_start_matches("linux-"),
            case.published,
            case.role
        );
    }
    print_errors("predicted figures", ratios);
    bitmaps()?;
    workers()
}

/// Prints the writes to RAID 5 without and with a bitmap whose bits are set.
fn bitmaps() -> Result<(), Box<dyn Error>> {
    println!("\n| figure | published | without a bitmap | with one |\n|---|---|---|---|");
    let writes = |case: &&Case| case.fio != READ_64 && case.subject.contains("md-raid5-clean");
    for case in CASES.iter().filter(writes) {
        let fio = (case.fio.to_owned() + RAMP).leak();
        let bitmap = "md-raid5-clean-bitmap";
        let subject = case.subject.replace("md-raid5-clean", bitmap).leak();
        let without = figure(&Case { fio, ..*case })?;
        let with = figure(&Case {
            fio,
            subject,
            ..*case
        })?;
        let (what, published) = (case.what, case.published);
        println!("| {what} | {published:.1} | {without:.1} | {with:.1} |");
    }
    Ok(())
}

/// Prints writes against workers, which are not published with these drives, to show where
/// the best is.
fn workers() -> Result<(), Box<dyn Error>> {
    println!(
        "\n| group_thread_cnt, on each of two sockets | thousand writes/s, 1 job | 8 jobs |\n|---|---|---|"
    );
    for (workers, subject) in [
        (
            0,
            r#"{ subject = "md-raid5-clean", build = { group_thread_count = 0, stripe_cache_size = 32768 } }"#,
        ),
        (
            1,
            r#"{ subject = "md-raid5-clean", build = { group_thread_count = 1, stripe_cache_size = 32768 } }"#,
        ),
        (
            2,
            r#"{ subject = "md-raid5-clean", build = { group_thread_count = 2, stripe_cache_size = 32768 } }"#,
        ),
        (
            4,
            r#"{ subject = "md-raid5-clean", build = { group_thread_count = 4, stripe_cache_size = 32768 } }"#,
        ),
        (
            8,
            r#"{ subject = "md-raid5-clean", build = { group_thread_count = 8, stripe_cache_size = 32768 } }"#,
        ),
        (
            16,
            r#"{ subject = "md-raid5-clean", build = { group_thread_count = 16, stripe_cache_size = 32768 } }"#,
        ),
    ] {
        let rate = |fio| {
            let case = case!(
                "",
                THREE,
                2,
                subject,
                "linux-6.9",
                fio,
                Unit::Thousand,
                1.0,
                PREDICTED
            );
            figure(&case)
        };
        let one = rate(ONE_WRITER)?;
        let eight = rate("--rw=randwrite --iodepth=64 --numjobs=8")?;
        println!("| {workers} | {one:.1} | {eight:.1} |");
    }
    Ok(())
}
