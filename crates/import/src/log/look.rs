//! The state of an array that a log shows between two jobs: `/proc/mdstat`, `gmirror list`,
//! `gflash list`, `zpool status`.

use raidlab_systems::array::geom::{Geom, Part, parse_list};
use raidlab_systems::array::zfs::status::{PoolStatus, Section, parse_status};

/// One look at an array: its state at a moment.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Look {
    /// The system: `md`, `gmirror`, `gflash`, `zfs`.
    pub(crate) system: &'static str,
    /// The level in the system's own words.
    pub(crate) level: String,
    /// Members that are up to date, by name.
    pub(crate) in_sync: Vec<String>,
    /// Members that are being rebuilt.
    pub(crate) syncing: Vec<String>,
    /// The background activity, if any: `resync`, `recovery`, `check`, `reshape` or `scrub`.
    pub(crate) activity: Option<&'static str>,
    /// The progress of the activity, percent.
    pub(crate) percent: Option<f64>,
    /// The capacity of the array, bytes.
    pub(crate) capacity_bytes: Option<u64>,
    /// Whether md has a bitmap.
    pub(crate) bitmap: Option<bool>,
    /// Settings that the look shows.
    pub(crate) settings: Vec<(&'static str, String)>,
}

impl Look {
    /// The state in mdstat's letters, for members in this order.
    pub(crate) fn letters(&self, members: &[String]) -> String {
        let letter = |member: &String| {
            if self.in_sync.contains(member) {
                'U'
            } else {
                '_'
            }
        };
        format!("[{}]", members.iter().map(letter).collect::<String>())
    }

    /// The background activity in the store's words.
    pub(crate) fn activity(&self) -> &'static str {
        self.activity.unwrap_or("none")
    }
}

/// Finds every look in these lines, in order. Unreadable ones are left out.
pub(crate) fn looks(lines: &[&str]) -> Vec<Look> {
    let mut looks = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let rest = &lines[at..];
        let (length, found): (usize, Vec<Look>) = if lines[at].starts_with("Personalities") {
            let length = block(rest, |line| line.starts_with("unused devices"), true);
            (length, mdstat(&rest[..length]).into_iter().collect())
        } else if lines[at].starts_with("Geom name:") {
            let length = block(rest, |line| !is_of_list(line), false);
            let geoms = parse_list("log", &rest[..length].join("\n")).unwrap_or_default();
            (length, geoms.iter().filter_map(geom).collect())
        } else if lines[at].trim_start().starts_with("pool: ") {
            let length = block(rest, |line| line.starts_with("errors:"), true);
            let pools = parse_status(&rest[..length].join("\n")).unwrap_or_default();
            (length, pools.iter().map(pool).collect())
        } else {
            (1, Vec::new())
        };
        looks.extend(found);
        at += length.max(1);
    }
    looks
}

/// The number of lines of a block up to the line that ends it, with that line or without it.
pub(super) fn block(lines: &[&str], is_end: impl Fn(&str) -> bool, with_end: bool) -> usize {
    let end = lines.iter().skip(1).position(|line| is_end(line));
    end.map_or(lines.len(), |end| end + 1 + usize::from(with_end))
}

/// Whether a line can belong to a list of a GEOM class.
pub(super) fn is_of_list(line: &str) -> bool {
    const KEYS: [&str; 16] = [
        "Geom name",
        "State",
        "Components",
        "Balance",
        "Slice",
        "Flags",
        "GenID",
        "SyncID",
        "ID",
        "Providers",
        "Consumers",
        "Type",
        "Stripesize",
        "Total",
        "Status",
        "Mode",
    ];
    let numbered =
        line.starts_with(|first: char| first.is_ascii_digit()) && line.contains(". Name:");
    if line.trim_start().starts_with("pool: ") {
        return false;
    }
    let key = line.split_once(':').map_or("", |(key, _)| key);
    line.trim().is_empty() || line.starts_with(' ') || numbered || KEYS.contains(&key)
}

/// Splits `sdd1[2](F)` into the name, its number, and its mark.
fn member(word: &str) -> Option<(&str, u32, &str)> {
    let (name, rest) = word.split_once('[')?;
    let (number, mark) = rest.split_once(']')?;
    Some((name, number.parse().ok()?, mark))
}

