//! 256-bit vectors, with and without the affine transformations of GFNI.

use super::generic::{Vector, table};
use super::nibbles::Nibbles;
use super::x86::{FIXED_POINT, TWICE, matrix};
use crate::field::REDUCTION;
use std::arch::x86_64::{
    __m256i, _mm_loadu_si128, _mm256_add_epi8, _mm256_and_si256, _mm256_broadcastsi128_si256,
    _mm256_gf2p8affine_epi64_epi8, _mm256_loadu_si256, _mm256_set1_epi8, _mm256_set1_epi64x,
    _mm256_shuffle_epi8, _mm256_srli_epi64, _mm256_storeu_si256, _mm256_xor_si256,
};

#[derive(Clone, Copy)]
struct Avx2(__m256i);

impl Vector for Avx2 {
    const BYTES: usize = 32;
    type Factor = [Self; 2];

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller's promise.
        unsafe { Self(_mm256_loadu_si256(from.cast())) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe { _mm256_storeu_si256(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn plus(self, other: Self) -> Self {
        // SAFETY: the caller's promise.
        unsafe { Self(_mm256_xor_si256(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn open(self) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            Self(_mm256_xor_si256(
                self.0,
                _mm256_set1_epi8(FIXED_POINT as i8),
            ))
        }
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
            let stays = _mm256_shuffle_epi8(_mm256_set1_epi8(REDUCTION as i8), self.0);
            let twice = _mm256_add_epi8(self.0, self.0);
            Self(_mm256_xor_si256(_mm256_xor_si256(stays, other.0), twice))
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
                Self(_mm256_broadcastsi128_si256(low)),
                Self(_mm256_broadcastsi128_si256(high)),
            ]
        }
    }

    #[inline(always)]
    unsafe fn times(self, [low, high]: [Self; 2]) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            let nibble = _mm256_set1_epi8(0x0f);
            let upper = _mm256_and_si256(_mm256_srli_epi64::<4>(self.0), nibble);
            let low = _mm256_shuffle_epi8(low.0, _mm256_and_si256(self.0, nibble));
            Self(_mm256_xor_si256(low, _mm256_shuffle_epi8(high.0, upper)))
        }
    }
}

table!(Avx2, columns 4 4, target_feature(enable = "avx2"));

/// With one instruction for a product with any constant.
pub(super) mod gfni {
    use super::*;

    #[derive(Clone, Copy)]
    struct Avx2Gfni(__m256i);

    impl Vector for Avx2Gfni {
        const BYTES: usize = 32;
        type Factor = Self;

        #[inline(always)]
        unsafe fn load(from: *const u8) -> Self {
            // SAFETY: the caller's promise.
            unsafe { Self(_mm256_loadu_si256(from.cast())) }
        }

        #[inline(always)]
        unsafe fn store(self, to: *mut u8) {
            // SAFETY: the caller's promise.
            unsafe { _mm256_storeu_si256(to.cast(), self.0) }
        }

        #[inline(always)]
        unsafe fn plus(self, other: Self) -> Self {
            // SAFETY: the caller's promise.
            unsafe { Self(_mm256_xor_si256(self.0, other.0)) }
        }

        #[inline(always)]
        unsafe fn double_plus(self, other: Self) -> Self {
            // SAFETY: the caller's promise.
            unsafe {
                self.times(Self(_mm256_set1_epi64x(TWICE as i64)))
                    .plus(other)
            }
        }

        #[inline(always)]
        unsafe fn factor(by: u8) -> Self {
            // SAFETY: the caller's promise.
            unsafe { Self(_mm256_set1_epi64x(matrix(by) as i64)) }
        }

        #[inline(always)]
        unsafe fn times(self, by: Self) -> Self {
            // SAFETY: the caller's promise.
            unsafe { Self(_mm256_gf2p8affine_epi64_epi8::<0>(self.0, by.0)) }
        }
    }

    table!(Avx2Gfni, columns 4 4, target_feature(enable = "avx2,gfni"));
}
