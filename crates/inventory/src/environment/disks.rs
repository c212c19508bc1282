//! The facts of each disk.

use super::Facts;
use crate::channels::Channel;
use crate::{Disk, DiskKind, Inventory, InventoryError, System, counters, text};
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
    if inventory.system == System::Linux {
        for (name, path) in counters::thermometers(target)? {
            let degrees = text::optional(target, &path)?.and_then(|text| text.parse::<i64>().ok());
            let degrees = degrees.map(|thousandths| thousandths.div_euclid(1000));
            facts.maybe(format!("disk.{name}.temperature_celsius"), degrees, &path);
        }
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
