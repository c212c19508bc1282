//! Real counters of a machine before and after known work, and what they
//! could not show: wraps, and devices that go and come.

use super::linux::{arc_size, diskstats, meminfo, stat};
use super::{Activity, Counters, DeviceCounters, Foreign, Snapshot, freebsd, memory_state};
use crate::testing::Machine;
use crate::{Inventory, System};
use proptest::prelude::*;
use raidlab_shell::{Frame, Watched};
use std::time::Duration;

/// Linux 6.18: 64 MiB written and 16 MiB read on loop0 with direct I/O
/// (dd bs=1M, then bs=64k), in 1 s.
fn real() -> Activity {
    let at = |at_ms, text| Snapshot {
        at_ms,
        devices: diskstats(text),
        ..Snapshot::default()
    };
    Activity::between(
        &at(5000, include_str!("data/before.diskstats")),
        &at(6000, include_str!("data/after.diskstats")),
    )
}

#[test]
fn known_work_is_counted() {
    let activity = real();
    let device = &activity.devices["loop0"];
    assert_eq!(device.done.write_bytes, 64 << 20);
    assert_eq!(device.done.read_bytes, 16 << 20);
    assert_eq!(device.done.reads, 256);
    assert!((device.reads_per_second() - 256.0).abs() < 1e-9);
    assert!((device.write_rate().0 - 67_108_864.0).abs() < 1e-6);
    assert!(device.busy() > 0.0 && device.busy() <= 1.0);
}

#[test]
fn iostat_of_freebsd_counts_the_8_gib_that_fio_read() {
    // geomflash/geomflash on GitHub, commit 53edd63, cache/test_gflash.log.
    let before = "                        extended device statistics  \n\
        device           r/i         w/i         kr/i         kw/i qlen   tsvc_t/i      sb/i  \n\
        ada2           115.0         3.0        336.0          1.5    0        0.1       0.1 \n";
    let after =
        "ada2         65654.0         3.0    8388968.0          1.5    0       46.6      46.6 \n";
    let at = |at_ms, text| Snapshot {
        at_ms,
        devices: freebsd::devices(text),
        ..Snapshot::default()
    };
    let activity = Activity::between(&at(0, before), &at(48_315, after));
    let device = &activity.devices["ada2"];
    assert_eq!(device.done.reads, 65_539);
    assert_eq!(device.done.read_bytes, 8_388_632 * 1024);
    assert_eq!((device.done.writes, device.done.busy_ms), (0, 46_500));
}

#[test]
fn freebsd_tells_memory_and_processors() {
    let text = "hw.physmem: 17095663616\nhw.pagesize: 4096\nvm.stats.vm.v_free_count: 1000\n\
        vm.stats.vm.v_inactive_count: 200\nvm.stats.vm.v_laundry_count: 30\n\
        kern.cp_time: 100 1 50 4 9000\nkstat.zfs.misc.arcstats.size: 123456\n";
    let (memory, cpu) = freebsd::state(text);
    let memory = memory.unwrap();
    assert_eq!(
        (memory.free_bytes, memory.dirty_bytes),
        (4_096_000, 122_880)
    );
    assert_eq!(memory.arc_bytes, Some(123_456));
    assert_eq!(cpu.unwrap().system, 54);
    assert_eq!(freebsd::state(""), (None, None));
}

fn one(reads: u64, read_ms: u64) -> Snapshot {
    let counters = DeviceCounters {
        reads,
        read_bytes: reads * 4096,
        read_ms,
        ..DeviceCounters::default()
    };
    Snapshot {
        devices: [("sdb".to_owned(), counters)].into(),
        ..Snapshot::default()
    }
}

#[test]
fn counters_wrap_and_devices_begin_anew() {
    // Milliseconds wrap after 50 days of waiting.
    let activity = Activity::between(&one(10, (1 << 32) - 5), &one(12, 7));
    assert_eq!(activity.devices["sdb"].done.read_ms, 12);
    // A 32-bit kernel's count of reads.
    let activity = Activity::between(&one((1 << 32) - 1, 0), &one(1, 0));
    assert_eq!(activity.devices["sdb"].done.reads, 2);
    // A disk that was pulled and put back.
    let activity = Activity::between(&one(500_000, 900), &one(3, 1));
    assert_eq!(activity.devices["sdb"].done.reads, 3);
    assert_eq!(activity.devices["sdb"].done.read_bytes, 12_288);
}

#[test]
fn devices_vanish_and_appear() {
    let none = Snapshot::default();
    let gone = Activity::between(&one(1, 1), &none);
    assert!(gone.devices.is_empty());
    let back = Activity::between(&none, &one(1, 1));
    assert_eq!(back.devices["sdb"].done.reads, 1);
}

