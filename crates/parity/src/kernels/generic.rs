//! The loops, written once over a vector type.
//!
//! A loop over all blocks takes a column of several vectors at a time, then of
//! one, and leaves the rest, shorter than a vector, to the same loop over
//! bytes. For usual numbers of blocks the number is known to the compiler, so
//! that it unrolls the column and keeps the blocks' addresses in registers.
//!
//! Everything is inlined into the functions that a tier compiles with its
//! processor's instructions.

/// A number of bytes that a processor handles at once.
///
/// # Safety of all functions
/// The processor has the instructions of the vector; at each address [`Self::BYTES`] bytes may be
/// read, or written.
pub(super) trait Vector: Copy {
    /// The number of bytes in one vector.
    const BYTES: usize;
    /// A constant of GF(2^8) in the form in which `times` multiplies by it.
    type Factor: Copy;
    unsafe fn load(from: *const u8) -> Self;
    unsafe fn store(self, to: *mut u8);
    /// Returns the sum in GF(2^8), byte for byte.
    unsafe fn plus(self, other: Self) -> Self;
    /// Returns the sum of three vectors in GF(2^8), byte for byte.
    #[inline(always)]
    unsafe fn plus_two(self, second: Self, third: Self) -> Self {
        // SAFETY: the caller's promise.
        unsafe { self.plus(second).plus(third) }
    }
    /// Converts a sum of Q to the form that it has in the loop.
    #[inline(always)]
    unsafe fn open(self) -> Self {
        self
    }
    /// Converts a sum of Q from the form that it has in the loop back to plain bytes.
    #[inline(always)]
    unsafe fn close(self) -> Self {
        self
    }
    /// Returns twice this sum of Q, plus a block's bytes.
    unsafe fn double_plus(self, other: Self) -> Self;
    /// Applies [`Self::double_plus`] for two blocks, one after the other.
    #[inline(always)]
    unsafe fn double_plus_twice(self, upper: Self, lower: Self) -> Self {
        // SAFETY: the caller's promise.
        unsafe { self.double_plus(upper).double_plus(lower) }
    }
    /// Converts the constant `by` to the form in which `times` multiplies by it.
    unsafe fn factor(by: u8) -> Self::Factor;
    /// Returns the product with a constant of GF(2^8), byte for byte.
    unsafe fn times(self, by: Self::Factor) -> Self;
}

/// Computes P, Q or both over the columns from `at` on, `COLUMNS` vectors at a time. Returns the
/// place where it stopped, less than one step before `bytes`.
///
/// # Safety
/// As for [`Vector`]; `data` is not empty, `bytes` bytes may be read at each of its addresses, and
/// written at `p` if `P` and at `q` if `Q`.
#[inline(always)]
unsafe fn columns<V: Vector, const COLUMNS: usize, const P: bool, const Q: bool>(
    data: &[*const u8],
    p: *mut u8,
    q: *mut u8,
    mut at: usize,
    bytes: usize,
) -> usize {
    let top = data.len() - 1;
    while bytes - at >= COLUMNS * V::BYTES {
        // SAFETY: a whole step of columns lies before `bytes`.
        unsafe {
            let mut sums = load::<V, COLUMNS>(data[top], at);
            let mut powers = sums;
            if Q {
                for power in &mut powers {
                    *power = power.open();
                }
            }
            let mut block = top;
            while block >= 2 {
                let upper = load::<V, COLUMNS>(data[block - 1], at);
                let lower = load::<V, COLUMNS>(data[block - 2], at);
                for column in 0..COLUMNS {
                    if P {
                        sums[column] = sums[column].plus_two(upper[column], lower[column]);
                    }
                    if Q {
                        powers[column] =
                            powers[column].double_plus_twice(upper[column], lower[column]);
                    }
                }
                block -= 2;
            }
            if block == 1 {
                let lowest = load::<V, COLUMNS>(data[0], at);
                for column in 0..COLUMNS {
                    if P {
                        sums[column] = sums[column].plus(lowest[column]);
                    }
                    if Q {
                        powers[column] = powers[column].double_plus(lowest[column]);
                    }
                }
            }
            for column in 0..COLUMNS {
                if P {
                    sums[column].store(p.add(at + column * V::BYTES));
                }
                if Q {
                    powers[column].close().store(q.add(at + column * V::BYTES));
                }
            }
        }
        at += COLUMNS * V::BYTES;
    }
    at
}

