//! 128-bit vectors of any 64-bit Arm processor.
//!
//! Arm's table look-up gives zero for every index from 16 on, so it cannot pick the polynomial by
//! the top bit as the shuffles of x86 do. An arithmetic shift makes a mask of that bit instead, at
//! five instructions per vector of sixteen bytes.

use super::generic::{Vector, table};
use super::nibbles::{Nibbles, moves};
use crate::field::REDUCTION;
use std::arch::aarch64::{
    uint8x16_t, vandq_u8, vdupq_n_u8, veorq_u8, vld1q_u8, vqtbl1q_u8, vreinterpretq_s8_u8,
    vreinterpretq_u8_s8, vshlq_n_u8, vshrq_n_s8, vshrq_n_u8, vst1q_u8,
};

#[derive(Clone, Copy)]
struct Neon(uint8x16_t);

impl Vector for Neon {
    const BYTES: usize = 16;
    type Factor = [Self; 2];

    moves!(vld1q_u8, vst1q_u8, veorq_u8);

    #[inline(always)]
    unsafe fn double_plus(self, other: Self) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            let top_bits = vreinterpretq_u8_s8(vshrq_n_s8::<7>(vreinterpretq_s8_u8(self.0)));
            let reduction = vandq_u8(top_bits, vdupq_n_u8(REDUCTION));
            let twice = vshlq_n_u8::<1>(self.0);
            Self(veorq_u8(veorq_u8(reduction, other.0), twice))
        }
    }

    #[inline(always)]
    unsafe fn factor(by: u8) -> [Self; 2] {
        let Nibbles { low, high } = Nibbles::of(by);
        // SAFETY: the caller's promise; a table has 16 bytes.
        unsafe { [Self::load(low.as_ptr()), Self::load(high.as_ptr())] }
    }

    #[inline(always)]
    unsafe fn times(self, [low, high]: [Self; 2]) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            let lower = vandq_u8(self.0, vdupq_n_u8(0x0f));
            let upper = vshrq_n_u8::<4>(self.0);
            Self(veorq_u8(
                vqtbl1q_u8(low.0, lower),
                vqtbl1q_u8(high.0, upper),
            ))
        }
    }
}

table!(Neon, columns 4 4, target_feature(enable = "neon"));
