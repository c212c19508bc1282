//! FreeBSD: `iostat -Ix` for devices, `sysctl` for memory and processors.
//!
//! `iostat -Ix` prints totals since boot from devstat(9), one line for each
//! device under the headings `device r/i w/i kr/i kw/i qlen tsvc_t/i sb/i`
//! (iostat(8): reads, writes, kilobytes of 1024 read and written, queue
//! length, seconds of all transactions, seconds busy). Both commands only copy
//! kernel counters.

use super::{CpuTicks, DeviceCounters, MemoryState};
use crate::text::decimal;
use raidlab_shell::Command;
use std::collections::BTreeMap;

/// The command that prints the totals of all devices.
pub fn iostat() -> Command {
    Command::reads("iostat", ["-Ix"])
}

/// The command that prints the state of memory and processors. A machine without ZFS has no
/// `arcstats`: `sysctl` reports that on its standard error and ends with 1.
pub fn sysctl() -> Command {
    let names = [
        "hw.physmem",
        "hw.pagesize",
        "vm.stats.vm.v_free_count",
        "vm.stats.vm.v_inactive_count",
        "vm.stats.vm.v_laundry_count",
        "vfs.bufspace",
        "kern.cp_time",
        "kstat.zfs.misc.arcstats.size",
    ];
    Command::reads("sysctl", names).success(&[0, 1])
}

/// Parses the devices in the output of `iostat -Ix`.
pub fn devices(text: &str) -> BTreeMap<String, DeviceCounters> {
    text.lines()
        .filter_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [name, reads, writes, read_kib, write_kib, queue, _, busy] = words.as_slice()
            else {
                return None;
            };
            let (reads, writes) = (thousandths(reads)? / 1000, thousandths(writes)? / 1000);
            let counters = DeviceCounters {
                reads,
                writes,
                read_bytes: thousandths(read_kib)?.saturating_mul(1024) / 1000,
                write_bytes: thousandths(write_kib)?.saturating_mul(1024) / 1000,
                in_flight: queue.parse().ok()?,
                busy_ms: thousandths(busy)?,
                ..DeviceCounters::default()
            };
            Some(((*name).to_owned(), counters))
        })
        .collect()
}

/// Parses `12.5` as 12500.
fn thousandths(number: &str) -> Option<u64> {
    decimal(number, 3)
}

/// Parses memory and processors from `sysctl`'s `name: value` lines. FreeBSD has no count of
/// dirty file pages: the laundry queue, pages known to be dirty and waiting for their write,
/// is used instead.
pub fn state(text: &str) -> (Option<MemoryState>, Option<CpuTicks>) {
    let fields: BTreeMap<&str, &str> = text
        .lines()
        .filter_map(|line| line.split_once(": "))
        .collect();
    let number = |name: &str| {
        fields
            .get(name)
            .and_then(|value| value.trim().parse::<u64>().ok())
    };
    let page = number("hw.pagesize").unwrap_or(4096);
    let pages = |name: &str| number(name).unwrap_or(0).saturating_mul(page);
    let memory = number("hw.physmem").map(|total_bytes| MemoryState {
        total_bytes,
        free_bytes: pages("vm.stats.vm.v_free_count"),
        buffers_bytes: number("vfs.bufspace").unwrap_or(0),
        cached_bytes: pages("vm.stats.vm.v_inactive_count"),
        pinned_bytes: 0,
        dirty_bytes: pages("vm.stats.vm.v_laundry_count"),
        writeback_bytes: 0,
        arc_bytes: number("kstat.zfs.misc.arcstats.size"),
    });
    let ticks: Option<Vec<u64>> = fields.get("kern.cp_time").map(|text| {
        text.split_whitespace()
            .map_while(|word| word.parse().ok())
            .collect()
    });
    // The fields are CP_USER, CP_NICE, CP_SYS, CP_INTR, CP_IDLE (sys/resource.h).
    let cpu = match ticks.as_deref() {
        Some([user, nice, system, interrupt, idle]) => Some(CpuTicks {
            user: user.saturating_add(*nice),
            system: system.saturating_add(*interrupt),
            idle: *idle,
            iowait: 0,
            steal: 0,
        }),
        _ => None,
    };
    (memory, cpu)
}
