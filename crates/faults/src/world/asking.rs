//! Requests begin.

use super::{Asked, Violation, World, payload_error};
use crate::oracle::OperationId;
use crate::pages::SECTOR;
use crate::value::{Value, fill};
use raidlab_array::{Operation, Request, RequestId};
use raidlab_units::Sectors;

impl World<'_> {
    /// A request begins; it waits first while too many are in flight.
    pub(super) fn ask(
        &mut self,
        operation: Operation,
        start: u64,
        count: u64,
        force_unit_access: bool,
    ) -> Result<(), Violation> {
        while self.asked.len() >= self.options.depth {
            self.step_event()?;
        }
        if self.options.overlaps_forbidden() {
            self.wait_for_overlaps(operation, start, count)?;
        }
        let id = self.next_request;
        self.next_request += 1;
        let request = Request {
            id: RequestId(id),
            operation,
            start: Sectors(start),
            count: Sectors(count),
            force_unit_access,
            process: 0,
        };
        self.did(match operation {
            Operation::Read => "read",
            Operation::Write => "write",
            Operation::Discard => "discard",
            Operation::Flush => "flush",
        });
        self.prepare(&request)?;
        self.statistics.requests += 1;
        let operation = OperationId(id);
        self.asked.insert(id, Asked { request, operation });
        let words = [2, id, start, count, u64::from(force_unit_access)];
        let text = format_args!("request {id}: {:?} {start}+{count}", request.operation);
        self.trace.note(self.now, &words, text);
        self.call(|core, now, out| core.submit(now, request, out))
    }

    /// The oracle is told, and the payload made.
    fn prepare(&mut self, request: &Request) -> Result<(), Violation> {
        let operation = OperationId(request.id.0);
        let (start, count) = (request.start.0, request.count.0);
        match request.operation {
            Operation::Flush | Operation::Read => self.oracle.submitted(operation),
            Operation::Discard => self.oracle.discard_submitted(operation, start, count),
            Operation::Write => {}
        }
        if matches!(request.operation, Operation::Flush | Operation::Discard) {
            return Ok(());
        }
        let bytes = count as usize * SECTOR;
        let mut payload = self.buffers.take(bytes).map_err(payload_error)?;
        if request.operation == Operation::Write {
            let sectors = (start..).zip(payload.chunks_exact_mut(SECTOR));
            for (sector, bytes) in sectors {
                fill(request.id.0, sector, bytes);
            }
            let (sectors, _) = payload.as_chunks::<SECTOR>();
            let values = sectors.iter().map(Value::of);
            self.oracle.write_submitted(operation, start, values);
        }
        self.buffers
            .insert(request.id, payload)
            .map_err(payload_error)
    }

    pub(super) fn write(&mut self, start: u64, count: u64, durable: bool) -> Result<(), Violation> {
        self.ask(Operation::Write, start, count, durable)
    }

    pub(super) fn discard(&mut self, start: u64, count: u64) -> Result<(), Violation> {
        self.ask(Operation::Discard, start, count, false)
    }

    /// Waits until no write in flight overlaps this request's range.
    fn wait_for_overlaps(
        &mut self,
        operation: Operation,
        start: u64,
        count: u64,
    ) -> Result<(), Violation> {
        if matches!(operation, Operation::Read | Operation::Flush) {
            return Ok(());
        }
        let overlaps = |asked: &Asked| {
            let other = &asked.request;
            matches!(other.operation, Operation::Write | Operation::Discard)
                && other.start.0 < start + count
                && start < other.start.0 + other.count.0
        };
        while self.asked.values().any(overlaps) {
            self.step_event()?;
        }
        Ok(())
    }
}
