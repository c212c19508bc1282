//! The choice of the devices that form the array, and of their parts.
//!
//! The order counts, as each step depends on the choices of those before it:
//!
//! 1. *current members*: devices to which the newest superblock gives the slot that they claim,
//!    whole ones and those under recovery;
//! 2. *replacements* whose member is gone: they take its slot;
//! 3. with `force`, and only while there are too few, the newest of those out of date;
//! 4. a check that no member that was in service is missing by accident;
//! 5. the *bitmap*, from the sound copies of the current members;
//! 6. the part that each member under recovery lacks, now that the bitmap is known;
//! 7. *spares*, and then members *out of date*: left out, or, where the options say so, re-added
//!    with what the bitmap says they missed, or recovered completely.

use super::claims::{keeps_slot, not_counted, out_of_date};
use super::view::{View, role_of};
use super::{AssembleOptions, Candidate, LeftOut, Part, Stale, grow};
use crate::admission::Admission;
use crate::mutation::{self, Mutation};
use crate::persistent::error::AssembleError;
use crate::persistent::intent::span;
use raidlab_geometry::{Level, Slot, SlotSet};
use raidlab_metadata::{Bitmap, Features, Role, Superblock};
use raidlab_units::{Sectors, Span};
use std::collections::BTreeSet;

/// The part of each device in the array, as far as it is decided.
pub(super) struct Chosen {
    /// The part of each candidate, if it has one.
    pub(super) parts: Vec<Option<Part>>,
    /// The candidates without a part, with the reason.
    pub(super) left_out: Vec<(usize, LeftOut)>,
    /// Slots with current content.
    pub(super) in_sync: SlotSet,
    /// The array's bitmap, and whether it is sound.
    pub(super) bitmap: Option<(Bitmap, bool)>,
    /// Devices that are taken only because of `force`, by their index among the candidates.
    pub(super) forced: Vec<usize>,
}

impl Chosen {
    pub(super) fn new(view: &View, options: &AssembleOptions) -> Result<Self, AssembleError> {
        let mut chosen = Self {
            parts: vec![None; view.candidates.len()],
            left_out: Vec::new(),
            in_sync: SlotSet::EMPTY,
            bitmap: None,
            forced: Vec::new(),
        };
        chosen.take_current(view)?;
        chosen.take_replacements(view);
        chosen.force_stale(view, options)?;
        chosen.check_presence(view, options)?;
        chosen.bitmap = find_bitmap(view, &chosen, options)?;
        chosen.admit_recovering(view);
        chosen.take_spares(view);
        chosen.take_stale(view, options);
        for (at, verdict) in view.verdicts.iter().enumerate() {
            if let Some(verdict) = verdict {
                chosen.left_out.push((at, verdict.clone()));
            }
        }
        chosen.left_out.sort_by_key(|(at, _)| *at);
        Ok(chosen)
    }

    /// Returns the slot's device that is current or under recovery.
    fn holder(&self, slot: Slot) -> Option<usize> {
        self.parts.iter().position(|part| match part {
            Some(Part::InSync(own) | Part::Recovering(own, _)) => *own == slot,
            _ => false,
        })
    }

    /// Takes current members. The part that those under recovery lack is determined later, when the
    /// bitmap is known.
    fn take_current(&mut self, view: &View) -> Result<(), AssembleError> {
        for at in 0..view.candidates.len() {
            let (None, Some(slot), true) =
                (&view.verdicts[at], view.claim(at), view.is_current(at))
            else {
                continue;
            };
            let superblock = view.candidates[at].superblock();
            let everything = Admission::From(Sectors::ZERO);
            if superblock.features.has(Features::REPLACEMENT) {
                self.parts[at] = Some(Part::Replacing(slot, everything));
                continue;
            }
            let part = match is_whole(view, at) {
                true => Part::InSync(slot),
                false => Part::Recovering(slot, everything),
            };
            if let Some(other) = self.holder(slot) {
                let whole = [self.parts[other].as_ref(), Some(&part)]
                    .map(|part| matches!(part, Some(Part::InSync(_))));
                match keeps_slot(view, (other, whole[0]), (at, whole[1]))? {
                    true => {
                        self.leave_out_stale(view, at);
                        continue;
                    }
                    false => {
                        self.parts[other] = None;
                        self.leave_out_stale(view, other);
                    }
                }
            }
            self.parts[at] = Some(part);
        }
        self.in_sync = self
            .parts
            .iter()
            .filter_map(|part| match part {
                Some(Part::InSync(slot)) => Some(*slot),
                _ => None,
            })
            .collect();
        Ok(())
    }

