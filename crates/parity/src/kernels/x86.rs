//! Common parts of the tiers of x86.
//!
//! The byte shuffles of x86 give zero where the index has its top bit set and the table's byte
//! otherwise. So a shuffle of a table full of the polynomial gives the reduction of exactly those
//! bytes that need none, in one instruction where compare and mask are two: `(q + q) ^ shuffle = 2
//! q ^ polynomial`. The surplus polynomial has a fixed point: with `f = polynomial / (g + 1)`, `2
//! (q ^ f) ^ polynomial` is `2 q ^ f`. So Q's sums carry f all through the loop, and it is removed
//! at the end.

use crate::field::{REDUCTION, multiply};

/// The surplus that Q's sums carry in the loop, f in the description above.
pub(super) const FIXED_POINT: u8 = 0x0b;

const _: () = assert!((FIXED_POINT << 1) ^ REDUCTION == FIXED_POINT);

/// Returns the product with a factor as a matrix over bits, in the form of `vgf2p8affineqb`: the
/// row of output bit i in byte 7 - i.
///
/// (The same extension's `vgf2p8mulb` is for AES's field, 0x11b.)
pub(super) const fn matrix(by: u8) -> u64 {
    let mut rows = 0;
    let mut column = 0;
    while column < 8 {
        let product = multiply(1 << column, by);
        let mut bit = 0;
        while bit < 8 {
            let row = 7 - bit;
            rows |= ((product >> bit & 1) as u64) << (8 * row + column);
            bit += 1;
        }
        column += 1;
    }
    rows
}

/// The bit matrix that multiplies by two in GF(2^8).
pub(super) const TWICE: u64 = matrix(2);
/// The bit matrix that multiplies by four in GF(2^8).
pub(super) const FOUR_TIMES: u64 = matrix(4);

/// Defines the operations that vectors without GFNI share: sums of Q carry [`FIXED_POINT`], and a
/// product is looked up half a byte at a time.
macro_rules! by_shuffles {
    ($set:ident, $and:ident, $shift:ident, $shuffle:ident, $xor:ident) => {
        #[inline(always)]
        unsafe fn open(self) -> Self {
            // SAFETY: the caller's promise.
            unsafe { Self($xor(self.0, $set(FIXED_POINT as i8))) }
        }

        #[inline(always)]
        unsafe fn close(self) -> Self {
            // SAFETY: the caller's promise.
            unsafe { self.open() }
        }

        #[inline(always)]
        unsafe fn times(self, [low, high]: [Self; 2]) -> Self {
            // SAFETY: the caller's promise.
            unsafe {
                let nibble = $set(0x0f);
                let upper = $and($shift::<4>(self.0), nibble);
                let low = $shuffle(low.0, $and(self.0, nibble));
                Self($xor(low, $shuffle(high.0, upper)))
            }
        }
    };
}
pub(super) use by_shuffles;

/// Defines the operations that vectors with GFNI share: one instruction makes the product
/// with any constant.
macro_rules! by_matrices {
    ($set:ident, $product:ident) => {
        type Factor = Self;

        #[inline(always)]
        unsafe fn double_plus(self, other: Self) -> Self {
            // SAFETY: the caller's promise.
            unsafe { self.times(Self($set(TWICE as i64))).plus(other) }
        }

        #[inline(always)]
        unsafe fn factor(by: u8) -> Self {
            // SAFETY: the caller's promise.
            unsafe { Self($set(matrix(by) as i64)) }
        }

        #[inline(always)]
        unsafe fn times(self, by: Self) -> Self {
            // SAFETY: the caller's promise.
            unsafe { Self($product::<0>(self.0, by.0)) }
        }
    };
}
pub(super) use by_matrices;
