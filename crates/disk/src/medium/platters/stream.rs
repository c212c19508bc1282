//! The stream policy: what the firmware does when it sees sequential reads.
//!
//! Kept apart from the mechanics because its accuracy is lower: no
//! single-disk fact in the data has two streams, so its numbers are fitted on
//! array results (the preset names which) and everything with several streams
//! on one disk inherits that. The rules:
//!
//! 1. A read that continues a segment makes it sequential: the drive then
//!    reads ahead further than after a random read.
//! 2. *Just-in-time seek*: when the next target would make the arm wait for
//!    the platter anyway, and the move is short, the arm stays on its
//!    sequential track for that slack and reads ahead instead. What it will
//!    have read counts as cached from the moment of that choice: a read that
//!    comes within the slack is answered up to `slack_limit` too early. The
//!    numbers were fitted with this in them.
//! 3. *Follow-on wait*: after serving a sequential read while others wait,
//!    the arm keeps reading for a moment, so that a host with a short
//!    turnaround can ask for the next piece.
//! 4. *Visit budget*: however well a stream runs, it yields to the others
//!    after a number of bytes; while more than a few commands wait, after
//!    each single command: then the queue is worth more than the stream. What
//!    lies within the budget's distance counts as the stream's, and so does
//!    what lies within that distance of it:
//!    a resync keeps several requests in flight, one behind the other, and
//!    the nearest of them would win against random reads for ever. Where
//!    nothing else waits, the stream does not make way for itself.

use raidlab_units::{Bytes, Nanos};

/// Numbers of the stream policy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StreamPolicy {
    /// Read-ahead of a sequential stream.
    pub sequential_read_ahead: Bytes,
    /// Read-ahead after any other read, while nothing else is to be done.
    pub random_read_ahead: Bytes,
    /// Longest seek for which rotational slack is spent on reading ahead.
    pub slack_seek_limit: Nanos,
    /// Most slack spent before one seek.
    pub slack_limit: Nanos,
    /// How long the arm stays for a follow-on read while others wait.
    pub follow_on_wait: Nanos,
    /// Bytes served to one stream in a visit while others wait. `None`: no
    /// limit.
    pub visit_budget: Option<Bytes>,
    /// While more commands than this wait, a visit is one command.
    pub visit_queue_limit: usize,
}

impl StreamPolicy {
    /// Bytes a stream may still get in this visit, having got `served`, while
    /// `waiting` other commands wait.
    #[inline]
    #[must_use]
    pub fn budget_left(&self, served: u64, waiting: usize) -> bool {
        match self.visit_budget {
            Some(_) if waiting > self.visit_queue_limit => served == 0,
            Some(budget) if waiting > 0 => served < budget.0,
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::StreamPolicy;
    use raidlab_units::{Bytes, Nanos};

    #[test]
    fn a_deep_queue_ends_a_visit() {
        let mut policy = StreamPolicy {
            sequential_read_ahead: Bytes(0),
            random_read_ahead: Bytes(0),
            slack_seek_limit: Nanos::ZERO,
            slack_limit: Nanos::ZERO,
            follow_on_wait: Nanos::ZERO,
            visit_budget: Some(Bytes(16 << 20)),
            visit_queue_limit: 4,
        };
        assert!(policy.budget_left(u64::MAX, 0));
        assert!(policy.budget_left((16 << 20) - 1, 1));
        assert!(!policy.budget_left(16 << 20, 1));
        assert!(policy.budget_left((16 << 20) - 1, 4));
        assert!(policy.budget_left(0, 5) && !policy.budget_left(4096, 5));
        policy.visit_budget = None;
        assert!(policy.budget_left(u64::MAX, 32));
    }
}
