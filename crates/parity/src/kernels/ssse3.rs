//! 128-bit vectors of any x86-64 processor since 2006.

use super::generic::{Vector, table};
use super::nibbles::Nibbles;
use super::x86::FIXED_POINT;
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

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller's promise.
        unsafe { Self(_mm_loadu_si128(from.cast())) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe { _mm_storeu_si128(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn plus(self, other: Self) -> Self {
        // SAFETY: the caller's promise.
        unsafe { Self(_mm_xor_si128(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn open(self) -> Self {
        // SAFETY: the caller's promise.
        unsafe { Self(_mm_xor_si128(self.0, _mm_set1_epi8(FIXED_POINT as i8))) }
    }

    #[inline(always)]
    unsafe fn close(self) -> Self {
        // SAFETY: the caller's promise.
        unsafe { self.open() }
    }

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

    #[inline(always)]
    unsafe fn times(self, [low, high]: [Self; 2]) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            let nibble = _mm_set1_epi8(0x0f);
            let upper = _mm_and_si128(_mm_srli_epi64::<4>(self.0), nibble);
            let low = _mm_shuffle_epi8(low.0, _mm_and_si128(self.0, nibble));
            Self(_mm_xor_si128(low, _mm_shuffle_epi8(high.0, upper)))
        }
    }
}

table!(Ssse3, columns 2 4, target_feature(enable = "ssse3"));