/// Reads the activity and its progress: `recovery = 12.6% (37043392/292945152)`.
fn progress(line: &str) -> Option<(&'static str, f64)> {
    let verbs = ["recovery", "resync", "check", "reshape"];
    let (verb, value) = verbs.into_iter().find_map(|verb| {
        let (_, value) = line.split_once(&format!("{verb} ="))?;
        Some((verb, value))
    })?;
    let percent = value.trim().split('%').next()?.trim().parse().ok()?;
    Some((verb, percent))
}

/// Reads `[UU_]`: a letter for each slot.
fn slot_letters(word: &str) -> Option<&[u8]> {
    let letters = word.strip_prefix('[')?.strip_suffix(']')?.as_bytes();
    let known = letters.iter().all(|letter| matches!(letter, b'U' | b'_'));
    (known && !letters.is_empty()).then_some(letters)
}

/// Reads the first array of an mdstat.
fn mdstat(lines: &[&str]) -> Option<Look> {
    let at = lines.iter().position(|line| line.contains(" : active "))?;
    let (_, rest) = lines[at].split_once(" : active ")?;
    let words: Vec<&str> = rest.split_whitespace().collect();
    let level = words
        .iter()
        .find(|word| !word.starts_with('(') && !word.contains('['))?;
    let mut members: Vec<_> = words.iter().filter_map(|word| member(word)).collect();
    members.sort_by_key(|(_, number, _)| *number);
    let details: Vec<&str> = lines[at + 1..]
        .iter()
        .take_while(|line| line.starts_with(' ') && !line.contains(" : active "))
        .copied()
        .collect();
    let progress = details.iter().find_map(|line| progress(line));
    let blocks = details.first().and_then(|line| {
        let (count, _) = line.trim().split_once(" blocks")?;
        count.parse::<u64>().ok()?.checked_mul(1024)
    });
    let mut words = details.iter().flat_map(|line| line.split_whitespace());
    let letters = words.find_map(slot_letters);
    let is_recovery = progress.is_some_and(|(verb, _)| verb == "recovery");
    let mut look = Look {
        system: "md",
        level: (*level).to_owned(),
        activity: progress.map(|(verb, _)| verb),
        percent: progress.map(|(_, percent)| percent),
        capacity_bytes: blocks,
        bitmap: Some(
            details
                .iter()
                .any(|line| line.trim().starts_with("bitmap:")),
        ),
        ..Look::default()
    };
    members.retain(|(_, _, marks)| {
        !["(F)", "(S)", "(J)"]
            .iter()
            .any(|mark| marks.contains(mark))
    });
    for (name, number, _) in members {
        let is_up = letters.is_none_or(|letters| match letters.get(number as usize) {
            Some(letter) => *letter == b'U',
            // A member that replaces another one has a number beyond the slots, and in superblocks
            // of version 1 keeps it.
            None => letters.iter().filter(|letter| **letter == b'U').count() > look.in_sync.len(),
        });
        if is_up {
            look.in_sync.push(name.to_owned());
        } else if is_recovery {
            look.syncing.push(name.to_owned());
        }
    }
    Some(look)
}

/// The look of a mirror of gmirror or gflash; `None` for a disk.
fn geom(geom: &Geom) -> Option<Look> {
    let provider = geom.providers.first()?;
    let system = match provider.name.split_once('/')?.0 {
        "mirror" => "gmirror",
        "flash" => "gflash",
        _ => return None,
    };
    let mut look = Look {
        system,
        level: "mirror".to_owned(),
        capacity_bytes: provider.fields.number("Mediasize"),
        ..Look::default()
    };
    for (key, name) in [("Balance", "balance"), ("Slice", "slice")] {
        if let Some(value) = geom.fields.get(key) {
            look.settings.push((name, value.to_owned()));
        }
    }
    let is_data = |part: &&Part| part.fields.get("Role").is_none_or(|role| role == "DATA");
    for part in geom
        .consumers
        .iter()
        .filter(|part| !part.name.is_empty())
        .filter(is_data)
    {
        let percent = part.fields.get("Synchronized").and_then(|text| {
            let percent: f64 = text.trim_end_matches('%').trim().parse().ok()?;
            percent.is_finite().then_some(percent)
        });
        let state = part.fields.get("State").unwrap_or_default();
        if state == "SYNCHRONIZING" || percent.is_some_and(|percent| percent < 100.0) {
            look.syncing.push(part.name.clone());
            look.activity = Some("recovery");
            look.percent = percent;
        } else {
            look.in_sync.push(part.name.clone());
        }
    }
    Some(look)
}

