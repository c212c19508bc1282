//! A modelled disk: a medium, chosen by its parameters.

use crate::command::{Command, Completion};
use crate::medium::parameters::DiskParameters;
use crate::medium::{AnyMechanism, Inside, Mechanism};
use crate::surface::Surface;
use raidlab_random::Stream;
use raidlab_units::{Nanos, Sectors};

/// A modelled disk, which works by the mechanism of its medium; all times are integer nanoseconds.
#[derive(Debug, Clone)]
pub struct Disk {
    parameters: DiskParameters,
    surface: Surface,
    mechanism: AnyMechanism,
}

impl Disk {
    /// A disk at rest with its head at sector 0. `angle` is the platter's
    /// angle at time zero, if there is one: two disks of an array should differ in it. The
    /// parameters must be valid (see [`DiskParameters::validate`]).
    #[must_use]
    pub fn new(parameters: DiskParameters, angle: Nanos, random: Stream) -> Self {
        Self {
            surface: Surface::new(parameters.capacity, &parameters.rate_curve),
            mechanism: parameters.medium.build(&parameters, angle, random),
            parameters,
        }
    }

    /// The disk's parameters.
    #[must_use]
    pub fn parameters(&self) -> &DiskParameters {
        &self.parameters
    }

    /// The surface: the positions of its sectors, and the rate of a stream over them.
    #[must_use]
    pub fn surface(&self) -> &Surface {
        &self.surface
    }

    /// Whether no command waits, no data are dirty, and nothing is in progress.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.mechanism.is_quiet()
    }

    /// The numbers of its commands at each place within the disk.
    #[must_use]
    pub fn inside(&self) -> Inside {
        self.mechanism.inside()
    }

    /// Leaps over hours without simulating them, in which the host continued as before up to
    /// `sector`. Only while quiet.
    pub fn leap(&mut self, sector: Sectors) {
        debug_assert!(self.is_quiet(), "a leap over work in progress");
        let sector = sector + self.parameters.first_sector;
        self.mechanism.leap(&self.surface, sector);
    }

    /// Whether the disk would behave in the same way for hours if the host does.
    #[must_use]
    pub fn is_steady(&self) -> bool {
        self.mechanism.is_steady()
    }

    /// Takes a command at time `now`, which must not be earlier than that of
    /// any call before.
    pub fn submit(&mut self, now: Nanos, mut command: Command) {
        command.start += self.parameters.first_sector;
        self.mechanism.submit(now.0, &command);
    }

    /// The time at which [`Self::advance`] next has something to do.
    #[inline]
    #[must_use]
    pub fn next_event(&self) -> Option<Nanos> {
        let next = self.mechanism.next_event();
        (next != u64::MAX).then_some(Nanos(next))
    }

    /// Does everything due at `now` and appends the completed commands.
    pub fn advance(&mut self, now: Nanos, completions: &mut Vec<Completion>) {
        self.mechanism.advance(now.0, completions);
    }
}
