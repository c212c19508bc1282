//! gmirror's list of components, and its `round-robin` algorithm, which
//! `split` uses too (FreeBSD 10.4 sys/geom/mirror/g_mirror.c).
//!
//! The list is sorted by priority, highest first; a newcomer goes before
//! entries of equal priority. `gmirror label` gives priorities 0, 1, 2, ... in
//! the order of the command line, so the last named disk heads the list. A
//! disk inserted later has priority 0.
//!
//! Round-robin: a pointer, at first the head of the list. The disk under it
//! serves, or the next one that can; then it moves to the next that can after
//! the one that served, cyclically.

use raidlab_array::{Choice, MemberView, Parameter, Read, ReadPolicy, Rule, Slot};
use raidlab_geometry::SlotSet;
use raidlab_units::Nanos;

/// The rule of gmirror's `round-robin`: the disks serve in turn.
pub(crate) const RULE: Rule = Rule {
    name: "gmirror-round-robin",
    parameter: Parameter::None,
    build: |members, _| ByList::boxed(members, List::next_in_turn),
};

#[derive(Debug, Clone, Copy)]
struct Component {
    slot: Slot,
    priority: u16,
}

/// The mirror's components in gmirror's order.
#[derive(Debug)]
pub(crate) struct List {
    components: Vec<Component>,
    /// The slot that serves next in turn.
    hint: Slot,
}

impl List {
    pub(crate) fn new(members: usize) -> Self {
        let slots = (0..).map(Slot).take(members);
        let mut components: Vec<_> = slots
            .map(|slot| Component {
                slot,
                priority: slot.0,
            })
            .collect();
        components.reverse();
        let hint = components.first().map_or(Slot(0), |first| first.slot);
        Self { components, hint }
    }

    /// Returns the slots in list order.
    #[inline]
    pub(crate) fn iter(&self) -> impl Iterator<Item = Slot> {
        self.components.iter().map(|component| component.slot)
    }

    /// Returns the next slot in turn among `active`.
    pub(crate) fn next_in_turn(&mut self, active: SlotSet) -> Option<Slot> {
        let slot = if active.contains(self.hint) {
            self.hint
        } else {
            self.next_after(self.hint, active)?
        };
        self.hint = self.next_after(slot, active)?;
        Some(slot)
    }

    /// Returns the next slot of `active` after `slot`, cyclically; `slot` itself comes last.
    fn next_after(&self, slot: Slot, active: SlotSet) -> Option<Slot> {
        let count = self.components.len();
        let at = self.iter().position(|listed| listed == slot)?;
        (1..=count)
            .map(|step| self.components[(at + step) % count].slot)
            .find(|&next| active.contains(next))
    }

    /// Puts a new disk of priority 0 in the place of the slot's old one.
    pub(crate) fn member_added(&mut self, slot: Slot) {
        self.components.retain(|component| component.slot != slot);
        let place = self
            .components
            .iter()
            .position(|component| component.priority == 0)
            .unwrap_or(self.components.len());
        self.components
            .insert(place, Component { slot, priority: 0 });
    }
}

/// A policy that chooses by the list alone.
#[derive(Debug)]
pub(crate) struct ByList {
    list: List,
    choose: fn(&mut List, SlotSet) -> Option<Slot>,
}

impl ByList {
    /// A policy for `members` members that lets `choose` pick one of the candidates.
    pub(crate) fn boxed(
        members: usize,
        choose: fn(&mut List, SlotSet) -> Option<Slot>,
    ) -> Box<dyn ReadPolicy> {
        let list = List::new(members);
        Box::new(Self { list, choose })
    }
}

impl ReadPolicy for ByList {
    fn choose(&mut self, _now: Nanos, read: &Read, _members: &[MemberView]) -> Option<Choice> {
        let slot = (self.choose)(&mut self.list, read.candidates)?;
        Some(read.all_from(slot))
    }

    fn member_added(&mut self, slot: Slot) {
        self.list.member_added(slot);
    }
}

#[cfg(test)]
mod tests {
    use super::{List, RULE};
    use crate::testing::Bench;
    use raidlab_array::Slot;

    #[test]
    fn turns_go_from_the_last_named_to_the_first() {
        let mut bench = Bench::new(3, (RULE.build)(3, 0));
        let slots: Vec<_> = (0..4).map(|_| bench.read(0, 8)).collect();
        assert_eq!(slots, [2, 1, 0, 2]);
        bench.exclude(1);
        let slots: Vec<_> = (0..3).map(|_| bench.read(0, 8)).collect();
        assert_eq!(slots, [0, 2, 0], "the pointer stood on slot 1");
    }

    #[test]
    fn a_newcomer_goes_before_its_equals() {
        let order = |added: u16| {
            let mut list = List::new(3);
            list.member_added(Slot(added));
            list.iter().map(|slot| slot.0).collect::<Vec<_>>()
        };
        assert_eq!(order(2), [1, 2, 0], "priority 0, before slot 0");
        assert_eq!(order(1), [2, 1, 0]);
        assert_eq!(order(0), [2, 1, 0], "no equal left");
    }
}
