//! The sans-IO array core: member states, read policies, writes, recovery.

mod request;

pub use request::{
    BufferId, CommandId, ComputeStep, Event, Finished, MemberCommand, MemberError, Operation,
    Outputs, Purpose, Request, RequestError, RequestId, Slot,
};
