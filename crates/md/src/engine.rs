//! The [`Engine`](raidlab_array::Engine) interface of the md model.

use super::Raid5d;
use super::walk::{RequestWalk, Walkers};
use raidlab_array::{
    CommandId, Engine, Imitation, MemberError, Operation, Outputs, Request, RequestError, Sender,
    Slot, SyncRequest, SyncStatus,
};
use raidlab_units::{Nanos, Sectors, Span};
use std::collections::VecDeque;

impl Engine for Raid5d {
    fn size(&self) -> Sectors {
        self.map.size()
    }

    fn submit(&mut self, now: Nanos, request: Request, out: &mut Outputs) {
        self.now = now;
        let id = request.id;
        if !self.requests.begin(&request, self.map.size(), out) {
            return;
        }
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
            // A discard is advice, which this model does not follow.
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

    fn tick(&mut self, now: Nanos, out: &mut Outputs) {
        self.now = now;
        let thread = self.turn_of.take();
        if self.wants_turn() {
            self.take_turn(thread, out);
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
        self.requests.is_idle() && self.commands_in_flight == 0 && self.cache.is_idle()
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

    fn release_recorded(&mut self, out: &mut Outputs) {
        self.requests.release(&self.members, out);
    }

    fn begin_sync(&mut self, request: SyncRequest, out: &mut Outputs) {
        self.walk_through(&request, out);
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

    fn overflows(&self) -> u64 {
        self.senders.overflows()
    }

    fn has_a_thread(&self) -> bool {
        true
    }

    /// `STRIPE_DEGRADED` of Linux 6.1: a block, data or parity, that the write would have to skip.
    fn leaves_out(&self, range: Span) -> bool {
        let in_service = self.members.in_service();
        let mut start = range.start;
        while start < range.end {
            let place = self.map.locate(start);
            let row = self.map.row(place.row);
            let data = row.data_slot(place.index);
            let mut written = [Some(data), Some(row.p()), row.q()].into_iter().flatten();
            if written.any(|slot| !in_service.contains(slot)) {
                return true;
            }
            start += self.map.chunk() - place.offset;
        }
        false
    }

    fn drop_caches(&mut self) {
        self.cache.drop_caches(self.map.members());
    }

    fn begin_turn(&mut self, thread: usize) {
        self.turn_of = Some(thread);
    }

    fn take_time(&mut self, has_plug: bool) {
        let walks = VecDeque::new();
        self.walkers = Some(Walkers { has_plug, walks });
    }

    fn go_on(&mut self, now: Nanos, process: u32, out: &mut Outputs) {
        self.now = now;
        self.walk_on(process, out);
        self.pump_sync(out);
        self.tell_work(out);
    }

    fn end_turn(&mut self, now: Nanos, thread: usize, out: &mut Outputs) {
        self.now = now;
        if let Some(turn) = self.turns.remove(&thread) {
            self.let_go(turn, out);
        }
        self.pump_sync(out);
        self.tell_work(out);
    }

    fn metadata_written(&mut self, slot: Slot, count: Sectors) {
        self.members.part_completed(slot, count.0);
    }

    fn set_metadata_pass(&mut self, now: Nanos, runs: bool, out: &mut Outputs) {
        self.now = now;
        self.is_stalled = runs;
        if runs {
            // A process that goes to sleep sends what is under its plug.
            self.unplug_members(out);
        }
    }
}
