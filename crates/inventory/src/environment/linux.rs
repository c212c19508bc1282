//! The facts of a Linux machine.

use super::{Facts, NAMES};
use crate::counters::{Activity, cpu_ticks, memory_state};
use crate::text::{decimal, optional, optional_output};
use crate::{InventoryError, System};
use raidlab_shell::{Command, Target};
use std::collections::BTreeSet;

/// Collects all facts but those of disks.
pub fn facts(target: &dyn Target, facts: &mut Facts) -> Result<(), InventoryError> {
    facts.add("os.kernel", "Linux", "uname -s");
    for known in NAMES.iter().filter(|known| !known.file.is_empty()) {
        facts.maybe(known.name, optional(target, known.file)?, known.file);
    }
    distribution(target, facts)?;
    virtualisation(target, facts)?;
    processors(target, facts)?;
    memory(target, facts)?;
    load(target, facts)
}

fn distribution(target: &dyn Target, facts: &mut Facts) -> Result<(), InventoryError> {
    let path = "/etc/os-release";
    let text = optional(target, path)?.unwrap_or_default();
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.map(|value| value.trim_start_matches('=').trim_matches('"').to_owned())
    };
    facts.maybe("os.name", field("NAME="), path);
    // A rolling distribution has no version number.
    let version = field("VERSION_ID=").or_else(|| field("PRETTY_NAME="));
    facts.maybe("os.version", version, path);
    Ok(())
}

/// Adds the kind of virtual machine: by systemd where it is installed (which ends with 1 for
/// `none`), else by the hypervisor or the processor's flags.
fn virtualisation(target: &dyn Target, facts: &mut Facts) -> Result<(), InventoryError> {
    let detect = Command::reads("systemd-detect-virt", [""; 0]).success(&[0, 1]);
    if let Some(said) = optional_output(target, &detect)? {
        facts.add("machine.virtualisation", said, "systemd-detect-virt");
        return Ok(());
    }
    let path = "/sys/hypervisor/type";
    if let Some(kind) = optional(target, path)? {
        facts.add("machine.virtualisation", kind, path);
        return Ok(());
    }
    let path = "/proc/cpuinfo";
    let info = optional(target, path)?.unwrap_or_default();
    if info.split_whitespace().any(|word| word == "hypervisor") {
        facts.add("machine.virtualisation", "unknown hypervisor", path);
    }
    Ok(())
}

fn processors(target: &dyn Target, facts: &mut Facts) -> Result<(), InventoryError> {
    let info = optional(target, "/proc/cpuinfo")?.unwrap_or_default();
    let field = |name: &str| {
        let line = info
            .lines()
            .find(|line| line.split(':').next().is_some_and(|key| key.trim() == name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    facts.maybe(
        "cpu.model",
        field("model name").or_else(|| field("Model")),
        "/proc/cpuinfo",
    );
    let stat = optional(target, "/proc/stat")?.unwrap_or_default();
    let count = stat
        .lines()
        .filter(|line| line.starts_with("cpu") && !line.starts_with("cpu "))
        .count();
    facts.maybe("cpu.count", (count > 0).then_some(count), "/proc/stat");
    let folder = "/sys/devices/system/cpu";
    let (mut governors, mut throttled) = (BTreeSet::new(), None);
    for name in target.list(folder)? {
        if !name
            .trim_start_matches("cpu")
            .starts_with(|c: char| c.is_ascii_digit())
        {
            continue;
        }
        governors.extend(optional(
            target,
            &format!("{folder}/{name}/cpufreq/scaling_governor"),
        )?);
        let path = format!("{folder}/{name}/thermal_throttle/core_throttle_count");
        if let Some(times) = optional(target, &path)?.and_then(|text| text.parse::<u64>().ok()) {
            throttled = Some(throttled.unwrap_or(0) + times);
        }
    }
    let governors: Vec<String> = governors.into_iter().collect();
    facts.add(
        "cpu.governor",
        governors.join(" "),
        "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
    );
    frequencies(target, field("cpu MHz"), facts)?;
    facts.maybe(
        "cpu.thermal_throttle_count",
        throttled,
        "/sys/devices/system/cpu/cpu*/thermal_throttle/core_throttle_count",
    );
    let since_boot = Activity {
        cpu: cpu_ticks(&stat),
        ..Activity::default()
    };
    facts.maybe(
        "cpu.steal_since_boot_percent",
        since_boot
            .steal()
            .map(|share| format!("{:.2}", share * 100.0)),
        "/proc/stat",
    );
    Ok(())
}

/// Adds the first core's frequency, which is `listed` in megahertz where it is not scaled, and the
/// highest possible one.
fn frequencies(
    target: &dyn Target,
    listed: Option<String>,
    facts: &mut Facts,
) -> Result<(), InventoryError> {
    let folder = "/sys/devices/system/cpu/cpu0/cpufreq";
    let hertz = |kilohertz: String| kilohertz.parse::<u64>().ok()?.checked_mul(1000);
    let now = format!("{folder}/scaling_cur_freq");
    match optional(target, &now)?.and_then(hertz) {
        Some(frequency) => facts.add("cpu.frequency_hz", frequency, &now),
        None => facts.maybe(
            "cpu.frequency_hz",
            listed.and_then(|megahertz| decimal(&megahertz, 6)),
            "/proc/cpuinfo",
        ),
    }
    let most = format!("{folder}/cpuinfo_max_freq");
    facts.maybe(
        "cpu.frequency_max_hz",
        optional(target, &most)?.and_then(hertz),
        &most,
    );
    Ok(())
}

fn memory(target: &dyn Target, facts: &mut Facts) -> Result<(), InventoryError> {
    let path = "/proc/meminfo";
    let state = memory_state(target, System::Linux)?;
    facts.add("memory.total_bytes", state.total_bytes, path);
    facts.add("memory.free_bytes", state.free_bytes, path);
    facts.add("memory.cached_bytes", state.cached_bytes, path);
    facts.add("memory.dirty_bytes", state.dirty_bytes, path);
    let text = optional(target, path)?.unwrap_or_default();
    let field = |name: &str| {
        let rest = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        rest.split_whitespace()
            .next()?
            .parse::<u64>()
            .ok()?
            .checked_mul(1024)
    };
    let (total, free) = (field("SwapTotal"), field("SwapFree"));
    facts.maybe("memory.swap_total_bytes", total, path);
    let used = total
        .zip(free)
        .map(|(total, free)| total.saturating_sub(free));
    facts.maybe("memory.swap_used_bytes", used, path);
    facts.maybe(
        "memory.arc_bytes",
        state.arc_bytes,
        "/proc/spl/kstat/zfs/arcstats",
    );
    Ok(())
}

fn load(target: &dyn Target, facts: &mut Facts) -> Result<(), InventoryError> {
    let path = "/proc/loadavg";
    let text = optional(target, path)?.unwrap_or_default();
    facts.maybe("load.one_minute", text.split(' ').next(), path);
    for kind in ["cpu", "io", "memory"] {
        let path = format!("/proc/pressure/{kind}");
        let text = optional(target, &path)?.unwrap_or_default();
        let some = text
            .lines()
            .find_map(|line| line.strip_prefix("some avg10="));
        let percent = some.and_then(|rest| rest.split(' ').next());
        facts.maybe(format!("pressure.{kind}_percent"), percent, &path);
    }
    Ok(())
}
