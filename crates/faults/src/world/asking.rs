//! The beginning of requests.

use super::{Asked, Violation, World, violation};
use crate::driver::Line;
use crate::oracle::OperationId;
use crate::pages::SECTOR;
use crate::value::{Value, fill};
use raidlab_array::{Operation, Request, RequestId};
use raidlab_serve::export::{self, Buffer, RequestFlags};
use raidlab_units::Sectors;
use std::sync::Arc;

impl World<'_> {
    /// Begins a request; it waits first while too many are in flight.
    pub(super) fn ask(
        &mut self,
        operation: Operation,
        start: u64,
        count: u64,
        force_unit_access: bool,
    ) -> Result<(), Violation> {
        let may_grow = self.options.seldom.room.is_some();
        if may_grow && start + count > self.reader.size {
            // The range exists only in an array that has grown.
            return Ok(());
        }
        while self.asked.len() >= self.options.depth {
            self.step_event()?;
        }
        if !self.options.overlaps {
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
        let payload = self.prepare(&request)?;
        self.statistics.requests += 1;
        let operation = OperationId(id);
        self.asked.insert(id, Asked { request, operation });
        let words = [2, id, start, count, u64::from(force_unit_access)];
        let text = format_args!("request {id}: {:?} {start}+{count}", request.operation);
        self.trace.note(self.now, &words, text);
        self.call(|driver, now| {
            let answer = Arc::new(driver.line.clone());
            driver.request(now, asked(&request, payload, (answer, id)));
        })
    }

    /// Tells the oracle of a request, and returns its payload.
    fn prepare(&mut self, request: &Request) -> Result<Buffer, Violation> {
        let operation = OperationId(request.id.0);
        let (start, count) = (request.start.0, request.count.0);
        match request.operation {
            Operation::Flush | Operation::Read => self.oracle.submitted(operation),
            Operation::Discard => self.oracle.discard_submitted(operation, start, count),
            Operation::Write => {}
        }
        if matches!(request.operation, Operation::Flush | Operation::Discard) {
            return Ok(Buffer::empty());
        }
        let bytes = count as usize * SECTOR;
        let payload = self.buffers.take(bytes);
        let mut payload = payload.map_err(|error| violation("buffers", error.to_string()))?;
        if request.operation == Operation::Write {
            let sectors = (start..).zip(payload.chunks_exact_mut(SECTOR));
            for (sector, bytes) in sectors {
                fill(request.id.0, sector, bytes);
            }
            let (sectors, _) = payload.as_chunks::<SECTOR>();
            let values = sectors.iter().map(Value::of);
            self.oracle.write_submitted(operation, start, values);
        }
        Ok(payload)
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

/// Returns a request in the form in which clients of the driver make it.
pub(super) fn asked(
    request: &Request,
    payload: Buffer,
    answer: (Arc<Line>, u64),
) -> export::Request {
    let operation = match request.operation {
        Operation::Read => export::Operation::Read,
        Operation::Write => export::Operation::Write,
        Operation::Flush => export::Operation::Flush,
        Operation::Discard => export::Operation::Trim,
    };
    let flags = RequestFlags {
        force_unit_access: request.force_unit_access,
        ..RequestFlags::default()
    };
    let length = u32::try_from(request.count.to_bytes().0).unwrap_or(u32::MAX);
    let offset = request.start.to_bytes().0;
    export::Request::new(
        operation,
        offset,
        length,
        flags,
        payload,
        (answer.0, answer.1),
    )
}
