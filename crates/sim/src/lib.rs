//! Virtual time: the calendar, the host layer and the statistics around a
//! subject and its disks.
//!
//! A [`Machine`] holds one subject (an array or a pool), its disks and its
//! host. It runs one thing after the other: a group of jobs, a wait, an
//! administrator's verb. Time is the calendar's: the next event is always the
//! earliest of what the host, the disks and the subject have announced, and
//! nothing else makes time pass, except a leap over a phase in which nothing
//! changes but the place ([`Machine`] says when).

mod array_subject;
mod calendar;
mod drive;
mod explain;
mod host;
mod jobs;
mod latency_target;
mod leap;
mod machine;
mod pace;
mod persistent_subject;
mod processor;
mod result;
mod run;
mod steady;
mod steps;
mod subject;

pub use array_subject::ArraySubject;
pub use drive::DiskCommand;
pub use explain::Explained;
pub use host::Host;
pub use machine::{CommandWatcher, Machine, MachineConfig, SimError, Watch};
pub use persistent_subject::PersistentSubject;
pub use processor::{
    ArrayKind, ArrayPaths, BitmapWrites, Checksum, Compression, LockUse, OldLocks, PoolPaths,
    ProcessorConfig, ProcessorError, ProcessorNumbers, ProcessorPreset, ProcessorSource,
    ProcessorUse, ThreadUse,
};
pub use result::{
    DepthFound, JobOperations, JobResult, Latencies, MemberStatistics, OperationResult, Steadiness,
};
pub use subject::{Gait, Subject, SubjectError, SubjectState};
