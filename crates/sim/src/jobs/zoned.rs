//! The requests to emulated zones: where they go, and which clones wait.

use super::{Flight, Jobs};
use crate::machine::Machine;
use raidlab_units::Nanos;
use raidlab_workload::{Direction, IoUnit, Placed};

/// The time after which a job that goes on by time looks again for a zone that it can use; fio
/// looks without rest.
const LOOK_AGAIN: Nanos = Nanos::from_millis(1);

/// The fate of a request on emulated zones.
pub(super) enum Way {
    /// The request goes to the device as this one.
    Device(IoUnit),
    /// The request counts as done, and the device sees nothing of it.
    Nobody(IoUnit),
    /// The request does not go now; the clone's turn is taken care of.
    Later,
}

impl Jobs {
    /// Decides where a request of a clone goes.
    pub(super) fn way(&mut self, machine: &mut Machine, index: usize, unit: IoUnit) -> Way {
        let clone = &mut self.clones[index];
        if clone.job.zones.is_none() {
            return Way::Device(unit);
        }
        let number = u32::try_from(index).unwrap_or(u32::MAX);
        let region = clone.stream.region();
        let drained = clone.in_flight == 0;
        match self
            .zones
            .place((number, &clone.job), region, unit, drained)
        {
            Placed::At(placed) => {
                clone.stream.put(&unit, &placed);
                Way::Device(placed)
            }
            Placed::Emptied(placed) => {
                clone.stream.put(&unit, &placed);
                Way::Nobody(placed)
            }
            Placed::Wait => {
                clone.pace.waiting = Some(unit);
                clone.turns_owed += 1;
                clone.waits_for_zone = true;
                Way::Later
            }
            Placed::Nowhere => {
                let goes_on = clone.job.time_based;
                clone.stream.end_pass(goes_on);
                let again = if goes_on { LOOK_AGAIN } else { Nanos(1) };
                clone.schedule(machine, index, machine.now + again, 1);
                Way::Later
            }
        }
    }

    /// Releases the zone of a request that has ended: clones that wait for a zone look again.
    pub(super) fn release_zone(&mut self, machine: &mut Machine, flight: &Flight) {
        let job = &self.clones[flight.clone].job;
        if job.zones.is_none() {
            return;
        }
        if flight.direction != Direction::Trim {
            let unit = IoUnit {
                direction: flight.direction,
                offset: flight.offset,
                length: flight.bytes,
            };
            self.zones.ended(job, unit);
        }
        for index in 0..self.clones.len() {
            if std::mem::take(&mut self.clones[index].waits_for_zone) {
                self.pay(machine, index, machine.now);
            }
        }
    }

    /// The number of zones that began anew.
    pub(crate) fn zone_resets(&self) -> u64 {
        self.zones.emptied()
    }
}