    /// Gives a slot to the device that was filled to replace its member, if that member is gone (as
    /// the kernel moves it down when the member fails). Ranges in its bad-block log were never
    /// copied to it: it is recovered from there if the others have them, and if they need not be
    /// resynced first without being one short.
    fn take_replacements(&mut self, view: &View) {
        for at in 0..self.parts.len() {
            let Some(Part::Replacing(slot, _)) = self.parts[at] else {
                continue;
            };
            if self.holder(slot).is_some() {
                continue;
            }
            let superblock = view.candidates[at].superblock();
            // Like the old member it has every write that was acknowledged.
            let is_full = superblock.features.has(Features::RECOVERY_OFFSET)
                && superblock.recovery_offset >= view.array().used_size;
            let lacks_some = first_bad(&view.candidates[at]) < view.array().used_size;
            let is_clean = view.array().resync_offset == Superblock::IN_SYNC;
            let may_wait = view.is_enough(self.in_sync)
                && (is_clean || view.level.parity_count() == 0)
                && !mutation::is(Mutation::FullReplacementUnfilled);
            if is_full && !(lacks_some && may_wait) {
                self.in_sync = self.in_sync.with(slot);
                self.parts[at] = Some(Part::InSync(slot));
            } else {
                let everything = Admission::From(Sectors::ZERO);
                self.parts[at] = Some(Part::Recovering(slot, everything));
            }
        }
    }

    fn leave_out_stale(&mut self, view: &View, at: usize) {
        self.left_out.push((at, out_of_date(view, at)));
    }

    /// Returns the devices that claim a slot without a current device, newest first.
    fn stale(&self, view: &View) -> Vec<usize> {
        let mut stale: Vec<usize> = (0..view.candidates.len())
            .filter(|at| {
                view.verdicts[*at].is_none()
                    && self.parts[*at].is_none()
                    && !self.left_out.iter().any(|(left, _)| left == at)
                    && !view.candidates[*at]
                        .superblock()
                        .features
                        .has(Features::REPLACEMENT)
                    && view
                        .claim(*at)
                        .is_some_and(|slot| self.holder(slot).is_none())
            })
            .collect();
        stale.sort_by_key(|at| std::cmp::Reverse(view.candidates[*at].superblock().events));
        stale
    }

    /// Takes, with `force` and too few members, the newest of those out of date, as mdadm's
    /// `force_array` does, but none all of whose data a current member has. Data that such a member
    /// shares with current ones are read from these (`Array::declare_doubtful`).
    fn force_stale(&mut self, view: &View, options: &AssembleOptions) -> Result<(), AssembleError> {
        let too_few = |chosen: &Self, stale: Vec<usize>| AssembleError::NotEnough {
            present: chosen.in_sync.len(),
            slots: view.slot_count(),
            stale: stale
                .into_iter()
                .map(|at| view.candidates[at].name.clone())
                .collect(),
        };
        let stale: Vec<usize> = self
            .stale(view)
            .into_iter()
            .filter(|at| is_whole(view, *at))
            .collect();
        if !options.force && !view.is_enough(self.in_sync) {
            return Err(too_few(self, stale));
        }
        for at in stale {
            if view.is_enough(self.in_sync) {
                break;
            }
            let Some(slot) = view.claim(at).filter(|slot| self.holder(*slot).is_none()) else {
                continue;
            };
            if !view.helps(self.in_sync, slot) && !mutation::is(Mutation::ForcedNeedlessly) {
                continue;
            }
            self.parts[at] = Some(Part::InSync(slot));
            self.in_sync = self.in_sync.with(slot);
            self.forced.push(at);
        }
        if !view.is_enough(self.in_sync) {
            return Err(too_few(self, Vec::new()));
        }
        Ok(())
    }

