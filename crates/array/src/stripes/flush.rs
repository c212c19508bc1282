//! Flushes: all members, for a request or for the log's own sake.

use super::flow::{Role, Transfer};
use super::{Mutation, StripeArray, mutated};
use crate::request::{BufferId, Operation, Outputs, Purpose, RequestError, RequestId};

/// A flush of all members.
#[derive(Debug)]
pub(super) struct Flush {
    pub(super) request: Option<RequestId>,
    pub(super) outstanding: usize,
    /// Log transactions whose in-place writes it makes durable.
    pub(super) transactions: Vec<u64>,
}

impl StripeArray {
    pub(super) fn submit_flush(&mut self, id: RequestId, out: &mut Outputs) {
        self.pending.release_delayed();
        if !mutated(Mutation::FlushForgotten) {
            self.count(&[id]);
            self.flush_members(Some(id), out);
        }
    }

    /// Flushes all members, for a request or for the log's own sake.
    pub(super) fn flush_members(&mut self, request: Option<RequestId>, out: &mut Outputs) {
        let number = self.next_flush;
        self.next_flush += 1;
        let mut slots = self.members.in_service();
        if mutated(Mutation::FlushOneMember) {
            slots = slots.iter().take(1).collect();
        }
        self.flushes.insert(
            number,
            Flush {
                request,
                outstanding: slots.len(),
                transactions: self.log_written_transactions(),
            },
        );
        for slot in slots.iter() {
            let transfer = Transfer {
                operation: Operation::Flush,
                start: 0,
                count: 0,
                buffer: BufferId::None,
                purpose: match request {
                    Some(_) => Purpose::Foreground,
                    None => Purpose::Metadata,
                },
                force_unit_access: false,
            };
            self.issue(slot, Role::Flush(number), transfer, out);
        }
        if slots.is_empty() {
            self.flush_ended(number, out);
        }
    }

    pub(super) fn flush_part_done(&mut self, number: u64, out: &mut Outputs) {
        if let Some(flush) = self.flushes.get_mut(&number) {
            flush.outstanding -= 1;
            if flush.outstanding == 0 {
                self.flush_ended(number, out);
            }
        }
    }

    fn flush_ended(&mut self, number: u64, out: &mut Outputs) {
        let Some(flush) = self.flushes.remove(&number) else {
            return;
        };
        self.log_flushed(&flush);
        if let Some(id) = flush.request {
            let result = if self.is_broken() {
                Err(RequestError::Failed)
            } else {
                Ok(())
            };
            self.settle(id, result, out);
        }
    }
}
