//! 128-bit vectors of any x86-64 processor since 2006.

use super::generic::{Vector, table};
use super::nibbles::{Nibbles, moves};
use super::x86::{FIXED_POINT, by_shuffles};
use crate::field::REDUCTION;
use std::arch::x86_64::{
    __m128i, _mm_add_epi8, _mm_and_si128, _mm_loadu_si128, _mm_set1_epi8, _mm_shuffle_epi8,
    _mm_srli_epi64, _mm_storeu_si128, _mm_xor_si128,
};

#[derive(Clone, Copy)]
struct Ssse3(__m128i);

impl Vector for Ssse3 {
    const BYTES: usize = 16;
    type Factor = [Self; 2];

    moves!(_mm_loadu_si128, _mm_storeu_si128, _mm_xor_si128);

    #[inline(always)]
    unsafe fn double_plus(self, other: Self) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            let stays = _mm_shuffle_epi8(_mm_set1_epi8(REDUCTION as i8), self.0);
            let twice = _mm_add_epi8(self.0, self.0);
            Self(_mm_xor_si128(_mm_xor_si128(twice, stays), other.0))
        }
    }

    #[inline(always)]
    unsafe fn factor(by: u8) -> [Self; 2] {
        let Nibbles { low, high } = Nibbles::of(by);
        // SAFETY: the caller's promise; a table has 16 bytes.
        unsafe { [Self::load(low.as_ptr()), Self::load(high.as_ptr())] }
    }

    by_shuffles!(
        _mm_set1_epi8,
        _mm_and_si128,
        _mm_srli_epi64,
        _mm_shuffle_epi8,
        _mm_xor_si128
    );
}

table!(Ssse3, columns 2 4, target_feature(enable = "ssse3"));
