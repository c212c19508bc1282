//! P and Q, slowly: the arithmetic of GF(2^8) bit by bit.

use std::sync::LazyLock;

/// Multiplication in GF(2^8) modulo 0x11d, bit by bit.
pub(super) fn multiply(mut a: u8, mut b: u8) -> u8 {
    let mut product = 0;
    while b > 0 {
        if b & 1 == 1 {
            product ^= a;
        }
        a = a << 1 ^ if a & 0x80 == 0 { 0 } else { 0x1d };
        b >>= 1;
    }
    product
}

pub(super) fn power(exponent: usize) -> u8 {
    (0..exponent).fold(1, |value, _| multiply(value, 2))
}

/// By trying, once for each value.
fn inverse(value: u8) -> u8 {
    static INVERSES: LazyLock<Vec<Option<u8>>> = LazyLock::new(|| {
        let inverse = |value| (1..=255).find(|it| multiply(*it, value) == 1);
        (0..=255).map(inverse).collect()
    });
    INVERSES[usize::from(value)].expect("not 0")
}

/// P and Q of blocks.
pub(super) fn parity(data: &[Vec<u8>]) -> (Vec<u8>, Vec<u8>) {
    let length = data[0].len();
    let (mut p, mut q) = (vec![0; length], vec![0; length]);
    for (exponent, block) in data.iter().enumerate() {
        let factor = power(exponent);
        for (at, byte) in block.iter().enumerate() {
            p[at] ^= byte;
            q[at] ^= multiply(factor, *byte);
        }
    }
    (p, q)
}

/// Solves for lost data, byte by byte, by trying.
pub(super) fn recover(data: &mut [Vec<u8>], p: Option<&[u8]>, q: Option<&[u8]>, lost: &[usize]) {
    for number in lost {
        data[*number].fill(0);
    }
    let (p0, q0) = parity(data);
    for at in 0..data[0].len() {
        let dp = p.map(|p| p[at] ^ p0[at]);
        let dq = q.map(|q| q[at] ^ q0[at]);
        match (lost, dp, dq) {
            ([x], Some(dp), _) => data[*x][at] = dp,
            ([x], None, Some(dq)) => data[*x][at] = multiply(dq, inverse(power(*x))),
            ([x, y], Some(dp), Some(dq)) => {
                let (gx, gy) = (power(*x), power(*y));
                let a = multiply(dq ^ multiply(gy, dp), inverse(gx ^ gy));
                data[*x][at] = a;
                data[*y][at] = dp ^ a;
            }
            _ => panic!("cannot recover {lost:?}"),
        }
    }
}
