//! The stream policy: the firmware's treatment of sequential reads.
//!
//! It is separate from the mechanics because its accuracy is lower: no single-disk fact in the data
//! has two streams, so its numbers are fitted on array results (the preset names them), which
//! affects all results with several streams on one disk. The rules:
//!
//! 1. A read that continues a segment makes it sequential: the drive then
//!    reads ahead further than after a random read.
//! 2. *Just-in-time seek*: when the next target would make the arm wait for the platter anyway,
//!    and the move is short, the arm stays on its sequential track for that slack and reads ahead
//!    instead. These data count as cached from the moment of that choice: a read that comes
//!    within the slack is answered up to `slack_limit` too early. The numbers were fitted
//!    including this error.
//! 3. *Follow-on wait*: after serving a sequential read while others wait,
//!    the arm keeps reading for a moment, so that a host with a short
//!    turnaround can ask for the next piece.
//! 4. *Visit budget*: however well a stream runs, it yields to the others
//!    after a number of bytes. The more commands wait, the fewer bytes it gets: the budget is
//!    shared among them, down to a single command. What
//!    lies within the budget's distance counts as the stream's, and so does
//!    what lies within that distance of it:
//!    a resync keeps several requests in flight, one behind the other, and
//!    the nearest of them would win against random reads for ever. Where
//!    nothing else waits, the stream does not make way for itself.

use raidlab_units::{Bytes, Nanos};

/// Parameters of the stream policy.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StreamPolicy {
    /// The read-ahead of a sequential stream.
    pub sequential_read_ahead: Bytes,
    /// The read-ahead after any other read, while the arm is idle.
    pub random_read_ahead: Bytes,
    /// The longest seek for which rotational slack is spent on reading ahead.
    pub slack_seek_limit: Nanos,
    /// The most slack spent before one seek.
    pub slack_limit: Nanos,
    /// The time that the arm stays for a follow-on read while others wait.
    pub follow_on_wait: Nanos,
    /// The bytes served to one stream in a visit while one other command waits; while more do,
    /// these bytes are divided by their number. `None` for no limit.
    pub visit_budget: Option<Bytes>,
}

impl StreamPolicy {
    /// Whether a stream may get more bytes in this visit, having got `served`, while `waiting`
    /// other commands wait.
    #[inline]
    #[must_use]
    pub fn budget_left(&self, served: u64, waiting: usize) -> bool {
        match self.visit_budget {
            Some(budget) if waiting > 0 => served == 0 || served < budget.0 / waiting as u64,
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::StreamPolicy;
    use raidlab_units::{Bytes, Nanos};

    #[test]
    fn those_that_wait_share_the_budget_of_a_visit() {
        let mut policy = StreamPolicy {
            sequential_read_ahead: Bytes(0),
            random_read_ahead: Bytes(0),
            slack_seek_limit: Nanos::ZERO,
            slack_limit: Nanos::ZERO,
            follow_on_wait: Nanos::ZERO,
            visit_budget: Some(Bytes(16 << 20)),
        };
        assert!(policy.budget_left(u64::MAX, 0));
        assert!(policy.budget_left((16 << 20) - 1, 1));
        assert!(!policy.budget_left(16 << 20, 1));
        assert!(policy.budget_left((4 << 20) - 1, 4));
        assert!(!policy.budget_left(4 << 20, 4));
        // A single command is served however many wait.
        let crowd = 5 << 20;
        assert!(policy.budget_left(0, crowd) && !policy.budget_left(4096, crowd));
        policy.visit_budget = None;
        assert!(policy.budget_left(u64::MAX, 32));
    }
}
