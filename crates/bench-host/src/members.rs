//! The members' work during a job, by the kernel's counters.

use crate::moment::Moment;
use crate::session::Session;
use raidlab_inventory::counters::Activity;
use raidlab_lab::{EventKind, PlannedJob};
use raidlab_store::MemberUse;
use raidlab_systems::{ArrayStatus, MemberState};

/// The bytes that a member moved for a rebuild, which no system counts: 0 where no rebuild ran at
/// either end of the job, and none of the `events` may have begun one; otherwise unknown. The loss
/// of a member begins a rebuild only where there is a spare.
fn sync_bytes(
    states: [Option<&ArrayStatus>; 2],
    events: impl IntoIterator<Item = EventKind>,
) -> Option<u64> {
    let quiet = states
        .iter()
        .all(|state| state.is_some_and(|state| state.sync.is_none()));
    let mut members = states.iter().flatten().flat_map(|state| &state.members);
    let has_spare = members.any(|state| *state == MemberState::Spare);
    let may_begin = |event| match event {
        EventKind::Remove | EventKind::Fail => has_spare,
        EventKind::Insert | EventKind::ReAdd => true,
    };
    (quiet && !events.into_iter().any(may_begin)).then_some(0)
}

/// The work of each member between two moments, by the kernel's counters.
pub fn of(
    session: &Session<'_>,
    job: &PlannedJob,
    before: &Moment,
    after: &Moment,
) -> Vec<MemberUse> {
    let activity = Activity::between(&before.counters, &after.counters);
    let states = [before, after].map(|moment| moment.status.as_ref());
    let events = job.events.iter().map(|timed| timed.event.kind);
    let sync_bytes = sync_bytes(states, events);
    let disks = session.machine.disks();
    let members = session.built.members.iter().enumerate();
    members
        .map(|(slot, member)| {
            let disk = disks.iter().find(|one| one.disk.device == member.device);
            let model = disk.and_then(|chosen| chosen.disk.model.clone());
            let name = crate::sampler::kernel_name(&member.device);
            let done = activity
                .devices
                .get(name)
                .map_or_else(Default::default, |device| device.done);
            MemberUse {
                member: slot.to_string(),
                model: model.unwrap_or_else(|| name.to_owned()),
                read_ios: done.reads,
                read_bytes: done.read_bytes,
                read_ticks_ns: done.read_ms.saturating_mul(1_000_000),
                write_ios: done.writes,
                write_bytes: done.write_bytes,
                write_ticks_ns: done.write_ms.saturating_mul(1_000_000),
                busy_ns: done.busy_ms.saturating_mul(1_000_000),
                sync_bytes,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::sync_bytes;
    use raidlab_lab::EventKind;
    use raidlab_systems::{ArrayStatus, Health, MemberState, SyncKind, SyncStatus};

    #[test]
    fn what_a_rebuild_read_and_wrote_is_not_known_and_never_nothing() {
        let state = |sync| ArrayStatus {
            health: Health::Degraded,
            members: Vec::new(),
            sync,
        };
        let idle = state(None);
        let busy = state(Some(SyncStatus {
            kind: SyncKind::Recovery,
            percent: Some(3.0),
            member: None,
        }));
        let spare = ArrayStatus {
            members: vec![MemberState::Spare],
            ..state(None)
        };
        let (idle, busy, spare) = (Some(&idle), Some(&busy), Some(&spare));
        assert_eq!(sync_bytes([idle, idle], []), Some(0));
        for states in [[busy, idle], [idle, busy], [busy, busy], [idle, None]] {
            assert_eq!(sync_bytes(states, []), None);
        }
        for lost in [EventKind::Remove, EventKind::Fail] {
            assert_eq!(sync_bytes([idle, idle], [lost]), Some(0), "degraded");
            assert_eq!(
                sync_bytes([spare, idle], [lost]),
                None,
                "the spare steps in"
            );
        }
        for back in [EventKind::Insert, EventKind::ReAdd] {
            assert_eq!(sync_bytes([idle, idle], [EventKind::Remove, back]), None);
        }
    }
}
