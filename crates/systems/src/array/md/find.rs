//! What a crash left: running arrays and superblocks that wait for assembly.
//!
//! `mdadm --examine --scan --verbose` reads the superblocks of every device,
//! whether their array runs or not:
//!
//! ```text
//! ARRAY /dev/md/raidlab0  level=raid1 metadata=1.2 num-devices=2 UUID=... name=store1:raidlab0
//!    spares=1   devices=/dev/sdb,/dev/sdc,/dev/sdd
//! ```
//!
//! The devices come in no order of slots: enough to take the array down.

use crate::array::steps::device_size;
use crate::array::{Built, Member, Result};
use raidlab_shell::{Command, Target};

pub(super) fn find(target: &dyn Target, prefix: &str) -> Result<Vec<Built>> {
    let scan = Command::reads("mdadm", ["--examine", "--scan", "--verbose"]);
    let output = target.run(&scan)?;
    let mut found: Vec<Built> = parse_scan(&output.stdout)
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

/// Names, without the host that mdadm puts before them, and devices.
fn parse_scan(text: &str) -> Vec<(String, Vec<String>)> {
    let mut arrays: Vec<(String, Vec<String>)> = Vec::new();
    for line in text.lines() {
        if line.starts_with("ARRAY ") {
            let named = line
                .split_whitespace()
                .find_map(|word| word.strip_prefix("name="));
            let name = named.map_or("", |name| name.rsplit(':').next().unwrap_or(name));
            arrays.push((name.to_owned(), Vec::new()));
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
ARRAY /dev/md/9  level=raid0 metadata=0.90 num-devices=2 UUID=5:6:7:8
   devices=/dev/sdd
";
        let devices = vec!["/dev/sdb".to_owned(), "/dev/sdc".to_owned()];
        assert_eq!(parse_scan(text), [("raidlab0".to_owned(), devices)]);
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic(text in "(ARRAY |name=|devices=|:|,|[ -~\n]){0,40}") {
            let _ = parse_scan(&text);
        }
    }
}