    /// Checks that members that were in service are not missing by accident.
    fn check_presence(&self, view: &View, options: &AssembleOptions) -> Result<(), AssembleError> {
        let roles = (0..).zip(&view.array().roles);
        let expected: SlotSet = roles
            .filter(|(number, _)| !view.is_absent(*number))
            .filter_map(|(_, role)| match role {
                Role::Slot(slot) if usize::from(*slot) < view.slot_count() => Some(Slot(*slot)),
                _ => None,
            })
            .collect();
        let present = expected
            .iter()
            .filter(|slot| self.holder(*slot).is_some())
            .count();
        if present < expected.len() && !options.run_degraded && !options.force {
            return Err(AssembleError::NeedsRun {
                present,
                expected: expected.len(),
                not_counted: not_counted(view, &self.left_out, &self.stale(view)),
            });
        }
        Ok(())
    }

    /// Determines what members under recovery lack.
    ///
    /// Writes under way at a crash may differ on such a member even where it is filled, and a
    /// resync covers only those in sync. One that is an event behind may have missed exactly that
    /// record: by the newest superblock the array is in sync again, but its own offset is from
    /// before. A member that is taken by force may lack what they have, and reads must not
    /// alternate between the two: then they are recovered from the beginning.
    fn admit_recovering(&mut self, view: &View) {
        let same_below = match &self.bitmap {
            _ if view.array().resync_offset == Superblock::IN_SYNC
                || mutation::is(Mutation::RecoveryOffsetTrusted) =>
            {
                Superblock::IN_SYNC
            }
            // The bits count sectors of the array.
            _ if view.level == Level::Raid10 => Sectors::ZERO,
            Some((bitmap, true)) => {
                let first = bitmap.set_spans().next();
                first.map_or(Superblock::IN_SYNC, |span| span.start)
            }
            _ => Sectors::ZERO,
        };
        for (at, part) in self.parts.iter_mut().enumerate() {
            let takes_slot = matches!(part, Some(Part::Recovering(..)));
            let Some(Part::Recovering(_, admission) | Part::Replacing(_, admission)) = part else {
                continue;
            };
            if !self.forced.is_empty() {
                *admission = Admission::From(Sectors::ZERO);
                continue;
            }
            let superblock = view.candidates[at].superblock();
            let is_told = superblock.events == view.array().events
                || mutation::is(Mutation::UntoldOffsetTrusted);
            let from = match superblock.features.has(Features::RECOVERY_OFFSET) && is_told {
                true => superblock.recovery_offset.min(same_below),
                false => Sectors::ZERO,
            };
            let from = match takes_slot && superblock.features.has(Features::REPLACEMENT) {
                true => from.min(first_bad(&view.candidates[at])),
                false => from,
            };
            *admission = match &self.bitmap {
                // Every chunk is copied again: the bits count the array's sectors at some levels,
                // the offset counts the member's.
                Some((bitmap, true)) if superblock.features.has(Features::RECOVERY_BITMAP) => {
                    Admission::Ranges(bitmap.set_spans().map(span).collect())
                }
                _ if superblock.features.has(Features::RECOVERY_BITMAP) => {
                    Admission::From(Sectors::ZERO)
                }
                _ => Admission::From(from),
            };
        }
    }

    fn take_spares(&mut self, view: &View) {
        if !view.is_redundant() {
            return;
        }
        for (at, candidate) in view.candidates.iter().enumerate() {
            if view.verdicts[at].is_none() && candidate.superblock().role() == Role::Spare {
                self.parts[at] = Some(Part::Spare);
            }
        }
    }

