//! Vectors of eight bytes in an integer, and single bytes for the rest of other vectors.

use super::generic::{Vector, table};
use crate::field;

/// The top bit of each byte.
const TOPS: u64 = 0x8080_8080_8080_8080;
/// The polynomial's lower part in each byte.
const REDUCTIONS: u64 = 0x0101_0101_0101_0101 * field::REDUCTION as u64;

/// Doubles each byte. The difference of the top bits moved one place up and seven places down is
/// 0xff in the bytes that overflow.
#[inline(always)]
const fn double(bytes: u64) -> u64 {
    let tops = bytes & TOPS;
    let overflow = (tops << 1).wrapping_sub(tops >> 7);
    ((bytes ^ tops) << 1) ^ (overflow & REDUCTIONS)
}

impl Vector for u64 {
    const BYTES: usize = 8;
    /// One mask for each bit of the factor: all ones or all zeros.
    type Factor = [Self; 8];

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller's promise.
        unsafe { from.cast::<Self>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe { to.cast::<Self>().write_unaligned(self) }
    }

    #[inline(always)]
    unsafe fn plus(self, other: Self) -> Self {
        self ^ other
    }

    #[inline(always)]
    unsafe fn double_plus(self, other: Self) -> Self {
        double(self) ^ other
    }

    #[inline(always)]
    unsafe fn factor(by: u8) -> [Self; 8] {
        let mut bits = [0; 8];
        for (place, bit) in bits.iter_mut().enumerate() {
            *bit = Self::from(by >> place & 1).wrapping_neg();
        }
        bits
    }

    #[inline(always)]
    unsafe fn times(self, by: [Self; 8]) -> Self {
        let (mut power, mut product) = (self, 0);
        for bit in by {
            product ^= power & bit;
            power = double(power);
        }
        product
    }
}

impl Vector for u8 {
    const BYTES: usize = 1;
    type Factor = Self;

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller's promise.
        unsafe { from.read() }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe { to.write(self) }
    }

    #[inline(always)]
    unsafe fn plus(self, other: Self) -> Self {
        self ^ other
    }

    #[inline(always)]
    unsafe fn double_plus(self, other: Self) -> Self {
        (self << 1) ^ ((self >> 7) * field::REDUCTION) ^ other
    }

    #[inline(always)]
    unsafe fn factor(by: u8) -> Self {
        by
    }

    #[inline(always)]
    unsafe fn times(self, by: Self) -> Self {
        field::multiply(self, by)
    }
}

table!(u64, columns 8 8);
