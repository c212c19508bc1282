//! A queue's part of what B-WF2Q+ shares out (`bfq/service.rs`).

/// What a sector is worth to a queue of weight 1, in virtual time (`WFQ_SERVICE_SHIFT`).
pub(super) const SECTOR: u64 = 1 << 22;

/// Whether a queue counts, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum Place {
    /// It does not count: it has no requests, and virtual time has passed what it got.
    #[default]
    Out,
    /// It waits for its turn, since a moment by which the latest are known.
    Active(u64),
    /// It is the queue whose turn it is.
    Serving,
    /// It has no requests, and virtual time has not yet passed what it got.
    Idle,
}

/// A queue's part of the service.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Share {
    pub(super) place: Place,
    pub(super) weight: u64,
    /// Sectors that it may have in a turn, and those that it has had.
    pub(super) budget: u64,
    pub(super) served: u64,
    /// When the service of its budget begins and ends, in virtual time.
    pub(super) start: u64,
    pub(super) finish: u64,
}

impl Share {
    /// The share of a queue with this weight that does not count yet.
    pub(super) fn of(weight: u64) -> Self {
        Self {
            weight,
            ..Self::default()
        }
    }

    /// Sectors that are left of its budget.
    pub(super) const fn left(&self) -> u64 {
        self.budget.saturating_sub(self.served)
    }

    /// Sets the finish of so many sectors from the start on.
    pub(super) fn finish_after(&mut self, sectors: u64) {
        self.finish = self.start + sectors * SECTOR / self.weight;
    }
}
