//! Facts of a recorded machine, and what may change between sessions.

use super::{Fact, Fingerprint, NAMES, environment, known};
use crate::Inventory;
use crate::testing::Machine;
use std::collections::BTreeSet;

fn facts(machine: &Machine) -> Vec<Fact> {
    environment(machine, &Inventory::of(machine).unwrap()).unwrap()
}

fn value<'a>(facts: &'a [Fact], name: &str) -> Option<&'a str> {
    let fact = facts.iter().find(|fact| fact.name == name)?;
    Some(&fact.value)
}

#[test]
fn the_facts_of_a_linux_machine() {
    let facts = facts(&Machine::loops());
    let wanted =
        |fact: &&Fact| !fact.name.starts_with("disk.") || fact.name.starts_with("disk.vda.");
    let lines: Vec<String> = facts
        .iter()
        .filter(wanted)
        .map(|fact| {
            format!(
                "{} = {} {} [{}]",
                fact.name, fact.value, fact.unit, fact.source
            )
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    os.kernel = Linux  [uname -s]
    os.release = 6.18.44  [/proc/sys/kernel/osrelease]
    os.name = Debian GNU/Linux  [/etc/os-release]
    os.version = 12  [/etc/os-release]
    host.name = vm  [/proc/sys/kernel/hostname]
    machine.virtualisation = docker  [systemd-detect-virt]
    kernel.command_line = console=ttyS0 root=/dev/vda rw  [/proc/cmdline]
    kernel.clock_source = tsc  [/sys/devices/system/clocksource/clocksource0/current_clocksource]
    cpu.model = AMD EPYC  [/proc/cpuinfo]
    cpu.count = 2  [/proc/stat]
    cpu.frequency_hz = 2596128000 Hz [/proc/cpuinfo]
    cpu.steal_since_boot_percent = 0.06 % [/proc/stat]
    memory.total_bytes = 25276514304 bytes [/proc/meminfo]
    memory.free_bytes = 23960104960 bytes [/proc/meminfo]
    memory.cached_bytes = 661745664 bytes [/proc/meminfo]
    memory.dirty_bytes = 372736 bytes [/proc/meminfo]
    memory.swap_total_bytes = 268431360 bytes [/proc/meminfo]
    memory.swap_used_bytes = 0 bytes [/proc/meminfo]
    tunable.vm.dirty_ratio = 20 % [/proc/sys/vm/dirty_ratio]
    tunable.vm.dirty_background_ratio = 10 % [/proc/sys/vm/dirty_background_ratio]
    tunable.vm.dirty_bytes = 0 bytes [/proc/sys/vm/dirty_bytes]
    tunable.vm.dirty_background_bytes = 0 bytes [/proc/sys/vm/dirty_background_bytes]
    tunable.vm.dirty_expire_centisecs = 3000 1/100 s [/proc/sys/vm/dirty_expire_centisecs]
    tunable.vm.dirty_writeback_centisecs = 500 1/100 s [/proc/sys/vm/dirty_writeback_centisecs]
    tunable.vm.swappiness = 60  [/proc/sys/vm/swappiness]
    load.one_minute = 0.22  [/proc/loadavg]
    pressure.cpu_percent = 0.14 % [/proc/pressure/cpu]
    pressure.io_percent = 5.89 % [/proc/pressure/io]
    pressure.memory_percent = 0.00 % [/proc/pressure/memory]
    disk.vda.kind = disk  [lsblk and /sys/block]
    disk.vda.size_bytes = 274877906944 bytes [lsblk and /sys/block]
    disk.vda.logical_sector_bytes = 512 bytes [lsblk and /sys/block]
    disk.vda.physical_sector_bytes = 4096 bytes [lsblk and /sys/block]
    disk.vda.rotational = true  [lsblk and /sys/block]
    disk.vda.transport = virtio  [lsblk and /sys/block]
    disk.vda.scheduler = mq-deadline  [lsblk and /sys/block]
    disk.vda.request_queue = 256  [lsblk and /sys/block]
    disk.vda.read_ahead_bytes = 8388608 bytes [lsblk and /sys/block]
    disk.vda.write_cache = write back  [lsblk and /sys/block]
    disk.vda.alignment_offset = 0 bytes [lsblk and /sys/block]
    disk.vda.zoned = none  [lsblk and /sys/block]
    disk.vda.channel.pci = 0000:00:02.0  [/sys/devices/pci0000:00/0000:00:02.0/virtio1/block/vda]
    ");
    assert_eq!(
        value(&facts, "disk.loop3.backing_file"),
        Some("/srv/inventory/ext4.img")
    );
    assert_eq!(value(&facts, "disk.loop3.kind"), Some("loop device"));
}

#[test]
fn every_fact_is_in_the_table_once() {
    let machine = Machine::loops()
        .folder("/sys/devices/system/cpu", &["cpu0", "cpu1", "cpufreq"])
        .file(
            "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
            "powersave\n",
        )
        .file(
            "/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor",
            "performance\n",
        )
        .file(
            "/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq",
            "3200000\n",
        )
        .file(
            "/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq",
            "3600000\n",
        )
        .file(
            "/sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count",
            "5\n",
        )
        .folder("/sys/class/hwmon", &["hwmon0"])
        .file("/sys/class/hwmon/hwmon0/name", "drivetemp\n")
        .folder("/sys/class/hwmon/hwmon0/device/block", &["vda"])
        .file("/sys/class/hwmon/hwmon0/temp1_input", "34500\n")
        .file("/sys/block/vda/queue/wbt_lat_usec", "75000\n")
        .command(
            "smartctl --json --nocheck=standby -a /dev/vda",
            64,
            r#"{"smart_status":{"passed":true},"temperature":{"current":35},"power_on_time":{"hours":9},
                "ata_smart_attributes":{"table":[{"id":197,"raw":{"value":8}}]}}"#,
        );
    let facts = facts(&machine);
    let mut names = BTreeSet::new();
    for fact in &facts {
        assert!(
            known(&fact.name).is_some(),
            "{} is not in the table",
            fact.name
        );
        assert!(names.insert(&fact.name), "{} is told twice", fact.name);
        assert!(
            !fact.value.is_empty() && !fact.source.is_empty(),
            "{}",
            fact.name
        );
    }
    assert_eq!(value(&facts, "cpu.governor"), Some("performance powersave"));
    assert_eq!(value(&facts, "cpu.frequency_hz"), Some("3200000000"));
    assert_eq!(value(&facts, "cpu.thermal_throttle_count"), Some("5"));
    assert_eq!(value(&facts, "disk.vda.temperature_celsius"), Some("34"));
    assert_eq!(value(&facts, "disk.vda.smart.pending_sectors"), Some("8"));
    assert_eq!(value(&facts, "disk.vda.smart.passed"), Some("true"));
    let throttling = "disk.vda.write_throttling_microseconds";
    assert_eq!(value(&facts, throttling), Some("75000"));
}

#[test]
fn names_are_unique_and_found() {
    let all: BTreeSet<&str> = NAMES.iter().map(|known| known.name).collect();
    assert_eq!(all.len(), NAMES.len());
    assert_eq!(
        known("disk.nvme0n1.channel.pci").unwrap().name,
        "disk.<device>.channel.pci"
    );
    assert_eq!(known("disk.sdb.size_bytes").unwrap().unit, "bytes");
    assert_eq!(known("disk..model"), None);
    assert_eq!(known("os.colour"), None);
}

#[test]
fn the_facts_of_a_freebsd_machine() {
    let variables = "kern.ostype kern.osrelease kern.version kern.hostname kern.vm_guest \
        kern.timecounter.hardware hw.model hw.ncpu vm.swap_total vfs.zfs.arc_max \
        vfs.zfs.min_auto_ashift kern.geom.mirror.sync_requests dev.cpu.0.freq vm.loadavg";
    // In the form of sysctl(8); the 2015 comparison's machine.
    let answer = "kern.ostype: FreeBSD\nkern.osrelease: 10.1-RELEASE-p5\n\
        kern.version: FreeBSD 10.1-RELEASE-p5 #0: Tue Jan 27 08:55:07 UTC 2015\n    root@builder\n\
        hw.model: Intel(R) Xeon(R) CPU E31230 @ 3.20GHz\nhw.ncpu: 8\ndev.cpu.0.freq: 3201\n\
        vm.loadavg: { 0.12 0.20 0.18 }\n";
    let memory = crate::counters::freebsd_memory_command().to_string();
    let machine = Machine::default()
        .command("uname -s", 0, "FreeBSD\n")
        .command("geom disk list", 0, "")
        .command("sysctl -n kern.geom.conftxt", 0, "")
        .command("mount -p", 0, "")
        .command("kldstat -q -m zfs", 1, "")
        .command(&format!("sysctl {variables}"), 1, answer)
        .command(&memory, 1, "hw.physmem: 17095663616\nhw.pagesize: 4096\n");
    let facts = facts(&machine);
    assert_eq!(value(&facts, "os.kernel"), Some("FreeBSD"));
    assert_eq!(value(&facts, "os.release"), Some("10.1-RELEASE-p5"));
    assert_eq!(value(&facts, "cpu.frequency_hz"), Some("3201000000"));
    assert_eq!(value(&facts, "load.one_minute"), Some("0.12"));
    assert_eq!(value(&facts, "memory.total_bytes"), Some("17095663616"));
    assert_eq!(value(&facts, "memory.arc_bytes"), None);
    assert!(facts.iter().all(|fact| known(&fact.name).is_some()));
}

#[test]
fn a_machine_that_only_worked_has_not_changed() {
    let own = ["/dev/loop4".to_owned()];
    let before = Fingerprint::of(&facts(&Machine::loops()), &own);
    let later = Machine::loops().file("/proc/loadavg", "9.00 1 1 1/1 1\n");
    let after = Fingerprint::of(&facts(&later), &own);
    assert_eq!(before.changes(&after), []);
}

#[test]
fn a_new_kernel_and_another_scheduler_are_named() {
    let own = ["/dev/vda".to_owned()];
    let before = Fingerprint::of(&facts(&Machine::loops()), &own);
    let later = Machine::loops()
        .file("/proc/sys/kernel/osrelease", "6.19.0\n")
        .edit_command("lsblk", "\"sched\": \"mq-deadline\"", "\"sched\": \"bfq\"");
    let after = Fingerprint::of(&facts(&later), &own);
    let changes: Vec<String> = before
        .changes(&after)
        .into_iter()
        .map(|change| format!("{}: {:?} -> {:?}", change.name, change.was, change.is))
        .collect();
    insta::assert_snapshot!(changes.join("\n"), @r#"
    disk.0.scheduler: Some("mq-deadline") -> Some("bfq")
    os.release: Some("6.18.44") -> Some("6.19.0")
    "#);
    // A disk that does not belong to the run may change.
    let other = ["/dev/loop4".to_owned()];
    let later =
        Machine::loops().edit_command("lsblk", "\"sched\": \"mq-deadline\"", "\"sched\": \"bfq\"");
    let before = Fingerprint::of(&facts(&Machine::loops()), &other);
    assert_eq!(before.changes(&Fingerprint::of(&facts(&later), &other)), []);
}

#[test]
fn own_disks_keep_their_place_when_the_kernel_names_them_anew() {
    let fact = |name: &str, value: &str| Fact {
        name: name.to_owned(),
        value: value.to_owned(),
        unit: String::new(),
        source: String::new(),
    };
    let before = Fingerprint::of(&[fact("disk.sdb.serial", "A")], &["/dev/sdb".to_owned()]);
    let after = Fingerprint::of(&[fact("disk.sdc.serial", "A")], &["/dev/sdc".to_owned()]);
    assert_eq!(before, after);
    assert_eq!(before.0["disk.0.serial"], "A");
}

#[test]
fn a_little_more_memory_is_the_same_machine() {
    let with =
        |bytes: u64| Fingerprint([("memory.total_bytes".to_owned(), bytes.to_string())].into());
    assert_eq!(with(16 << 30).changes(&with((16 << 30) + 300_000)), []);
    assert_eq!(with(16 << 30).changes(&with(8 << 30)).len(), 1);
}