    /// Gives spares, and members that were out of date, numbers of their own, where their old ones
    /// belong to others by now: their number may have been given away while they were gone, or
    /// they come from two sides of the array that ran by themselves. The same holds where the
    /// newest superblock has no place for the number: a slot could not be assigned to such a
    /// device (md's `super_1_validate`).
    pub(super) fn number_anew(&mut self, view: &mut View) {
        let mut others: Vec<usize> = (0..self.parts.len()).collect();
        others.retain(|at| self.parts[*at].is_some());
        others.sort_by_key(|at| !view.is_current(*at));
        let numbers = 0..u32::try_from(view.array().roles.len()).unwrap_or(u32::MAX);
        let mut taken = BTreeSet::new();
        for at in others {
            let own = view.candidates[at].superblock().device_number;
            // Preferably a number that no device has had.
            let unknown = |number: &u32| role_of(view.array(), *number) == Role::Spare;
            let free = numbers.clone().filter(|number| !taken.contains(number));
            let is_its_own = !taken.contains(&own)
                && (numbers.contains(&own) || mutation::is(Mutation::NumberUnlisted));
            let number = match is_its_own {
                true => Some(own),
                false => free.clone().find(unknown).or_else(|| free.clone().next()),
            };
            let Some(number) = number else {
                self.parts[at] = None;
                self.leave_out_stale(view, at);
                continue;
            };
            taken.insert(number);
            let metadata = &mut view.candidates[at].metadata;
            metadata.superblock.device_number = number;
        }
    }

    /// Re-adds members out of date if the options say so. Of several for one slot, one that the
    /// bitmap knows comes first: a newer one may have been filled in part.
    fn take_stale(&mut self, view: &View, options: &AssembleOptions) {
        let mut stale = self.stale(view);
        stale.sort_by_key(|at| self.ranges_missed(view, *at).is_none());
        for at in stale {
            let Some(slot) = view.claim(at).filter(|slot| self.holder(*slot).is_none()) else {
                self.leave_out_stale(view, at);
                continue;
            };
            let by_bitmap = self.ranges_missed(view, at);
            let by_bitmap = by_bitmap.filter(|_| self.forced.is_empty());
            let number = view.candidates[at].superblock().device_number;
            let is_new = view.candidates[at].superblock().events >= view.array().events
                && !mutation::is(Mutation::StaleSeatedAtOnce);
            if view.is_absent(number) || is_new {
                // Its superblock is hardly older than the newest: with a slot at once, it would
                // count as current if that record did not reach it.
                match options.stale {
                    Stale::Rebuild if view.is_redundant() => self.parts[at] = Some(Part::Spare),
                    _ => self.leave_out_stale(view, at),
                }
                continue;
            }
            let admission = match (options.stale, by_bitmap) {
                _ if !view.is_redundant() => None,
                (Stale::ReAdd | Stale::Rebuild, Some(ranges)) => Some(Admission::Ranges(ranges)),
                (Stale::Rebuild, None) => Some(Admission::From(Sectors::ZERO)),
                (Stale::LeaveOut, _) | (Stale::ReAdd, None) => None,
            };
            match admission {
                Some(admission) => self.parts[at] = Some(Part::Recovering(slot, admission)),
                None => self.leave_out_stale(view, at),
            }
        }
        for at in 0..view.candidates.len() {
            let is_open = self.parts[at].is_none() && view.verdicts[at].is_none();
            if is_open && !self.left_out.iter().any(|(left, _)| *left == at) {
                self.leave_out_stale(view, at);
            }
        }
    }

