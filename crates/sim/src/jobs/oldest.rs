//! The request that waits for longest.

use super::Jobs;
use crate::machine::OldestRequest;
use raidlab_workload::Direction;

impl Jobs {
    /// The request that has been in flight for longest.
    pub(crate) fn oldest_request(&self) -> Option<OldestRequest> {
        let flights = self.flights.iter().flatten();
        let oldest = flights.min_by_key(|flight| flight.issued)?;
        let word = match oldest.direction {
            Direction::Read => "a read",
            Direction::Write => "a write",
            Direction::Trim => "a discard",
            Direction::Flush => "a flush",
        };
        let count = self.in_flight();
        Some(OldestRequest {
            job: self.clones[oldest.clone].job.name.clone(),
            since: oldest.issued,
            what: match oldest.direction {
                Direction::Flush => format!("{word}, one of {count} requests in flight,"),
                _ => format!(
                    "{word} of {} at byte {}, one of {count} requests in flight,",
                    oldest.bytes, oldest.offset.0
                ),
            },
        })
    }
}