/// Loads `COLUMNS` vectors that lie side by side in a block.
#[inline(always)]
unsafe fn load<V: Vector, const COLUMNS: usize>(block: *const u8, at: usize) -> [V; COLUMNS] {
    // SAFETY: the caller's promise.
    unsafe {
        let mut vectors = [V::load(block.add(at)); COLUMNS];
        for (column, vector) in vectors.iter_mut().enumerate().skip(1) {
            *vector = V::load(block.add(at + column * V::BYTES));
        }
        vectors
    }
}

/// Computes all columns of stripes with `BLOCKS` data blocks, a number known to the compiler.
#[inline(always)]
unsafe fn fixed<
    V: Vector,
    const COLUMNS: usize,
    const BLOCKS: usize,
    const P: bool,
    const Q: bool,
>(
    data: &[&[u8]],
    p: *mut u8,
    q: *mut u8,
) {
    let mut blocks = [std::ptr::null(); BLOCKS];
    for (pointer, block) in blocks.iter_mut().zip(data) {
        *pointer = block.as_ptr();
    }
    let bytes = data[0].len();
    // SAFETY: the caller's promise; each part goes on where the last stopped.
    unsafe {
        let at = columns::<V, COLUMNS, P, Q>(&blocks, p, q, 0, bytes);
        let at = columns::<V, 1, P, Q>(&blocks, p, q, at, bytes);
        rest::<P, Q>(&blocks, p, q, at, bytes);
    }
}

/// Computes the remaining columns, byte by byte.
#[inline(never)]
unsafe fn rest<const P: bool, const Q: bool>(
    data: &[*const u8],
    p: *mut u8,
    q: *mut u8,
    at: usize,
    bytes: usize,
) {
    // SAFETY: the caller's promise.
    unsafe {
        columns::<u8, 1, P, Q>(data, p, q, at, bytes);
    }
}

/// Computes all columns for any number of blocks.
#[inline(always)]
unsafe fn any<V: Vector, const COLUMNS: usize, const P: bool, const Q: bool>(
    data: &[&[u8]],
    p: *mut u8,
    q: *mut u8,
) {
    let mut blocks = [std::ptr::null(); crate::MAXIMUM_DATA];
    for (pointer, block) in blocks.iter_mut().zip(data) {
        *pointer = block.as_ptr();
    }
    let (blocks, bytes) = (&blocks[..data.len()], data[0].len());
    // SAFETY: as in `fixed`.
    unsafe {
        let at = columns::<V, COLUMNS, P, Q>(blocks, p, q, 0, bytes);
        let at = columns::<V, 1, P, Q>(blocks, p, q, at, bytes);
        rest::<P, Q>(blocks, p, q, at, bytes);
    }
}

/// Calls the loop that is compiled for the number of blocks, or the general one.
macro_rules! by_width {
    ($data:ident, $p:expr, $q:expr, $want_p:literal, $want_q:literal, [$($blocks:literal)*]) => {
        match $data.len() {
            $($blocks => fixed::<V, COLUMNS, $blocks, $want_p, $want_q>($data, $p, $q),)*
            _ => any::<V, COLUMNS, $want_p, $want_q>($data, $p, $q),
        }
    };
}

