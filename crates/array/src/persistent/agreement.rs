//! A test whether the engine and the members' metadata agree, run after every event in builds
//! with debug assertions.
//!
//! The engine's state of its members determines reads and writes now; their metadata determine them
//! after the next assembly. Metadata may claim less than is true: that a member has less of its
//! content than it has, and more bad blocks. They must never claim more.

use super::PersistentArray;
use super::device::Place;
use crate::admission::blocks_of;
use crate::member::MemberState;
use raidlab_geometry::Slot;
use raidlab_units::{Sectors, SpanSet};

/// The largest part of a member that an engine calls bad as a whole: the block of the
/// levels with parity.
const BAD_BLOCK: u64 = 8;

impl PersistentArray {
    /// Returns in what the engine's state of a member and its metadata differ; `None`
    /// if they agree.
    pub(super) fn disagreement(&self) -> Option<String> {
        let slots = (0..).map(Slot).zip(self.engine.members().states());
        slots
            .zip(&self.served)
            .find_map(|((slot, state), handle)| self.disagreement_on(slot, state, *handle))
    }

    fn disagreement_on(
        &self,
        slot: Slot,
        state: MemberState,
        handle: Option<Slot>,
    ) -> Option<String> {
        let device = handle.and_then(|handle| self.devices.get(&handle));
        let members = self.engine.members();
        let place = device.map(|device| device.place);
        let agree = match (place, state) {
            (None | Some(Place::Faulty), MemberState::Missing) => true,
            (Some(Place::Faulty), MemberState::Faulty) => true,
            (Some(Place::InSync(at)), MemberState::InSync) => at == slot,
            (
                Some(Place::Recovering {
                    slot: at, below, ..
                }),
                MemberState::Recovering { readable_below },
            ) => at == slot && below <= readable_below.max(members.filled_below(slot)),
            // Without permission to write no member can be recovered.
            (Some(Place::Recovering { .. }), MemberState::Missing) => !self.may_write(),
            _ => false,
        };
        if !agree {
            return Some(format!("slot {}: {state:?} but {place:?}", slot.0));
        }
        let device = device?;
        let known = blocks_of(Some(&device.bad_spans()), Sectors(u64::MAX / 2), BAD_BLOCK);
        let believed: SpanSet = members.bad_blocks(slot).collect();
        (known.common(&believed) != believed).then(|| {
            format!(
                "slot {}: bad are {believed:?} but the log has {known:?}",
                slot.0
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::persistent::assembly::tests::started_mirror;
    use crate::persistent::device::Place;
    use crate::request::{Outputs, Slot};
    use raidlab_units::{Sectors, Span};

    #[test]
    fn metadata_that_say_too_much_are_noticed() {
        let mut array = started_mirror();
        assert_eq!(array.disagreement(), None);
        let slot = Slot(1);
        let half = Place::Recovering {
            slot,
            below: Sectors(64),
            by_bitmap: false,
        };
        for place in [Place::Faulty, Place::Spare, Place::InSync(Slot(0)), half] {
            let device = array.devices.get_mut(&slot).unwrap();
            let before = std::mem::replace(&mut device.place, place);
            assert!(array.disagreement().is_some(), "{place:?}");
            array.devices.get_mut(&slot).unwrap().place = before;
        }
        let (start, count) = (Sectors(8), Sectors(8));
        let range = Span::new(8, 16);
        let members = array.engine.members_mut();
        members.bad_range_found(slot, range, &mut Outputs::default());
        assert!(array.disagreement().is_some(), "the log has no bad block");
        let device = array.devices.get_mut(&slot).unwrap();
        device.set_bad(start, count, true);
        assert_eq!(array.disagreement(), None);
        let out = &mut Outputs::default();
        array
            .engine
            .members_mut()
            .bad_range_written(slot, range, out);
        assert_eq!(array.disagreement(), None, "a log may name more");
    }
}
