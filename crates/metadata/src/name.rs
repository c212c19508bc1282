//! Changes that `--assemble --update` makes: names.

use crate::bitmap::Bitmap;
use crate::superblock::version_1::NAME_BYTES;
use crate::superblock::{Superblock, Uuid};

/// The name that a superblock gets: `host:name`, or the name alone if there is
/// no host, if the name has one already, or if both are longer than 31 bytes
/// (`init_super1` of mdadm 4.2). Cut to 31 bytes.
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

impl Superblock {
    /// Gives the array another name.
    pub fn set_name(&mut self, host: &str, name: &str) {
        self.name = full_name(host, name);
    }

    /// Gives the array another UUID, in the internal bitmap too.
    pub fn set_array_uuid(&mut self, uuid: Uuid, bitmap: Option<&mut Bitmap>) {
        self.array_uuid = uuid;
        if let Some(bitmap) = bitmap {
            bitmap.superblock.array_uuid = uuid;
        }
    }
}
