//! The requests of an engine that serves each in parts.
//!
//! A request ends when its last part has ended, with the first error of any part. While a failure
//! is to be recorded, only reads are answered; other answers are held until then.

use crate::member::Members;
use crate::request::{Finished, Operation, Outputs, Request, RequestError, RequestId};
use raidlab_units::Sectors;
use std::collections::BTreeMap;

/// A request that has not ended.
#[derive(Debug)]
struct Active {
    reads: bool,
    process: u32,
    parts: usize,
    error: Option<RequestError>,
}

/// Requests that have not ended, and answers that are held.
#[derive(Debug, Default)]
pub struct Requests {
    active: BTreeMap<RequestId, Active>,
    held: Vec<Finished>,
}

impl Requests {
    /// Takes a request, as a part of itself, so that it cannot end too early. Returns false if it
    /// does not lie in an array of this size, and is answered.
    pub fn begin(&mut self, request: &Request, size: Sectors, out: &mut Outputs) -> bool {
        let active = Active {
            reads: request.operation == Operation::Read,
            process: request.process,
            parts: 1,
            error: None,
        };
        let is_taken = request.is_inside(size, out);
        if is_taken {
            self.active.insert(request.id, active);
        }
        is_taken
    }

    /// Adds one part to a request.
    pub fn add_part(&mut self, id: RequestId) {
        if let Some(active) = self.active.get_mut(&id) {
            active.parts += 1;
        }
    }

    /// Ends a part of a request.
    pub fn settle(
        &mut self,
        id: RequestId,
        result: Result<(), RequestError>,
        members: &Members,
        out: &mut Outputs,
    ) {
        let Some(active) = self.active.get_mut(&id) else {
            return;
        };
        active.parts -= 1;
        active.error = active.error.or(result.err());
        if active.parts > 0 {
            return;
        }
        let result = active.error.map_or(Ok(()), Err);
        match active.reads || members.unrecorded().is_empty() {
            true => out.finished.push(Finished { id, result }),
            false => self.held.push(Finished { id, result }),
        }
        self.active.remove(&id);
    }

    /// Returns the held answers, unless a failure is still to be recorded.
    pub fn release(&mut self, members: &Members, out: &mut Outputs) {
        if members.unrecorded().is_empty() {
            out.finished.append(&mut self.held);
        }
    }

    /// Returns the process that submitted a request.
    #[must_use]
    pub fn process(&self, id: RequestId) -> Option<u32> {
        Some(self.active.get(&id)?.process)
    }

    /// Returns the number of requests that have not ended.
    #[must_use]
    pub fn in_work(&self) -> usize {
        self.active.len()
    }

    /// Whether all have ended and were answered.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.active.is_empty() && self.held.is_empty()
    }
}
