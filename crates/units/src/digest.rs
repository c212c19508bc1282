//! A small digest: FNV-1a of 64 bits, by Fowler, Noll and Vo. It distinguishes inputs that differ
//! by accident; it gives no protection against deliberate collisions.

/// The digest of no bytes (the FNV offset basis), with which every digest begins.
pub const FNV_BASIS: u64 = 0xcbf2_9ce4_8422_2325;

/// Returns the digest of the bytes behind `hash` followed by `bytes`.
#[must_use]
pub fn fnv1a(hash: u64, bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes.into_iter().fold(hash, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::{FNV_BASIS, fnv1a};

    #[test]
    fn it_is_the_published_one_and_goes_on_where_it_was() {
        // draft-eastlake-fnv, appendix C.
        assert_eq!(fnv1a(FNV_BASIS, *b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(FNV_BASIS, *b"foobar"), 0x8594_4171_f739_67e8);
        let begun = fnv1a(FNV_BASIS, *b"foo");
        assert_eq!(fnv1a(begun, *b"bar"), 0x8594_4171_f739_67e8);
    }
}
