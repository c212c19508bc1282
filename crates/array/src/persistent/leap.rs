//! Leaps over the even part of a sync, for simulations.

use super::PersistentArray;
use crate::request::Outputs;
use raidlab_units::{Nanos, Sectors};

impl PersistentArray {
    /// See [`Engine::freeze_sync`](crate::Engine::freeze_sync).
    pub fn freeze_sync(&mut self) {
        self.engine.freeze_sync();
    }

    /// See [`Engine::thaw_sync`](crate::Engine::thaw_sync).
    pub fn thaw_sync(&mut self, now: Nanos, out: &mut Outputs) {
        self.now = now;
        self.with_engine_do(out, |engine, out| engine.thaw_sync(now, out));
        self.pump(out);
    }

    /// See [`Engine::leap_sync`](crate::Engine::leap_sync).
    pub fn leap_sync(&mut self, now: Nanos, position: Sectors, out: &mut Outputs) {
        self.now = now;
        self.with_engine_do(out, |engine, out| engine.leap_sync(now, position, out));
        self.pump(out);
    }
}
