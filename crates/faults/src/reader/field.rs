//! GF(2^8) with the polynomial x^8 + x^4 + x^3 + x^2 + 1 and the generator 2,
//! by tables of logarithms.

use std::sync::LazyLock;

struct Tables {
    power: [u8; 510],
    logarithm: [usize; 256],
    /// Of each factor, the products with every byte.
    products: Vec<[u8; 256]>,
}

static TABLES: LazyLock<Tables> = LazyLock::new(|| {
    let mut tables = Tables {
        power: [0; 510],
        logarithm: [0; 256],
        products: vec![[0; 256]; 256],
    };
    let mut value = 1_u16;
    for exponent in 0..255 {
        tables.power[exponent] = value as u8;
        tables.power[exponent + 255] = value as u8;
        tables.logarithm[usize::from(value)] = exponent;
        value <<= 1;
        if value & 0x100 != 0 {
            value ^= 0x11d;
        }
    }
    for left in 1..256 {
        for right in 1..256 {
            let exponent = tables.logarithm[left] + tables.logarithm[right];
            tables.products[left][right] = tables.power[exponent];
        }
    }
    tables
});

/// 2 to this power in GF(2^8).
pub(super) fn power(exponent: usize) -> u8 {
    TABLES.power[exponent % 255]
}

/// The product of two elements of GF(2^8).
pub(super) fn multiply(left: u8, right: u8) -> u8 {
    TABLES.products[usize::from(left)][usize::from(right)]
}

/// The quotient; the divisor is not 0.
pub(super) fn divide(left: u8, right: u8) -> u8 {
    if left == 0 {
        return 0;
    }
    let tables = &*TABLES;
    tables.power[255 + tables.logarithm[usize::from(left)] - tables.logarithm[usize::from(right)]]
}

/// Adds `factor` times `block` to `sum`.
pub(super) fn add_multiple(sum: &mut [u8], factor: u8, block: &[u8]) {
    if factor == 1 {
        for (to, from) in sum.iter_mut().zip(block) {
            *to ^= from;
        }
        return;
    }
    let products = &TABLES.products[usize::from(factor)];
    for (to, from) in sum.iter_mut().zip(block) {
        *to ^= products[usize::from(*from)];
    }
}
