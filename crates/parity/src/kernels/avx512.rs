//! 512-bit vectors, with and without the affine transformations of GFNI.
//!
//! One instruction adds three vectors, so blocks are taken in pairs.

use super::generic::{Vector, table};
use super::nibbles::{Nibbles, moves};
use super::x86::{FIXED_POINT, FOUR_TIMES, TWICE, by_matrices, by_shuffles, matrix};
use crate::field::REDUCTION;
use std::arch::x86_64::{
    __m512i, _mm_loadu_si128, _mm512_add_epi8, _mm512_and_si512, _mm512_broadcast_i32x4,
    _mm512_gf2p8affine_epi64_epi8, _mm512_loadu_si512, _mm512_set1_epi8, _mm512_set1_epi64,
    _mm512_shuffle_epi8, _mm512_srli_epi64, _mm512_storeu_si512, _mm512_ternarylogic_epi64,
    _mm512_xor_si512,
};

/// The truth table of the sum of three bits, for the ternary-logic instruction.
const SUM_OF_THREE: i32 = 0x96;

#[derive(Clone, Copy)]
struct Avx512(__m512i);

impl Vector for Avx512 {
    const BYTES: usize = 64;
    type Factor = [Self; 2];

    moves!(_mm512_loadu_si512, _mm512_storeu_si512, _mm512_xor_si512);

    #[inline(always)]
    unsafe fn plus_two(self, second: Self, third: Self) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            Self(_mm512_ternarylogic_epi64::<SUM_OF_THREE>(
                self.0, second.0, third.0,
            ))
        }
    }

    #[inline(always)]
    unsafe fn double_plus(self, other: Self) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            let stays = _mm512_shuffle_epi8(_mm512_set1_epi8(REDUCTION as i8), self.0);
            Self(_mm512_add_epi8(self.0, self.0)).plus_two(Self(stays), other)
        }
    }

    #[inline(always)]
    unsafe fn factor(by: u8) -> [Self; 2] {
        let Nibbles { low, high } = Nibbles::of(by);
        // SAFETY: the caller's promise; a table has 16 bytes.
        unsafe {
            let low = _mm_loadu_si128(low.as_ptr().cast());
            let high = _mm_loadu_si128(high.as_ptr().cast());
            [
                Self(_mm512_broadcast_i32x4(low)),
                Self(_mm512_broadcast_i32x4(high)),
            ]
        }
    }

    by_shuffles!(
        _mm512_set1_epi8,
        _mm512_and_si512,
        _mm512_srli_epi64,
        _mm512_shuffle_epi8,
        _mm512_xor_si512
    );
}

table!(Avx512, columns 4 4, target_feature(enable = "avx512f,avx512bw"));

/// The tier with GFNI: one instruction for a product with any constant.
pub(super) mod gfni {
    use super::*;

    #[derive(Clone, Copy)]
    struct Avx512Gfni(__m512i);

    impl Vector for Avx512Gfni {
        const BYTES: usize = 64;

        moves!(_mm512_loadu_si512, _mm512_storeu_si512, _mm512_xor_si512);

        #[inline(always)]
        unsafe fn plus_two(self, second: Self, third: Self) -> Self {
            // SAFETY: the caller's promise.
            unsafe {
                Self(_mm512_ternarylogic_epi64::<SUM_OF_THREE>(
                    self.0, second.0, third.0,
                ))
            }
        }

        #[inline(always)]
        unsafe fn double_plus_twice(self, upper: Self, lower: Self) -> Self {
            // SAFETY: the caller's promise.
            unsafe {
                let upper = upper.times(Self(_mm512_set1_epi64(TWICE as i64)));
                let four_times = Self(_mm512_set1_epi64(FOUR_TIMES as i64));
                self.times(four_times).plus_two(upper, lower)
            }
        }

        by_matrices!(_mm512_set1_epi64, _mm512_gf2p8affine_epi64_epi8);
    }

    table!(Avx512Gfni, columns 4 4, target_feature(enable = "avx512f,avx512bw,gfni"));
}
