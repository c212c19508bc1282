//! The thread that drives a real array.
//!
//! It takes all requests and calls that have arrived, lets the owner process them, and only then
//! calls the kernel, once, to send all commands and to wait for the next completion, the next
//! request or the next tick.

use super::owner::{Broken, Owner};
use crate::export;
use crate::member::Waker;
use crossbeam_channel::Receiver;
use raidlab_units::Nanos;
use std::sync::Arc;
use std::time::Duration;

/// A function that the owner's thread calls between two requests.
pub(super) type Call = dyn FnOnce(&mut Owner, Nanos) + Send;

/// A message to the owner from another thread.
pub(super) enum Message {
    Request(export::Request),
    Call(Box<Call>),
    /// Tells the owner to finish what is under way and end.
    Stop,
}

/// Returns the time of the system's CLOCK_MONOTONIC, by which real arrays are driven.
#[must_use]
pub fn monotonic_now() -> Nanos {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(now.tv_nsec).unwrap_or(0);
    Nanos(seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
}

/// An owner in real time.
pub(super) struct Running {
    pub(super) owner: Owner,
    pub(super) inbox: Receiver<Message>,
    pub(super) waker: Arc<Waker>,
}

impl Running {
    /// Runs until the owner is told to stop and all is done; returns the reason if it broke down.
    pub(super) fn run(mut self) -> Option<Broken> {
        let mut looked = monotonic_now();
        loop {
            let now = monotonic_now();
            self.take_messages(now);
            self.owner.settle(now);
            if self.owner.has_ended() {
                return self.owner.broken;
            }
            // A device that is added is written to in that time, however long it takes.
            self.owner.excuse(monotonic_now().saturating_sub(looked));
            self.sleep();
            let now = monotonic_now();
            looked = now;
            self.owner.take_answers(now);
            self.owner.tick(now);
        }
    }

    fn take_messages(&mut self, now: Nanos) {
        while let Ok(message) = self.inbox.try_recv() {
            match message {
                Message::Request(request) => self.owner.request(now, request),
                Message::Call(call) => call(&mut self.owner, now),
                Message::Stop => self.owner.stop(now),
            }
        }
    }

    fn sleep(&mut self) {
        self.waker.announce();
        let timeout = if self.inbox.is_empty() {
            let next = self.owner.next_wake();
            next.map(|next| Duration::from_nanos(next.0.saturating_sub(monotonic_now().0)))
        } else {
            Some(Duration::ZERO)
        };
        self.owner.wait(timeout, &monotonic_now);
        self.waker.awake();
    }
}
