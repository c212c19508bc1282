//! Commands and files on a machine: this one, one behind ssh, or a recorded one.
//!
//! Everything that raidlab does to a real system passes through a [`Target`]:
//! programs with an argument vector, never a line for a shell to take apart,
//! and files such as those of `/sys`. So the same code builds an array here,
//! on another host and in a test, where a recorded
//! target answers with what a real system once said; and every command that
//! ran, with its exit status and its output, can be kept.

mod command;
mod exchange;
mod leftovers;
mod local;
mod observed;
mod process;
mod recorded;
mod shared;
mod ssh;
mod target;
mod warden;
mod watch;

pub use command::{Command, Effect, Output};
pub use exchange::{Answer, Exchange, Failure, Request};
pub use leftovers::{Leftover, end_leftovers, leftovers};
pub use local::Local;
pub use observed::Observed;
pub use recorded::{Recorded, TranscriptError};
pub use ssh::{Ssh, SshOptions};
pub use target::{Frame, Frames, Running, Target, TargetError, Watched};
