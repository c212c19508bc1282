//! Parsing of `/proc/self/mountinfo` and `/proc/swaps`.

use crate::text::unescape;

/// A line of `/proc/self/mountinfo` (proc(5)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// The device number, `8:1`; major 0 for file systems without a device of their own, btrfs and
    /// ZFS among them.
    pub device_number: String,
    /// The folder on which it is mounted.
    pub at: String,
    /// The type of the file system: `ext4`.
    pub filesystem: String,
    /// The source of the mount: a device's path, a pool's data set.
    pub source: String,
}

/// Parses the mounts, in the kernel's order; lines of another form are skipped.
pub fn parse_mounts(mountinfo: &str) -> Vec<Mount> {
    mountinfo.lines().filter_map(parse_mount).collect()
}

fn parse_mount(line: &str) -> Option<Mount> {
    let (left, right) = line.split_once(" - ")?;
    let mut left = left.split(' ');
    let device_number = left.nth(2)?.to_owned();
    let at = unescape(left.nth(1)?);
    let mut right = right.split(' ');
    Some(Mount {
        device_number,
        at,
        filesystem: unescape(right.next()?),
        source: unescape(right.next()?),
    })
}

/// Parses the devices of `/proc/swaps`.
pub(crate) fn parse_swaps(swaps: &str) -> Vec<String> {
    swapped_to(swaps, "partition")
}

/// Parses the files of `/proc/swaps`, which are in mounted file systems.
pub(crate) fn parse_swap_files(swaps: &str) -> Vec<String> {
    swapped_to(swaps, "file")
}

fn swapped_to(swaps: &str, kind: &str) -> Vec<String> {
    swaps
        .lines()
        .skip(1)
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            let path = words.next()?;
            (words.next()? == kind).then(|| unescape(path))
        })
        .collect()
}

/// Parses the members in `/proc/mdstat`, active or not: the kernel name of each, with the array and
/// its level (`md0 (md raid1)`).
pub(crate) fn parse_members(mdstat: &str) -> Vec<(String, String)> {
    let mut members = Vec::new();
    for line in mdstat.lines() {
        let Some((array, state)) = line.split_once(" : ") else {
            continue;
        };
        if !array.starts_with("md") {
            continue;
        }
        let words: Vec<&str> = state.split_whitespace().collect();
        let level = words
            .iter()
            .find(|word| word.starts_with("raid") || ["linear", "multipath"].contains(word))
            .map_or_else(|| words.first().copied().unwrap_or_default(), |word| *word);
        for word in &words {
            if let Some((name, _)) = word.split_once('[') {
                members.push((name.to_owned(), format!("{array} (md {level})")));
            }
        }
    }
    members
}

#[cfg(test)]
mod tests {
    use super::{parse_members, parse_mounts, parse_swap_files, parse_swaps};

    #[test]
    fn mounts_with_and_without_optional_fields() {
        let text = "36 35 98:0 /mnt1 /mnt\\0402 rw,noatime master:1 - ext3 /dev/root rw\n\
                    42 27 7:0 / /a rw - ext4 /dev/loop0 rw\nrubbish\n";
        let mounts = parse_mounts(text);
        assert_eq!(mounts.len(), 2);
        assert_eq!(mounts[0].at, "/mnt 2");
        assert_eq!(mounts[0].filesystem, "ext3");
        assert_eq!(mounts[1].device_number, "7:0");
        assert_eq!(mounts[1].source, "/dev/loop0");
    }

    #[test]
    fn swap_devices_and_swap_files_are_told_apart() {
        let text = "Filename\tType\tSize\tUsed\tPriority\n\
                    /dev/loop6  partition\t262140\t0\t-2\n/swapfile file 1 0 -3\n";
        assert_eq!(parse_swaps(text), ["/dev/loop6"]);
        assert_eq!(parse_swap_files(text), ["/swapfile"]);
    }

    #[test]
    fn members_of_active_and_inactive_arrays() {
        let text = "Personalities : [raid1]\n\
                    md1 : active (auto-read-only) raid1 sdd1[2](F) sdc1[0]\n      \
                    3907017472 blocks super 1.2 [2/1] [U_]\n\
                    md127 : inactive sde[0](S)\nunused devices: <none>\n";
        let members = parse_members(text);
        let expected = [
            ("sdd1", "md1 (md raid1)"),
            ("sdc1", "md1 (md raid1)"),
            ("sde", "md127 (md inactive)"),
        ];
        assert_eq!(
            members,
            expected.map(|(name, of)| (name.to_owned(), of.to_owned()))
        );
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_taken(text in "(?s).*") {
            parse_mounts(&text);
            parse_swaps(&text);
            parse_members(&text);
        }
    }
}
