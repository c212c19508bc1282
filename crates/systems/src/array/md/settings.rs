//! Reading of the settings in force, from the kernel.

use super::layout::NEAR_2;
use super::plan::{attribute, kernel};
use super::{Bitmap, MdLevel, MdSpec};
use crate::array::steps::{Reader, kernel_name};
use crate::array::{Built, ReadBack, Result, SystemError};
use raidlab_shell::Target;
use raidlab_units::Bytes;

fn bytes(value: Option<Bytes>) -> Option<u64> {
    value.map(|value| value.0)
}

fn kib(value: Option<Bytes>) -> Option<u64> {
    value.map(|value| value.0 / 1024)
}

fn same(found: &str) -> String {
    found.to_owned()
}

pub(super) fn settings(spec: &MdSpec, target: &dyn Target, array: &Built) -> Result<Vec<ReadBack>> {
    let file = |name: &str| attribute(&array.name, name);
    if !target.list(&file(""))?.iter().any(|name| name == "level") {
        return Err(SystemError::no_array(&array.name));
    }
    let mut reader = Reader::new(target);
    let active = spec.active(array.members.len());
    reader.file("level", Some(spec.level), &file("level"), same)?;
    reader.file("raid_devices", Some(active), &file("raid_disks"), same)?;
    let path = file("metadata_version");
    reader.file("metadata", Some(spec.metadata), &path, same)?;
    if spec.level.striped() {
        reader.file("chunk", bytes(spec.chunk), &file("chunk_size"), same)?;
        let layout = match spec.level {
            MdLevel::Raid10 => Some(spec.layout_number().unwrap_or(NEAR_2)),
            _ => spec.layout_number(),
        };
        // A raid0 of equal members has no layout.
        if layout.is_some() || spec.level != MdLevel::Raid0 {
            reader.file("layout", layout, &file("layout"), same)?;
        }
    }
    if spec.level.redundant() {
        redundancy(spec, &mut reader, file)?;
    }
    if spec.level.parity() {
        let (cache, threads) = (spec.stripe_cache_size, spec.group_thread_count);
        reader.file("stripe_cache_size", cache, &file("stripe_cache_size"), same)?;
        reader.file(
            "group_thread_count",
            threads,
            &file("group_thread_cnt"),
            same,
        )?;
    }
    for slot in &spec.write_mostly {
        if let Some(member) = array.members.get(*slot) {
            let state = file(&format!("dev-{}/state", kernel_name(&member.device)));
            let name = format!("write_mostly[{slot}]");
            reader.file(&name, Some(true), &state, |found| {
                found
                    .split(',')
                    .any(|flag| flag == "write_mostly")
                    .to_string()
            })?;
        }
    }
    let path = format!("/sys/block/{}/queue/read_ahead_kb", kernel(&array.name));
    reader.file("read_ahead_kib", kib(spec.read_ahead), &path, same)?;
    Ok(reader.done())
}

/// Adds the settings of levels with redundancy; `file`: the path of an attribute.
fn redundancy(spec: &MdSpec, reader: &mut Reader<'_>, file: impl Fn(&str) -> String) -> Result<()> {
    let location = file("bitmap/location");
    reader.file("bitmap", Some(spec.bitmap()), &location, |found| {
        // The location in sectors from the superblock: `+8`.
        let internal = found.starts_with(['+', '-']);
        if internal { "internal" } else { found }.to_owned()
    })?;
    if spec.bitmap() == Bitmap::Internal {
        let asked = bytes(spec.bitmap_chunk);
        reader.file("bitmap_chunk", asked, &file("bitmap/chunksize"), same)?;
    }
    let name = "consistency_policy";
    reader.file(name, spec.consistency_policy, &file(name), same)?;
    // KiB per second, followed by `(local)` or `(system)`.
    let first_word = |found: &str| found.split(' ').next().unwrap_or("").to_owned();
    for (name, asked) in [
        ("sync_speed_min", spec.sync_speed_min),
        ("sync_speed_max", spec.sync_speed_max),
    ] {
        reader.file(name, kib(asked), &file(name), first_word)?;
    }
    Ok(())
}
