//! Unique random numbers, from the system and not from a seed.

use raidlab_metadata::Uuid;
use std::fs::File;
use std::io::{self, Read};

/// A random UUID, by which a new array or device is named.
pub(crate) fn random_uuid() -> io::Result<Uuid> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(Uuid(bytes))
}

pub(crate) fn random_u64() -> io::Result<u64> {
    let [a, b, c, d, e, f, g, h, ..] = random_uuid()?.0;
    Ok(u64::from_le_bytes([a, b, c, d, e, f, g, h]))
}
