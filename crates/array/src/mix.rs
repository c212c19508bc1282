//! A fast hash of numbers, the same on every machine.

use std::hash::{BuildHasherDefault, Hasher};

/// The hasher factory for tables that use [`Mix`].
pub type Mixed = BuildHasherDefault<Mix>;

/// A hash for numbers that no attacker chooses: the core and the driver count them up. The
/// product's upper half mixes all lower bits down.
#[derive(Debug, Default)]
pub struct Mix(u64);

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        // 2^64 divided by the golden ratio (Knuth, TAOCP 3, section 6.4).
        let product = u128::from(self.0 ^ number) * 0x9e37_79b9_7f4a_7c15;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
