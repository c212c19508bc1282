//! The [`Engine`] interface of the levels that keep whole copies.

use super::plug::Plugged;
use super::{Array, RequestState, Role};
use crate::config::MemberConfig;
use crate::engine::{Behind, Engine, Imitation, SyncRequest};
use crate::recovery::{Plan, SyncKind, SyncStatus};
use crate::request::{
    CommandId, Event, MemberError, Operation, Outputs, Request, Sender, Slot, StepId, StepResult,
};
use raidlab_units::{Nanos, Sectors, Span, SpanSet};

impl Engine for Array {
    fn size(&self) -> Sectors {
        self.size()
    }

    fn submit(&mut self, now: Nanos, request: Request, out: &mut Outputs) {
        self.now = now;
        if !request.is_inside(self.size(), out) {
            return;
        }
        let key = self.requests.insert(RequestState {
            request,
            remaining: 0,
            failed: false,
        });
        match request.operation {
            Operation::Read => self.submit_read(key, request.start, out),
            Operation::Write | Operation::Discard => self.submit_write(key, &request, out),
            Operation::Flush => self.submit_flush(key, out),
        }
    }

    fn complete(
        &mut self,
        now: Nanos,
        id: CommandId,
        result: Result<(), MemberError>,
        out: &mut Outputs,
    ) {
        self.now = now;
        let Some(command) = self.commands.take_key(id.0) else {
            debug_assert!(false, "{id:?} is not in flight");
            return;
        };
        if matches!(command.role, Role::Read { .. } | Role::Write { .. })
            && let Sender::Process(process) = self.sender(command.role)
            && !self.behind.has(process)
        {
            self.recovery.yield_to_submitters(now);
        }
        self.frees(id, command.slot, out);
        let mut parts = self.plug.parts(id).into_iter().peekable();
        self.thread.has_more = parts.peek().is_some();
        self.command_ended(&command, result, true, out);
        while let Some(part) = parts.next() {
            self.thread.has_more = parts.peek().is_some();
            self.command_ended(&part, result, false, out);
        }
        if self.senders.somebody_woke() {
            self.run_thread(out);
            self.pump_sync(out);
        }
    }

    fn tick(&mut self, now: Nanos, out: &mut Outputs) {
        self.now = now;
        self.recovery.end_yield(now);
        self.start_recovery(out);
        self.pump_sync(out);
    }

    fn next_tick(&self) -> Option<Nanos> {
        if self.owes_recovery() {
            return Some(self.now);
        }
        // The sync has nothing to do before its thread has the processor again.
        self.recovery
            .yields_until()
            .or(self.recovery.walk.wakes_at())
    }

    fn sync_status(&self) -> Option<SyncStatus> {
        self.recovery.status()
    }

    fn sync_rest(&mut self) -> Option<SpanSet> {
        // Elsewhere a chunk of the bitmap is in many places of a member.
        self.is_mirror.then(|| self.recovery.rest())
    }

    fn is_idle(&self) -> bool {
        self.requests.is_empty()
            && self.commands.is_empty()
            && self.recovery.in_flight() == 0
            && !self.is_correcting()
    }

    fn release_recorded(&mut self, out: &mut Outputs) {
        for piece in std::mem::take(&mut self.unanswered) {
            self.answer(piece, out);
        }
        self.release_gated(out);
    }

    fn begin_sync(&mut self, request: SyncRequest, out: &mut Outputs) {
        let kind = request.action.kind();
        out.events.push(Event::SyncStarted(Sectors::ZERO));
        let targets = self.comparable();
        if targets.is_empty() {
            if kind == SyncKind::Resync {
                // No second copy is left that might differ.
                self.resynced_below = None;
            }
            out.events.push(Event::SyncFinished);
            self.start_recovery(out);
        } else {
            if kind == SyncKind::Resync {
                self.resynced_below = Some(Sectors::ZERO);
            }
            let plan = Plan {
                kind,
                targets,
                todo: SpanSet::from_iter([Span::new(0, self.size().0)]),
                total: self.size(),
            };
            let ranges = request.ranges.map(|ranges| ranges.into_iter().collect());
            self.recovery.begin(self.now, plan, ranges, &self.members);
        }
    }

    fn stop_sync(&mut self, now: Nanos, out: &mut Outputs) {
        self.now = now;
        self.recovery.cancel();
        self.pump_sync(out);
    }

    fn leap_sync(&mut self, now: Nanos, position: Sectors, out: &mut Outputs) {
        self.now = now;
        let wanted = self.sync_rest();
        let leapt = self.recovery.leap(now, position, wanted);
        debug_assert!(leapt, "a leap needs a frozen and drained sync");
        if !leapt {
            return;
        }
        self.publish_progress();
        let status = self.recovery.status();
        if let Some(status) = status.filter(|status| status.readable_below > Sectors::ZERO) {
            out.events
                .push(Event::SyncCheckpoint(status.readable_below));
        }
        if status.is_some_and(|status| status.position >= status.total) {
            self.finish_sync(out);
            self.pump_sync(out);
        }
    }

    fn computed(&mut self, now: Nanos, step: StepId, result: StepResult, out: &mut Outputs) {
        self.computed(now, step, result, out);
    }

    fn waits(&self) -> Vec<String> {
        self.waits()
    }

    fn imitation(&self) -> Option<&dyn Imitation> {
        Some(self)
    }

    fn imitation_mut(&mut self) -> Option<&mut dyn Imitation> {
        Some(self)
    }

    fn member_replaced(&mut self, slot: Slot, member: MemberConfig) {
        self.members.set_replaced(slot, member);
        self.policy.member_added(slot);
    }
}

impl Imitation for Array {
    fn enter(&mut self, now: Nanos, request: &Request) -> bool {
        self.enter(now, request)
    }

    fn leave(&mut self, request: &Request) {
        self.leave(request);
    }

    fn holds_submitter(&self, process: u32) -> bool {
        if self.senders.is_asleep(Sender::Process(process)) {
            return true;
        }
        let pieces = self.waiting.iter().map(|key| self.pieces.get(*key).request);
        let mut requests = pieces.chain(self.waiting_reads.iter().map(|(key, _)| *key));
        requests.any(|key| self.requests.get(key).request.process == process)
    }

    fn overflows(&self) -> u64 {
        self.senders.overflows()
    }

    fn set_behind(&mut self, behind: Behind) {
        self.behind = behind;
    }

    fn leaves_out(&self, range: Span) -> bool {
        let mut start = range.start;
        while start < range.end {
            let extent = self.map.extent(start);
            if !(extent.slots() - self.members.in_service()).is_empty() {
                return true;
            }
            start += extent.contiguous;
        }
        false
    }

    fn set_metadata_pass(&mut self, now: Nanos, runs: bool, out: &mut Outputs) {
        self.set_thread_busy(now, runs, out);
    }

    fn metadata_written(&mut self, slot: Slot, count: Sectors) {
        self.members.part_completed(slot, count.0);
    }

    fn unplug(&mut self, out: &mut Outputs) {
        self.unplug(Plugged::Request, self.maximum_request, out);
        let Some(longest) = self.recovery.plugged_command() else {
            return;
        };
        loop {
            self.unplug(Plugged::Read, longest, out);
            self.unplug(Plugged::Write, longest, out);
            if !self.senders.somebody_woke() {
                return;
            }
            self.run_thread(out);
            self.pump_sync(out);
        }
    }
}
