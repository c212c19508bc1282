//! XOR and P+Q parity over GF(2^8), in SIMD tiers chosen at start.
