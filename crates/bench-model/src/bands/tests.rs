use super::{BANDS, Order, Unfitted, counted_ns};
use crate::presets;
use raidlab_disk::{Band, Load, Medium};
use raidlab_lab::Work;
use raidlab_store::{Measurement, MemberUse, Operation};

fn unfitted(names: &[&str]) -> Unfitted {
    let presets: Vec<_> = names
        .iter()
        .map(|name| presets::load(name).unwrap())
        .collect();
    let set = presets[0].set_names()[0].to_owned();
    Unfitted::new(&presets, &set)
}

fn work(options: &str) -> Work {
    let options: Vec<&str> = options.split_whitespace().collect();
    let permission = raidlab_workload::Permission::default();
    let jobs = raidlab_workload::FioJobs::from_command_line("fio", &options, &permission).unwrap();
    let group = jobs.model().unwrap().groups.remove(0);
    Work::Fio {
        jobs,
        group: Ok(group),
    }
}

/// A second of so many reads and writes on each of two members, with so many reads in
/// flight.
fn row(op: Operation, reads: u64, writes: u64, in_flight: u64) -> Measurement {
    let member = MemberUse {
        read_ios: reads,
        write_ios: writes,
        read_ticks_ns: in_flight * 1_000_000_000,
        ..MemberUse::default()
    };
    Measurement {
        op,
        runtime_ns: 1_000_000_000,
        members: vec![member.clone(), member],
        ..Measurement::blank("model")
    }
}

fn load(work: &Work, row: &Measurement) -> Option<Load> {
    Order::of(work, row).load(&row.members[0], counted_ns(work, row))
}

#[test]
fn the_shipped_bands_can_be_read() {
    for medium in [Medium::Platters, Medium::Flash] {
        for &load in Load::ALL {
            assert_ne!(BANDS.of(medium, load), Band::NONE, "{medium:?} {load:?}");
        }
    }
}

#[test]
fn fitted_disks_have_no_band_and_one_other_disk_gives_the_array_its_own() {
    let work = work("--rw=randread --bs=4k --size=1g");
    let row = row(Operation::Read, 100, 0, 1);
    assert_eq!(
        unfitted(&["wd4000fyyz", "wd4000fyyz"]).band(&work, &row),
        None
    );
    let alone = BANDS.of(Medium::Platters, Load::RandomRead);
    let found = unfitted(&["st6000vn001", "st6000vn001"])
        .band(&work, &row)
        .unwrap();
    assert_eq!(
        (found.low, found.high, found.ratio),
        (alone.low, alone.high, alone.ratio)
    );
    let flash = BANDS.of(Medium::Flash, Load::RandomRead);
    let both = unfitted(&["st6000vn001", "ssd950pro"])
        .band(&work, &row)
        .unwrap();
    assert_eq!(both.low, alone.low.min(flash.low));
    assert_eq!(both.high, alone.high.max(flash.high));
    // A disk that had nothing to do adds no doubt.
    let mut row = row;
    row.members[1] = MemberUse::default();
    let one = unfitted(&["st6000vn001", "ssd950pro"])
        .band(&work, &row)
        .unwrap();
    assert_eq!((one.low, one.high), (alone.low, alone.high));
}

/// An array with superblocks writes them while it discards; RAID 0 and a disk write nothing.
#[test]
fn discards_have_no_band_whatever_is_written_beside_them() {
    let work = work("--rw=randtrim --bs=64k --size=1g");
    let disks = unfitted(&["pm9a3", "pm9a3"]);
    for writes in [0, 1, 100] {
        let row = row(Operation::Trim, 0, writes, 0);
        assert_eq!(disks.band(&work, &row), None, "{writes}");
    }
}

#[test]
fn what_the_members_did_decides() {
    let random = work("--rw=randwrite --bs=4k --size=1g");
    let of = |work: &Work, reads, writes, in_flight| {
        load(work, &row(Operation::Write, reads, writes, in_flight)).unwrap()
    };
    assert_eq!(of(&random, 0, 100, 0), Load::RandomWrite);
    assert_eq!(of(&random, 100, 100, 1), Load::Mixed, "as parity does");
    assert_eq!(of(&random, 100, 0, 1), Load::RandomRead);
    assert_eq!(of(&random, 100, 0, 8), Load::QueuedRandomRead);
    // Two in flight: six seconds of them, of which ramp time has two thirds.
    let ramped = work("--rw=randread --bs=4k --size=1g --ramp_time=2");
    assert_eq!(of(&ramped, 100, 0, 6), Load::RandomRead);
    let stream = work("--rw=write --bs=1m --size=1g");
    assert_eq!(of(&stream, 1, 100, 0), Load::Stream);
    let streams = work("--rw=read --bs=1m --size=1g --numjobs=3");
    assert_eq!(of(&streams, 100, 0, 3), Load::Streams);
    let mut beside_a_sync = row(Operation::Write, 0, 100, 0);
    beside_a_sync.sync_percent_start = Some(3.0);
    assert_eq!(load(&stream, &beside_a_sync), Some(Load::Streams));
}

#[test]
fn other_tools_are_told_by_their_operations() {
    let work = Work::Tool {
        name: "bonnie++".to_owned(),
        arguments: Vec::new(),
    };
    let of = |op| load(&work, &row(op, 100, 0, 1)).unwrap();
    assert_eq!(of(Operation::Read), Load::Stream);
    assert_eq!(of(Operation::Seek), Load::RandomRead);
    assert_eq!(of(Operation::Rewrite), Load::Streams);
    assert_eq!(of(Operation::CreateRandom), Load::Mixed);
}

/// No disk is so fast that a job goes beyond its own limit.
#[test]
fn a_band_ends_where_the_job_s_own_limit_is() {
    let disks = unfitted(&["ssd950pro"]);
    let high = |options: &str, iops: f64| {
        let row = Measurement {
            iops,
            bytes_per_second: iops * 4096.0,
            ..row(Operation::Read, 100, 0, 1)
        };
        let band = disks.band(&work(options), &row).expect("no fit");
        assert!(band.low < 1.0);
        iops * band.high
    };
    let random = "--rw=randread --bs=4k --size=1g";
    let free = high(random, 40.0);
    assert!(free > 60.0, "{free}");
    let rated = format!("{random} --rate_iops=25 --numjobs=2");
    let thinking = format!("{random} --thinktime=40ms --thinktime_blocks=2");
    for limited in [rated, thinking] {
        assert!((high(&limited, 40.0) - 50.0).abs() < 1e-6, "{limited}");
        // What is as fast as its limit, or a request faster, stays as it is.
        assert_eq!(high(&limited, 51.0), 51.0, "{limited}");
    }
}