/// Computes only P of the blocks in `data`: their XOR.
///
/// # Safety
/// As for [`Vector`]; `data` is not empty, and all slices have the same length.
/// The same holds for the functions below.
#[inline(always)]
pub(super) unsafe fn xor<V: Vector, const COLUMNS: usize>(data: &[&[u8]], p: &mut [u8]) {
    let none = std::ptr::null_mut();
    // SAFETY: the caller's promise.
    unsafe { by_width!(data, p.as_mut_ptr(), none, true, false, [2 3 4 5 6 7 8 9 10 11 12]) }
}

/// Computes P and Q of the blocks in `data` in one pass.
#[inline(always)]
pub(super) unsafe fn pq<V: Vector, const COLUMNS: usize>(
    data: &[&[u8]],
    p: &mut [u8],
    q: &mut [u8],
) {
    let (p, q) = (p.as_mut_ptr(), q.as_mut_ptr());
    // SAFETY: the caller's promise.
    unsafe { by_width!(data, p, q, true, true, [2 3 4 5 6 7 8 9 10 11 12]) }
}

/// Computes only Q of the blocks in `data`: the sum of 2^index * block in GF(2^8).
#[inline(always)]
pub(super) unsafe fn q<V: Vector, const COLUMNS: usize>(data: &[&[u8]], q: &mut [u8]) {
    // SAFETY: the caller's promise.
    unsafe { any::<V, COLUMNS, false, true>(data, std::ptr::null_mut(), q.as_mut_ptr()) }
}

/// Runs a body for each vector before `$bytes`, and returns where it stopped.
macro_rules! for_vectors {
    ($vector:ident, $at:ident from $start:expr, $bytes:expr, $body:block) => {{
        let (mut $at, bytes) = ($start, $bytes);
        while bytes - $at >= 2 * $vector::BYTES {
            $body
            $at += $vector::BYTES;
            $body
            $at += $vector::BYTES;
        }
        while bytes - $at >= $vector::BYTES {
            $body
            $at += $vector::BYTES;
        }
        $at
    }};
}

#[inline(always)]
unsafe fn update_from<V: Vector, const P: bool, const Q: bool>(
    by: u8,
    old: &[u8],
    new: &[u8],
    p: *mut u8,
    q: *mut u8,
    start: usize,
) -> usize {
    let (old, new, bytes) = (old.as_ptr(), new.as_ptr(), old.len());
    // SAFETY: the caller's promise.
    unsafe {
        let by = V::factor(by);
        for_vectors!(V, at from start, bytes, {
            let change = V::load(old.add(at)).plus(V::load(new.add(at)));
            if P {
                V::load(p.add(at)).plus(change).store(p.add(at));
            }
            if Q {
                V::load(q.add(at)).plus(change.times(by)).store(q.add(at));
            }
        })
    }
}

/// Updates P, Q or both for one block that changes.
#[inline(always)]
pub(super) unsafe fn update<V: Vector, const P: bool, const Q: bool>(
    by: u8,
    old: &[u8],
    new: &[u8],
    p: *mut u8,
    q: *mut u8,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let at = update_from::<V, P, Q>(by, old, new, p, q, 0);
        update_from::<u8, P, Q>(by, old, new, p, q, at);
    }
}

#[inline(always)]
unsafe fn scale_sum_from<V: Vector>(by: u8, other: &[u8], to: &mut [u8], start: usize) -> usize {
    let (other, to, bytes) = (other.as_ptr(), to.as_mut_ptr(), to.len());
    // SAFETY: the caller's promise.
    unsafe {
        let by = V::factor(by);
        for_vectors!(V, at from start, bytes, {
            let sum = V::load(to.add(at)).plus(V::load(other.add(at)));
            sum.times(by).store(to.add(at));
        })
    }
}

/// Computes `to` = `by` (`to` + `other`).
#[inline(always)]
pub(super) unsafe fn scale_sum<V: Vector>(by: u8, other: &[u8], to: &mut [u8]) {
    // SAFETY: the caller's promise.
    unsafe {
        let at = scale_sum_from::<V>(by, other, to, 0);
        scale_sum_from::<u8>(by, other, to, at);
    }
}

