//! A single member served as it is: every request is one command.
//!
//! The same driver runs it as an array, so the difference between the two is the cost of
//! the array core.

use raidlab_array::{
    BufferId, CommandId, Finished, MemberCommand, MemberError, Operation, Outputs, Purpose,
    Request, RequestError, RequestId, Sender, Slot,
};
use raidlab_units::{Nanos, Sectors};
use std::collections::HashMap;

const ONLY: Slot = Slot(0);

/// A disk without an array.
#[derive(Debug)]
pub(crate) struct Passthrough {
    size: Sectors,
    next: u64,
    commands: HashMap<CommandId, RequestId>,
}

impl Passthrough {
    pub(crate) fn new(size: Sectors) -> Self {
        Self {
            size,
            next: 0,
            commands: HashMap::new(),
        }
    }

    pub(super) fn size(&self) -> Sectors {
        self.size
    }

    pub(super) fn submit(&mut self, _: Nanos, request: Request, out: &mut Outputs) {
        let end = request.start.0.checked_add(request.count.0);
        if end.is_none_or(|end| end > self.size.0) {
            out.finished.push(Finished {
                id: request.id,
                result: Err(RequestError::OutOfRange),
            });
            return;
        }
        let id = CommandId(self.next);
        self.next += 1;
        self.commands.insert(id, request.id);
        let buffer = match request.operation {
            Operation::Read | Operation::Write => BufferId::Request {
                request: request.id,
                skip: Sectors::ZERO,
            },
            Operation::Flush | Operation::Discard => BufferId::None,
        };
        out.commands.push(MemberCommand {
            id,
            slot: ONLY,
            operation: request.operation,
            start: request.start,
            count: request.count,
            force_unit_access: request.force_unit_access,
            purpose: Purpose::Foreground,
            sender: Sender::Process(request.process),
            buffer,
        });
    }

    pub(super) fn complete(
        &mut self,
        _: Nanos,
        command: CommandId,
        result: Result<(), MemberError>,
        out: &mut Outputs,
    ) {
        if let Some(id) = self.commands.remove(&command) {
            let result = result.map_err(|_| RequestError::NoMember);
            out.finished.push(Finished { id, result });
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.commands.is_empty()
    }
}
