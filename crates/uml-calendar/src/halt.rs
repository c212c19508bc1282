//! The end of the loop: the run is over, or it cannot go on.

use crate::error::{CalendarError, ClockError, Outcome};

/// The reason that ends the loop.
#[derive(Debug)]
pub(crate) enum Halt {
    Outcome(Outcome),
    Error(CalendarError),
}

impl From<Outcome> for Halt {
    fn from(outcome: Outcome) -> Self {
        Self::Outcome(outcome)
    }
}

impl From<CalendarError> for Halt {
    fn from(error: CalendarError) -> Self {
        Self::Error(error)
    }
}

impl From<ClockError> for Halt {
    fn from(error: ClockError) -> Self {
        Self::Error(CalendarError::Clock(error))
    }
}
