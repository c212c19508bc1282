//! An array's events in the form of the control socket.

use crate::control::EventReport;
use raidlab_array::Event;
use raidlab_units::Nanos;

/// Returns the report of an event in the words of the control socket.
pub(super) fn event_report(now: Nanos, event: Event) -> EventReport {
    let (what, device, start, count) = match event {
        Event::MemberFailed(slot) => ("member-failed", Some(slot), None, None),
        Event::MemberRemoved(slot) => ("member-removed", Some(slot), None, None),
        Event::MemberAdded(slot) => ("member-added", Some(slot), None, None),
        Event::SyncStarted(start) => ("sync-started", None, Some(start), None),
        Event::SyncCheckpoint(start) => ("sync-checkpoint", None, Some(start), None),
        Event::SyncFinished => ("sync-finished", None, None, None),
        Event::SyncAborted => ("sync-aborted", None, None, None),
        Event::Mismatch { start, count } => ("mismatch", None, Some(start), Some(count)),
        Event::ReadErrorCorrected { slot, start, count } => {
            ("read-error-corrected", Some(slot), Some(start), Some(count))
        }
        Event::BadBlocksFound { slot, start, count } => {
            ("bad-blocks-found", Some(slot), Some(start), Some(count))
        }
        Event::BadBlocksCleared { slot, start, count } => {
            ("bad-blocks-cleared", Some(slot), Some(start), Some(count))
        }
    };
    EventReport {
        at_ns: now.0,
        what: what.to_owned(),
        device: device.map(|slot| u32::from(slot.0)),
        start: start.map(|sectors| sectors.0),
        count: count.map(|sectors| sectors.0),
    }
}
