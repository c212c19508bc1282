//! The plan of a sync.

use super::SyncKind;
use raidlab_geometry::SlotSet;
use raidlab_units::{Sectors, SpanSet};

/// A sync to begin.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) kind: SyncKind,
    pub(crate) targets: SlotSet,
    /// The first position.
    pub(crate) start: Sectors,
    /// The position at which it ends.
    pub(crate) total: Sectors,
    /// Only these array sectors.
    pub(crate) ranges: Option<SpanSet>,
}

/// What is at a position.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Placement {
    /// The array sector; `None`: nothing.
    pub(crate) array: Option<Sectors>,
    /// For how many sectors it goes on so.
    pub(crate) contiguous: Sectors,
}
