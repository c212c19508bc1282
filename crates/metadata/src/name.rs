//! The name of an array in its superblocks.

use crate::superblock::version_1::NAME_BYTES;

/// Returns the name that a superblock gets: `host:name`, or the name alone if there is no host, if
/// the name has one already, or if both are longer than 31 bytes (`init_super1` of mdadm 4.2). Cut
/// to 31 bytes.
#[must_use]
pub fn full_name(host: &str, name: &str) -> String {
    let whole = host.len() + 1 + name.len();
    if !host.is_empty() && !name.contains(':') && whole < NAME_BYTES {
        return format!("{host}:{name}");
    }
    let mut end = name.len().min(NAME_BYTES - 1);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name[..end].to_owned()
}