fn pool(pool: &PoolStatus) -> Look {
    use raidlab_systems::SyncKind;
    let is_group = |name: &str| {
        ["mirror-", "raidz", "replacing-", "spare-"]
            .iter()
            .any(|begin| name.starts_with(begin))
    };
    let data: Vec<_> = pool
        .vdevs
        .iter()
        .filter(|vdev| vdev.depth > 0 && vdev.section == Section::Data)
        .collect();
    let group = data.iter().find(|vdev| is_group(&vdev.name));
    let mut look = Look {
        system: "zfs",
        level: group
            .map_or("single", |group| {
                group.name.split('-').next().unwrap_or_default()
            })
            .to_owned(),
        activity: pool.sync.map(|sync| match sync.kind {
            SyncKind::Resync => "resync",
            SyncKind::Recovery => "recovery",
            SyncKind::Check => "scrub",
            SyncKind::Reshape => "reshape",
        }),
        percent: pool.sync.and_then(|sync| sync.percent),
        ..Look::default()
    };
    for vdev in data.into_iter().filter(|vdev| !is_group(&vdev.name)) {
        if vdev.note.contains("resilvering") {
            look.syncing.push(vdev.name.clone());
        } else if vdev.state == "ONLINE" {
            look.in_sync.push(vdev.name.clone());
        }
    }
    look
}

#[cfg(test)]
mod tests {
    use super::looks;

    #[test]
    fn an_mdstat_of_a_recovery_tells_who_is_behind() {
        // geomflash/geomflash on GitHub, commit 53edd63, test_raid1_md.log.
        let text = "Personalities : [raid1] \n\
            md1 : active raid1 sdd1[2] sdc1[0]\n      \
            3907017472 blocks [2/1] [U_]\n      \
            [===>.................]  recovery = 15.5% (605751360/3907017472) finish=322.5min speed=170572K/sec\n      \n\
            unused devices: <none>";
        let lines: Vec<&str> = text.lines().collect();
        let looks = looks(&lines);
        assert_eq!(looks.len(), 1);
        let look = &looks[0];
        assert_eq!((look.system, look.level.as_str()), ("md", "raid1"));
        assert_eq!(look.in_sync, ["sdc1"]);
        assert_eq!(look.syncing, ["sdd1"]);
        assert_eq!(look.activity, Some("recovery"));
        assert_eq!(look.percent, Some(15.5));
        assert_eq!(look.capacity_bytes, Some(3_907_017_472 * 1024));
        assert_eq!(look.bitmap, Some(false));
        let members = ["sdc1".to_owned(), "sdd1".to_owned()];
        assert_eq!(look.letters(&members), "[U_]");
    }

    fn look_at(line: &str, slots: &str) -> super::Look {
        let text = format!(
            "Personalities : [raid1] [raid5] \nmd1 : active {line}\n      1000 blocks {slots}\n      \nunused devices: <none>"
        );
        let lines: Vec<&str> = text.lines().collect();
        looks(&lines).swap_remove(0)
    }

    /// mdadm fills the last member of a new RAID 5. Such a member keeps its number.
    #[test]
    fn a_member_s_number_may_lie_beyond_the_slots() {
        let new = look_at(
            "raid5 sdd[3] sdc[1] sdb[0]",
            "super 1.2 level 5, 512k chunk, algorithm 2 [3/3] [UUU]",
        );
        assert_eq!(new.in_sync, ["sdb", "sdc", "sdd"]);
        let filled = look_at("raid1 sdd1[2] sdc1[0] sde1[3](S)", "super 1.2 [2/2] [UU]");
        assert_eq!(filled.in_sync, ["sdc1", "sdd1"]);
        let other = look_at("raid1 sdd1[2] sdc1[1]", "super 1.2 [2/2] [UU]");
        assert_eq!(other.in_sync, ["sdc1", "sdd1"]);
        let back = look_at(
            "raid1 sdd1[1] sdc1[0]",
            "super 1.2 [2/1] [U_]\n      [>....]  recovery =  0.5% (5/1000) finish=1.0min speed=1K/sec",
        );
        assert_eq!(
            (&back.in_sync[..], &back.syncing[..]),
            (&["sdc1".to_owned()][..], &["sdd1".to_owned()][..])
        );
    }
}
