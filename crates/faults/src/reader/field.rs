//! GF(2^8) with the polynomial x^8 + x^4 + x^3 + x^2 + 1 and the generator 2,
//! by tables of powers and products.

use std::sync::LazyLock;

struct Tables {
    power: [u8; 510],
    /// For each factor, its products with every byte.
    products: Vec<[u8; 256]>,
}

static TABLES: LazyLock<Tables> = LazyLock::new(|| {
    let mut tables = Tables {
        power: [0; 510],
        products: vec![[0; 256]; 256],
    };
    let mut logarithm = [0; 256];
    let mut value = 1_u16;
    for exponent in 0..255 {
        tables.power[exponent] = value as u8;
        tables.power[exponent + 255] = value as u8;
        logarithm[usize::from(value)] = exponent;
        value <<= 1;
        if value & 0x100 != 0 {
            value ^= 0x11d;
        }
    }
    for left in 1..256 {
        for right in 1..256 {
            tables.products[left][right] = tables.power[logarithm[left] + logarithm[right]];
        }
    }
    tables
});

/// Returns 2 to this power in GF(2^8).
pub(super) fn power(exponent: usize) -> u8 {
    TABLES.power[exponent % 255]
}

/// Returns the inverse of a factor that is not 0.
pub(super) fn inverse(factor: u8) -> u8 {
    let products = &TABLES.products[usize::from(factor)];
    let one = (0..=255).find(|other| products[usize::from(*other)] == 1);
    one.unwrap_or(0)
}

/// Multiplies a block by the generator.
pub(super) fn times_generator(block: &mut [u8]) {
    for byte in block {
        let carry = if *byte & 0x80 == 0 { 0 } else { 0x1d };
        *byte = (*byte << 1) ^ carry;
    }
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
