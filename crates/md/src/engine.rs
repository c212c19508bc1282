//! The engine's doors.

use super::walk::RequestWalk;
use super::{Active, Raid5d};
use raidlab_array::parts::Sender;
use raidlab_array::{
    AdminError, CommandId, Engine, Finished, Imitation, MemberError, Operation, Outputs, Request,
    RequestError, Slot, StepId, StepResult, SyncRequest, SyncStatus,
};
use raidlab_units::{Nanos, Sectors};

impl Engine for Raid5d {
    fn size(&self) -> Sectors {
        self.map.size()
    }

    fn submit(&mut self, now: Nanos, request: Request, out: &mut Outputs) {
        self.now = now;
        let id = request.id;
        let end = request.start.0.checked_add(request.count.0);
        let is_inside = request.count.0 > 0 && end.is_some_and(|it| it <= self.map.size().0);
        if request.operation != Operation::Flush && !is_inside {
            let result = Err(RequestError::OutOfRange);
            out.finished.push(Finished { id, result });
            return;
        }
        // The request itself is one part, so that it cannot finish too early.
        let active = Active {
            reads: request.operation == Operation::Read,
            process: request.process,
            waits_for: 1,
            error: None,
        };
        self.requests.insert(id, active);
        match request.operation {
            Operation::Read if self.is_whole() => {
                self.read_directly(&request, out);
                self.settle(id, Ok(()), out);
            }
            Operation::Write if self.is_broken() => {
                self.settle(id, Err(RequestError::Failed), out);
            }
            Operation::Read | Operation::Write => self.walk(RequestWalk::new(&request), out),
            Operation::Flush => {
                self.flush(id, out);
                self.settle(id, Ok(()), out);
            }
            // Advice that is not taken.
            Operation::Discard => self.settle(id, Ok(()), out),
        }
        self.pump_sync(out);
        self.tell_work(out);
    }

    fn complete(
        &mut self,
        now: Nanos,
        command: CommandId,
        result: Result<(), MemberError>,
        out: &mut Outputs,
    ) {
        self.now = now;
        self.command_done(command, result, out);
        self.pump_sync(out);
        self.tell_work(out);
    }

    fn computed(&mut self, now: Nanos, _step: StepId, _result: StepResult, _out: &mut Outputs) {
        self.now = now;
    }

    fn tick(&mut self, now: Nanos, out: &mut Outputs) {
        self.now = now;
        if self.wants_turn() {
            self.take_turn(out);
        }
        self.pump_sync(out);
        self.tell_work(out);
    }

    fn next_tick(&self) -> Option<Nanos> {
        if self.wants_turn() {
            return Some(self.now);
        }
        self.sync_wakes_at()
    }

    fn sync_status(&self) -> Option<SyncStatus> {
        self.walk.status(self.walk.checkpoint())
    }

    fn is_idle(&self) -> bool {
        self.requests.is_empty()
            && self.commands_in_flight == 0
            && self.held_finishes.is_empty()
            && self.cache.is_idle()
    }

    fn waits(&self) -> Vec<String> {
        self.waits_of_all()
    }

    fn imitation(&self) -> Option<&dyn Imitation> {
        Some(self)
    }

    fn imitation_mut(&mut self) -> Option<&mut dyn Imitation> {
        Some(self)
    }

    fn failure_recorded(&mut self, now: Nanos, slot: Slot, out: &mut Outputs) {
        self.now = now;
        self.members.failure_recorded(slot);
        if self.members.unrecorded().is_empty() {
            out.finished.append(&mut self.held_finishes);
        }
        self.pump_sync(out);
    }

    fn start_sync(
        &mut self,
        now: Nanos,
        request: SyncRequest,
        out: &mut Outputs,
    ) -> Result<(), AdminError> {
        self.now = now;
        self.begin_sync(&request, out)?;
        self.pump_sync(out);
        Ok(())
    }

    fn stop_sync(&mut self, now: Nanos, out: &mut Outputs) {
        self.now = now;
        self.walk.cancel();
        self.pump_sync(out);
    }

    fn set_sync_speed(&mut self, minimum_kib_per_second: u64, maximum_kib_per_second: u64) {
        let (minimum, maximum) = (minimum_kib_per_second, maximum_kib_per_second);
        self.walk
            .set_speeds(self.now, minimum, maximum, &self.members);
    }

    fn freeze_sync(&mut self) {
        self.walk.freeze(self.now);
    }

    fn thaw_sync(&mut self, now: Nanos, out: &mut Outputs) {
        self.now = now;
        self.walk.thaw();
        self.runs_evenly();
        self.pump_sync(out);
    }

    fn leap_sync(&mut self, now: Nanos, position: Sectors, out: &mut Outputs) {
        self.now = now;
        self.leap_stripes(position, out);
    }
}

impl Imitation for Raid5d {
    fn holds_submitter(&self, process: u32) -> bool {
        self.asleep.iter().any(|walk| walk.process == process)
            || self.senders.is_asleep(Sender::Process(process))
    }

    fn has_a_thread(&self) -> bool {
        true
    }

    fn drop_caches(&mut self) {
        self.cache.drop_caches(self.map.members());
    }

    fn set_metadata_pass(&mut self, now: Nanos, runs: bool, out: &mut Outputs) {
        self.now = now;
        self.is_stalled = runs;
        if runs {
            // Who sleeps lets go of what it has under its plug.
            self.unplug_members(out);
        }
    }
}
