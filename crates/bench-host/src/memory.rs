//! The memory's state in the store's vocabulary.

use raidlab_inventory::counters::MemoryState;
use raidlab_store::fact;

/// Passes each fact of a state at `moment` to `add`.
pub fn facts(state: &MemoryState, moment: &str, mut add: impl FnMut(String, u64)) {
    // Pages that programs have mapped are not part of a data set, and dropping caches does
    // not free them.
    let cached = state.cached_bytes + state.buffers_bytes;
    add(
        fact::cached_bytes(moment),
        cached.saturating_sub(state.pinned_bytes),
    );
    add(
        fact::dirty_bytes(moment),
        state.dirty_bytes + state.writeback_bytes,
    );
    if let Some(arc) = state.arc_bytes {
        add(fact::arc_size_bytes(moment), arc);
    }
}
