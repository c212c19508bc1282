//! The claims of the devices' superblocks about the array and each other.

mod split_brain;

use super::{AssembleOptions, Candidate, LeftOut};
use crate::mutation::{self, Mutation};
use crate::persistent::error::AssembleError;
use crate::persistent::log_superblock::{LogBlock, LogSays, Numbers, checksum};
use raidlab_geometry::{CopyMap, Layout, Level, Slot, SlotSet};
use raidlab_metadata::{Features, Role, Superblock};
use raidlab_units::Sectors;

/// The input of an assembly: the candidates, and which of them is the newest.
pub(super) struct View {
    /// The candidates, in the order given.
    pub(super) candidates: Vec<Candidate>,
    /// The index in `candidates` of the one with the newest superblock.
    pub(super) newest: usize,
    /// The reason that excludes each candidate; `None` if there is none.
    pub(super) verdicts: Vec<Option<LeftOut>>,
    pub(super) level: Level,
    pub(super) layout: Layout,
    pub(super) size: Sectors,
    /// Sets of members of which each needs one, for levels without parity.
    copy_sets: Vec<SlotSet>,
    /// The device numbers of members that were away when a log was replayed.
    absent: Numbers,
    /// The index in `candidates` of the spare with the newest superblock. It has no content, but it
    /// has recorded what happened to the members.
    newest_spare: Option<usize>,
}

impl View {
    pub(super) fn new(
        candidates: Vec<Candidate>,
        options: &AssembleOptions,
    ) -> Result<Self, AssembleError> {
        check_same_array(&candidates)?;
        let mut verdicts = vec![None; candidates.len()];
        leave_out_copies(&candidates, &mut verdicts)?;
        let newest = newest(&candidates, &verdicts).ok_or(AssembleError::NoMembers)?;
        let name = &candidates[newest].name;
        let superblock = candidates[newest].superblock();
        let unknown = || AssembleError::UnknownLevel {
            device: name.clone(),
            level: superblock.level,
            layout: superblock.layout,
        };
        let level = Level::from_md_number(superblock.level).ok_or_else(unknown)?;
        let layout = Layout::from_md(level, superblock.layout).map_err(|_| unknown())?;
        let (size, copy_sets) = size_and_copies(&candidates, newest, level, layout)?;
        let mut view = Self {
            newest,
            verdicts,
            level,
            layout,
            size,
            copy_sets,
            candidates,
            absent: Numbers::default(),
            newest_spare: None,
        };
        view.leave_out_misfits();
        view.newest_spare = view.newest_spare();
        view.absent = view.named_absent();
        view.refuse_split_brain(options)?;
        Ok(view)
    }

    /// Restricts a candidate's log superblock to the block of this session; a member that failed
    /// while the session began, and has no such block, counts with that of the others.
    pub(super) fn believe(&mut self, at: usize, says: LogSays) {
        let of_newest = self.blocks(self.newest).first().copied();
        let blocks = self.blocks(at);
        let candidate = &mut self.candidates[at];
        let superblock = candidate.superblock();
        let own = blocks
            .iter()
            .find(|block| block.says.session == says.session);
        let block = own.copied().or_else(|| {
            let sequence = blocks.iter().map(|block| block.sequence).max();
            Some(LogBlock {
                device_uuid: superblock.device_uuid,
                says,
                checksums: [checksum(superblock).unwrap_or(0); 2],
                sequence: sequence.unwrap_or(0),
                ..of_newest?
            })
        });
        if let Some(block) = block {
            candidate.log = Some(block.into());
        }
    }

    /// Returns the blocks in force of a candidate's log superblock.
    pub(super) fn blocks(&self, at: usize) -> Vec<LogBlock> {
        let candidate = &self.candidates[at];
        let log = candidate.log.as_ref();
        log.map_or_else(Vec::new, |log| log.in_force(candidate.superblock()))
    }

    /// Returns the members that the log superblocks of recent candidates name as away.
    fn named_absent(&self) -> Numbers {
        let mut absent = Numbers::default();
        for at in 0..self.candidates.len() {
            let candidate = &self.candidates[at];
            if self.verdicts[at].is_none() && self.is_recent(at) {
                let log = candidate
                    .log
                    .map(|log| log.in_force(candidate.superblock()));
                for block in log.iter().flatten() {
                    absent.join(&block.absent);
                }
            }
        }
        absent
    }

    /// Returns the newest superblock, which decides where others differ.
    pub(super) fn array(&self) -> &Superblock {
        self.candidates[self.newest].superblock()
    }

    pub(super) fn slot_count(&self) -> usize {
        usize::try_from(self.array().raid_disks).unwrap_or(usize::MAX)
    }

    /// Returns the slot that a candidate claims for itself.
    pub(super) fn claim(&self, at: usize) -> Option<Slot> {
        claim(self.candidates[at].superblock())
    }

    /// Whether the level can lose a member.
    pub(super) const fn is_redundant(&self) -> bool {
        !matches!(self.level, Level::Linear | Level::Raid0)
    }

