//! Arrays and file systems of real operating systems, each behind the same interface.
//!
//! A spec describes what to build, as in a suite's subject file. Its [`ArraySystem`] knows the
//! needed programs, the commands that build it on given members, how its state is read without
//! disturbing it, how a member is failed, removed and added, which settings are really in force,
//! and how it is taken down. Systems return commands; they run none that change anything, so a plan
//! can be shown before it is carried out. Linux and FreeBSD differ only behind this interface.

pub mod array;
pub mod filesystem;
mod mounts;
mod named;
mod words;

pub use array::spec::ArraySpec;
pub use array::{
    Access, ArrayStatus, ArraySystem, Built, CacheCounts, CacheState, ChangeMembers, Described,
    Health, Member, MemberState, Need, OperatingSystem, ReadBack, ReadState, SyncKind, SyncStatus,
    SystemError, WriteBack, read_all,
};
pub use filesystem::{FileSystemKind, FileSystemSpec, StripeGeometry};
pub use words::RefusedWord;
