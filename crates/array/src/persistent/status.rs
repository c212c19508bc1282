//! The status of a running array.

use super::device::Place;
use super::{Mode, PersistentArray};
use crate::engine::SyncAction;
use crate::recovery::{SyncKind, SyncStatus};
use crate::request::Slot;
use raidlab_geometry::{Layout, Level};
use raidlab_metadata::Uuid;
use raidlab_units::{Sectors, Span, SpanSet};
use std::fmt;

/// The state of an array in the words of mdadm's `State :` line; its `Display` is that line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArrayState {
    /// Whether writes are under way, or were a moment ago.
    pub active: bool,
    /// Whether some slot has no member in sync.
    pub degraded: bool,
    /// Whether a recovery is filling a member, or a replacement one that is to take its place.
    pub recovering: bool,
    /// Whether a resync runs.
    pub resyncing: bool,
    /// Whether a resync is needed, and does not run at the moment.
    pub not_in_sync: bool,
    /// Whether members are being compared (check or repair).
    pub checking: bool,
    /// Whether writes are refused.
    pub read_only: bool,
    /// Whether writes fail: the array has lost too much, or its state cannot be recorded.
    pub failed: bool,
}

impl fmt::Display for ArrayState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.active { "active" } else { "clean" })?;
        for (set, word) in [
            (self.failed, "FAILED"),
            (self.degraded && !self.failed, "degraded"),
            (self.recovering, "recovering"),
            (self.resyncing, "resyncing"),
            (self.checking, "checking"),
            (self.not_in_sync && !self.resyncing, "resyncing (PENDING)"),
            (self.read_only, "read-only"),
        ] {
            if set {
                write!(formatter, ", {word}")?;
            }
        }
        Ok(())
    }
}

/// The status of one device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceStatus {
    /// The handle of the device, which commands and events use.
    pub handle: Slot,
    /// The path of the device.
    pub name: String,
    /// The slot that the device serves.
    pub slot: Option<Slot>,
    /// The slot whose member the device is to replace.
    pub replaces: Option<Slot>,
    /// The state in mdadm's words: `active sync`, `spare rebuilding`, `spare`, `faulty`.
    pub state: &'static str,
    /// The sector of its data area below which it is filled, if it is being filled.
    pub recovered_below: Option<Sectors>,
    /// Sectors with read errors that were corrected in the device's life.
    pub corrected_read_errors: u32,
    /// Sectors of the device's data area whose correct bytes are lost.
    pub bad_sectors: Sectors,
}

/// The progress of a running sync.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyncProgress {
    /// The kind of the sync.
    pub kind: SyncKind,
    /// The position below which the sync is done.
    pub position: Sectors,
    /// The position at which the sync ends.
    pub total: Sectors,
    /// The number of times that the sync slept, as it was above its maximum speed.
    pub sleeps: u64,
    /// The sectors a second above which the sync sleeps, as positions count them; `None` where it
    /// does not for that reason.
    pub fastest: Option<Sectors>,
}

impl From<SyncStatus> for SyncProgress {
    fn from(status: SyncStatus) -> Self {
        Self {
            kind: status.kind,
            position: status.position,
            total: status.total,
            sleeps: status.sleeps,
            fastest: status.fastest,
        }
    }
}

impl SyncProgress {
    /// All positions from the sync's own to its end, as one range.
    #[must_use]
    pub fn rest(&self) -> SpanSet {
        SpanSet::from_iter([Span::between(self.position, self.total)])
    }

    /// Progress in percent, 0 to 100.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    pub fn percent(&self) -> f64 {
        if self.total.0 == 0 {
            return 100.0;
        }
        self.position.0 as f64 / self.total.0 as f64 * 100.0
    }
}

/// The status of a running array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArrayStatus {
    /// The array's name, `host:name`.
    pub name: String,
    /// The array's UUID, which every member's superblock repeats.
    pub uuid: Uuid,
    /// The RAID level that the array has.
    pub level: Level,
    /// The placement of data, parity and copies on the members; none for linear and RAID 1.
    pub layout: Layout,
    /// Sectors of a chunk.
    pub chunk: Sectors,
    /// The size that the array offers to its users, in sectors.
    pub size: Sectors,
    /// The activity and the faults of the array.
    pub state: ArrayState,
    /// The slots, `U` for a member in sync, as in `/proc/mdstat`.
    pub health: String,
    /// The event count of the superblocks.
    pub events: u64,
    /// The devices of the array, ordered by their handles.
    pub devices: Vec<DeviceStatus>,
    /// The sync that runs, if any.
    pub sync: Option<SyncProgress>,
    /// Sectors that the last check or repair found to differ, or the running one so far:
    /// md's `mismatch_cnt`.
    pub mismatches: Sectors,
    /// The number of dirty chunks of the write-intent bitmap, and of all its chunks.
    pub bitmap_chunks: Option<(u64, u64)>,
    /// Sectors of each member's write log; 0 if there is none.
    pub log: Sectors,
    /// The number of requests that wait until metadata are written.
    pub held: usize,
    /// Warnings about the array, which the administrator may want to act on.
    pub warnings: Vec<String>,
}

