//! Reading of the settings in force, from the kernel.

use super::BtrfsSpec;
use crate::array::steps::Reader;
use crate::array::{Built, ReadBack, Result, SystemError};
use crate::mounts::{check_options, parse_mounts};
use raidlab_shell::{Command, Target};

pub(super) fn settings(
    spec: &BtrfsSpec,
    target: &dyn Target,
    array: &Built,
) -> Result<Vec<ReadBack>> {
    let mounts = parse_mounts(&target.read("/proc/mounts")?);
    let mount = mounts
        .iter()
        .rev()
        .find(|mount| mount.folder == array.folder && mount.kind == "btrfs")
        .ok_or_else(|| SystemError::no_array(&array.name))?;
    let usage = Command::reads("btrfs", ["filesystem", "df", "--raw", &array.folder]);
    let usage = target.run(&usage)?.stdout;
    let mut reader = Reader::new(target);
    let source = "btrfs filesystem df";
    let (data, metadata) = (profiles(&usage, "Data"), profiles(&usage, "Metadata"));
    reader.found("data", Some(spec.data), data, source);
    reader.found("metadata", Some(spec.metadata()), metadata, source);

    let dump = Command::reads("btrfs", ["inspect-internal", "dump-super", &mount.device]);
    let dump = target.run(&dump)?.stdout;
    let checksum = dump
        .lines()
        .find_map(|line| line.strip_prefix("csum_type"))
        .and_then(|value| Some(value.split_once('(')?.1.split_once(')')?.0))
        .map_or("nothing", |name| match name {
            "xxhash64" => "xxhash",
            other => other,
        });
    let source = "btrfs inspect-internal dump-super";
    reader.found("checksum", Some(spec.checksum), checksum, source);
    check_options(&mut reader, &spec.mount_options(), mount);
    Ok(reader.done())
}

/// The profiles of all chunks of a kind, joined by `+`: several after writes while members were
/// missing, or during a conversion.
fn profiles(usage: &str, kind: &str) -> String {
    let mut found: Vec<String> = usage
        .lines()
        .filter_map(|line| {
            let (name, rest) = line.trim().split_once(", ")?;
            (name == kind).then_some(())?;
            Some(rest.split_once(':')?.0.to_lowercase())
        })
        .collect();
    found.dedup();
    if found.is_empty() {
        return "nothing".to_owned();
    }
    found.join("+")
}

#[cfg(test)]
mod tests {
    use super::profiles;

    #[test]
    fn a_degraded_write_leaves_a_second_profile() {
        let usage = "\
Data, RAID1: total=583794688, used=314572800
Data, single: total=104857600, used=104857600
System, RAID1: total=8388608, used=16384
Metadata, RAID1: total=80478208, used=786432
GlobalReserve, single: total=5767168, used=0
";
        assert_eq!(profiles(usage, "Data"), "raid1+single");
        assert_eq!(profiles(usage, "Metadata"), "raid1");
        assert_eq!(profiles("", "Data"), "nothing");
    }
}
