//! The clock and the queue behind every watch.
//!
//! Tick `n` is due `n` intervals after the watch began, so that the cadence does not drift with the
//! time that reading takes. When reading takes longer than an interval, the ticks that have passed
//! are skipped: two frames close together would suggest a rate that was not measured.

use crate::target::Frame;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The number of frames kept for a reader that does not come, an hour at one per second; then the
/// oldest are dropped.
const QUEUE_FRAMES: usize = 4096;

/// The shortest interval; a shorter one would only burn a processor.
pub const SHORTEST: Duration = Duration::from_millis(1);

/// The time at which the first tick after `now` is due, both since the watch began.
pub fn next_tick(now: Duration, every: Duration) -> Duration {
    let every = every.max(SHORTEST).as_nanos();
    let due = (now.as_nanos() / every + 1) * every;
    Duration::from_nanos(u64::try_from(due).unwrap_or(u64::MAX))
}

/// Frames on their way from the thread that reads to the one that takes.
#[derive(Debug, Clone, Default)]
pub struct Queue(Arc<Mutex<VecDeque<Frame>>>);

impl Queue {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Frame>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn push(&self, frame: Frame) {
        let mut frames = self.lock();
        if frames.len() == QUEUE_FRAMES {
            frames.pop_front();
        }
        frames.push_back(frame);
    }

    pub fn take(&self) -> Vec<Frame> {
        self.lock().drain(..).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    #[test]
    fn ticks_do_not_drift_and_missed_ones_are_skipped() {
        assert_eq!(next_tick(ms(0), ms(100)), ms(100));
        assert_eq!(next_tick(ms(7), ms(100)), ms(100));
        assert_eq!(next_tick(ms(100), ms(100)), ms(200));
        assert_eq!(next_tick(ms(351), ms(100)), ms(400));
    }

    #[test]
    fn an_interval_of_nothing_is_a_millisecond() {
        assert_eq!(next_tick(ms(5), Duration::ZERO), ms(6));
    }

    #[test]
    fn a_full_queue_loses_its_oldest_frames() {
        let queue = Queue::default();
        for count in 0..QUEUE_FRAMES as u64 + 2 {
            queue.push(Frame {
                at: ms(count),
                contents: Vec::new(),
            });
        }
        let frames = queue.take();
        assert_eq!(frames.len(), QUEUE_FRAMES);
        assert_eq!(frames[0].at, ms(2));
        assert!(queue.take().is_empty());
    }
}
