//! Waking of the one thread that owns an array.
//!
//! The owner announces that it is going to sleep, checks once more whether there is work, and
//! sleeps. A thread that sends it work wakes it only if it has announced that: while it is busy no
//! thread needs a system call.

use io_uring::types::Fd;
use io_uring::{opcode, squeue};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A waker of the owner, for any thread.
#[derive(Debug)]
pub struct Waker {
    descriptor: OwnedFd,
    asleep: AtomicBool,
}

impl Waker {
    /// A waker for one owner.
    ///
    /// # Errors
    /// When the system has no descriptor left.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            descriptor: eventfd(0, EventfdFlags::CLOEXEC)?,
            asleep: AtomicBool::new(false),
        })
    }

    /// Wakes the owner if it sleeps; to be called after work was sent to it.
    pub fn wake(&self) {
        if self.asleep.swap(false, Ordering::SeqCst) {
            // The counter cannot overflow: it is written once for each sleep.
            let _ = rustix::io::write(&self.descriptor, &1_u64.to_ne_bytes());
        }
    }

    /// Announces that the owner is about to sleep; it must check for work after this.
    pub fn announce(&self) {
        self.asleep.store(true, Ordering::SeqCst);
    }

    /// Records that the owner does not sleep any more.
    pub fn awake(&self) {
        self.asleep.store(false, Ordering::SeqCst);
    }

    /// Sleeps until woken or until the time has passed.
    pub(crate) fn sleep(&self, timeout: Option<Duration>) -> io::Result<()> {
        let mut descriptors = [PollFd::new(&self.descriptor, PollFlags::IN)];
        let timeout = timeout.map(|time| rustix::event::Timespec {
            tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(time.subsec_nanos()),
        });
        match poll(&mut descriptors, timeout.as_ref()) {
            Ok(0) | Err(Errno::INTR) => Ok(()),
            Ok(_) => {
                let mut count = [0; 8];
                rustix::io::read(&self.descriptor, &mut count)?;
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// The read of a waker's eventfd that is always under way in its owner's ring, so that new work for
/// the owner ends the wait like any completion.
#[derive(Default)]
pub(crate) struct WakeRead {
    /// The destination of the read, borrowed by the kernel while `armed`.
    bytes: Box<[u8; 8]>,
    armed: bool,
}

impl WakeRead {
    /// The number of the read among the ring's completions.
    pub(crate) const NAME: u64 = u64::MAX;

    /// Returns the entry to be submitted, if no read is under way.
    pub(crate) fn entry(&mut self, waker: &Waker) -> Option<squeue::Entry> {
        if std::mem::replace(&mut self.armed, true) {
            return None;
        }
        let eventfd = Fd(waker.descriptor.as_raw_fd());
        let read = opcode::Read::new(eventfd, self.bytes.as_mut_ptr(), 8);
        Some(read.build().user_data(Self::NAME))
    }

    /// Records that the read has been completed.
    pub(crate) fn ended(&mut self) {
        self.armed = false;
    }
}

impl Drop for WakeRead {
    fn drop(&mut self) {
        if self.armed {
            std::mem::forget(std::mem::take(&mut self.bytes));
        }
    }
}
