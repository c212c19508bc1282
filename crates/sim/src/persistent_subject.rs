//! md's arrays as subjects: the array core of every level with its superblocks
//! and bitmap, whose writes cost time as they do in md.
//!
//! Leaps: a sync of any level and a sequential stream on any level but linear
//! move evenly along all members, so both may be leaped; positions of syncs are
//! told in sectors of the members' data areas.
//!
//! The core names devices by handles, which are slots but for spares: mdadm
//! creates a RAID 5 with its last member as a spare, and this one's handle is a
//! number behind the slots. A disk keeps its handle for ever.
//!
//! A member that is removed leaves when the superblocks of the others call it failed; verbs that
//! are asked for meanwhile (a new member in its place) wait.

use crate::subject::{Gait, Subject, SubjectError};
use raidlab_array::{
    ArrayStatus, Behind, Candidate, CommandId, Copies, Layout, Level, MemberError, NewDevice,
    Outputs, PersistentArray, Request, Slot, StepId, StepResult, SyncProgress, VerbError,
};
use raidlab_units::{Nanos, Sectors, SpanSet, in_one_line};
use std::collections::VecDeque;

/// A time longer than any run, by which no leap is ever planned.
const NEVER: Nanos = Nanos::from_secs(10 * 365 * 86_400);

/// A verb that waits for the one before, with its disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Remove(usize),
    Insert(usize),
    ReAdd(usize),
}

/// An array that keeps md's metadata.
#[derive(Debug)]
pub struct PersistentSubject {
    array: PersistentArray,
    /// The member that [`Subject::insert`] puts in for each disk.
    members: Vec<NewDevice>,
    /// The handle of each disk.
    handles: Vec<Slot>,
    /// The former content of each disk that was in sync when it failed.
    former: Vec<Option<Candidate>>,
    /// Whether each disk came back with its former content, so that the rebuild skips most of it.
    skips: Vec<bool>,
    /// The outputs of the array's start, until they are taken.
    start: Option<Outputs>,
    verbs: VecDeque<Verb>,
    layout: Layout,
    level: Level,
    data_offset: Sectors,
    /// The number of sectors of a member that are used.
    used: Sectors,
    has_bitmap: bool,
}

impl PersistentSubject {
    /// Makes the subject of a started array, with the outputs of its start, and for each disk the
    /// member that is put in when it is inserted, with the handle that it has. `data_offset` and
    /// `used` are where the data begin on a member and how much of it the array uses.
    #[must_use]
    pub fn new(
        array: PersistentArray,
        start: Outputs,
        members: Vec<(Slot, NewDevice)>,
        data_offset: Sectors,
        used: Sectors,
    ) -> Self {
        let ArrayStatus {
            level,
            layout,
            bitmap_chunks,
            ..
        } = array.status();
        let (handles, members): (Vec<_>, Vec<_>) = members.into_iter().unzip();
        Self {
            array,
            former: vec![None; members.len()],
            skips: vec![false; members.len()],
            members,
            handles,
            start: Some(start),
            verbs: VecDeque::new(),
            layout,
            level,
            data_offset,
            used,
            has_bitmap: bitmap_chunks.is_some(),
        }
    }

    /// Puts the outputs of the start before everything else.
    fn begin(&mut self, out: &mut Outputs) {
        if let Some(mut start) = self.start.take() {
            out.commands.append(&mut start.commands);
            out.steps.append(&mut start.steps);
            out.finished.append(&mut start.finished);
            out.events.append(&mut start.events);
        }
    }

    /// Carries out the verbs that need to wait no longer.
    fn follow_verbs(&mut self, now: Nanos, out: &mut Outputs) {
        while let Some(verb) = self.verbs.front() {
            let done = match *verb {
                Verb::Remove(disk) => self.array.remove(now, self.handles[disk], out),
                Verb::Insert(disk) => {
                    let member = self.members[disk].clone();
                    self.skips[disk] = false;
                    self.array.add(now, self.handles[disk], member, out)
                }
                Verb::ReAdd(disk) => {
                    let Some(former) = self.former[disk].clone() else {
                        return;
                    };
                    // In an array that is seconds old all bits are set, as mdadm made it: that is a
                    // rebuild like any other.
                    let bits = self.array.status().bitmap_chunks;
                    self.skips[disk] = bits.is_some_and(|(set, all)| set < all);
                    self.array.re_add(now, self.handles[disk], former, out)
                }
            };
            // A slot is free once all members say that its former disk has failed.
            if matches!(done, Err(VerbError::Busy | VerbError::SlotTaken(_))) {
                return;
            }
            debug_assert!(done.is_ok(), "{verb:?} was checked when it was asked for");
            self.verbs.pop_front();
        }
    }

