//! An array that remembers itself on its members.

mod assembly;
mod error;
mod intent;
mod log_superblock;

pub use assembly::{
    AssembleOptions, AssembledMember, Assembly, Candidate, LeftOut, NeededReplay, NeededSync, Part,
    Stale, Update,
};
pub use error::{AssembleError, LogFault, StartError, VerbError};
pub use log_superblock::{LOG_SUPERBLOCK_SECTORS, LogSuperblock, log_area};