    /// Returns the ranges that a member out of date lacks, if the bitmap covers them.
    fn ranges_missed(&self, view: &View, at: usize) -> Option<Vec<Span>> {
        let superblock = view.candidates[at].superblock();
        let (bitmap, is_sound) = self.bitmap.as_ref()?;
        let knows = *is_sound
            && (superblock.events >= bitmap.superblock.events_cleared
                || mutation::is(Mutation::ReAddTooOld))
            && superblock.used_size == view.array().used_size
            && is_whole(view, at);
        knows.then(|| bitmap.set_spans().map(span).collect())
    }
}

/// Whether a member had current content everywhere when its superblock was
/// written.
fn is_whole(view: &View, at: usize) -> bool {
    let superblock = view.candidates[at].superblock();
    !superblock.features.has(Features::RECOVERY_OFFSET)
        && !superblock.features.has(Features::RECOVERY_BITMAP)
        || !view.is_redundant()
}

/// Returns the union of the sound copies of the current members, or a bitmap of all bits.
fn find_bitmap(
    view: &View,
    chosen: &Chosen,
    options: &AssembleOptions,
) -> Result<Option<(Bitmap, bool)>, AssembleError> {
    let array = view.array();
    let internal = array.features.has(Features::BITMAP);
    let file = options.external_bitmap.as_ref();
    let copies: Vec<&Bitmap> = match file {
        Some(file) if file.bitmap.superblock.array_uuid != array.array_uuid => {
            return Err(AssembleError::ForeignBitmap);
        }
        Some(file) => vec![&file.bitmap],
        None if !internal => return Ok(None),
        None => view
            .candidates
            .iter()
            .zip(&chosen.parts)
            .filter(|(_, part)| matches!(part, Some(Part::InSync(_))))
            .filter_map(|(candidate, _)| candidate.metadata.bitmap.as_ref())
            .collect(),
    };
    let fits = |bitmap: &&Bitmap| {
        bitmap.superblock.array_uuid == array.array_uuid
            && bitmap.superblock.sync_size == bitmap_space(view)
    };
    let ours = copies
        .iter()
        .find(|bitmap| bitmap.superblock.array_uuid == array.array_uuid);
    // A change of the array's size was interrupted: the bitmap has the other size.
    let all = ours.and_then(|bitmap| {
        let members = view.candidates.iter().zip(&chosen.parts);
        let members = members.filter(|(_, part)| part.is_some());
        let room = grow::room_of(&bitmap.superblock, file, members.map(|(one, _)| one));
        let superblock = grow::fitted(&bitmap.superblock, bitmap_space(view), room)?;
        Some((Bitmap::new(superblock, true).ok()?, false))
    });
    let copies: Vec<&Bitmap> = copies.into_iter().filter(fits).collect();
    let mut sound = copies
        .iter()
        .copied()
        .filter(|bitmap| !bitmap.superblock.is_stale(array.array_uuid, array.events));
    let Some(first) = sound.next() else {
        // Without any copy the room for one is unknown.
        return Ok(all);
    };
    let mut union = first.clone();
    for other in sound {
        if other.superblock.chunk != union.superblock.chunk {
            continue;
        }
        let chunks = other.runs().flatten();
        chunks.for_each(|chunk| {
            union.set(chunk);
        });
        let cleared = &mut union.superblock.events_cleared;
        *cleared = (*cleared).max(other.superblock.events_cleared);
    }
    Ok(Some((union, true)))
}

/// Returns the sectors that the array's bitmap covers: of the array where copies are striped, else
/// of a member.
fn bitmap_space(view: &View) -> Sectors {
    match view.level {
        raidlab_geometry::Level::Raid10 => view.size,
        _ => view.array().used_size,
    }
}

/// Returns the first bad block of a device's log, in sectors of its data area. Those of a
/// replacement are the member's: they were never copied to it.
fn first_bad(candidate: &Candidate) -> Sectors {
    let offset = candidate.superblock().data_offset;
    let bad = candidate.metadata.bad_blocks.iter();
    let first = bad.map(|entry| entry.span().start.0.saturating_sub(offset.0));
    Sectors(first.min().unwrap_or(u64::MAX))
}
