//! The machine at one end of a job: its counters, and the state of the array.

use crate::error::HostError;
use crate::session::Session;
use raidlab_inventory::counters::Snapshot;
use raidlab_shell::Frame;
use raidlab_systems::{ArrayStatus, CacheState, read_all};
use std::time::Duration;

/// The machine at one end of a job.
pub struct Moment {
    pub at: Duration,
    pub status: Option<ArrayStatus>,
    pub frame: Frame,
    pub counters: Snapshot,
    pub cache: Option<CacheState>,
}

impl Moment {
    /// Reads the machine's present state.
    ///
    /// # Errors
    /// When the counters cannot be read.
    pub fn now(session: &Session<'_>) -> Result<Self, HostError> {
        // A state that cannot be read at this moment is unknown, which is no failure.
        let status = session.system().status(&session.target, &session.built);
        let counters = session.sampler.counters();
        let frame = Frame {
            at: session.now(),
            contents: read_all(&session.target, &counters.sources())?,
        };
        // The same holds for the cache's state.
        let cache = session.system().cache(&session.target, &session.built);
        Ok(Self {
            at: frame.at,
            cache: cache.ok().flatten(),
            status: status.ok(),
            counters: counters.parse(&frame),
            frame,
        })
    }
}
