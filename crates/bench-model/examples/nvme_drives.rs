//! Published figures of drives that have a preset, and of a mirror of two, beside the model's.
//!
//!     cargo run --release -p raidlab-bench-model --example nvme_drives
//!
//! They were found after the presets and the processor had been made, so nothing was fitted to any.
//! The processors of these machines are not known in the model's terms; `desktop-2015` stands for
//! each of them.

mod figures;

use figures::{experiment, print_errors, rows};
use raidlab_store::Operation;
use std::error::Error;

/// A published figure, and the run of the model that is compared with it.
struct Case {
    /// The thing that was measured, for people.
    what: &'static str,
    /// The disks, and the subject, as a suite names them.
    disks: &'static str,
    subject: &'static str,
    fio: &'static str,
    operation: Operation,
    unit: Unit,
    published: f64,
}

#[derive(Clone, Copy)]
enum Unit {
    /// Requests a second.
    PerSecond,
    /// Millions of bytes a second.
    Megabytes,
    /// The mean latency, microseconds.
    Latency,
}

const MIRROR: &str = r#"{ disk = "pm9a3" }, { disk = "pm9a3" }"#;
const BITMAP: &str = r#""md-raid1-clean-bitmap""#;
const DISK: &str = r#""disk""#;
const MIX_4K: &str = "--rw=randrw --rwmixread=75 --bs=4k --iodepth=32 --numjobs=4 --ioengine=libaio --filesize=10g --norandommap --runtime=300ms --time_based";
const MIX_16K: &str = "--rw=randrw --rwmixread=75 --bs=16k --iodepth=32 --numjobs=4 --ioengine=libaio --filesize=10g --norandommap --runtime=300ms --time_based";
const SYNC_1: &str =
    "--rw=write --bs=4k --fdatasync=1 --ioengine=pvsync --numjobs=1 --runtime=300ms --time_based";
const SYNC_2: &str =
    "--rw=write --bs=4k --fdatasync=1 --ioengine=pvsync --numjobs=2 --runtime=300ms --time_based";
const SYNC_16: &str =
    "--rw=write --bs=4k --fdatasync=1 --ioengine=pvsync --numjobs=16 --runtime=300ms --time_based";

const fn case(
    what: &'static str,
    disks: &'static str,
    subject: &'static str,
    fio: &'static str,
    operation: Operation,
    published: f64,
) -> Case {
    Case {
        what,
        disks,
        subject,
        fio,
        operation,
        unit: Unit::PerSecond,
        published,
    }
}

const CASES: [Case; 11] = [
    case(
        "md RAID 1 of 2 PM9A3, 75 % reads of 4 KiB, 4 jobs QD32: reads",
        MIRROR,
        BITMAP,
        MIX_4K,
        Operation::Read,
        407_000.0,
    ),
    case(
        "the same: writes",
        MIRROR,
        BITMAP,
        MIX_4K,
        Operation::Write,
        136_000.0,
    ),
    case(
        "the same with 16 KiB: reads",
        MIRROR,
        BITMAP,
        MIX_16K,
        Operation::Read,
        141_000.0,
    ),
    case(
        "the same: writes",
        MIRROR,
        BITMAP,
        MIX_16K,
        Operation::Write,
        46_800.0,
    ),
    Case {
        unit: Unit::Megabytes,
        ..case(
            "PM9A3, erased, one write of 1 MiB at a time",
            r#"{ disk = "pm9a3", state = "fresh" }"#,
            DISK,
            "--rw=write --bs=1m --size=10g --ioengine=psync",
            Operation::Write,
            1511.0,
        )
    },
    Case {
        unit: Unit::Latency,
        ..case(
            "P5520, 3584 bytes of one page again and again",
            r#"{ disk = "p5520" }"#,
            DISK,
            "--rw=write --bs=3584 --offset=12k --size=3584 --filesize=1m --ioengine=psync --runtime=100ms --time_based",
            Operation::Write,
            1265.0,
        )
    },
    case(
        "md RAID 10 of 4 P5520, such a write to its bitmap before most writes of 4 KiB",
        r#"{ disk = "p5520" }, { disk = "p5520" }, { disk = "p5520" }, { disk = "p5520" }"#,
        r#"{ subject = "md-raid10-clean-bitmap", build = { bitmap_chunk = "64m" } }"#,
        "--rw=randwrite --bs=4k --norandommap --ioengine=psync --runtime=20 --time_based",
        Operation::Write,
        1676.0,
    ),
    case(
        "970 PRO, write of 4 KiB and fdatasync, 1 job",
        r#"{ disk = "970pro" }"#,
        DISK,
        SYNC_1,
        Operation::Write,
        456.0,
    ),
    case(
        "the same, 2 jobs",
        r#"{ disk = "970pro" }"#,
        DISK,
        SYNC_2,
        Operation::Write,
        840.0,
    ),
    case(
        "PM883, write of 4 KiB and fdatasync, 1 job",
        r#"{ disk = "pm883" }"#,
        DISK,
        SYNC_1,
        Operation::Write,
        5094.0,
    ),
    case(
        "the same, 16 jobs",
        r#"{ disk = "pm883" }"#,
        DISK,
        SYNC_16,
        Operation::Write,
        27_521.0,
    ),
];

fn figure(case: &Case) -> Result<f64, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let text = format!(
        "schema = 1\nname = \"drives\"\ntitle = \"drives\"\ndescription = \"one figure\"\n\
         source = \"this example\"\ndisks = [{}]\nprocessor = \"desktop-2015\"\n\
         subjects = [{}]\n[[step]]\njob = \"a\"\ntitle = \"a\"\nclass = \"a\"\n\
         queue = \"fio\"\nfio = \"{} --direct=1 --group_reporting --randseed=7\"\n",
        case.disks, case.subject, case.fio,
    );
    let rows = rows::of(&experiment(&folder, &text, Some("linux-5.10"))?)?;
    let mut rows = rows.iter().filter(|row| row.op == case.operation);
    let row = rows.next().ok_or("no row")?;
    Ok(match case.unit {
        Unit::PerSecond => row.iops,
        Unit::Megabytes => row.bytes_per_second / 1e6,
        Unit::Latency => row.latency.mean_ns / 1e3,
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("| figure | unit | published | model | ratio |");
    println!("|---|---|---|---|---|");
    let mut ratios = Vec::new();
    for case in &CASES {
        let model = figure(case)?;
        let ratio = model / case.published;
        let unit = match case.unit {
            Unit::PerSecond => "1/s",
            Unit::Megabytes => "MB/s",
            Unit::Latency => "us",
        };
        ratios.push(ratio.max(1.0 / ratio));
        let Case {
            what, published, ..
        } = case;
        println!("| {what} | {unit} | {published:.0} | {model:.0} | {ratio:.2} |");
    }
    print_errors("figures", ratios);
    Ok(())
}
