//! Pitfalls of data placement: where data lie on disks, and on which disks.

use crate::bound::{data_share, megabytes};
use crate::case::Case;
use crate::devices::{
    equals, has_auxiliary, is_random, is_redundant, is_settled, level, members, shingled, system,
};
use crate::finding::Ruling;
use crate::rule::Check;
use raidlab_statistics::{Sample, cliff};
use raidlab_store::Severity::{Note, Warning};
use raidlab_store::{Measurement, fact};
use raidlab_units::{Bytes, SECTOR_BYTES};
use std::collections::{BTreeMap, BTreeSet};

pub(super) const CHECKS: &[(&str, Check)] = &[
    ("H1", Check::Rows(misaligned)),
    ("H2", Check::Rows(small_ashift)),
    ("H3", Check::Rows(is_shingled)),
    ("H4", Check::Whole(shared_channel)),
    ("B2", Check::Whole(more_than_the_sum)),
    ("H5", Check::Whole(different_places)),
    ("H6", Check::Rows(unequal)),
];

fn misaligned(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) -> Option<()> {
    let members = members(case, row);
    let known = (!members.is_empty()).then_some(());
    ruling.need(known, "member.0.device")?;
    for member in &members {
        let offset = fact::disk(&member.device, fact::disk_property::ALIGNMENT_OFFSET);
        let offset = case.number(row, &offset);
        let sector = member.physical_sector_bytes;
        let Some(sector) = ruling.need(sector, "disk.<device>.physical_sector_bytes") else {
            continue;
        };
        let start = member.start_sector;
        let misses = |start: &f64| (start * SECTOR_BYTES as f64) % sector.max(1.0) > 0.0;
        if let Some(start) = start.filter(misses) {
            let text = format!("{}: begins at sector {start:.0}", member.name());
            ruling.subject(
                Warning,
                row,
                format!("{text}, sectors are {sector:.0} bytes"),
            );
        } else if offset.is_some_and(|offset| offset != 0.0) {
            let text = format!("{}: the kernel counts an alignment offset", member.name());
            ruling.subject(Warning, row, text);
        } else if start.is_none() && member.sector_by_model && member.is_partition() {
            let text = format!("{} stores 4096-byte sectors", member.name());
            ruling.subject(
                Warning,
                row,
                format!("{text}; where the partition begins is not said"),
            );
        } else {
            ruling.judged();
        }
    }
    Some(())
}

fn small_ashift(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) -> Option<()> {
    let system = Some(system(case, row)).filter(|system| !system.is_empty());
    if ruling.need(system, fact::ARRAY_SYSTEM)? != "zfs" {
        return None;
    }
    let ashift = case.number(row, &fact::setting("ashift", fact::outcome::FOUND));
    // A value of 0 says that ZFS chose one, and does not say which.
    let ashift = ashift.filter(|ashift| *ashift > 0.0);
    let ashift = ruling.need(ashift, "setting.ashift.found")?;
    let members = members(case, row);
    ruling.need(members.first(), "member.0.device")?;
    for member in members {
        let sector = member.physical_sector_bytes;
        let Some(sector) = ruling.need(sector, "disk.<device>.physical_sector_bytes") else {
            continue;
        };
        ruling.judged();
        if (0.0..32.0).contains(&ashift) && ashift.exp2() < sector {
            let text = format!(
                "ashift {ashift:.0}, {}: sectors of {sector:.0} bytes",
                member.name()
            );
            ruling.subject(Warning, row, text);
        }
    }
    Some(())
}

/// The longest time of a single I/O of a healthy conventional disk, nanoseconds: its own error
/// recovery gives up earlier.
const STALL_NS: u64 = 60_000_000_000;

fn is_shingled(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) -> Option<()> {
    let members = members(case, row);
    for member in &members {
        if member.model.is_none() {
            continue;
        }
        ruling.judged();
        if let Some(model) = shingled(member) {
            ruling.subject(Warning, row, format!("{}: {}", member.name(), model.source));
        }
    }
    let rotating = members.iter().any(|member| member.rotational == Some(true));
    ruling.need(None::<()>, "disk.<device>.model");
    if !rotating {
        return None;
    }
    if row.latency.is_recorded() && row.latency.max_ns > STALL_NS {
        let seconds = row.latency.max_ns / 1_000_000_000;
        ruling.row(Warning, row, format!("one I/O took {seconds} s"));
    }
    if row.op.only_writes()
        && let Some(values) = case.rate_series(row)
        && let Ok(sample) = Sample::new(&values)
        && sample.len() >= 20
        && let Some(fall) = cliff(&sample)
    {
        let text = format!("the rate fell from {:.0} to {:.0}", fall.first, fall.last);
        ruling.row(Warning, row, text);
    }
    Some(())
}

