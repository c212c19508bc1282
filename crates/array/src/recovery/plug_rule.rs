//! Linux' rules for a request that comes to a plug with other requests, of one process or thread
//! and for several members.
//!
//! It is merged into the newest request there if that is for its member, else into the first
//! one for it in the plug's list (Linux 6.12.117 block/blk-merge.c, `blk_attempt_plug_merge`),
//! if it lies beside it and both are not too long for a disk. Before it goes in as a new one,
//! the plug is emptied if the first request of the list has 128 KiB and more, or if there are
//! 64 of them (block/blk-mq.c, `blk_add_rq_to_plug`). The list begins with the oldest or with
//! the newest ([`MdRules::plug_begins_with_oldest`](super::MdRules::plug_begins_with_oldest)).

use crate::request::Slot;
use raidlab_units::Sectors;

/// The length of the list's first request from which on the plug is emptied
/// (`BLK_PLUG_FLUSH_SIZE`).
const LONG: Sectors = Sectors(256);

/// The most requests in a plug: twice `BLK_MAX_REQUEST_COUNT`, as there are several disks.
const MOST: usize = 64;

/// Returns which request of a plug one for this member may be merged into; `plugged`: the slots of
/// the requests' members, oldest first.
pub fn tried_in_plug(
    mut plugged: impl DoubleEndedIterator<Item = Slot> + ExactSizeIterator + Clone,
    slot: Slot,
    begins_with_oldest: bool,
) -> Option<usize> {
    let newest = plugged.len().checked_sub(1);
    match newest {
        Some(newest) if plugged.clone().next_back() == Some(slot) => Some(newest),
        _ if begins_with_oldest => plugged.position(|other| other == slot),
        _ => plugged.rposition(|other| other == slot),
    }
}

/// Whether a plug with requests of these lengths, oldest first, is emptied before it takes another.
pub fn is_plug_full(
    mut plugged: impl DoubleEndedIterator<Item = Sectors> + Clone,
    begins_with_oldest: bool,
) -> bool {
    let count = plugged.clone().count();
    let first = match begins_with_oldest {
        true => plugged.next(),
        false => plugged.next_back(),
    };
    count >= MOST || first.is_some_and(|length| length >= LONG)
}