#[test]
fn the_disk_below_a_loop_device_is_not_foreign() {
    let inventory = Inventory::of(&Machine::loops()).unwrap();
    let foreign = Foreign::of(
        &inventory,
        &["/dev/loop0".to_owned(), "/dev/loop1".to_owned()],
    );
    let activity = real();
    assert_eq!(foreign.bytes(&activity), 0);
    let foreign = Foreign::of(&inventory, &["/dev/vda".to_owned()]);
    assert_eq!(foreign.bytes(&activity), 80 << 20);
}

#[test]
fn a_frame_becomes_a_snapshot() {
    let machine = Machine::loops()
        .folder("/sys/class/hwmon", &["hwmon0", "hwmon1"])
        .file("/sys/class/hwmon/hwmon0/name", "drivetemp\n")
        .folder("/sys/class/hwmon/hwmon0/device/block", &["sda"])
        .file("/sys/class/hwmon/hwmon1/name", "nvme\n")
        .folder(
            "/sys/class/hwmon/hwmon1/device",
            &["nvme0c0n1", "nvme0n1", "power"],
        )
        .file(
            "/proc/spl/kstat/zfs/arcstats",
            "13 1 0x01 123 33456 1 2\nname type data\nsize 4 777\n",
        );
    let counters = Counters::of(&machine, System::Linux).unwrap();
    let contents = counters.sources().into_iter().map(|source| match source {
        Watched::File(path) if path.ends_with("hwmon0/temp1_input") => Some("34000\n".to_owned()),
        Watched::File(path) if path.ends_with("hwmon1/temp1_input") => Some("-1000\n".to_owned()),
        Watched::File(path) => raidlab_shell::Target::read(&machine, &path).ok(),
        Watched::Command(command) => panic!("Linux needs no command: {command}"),
    });
    let frame = Frame {
        at: Duration::from_millis(1500),
        contents: contents.collect(),
    };
    let snapshot = counters.parse(&frame);
    assert_eq!(snapshot.at_ms, 1500);
    assert!(snapshot.devices.contains_key("vda"));
    assert_eq!(snapshot.memory.unwrap().arc_bytes, Some(777));
    assert!(snapshot.cpu.unwrap().idle > 0);
    let degrees = [("nvme0n1".to_owned(), -1000), ("sda".to_owned(), 34_000)];
    assert_eq!(snapshot.temperatures_millicelsius, degrees.into());
    let empty = Frame {
        at: Duration::ZERO,
        contents: vec![None; counters.sources().len()],
    };
    assert_eq!(counters.parse(&empty), Snapshot::default());
}

#[test]
fn memory_is_read_and_its_absence_named() {
    let state = memory_state(&Machine::loops(), System::Linux).unwrap();
    assert_eq!(state.total_bytes, 24_684_096 * 1024);
    assert_eq!(state.cached_bytes, (655_024 - 8788) * 1024);
    assert_eq!(state.arc_bytes, None);
    let error = memory_state(&Machine::loops().file("/proc/meminfo", "x"), System::Linux);
    insta::assert_snapshot!(error.unwrap_err(), @"localhost: /proc/meminfo: no line tells the size of the memory");
}

#[test]
fn shares_of_the_processors_time() {
    let at = |text| Snapshot {
        cpu: stat(text),
        ..Snapshot::default()
    };
    let activity = Activity::between(
        &at("cpu  100 0 100 1000 0 0 0 10 0 0\n"),
        &at("cpu  150 0 100 1030 10 0 0 20 0 0\n"),
    );
    assert_eq!(activity.steal(), Some(0.1));
    assert_eq!(stat("cpu0 1 2 3\n"), None);
}

proptest! {
    #[test]
    fn no_text_panics(text in "(?s).*", numbers in "([a-z]{1,4} [0-9. ]{1,80}\n){0,4}") {
        for text in [&text, &numbers] {
            diskstats(text);
            meminfo(text);
            stat(text);
            arc_size(text);
            freebsd::devices(text);
            freebsd::state(text);
        }
    }

    /// Whatever the counters, what happened never exceeds what a 32-bit wrap
    /// can hide, and equal snapshots mean that nothing happened.
    #[test]
    fn differences_are_bounded(then in any::<[u64; 3]>(), now in any::<[u64; 3]>()) {
        let snapshot = |[reads, read_bytes, read_ms]: [u64; 3]| {
            let counters = DeviceCounters { reads, read_bytes, read_ms, ..DeviceCounters::default() };
            Snapshot { devices: [("sdb".to_owned(), counters)].into(), ..Snapshot::default() }
        };
        let done = Activity::between(&snapshot(then), &snapshot(now)).devices["sdb"].done;
        prop_assert!(done.reads <= now[0].max(1 << 32));
        prop_assert!(done.read_ms <= now[2].max(1 << 32));
        let still = Activity::between(&snapshot(now), &snapshot(now)).devices["sdb"].done;
        prop_assert_eq!(still, DeviceCounters::default());
    }
}
