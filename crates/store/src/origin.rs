//! Whose results something is: a run's, or one of its experiments'.

/// A run's number in its store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(pub(crate) i64);

/// Whose results they are: a run's, and, where it was planned, which of the plan's
/// experiments gave them. What stands in the store is read experiment by experiment, in
/// whatever order they ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    pub(crate) run: RunId,
    pub(crate) experiment: Option<u32>,
}

impl RunId {
    /// One of the run's experiments, by its position in the plan, from 0.
    #[must_use]
    pub const fn experiment(self, position: u32) -> Origin {
        Origin {
            run: self,
            experiment: Some(position),
        }
    }
}

impl From<RunId> for Origin {
    /// The run as a whole.
    fn from(run: RunId) -> Self {
        Self {
            run,
            experiment: None,
        }
    }
}