    /// Whether the array has all its data with these members.
    pub(super) fn is_enough(&self, members: SlotSet) -> bool {
        if !self.is_redundant() {
            // The place of the data depends on every member's size.
            return members.len() >= self.slot_count();
        }
        match self.level.parity_count() {
            0 => self
                .copy_sets
                .iter()
                .all(|set| !(*set & members).is_empty()),
            parity => members.len() + parity >= self.slot_count(),
        }
    }

    /// Whether the array has more of its data if the member of this slot is added.
    pub(super) fn helps(&self, members: SlotSet, slot: Slot) -> bool {
        let mut sets = self.copy_sets.iter();
        self.copy_sets.is_empty()
            || sets.any(|set| set.contains(slot) && (*set & members).is_empty())
    }

    /// Whether a candidate is a current member: recent, and present when the log was replayed.
    pub(super) fn is_current(&self, at: usize) -> bool {
        let number = self.candidates[at].superblock().device_number;
        self.is_recent(at) && !self.is_absent(number) || mutation::is(Mutation::StaleTrusted)
    }

    /// Whether the member of this number was away when the log was replayed.
    pub(super) fn is_absent(&self, number: u32) -> bool {
        self.absent.contains(number) && !mutation::is(Mutation::AbsenceIgnored)
    }

    fn newest_spare(&self) -> Option<usize> {
        let candidates = self.candidates.iter().zip(&self.verdicts).enumerate();
        let superblocks = candidates
            .filter(|(_, (_, verdict))| verdict.is_none())
            .map(|(at, (candidate, _))| (at, candidate.superblock()));
        let spares = superblocks.filter(|(_, superblock)| superblock.role() == Role::Spare);
        let newest = spares.max_by_key(|(_, spare)| spare.events);
        let newest = newest.filter(|_| !mutation::is(Mutation::SpareUnheard));
        newest.map(|(at, _)| at)
    }

    /// Whether the newest superblock gives a candidate the slot that it claims, also that of a
    /// spare if it is newer than those of all members, and the candidate's event count is at
    /// most one behind.
    fn is_recent(&self, at: usize) -> bool {
        let array = self.array();
        let superblock = self.candidates[at].superblock();
        let Some(slot) = claim(superblock) else {
            return false;
        };
        let spare = self.newest_spare.map(|at| self.candidates[at].superblock());
        let spare = spare.filter(|spare| spare.events > array.events);
        let slack = 1 + u64::from(mutation::is(Mutation::TwoEventsBehind));
        let newest = spare.map_or(array.events, |spare| spare.events);
        let is_recent = superblock.events.saturating_add(slack) >= newest;
        let gives = |by: &Superblock| role_of(by, superblock.device_number) == Role::Slot(slot.0);
        let spare = spare.filter(|_| !mutation::is(Mutation::SpareRolesUnheard));
        is_recent && gives(array) && spare.is_none_or(gives)
    }

    /// Returns the sectors that a member must have.
    pub(super) fn needed_size(&self, superblock: &Superblock) -> u64 {
        let used = match self.is_redundant() {
            true => self.array().used_size,
            false => superblock.data_size,
        };
        superblock.data_offset.0.saturating_add(used.0)
    }

    /// Leaves out devices whose superblock or size does not fit.
    fn leave_out_misfits(&mut self) {
        for at in 0..self.candidates.len() {
            if self.verdicts[at].is_some() {
                continue;
            }
            let Candidate { metadata, size, .. } = &self.candidates[at];
            let superblock = &metadata.superblock;
            let array = self.array();
            let agrees = superblock.level == array.level
                && superblock.layout == array.layout
                && superblock.chunk == array.chunk;
            let needed = self.needed_size(superblock);
            // In an array that has grown, a superblock at the end may lie in the data.
            let size = match self.is_redundant() {
                true => superblock.data_offset.0 + superblock.data_room(*size).0,
                false => size.0,
            };
            let verdict = if !agrees {
                Some(LeftOut::Disagrees)
            } else if size < needed {
                Some(LeftOut::TooSmall { size, needed })
            } else if claim(superblock).is_some_and(|slot| slot.index() >= self.slot_count()) {
                Some(LeftOut::NoSuchSlot)
            } else if superblock.role() == Role::Faulty {
                Some(LeftOut::Faulty)
            } else {
                None
            };
            self.verdicts[at] = verdict;
        }
    }
}

fn claim(superblock: &Superblock) -> Option<Slot> {
    match superblock.role() {
        Role::Slot(slot) => Some(Slot(slot)),
        Role::Spare | Role::Faulty | Role::Journal => None,
    }
}

pub(super) fn role_of(superblock: &Superblock, number: u32) -> Role {
    usize::try_from(number)
        .ok()
        .and_then(|number| superblock.roles.get(number))
        .copied()
        .unwrap_or(Role::Spare)
}

