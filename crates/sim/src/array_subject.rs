//! The array core as a subject.

use crate::subject::{Subject, SubjectError};
use raidlab_array::{
    AdminError, Admission, Array, CommandId, Engine, MemberConfig, MemberError, Outputs, Request,
    Slot, SyncProgress,
};
use raidlab_units::{Nanos, Sectors};

/// An array of like members.
pub struct ArraySubject {
    array: Array,
    /// The member that [`Subject::insert`] puts into an empty slot.
    member: MemberConfig,
}

impl ArraySubject {
    /// Makes the subject of an array, with the member that is put in when one is inserted.
    #[must_use]
    pub fn new(array: Array, member: MemberConfig) -> Self {
        Self { array, member }
    }
}

/// The refusal with the whole chain of causes on one line.
fn refused(error: AdminError) -> SubjectError {
    SubjectError(error.to_string())
}

impl Subject for ArraySubject {
    fn submit(&mut self, now: Nanos, request: Request, out: &mut Outputs) {
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
    }

    fn tick(&mut self, now: Nanos, out: &mut Outputs) {
        self.array.tick(now, out);
    }

    fn next_tick(&self) -> Option<Nanos> {
        self.array.next_tick()
    }

    fn fail(&mut self, now: Nanos, slot: Slot, out: &mut Outputs) -> Result<(), SubjectError> {
        self.array.fail(now, slot, out).map_err(refused)
    }

    fn remove(&mut self, now: Nanos, slot: Slot, out: &mut Outputs) -> Result<(), SubjectError> {
        self.array.remove(now, slot, out).map_err(refused)
    }

    fn insert(&mut self, now: Nanos, slot: Slot, out: &mut Outputs) -> Result<(), SubjectError> {
        self.array
            .add(
                now,
                slot,
                self.member.clone(),
                Admission::From(Sectors::ZERO),
                out,
            )
            .map_err(refused)
    }

    fn sync(&self) -> Option<SyncProgress> {
        self.array.sync_status().map(SyncProgress::from)
    }

    fn freeze_sync(&mut self) {
        self.array.freeze_sync();
    }

    fn thaw_sync(&mut self, now: Nanos, out: &mut Outputs) {
        self.array.thaw_sync(now, out);
    }

    fn leap_sync(&mut self, now: Nanos, position: Sectors, out: &mut Outputs) {
        self.array.leap_sync(now, position, out);
    }

    fn leap_write(&mut self, _start: Sectors, _count: Sectors) {
        // A mirror has no record of where data were written.
    }

    fn leap_sample(&self) -> Nanos {
        // Some 1500 requests of 128 KiB: a mirror runs evenly at once.
        Nanos::from_secs(1)
    }

    fn waits(&self) -> Vec<String> {
        self.array.waits()
    }

    fn is_idle(&self) -> bool {
        self.array
            .sync_status()
            .is_none_or(|status| status.in_flight == 0)
    }

    fn health(&self) -> String {
        self.array.health()
    }

    fn size(&self) -> Sectors {
        self.array.size()
    }

    fn member_sector(&self, sector: Sectors) -> Sectors {
        self.member.data_offset + sector
    }
}
