//! Reads: choose, and on an error choose again among the others.

use super::{Array, Command, RequestState, Role, Shape, payload};
use crate::policy::{Choice, Read};
use crate::recovery::Range;
use crate::request::{MemberError, Operation, Outputs, Request};
use raidlab_geometry::SlotSet;
use raidlab_units::Sectors;

impl Array {
    pub(super) fn submit_read(&mut self, key: u32, request: &Request, out: &mut Outputs) {
        let end = request.start + request.count;
        let mut start = request.start;
        while start < end {
            let limit = start + self.command_limit(start, end);
            self.read(key, Range { start, end: limit }, SlotSet::EMPTY, out);
            start = limit;
        }
        self.finish_if_done(key, out);
    }

    pub(super) fn complete_read(
        &mut self,
        command: &Command,
        key: u32,
        tried: SlotSet,
        result: Result<(), MemberError>,
        out: &mut Outputs,
    ) {
        self.requests.get_mut(key).remaining -= 1;
        if self.recovery.barrier_mut().counts_reads() {
            self.recovery.barrier_mut().io_finished(command.start);
        }
        if let Err(error) = result {
            self.member_error(command, error == MemberError::Gone, out);
            let range = Range {
                start: command.start,
                end: command.start + command.count,
            };
            self.read(key, range, tried.with(command.slot), out);
        }
        self.finish_if_done(key, out);
        if self.recovery.barrier_mut().counts_reads() {
            self.pump_sync(out);
        }
    }

    /// Reads a range for a request from members not tried yet; marks the
    /// request failed if there is none.
    fn read(&mut self, key: u32, range: Range, tried: SlotSet, out: &mut Outputs) {
        let request = self.requests.get(key).request;
        let mut start = range.start;
        while start < range.end {
            let read = Read {
                start,
                count: Sectors(range.end.0 - start.0),
                whole_start: range.start,
                whole_count: Sectors(range.end.0 - range.start.0),
                process: request.process,
                candidates: (self.members.readable(range.end) & self.geometry.copies(start))
                    - tried,
            };
            let Some(choice) = self.choose(&read) else {
                self.requests.get_mut(key).failed = true;
                return;
            };
            debug_assert!(read.candidates.contains(choice.slot) && choice.count <= read.count);
            let part = Range {
                start,
                end: start + choice.count,
            };
            if self.recovery.barrier_mut().counts_reads() {
                self.recovery.barrier_mut().io_started(start);
            }
            let RequestState { remaining, .. } = self.requests.get_mut(key);
            *remaining += 1;
            let shape = Shape {
                operation: Operation::Read,
                force_unit_access: false,
                buffer: payload(&request, start),
            };
            let role = Role::Read {
                request: key,
                tried,
            };
            self.issue(choice.slot, role, part, shape, out);
            start = part.end;
        }
    }

    /// Asks the policy; above the resync position of a dirty mirror it has no
    /// choice.
    #[inline]
    pub(super) fn choose(&mut self, read: &Read) -> Option<Choice> {
        let views = self.members.views();
        if self.resynced_below.is_some_and(|below| read.end() > below) {
            let slot = self.policy.choose_first(read, views)?;
            return Some(Choice {
                slot,
                count: read.count,
            });
        }
        self.policy.choose(self.now, read, views)
    }
}
