//! Leftovers of a crash: running arrays and superblocks that wait for assembly.
//!
//! `mdadm --examine --scan --verbose` reads the superblocks of every device,
//! whether their array runs or not:
//!
//! ```text
//! ARRAY /dev/md/raidlab0  level=raid1 metadata=1.2 num-devices=2 UUID=... name=store1:raidlab0
//!    spares=1   devices=/dev/sdb,/dev/sdc,/dev/sdd
//! ARRAY /dev/md101 level=raid1 num-devices=2 UUID=...
//!    devices=/dev/sde,/dev/sdf
//! ```
//!
//! With `--config=partitions` mdadm ignores a line `DEVICE` in its configuration, which may
//! leave out ours. A superblock of version 0.90 has no name, but the number of the array's
//! device, from which our name follows. The devices are not in the order of slots, which
//! suffices to take the array down.

use super::plan::number_of;
use crate::array::steps::device_size;
use crate::array::{Built, Member, Result};
use raidlab_shell::{Command, Target};

pub(super) fn find(target: &dyn Target, prefix: &str) -> Result<Vec<Built>> {
    let words = ["--examine", "--scan", "--verbose", "--config=partitions"];
    let output = target.run(&Command::reads("mdadm", words))?;
    let mut found: Vec<Built> = parse_scan(&output.stdout, prefix)
        .into_iter()
        .filter(|(name, _)| name.starts_with(prefix))
        .map(|(name, devices)| {
            let members = devices.into_iter();
            let members =
                members.map(|device| Member::found(&device, device_size(target, &device)));
            Built::found(name, members.collect())
        })
        .collect();
    found.sort_by(|left, right| left.name.cmp(&right.name));
    Ok(found)
}

/// Parses the names, without the host that mdadm puts before them, and the devices. An array that
/// has only a number gets the name that one of ours with this number would have.
fn parse_scan(text: &str, prefix: &str) -> Vec<(String, Vec<String>)> {
    let mut arrays: Vec<(String, Vec<String>)> = Vec::new();
    for line in text.lines() {
        if line.starts_with("ARRAY ") {
            let named = line
                .split_whitespace()
                .find_map(|word| word.strip_prefix("name="));
            let name = match named {
                Some(name) => name.rsplit(':').next().unwrap_or(name).to_owned(),
                None => line
                    .split_whitespace()
                    .nth(1)
                    .and_then(number_of)
                    .map_or_else(String::new, |number| format!("{prefix}{number}")),
            };
            arrays.push((name, Vec::new()));
        } else if let Some((_, found)) = arrays.last_mut()
            && let Some(devices) = line
                .split_whitespace()
                .find_map(|word| word.strip_prefix("devices="))
        {
            found.extend(devices.split(',').map(str::to_owned));
        }
    }
    arrays.retain(|(name, _)| !name.is_empty());
    arrays
}

#[cfg(test)]
mod tests {
    use super::parse_scan;
    use proptest::prelude::*;

    #[test]
    fn names_lose_their_host() {
        let text = "\
ARRAY /dev/md/raidlab0  level=raid1 metadata=1.2 num-devices=2 UUID=1:2:3:4 name=store1:raidlab0
   spares=1   devices=/dev/sdb,/dev/sdc
";
        let devices = vec!["/dev/sdb".to_owned(), "/dev/sdc".to_owned()];
        assert_eq!(
            parse_scan(text, "raidlab"),
            [("raidlab0".to_owned(), devices)]
        );
    }

    /// mdadm 4.2 on members whose superblocks have version 0.90.
    #[test]
    fn an_array_without_a_name_is_known_by_its_number() {
        let text = "\
ARRAY /dev/md9 level=raid0 num-devices=2 UUID=5:6:7:8
   devices=/dev/sdd
ARRAY /dev/md107 level=raid1 num-devices=2 UUID=11111111:00000002:00000003:00000004
   devices=/dev/sde,/dev/sdf
";
        let devices = vec!["/dev/sde".to_owned(), "/dev/sdf".to_owned()];
        assert_eq!(
            parse_scan(text, "raidlab"),
            [("raidlab7".to_owned(), devices)]
        );
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic(text in "(ARRAY |name=|devices=|:|,|[ -~\n]){0,40}") {
            let _ = parse_scan(&text, "raidlab");
        }
    }
}