impl PersistentArray {
    /// Returns the status of the array.
    #[must_use]
    pub fn status(&self) -> ArrayStatus {
        let states = self.engine.member_states();
        let in_sync = |state: &crate::MemberState| *state == crate::MemberState::InSync;
        let letters = states
            .iter()
            .map(|state| if in_sync(state) { 'U' } else { '_' });
        ArrayStatus {
            name: self.array.name.clone(),
            uuid: self.array.array_uuid,
            level: self.level,
            layout: self.layout,
            chunk: self.array.chunk,
            size: self.engine.size(),
            state: self.state(),
            health: format!("[{}]", letters.collect::<String>()),
            events: self.array.events,
            devices: self.device_statuses(),
            sync: self.sync_progress(),
            mismatches: self.syncs.mismatches,
            bitmap_chunks: self
                .intent
                .as_ref()
                .map(|intent| (intent.set_count(), intent.chunk_count())),
            log: self
                .ring
                .map_or(Sectors::ZERO, |ring| Sectors(ring.end.0 - ring.start.0)),
            held: self.held.len() + self.held_finished.len(),
            warnings: self.warnings(),
        }
    }

    fn sync_progress(&self) -> Option<SyncProgress> {
        if let Some(status) = self.engine.sync_status() {
            return Some(status.into());
        }
        // Nothing is copied to a replacement while nothing may be written.
        let runs = self.mode == Mode::ReadWrite;
        let (position, total) = self.replacement_progress().filter(|_| runs)?;
        Some(SyncProgress {
            kind: SyncKind::Recovery,
            position,
            total,
            sleeps: 0,
            fastest: None,
        })
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let wants_log = self.settings.session != 0 && self.level.parity_count() > 0;
        if wants_log && self.ring.is_none() {
            let cramped: Vec<&str> = self
                .devices
                .values()
                .filter(|device| device.log_area.is_none())
                .map(|device| device.name.as_str())
                .collect();
            let whose = match cramped.is_empty() {
                true => "the members have no room for one in common".to_owned(),
                false => format!("no room for one on {}", cramped.join(", ")),
            };
            warnings.push(format!(
                "no write log is kept ({whose}): after a crash of the degraded array, data may be lost"
            ));
        }
        for device in self.devices.values() {
            if device.place == Place::Spare && !self.is_fit(device) {
                warnings.push(format!(
                    "the spare {} has no room for what a member holds here",
                    device.name
                ));
            }
        }
        warnings
    }

    fn state(&self) -> ArrayState {
        let kind = self.sync_progress().map(|sync| sync.kind);
        ArrayState {
            active: self.active,
            degraded: self.is_degraded(),
            recovering: kind == Some(SyncKind::Recovery),
            resyncing: kind == Some(SyncKind::Resync)
                || self.syncs.asked == Some(SyncAction::Resync),
            not_in_sync: !self.is_in_sync(),
            checking: kind.is_some_and(SyncKind::is_on_demand),
            read_only: matches!(self.mode, Mode::ReadOnly | Mode::Untouched),
            failed: self.mode == Mode::Broken,
        }
    }

    fn device_statuses(&self) -> Vec<DeviceStatus> {
        let devices = self.devices.iter().map(|(handle, device)| DeviceStatus {
            handle: *handle,
            name: device.name.clone(),
            slot: device.place.slot(),
            replaces: match device.place {
                Place::Replacing { slot, .. } => Some(slot),
                _ => None,
            },
            state: match device.place {
                Place::InSync(_) => "active sync",
                Place::Recovering { .. } | Place::Replacing { .. } => "spare rebuilding",
                Place::Spare => "spare",
                Place::Faulty => "faulty",
            },
            recovered_below: match device.place {
                Place::Recovering { below, .. } | Place::Replacing { below, .. } => Some(below),
                _ => None,
            },
            corrected_read_errors: device.own.corrected_read_errors,
            bad_sectors: Sectors(device.bad_blocks.iter().map(|bad| bad.count.0).sum()),
        });
        devices.collect()
    }
}
