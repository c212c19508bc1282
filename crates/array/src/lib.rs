//! The sans-IO array core: member states, read policies, writes, recovery.

mod array;
mod config;
mod geometry;
mod member;
mod policy;
mod recovery;
mod request;
mod slab;
mod slots;

pub use array::Array;
pub use config::{AdminError, ArrayConfig, ConfigError, MemberConfig};
pub use member::MemberState;
pub use policy::{
    Choice, Io, IoKind, MemberView, Read, ReadPolicy, ReadPolicyError, ReadPolicyKind,
    ZfsFreebsd10, Zol06,
};
pub use recovery::{
    CheckpointRule, ReadRecovered, RecoveringWrites, RecoveryConfig, RecoveryConfigError, SyncKind,
    SyncSource, SyncStatus, Throttle, WriteBarrier,
};
pub use request::{
    BufferId, CommandId, ComputeStep, Event, Finished, MemberCommand, MemberError, Operation,
    Outputs, Purpose, Request, RequestError, RequestId, Slot,
};
pub use slots::{MAXIMUM_MEMBERS, SlotSet};
