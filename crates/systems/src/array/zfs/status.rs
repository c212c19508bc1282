//! Parsing of the output of `zpool status`.
//!
//! The text has kept its form since 2010: `key: value` lines, continued by
//! indented ones, and after `config:` a table of the vdevs, indented by two
//! blanks for each level, with headings (`logs`, `cache`, `spares`) between.
//! Scans changed their wording:
//!
//! - to 0.7: `258G scanned out of 3.01T at 71.9M/s, 11h9m to go`;
//! - 0.8 to 2.1: `6.18T scanned at 644M/s, 4.26T issued at 444M/s, 6.42T total`;
//! - 2.2 on: `3.20T / 8.00T scanned at 1.10G/s, 1.60T / 8.00T issued at 512M/s`;
//!
//! and all of them end with `66.46% done`. So the percentage is taken from there, the rate from
//! `issued at`, else from the first `at`. Without `-P` and `-L` the devices are named as they were
//! given at creation, without `/dev/`.
//!
//! Source: openzfs/zfs cmd/zpool/zpool_main.c, `print_scan_status`,
//! `print_status_config`.

use crate::array::steps::kernel_name;
use crate::array::{
    ArrayStatus, Built, Health, Member, MemberState, Result, SyncKind, SyncStatus, SystemError,
};

/// The use of a vdev, by the heading that it is under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    /// Data, including the pool's own line.
    Data,
    /// The intent log (SLOG).
    Logs,
    /// The second-level cache (L2ARC) of the pool.
    Cache,
    /// The hot spares, which hold nothing yet.
    Spares,
    /// Other vdevs: metadata, small blocks, deduplication tables.
    Other,
}

impl Section {
    fn of_heading(word: &str) -> Option<Self> {
        match word {
            "logs" => Some(Self::Logs),
            "cache" => Some(Self::Cache),
            "spares" => Some(Self::Spares),
            "special" | "dedup" => Some(Self::Other),
            _ => None,
        }
    }
}

/// A line of the table of vdevs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vdev {
    /// The depth: 0 for the pool, 1 for the level below it, and so on.
    pub depth: usize,
    /// The part of the pool that the vdev belongs to.
    pub section: Section,
    /// The name: `mirror-0`, `sdb`, or a number where the device is gone.
    pub name: String,
    /// The state: `ONLINE`, `DEGRADED`, `FAULTED`, `OFFLINE`, `REMOVED`,
    /// `UNAVAIL`, `AVAIL`, `INUSE`.
    pub state: String,
    /// The text after the counters: `(resilvering)`, `was /dev/sdd1`.
    pub note: String,
}

/// The status of one pool.
#[derive(Debug, Clone, PartialEq)]
pub struct PoolStatus {
    /// The name of the pool, as `zpool status` has it.
    pub name: String,
    /// The pool's state: `ONLINE`, `DEGRADED`, `SUSPENDED`, ...
    pub state: String,
    /// The background activity, if any: a resilver takes precedence over a scrub, and a
    /// scrub over others.
    pub sync: Option<SyncStatus>,
    /// The table of vdevs, line by line.
    pub vdevs: Vec<Vdev>,
}

/// The keys at the beginning of lines.
const KEYS: &str = "pool state status action see scan scrub remove expand checkpoint config \
    errors dedup id";

/// Reads the output of `zpool status` about any number of pools.
///
/// # Errors
/// When something comes before the first `pool:`, or a line of the table has no state.
pub fn parse_status(text: &str) -> Result<Vec<PoolStatus>> {
    let mut pools: Vec<PoolStatus> = Vec::new();
    let mut key = "";
    let mut scan = String::new();
    let mut table = Table::default();
    for (index, line) in text.lines().enumerate() {
        let unreadable =
            |problem: String| SystemError::unreadable("zpool status", index + 1, problem);
        if line.trim().is_empty() {
            continue;
        }
        let found = key_of(line);
        if found.is_some()
            && let Some(pool) = pools.last_mut()
        {
            keep_sync(pool, &std::mem::take(&mut scan));
        }
        let value = match found {
            Some((new, value)) => {
                key = new;
                value
            }
            None => line.trim(),
        };
        if found.is_some() && key == "pool" {
            table = Table::default();
            pools.push(PoolStatus {
                name: value.to_owned(),
                state: String::new(),
                sync: None,
                vdevs: Vec::new(),
            });
            continue;
        }
        let Some(pool) = pools.last_mut() else {
            return Err(unreadable(format!("`{}` belongs to no pool", line.trim())));
        };
        match key {
            "state" if found.is_some() => value.clone_into(&mut pool.state),
            "scan" | "scrub" | "remove" | "expand" => {
                scan.push(' ');
                scan.push_str(value);
            }
            "config" if found.is_none() => {
                pool.vdevs.extend(table.line(line).map_err(unreadable)?);
            }
            _ => {}
        }
    }
    if let Some(pool) = pools.last_mut() {
        keep_sync(pool, &scan);
    }
    Ok(pools)
}

/// The key that begins a line, and the text after it.
fn key_of(line: &str) -> Option<(&'static str, &str)> {
    if line.starts_with('\t') || line.starts_with("    ") {
        return None;
    }
    let (word, value) = line.trim().split_once(':')?;
    let key = KEYS.split_whitespace().find(|key| *key == word)?;
    Some((key, value.trim()))
}

