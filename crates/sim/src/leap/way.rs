//! The way of a sync: the places of what it still has to copy, one behind the other.

use crate::machine::Machine;
use crate::subject::Gait;
use raidlab_units::{Sectors, Span};

/// What a sync has to do from a moment on.
#[derive(Debug)]
pub(super) struct Way {
    /// Its parts, ascending.
    legs: Vec<Leg>,
    gait: Gait,
}

/// A range in which a sync copies everything.
#[derive(Debug)]
struct Leg {
    span: Span,
    /// The place of its start.
    place: u64,
    /// The length of all legs before it.
    before: u64,
}

impl Machine {
    /// Returns the way of a sync that goes so from here, if it is known what it will pass over.
    pub(super) fn way(&mut self, gait: Gait) -> Option<Way> {
        let mut legs = Vec::new();
        let mut before = 0;
        for span in self.subject.sync_rest()?.iter() {
            let place = self.sync_place(span.start, gait);
            legs.push(Leg {
                span,
                place,
                before,
            });
            before += self.sync_place(span.end, gait) - place;
        }
        Some(Way { legs, gait })
    }

    /// Returns how much of a way is done, of a sync that has come to this position.
    pub(super) fn gone(&self, way: &Way, position: Sectors) -> u64 {
        let last = way.legs.iter().rfind(|leg| leg.span.start <= position);
        last.map_or(0, |leg| {
            let place = self.sync_place(position.min(leg.span.end), way.gait);
            leg.before + place.saturating_sub(leg.place)
        })
    }

    /// Returns the position of a sync that has done so much of its way.
    pub(super) fn reached(&self, way: &Way, gone: u64) -> Sectors {
        let last = way.legs.iter().rfind(|leg| leg.before <= gone);
        last.map_or(Sectors::ZERO, |leg| {
            let place = leg.place + (gone - leg.before);
            let sector = match (way.gait, self.drives[0].surface()) {
                (Gait::HeldBack, _) => return Sectors(place).min(leg.span.end),
                (_, None) => place,
                (_, Some(surface)) => surface.sector_at(place),
            };
            let offset = self.subject.member_sync_sector(Sectors::ZERO);
            Sectors(sector.saturating_sub(offset.0)).min(leg.span.end)
        })
    }

    /// The place of a position of a sync, in the measure in which its pace is even: positions
    /// of the first disk, or sectors where a throttle counts them.
    fn sync_place(&self, position: Sectors, gait: Gait) -> u64 {
        match gait {
            Gait::HeldBack => position.0,
            Gait::Even | Gait::Growing(_) | Gait::Rhythmic(_) => {
                self.position(self.subject.member_sync_sector(position).0)
            }
        }
    }
}
