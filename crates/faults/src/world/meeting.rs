//! The states of the array that an action meets.

use super::World;
use crate::disk::Health;
use crate::driver::Driver;
use crate::reach::State;
use raidlab_array::{ArrayStatus, MemberState};
use raidlab_units::Sectors;

impl World<'_> {
    /// Counts an action with the states that it meets.
    pub(super) fn did(&mut self, deed: &'static str) {
        let states = State::ALL;
        let status = self.driver.as_ref().and_then(Driver::status);
        let met = states.into_iter().filter(|state| self.is(*state, &status));
        let met: Vec<State> = met.collect();
        self.statistics.reach.did(deed, met);
    }

    /// Whether a state holds; for an array that is down, by its disks.
    fn is(&self, state: State, status: &Option<ArrayStatus>) -> bool {
        let told = |asked: fn(&ArrayStatus) -> bool| status.as_ref().is_some_and(asked);
        match state {
            State::Whole => told(|it| !it.state.degraded && it.sync.is_none()),
            State::Degraded => self.states().iter().any(is_vacant),
            State::Filling => told(|it| {
                let mut devices = it.devices.iter();
                devices.any(|device| device.slot.is_some() && device.recovered_below.is_some())
            }),
            State::Replacing => told(|it| it.devices.iter().any(|it| it.replaces.is_some())),
            State::FirstSync => self.first_sync,
            State::Resync => {
                !self.first_sync && told(|it| it.state.resyncing || it.state.not_in_sync)
            }
            State::Check => told(|it| it.state.checking),
            State::Active => told(|it| it.state.active),
            State::Marked => told(|it| it.bitmap_chunks.is_some_and(|(set, _)| set > 0)),
            State::Logged => told(|it| it.log > Sectors::ZERO),
            State::Busy => !self.asked.is_empty(),
            State::Held => told(|it| it.held > 0),
            State::BadBlocks => told(|it| {
                let mut devices = it.devices.iter();
                devices.any(|device| device.bad_sectors > Sectors::ZERO)
            }),
            State::Unreadable => !self.unreadable().is_empty(),
            State::Ailing => {
                let mut disks = self.slots.iter().flatten();
                disks.any(|disk| {
                    let health = self.disks[*disk].health;
                    health == Health::Hung
                        || self.disks[*disk].slowness > 1
                        || self.standing[*disk].erring
                })
            }
            State::Retired => !self.retired.is_empty(),
            State::ReadOnly => told(|it| it.state.read_only),
            State::Beyond => self.beyond,
        }
    }
}

const fn is_vacant(state: &MemberState) -> bool {
    matches!(state, MemberState::Faulty | MemberState::Missing)
}