/// Checks that all belong to the same array, without features that only md supports.
fn check_same_array(candidates: &[Candidate]) -> Result<(), AssembleError> {
    let first = candidates.first().ok_or(AssembleError::NoCandidates)?;
    for candidate in candidates {
        let superblock = candidate.superblock();
        if superblock.array_uuid != first.superblock().array_uuid {
            return Err(AssembleError::DifferentArrays {
                left: first.name.clone(),
                right: candidate.name.clone(),
            });
        }
        if let Some(feature) = unsupported(superblock) {
            return Err(AssembleError::Unsupported {
                device: candidate.name.clone(),
                feature,
            });
        }
    }
    Ok(())
}

fn unsupported(superblock: &Superblock) -> Option<&'static str> {
    const NAMES: [(u32, &str); 7] = [
        (Features::RESHAPE, "a reshape under way"),
        (Features::RESHAPE_BACKWARDS, "a reshape under way"),
        (
            Features::NEW_OFFSET,
            "a change of the data offset under way",
        ),
        (Features::BITMAP_VERSIONED, "a clustered bitmap"),
        (Features::JOURNAL, "a journal device"),
        (Features::PPL, "a partial parity log (PPL)"),
        (Features::MULTIPLE_PPLS, "a partial parity log (PPL)"),
    ];
    if superblock.role() == Role::Journal {
        return Some("a journal device");
    }
    let named = NAMES.iter().find(|(bit, _)| superblock.features.has(*bit));
    let known = NAMES.iter().fold(SUPPORTED, |known, (bit, _)| known | bit);
    named.map(|(_, name)| *name).or_else(|| {
        (superblock.features.0 & !known != 0).then_some("a feature that nothing here knows")
    })
}

const SUPPORTED: u32 = Features::BITMAP
    | Features::RECOVERY_OFFSET
    | Features::BAD_BLOCKS
    | Features::REPLACEMENT
    | Features::RECOVERY_BITMAP
    | Features::RAID0_LAYOUT;

/// Leaves out copies: of two devices with the same member UUID the newer one counts.
fn leave_out_copies(
    candidates: &[Candidate],
    verdicts: &mut [Option<LeftOut>],
) -> Result<(), AssembleError> {
    for (at, candidate) in candidates.iter().enumerate() {
        for (other_at, other) in candidates.iter().enumerate().skip(at + 1) {
            if candidate.superblock().device_uuid != other.superblock().device_uuid {
                continue;
            }
            let (older, newer) = match candidate
                .superblock()
                .events
                .cmp(&other.superblock().events)
            {
                std::cmp::Ordering::Less => (at, other),
                std::cmp::Ordering::Greater => (other_at, candidate),
                std::cmp::Ordering::Equal => {
                    return Err(AssembleError::SameDevice {
                        left: candidate.name.clone(),
                        right: other.name.clone(),
                    });
                }
            };
            verdicts[older] = Some(LeftOut::OlderCopy(newer.name.clone()));
        }
    }
    Ok(())
}

/// Returns the device with the highest event count among those that claim a slot; of several one
/// that is not under recovery, and of these the one with the lowest slot. Where only one under
/// recovery recorded an event, the others may have run without it since, and have the same count.
fn newest(candidates: &[Candidate], verdicts: &[Option<LeftOut>]) -> Option<usize> {
    let claimed = candidates
        .iter()
        .enumerate()
        .filter(|(at, _)| verdicts[*at].is_none())
        .filter_map(|(at, candidate)| Some((at, candidate, claim(candidate.superblock())?)));
    let key = |(_, candidate, slot): &(usize, &Candidate, Slot)| {
        let superblock = candidate.superblock();
        let is_filled = !superblock.features.has(Features::RECOVERY_OFFSET)
            || mutation::is(Mutation::FilledOneBelieved);
        (superblock.events, is_filled, std::cmp::Reverse(slot.0))
    };
    let chosen = match mutation::is(Mutation::TieTakenWrongly) {
        true => claimed.min_by_key(key),
        false => claimed.max_by_key(key),
    };
    chosen.map(|(at, ..)| at)
}

/// Returns the array's size, and the sets of members that are copies of each other.
fn size_and_copies(
    candidates: &[Candidate],
    newest: usize,
    level: Level,
    layout: Layout,
) -> Result<(Sectors, Vec<SlotSet>), AssembleError> {
    let name = &candidates[newest].name;
    let superblock = candidates[newest].superblock();
    let impossible = |source| AssembleError::Impossible {
        device: name.clone(),
        source,
    };
    let mut shape = super::shape_of(superblock, level, layout);
    if matches!(level, Level::Linear | Level::Raid0) {
        for candidate in candidates {
            let own = claim(candidate.superblock()).map(Slot::index);
            if let Some(size) = own.and_then(|own| shape.member_sizes.get_mut(own)) {
                *size = candidate.superblock().data_size;
            }
        }
    }
    if level.parity_count() > 0 {
        let size = shape.array_size().map_err(impossible)?;
        return Ok((size, Vec::new()));
    }
    let map = CopyMap::new(&shape).map_err(impossible)?;
    Ok((map.array_size(), map.copy_sets().to_vec()))
}
