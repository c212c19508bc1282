//! Commands and files on a machine: this one, one behind ssh, or a recorded one.
//!
//! Everything that raidlab does to a real system passes through a [`Target`]: programs with an
//! argument vector, never a line for a shell to parse, and files such as those of `/sys`. So the
//! same code builds an array here ([`Local`]), on another host, FreeBSD among them ([`Ssh`]), and
//! in a test, where a [`Recorded`] machine replays the answers of a real system. [`Observed`]
//! reports every command that ran, with its exit status and its output: for the lab's journal, or
//! as a transcript for [`Recorded`].
//!
//! # Guarantees
//! - Tools speak English: `LC_ALL=C` is always set.
//! - No output is cut, no pipe fills up, and input that is not read does not block. Bytes that are
//!   no UTF-8 are replaced.
//! - Stopping a command, or its running out of time, ends all that it started, except what has
//!   detached itself as a daemon; so does dropping it.
//! - A killed raidlab leaves nothing running: here a warden process notices its end, on the far
//!   side of ssh a keeper does. Daemons are found by [`leftovers`], if the caller has set a marker
//!   for every command ([`Local::environment`], [`SshOptions::environment`]).
//! - Frames of a watch are taken on a schedule that does not drift; where a machine is too slow for
//!   it, ticks are left out.
//!
//! ```
//! use raidlab_shell::{Command, Recorded, Target};
//!
//! let detail = Command::reads("mdadm", ["--detail", "/dev/md0"]);
//! let store = Recorded::new("store1")
//!     .says(&detail, "State : clean\n")
//!     .file("/sys/block/md0/md/sync_action", "idle\n");
//! assert_eq!(store.run(&detail)?.stdout, "State : clean\n");
//! store.write("/sys/block/md0/md/sync_action", "check")?;
//! assert_eq!(store.read("/sys/block/md0/md/sync_action")?, "check");
//! assert_eq!(store.commands(), ["mdadm --detail /dev/md0"]);
//! # Ok::<(), raidlab_shell::TargetError>(())
//! ```

mod command;
mod exchange;
mod hold;
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
pub use hold::{Claim, KernelDisk, Lock, LockError, lock_file};
pub use leftovers::{Leftover, end_leftovers, leftovers};
pub use local::Local;
pub use observed::{Observed, Observer};
pub use recorded::{Recorded, TranscriptError};
pub use ssh::{Ssh, SshOptions};
pub use target::{Frame, Frames, Running, TOOL_FOLDERS, Target, TargetError, Watched};
