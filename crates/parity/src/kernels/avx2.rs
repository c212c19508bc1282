//! 256-bit vectors, with and without the affine transformations of GFNI.

use super::generic::{Vector, table};
use super::nibbles::{Nibbles, moves};
use super::x86::{FIXED_POINT, TWICE, by_matrices, by_shuffles, matrix};
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

    moves!(_mm256_loadu_si256, _mm256_storeu_si256, _mm256_xor_si256);

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

    by_shuffles!(
        _mm256_set1_epi8,
        _mm256_and_si256,
        _mm256_srli_epi64,
        _mm256_shuffle_epi8,
        _mm256_xor_si256
    );
}

table!(Avx2, columns 4 4, target_feature(enable = "avx2"));

/// The tier with GFNI: one instruction for a product with any constant.
pub(super) mod gfni {
    use super::*;

    #[derive(Clone, Copy)]
    struct Avx2Gfni(__m256i);

    impl Vector for Avx2Gfni {
        const BYTES: usize = 32;

        moves!(_mm256_loadu_si256, _mm256_storeu_si256, _mm256_xor_si256);

        by_matrices!(_mm256_set1_epi64x, _mm256_gf2p8affine_epi64_epi8);
    }

    table!(Avx2Gfni, columns 4 4, target_feature(enable = "avx2,gfni"));
}
