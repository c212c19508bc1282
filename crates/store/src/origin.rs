//! The origin of results: a run, or one of its experiments.

/// A run's number in its store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(pub(crate) i64);

/// The origin of results: a run and, where it was planned, the experiment of the plan that gave
/// them. Results are read from the store experiment by experiment, in whatever order these ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    pub(crate) run: RunId,
    pub(crate) experiment: Option<u32>,
}

impl RunId {
    /// The origin that is one of the run's experiments, by its position in the plan, from 0.
    #[must_use]
    pub const fn experiment(self, position: u32) -> Origin {
        Origin {
            run: self,
            experiment: Some(position),
        }
    }
}

impl From<RunId> for Origin {
    /// The origin that is the run as a whole.
    fn from(run: RunId) -> Self {
        Self {
            run,
            experiment: None,
        }
    }
}
