//! The facts of each disk.

use super::Facts;
use crate::channels::Channel;
use crate::{Disk, DiskKind, Inventory, InventoryError, System, counters, smart, text};
use raidlab_shell::Target;

pub fn facts(
    target: &dyn Target,
    inventory: &Inventory,
    facts: &mut Facts,
) -> Result<(), InventoryError> {
    let source = match inventory.system {
        System::Linux => "lsblk and /sys/block",
        System::FreeBsd => "geom disk list and kern.geom.conftxt",
    };
    let wanted = |disk: &&Disk| {
        matches!(
            disk.kind,
            DiskKind::Disk | DiskKind::Partition | DiskKind::Loop
        )
    };
    for disk in inventory.disks.iter().filter(wanted) {
        one(disk, facts, source);
    }
    let mut told = Vec::new();
    if inventory.system == System::Linux {
        for (name, path) in counters::thermometers(target)? {
            let degrees = text::optional(target, &path)?.and_then(|text| text.parse::<i64>().ok());
            let degrees = degrees.map(|thousandths| thousandths.div_euclid(1000));
            facts.maybe(format!("disk.{name}.temperature_celsius"), degrees, &path);
            told.push(name);
        }
    }
    for disk in inventory
        .disks
        .iter()
        .filter(|disk| disk.kind == DiskKind::Disk)
    {
        if inventory.system == System::Linux {
            throttling(target, disk, facts)?;
        }
        let has_temperature = told.iter().any(|name| name == disk.kernel_name());
        health(target, disk, has_temperature, facts)?;
    }
    Ok(())
}

/// Adds the read latency for which the kernel throttles writes (Linux `block/blk-wbt.c`). It
/// depends on the kernel's configuration and on the scheduler, and affects the writes that md
/// makes by itself.
fn throttling(target: &dyn Target, disk: &Disk, facts: &mut Facts) -> Result<(), InventoryError> {
    let path = format!("/sys/block/{}/queue/wbt_lat_usec", disk.kernel_name());
    let latency = text::optional_number(target, &path)?;
    let name = format!("disk.{}.write_throttling_microseconds", disk.kernel_name());
    facts.maybe(name, latency, &path);
    Ok(())
}

/// Adds the health that the drive reports; nothing for one without SMART.
fn health(
    target: &dyn Target,
    disk: &Disk,
    has_temperature: bool,
    facts: &mut Facts,
) -> Result<(), InventoryError> {
    let smart = match smart::smart(target, &disk.device) {
        Ok(Some(smart)) => smart,
        // smartmontools before 7 do not know JSON.
        Ok(None) | Err(InventoryError::Format { .. }) => return Ok(()),
        Err(error) => return Err(error),
    };
    let name = |field: &str| format!("disk.{}.{field}", disk.kernel_name());
    let source = "smartctl";
    if !has_temperature {
        facts.maybe(
            name("temperature_celsius"),
            smart.temperature_celsius,
            source,
        );
    }
    facts.maybe(name("smart.passed"), smart.passed, source);
    for (field, value) in [
        ("power_on_hours", smart.power_on_hours),
        ("reallocated_sectors", smart.reallocated_sectors),
        ("pending_sectors", smart.pending_sectors),
        ("uncorrectable_sectors", smart.uncorrectable_sectors),
        ("checksum_errors", smart.checksum_errors),
        ("media_errors", smart.media_errors),
        ("used_percent", smart.used_percent),
    ] {
        facts.maybe(name(&format!("smart.{field}")), value, source);
    }
    Ok(())
}

fn one(disk: &Disk, facts: &mut Facts, source: &str) {
    let name = |field: &str| format!("disk.{}.{field}", disk.kernel_name());
    facts.add(name("kind"), disk.kind, source);
    facts.maybe(name("model"), disk.model.as_ref(), source);
    facts.maybe(name("serial"), disk.serial.as_ref(), source);
    facts.maybe(name("firmware"), disk.firmware.as_ref(), source);
    facts.add(name("size_bytes"), disk.size_bytes, source);
    facts.add(
        name("logical_sector_bytes"),
        disk.logical_sector_bytes,
        source,
    );
    facts.add(
        name("physical_sector_bytes"),
        disk.physical_sector_bytes,
        source,
    );
    facts.maybe(name("rotational"), disk.rotational, source);
    facts.maybe(name("transport"), disk.transport.as_ref(), source);
    facts.maybe(name("scheduler"), disk.scheduler.as_ref(), source);
    facts.maybe(name("queue_depth"), disk.queue_depth, source);
    facts.maybe(name("request_queue"), disk.request_queue, source);
    facts.maybe(name("read_ahead_bytes"), disk.read_ahead_bytes, source);
    facts.maybe(name("write_cache"), disk.write_cache.as_ref(), source);
    facts.maybe(name("start_sector"), disk.start_sector, source);
    facts.add(name("alignment_offset"), disk.misaligned_bytes(), source);
    facts.maybe(name("link_speed"), disk.link_bits_per_second, source);
    facts.maybe(
        name("smr"),
        disk.shingled().map(|model| model.source),
        "the list of shingled models",
    );
    facts.maybe(name("zoned"), disk.zoned.as_ref(), source);
    facts.maybe(name("backing_file"), disk.backing_file.as_ref(), source);
    let channel = Channel::of(disk);
    let path = disk.topology.as_deref().unwrap_or_default();
    facts.maybe(name("channel.pci"), channel.pci, path);
    facts.maybe(name("channel.host"), channel.host, path);
    facts.maybe(name("channel.usb"), channel.usb, path);
}
