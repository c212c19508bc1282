//! The loops over bytes, one table of them for each tier.
//!
//! Each loop is written once, over a [`Vector`], in [`generic`]; a tier's
//! module says what its vector is and compiles the loops for its processor.
//!
//! Q is made by Horner's rule from the highest block down: `q = 2 q + d`. So
//! one pass over the data with two sums per column makes P and Q, and the only
//! multiplication is by two. A single column is a chain in which each step
//! waits for the last; a few vectors side by side hide that.

#![expect(
    unsafe_code,
    reason = "SIMD loads and stores, and functions compiled for chosen processors"
)]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod generic;
#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod nibbles;
mod portable;
#[cfg(target_arch = "x86_64")]
mod ssse3;
#[cfg(target_arch = "x86_64")]
mod x86;

use crate::Tier;

type UpdateBoth = unsafe fn(by: u8, old: &[u8], new: &[u8], parity: [&mut [u8]; 2]);
type Solve = unsafe fn(by: [u8; 2], parity: [&[u8]; 2], lost: [&mut [u8]; 2]);

/// The functions of one tier. They may be called only on a processor that has
/// the tier's instructions; lists are not empty and all slices of a call have
/// the same length.
#[derive(Debug)]
pub(crate) struct Table {
    xor: unsafe fn(data: &[&[u8]], p: &mut [u8]),
    pq: unsafe fn(data: &[&[u8]], p: &mut [u8], q: &mut [u8]),
    q: unsafe fn(data: &[&[u8]], q: &mut [u8]),
    update_p: unsafe fn(old: &[u8], new: &[u8], p: &mut [u8]),
    update_q: unsafe fn(by: u8, old: &[u8], new: &[u8], q: &mut [u8]),
    update_pq: UpdateBoth,
    scale_sum: unsafe fn(by: u8, other: &[u8], to: &mut [u8]),
    solve: Solve,
}

fn assert_lengths<const N: usize>(data: &[&[u8]], bytes: usize, others: [usize; N]) {
    assert!(
        data.iter().all(|block| block.len() == bytes) && others == [bytes; N],
        "blocks of different lengths"
    );
}

impl Table {
    /// Returns the functions of a tier; `None` if this processor cannot run them.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn of(tier: Tier) -> Option<&'static Self> {
        let avx2 = || is_x86_feature_detected!("avx2");
        let avx512 = || is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw");
        let gfni = || is_x86_feature_detected!("gfni");
        match tier {
            Tier::Portable => Some(&portable::TABLE),
            Tier::Neon => None,
            Tier::Ssse3 => is_x86_feature_detected!("ssse3").then_some(&ssse3::TABLE),
            Tier::Avx2 => avx2().then_some(&avx2::TABLE),
            Tier::Avx2Gfni => (avx2() && gfni()).then_some(&avx2::gfni::TABLE),
            Tier::Avx512 => avx512().then_some(&avx512::TABLE),
            Tier::Avx512Gfni => (avx512() && gfni()).then_some(&avx512::gfni::TABLE),
        }
    }

    /// Returns the functions of a tier; `None` if this processor cannot run them.
    #[cfg(target_arch = "aarch64")]
    pub(crate) fn of(tier: Tier) -> Option<&'static Self> {
        let neon = || std::arch::is_aarch64_feature_detected!("neon");
        match tier {
            Tier::Portable => Some(&portable::TABLE),
            Tier::Neon => neon().then_some(&neon::TABLE),
            _ => None,
        }
    }

    /// Returns the functions of a tier; `None` if this processor cannot run them.
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    pub(crate) fn of(tier: Tier) -> Option<&'static Self> {
        (tier == Tier::Portable).then_some(&portable::TABLE)
    }

    /// Computes `p` = the sum of `data`.
    pub(crate) fn xor(&self, data: &[&[u8]], p: &mut [u8]) {
        assert_lengths(data, p.len(), []);
        match data {
            [] => p.fill(0),
            [only] => p.copy_from_slice(only),
            // SAFETY: `of` gave this table for a tier that the processor has;
            // the list is not empty and the lengths are the same.
            _ => unsafe { (self.xor)(data, p) },
        }
    }

    /// Computes `p` = the sum of `data`, `q` = the sum with powers of g.
    pub(crate) fn pq(&self, data: &[&[u8]], p: &mut [u8], q: &mut [u8]) {
        assert_lengths(data, p.len(), [q.len()]);
        match data {
            [] => {
                p.fill(0);
                q.fill(0);
            }
            // SAFETY: as in `xor`.
            _ => unsafe { (self.pq)(data, p, q) },
        }
    }

    /// Computes `q` = the sum of `data` with powers of g.
    pub(crate) fn q(&self, data: &[&[u8]], q: &mut [u8]) {
        assert_lengths(data, q.len(), []);
        match data {
            [] => q.fill(0),
            // SAFETY: as in `xor`.
            _ => unsafe { (self.q)(data, q) },
        }
    }

    /// Computes `p` += `old` + `new` and `q` += `by` (`old` + `new`), where they are given.
    pub(crate) fn update(
        &self,
        by: u8,
        old: &[u8],
        new: &[u8],
        p: Option<&mut [u8]>,
        q: Option<&mut [u8]>,
    ) {
        match (p, q) {
            (None, None) => {}
            (Some(p), None) => {
                assert_lengths(&[old, new], p.len(), []);
                // SAFETY: as in `xor`.
                unsafe { (self.update_p)(old, new, p) }
            }
            (None, Some(q)) => {
                assert_lengths(&[old, new], q.len(), []);
                // SAFETY: as in `xor`.
                unsafe { (self.update_q)(by, old, new, q) }
            }
            (Some(p), Some(q)) => {
                assert_lengths(&[old, new], p.len(), [q.len()]);
                // SAFETY: as in `xor`.
                unsafe { (self.update_pq)(by, old, new, [p, q]) }
            }
        }
    }

    /// Computes `to` = `by` (`to` + `other`).
    pub(crate) fn scale_sum(&self, by: u8, other: &[u8], to: &mut [u8]) {
        assert_lengths(&[other], to.len(), []);
        // SAFETY: as in `xor`.
        unsafe { (self.scale_sum)(by, other, to) }
    }

    /// Computes two lost blocks. With s and t the sums of `parity` and `lost`, place by place, and
    /// x and y the blocks in `lost`: x = `by[0]` s + `by[1]` t, then y = s + x.
    pub(crate) fn solve(&self, by: [u8; 2], parity: [&[u8]; 2], lost: [&mut [u8]; 2]) {
        assert_lengths(&parity, lost[0].len(), [lost[1].len()]);
        // SAFETY: as in `xor`.
        unsafe { (self.solve)(by, parity, lost) }
    }
}
