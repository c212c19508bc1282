//! A queue's share in B-WF2Q+ (`bfq/service.rs`).

/// The virtual time of a sector in a queue of weight 1 (`WFQ_SERVICE_SHIFT`).
pub(super) const SECTOR: u64 = 1 << 22;

/// Whether a queue counts, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum Place {
    /// The queue does not count: it has no requests, and virtual time has passed its service.
    #[default]
    Out,
    /// The queue waits for its turn, since the moment with this number.
    Active(u64),
    /// The queue is being served.
    Serving,
    /// The queue has no requests, and virtual time has not yet passed its service.
    Idle,
}

/// The share of a queue in the service.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Share {
    pub(super) place: Place,
    pub(super) weight: u64,
    /// The sectors that it may have in a turn, and those that it has had.
    pub(super) budget: u64,
    pub(super) served: u64,
    /// The start and the finish of the service of its budget, in virtual time.
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

    /// The number of sectors left of its budget.
    pub(super) const fn left(&self) -> u64 {
        self.budget.saturating_sub(self.served)
    }

    /// Sets the finish by so many sectors after the start.
    pub(super) fn finish_after(&mut self, sectors: u64) {
        self.finish = self.start + sectors * SECTOR / self.weight;
    }
}
