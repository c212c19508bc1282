//! Common parts of the tiers that look up bytes in vectors of sixteen.
//!
//! A product with a constant is the sum of two products, those of the byte's lower and of its upper
//! four bits, each looked up.

use crate::field::multiply;

/// Products of a factor with all values of the lower and of the upper four
/// bits.
pub(super) struct Nibbles {
    pub(super) low: [u8; 16],
    pub(super) high: [u8; 16],
}

impl Nibbles {
    pub(super) fn of(by: u8) -> Self {
        let mut nibbles = Self {
            low: [0; 16],
            high: [0; 16],
        };
        for (value, (low, high)) in (0..).zip(nibbles.low.iter_mut().zip(&mut nibbles.high)) {
            *low = multiply(value, by);
            *high = multiply(value << 4, by);
        }
        nibbles
    }
}

/// Defines loads, stores and sums, which all vectors do alike, by the processor's instructions.
macro_rules! moves {
    ($load:ident, $store:ident, $xor:ident) => {
        #[inline(always)]
        unsafe fn load(from: *const u8) -> Self {
            // SAFETY: the caller's promise.
            unsafe { Self($load(from.cast())) }
        }

        #[inline(always)]
        unsafe fn store(self, to: *mut u8) {
            // SAFETY: the caller's promise.
            unsafe { $store(to.cast(), self.0) }
        }

        #[inline(always)]
        unsafe fn plus(self, other: Self) -> Self {
            // SAFETY: the caller's promise.
            unsafe { Self($xor(self.0, other.0)) }
        }
    };
}
pub(super) use moves;