/// The form of the table that is being read.
#[derive(Default)]
struct Table {
    /// The number of columns before the heading's `NAME`.
    margin: usize,
    /// The number of counters after a state.
    counters: usize,
    section: Option<Section>,
}

impl Table {
    fn line(&mut self, line: &str) -> Result<Option<Vdev>, String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        // A tab is eight columns: some lines are quoted with blanks instead.
        let indent: usize = line
            .chars()
            .take_while(|c| c.is_whitespace())
            .map(|c| if c == '\t' { 8 } else { 1 })
            .sum();
        if let ["NAME", "STATE", counters @ ..] = words.as_slice() {
            self.margin = indent;
            self.counters = counters.len();
            return Ok(None);
        }
        if let [heading] = words.as_slice()
            && let Some(section) = Section::of_heading(heading)
        {
            self.section = Some(section);
            return Ok(None);
        }
        let [name, state, rest @ ..] = words.as_slice() else {
            return Err(format!("no state in `{}`", line.trim()));
        };
        let section = self.section.unwrap_or(Section::Data);
        let skip = match section {
            Section::Spares => 0,
            _ => self.counters,
        };
        Ok(Some(Vdev {
            depth: indent.saturating_sub(self.margin) / 2,
            section,
            name: (*name).to_owned(),
            state: (*state).to_owned(),
            note: rest.get(skip..).unwrap_or(&[]).join(" "),
        }))
    }
}

/// Stores the activity in a scan's text, unless a more important one is under way.
fn keep_sync(pool: &mut PoolStatus, scan: &str) {
    let Some(new) = sync_of(scan) else { return };
    let rank = |kind| match kind {
        SyncKind::Recovery => 0,
        SyncKind::Check => 1,
        SyncKind::Resync | SyncKind::Reshape => 2,
    };
    match &pool.sync {
        Some(old) if rank(old.kind) <= rank(new.kind) => {}
        _ => pool.sync = Some(new),
    }
}

/// The activity in a scan's text; `None` where it ended, was cancelled or paused, or there
/// never was one.
fn sync_of(scan: &str) -> Option<SyncStatus> {
    let (what, _) = scan.split_once("in progress")?;
    let kind = if what.contains("resilver") {
        SyncKind::Recovery
    } else if what.contains("scrub") {
        SyncKind::Check
    } else {
        SyncKind::Reshape
    };
    let percent = scan.split_once("% done").and_then(|(before, _)| {
        let number = before
            .rsplit(|c: char| !c.is_ascii_digit() && c != '.')
            .next()?;
        number.parse::<f64>().ok().map(|percent| percent.min(100.0))
    });
    Some(SyncStatus::of(kind, percent))
}

/// The state of an array slot by slot.
///
/// The pool's own state is not enough: it stays ONLINE when a member is
/// detached from a mirror and while a new one is resilvered.
pub(super) fn interpret(pool: &PoolStatus, array: &Built) -> ArrayStatus {
    let members = array.members.iter();
    let members: Vec<MemberState> = members.map(|member| member_state(pool, member)).collect();
    let complete = members.iter().all(|state| *state == MemberState::InSync);
    let recovering = matches!(&pool.sync, Some(sync) if sync.kind == SyncKind::Recovery);
    ArrayStatus {
        health: match pool.state.as_str() {
            "ONLINE" if complete && !recovering => Health::Optimal,
            "ONLINE" | "DEGRADED" => Health::Degraded,
            _ => Health::Failed,
        },
        members,
        sync: pool.sync,
    }
}

/// A member's state, from the last line about it: while it is replaced by itself the old line comes
/// before the new one.
fn member_state(pool: &PoolStatus, member: &Member) -> MemberState {
    let lines = pool.vdevs.iter().enumerate();
    let Some((index, vdev)) = lines.rev().find(|(_, vdev)| is(vdev, &member.device)) else {
        return MemberState::Missing;
    };
    let mut above = pool.vdevs[..index].iter().rev();
    let parent = above.find(|other| other.depth < vdev.depth);
    let is_new = parent.is_some_and(|parent| {
        parent.name.starts_with("replacing-") || parent.name.starts_with("spare-")
    });
    let resilvers = matches!(&pool.sync, Some(sync) if sync.kind == SyncKind::Recovery);
    let marked = ["(resilvering)", "(awaiting resilver)"]
        .iter()
        .any(|mark| vdev.note.contains(mark));
    match vdev.state.as_str() {
        "ONLINE" if marked || (is_new && resilvers) => MemberState::Recovering,
        // A degraded leaf has had errors, but holds its data and is in use.
        "ONLINE" | "DEGRADED" | "INUSE" => MemberState::InSync,
        "FAULTED" => MemberState::Faulty,
        "AVAIL" => MemberState::Spare,
        _ => MemberState::Missing,
    }
}

/// Whether a line is about this device: by its name as printed, or, where it is gone, by `was` and
/// the path of the partition that ZFS made on it.
fn is(vdev: &Vdev, device: &str) -> bool {
    let file = device.rsplit('/').next().unwrap_or(device);
    if [device, kernel_name(device), file].contains(&vdev.name.as_str()) {
        return true;
    }
    let Some(was) = vdev.note.strip_prefix("was ") else {
        return false;
    };
    let path = was.split(' ').next().unwrap_or(was);
    let path = path.strip_suffix("/old").unwrap_or(path);
    let partition = path.strip_prefix(device);
    partition.is_some_and(|rest| ["", "1", "p1", "-part1"].contains(&rest))
}
