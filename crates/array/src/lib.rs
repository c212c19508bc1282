//! The sans-IO array core: member states, read policies, writes, recovery.
//!
//! A driver owns the members, the clock and the payload. It hands requests and
//! answers to an [`Array`] and does what comes out:
//!
//! ```
//! use raidlab_array::{
//!     Array, ArrayConfig, Engine, MemberConfig, Operation, Outputs, ReadPolicyKind, RecoveryConfig,
//!     Request, RequestId, Slot,
//! };
//! use raidlab_units::{Nanos, Sectors};
//!
//! let disk = MemberConfig {
//!     size: Sectors(4096),
//!     data_offset: Sectors(0),
//!     rotational: true,
//!     write_mostly: false,
//!     bad_blocks: None,
//! };
//! let mut array = Array::new(ArrayConfig::mirror(
//!     vec![disk.clone(), disk],
//!     Sectors(4096),
//!     "md-6.9".parse::<ReadPolicyKind>()?,
//!     RecoveryConfig::md_3_16(),
//!     Sectors(1024),
//! ))?;
//! let mut out = Outputs::default();
//! let read = Request {
//!     id: RequestId(1),
//!     operation: Operation::Read,
//!     start: Sectors(100),
//!     count: Sectors(8),
//!     force_unit_access: false,
//!     process: 0,
//! };
//! array.submit(Nanos(0), read, &mut out);
//! let command = out.commands[0];
//! assert_eq!(command.slot, Slot(0));
//! out.clear();
//! array.complete(Nanos(11_000_000), command.id, Ok(()), &mut out);
//! assert_eq!(out.finished[0].id, RequestId(1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod admission;
mod array;
mod config;
mod engine;
mod member;
mod mix;
mod persistent;
mod policy;
mod recovery;
mod request;
mod requests;
mod senders;
mod slab;
mod stripes;

/// The parts of which other crates build engines and read policies.
pub mod parts {
    pub use crate::admission::blocks_of;
    pub use crate::member::{EngineParts, MemberRules, MemberVerbs, Members};
    pub use crate::policy::least_pending::Nearest;
    pub use crate::policy::md::{Balance, Lowest, MdRaid1, Positions};
    pub use crate::policy::md_raid10::MdRaid10;
    pub use crate::recovery::{Plan, Step, SyncWalk, is_plug_full, tried_in_plug};
    pub use crate::requests::Requests;
    pub use crate::senders::Senders;
    pub use crate::slab::Slab;
}

pub use admission::Admission;
pub use array::Array;
pub use config::{AdminError, ArrayConfig, ConfigError, Initial, MemberConfig, MemberTooSmall};
pub use engine::{
    Behind, EXTERNAL_BITMAP, Engine, FIRST_OUTER_ID, FIRST_OUTER_SCRATCH, Imitation, SyncAction,
    SyncRequest,
};
pub use member::MemberState;
pub use mix::{Mix, Mixed};
pub use persistent::{
    ArrayState, ArrayStatus, AssembleError, AssembleOptions, AssembledMember, Assembly, BitmapFile,
    Candidate, DeviceStatus, EngineOptions, LOG_SUPERBLOCK_SECTORS, LeftOut, LogBlock, LogFault,
    LogSays, LogSuperblock, LogWrite, NeededLog, NeededReplay, NeededSync, NewDevice, Numbers,
    ParityBuilder, Part, PersistentArray, Replay, Settings, Stale, StartError, SyncProgress,
    Update, VerbError, log_area,
};
pub use policy::{
    Choice, Io, IoKind, MemberView, Parameter, Places, Read, ReadPolicy, ReadPolicyError,
    ReadPolicyKind, Rule,
};
pub use raidlab_geometry::{
    Copies, CopyMap, Layout, Level, MAXIMUM_MEMBERS, Shape, ShapeError, SlotSet,
};
pub use raidlab_metadata::mutation;
pub use recovery::{
    CheckpointRule, MdRules, MdThreads, ReadRecovered, RecoveringWrites, RecoveryConfig,
    RecoveryConfigError, SyncKind, SyncSource, SyncStatus, Throttle, WriteBarrier,
};
pub use request::{
    BufferId, CommandId, ComputeStep, Event, Finished, MemberCommand, MemberError, Operation,
    Outputs, Purpose, Request, RequestError, RequestId, ScratchId, Sender, Slot, StepId,
    StepResult, StripeWork,
};
pub use senders::{HostRequests, OtherRequests};
pub use stripes::{
    LogConfig, RmwLevel, StripeArray, StripeConfig, StripeConfigError, WritePolicy,
    log as stripe_log,
};
