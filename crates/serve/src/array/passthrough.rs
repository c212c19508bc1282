//! One member served as it is: every request is one command.
//!
//! The same driver runs it as runs an array, so the difference between the two
//! is what the array core costs.

use raidlab_array::{
    AdminError, Admission, BufferId, CommandId, Engine, Finished, MemberCommand, MemberConfig,
    MemberError, MemberState, Operation, Outputs, Purpose, Request, RequestError, RequestId, Slot,
    StepId, StepResult, SyncRequest, SyncStatus,
};
use raidlab_units::{Nanos, Sectors};
use std::collections::HashMap;

const ONLY: Slot = Slot(0);

/// A disk that is no array.
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
}

impl Engine for Passthrough {
    fn size(&self) -> Sectors {
        self.size
    }

    fn submit(&mut self, _: Nanos, request: Request, out: &mut Outputs) {
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
            buffer,
        });
    }

    fn complete(
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

    fn computed(&mut self, _: Nanos, _: StepId, _: StepResult, _: &mut Outputs) {}

    fn tick(&mut self, _: Nanos, _: &mut Outputs) {}

    fn next_tick(&self) -> Option<Nanos> {
        None
    }

    fn member_states(&self) -> Vec<MemberState> {
        vec![MemberState::InSync]
    }

    fn sync_status(&self) -> Option<SyncStatus> {
        None
    }

    fn is_idle(&self) -> bool {
        self.commands.is_empty()
    }

    fn fail(&mut self, _: Nanos, slot: Slot, _: &mut Outputs) -> Result<(), AdminError> {
        Err(refusal(slot))
    }

    fn failure_recorded(&mut self, _: Nanos, _: Slot, _: &mut Outputs) {}

    fn remove(&mut self, _: Nanos, slot: Slot, _: &mut Outputs) -> Result<(), AdminError> {
        Err(refusal(slot))
    }

    fn add(
        &mut self,
        _: Nanos,
        slot: Slot,
        _: MemberConfig,
        _: Admission,
        _: &mut Outputs,
    ) -> Result<(), AdminError> {
        Err(if slot == ONLY {
            AdminError::Occupied(slot)
        } else {
            AdminError::NoSuchSlot(slot)
        })
    }

    /// There is nothing to compare with.
    fn start_sync(&mut self, _: Nanos, _: SyncRequest, _: &mut Outputs) -> Result<(), AdminError> {
        Ok(())
    }

    fn stop_sync(&mut self, _: Nanos, _: &mut Outputs) {}

    fn set_sync_speed(&mut self, _: u64, _: u64) {}
}

fn refusal(slot: Slot) -> AdminError {
    if slot == ONLY {
        AdminError::LastInSync(slot)
    } else {
        AdminError::NoSuchSlot(slot)
    }
}
