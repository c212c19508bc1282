//! Waking the one thread that owns an array.
//!
//! The owner announces that it is going to sleep, looks once more whether there
//! is something for it, and sleeps. Whoever leaves it something wakes it only
//! if it has announced: while it is busy nobody pays for a system call.

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::Errno;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Wakes the owner, from any thread.
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

    /// To be called after something was left for the owner.
    pub fn wake(&self) {
        if self.asleep.swap(false, Ordering::SeqCst) {
            // The counter cannot overflow: it is written once for each sleep.
            let _ = rustix::io::write(&self.descriptor, &1_u64.to_ne_bytes());
        }
    }

    /// The owner is about to sleep; it must look for work after this.
    pub fn announce(&self) {
        self.asleep.store(true, Ordering::SeqCst);
    }

    /// The owner does not sleep any more.
    pub fn awake(&self) {
        self.asleep.store(false, Ordering::SeqCst);
    }

    pub(crate) fn descriptor(&self) -> &OwnedFd {
        &self.descriptor
    }

    /// Sleeps until woken or the time has passed.
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
