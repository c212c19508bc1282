//! Members, which are files, block devices or other arrays, and commands to them.
//!
//! Fault model: a command can fail with an error, be cut short, or never
//! complete. What is cut short goes on where it ended. An error becomes one of
//! the core's two: the place is bad (the core may correct it from the others)
//! or the member is gone. A command without an answer within the time limit
//! makes its whole member gone; the bytes it may still read or write stay
//! borrowed until it does answer, so that a late completion touches memory that
//! nobody else was given. After an fdatasync that failed, Linux forgets which
//! pages were not written: no retry can be trusted, and the member is gone.

mod commands;
#[expect(unsafe_code, reason = "memory shared with the kernel")]
mod memory;
mod nested;
mod open;
#[expect(unsafe_code, reason = "io_uring")]
mod ring;
mod storage;
mod threads;
mod wake;

pub use commands::{Answer, MemberCounters, Members, MembersConfig};
pub use memory::{BorrowError, Exclusive, Memory, Shared};
pub use nested::{Member, NestedMember};
pub use open::{Access, Identity, MemberFile, OpenError, OpenOptions};
pub use ring::{RegisteredMemory, Ring};
pub use rustix::io::Errno;
pub use storage::Storage;
pub use threads::Threads;
pub(crate) use wake::WakeRead;
pub use wake::Waker;

use raidlab_array::mutation::{self, Mutation};
use std::fmt::Debug;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// What a command does, with its bytes.
#[derive(Debug)]
pub enum Transfer {
    /// Bytes are read from the member into this range of memory.
    Read(Exclusive),
    /// Bytes of memory are written to the member.
    Write {
        /// The range of memory whose bytes are written.
        data: Shared,
        /// Whether the bytes must be durable before the command completes.
        force_unit_access: bool,
    },
    /// Every write completed before is durable.
    Flush,
    /// The bytes are no longer needed; a member that cannot forget keeps them.
    Discard {
        /// Bytes from the offset on that may be forgotten.
        bytes: u64,
    },
}

/// A command on its way through a backend, which gives it back when it has
/// ended. It owns all that the kernel may touch.
#[derive(Debug)]
pub struct Job {
    /// The sender's name for it.
    pub token: u64,
    /// The place of the member among those that the backend serves.
    pub place: usize,
    /// What the member's bytes lie on.
    pub storage: Arc<dyn Storage>,
    /// First byte on the member.
    pub offset: u64,
    /// What is read or written, and where in memory.
    pub transfer: Transfer,
    /// Bytes moved by earlier, short attempts.
    pub moved: usize,
}

impl Job {
    /// The byte on the member where this attempt begins.
    #[must_use]
    pub fn at(&self) -> u64 {
        match mutation::is(Mutation::RestAtStart) {
            true => self.offset,
            false => self.offset + self.moved as u64,
        }
    }
}

/// How a job ended: bytes moved by this attempt (0 for a flush or a discard),
/// or the system's error.
pub type Ended = Result<usize, Errno>;

/// A way to have jobs carried out, used by one thread.
pub trait Backend: Debug + Send {
    /// Which one, for people: `io_uring` or `threads`.
    fn name(&self) -> &'static str;

    /// Makes a member known at a place, instead of the one that was there.
    ///
    /// # Errors
    /// When the system has no room for it, or it is nothing that this backend can
    /// reach.
    fn attach(&mut self, place: usize, storage: &Arc<dyn Storage>) -> io::Result<()>;

    /// Forgets the member at a place; its jobs under way still come back.
    fn detach(&mut self, place: usize);

    /// Takes a job. It may not start before [`Self::wait`].
    fn submit(&mut self, job: Job);

    /// Starts all jobs taken, then returns when one has ended, the
    /// [`Waker`] was used or the time has passed (`None`: never; zero: does not
    /// sleep). Jobs that have ended are appended to `ended`.
    ///
    /// # Errors
    /// When the backend itself no longer works.
    fn wait(&mut self, timeout: Option<Duration>, ended: &mut Vec<(Job, Ended)>) -> io::Result<()>;

    /// What of the payloads' memory is registered with the kernel; `None` for a
    /// backend that was not to register any.
    fn registered(&self) -> Option<RegisteredMemory> {
        None
    }
}

/// Which backend to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BackendKind {
    /// `io_uring` where the kernel lets us, else threads.
    #[default]
    Automatic,
    /// `io_uring` or nothing.
    Ring,
    /// Threads that call pread and pwrite.
    Threads,
}

/// Starts a backend. The thread that calls this must be the one that uses it.
/// `registered_bytes`: so much memory a ring may register with the kernel.
///
/// # Errors
/// When an `io_uring` was asked for and refused, or no wake-up descriptor can be
/// made.
pub fn start_backend(
    kind: BackendKind,
    registered_bytes: u64,
    waker: &Arc<Waker>,
) -> io::Result<Box<dyn Backend>> {
    match kind {
        BackendKind::Threads => Ok(Box::new(Threads::new(waker))),
        BackendKind::Ring => Ok(Box::new(Ring::new(waker, registered_bytes)?)),
        BackendKind::Automatic => match Ring::new(waker, registered_bytes) {
            Ok(ring) => Ok(Box::new(ring)),
            Err(_) => Ok(Box::new(Threads::new(waker))),
        },
    }
}

#[cfg(test)]
mod tests;
