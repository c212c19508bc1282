//! Polling of a socket for a while before going to sleep.
//!
//! A thread that sleeps has to be woken by the sender, which costs the sender work, and on a
//! virtual machine whose processor has gone idle several microseconds, for every request of a
//! client that keeps a deep queue. So a connection's reader polls its socket for up to [`LIMIT`]
//! before it waits there, and lets other threads run between two polls. The rule is that of Linux'
//! halt polling (virt/kvm/kvm_main.c, `kvm_vcpu_halt`): it polls as long as that has succeeded
//! lately, and begins again once a wait was shorter than the limit. While an export works on
//! something the reader polls for nothing but a payload whose head it has: otherwise the client may
//! be waiting for the export, whose threads need the processor.

use std::time::{Duration, Instant};

/// The longest time of polling: about the cost of two changes of thread.
const LIMIT: Duration = Duration::from_micros(50);
/// The number of failures after which polling is given up.
const PATIENCE: u8 = 4;

/// The record of recent polling, which decides whether it goes on.
#[derive(Debug, Default)]
pub(super) struct Polling {
    /// Failures left before polling stops; 0: no polling.
    credit: u8,
}

impl Polling {
    /// Calls `look` until it finds something or the time is up; returns `None` then, and when
    /// polling does not pay.
    pub fn look<T>(&mut self, mut look: impl FnMut() -> Option<T>) -> Option<T> {
        if self.credit == 0 {
            return None;
        }
        let began = Instant::now();
        loop {
            if let Some(found) = look() {
                self.credit = PATIENCE;
                return Some(found);
            }
            if began.elapsed() >= LIMIT {
                self.credit -= 1;
                return None;
            }
            std::thread::yield_now();
        }
    }

    /// Waits, and records how long it took.
    pub fn wait<T>(&mut self, wait: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let result = wait();
        if began.elapsed() < LIMIT {
            self.credit = PATIENCE;
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::{LIMIT, PATIENCE, Polling};

    #[test]
    fn it_looks_only_while_that_pays() {
        let mut polling = Polling::default();
        assert_eq!(polling.look(|| Some(1)), None, "nothing was short yet");
        polling.wait(|| std::thread::sleep(2 * LIMIT));
        assert_eq!(polling.look(|| Some(2)), None, "that was a long wait");
        while polling.credit == 0 {
            polling.wait(|| {});
        }
        assert_eq!(polling.look(|| Some(3)), Some(3));
        let mut looks = 0;
        for _ in 0..PATIENCE {
            let found: Option<()> = polling.look(|| {
                looks += 1;
                None
            });
            assert_eq!(found, None);
        }
        assert!(looks >= u32::from(PATIENCE));
        assert_eq!(polling.look(|| Some(4)), None, "it has given up");
    }

    #[test]
    fn one_success_renews_the_credit() {
        let mut polling = Polling { credit: 1 };
        let mut looks = 0;
        let found = polling.look(|| {
            looks += 1;
            (looks == 3).then_some(())
        });
        // The test machine may have stalled for longer than the limit.
        let left = if found.is_some() { PATIENCE } else { 0 };
        assert_eq!(polling.credit, left);
    }
}
