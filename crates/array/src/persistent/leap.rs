//! Leaps over the even part of a sync, for simulations.

use super::PersistentArray;
use crate::request::Outputs;
use raidlab_units::{Nanos, Sectors};

impl PersistentArray {
    /// The engine's [`Engine::freeze_sync`](crate::Engine::freeze_sync), for simulations.
    pub fn freeze_sync(&mut self) {
        self.engine.freeze_sync();
    }

    /// The engine's [`Engine::thaw_sync`](crate::Engine::thaw_sync), for simulations.
    pub fn thaw_sync(&mut self, now: Nanos, out: &mut Outputs) {
        self.now = now;
        self.with_engine_do(out, |engine, out| engine.thaw_sync(now, out));
        self.pump(out);
    }

    /// The engine's [`Engine::leap_sync`](crate::Engine::leap_sync), for simulations.
    pub fn leap_sync(&mut self, now: Nanos, position: Sectors, out: &mut Outputs) {
        self.now = now;
        self.with_engine_do(out, |engine, out| engine.leap_sync(now, position, out));
        self.pump(out);
    }
}
