//! Members, which are files, block devices or other arrays, and commands to them.
//!
//! Fault model: a command can fail with an error, be cut short, or never complete. A command that
//! is cut short is continued where it ended. An error becomes one of the core's two: the place is
//! bad (the core may correct it from the other members) or the member is gone. A command without an
//! answer within the time limit makes its whole member gone; the bytes that it may still read or
//! write stay borrowed until it does answer, so that a late completion touches memory that has no
//! other use. After an fdatasync that failed, Linux forgets which pages were not written: no retry
//! can be trusted, and the member is gone.

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

/// The operation of a command, with its bytes.
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
    /// Every write completed before it becomes durable.
    Flush,
    /// The bytes are no longer needed; a member that cannot discard keeps them.
    Discard {
        /// The number of bytes, from the offset on.
        bytes: u64,
    },
}

/// A command on its way through a backend, which returns it when it has ended. It owns all memory
/// that the kernel may access.
#[derive(Debug)]
pub struct Job {
    /// The name that its sender gave it.
    pub token: u64,
    /// The place of the member among those that the backend serves.
    pub place: usize,
    /// The storage of the member's bytes.
    pub storage: Arc<dyn Storage>,
    /// The first byte on the member.
    pub offset: u64,
    /// The operation, and its range of memory.
    pub transfer: Transfer,
    /// The number of bytes that earlier, short attempts moved.
    pub moved: usize,
}

impl Job {
    /// Returns the byte on the member where this attempt begins.
    #[must_use]
    pub fn at(&self) -> u64 {
        match mutation::is(Mutation::RestAtStart) {
            true => self.offset,
            false => self.offset + self.moved as u64,
        }
    }
}

/// The result of a job: bytes moved by this attempt (0 for a flush or a discard), or
/// the system's error.
pub type Ended = Result<usize, Errno>;

/// A mechanism that carries out jobs, used by one thread.
pub trait Backend: Debug + Send {
    /// Returns the backend's name, for people: `io_uring` or `threads`.
    fn name(&self) -> &'static str;

    /// Makes a member known at a place, replacing the one before it.
    ///
    /// # Errors
    /// When the system has no room for it, or this backend cannot access such a member.
    fn attach(&mut self, place: usize, storage: &Arc<dyn Storage>) -> io::Result<()>;

    /// Forgets the member at a place; its jobs under way are still returned.
    fn detach(&mut self, place: usize);

    /// Takes a job. It may be started only by [`Self::wait`].
    fn submit(&mut self, job: Job);

    /// Starts all jobs taken, then returns when one has ended, the [`Waker`] was used or the
    /// time has passed (`None`: no limit; zero: does not sleep). Jobs that have ended are
    /// appended to `ended`.
    ///
    /// # Errors
    /// When the backend itself no longer works.
    fn wait(&mut self, timeout: Option<Duration>, ended: &mut Vec<(Job, Ended)>) -> io::Result<()>;

    /// Returns how much of the payloads' memory is registered with the kernel; `None` for a backend
    /// that does not register any.
    fn registered(&self) -> Option<RegisteredMemory> {
        None
    }
}

/// The choice of a backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BackendKind {
    /// `io_uring` where the kernel permits it, else threads.
    #[default]
    Automatic,
    /// `io_uring`, with an error where the kernel refuses it.
    Ring,
    /// Threads that call pread and pwrite.
    Threads,
}

/// Starts a backend. The thread that calls this must be the one that uses it. `registered_bytes`:
/// the bytes that a ring may register with the kernel.
///
/// # Errors
/// When an `io_uring` was asked for and refused, or no wake-up descriptor can be made.
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