#[inline(always)]
unsafe fn solve_from<V: Vector>(
    by: [u8; 2],
    parity: [&[u8]; 2],
    [x, y]: [*mut u8; 2],
    start: usize,
) -> usize {
    let [p, q] = parity.map(<[u8]>::as_ptr);
    // SAFETY: the caller's promise.
    unsafe {
        let (by_p, by_q) = (V::factor(by[0]), V::factor(by[1]));
        for_vectors!(V, at from start, parity[0].len(), {
            let s = V::load(p.add(at)).plus(V::load(x.add(at)));
            let t = V::load(q.add(at)).plus(V::load(y.add(at)));
            let first = s.times(by_p).plus(t.times(by_q));
            first.store(x.add(at));
            s.plus(first).store(y.add(at));
        })
    }
}

/// Computes two lost data blocks: see `Table::solve`.
#[inline(always)]
pub(super) unsafe fn solve<V: Vector>(by: [u8; 2], parity: [&[u8]; 2], lost: [&mut [u8]; 2]) {
    let lost = lost.map(<[u8]>::as_mut_ptr);
    // SAFETY: the caller's promise.
    unsafe {
        let at = solve_from::<V>(by, parity, lost, 0);
        solve_from::<u8>(by, parity, lost, at);
    }
}

/// Declares a tier's table: the loops over one vector type, with a number of columns for P alone
/// and one with Q, compiled for certain instructions.
macro_rules! table {
    ($vector:ty, columns $xor:literal $pq:literal $(, $feature:meta)?) => {
        pub(in crate::kernels) static TABLE: $crate::kernels::Table = {
            use $crate::kernels::generic;
            use std::ptr::null_mut;
            type V = $vector;

            $(#[$feature])?
            unsafe fn xor(data: &[&[u8]], p: &mut [u8]) {
                // SAFETY: the caller's promise, here and below.
                unsafe { generic::xor::<V, $xor>(data, p) }
            }
            $(#[$feature])?
            unsafe fn pq(data: &[&[u8]], p: &mut [u8], q: &mut [u8]) {
                // SAFETY: see `xor`.
                unsafe { generic::pq::<V, $pq>(data, p, q) }
            }
            $(#[$feature])?
            unsafe fn q(data: &[&[u8]], q: &mut [u8]) {
                // SAFETY: see `xor`.
                unsafe { generic::q::<V, $pq>(data, q) }
            }
            $(#[$feature])?
            unsafe fn update_p(old: &[u8], new: &[u8], p: &mut [u8]) {
                // SAFETY: see `xor`.
                unsafe { generic::update::<V, true, false>(1, old, new, p.as_mut_ptr(), null_mut()) }
            }
            $(#[$feature])?
            unsafe fn update_q(by: u8, old: &[u8], new: &[u8], q: &mut [u8]) {
                // SAFETY: see `xor`.
                unsafe { generic::update::<V, false, true>(by, old, new, null_mut(), q.as_mut_ptr()) }
            }
            $(#[$feature])?
            unsafe fn update_pq(by: u8, old: &[u8], new: &[u8], parity: [&mut [u8]; 2]) {
                let [p, q] = parity.map(<[u8]>::as_mut_ptr);
                // SAFETY: see `xor`.
                unsafe { generic::update::<V, true, true>(by, old, new, p, q) }
            }
            $(#[$feature])?
            unsafe fn scale_sum(by: u8, other: &[u8], to: &mut [u8]) {
                // SAFETY: see `xor`.
                unsafe { generic::scale_sum::<V>(by, other, to) }
            }
            $(#[$feature])?
            unsafe fn solve(by: [u8; 2], parity: [&[u8]; 2], lost: [&mut [u8]; 2]) {
                // SAFETY: see `xor`.
                unsafe { generic::solve::<V>(by, parity, lost) }
            }
            $crate::kernels::Table {
                xor,
                pq,
                q,
                update_p,
                update_q,
                update_pq,
                scale_sum,
                solve,
            }
        };
    };
}

pub(super) use table;
