//! Faults by schedule: which sectors cannot be read or written, and whether the
//! disk answers at all.
//!
//! A disk is alive, dead or hung. A dead one answers every command with an error, those under
//! way at their modelled times and new ones soon after. A hung one answers nothing. When it
//! returns, the commands that would have been answered meanwhile are answered at that moment,
//! and those that came meanwhile begin; when it dies instead, all of them fail. The medium
//! keeps acknowledged writes.
//!
//! A sector is bad when a command that touches it ends, however long before it
//! came. A disk that rewrites a sector puts it elsewhere, so that it can be read
//! again; with `repaired_by_writing` the model does.

use raidlab_units::{Nanos, Sectors, Span, SpanSet};
use std::collections::VecDeque;

/// An event of a disk's health or of its sectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Reads of these sectors fail.
    Unreadable {
        /// The first sector that cannot be read, of 512 bytes each.
        start: Sectors,
        /// The number of sectors from the first one on.
        count: Sectors,
        /// Whether a sector that is written can be read again.
        repaired_by_writing: bool,
    },
    /// Writes of these sectors fail.
    Unwritable {
        /// The first sector that cannot be written, of 512 bytes each.
        start: Sectors,
        /// The number of sectors from the first one on.
        count: Sectors,
    },
    /// The disk is dead: every command fails.
    Dies,
    /// The disk answers no command from then on.
    Hangs,
    /// A dead or hung disk is alive again.
    Returns,
}

/// A fault and the time at which it happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScheduledFault {
    /// The virtual time since the start.
    pub at: Nanos,
    /// The fault that then begins.
    pub fault: Fault,
}

/// The health of a disk, which says whether it answers commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Health {
    Alive,
    Dead,
    Hung,
}

/// The faults of one disk as time goes on.
#[derive(Debug)]
pub(crate) struct Faults {
    schedule: VecDeque<ScheduledFault>,
    health: Health,
    unreadable: SpanSet,
    unreadable_until_written: SpanSet,
    unwritable: SpanSet,
}

impl Faults {
    /// Makes a disk's faults of a schedule in any order; those of the same time happen as given.
    pub(crate) fn new(faults: &[ScheduledFault]) -> Self {
        let mut schedule = faults.to_vec();
        schedule.sort_by_key(|scheduled| scheduled.at);
        Self {
            schedule: schedule.into(),
            health: Health::Alive,
            unreadable: SpanSet::default(),
            unreadable_until_written: SpanSet::default(),
            unwritable: SpanSet::default(),
        }
    }

    pub(crate) fn health(&self) -> Health {
        self.health
    }

    /// The time at which the disk's health next changes.
    pub(crate) fn next_change(&self) -> Option<Nanos> {
        let mut changes = self.schedule.iter().filter(|scheduled| {
            matches!(scheduled.fault, Fault::Dies | Fault::Hangs | Fault::Returns)
        });
        changes.next().map(|scheduled| scheduled.at)
    }

    /// Takes the next fault that has happened by `now`; returns its time, and the
    /// disk's health then.
    pub(crate) fn happen(&mut self, now: Nanos) -> Option<(Nanos, Health)> {
        let scheduled = self.schedule.pop_front_if(|next| next.at <= now)?;
        match scheduled.fault {
            Fault::Unreadable {
                start,
                count,
                repaired_by_writing,
            } => {
                let ranges = if repaired_by_writing {
                    &mut self.unreadable_until_written
                } else {
                    &mut self.unreadable
                };
                ranges.insert(Span::new(start.0, start.0.saturating_add(count.0)));
            }
            Fault::Unwritable { start, count } => {
                let end = start.0.saturating_add(count.0);
                self.unwritable.insert(Span::new(start.0, end));
            }
            Fault::Dies => self.health = Health::Dead,
            Fault::Hangs => self.health = Health::Hung,
            Fault::Returns => self.health = Health::Alive,
        }
        Some((scheduled.at, self.health))
    }

    /// Whether sectors `[start, end)` can be read.
    pub(crate) fn can_read(&self, start: u64, end: u64) -> bool {
        let span = Span::new(start, end);
        !self.unreadable.overlaps(span) && !self.unreadable_until_written.overlaps(span)
    }

    /// Whether sectors `[start, end)` can be written; if so, they count as written.
    pub(crate) fn write(&mut self, start: u64, end: u64) -> bool {
        let span = Span::new(start, end);
        if self.unwritable.overlaps(span) {
            return false;
        }
        self.unreadable_until_written.remove(span);
        true
    }
}
