//! The state of an array, from `/sys`, and the progress of a sync, from `/proc/mdstat`.
//!
//! `/proc/mdstat` would be one file in place of a dozen, but it does not tell which slot a member
//! being rebuilt will fill. Only mdstat has the progress of a sync to the block (`status_resync` of
//! Linux drivers/md/md.c: `curr_resync` without what is in flight). `/sys` has the last checkpoint
//! (`sync_completed_show`: `curr_resync_completed`), which is set every sixteenth of the array, and
//! with a bitmap every five seconds. Reading either touches no disk.

use super::layout::{copies, raid10_lost};
use super::plan::{attribute, kernel};
use super::{MdLevel, MdSpec};
use crate::array::steps::kernel_name;
use crate::array::{
    ArrayStatus, Built, Health, MemberState, ReadBack, ReadState, Result, SyncKind, SyncStatus,
    SystemError,
};
use raidlab_shell::{Target, Watched};
use raidlab_units::Bytes;

/// The array's own files, which come before two for each member.
const FILES: [&str; 5] = [
    "array_state",
    "degraded",
    "sync_action",
    "sync_completed",
    "resync_start",
];

/// The file with all arrays and their syncs; the source after those of the members.
const MDSTAT: &str = "/proc/mdstat";

/// The contents of the sources, each without its line end.
struct Contents<'a> {
    array: &'a Built,
    texts: Vec<Option<&'a str>>,
}

impl Contents<'_> {
    fn text(&self, file: &str) -> Option<&str> {
        let place = FILES.iter().position(|name| *name == file)?;
        self.texts.get(place).copied().flatten()
    }

    /// The KiB done by a sync and their total, of each member or of the whole RAID 10; `None` where
    /// no sync runs.
    fn counts(&self) -> Option<[u64; 2]> {
        let place = FILES.len() + 2 * self.array.members.len();
        let text = self.texts.get(place).copied().flatten()?;
        let head = format!("{} :", kernel(&self.array.name));
        let lines = text.lines().skip_while(|line| !line.starts_with(&head));
        let mut own = lines
            .skip(1)
            .take_while(|line| line.starts_with([' ', '\t']));
        own.find_map(|line| {
            let (counts, _) = line.split_once("% (")?.1.split_once(')')?;
            let (done, total) = counts.split_once('/')?;
            Some([done.parse().ok()?, total.parse().ok()?])
        })
    }

    fn unreadable(&self, file: &str, problem: String) -> SystemError {
        SystemError::unreadable(attribute(&self.array.name, file), 1, problem)
    }

    fn number(&self, file: &str) -> Result<Option<u64>> {
        self.text(file)
            .map(|text| {
                text.parse()
                    .map_err(|_| self.unreadable(file, format!("`{text}` is no number")))
            })
            .transpose()
    }
}

impl ReadState for MdSpec {
    fn sources(&self, array: &Built) -> Vec<Watched> {
        let members = array.members.iter().flat_map(|member| {
            let name = kernel_name(&member.device);
            [format!("dev-{name}/slot"), format!("dev-{name}/state")]
        });
        FILES
            .iter()
            .map(|file| (*file).to_owned())
            .chain(members)
            .map(|file| attribute(&array.name, &file))
            .chain([MDSTAT.to_owned()])
            .map(Watched::File)
            .collect()
    }

    fn interpret(&self, array: &Built, contents: &[Option<String>]) -> Result<ArrayStatus> {
        let contents = Contents {
            array,
            texts: contents
                .iter()
                .map(|text| text.as_deref().map(str::trim))
                .collect(),
        };
        let Some(state) = contents.text("array_state") else {
            return Err(SystemError::no_array(&array.name));
        };
        let sync = sync(self, &contents)?;
        let recovering = sync
            .as_ref()
            .is_some_and(|sync| sync.kind == SyncKind::Recovery);
        let members = members(self, &contents, recovering)?;
        let degraded = contents.number("degraded")?.unwrap_or(0);
        let health = if !matches!(state, "clear" | "inactive" | "broken") && lives(self, &members) {
            if degraded > 0 {
                Health::Degraded
            } else {
                Health::Optimal
            }
        } else {
            Health::Failed
        };
        Ok(ArrayStatus {
            health,
            members,
            sync,
        })
    }

    fn settings(&self, target: &dyn Target, array: &Built) -> Result<Vec<ReadBack>> {
        super::settings::settings(self, target, array)
    }

    fn find(&self, target: &dyn Target, prefix: &str) -> Result<Vec<Built>> {
        super::find::find(target, prefix)
    }
}

/// Whether enough members hold data for the array to work.
fn lives(spec: &MdSpec, members: &[MemberState]) -> bool {
    let active = &members[..spec.active(members.len())];
    let good = active.iter().map(|state| *state == MemberState::InSync);
    let good: Vec<bool> = good.collect();
    let lost = good.iter().filter(|good| !**good).count();
    match spec.level {
        MdLevel::Linear | MdLevel::Raid0 => lost == 0,
        MdLevel::Raid1 => lost < good.len(),
        MdLevel::Raid4 | MdLevel::Raid5 => lost <= 1,
        MdLevel::Raid6 => lost <= 2,
        MdLevel::Raid10 => !raid10_lost(spec.raid10_layout(), &good),
    }
}

