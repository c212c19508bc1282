//! Facts of a FreeBSD machine, nearly all from one call of `sysctl`.

use super::{Facts, Known, NAMES};
use crate::InventoryError;
use crate::counters::memory_state;
use raidlab_shell::{Command, Target};
use std::collections::BTreeMap;

pub fn facts(target: &dyn Target, facts: &mut Facts) -> Result<(), InventoryError> {
    let others = ["dev.cpu.0.freq", "vm.loadavg"];
    let told = || NAMES.iter().filter(|known| !known.variable.is_empty());
    let names = told().map(|known| known.variable).chain(others);
    // Variables of modules that are not loaded make `sysctl` end with 1.
    let command = Command::reads("sysctl", names).success(&[0, 1]);
    let text = target.run(&command)?.stdout;
    let values: BTreeMap<&str, &str> = text
        .lines()
        .filter_map(|line| line.split_once(": "))
        .collect();
    for Known { name, variable, .. } in told() {
        facts.maybe(*name, values.get(variable), &format!("sysctl {variable}"));
    }
    let name = values.get("kern.ostype");
    facts.maybe("os.name", name, "sysctl kern.ostype");
    let frequency = values
        .get("dev.cpu.0.freq")
        .and_then(|text| text.trim().parse::<u64>().ok());
    let hertz = frequency.and_then(|megahertz| megahertz.checked_mul(1_000_000));
    facts.maybe("cpu.frequency_hz", hertz, "sysctl dev.cpu.0.freq");
    // The form is `{ 0.12 0.20 0.18 }`.
    let load = values
        .get("vm.loadavg")
        .and_then(|text| text.split_whitespace().nth(1));
    facts.maybe("load.one_minute", load, "sysctl vm.loadavg");
    let state = memory_state(target, crate::System::FreeBsd)?;
    facts.add("memory.total_bytes", state.total_bytes, "sysctl hw.physmem");
    facts.add(
        "memory.free_bytes",
        state.free_bytes,
        "sysctl vm.stats.vm.v_free_count",
    );
    facts.add(
        "memory.cached_bytes",
        state.cached_bytes,
        "sysctl vm.stats.vm.v_inactive_count",
    );
    facts.add(
        "memory.dirty_bytes",
        state.dirty_bytes,
        "sysctl vm.stats.vm.v_laundry_count",
    );
    facts.maybe(
        "memory.arc_bytes",
        state.arc_bytes,
        "sysctl kstat.zfs.misc.arcstats.size",
    );
    Ok(())
}
