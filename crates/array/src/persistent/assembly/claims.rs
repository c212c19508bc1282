//! The decision between two devices that claim the same slot, and who does not count.
//!
//! The one with the higher event count wins. Two equal ones come from a replacement: the old
//! member's superblock was updated, the power failed before the others' were, and then the array
//! was started without it, so that the replacement took its slot and counted as far; the power
//! failed again. An array that is started serves nothing before every member has a superblock that
//! names the members. So a third member that both claimants count on, and whose own superblock
//! still has both in the slot, shows that neither served anything without the other, and the whole
//! one is right. If both are whole they have the same acknowledged writes, and the one that was in
//! the array first stays. Without such a member the question cannot be decided.

use super::LeftOut;
use super::view::{View, role_of};
use crate::persistent::error::AssembleError;
use raidlab_geometry::Slot;
use raidlab_metadata::Role;
use std::cmp::Ordering;

/// Returns whether the candidate that has a slot keeps it when another claims it too, each with
/// whether it is whole and not under recovery.
///
/// # Errors
/// [`AssembleError::SlotClaimedTwice`] where that cannot be decided.
pub(super) fn keeps_slot(
    view: &View,
    holder: (usize, bool),
    other: (usize, bool),
) -> Result<bool, AssembleError> {
    let [left, right] = [holder.0, other.0].map(|at| &view.candidates[at]);
    let [own, others] = [left, right].map(|it| it.superblock().device_number);
    match left.superblock().events.cmp(&right.superblock().events) {
        Ordering::Greater => Ok(true),
        Ordering::Less => Ok(false),
        Ordering::Equal
            if (holder.1 || other.1)
                && own != others
                && third_knows_both(view, holder.0, other.0) =>
        {
            Ok(if holder.1 == other.1 {
                own < others
            } else {
                holder.1
            })
        }
        Ordering::Equal => Err(AssembleError::SlotClaimedTwice {
            slot: view.claim(other.0).unwrap_or(Slot(0)),
            left: left.name.clone(),
            right: right.name.clone(),
        }),
    }
}

/// Whether a member of another slot that both count on still has both in that slot.
fn third_knows_both(view: &View, left: usize, right: usize) -> bool {
    let lists = |at: usize, other: usize| {
        let number = view.candidates[other].superblock().device_number;
        let role = role_of(view.candidates[at].superblock(), number);
        view.claim(other)
            .is_some_and(|slot| role == Role::Slot(slot.0))
    };
    (0..view.candidates.len()).any(|third| {
        view.claim(third) != view.claim(left)
            && view.is_current(third)
            && [left, right]
                .into_iter()
                .all(|one| lists(one, third) && lists(third, one))
    })
}

/// Returns the reason to leave out a device whose place a newer one has.
pub(super) fn out_of_date(view: &View, at: usize) -> LeftOut {
    LeftOut::Stale {
        events: view.candidates[at].superblock().events,
        newest: view.array().events,
    }
}

/// Names the devices that do not count as members, each with the reason: those left out so far,
/// those that are excluded, and those out of date.
pub(super) fn not_counted(
    view: &View,
    left_out: &[(usize, LeftOut)],
    stale: &[usize],
) -> Vec<String> {
    let mut reasons = left_out.to_vec();
    let verdicts = view.verdicts.iter().enumerate();
    let excluded = verdicts.filter_map(|(at, verdict)| Some((at, verdict.clone()?)));
    reasons.extend(excluded);
    let late = stale.iter().map(|at| (*at, out_of_date(view, *at)));
    reasons.extend(late);
    reasons.sort_by_key(|(at, _)| *at);
    let named = reasons.iter();
    named
        .map(|(at, reason)| format!("{} ({reason})", view.candidates[*at].name))
        .collect()
}