/// A device of a machine, with the file system on it.
type Device<'a> = (&'a str, &'a str, String);

/// The rows of the same job on single disks, by the device and file system each ran on.
fn alone<'a>(case: &Case<'_>, rows: &[&'a Measurement]) -> BTreeMap<Device<'a>, &'a Measurement> {
    let mut alone = BTreeMap::new();
    for row in rows {
        if let [member] = members(case, row).as_slice()
            && !member.device.is_empty()
            && row.bytes_per_second > 0.0
        {
            let (host, filesystem) = (row.host.as_str(), row.filesystem.as_str());
            alone.insert((host, filesystem, member.device.clone()), *row);
        }
    }
    alone
}

/// The rates of an array's members, each measured alone in the same job and with the same file
/// system; `None` unless all of two or more were measured.
fn rates_alone<'a>(
    case: &Case<'_>,
    row: &'a Measurement,
    alone: &BTreeMap<Device<'a>, &Measurement>,
) -> Option<Vec<f64>> {
    let members = members(case, row).into_iter();
    let rates: Option<Vec<f64>> = members
        .map(|member| {
            let (host, filesystem) = (row.host.as_str(), row.filesystem.as_str());
            Some(
                alone
                    .get(&(host, filesystem, member.device))?
                    .bytes_per_second,
            )
        })
        .collect();
    rates.filter(|rates| rates.len() > 1)
}

fn rate_list(rates: &[f64]) -> String {
    let list: Vec<String> = rates.iter().map(|rate| megabytes(*rate)).collect();
    list.join(" and ")
}

fn shared_channel(case: &Case<'_>, ruling: &mut Ruling) {
    for row in case.subjects() {
        let members = members(case, row);
        if members.len() < 2 || members.iter().any(|member| member.device.is_empty()) {
            continue;
        }
        ruling.judged();
        let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for member in &members {
            let disk = format!("disk {}", member.disk(case, row));
            let usb = fact::disk(member.disk(case, row), fact::disk_property::CHANNEL_USB);
            let usb = case.text(row, &usb).map(|hub| format!("USB {hub}"));
            let places_of = [Some(disk), member.channel.clone(), usb];
            for place in places_of.into_iter().flatten() {
                places.entry(place).or_default().push(member.name());
            }
        }
        let files = members.iter().filter(|member| {
            let name = fact::disk(&member.device, fact::disk_property::BACKING_FILE);
            case.text(row, &name).is_some()
        });
        let files = files.count();
        if files > 1 {
            let text = format!("{files} members are files: their disks may be one");
            ruling.subject(Note, row, text);
        }
        for (place, names) in places {
            if names.len() > 1 {
                let severity = if place.starts_with("disk ") {
                    Warning
                } else {
                    Note
                };
                ruling.subject(
                    severity,
                    row,
                    format!("{} are on {place}", names.join(" and ")),
                );
            }
        }
    }
    for rows in case.compared() {
        let alone = alone(case, &rows);
        for row in &rows {
            let Some(rates) = rates_alone(case, row, &alone) else {
                continue;
            };
            ruling.judged();
            let slowest = rates.iter().copied().fold(f64::INFINITY, f64::min);
            // Mirrors and parity write more than they are given.
            let fair = is_settled(row) && (row.op.only_reads() || !is_redundant(level(case, row)));
            if fair && row.bytes_per_second > 0.0 && row.bytes_per_second < 0.85 * slowest {
                let rate = megabytes(row.bytes_per_second);
                ruling.row(
                    Warning,
                    row,
                    format!("{rate}; alone: {}", rate_list(&rates)),
                );
            }
        }
    }
    ruling.need(None::<()>, "member.0.device");
}