    /// mdadm's word for a disk, if it is part of the array.
    fn state(&self, slot: Slot) -> Result<Option<&'static str>, SubjectError> {
        let handle = self.handles.get(slot.index());
        let handle =
            *handle.ok_or_else(|| SubjectError(format!("disk {} does not exist", slot.0)))?;
        let devices = self.array.status().devices;
        let device = devices.into_iter().find(|device| device.handle == handle);
        Ok(device.map(|device| device.state))
    }

    /// Whether the sync's positions are sectors of the array.
    fn counts_array_sectors(&self, status: &SyncProgress) -> bool {
        status.total == self.array.size() && status.total != self.used
    }

    /// The number of sectors of a member over which the array's sectors spread, once each.
    fn spread(&self) -> Sectors {
        match self.layout {
            Layout::Copies(Copies {
                far, offset: false, ..
            }) => Sectors(self.used.0 / u64::from(far.max(1))),
            _ => self.used,
        }
    }
}

/// Returns `value * numerator / denominator`, without overflow.
fn scale(value: Sectors, numerator: Sectors, denominator: Sectors) -> Sectors {
    let product = u128::from(value.0) * u128::from(numerator.0);
    let scaled = product / u128::from(denominator.0.max(1));
    Sectors(u64::try_from(scaled).unwrap_or(u64::MAX))
}

fn refused(error: &VerbError) -> SubjectError {
    SubjectError(in_one_line(error))
}

impl Subject for PersistentSubject {
    fn submit(&mut self, now: Nanos, request: Request, out: &mut Outputs) {
        self.begin(out);
        self.array.submit(now, request, out);
    }

    fn complete(
        &mut self,
        now: Nanos,
        command: CommandId,
        result: Result<(), MemberError>,
        out: &mut Outputs,
    ) {
        self.array.complete(now, command, result, out);
        self.follow_verbs(now, out);
    }

    fn computed(&mut self, now: Nanos, step: StepId, result: StepResult, out: &mut Outputs) {
        self.array.computed(now, step, result, out);
    }

    fn tick(&mut self, now: Nanos, out: &mut Outputs) {
        self.begin(out);
        self.array.tick(now, out);
        self.follow_verbs(now, out);
    }

    fn turn(&mut self, now: Nanos, thread: usize, out: &mut Outputs) {
        self.begin(out);
        self.array.turn(now, thread, out);
        self.follow_verbs(now, out);
    }

    fn turn_over(&mut self, now: Nanos, thread: usize, out: &mut Outputs) {
        self.array.turn_over(now, thread, out);
    }

    fn take_time(&mut self, has_plug: bool) {
        self.array.take_time(has_plug);
    }

    fn go_on(&mut self, now: Nanos, process: u32, out: &mut Outputs) {
        self.array.go_on(now, process, out);
    }

    fn job_begins(&mut self) {
        self.array.drop_caches();
    }

    fn next_tick(&self) -> Option<Nanos> {
        match self.start {
            Some(_) => Some(Nanos::ZERO),
            None => self.array.next_tick(),
        }
    }

    fn fail(&mut self, now: Nanos, slot: Slot, out: &mut Outputs) -> Result<(), SubjectError> {
        self.begin(out);
        self.state(slot)?;
        self.former[slot.index()] = self.array.former(self.handles[slot.index()]);
        let failed = self.array.fail(now, self.handles[slot.index()], out);
        failed.map_err(|error| refused(&error))
    }

    fn remove(&mut self, now: Nanos, slot: Slot, out: &mut Outputs) -> Result<(), SubjectError> {
        self.begin(out);
        match self.state(slot)? {
            None => return Err(SubjectError(format!("disk {} is not in the array", slot.0))),
            Some("faulty" | "spare") => {}
            Some(_) => self.fail(now, slot, out)?,
        }
        self.verbs.push_back(Verb::Remove(slot.index()));
        self.follow_verbs(now, out);
        Ok(())
    }

    fn insert(&mut self, now: Nanos, slot: Slot, out: &mut Outputs) -> Result<(), SubjectError> {
        self.begin(out);
        let leaves = self.verbs.contains(&Verb::Remove(slot.index()));
        if self.state(slot)?.is_some() && !leaves {
            return Err(SubjectError(format!("disk {} is in the array", slot.0)));
        }
        self.verbs.push_back(Verb::Insert(slot.index()));
        self.follow_verbs(now, out);
        Ok(())
    }

    fn re_add(&mut self, now: Nanos, slot: Slot, out: &mut Outputs) -> Result<(), SubjectError> {
        self.begin(out);
        let leaves = self.verbs.contains(&Verb::Remove(slot.index()));
        if self.state(slot)?.is_some() && !leaves {
            return Err(SubjectError(format!("disk {} is in the array", slot.0)));
        }
        if self.former[slot.index()].is_none() {
            return Err(SubjectError(format!(
                "disk {} was not in sync when it left: insert it as a new one",
                slot.0
            )));
        }
        self.verbs.push_back(Verb::ReAdd(slot.index()));
        self.follow_verbs(now, out);
        Ok(())
    }

