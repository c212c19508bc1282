//! The kernel bench: the real Linux md, file systems and tools, in virtual time,
//! over modelled disks.
//!
//! ```text
//! raidlab run --on kernel                    the guest: a User-Mode Linux
//!   KernelBench   one boot per experiment     agent: raidlab itself, as init
//!     Boot        console, frames  <--------    HostBench: mdadm, fio, mkfs
//!     Calendar    clock, disks     <------->    md, ext4, XFS, btrfs
//! ```
//!
//! In the guest the [`agent`] runs the host bench, as on any machine; its clock is virtual and its
//! disks are the presets of the model bench. It hands out its measurements as frames, and
//! [`KernelBench`] passes them on as rows of its own.

pub mod agent;
mod bench;
mod devices;
mod error;
mod faults;
mod messages;
mod obstacle;
mod processors;
mod room;
mod schedule;
mod settings;
mod shown;
mod told;

pub use agent::AgentError;
pub use bench::{Describe, KernelBench, KernelError};
pub use error::DisksError;
pub use faults::{FaultError, check_faults};
pub use messages::MessageError;
pub use obstacle::{Obstacle, wants_openzfs};
pub use processors::PROCESSOR;
pub use raidlab_uml_calendar::{Fault, ScheduledFault, Storage, StorageError};
pub use room::{BESIDE, Room};
pub use schedule::{WrongFault, faults_in_words, scheduled_fault};
pub use settings::Settings;
