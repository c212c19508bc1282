//! The array as an engine among those of other levels.

use super::Array;
use crate::admission::Admission;
use crate::config::{AdminError, MemberConfig};
use crate::engine::{Engine, SyncRequest};
use crate::member::MemberState;
use crate::recovery::SyncStatus;
use crate::request::{CommandId, MemberError, Outputs, Request, Slot, StepId, StepResult};
use raidlab_units::{Nanos, Sectors};

impl Engine for Array {
    fn size(&self) -> Sectors {
        self.size()
    }

    fn submit(&mut self, now: Nanos, request: Request, out: &mut Outputs) {
        self.submit(now, request, out);
    }

    fn complete(
        &mut self,
        now: Nanos,
        command: CommandId,
        result: Result<(), MemberError>,
        out: &mut Outputs,
    ) {
        self.complete(now, command, result, out);
    }

    fn computed(&mut self, now: Nanos, step: StepId, result: StepResult, out: &mut Outputs) {
        self.computed(now, step, result, out);
    }

    fn tick(&mut self, now: Nanos, out: &mut Outputs) {
        self.tick(now, out);
    }

    fn next_tick(&self) -> Option<Nanos> {
        self.next_tick()
    }

    fn member_states(&self) -> Vec<MemberState> {
        self.member_states().collect()
    }

    fn sync_status(&self) -> Option<SyncStatus> {
        self.sync_status()
    }

    fn is_idle(&self) -> bool {
        self.is_idle()
    }

    fn holds_submitter(&self, process: u32) -> bool {
        self.holds_submitter(process)
    }

    fn enter(&mut self, now: Nanos, request: &Request) -> bool {
        self.enter(now, request)
    }

    fn leave(&mut self, request: &Request) {
        self.leave(request);
    }

    fn waits(&self) -> Vec<String> {
        self.waits()
    }

    fn set_metadata_pass(&mut self, now: Nanos, runs: bool, out: &mut Outputs) {
        self.set_thread_busy(now, runs, out);
    }

    fn fail(&mut self, now: Nanos, slot: Slot, out: &mut Outputs) -> Result<(), AdminError> {
        self.fail(now, slot, out)
    }

    fn failure_recorded(&mut self, now: Nanos, slot: Slot, out: &mut Outputs) {
        self.failure_recorded(now, slot, out);
    }

    fn remove(&mut self, now: Nanos, slot: Slot, out: &mut Outputs) -> Result<(), AdminError> {
        self.remove(now, slot, out)
    }

    fn add(
        &mut self,
        now: Nanos,
        slot: Slot,
        member: MemberConfig,
        admission: Admission,
        out: &mut Outputs,
    ) -> Result<(), AdminError> {
        self.add(now, slot, member, admission, out)
    }

    fn member_replaced(&mut self, slot: Slot, member: MemberConfig) {
        self.members.set_replaced(slot, member);
        self.policy.member_added(slot);
    }

    fn start_sync(
        &mut self,
        now: Nanos,
        request: SyncRequest,
        out: &mut Outputs,
    ) -> Result<(), AdminError> {
        self.start_sync(now, request, out)
    }

    fn stop_sync(&mut self, now: Nanos, out: &mut Outputs) {
        self.stop_sync(now, out);
    }

    fn set_sync_speed(&mut self, minimum_kib_per_second: u64, maximum_kib_per_second: u64) {
        self.set_sync_speed(minimum_kib_per_second, maximum_kib_per_second);
    }

    fn freeze_sync(&mut self) {
        self.freeze_sync();
    }

    fn thaw_sync(&mut self, now: Nanos, out: &mut Outputs) {
        self.thaw_sync(now, out);
    }

    fn leap_sync(&mut self, now: Nanos, position: Sectors, out: &mut Outputs) {
        self.leap_sync(now, position, out);
    }
}