    fn check(&mut self, now: Nanos, out: &mut Outputs) -> Result<(), SubjectError> {
        self.begin(out);
        let begun = self.array.check(now, out);
        begun.map_err(|error| refused(&error))
    }

    fn sync(&self) -> Option<SyncProgress> {
        let status = self.array.status().sync?;
        if self.counts_array_sectors(&status) {
            let of_member = |sectors| scale(sectors, self.used, status.total);
            return Some(SyncProgress {
                position: of_member(status.position),
                total: self.used,
                fastest: status.fastest.map(of_member),
                ..status
            });
        }
        Some(status)
    }

    fn sync_rest(&mut self) -> Option<SpanSet> {
        let rebuilds = |disk: Slot| matches!(self.state(disk), Ok(Some("spare rebuilding")));
        let mut disks = (0..).map(Slot).zip(&self.skips);
        if disks.any(|(disk, skips)| *skips && rebuilds(disk)) {
            return self.array.sync_rest();
        }
        Some(self.sync()?.rest())
    }

    fn is_syncing(&self) -> bool {
        self.start.is_some() || !self.verbs.is_empty() || self.array.is_syncing()
    }

    fn freeze_sync(&mut self) {
        self.array.freeze_sync();
    }

    fn thaw_sync(&mut self, now: Nanos, out: &mut Outputs) {
        self.array.thaw_sync(now, out);
    }

    fn leap_sync(&mut self, now: Nanos, position: Sectors, out: &mut Outputs) {
        let Some(status) = self.array.status().sync else {
            return;
        };
        let position = if self.counts_array_sectors(&status) {
            // Positions are rounded to whole blocks of every size of chunk.
            let there = scale(position, status.total, self.used);
            Sectors(there.0 / 2048 * 2048)
        } else {
            position
        };
        let position = position.clamp(status.position, status.total);
        self.array.leap_sync(now, position, out);
    }

    fn leap_write(&mut self, start: Sectors, count: Sectors) {
        // With all members a bitmap's old bits are cleared again by the time that the
        // leap has taken.
        self.array.leap_write(start, count);
    }

    fn leap_sample(&self) -> Nanos {
        match self.level {
            // Linear's members come one after the other.
            Level::Linear => NEVER,
            // Only streams are sampled by this. The stripe cache grows for some seconds before they
            // have their pace, and a bitmap needs pages that it did not need before its daemon
            // had passed twice.
            _ if self.level.parity_count() > 0 || self.has_bitmap => Nanos::from_secs(10),
            _ => Nanos::from_secs(1),
        }
    }

    fn longest_sync_leap(&self) -> Nanos {
        match self.level {
            // The cache is full of stripes in work by then, and each leap has to empty it
            // and to fill it again.
            Level::Raid4 | Level::Raid5 | Level::Raid6 => Nanos::from_secs(3600),
            _ => Nanos::from_secs(600),
        }
    }

    fn sync_gait(&self) -> Gait {
        match self.has_bitmap {
            // A sync comes to rest where bits may age: after the `daemon_sleep` of the bitmap,
            // which is five seconds.
            true => Gait::Rhythmic(Nanos::from_secs(5)),
            // After a leap it takes more than a second to fill the largest cache again.
            false if self.level.parity_count() > 0 => Gait::Growing(Nanos::from_secs(3)),
            false => Gait::Even,
        }
    }

    fn threads_go_first(&self) -> bool {
        matches!(self.level, Level::Raid4 | Level::Raid5 | Level::Raid6)
    }

    fn set_behind(&mut self, behind: Behind) {
        self.array.set_behind(behind);
    }

    fn holds_submitter(&self, process: u32) -> bool {
        self.array.holds_submitter(process)
    }

    fn overflows(&self) -> u64 {
        self.array.overflows()
    }

    fn waits(&self) -> Vec<String> {
        self.array.waits()
    }

    fn is_idle(&self) -> bool {
        self.start.is_none() && self.verbs.is_empty() && self.array.is_idle()
    }

    fn disk_of(&self, slot: Slot) -> usize {
        let disk = self.handles.iter().position(|handle| *handle == slot);
        disk.unwrap_or_else(|| slot.index())
    }

    fn health(&self) -> String {
        self.array.status().health
    }

    fn size(&self) -> Sectors {
        self.array.size()
    }

    fn member_sector(&self, sector: Sectors) -> Sectors {
        let spread = self.spread();
        self.data_offset + scale(sector, spread, self.array.size()).min(spread)
    }

    fn member_sync_sector(&self, position: Sectors) -> Sectors {
        self.data_offset + position.min(self.used)
    }
}