/// The states slot by slot, then of the spares and the journal, then of members that are faulty or
/// gone and have no slot any more.
fn members(spec: &MdSpec, contents: &Contents<'_>, recovering: bool) -> Result<Vec<MemberState>> {
    let count = contents.array.members.len();
    let active = spec.active(count);
    let mut slots: Vec<Option<MemberState>> = vec![None; count];
    let mut homeless = Vec::new();
    for (place, member) in contents.array.members.iter().enumerate() {
        let source = FILES.len() + 2 * place;
        let text = |at: usize| contents.texts.get(at).copied().flatten();
        let (Some(slot), Some(flags)) = (text(source), text(source + 1)) else {
            continue;
        };
        let has = |flag: &str| flags.split(',').any(|found| found == flag);
        let number = match slot {
            "none" | "journal" => None,
            slot => Some(slot.parse::<usize>().map_err(|_| {
                let file = format!("dev-{}/slot", kernel_name(&member.device));
                contents.unreadable(&file, format!("`{slot}` is no slot"))
            })?),
        };
        let state = if has("faulty") {
            MemberState::Faulty
        } else if has("in_sync") || has("journal") || slot == "journal" {
            MemberState::InSync
        } else if number.is_some() && recovering {
            MemberState::Recovering
        } else {
            MemberState::Spare
        };
        match number {
            Some(number) if number < active => slots[number] = Some(state),
            _ => homeless.push((place, state)),
        }
    }
    // A spare, the journal, or a failed member shows in its own slot, or else in the
    // first empty one.
    for (place, state) in homeless {
        let own = slots[place].is_none().then_some(place);
        let free = own.or_else(|| slots.iter().position(Option::is_none));
        if let Some(free) = free {
            slots[free] = Some(state);
        }
    }
    let slots = slots.into_iter();
    Ok(slots
        .map(|slot| slot.unwrap_or(MemberState::Missing))
        .collect())
}

fn sync(spec: &MdSpec, contents: &Contents<'_>) -> Result<Option<SyncStatus>> {
    let action = contents.text("sync_action").unwrap_or("idle");
    let kind = match action {
        "resync" => SyncKind::Resync,
        "recover" => SyncKind::Recovery,
        "check" | "repair" => SyncKind::Check,
        "reshape" => SyncKind::Reshape,
        // An array without a write since it was assembled postpones its resync, but still needs it.
        "idle" | "frozen" => {
            let owed = contents
                .text("resync_start")
                .is_some_and(|start| start != "none");
            return Ok(owed.then_some(SyncStatus::of(SyncKind::Resync, None)));
        }
        other => {
            let problem = format!("`{other}` is no action of sync");
            return Err(contents.unreadable("sync_action", problem));
        }
    };
    let progress = progress(contents)?;
    Ok(Some(SyncStatus {
        kind,
        percent: progress.map(|(percent, _)| percent),
        member: progress.map(|(_, total)| on_each_member(spec, contents, kind, total)),
    }))
}

/// The part of each member in a sync's count of sectors: in a RAID 10 all syncs but recovery count
/// sectors of the array (`raid10_size` as `resync_max_sectors`), everywhere else they count sectors
/// of a member.
fn on_each_member(spec: &MdSpec, contents: &Contents<'_>, kind: SyncKind, total: u64) -> Bytes {
    let bytes = total.saturating_mul(512);
    if spec.level != MdLevel::Raid10 || kind == SyncKind::Recovery {
        return Bytes(bytes);
    }
    let copies = copies(spec.raid10_layout()) as u64;
    let active = spec.active(contents.array.members.len()).max(1) as u64;
    Bytes(bytes.saturating_mul(copies) / active)
}

/// The progress in percent, and the total of sectors. `sync_completed` holds `none`, `delayed`, or
/// `done / total` in sectors.
fn progress(contents: &Contents<'_>) -> Result<Option<(f64, u64)>> {
    let Some(text) = contents.text("sync_completed") else {
        return Ok(None);
    };
    if matches!(text, "none" | "delayed") {
        return Ok(None);
    }
    let counts = text.split_once('/').and_then(|(done, total)| {
        let done: u64 = done.trim().parse().ok()?;
        let total: u64 = total.trim().parse().ok().filter(|total| *total > 0)?;
        Some((done, total))
    });
    match counts {
        Some((done, total)) => {
            let counts = contents.counts().filter(|[_, all]| *all == total / 2);
            let done = counts.map_or(done, |[done, _]| 2 * done);
            let percent = done.min(total) as f64 * 100.0 / total as f64;
            Ok(Some((percent, total)))
        }
        None => Err(contents.unreadable(
            "sync_completed",
            format!("`{text}` is not `sectors / sectors`"),
        )),
    }
}
