//! The core of an owner: an array, or a single member without one.

use super::passthrough::Passthrough;
use crate::member::Members;
use raidlab_array::{
    CommandId, EXTERNAL_BITMAP, MemberError, MemberState, Outputs, PersistentArray, Request, Slot,
    StepId, StepResult,
};
use raidlab_units::{Nanos, Sectors};

pub(crate) enum Core {
    Array(Box<PersistentArray>),
    Plain(Passthrough),
}

impl Core {
    pub(crate) fn size(&self) -> Sectors {
        match self {
            Self::Array(array) => array.size(),
            Self::Plain(plain) => plain.size(),
        }
    }

    pub(super) fn submit(&mut self, now: Nanos, request: Request, out: &mut Outputs) {
        match self {
            Self::Array(array) => array.submit(now, request, out),
            Self::Plain(plain) => plain.submit(now, request, out),
        }
    }

    pub(super) fn complete(
        &mut self,
        now: Nanos,
        command: CommandId,
        result: Result<(), MemberError>,
        out: &mut Outputs,
    ) {
        match self {
            Self::Array(array) => array.complete(now, command, result, out),
            Self::Plain(plain) => plain.complete(now, command, result, out),
        }
    }

    pub(super) fn computed(
        &mut self,
        now: Nanos,
        step: StepId,
        result: StepResult,
        out: &mut Outputs,
    ) {
        if let Self::Array(array) = self {
            array.computed(now, step, result, out);
        }
    }

    pub(super) fn tick(&mut self, now: Nanos, out: &mut Outputs) {
        if let Self::Array(array) = self {
            array.tick(now, out);
        }
    }

    pub(super) fn next_tick(&self) -> Option<Nanos> {
        match self {
            Self::Array(array) => array.next_tick(),
            Self::Plain(_) => None,
        }
    }

    pub(super) fn stop(&mut self, now: Nanos, out: &mut Outputs) {
        if let Self::Array(array) = self {
            array.stop(now, out);
        }
    }

    /// Whether the array has lost more than its level tolerates: more members are out of service
    /// than there is parity, or a member is gone that was kept in service because the array cannot
    /// do without it.
    pub(super) fn has_failed(&self, members: &Members) -> bool {
        let array = match self {
            Self::Array(array) => array,
            Self::Plain(_) => return members.is_lost(0),
        };
        let states = array.member_states();
        let in_sync = |state: &MemberState| *state == MemberState::InSync;
        let missing = states.iter().filter(|state| !in_sync(state)).count();
        let status = array.status();
        let parity = status.level.parity_count();
        let gone = states.iter().zip(array.served()).any(|(state, handle)| {
            in_sync(state) && handle.is_some_and(|handle| members.is_lost(place_of(handle)))
        });
        gone || parity > 0 && missing > parity || status.state.failed
    }

    pub(super) fn is_stopped(&self) -> bool {
        match self {
            Self::Array(array) => array.is_stopped(),
            Self::Plain(plain) => plain.is_idle(),
        }
    }
}

/// The highest index of a ring's table of files.
const EXTERNAL_BITMAP_PLACE: usize = 1023;

/// Returns the place at which a device is attached, by its handle.
pub fn place_of(slot: Slot) -> usize {
    if slot == EXTERNAL_BITMAP {
        EXTERNAL_BITMAP_PLACE
    } else {
        slot.index()
    }
}
