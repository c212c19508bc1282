//! The field GF(2^8) of polynomial 0x11d, by tables of powers and logarithms
//! that are made at compile time.

/// The field's polynomial without x^8.
pub(crate) const REDUCTION: u8 = 0x1d;

/// The non-zero elements: `POWERS[i]` is g^i.
static POWERS: [u8; 255] = powers();

/// The exponent of each non-zero element.
static LOGARITHMS: [u8; 256] = logarithms();

const fn powers() -> [u8; 255] {
    let mut powers = [1; 255];
    let mut exponent = 1;
    while exponent < 255 {
        let previous: u8 = powers[exponent - 1];
        powers[exponent] = (previous << 1) ^ ((previous >> 7) * REDUCTION);
        exponent += 1;
    }
    powers
}

const fn logarithms() -> [u8; 256] {
    let powers = powers();
    let mut logarithms = [0; 256];
    let mut exponent = 0;
    while exponent < 255 {
        logarithms[powers[exponent] as usize] = exponent as u8;
        exponent += 1;
    }
    logarithms
}

/// The generator g of the field to any power.
pub(crate) const fn power(exponent: usize) -> u8 {
    POWERS[exponent % 255]
}

/// The exponent of an element that is not zero.
pub(crate) const fn logarithm(element: u8) -> usize {
    debug_assert!(element != 0, "zero has no logarithm");
    LOGARITHMS[element as usize] as usize
}

/// The product of two elements of GF(2^8).
pub(crate) const fn multiply(left: u8, right: u8) -> u8 {
    if left == 0 || right == 0 {
        return 0;
    }
    power(logarithm(left) + logarithm(right))
}

/// Returns the inverse of an element that is not zero.
pub(crate) const fn inverse(element: u8) -> u8 {
    power(255 - logarithm(element))
}