fn more_than_the_sum(case: &Case<'_>, ruling: &mut Ruling) {
    for rows in case.compared() {
        let alone = alone(case, &rows);
        let streams = rows.iter().filter(|row| !is_random(row));
        for row in streams.filter(|row| !has_auxiliary(case, row)) {
            let Some(rates) = rates_alone(case, row, &alone) else {
                continue;
            };
            ruling.judged();
            let data = data_share(case, row, rates.len());
            let sum: f64 = rates.iter().sum::<f64>() * data;
            let excess = row.bytes_per_second / sum - 1.0;
            if excess > 0.02 {
                let severity = if excess > 0.1 { Warning } else { Note };
                let rate = megabytes(row.bytes_per_second);
                let list = rate_list(&rates);
                let mut text = format!("{rate}, {:.1} % more than {list}", excess * 100.0);
                if data < 1.0 {
                    text += &format!(", of which {:.0} % are data", data * 100.0);
                }
                ruling.row(severity, row, text);
            }
        }
    }
    ruling.need(None::<()>, "the same job on each member alone");
}

fn different_places(case: &Case<'_>, ruling: &mut Ruling) {
    for rows in case.compared() {
        other_partitions(case, &rows, ruling);
        other_starts(case, &rows, ruling);
    }
    ruling.need(None::<()>, "member.0.device");
}

/// Finds subjects that use different partitions of a disk. One that uses several of them is no
/// difference where all do.
fn other_partitions(case: &Case<'_>, rows: &[&Measurement], ruling: &mut Ruling) {
    let mut uses: BTreeMap<(&str, String), BTreeSet<BTreeSet<String>>> = BTreeMap::new();
    for row in rows {
        let mut own: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for member in members(case, row) {
            if member.device.is_empty() {
                continue;
            }
            ruling.judged();
            let disk = member.disk(case, row).to_owned();
            own.entry(disk).or_default().insert(member.device);
        }
        for (disk, devices) in own {
            uses.entry((&row.host, disk)).or_default().insert(devices);
        }
    }
    for ((_, disk), kinds) in uses {
        if kinds.len() > 1 {
            let devices: BTreeSet<String> = kinds.into_iter().flatten().collect();
            let list: Vec<String> = devices.into_iter().collect();
            ruling.job(
                Note,
                rows[0],
                format!("{} are parts of {disk}", list.join(" and ")),
            );
        }
    }
}

/// Finds subjects whose members begin at other places of their disks, in the mean over a
/// subject's members: members of one array may.
fn other_starts(case: &Case<'_>, rows: &[&Measurement], ruling: &mut Ruling) {
    let mut places: Vec<(f64, &str)> = Vec::new();
    let mut disk_size = 0.0_f64;
    for row in rows {
        let mut starts: Vec<f64> = Vec::new();
        for member in members(case, row) {
            let Some(sector) = member.start_sector else {
                continue;
            };
            let start = sector * SECTOR_BYTES as f64;
            let size = fact::disk(member.disk(case, row), fact::disk_property::SIZE_BYTES);
            let size = case.number(row, &size).unwrap_or(0.0);
            // Where only the part's size is known, its disk ends there or later.
            let end = member.size_bytes.map_or(0.0, |size| start + size);
            disk_size = disk_size.max(size).max(end);
            starts.push(start);
        }
        if !starts.is_empty() {
            let mean = starts.iter().sum::<f64>() / starts.len() as f64;
            places.push((mean, &row.subject));
        }
    }
    places.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(b.1)));
    if let [(first, near), .., (last, far)] = places.as_slice()
        && disk_size > 0.0
        && last - first > 0.1 * disk_size
    {
        let apart = Bytes((last - first) as u64);
        let text = format!("{far} begins {apart} further into its disks than {near}");
        ruling.job(Note, rows[0], text);
    }
}

fn unequal(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) -> Option<()> {
    let members = equals(case, row);
    let models: Option<BTreeSet<&str>> = members
        .iter()
        .map(|member| member.model.as_deref())
        .collect();
    let models = ruling.need(
        models.filter(|models| !models.is_empty()),
        "disk.<device>.model",
    )?;
    ruling.judged();
    if models.len() > 1 {
        let list: Vec<&str> = models.into_iter().collect();
        ruling.subject(Note, row, list.join(" and "));
    }
    Some(())
}
