//! What an administrator asks of an array, and whether its members agree.

use super::{Make, World, slot};
use raidlab_array::{AssembleOptions, Candidate, NewDevice, VerbError};
use raidlab_units::{Nanos, Sectors};

/// The choice to run without members that are missing.
pub fn run_degraded(options: &mut AssembleOptions) {
    options.run_degraded = true;
}

impl Make {
    /// Makes the array, and assembles it.
    pub fn start(&self) -> World {
        World::assemble(self.disks(), self.log, |_| ()).unwrap()
    }
}

impl World {
    pub fn fail(&mut self, handle: u16) -> Result<(), VerbError> {
        self.with(|array, now, out| array.fail(now, slot(handle), out))
    }

    pub fn remove(&mut self, handle: u16) -> Result<(), VerbError> {
        self.with(|array, now, out| array.remove(now, slot(handle), out))
    }

    pub fn add(&mut self, handle: u16, device: NewDevice) -> Result<(), VerbError> {
        self.with(|array, now, out| array.add(now, slot(handle), device, out))
    }

    pub fn re_add(&mut self, handle: u16, back: Candidate) -> Result<(), VerbError> {
        self.with(|array, now, out| array.re_add(now, slot(handle), back, out))
    }

    pub fn replace(&mut self, handle: u16) -> Result<(), VerbError> {
        self.with(|array, now, out| array.replace(now, slot(handle), None, out))
    }

    pub fn read_only(&mut self) -> Result<(), VerbError> {
        self.with(|array, now, out| array.read_only(now, out))
    }

    pub fn read_write(&mut self) -> Result<(), VerbError> {
        self.with(|array, now, out| array.read_write(now, out))
    }

    pub fn tick(&mut self) {
        self.with(|array, now, out| array.tick(now, out));
    }

    /// Stops the array, which has a second for it.
    pub fn stop(&mut self) {
        self.with(|array, now, out| array.stop(now, out));
        self.run_for(Nanos::from_secs(1));
    }

    /// Checks the array: nothing differs.
    pub fn check(&mut self) {
        self.check_after("");
    }

    /// The same; `what` happened before.
    pub fn check_after(&mut self, what: &str) {
        self.with(|array, now, out| array.check(now, out)).unwrap();
        self.run_for(Nanos::from_secs(60));
        assert_eq!(self.array.status().mismatches, Sectors(0), "{what}");
    }

    /// The state of a device, or `gone`.
    pub fn state(&self, handle: u16) -> &'static str {
        let devices = self.array.status().devices;
        let found = devices.iter().find(|device| device.handle == slot(handle));
        found.map_or("gone", |device| device.state)
    }
}
