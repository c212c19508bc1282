//! XOR and P+Q parity over GF(2^8), in SIMD tiers chosen at start.
//!
//! # The code
//!
//! The field is GF(2^8) with the polynomial x^8 + x^4 + x^3 + x^2 + 1 (0x11d)
//! and the generator g = 2: the code of Linux's `lib/raid6` ("The mathematics
//! of RAID-6", H. Peter Anvin), of ISA-L's `pq_gen` and of the first two
//! parities of ZFS and `SnapRAID`. Byte by byte, over data blocks `d[0]` to
//! `d[k-1]`, k at most [`MAXIMUM_DATA`]:
//!
//! ```text
//! P = d[0] + d[1] + ... + d[k-1]
//! Q = g^0 d[0] + g^1 d[1] + ... + g^(k-1) d[k-1]
//! ```
//!
//! where + is XOR. Any two lost blocks of the k + 2 can be made again from the
//! others, and a single wrong block can be found ([`check`]).
//!
//! # Blocks
//!
//! All blocks of a call have the same length, any length, at any address. A
//! data block may be absent (`None` of an `Option`): it counts as zeros and
//! costs nothing. Blocks are numbered as the array core numbers them: data
//! from 0, then P is `k`, Q is `k + 1`.
//!
//! # Tiers
//!
//! The functions of this crate use the fastest [`Tier`] that the processor
//! has, chosen once. The environment variable [`SIMD_VARIABLE`] forces another;
//! see [`forced`] for what an unknown name does. [`Kernels`] has the same
//! functions for a tier of one's own choice.
//!
//! ```
//! let data: [&[u8]; 3] = [b"one", b"two", b"six"];
//! let (mut p, mut q) = ([0; 3], [0; 3]);
//! raidlab_parity::generate_pq(&data, &mut p, &mut q);
//!
//! let (mut first, mut third) = ([0; 3], [0; 3]);
//! let mut second = *b"two";
//! let mut blocks: [&mut [u8]; 3] = [&mut first, &mut second, &mut third];
//! raidlab_parity::recover(&mut blocks, Some(&mut p), Some(&mut q), &[0, 2])?;
//! assert_eq!((&first, &third), (b"one", b"six"));
//! # Ok::<(), raidlab_parity::RecoverError>(())
//! ```

mod block;
mod check;
mod field;
mod generate;
mod kernels;
mod recover;
mod tier;

pub use block::{Block, BlockMut, MAXIMUM_DATA};
pub use check::{Difference, SECTOR_BYTES};
pub use recover::RecoverError;
pub use tier::{SIMD_VARIABLE, Tier, TierError, forced, tier, tiers_available};

use kernels::Table;

/// The parity functions of one tier.
#[derive(Debug, Clone, Copy)]
pub struct Kernels {
    tier: Tier,
    table: &'static Table,
}

/// Computes P of all data blocks, by the chosen tier. See [`Kernels::generate_p`].
///
/// # Panics
/// When a block's length is not P's, or there are too many.
pub fn generate_p(data: &[impl Block], p: &mut [u8]) {
    Kernels::chosen().generate_p(data, p);
}

/// Computes P and Q of all data blocks, by the chosen tier. See [`Kernels::generate_pq`].
///
/// # Panics
/// When a block's length is not P's, or there are too many.
pub fn generate_pq(data: &[impl Block], p: &mut [u8], q: &mut [u8]) {
    Kernels::chosen().generate_pq(data, p, q);
}

/// Computes Q of all data blocks, by the chosen tier. See [`Kernels::generate_q`].
///
/// # Panics
/// When a block's length is not Q's, or there are too many.
pub fn generate_q(data: &[impl Block], q: &mut [u8]) {
    Kernels::chosen().generate_q(data, q);
}

/// Updates P and Q in place for one data block that changes, by the chosen
/// tier. See [`Kernels::update`].
///
/// # Panics
/// When lengths differ or `index` is not below [`MAXIMUM_DATA`].
pub fn update(
    index: usize,
    old: impl Block,
    new: impl Block,
    p: Option<&mut [u8]>,
    q: Option<&mut [u8]>,
) {
    Kernels::chosen().update(index, old, new, p, q);
}

/// Recomputes lost blocks from the others, by the chosen tier. See [`Kernels::recover`].
///
/// # Errors
/// When the parity given is not enough, or blocks do not fit each other.
pub fn recover(
    data: &mut [impl BlockMut],
    p: Option<&mut [u8]>,
    q: Option<&mut [u8]>,
    lost: &[usize],
) -> Result<(), RecoverError> {
    Kernels::chosen().recover(data, p, q, lost)
}

/// Compares P and Q with the data, by the chosen tier. See [`Kernels::check`].
///
/// # Panics
/// When a block's length is not P's, or there are too many.
#[must_use]
pub fn check(data: &[impl Block], p: &[u8], q: Option<&[u8]>) -> Difference {
    Kernels::chosen().check(data, p, q)
}
