//! The commands and buffers of an array: its own, and the engine's.

use crate::engine::{FIRST_OUTER_ID, FIRST_OUTER_SCRATCH};
use crate::mix::Mixed;
use crate::request::{CommandId, ScratchId, Slot};
use std::collections::{BTreeMap, HashMap};

/// The commands in flight, and the next free ids.
#[derive(Debug)]
pub(super) struct Commands {
    /// Metadata commands in flight; `None`: the device has left since.
    pub(super) metadata: BTreeMap<CommandId, Option<Slot>>,
    /// The engine's commands in flight, each with its device.
    pub(super) data: HashMap<CommandId, Slot, Mixed>,
    next: u64,
    next_scratch: u32,
}

impl Default for Commands {
    fn default() -> Self {
        Self {
            metadata: BTreeMap::new(),
            data: HashMap::default(),
            next: FIRST_OUTER_ID,
            next_scratch: FIRST_OUTER_SCRATCH,
        }
    }
}

impl Commands {
    /// Returns the id of a command that the engine does not know.
    pub(super) fn new_id(&mut self) -> CommandId {
        let id = CommandId(self.next);
        self.next += 1;
        id
    }

    /// Returns a buffer that the engine does not know.
    pub(super) fn new_scratch(&mut self) -> ScratchId {
        let scratch = ScratchId(self.next_scratch);
        // Long before the number wraps around, the first ones are free again.
        self.next_scratch = self
            .next_scratch
            .checked_add(1)
            .unwrap_or(FIRST_OUTER_SCRATCH);
        scratch
    }
}
